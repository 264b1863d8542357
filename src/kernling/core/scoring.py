"""Outputs of a model for rows: of an expansion, of a linear model on features, or of a state that has both."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np

from .averages import AVERAGE, output_mix
from .blas import one_thread
from .block import new_scratch, open_block
from .expansion import EVENTS, Expansion
from .fourier import MEAN, Linear, feature_outputs, feature_score, new_feature_scratch, open_features
from .jit import entry_point, inline, inner, jit
from .kernels import Kernel
from .rows import Rows, row_count


class Setup(NamedTuple):
    """What the code around a step needs to know."""

    kernel: Kernel
    block_size: int
    tolerance: float  # of the nearest core point, in squared distance; negative where no step asks for it
    dense: bool  # the step reads whole rows
    output: int  # averages.LAST, AVERAGE or SUFFIX
    fraction: float  # of a suffix
    growth: float  # between snapshots
    uniforms: int  # random numbers per event
    room: int  # points that one call of the step may add, where that is more than the block
    notes: int  # numbers recorded beside the outputs of each event
    keep: float  # what the model is multiplied by after each event; 1 where nothing is forgotten


@inline
def mix_scores(mix, scores, j, row):
    """Write the outputs of event j: the scores of all groups, mixed."""
    for o in range(scores.shape[1]):
        row[o] = 0.0
        for g in range(mix.size):
            row[o] += mix[g] * scores[g, o, j]


@inner
def _add_kernel_scores(setup, model, rows, out, first, last, scratch):
    for start in range(first, last, setup.block_size):
        b = min(setup.block_size, last - start)
        block = open_block(setup.kernel, model, rows, start, b, scratch, -1.0)
        for j in range(b):
            for o in range(out.shape[1]):
                out[start + j, o] += block.scores[0, o, j]


@jit
def _kernel_scores(setup, model, rows, out, first, last):
    """Add the scores of rows first .. last - 1; the model has one group and is only read."""
    scratch = new_scratch(model, rows, min(setup.block_size, last - first), False)
    _add_kernel_scores(setup, model, rows, out, first, last, scratch)


@inner
def _add_linear_scores(setup, model, rows, out, first, last, scratch):
    for start in range(first, last, setup.block_size):
        b = min(setup.block_size, last - start)
        features = open_features(model, rows, start, b, scratch)
        for j in range(b):
            for o in range(out.shape[1]):
                out[start + j, o] += feature_score(model.coef[0, o], features.Z, j)


@jit
def _linear_scores(setup, model, rows, out, first, last):
    """Add the scores of rows first .. last - 1."""
    scratch = new_feature_scratch(model, rows, min(setup.block_size, last - first), 0)
    _add_linear_scores(setup, model, rows, out, first, last, scratch)


def score(setup: Setup, state: Any, rows: Rows, threads: int = 1) -> np.ndarray:
    """The output of the model for each row: (rows, outputs).  Several threads give the same numbers."""
    n = row_count(rows)
    out = np.zeros((n, state.model.coef.shape[1]))
    blocks = -(-n // setup.block_size)
    threads = max(1, min(threads, blocks))
    cuts = [setup.block_size * (blocks * i // threads) for i in range(threads)] + [n]
    for part in frozen_parts(setup, state):
        add: Callable = _kernel_scores if isinstance(part, Expansion) else _linear_scores
        if threads == 1:
            add(setup, part, rows, out, 0, n)
            continue
        with ThreadPoolExecutor(threads) as pool:
            for job in [pool.submit(one_thread(add), setup, part, rows, out, *cuts[i : i + 2]) for i in range(threads)]:
                job.result()
    return out


def frozen_parts(setup: Setup, state: Any) -> list[Expansion | Linear]:
    """The functions whose sum is the output, each with one group of coefficients and no scale."""
    parts: list[Expansion | Linear] = []
    for part in state:
        if isinstance(part, Expansion):
            mix = np.empty(part.coef.shape[0])
            output_mix(part, setup.output, setup.fraction, mix)
            parts.append(part._replace(coef=np.tensordot(mix, part.coef, (0, 0))[np.newaxis]))
        elif isinstance(part, Linear):
            averaged = setup.output == AVERAGE and part.clock[EVENTS] > 0
            coef = part.coef[MEAN] / part.clock[EVENTS] if averaged else part.coef[0]
            parts.append(part._replace(coef=coef[np.newaxis]))
    return parts


@inner
def _kernel_output(setup, model, rows, out, scratch, mix):
    block = open_block(setup.kernel, model, rows, 0, 1, scratch, -1.0)
    output_mix(model, setup.output, setup.fraction, mix)
    mix_scores(mix, block.scores, 0, out[0])


@jit
def _kernel_event(setup, model, rows, out):
    """Outputs of one event, from the model as it is."""
    scratch = new_scratch(model, rows, 1, False)
    _kernel_output(setup, model, rows, out, scratch, np.empty(model.coef.shape[0]))


@inner
def _linear_output(setup, model, rows, out, scratch):
    features = open_features(model, rows, 0, 1, scratch)
    feature_outputs(model, features, 0, setup.output == AVERAGE, out[0])


@jit
def _linear_event(setup, model, rows, out):
    """Outputs of one event, from the model as it is."""
    _linear_output(setup, model, rows, out, new_feature_scratch(model, rows, 1, 0))


class EventScorer:
    """Scores single events with as little around the compiled code as can be."""

    def __init__(self, setup: Setup, state: Any, rows: Rows):
        self.setup, self.rows = setup, rows
        self.total = np.zeros((1, state.model.coef.shape[1]))
        self._out = np.zeros_like(self.total)
        self._parts: list[tuple[int, Callable]] = []
        for place, part in enumerate(state):
            if isinstance(part, (Expansion, Linear)):
                score_event = _kernel_event if isinstance(part, Expansion) else _linear_event
                self._parts.append((place, entry_point(score_event, setup, part, rows, self._out)))

    def __call__(self, state: Any) -> np.ndarray:
        """The outputs of the event in the rows, in an array that the next call overwrites."""
        self.total[:] = 0.0
        for place, score_event in self._parts:
            score_event(self.setup, state[place], self.rows, self._out)
            self.total += self._out
        return self.total[0]
