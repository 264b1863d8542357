"""Compiled scoring of rows, a few rows, or single events; settings, model and buffers are passed by address."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..compiler import address, bind, by_address, entry_point, inline, inner, strided
from ..core.averages import LAST, output_mix
from ..core.block import Block, open_block
from ..core.expansion import Expansion
from ..core.fourier import Features, Linear, feature_outputs, open_features
from ..core.rows import Rows, as_rows, row_count
from ..core.setup import Setup, mix_scores
from .loops import load_event


class Scoring(NamedTuple):
    """The arguments of scoring."""

    setup: Setup
    model: Expansion | Linear
    buffers: Block | Features
    out: np.ndarray
    given: np.ndarray  # (rows, d) of a single event or a few, to be written; empty for others
    frozen: bool  # the model has one group and no scale
    first: bool  # whether the outputs of given rows begin here: other parts of the model add theirs
    last: bool  # whether they are complete afterwards
    threshold: np.ndarray  # (outputs,) which is subtracted from complete outputs of given rows
    best: np.ndarray  # (rows,) the index of the largest of them, or whether the only one is not negative


@inner
def _add_kernel_outputs(call, first, last):
    setup, model, block, out = call.setup, call.model, call.buffers, call.out
    mix, f = block.mix, block.f
    if call.frozen:
        mix[0] = 1.0
    else:
        output_mix(model, setup.output, setup.fraction, mix)
    for g in range(mix.size):
        block.used[g] = mix[g]
    for start in range(first, last, setup.block_size):
        b = min(setup.block_size, last - start)
        open_block(model, block, start, b)
        scores = block.scores
        for j in range(b):
            mix_scores(mix, scores, j, f)
            for o in range(f.size):
                out[start + j, o] += f[o]


@inner
def _add_feature_outputs(call, first, last):
    setup, model, features, out = call.setup, call.model, call.buffers, call.out
    output = LAST if call.frozen else setup.output
    f = features.f
    for start in range(first, last, setup.block_size):
        b = min(setup.block_size, last - start)
        open_features(model, features, start, b)
        for j in range(b):
            feature_outputs(model, features, j, output, f)
            for o in range(f.size):
                out[start + j, o] += f[o]


def add_outputs(call, first, last):
    """Placeholder for one of the functions above: add the outputs of rows first .. last - 1, from the model as it is."""


def _score_rows(call, first, last):
    add_outputs(call, first, last)


def _score_event(call, x, largest):
    """Write the outputs of one event, or add them; returns whether it holds what can be scored."""
    if not load_event(call.given[0], x, largest):
        return False
    if call.first:
        set_zero(call.out, 1)
    add_outputs(call, 0, 1)
    if call.last:
        finish(call, 1)
    return True


def _score_few(call, X, largest):
    """Same for a few rows."""
    outside = 0
    for i in range(X.shape[0]):
        if not load_event(call.given[i], X[i], largest):
            outside += 1
    if outside > 0:
        return False
    if call.first:
        set_zero(call.out, X.shape[0])
    add_outputs(call, 0, X.shape[0])
    if call.last:
        finish(call, X.shape[0])
    return True


@inline
def set_zero(out, rows):
    for i in range(rows):
        for o in range(out.shape[1]):
            out[i, o] = 0.0


@inline
def finish(call, rows):
    """Subtract the thresholds, and decide: score 0 is the second class, ties go to the lowest index, as in labels.py."""
    out, threshold = call.out, call.threshold
    outputs = out.shape[1]
    for i in range(rows):
        best = 0
        for o in range(outputs):
            out[i, o] -= threshold[o]
            if out[i, o] > out[i, best]:
                best = o
        if outputs == 1 and out[i, 0] >= 0.0:
            best = 1
        call.best[i] = best


_SCORE_ROWS = {
    Expansion: bind(_score_rows, add_outputs=_add_kernel_outputs),
    Linear: bind(_score_rows, add_outputs=_add_feature_outputs),
}
_SCORE_EVENT = {
    Expansion: bind(_score_event, add_outputs=_add_kernel_outputs),
    Linear: bind(_score_event, add_outputs=_add_feature_outputs),
}
_SCORE_FEW = {
    Expansion: bind(_score_few, add_outputs=_add_kernel_outputs),
    Linear: bind(_score_few, add_outputs=_add_feature_outputs),
}


def _scoring(setup: Setup, model: Any, rows: Rows, out: np.ndarray, frozen: bool, given: tuple) -> Any:
    """Return the arguments of scoring by address; ``given`` are the fields that only matter for given rows."""
    setup = setup._replace(tolerance=-1.0, dense=False)
    size = min(setup.block_size, row_count(rows))
    buffers = Block(setup, model, rows, size) if isinstance(model, Expansion) else Features(model, rows, size)
    return by_address(Scoring(setup, model, buffers, out, given[0], frozen, *given[1:]))


def add_scores(setup: Setup, model: Expansion | Linear, rows: Rows, out: np.ndarray, first: int, last: int) -> None:
    """Add the outputs of rows first .. last - 1; the model has one group, no scale, and is only read."""
    nothing = np.empty((0, 0), rows.dense.dtype), False, False, np.empty(0), np.empty(0, np.int64)
    call = _scoring(setup, model, rows, out, True, nothing)
    entry_point(_SCORE_ROWS[type(model)], call, 0, 1)(call, first, last)


class Scorer:
    """Computes the outputs of single events with the current model, or of a few rows with a frozen one; owns its buffers."""

    def __init__(self, setup: Setup, parts: list[Any], given: np.ndarray, threshold: np.ndarray | None, *, is_event: bool):
        outputs = parts[0].outputs
        self.out, self.best = np.zeros((len(given), outputs)), np.zeros(len(given), np.int64)
        rows, subtracted = as_rows(given), np.zeros(outputs) if threshold is None else threshold
        self._records = [
            _scoring(
                setup,
                part,
                rows,
                self.out,
                not is_event,
                (given, part is parts[0], part is parts[-1], subtracted, self.best),
            )
            for part in parts
        ]
        entries, example = (_SCORE_EVENT, strided(given[0])) if is_event else (_SCORE_FEW, given)
        self.calls = [  # the functions to be called with their first argument, what is scored and the largest number allowed
            (entry_point(entries[type(part)], record, example, 1.0), address(record))
            for part, record in zip(parts, self._records, strict=True)
        ]
