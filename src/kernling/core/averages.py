"""Averages of all models, or of a suffix of them, maintained exactly while the model changes a few coefficients at a time.

With w_t = c_t v_t (c the lazy scale) and C_t = c_1 + ... + c_t, an addition u to v at step i is in w_{i+1}, w_{i+2}, ...
So with B = sum of u C_i, the sum of the first T models is C_T v - B.  Group 0 of the expansion is v, group 1 is B.
For Pegasos steps v = (t-1) w, c_t = 1 / (t-1), and C_t is a harmonic number: nothing is ever rescaled.

A suffix average subtracts the sum up to some earlier event s, stored as a snapshot group.  When the length T of the stream
is known (``plan``), s is exact.  On a stream of unknown length, snapshots are taken at times that grow by a factor q, chosen so
that the averaged fraction is always between the requested one and ``SPREAD`` times it; older ones are overwritten.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .expansion import EVENTS, EXACT, NEXT, SCALE, TOTAL, Expansion
from .jit import inline, inner, jit
from .struct import by_address

LAST, AVERAGE, SUFFIX = range(3)
KINDS = {"last": LAST, "average": AVERAGE, "suffix": SUFFIX}
SPREAD = 1.25
SNAPSHOTS = 2  # first snapshot group


def growth(fraction: float) -> float:
    """Return the factor between snapshot times."""
    if SPREAD * fraction >= 1.0:
        return 2.0
    return min(2.0, (1.0 - fraction) / (1.0 - SPREAD * fraction))


def snapshot_count(kind: int, fraction: float) -> int:
    """Return the number of snapshots that a stream of unknown length needs."""
    if kind != SUFFIX or fraction >= 1.0:
        return 0
    return math.ceil(math.log(1.0 / (1.0 - fraction)) / math.log(growth(fraction))) + 3


def group_count(kind: int, fraction: float = 1.0) -> int:
    """Return the number of groups of coefficients of an expansion with this output."""
    return 1 if kind == LAST else SNAPSHOTS + snapshot_count(kind, fraction)


def planned(model: Any, fraction: float, length: int | None) -> Any:
    """Schedule an additional snapshot at the exact time, for a stream of known length."""
    if not isinstance(model, Expansion):
        return model
    exact = -1.0 if length is None else suffix_start(fraction, model.clock[EVENTS] + length)
    if model.clock[EXACT] == exact:
        return model
    clock = model.clock.copy()
    clock[EXACT] = exact
    return model._replace(clock=clock)


def suffix_start(fraction, total):
    """Return how many of the first models a suffix omits."""
    return max(0.0, min(total - 1.0, np.ceil((1.0 - fraction) * total - 1e-9)))


_suffix_start = inline(suffix_start)


@inner
def set_sum(columns, g, total):
    """Set group g to the sum of the models so far."""
    for o in range(columns.shape[1]):
        v, b, out = columns[0, o], columns[1, o], columns[g, o]
        for i in range(out.size):
            out[i] = total * v[i] - b[i]


@inline
def begin_event(model, block, j, growth):
    """Add the model before event j to the sums; take a snapshot first if one is due."""
    clock = model.clock
    if model.marks.size > 0 and (clock[EVENTS] == clock[NEXT] or clock[EVENTS] == clock[EXACT]):
        oldest = 0
        for s in range(model.marks.size):
            if model.marks[s] < model.marks[oldest]:
                oldest = s
        model.marks[oldest] = clock[EVENTS]
        set_sum(model.coef, 2 + oldest, clock[TOTAL])
        set_sum(block.scores, 2 + oldest, clock[TOTAL])
        if clock[EVENTS] == clock[NEXT]:
            clock[NEXT] = max(clock[EVENTS] + 1.0, np.ceil(clock[EVENTS] * growth))
    clock[TOTAL] += clock[SCALE]
    clock[EVENTS] += 1.0


@inner
def output_mix(model, kind, fraction, mix):
    """Write the weights of the groups of coefficients in the current output."""
    clock = model.clock
    for g in range(mix.size):
        mix[g] = 0.0
    n = clock[EVENTS]
    if kind == 0 or n == 0.0:
        mix[0] = clock[SCALE]
        return
    start = 0.0
    chosen = -1
    latest = _suffix_start(fraction, n)
    for s in range(model.marks.size):
        mark = model.marks[s]
        if start <= mark <= latest:
            start = mark
            chosen = s
    mix[0] = clock[TOTAL] / (n - start)
    mix[1] = -1.0 / (n - start)
    if chosen >= 0:
        mix[2 + chosen] = -1.0 / (n - start)


@jit
def write_mix(model, kind, fraction, mix):
    """Same as ``output_mix``, for calls from Python."""
    output_mix(model, kind, fraction, mix)


def averaged_share(model: Expansion, kind: int, fraction: float) -> float:
    """Return the fraction of all models so far that the output averages."""
    if kind == LAST or model.clock[EVENTS] == 0.0:
        return 0.0
    mix = np.empty(model.coef.shape[0])
    write_mix(by_address(model), kind, fraction, mix)
    return float(-1.0 / (mix[1] * model.clock[EVENTS]))
