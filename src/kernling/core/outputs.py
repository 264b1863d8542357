"""Compiled scoring of rows, a few rows, or single events; settings, model and buffers are passed by address."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .averages import LAST, output_mix
from .block import Block, open_block
from .expansion import Expansion
from .fourier import Features, Linear, feature_outputs, open_features
from .jit import bind, entry_point, inline, inner, template
from .rows import Rows, as_rows, row_count
from .run import load_event
from .setup import Setup, mix_scores
from .struct import address, by_address, strided


class Scoring(NamedTuple):
    """The arguments of scoring."""

    setup: Setup
    model: Expansion | Linear
    buffers: Block | Features
    out: np.ndarray
    given: np.ndarray  # (rows, d) of a single event or a few, to be written; empty for others
    frozen: bool  # the model has one group and no scale
    first: bool  # whether the outputs of given rows begin here: other parts of the model add theirs


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


@template
def add_outputs(call, first, last):
    """Placeholder for one of the functions above: add the outputs of rows first .. last - 1, from the model as it is."""


@template
def _score_rows(call, first, last):
    add_outputs(call, first, last)


@template
def _score_event(call, x, largest):
    """Write the outputs of one event, or add them; returns whether it holds what can be scored."""
    if not load_event(call.given[0], x, largest):
        return False
    if call.first:
        set_zero(call.out, 1)
    add_outputs(call, 0, 1)
    return True


@template
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
    return True


@inline
def set_zero(out, rows):
    for i in range(rows):
        for o in range(out.shape[1]):
            out[i, o] = 0.0


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


def _scoring(setup: Setup, model: Any, rows: Rows, out: np.ndarray, given: np.ndarray, frozen: bool, first: bool) -> Any:
    setup = setup._replace(tolerance=-1.0, dense=False)
    size = min(setup.block_size, row_count(rows))
    buffers = Block(setup, model, rows, size) if isinstance(model, Expansion) else Features(model, rows, size)
    return by_address(Scoring(setup, model, buffers, out, given, frozen, first))


def add_scores(setup: Setup, model: Expansion | Linear, rows: Rows, out: np.ndarray, first: int, last: int) -> None:
    """Add the outputs of rows first .. last - 1; the model has one group, no scale, and is only read."""
    call = _scoring(setup, model, rows, out, np.empty((0, 0), rows.dense.dtype), frozen=True, first=False)
    entry_point(_SCORE_ROWS[type(model)], call, 0, 1)(call, first, last)


class Scorer:
    """Computes the outputs of single events with the current model, or of a few rows with a frozen one; owns its buffers."""

    def __init__(self, setup: Setup, parts: list[Any], given: np.ndarray, *, is_event: bool):
        self.out = np.zeros((len(given), parts[0].coef.shape[1]))
        rows, first = as_rows(given), parts[0]
        self._records = [_scoring(setup, part, rows, self.out, given, not is_event, part is first) for part in parts]
        entries, example = (_SCORE_EVENT, strided(given[0])) if is_event else (_SCORE_FEW, given)
        self.calls = [  # the functions to be called with their first argument, what is scored and the largest number allowed
            (entry_point(entries[type(part)], record, example, 1.0), address(record))
            for part, record in zip(parts, self._records, strict=True)
        ]
