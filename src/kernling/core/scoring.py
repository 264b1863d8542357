"""Scoring of rows with an expansion, a linear model on features, or both."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np

from .averages import AVERAGE, LAST, write_mix
from .blas import one_thread
from .expansion import EVENTS, SCALE, Expansion
from .fourier import MEAN, Linear, feature_outputs, feature_score, new_feature_scratch, open_features
from .jit import entry_point, inner, jit
from .rows import Rows, row_count
from .run import Scorer
from .setup import Setup
from .struct import by_address


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
    """Return the output of the model for each row, (rows, outputs); the result does not depend on the number of threads."""
    n = row_count(rows)
    out = np.zeros((n, state.model.coef.shape[1]))
    blocks = -(-n // setup.block_size)
    threads = max(1, min(threads, blocks))
    cuts = [setup.block_size * (blocks * i // threads) for i in range(threads)] + [n]
    for part in frozen_parts(setup, state):
        add = _kernel_scores if isinstance(part, Expansion) else _linear_scores
        if threads == 1:
            add(setup, part, rows, out, 0, n)
            continue
        with ThreadPoolExecutor(threads) as pool:
            for job in [pool.submit(one_thread(add), setup, part, rows, out, *cuts[i : i + 2]) for i in range(threads)]:
                job.result()
    return out


def _kernel_scores(setup: Setup, model: Expansion, rows: Rows, out: np.ndarray, first: int, last: int) -> None:
    """Add the scores of rows first .. last - 1; the model has one group and is only read."""
    Scorer(setup, model, rows, out, frozen=True)(first, last)


def frozen_parts(setup: Setup, state: Any) -> list[Expansion | Linear]:
    """Return the functions whose sum is the output, each with one group of coefficients and no scale."""
    parts: list[Expansion | Linear] = []
    for part in state:
        if isinstance(part, Expansion):
            mix = np.empty(part.coef.shape[0])
            if setup.output == LAST:
                mix[:] = 0.0
                mix[0] = part.clock[SCALE]
            else:
                write_mix(by_address(part), setup.output, setup.fraction, mix)
            parts.append(part._replace(coef=np.tensordot(mix, part.coef, (0, 0))[np.newaxis]))
        elif isinstance(part, Linear):
            averaged = setup.output == AVERAGE and part.clock[EVENTS] > 0
            coef = part.coef[MEAN] / part.clock[EVENTS] if averaged else part.coef[0]
            parts.append(part._replace(coef=coef[np.newaxis]))
    return parts


@inner
def _linear_output(setup, model, rows, out, scratch):
    features = open_features(model, rows, 0, 1, scratch)
    feature_outputs(model, features, 0, setup.output == AVERAGE, scratch.f)
    for o in range(scratch.f.size):
        out[0, o] += scratch.f[o]


@jit
def _linear_event(setup, model, rows, out):
    """Add the outputs of one event, from the current model."""
    _linear_output(setup, model, rows, out, new_feature_scratch(model, rows, 1, 0))


class EventScorer:
    """Scores single events with as little overhead as possible."""

    def __init__(self, setup: Setup, state: Any, rows: Rows):
        self.setup, self.rows = setup, rows
        self.out = np.zeros((1, state.model.coef.shape[1]))
        self._state: Any = None

    def _attach(self, state: Any) -> None:
        self._state = state
        self._parts: list[Callable] = []
        for part in state:
            if isinstance(part, Expansion):
                self._parts.append(partial(Scorer(self.setup, part, self.rows, self.out), 0, 1))
            elif isinstance(part, Linear):
                arguments = (self.setup, part, self.rows, self.out)
                self._parts.append(partial(entry_point(_linear_event, *arguments), *arguments))

    def __call__(self, state: Any) -> np.ndarray:
        """Return the outputs of the event in the rows, in an array that the next call overwrites."""
        if state is not self._state:
            self._attach(state)
        self.out[:] = 0.0
        for add in self._parts:
            add()
        return self.out[0]
