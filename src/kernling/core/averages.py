"""Averages of all models, or of a suffix of them, maintained exactly while the model changes a few coefficients at a time.

With w_t = c_t v_t (c the lazy scale) and C_t = c_1 + ... + c_t, an addition u to v at step i is in w_{i+1}, w_{i+2}, ...
So with B = sum of u C_i, the sum of the first T models is C_T v - B.  Group 0 of the expansion is v, group 1 is B.
For Pegasos steps v = (t-1) w, c_t = 1 / (t-1), and C_t is a harmonic number: nothing is ever rescaled.

A suffix average subtracts the sum up to some earlier event s, stored as a snapshot group.  When the length T of the stream
is known (``plan``), s is exact.  On a stream of unknown length, snapshots are taken at times that grow by a factor q, chosen so
that the averaged fraction is always between the requested one and ``SPREAD`` times it; older ones are overwritten.

Which of these outputs is best depends on how noisy the steps are and how much the stream moves.  ``AUTO`` is the mean of the
three, with weights that follow the loss of each at the latest events, before they were learned (votes.py).  It is another
combination of the same groups, so it costs as much as the suffix average.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..compiler import by_address, inline, inner, jit
from .expansion import CHOICES, EVENTS, EXACT, NEXT, SCALE, TOTAL, Expansion
from .votes import TIE, update_votes

LAST, AVERAGE, SUFFIX, AUTO = range(4)
RATE, SHARE = 0.1, 0.001  # of the votes for outputs: the weight of a mistake, and what all share after each event
KINDS = {name: kind for kind, name in enumerate((*CHOICES, "auto"))}
SPREAD = 1.25
SNAPSHOTS = 2  # first snapshot group


def growth(fraction: float) -> float:
    """Return the factor between snapshot times."""
    if SPREAD * fraction >= 1.0:
        return 2.0
    return min(2.0, (1.0 - fraction) / (1.0 - SPREAD * fraction))


def snapshot_count(kind: int, fraction: float) -> int:
    """Return the number of snapshots that a stream of unknown length needs."""
    if kind not in (SUFFIX, AUTO) or fraction >= 1.0:
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
def begin_event(model, block, growth):
    """Add the model before an event to the sums; take a snapshot first if one is due."""
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
def use_groups(model, kind, fraction, events, used):
    """Mark the groups that outputs need during the next events: not the snapshots that are older or younger than theirs."""
    n = model.clock[EVENTS]
    first, last = _suffix_start(fraction, n), _suffix_start(fraction, n + events)
    oldest = -1.0
    for s in range(model.marks.size):
        if model.marks[s] <= first:
            oldest = max(oldest, model.marks[s])
    for s in range(model.marks.size):
        used[SNAPSHOTS + s] = 1.0 if kind >= SUFFIX and oldest <= model.marks[s] <= last else 0.0


@inner
def output_mix(model, kind, fraction, mix):
    """Write the weights of the groups of coefficients in the current output."""
    for g in range(mix.size):
        mix[g] = 0.0
    if kind == AUTO:
        for choice in range(model.votes.size):
            _add_mix(model, choice, fraction, model.votes[choice], mix)
    else:
        _add_mix(model, kind, fraction, 1.0, mix)


@inner
def _add_mix(model, kind, fraction, weight, mix):
    """Add the weights of the groups in one of the outputs, times a weight."""
    clock = model.clock
    n = clock[EVENTS]
    if kind == LAST or n == 0.0:
        mix[0] += weight * clock[SCALE]
        return
    chosen, start = -1, 0.0
    if kind == SUFFIX:
        chosen, start = _snapshot(model, fraction)
    each = weight / (n - start)
    mix[0] += each * clock[TOTAL]
    mix[1] -= each
    if chosen >= 0:
        mix[SNAPSHOTS + chosen] -= each


@inline
def _snapshot(model, fraction):
    """Return the index and the time of the snapshot with which a suffix begins; -1 and 0 if it begins with the first model."""
    latest = _suffix_start(fraction, model.clock[EVENTS])
    chosen, start = -1, 0.0
    for s in range(model.marks.size):
        if start <= model.marks[s] <= latest:
            chosen, start = s, model.marks[s]
    return chosen, start


@inner
def learn_votes(model, block, j, fraction, numeric, y, weight):
    """Update the votes of the outputs by their losses at event j, which the model has not learned yet.

    The loss is 1 for a wrong label, and 1/2 for none of two; for numeric targets it is the squared residual relative to the
    largest of the three.
    """
    clock, scores, losses = model.clock, block.scores, block.work[0]
    n = clock[EVENTS]
    chosen, start = _snapshot(model, fraction)
    largest = TIE
    for choice in range(model.votes.size):
        for o in range(block.g.size):
            if choice == LAST or n == 0.0:
                block.g[o] = clock[SCALE] * scores[0, o, j]
                continue
            total = clock[TOTAL] * scores[0, o, j] - scores[1, o, j]
            if choice == SUFFIX and chosen >= 0:
                block.g[o] = (total - scores[SNAPSHOTS + chosen, o, j]) / (n - start)
            else:
                block.g[o] = total / n
        if numeric:
            losses[choice] = (block.g[0] - y) ** 2
            largest = max(largest, losses[choice])
        else:
            losses[choice] = _label_loss(block.g, y)
    for choice in range(model.votes.size):
        losses[choice] /= largest if numeric else 1.0
    update_votes(model.votes, losses, RATE * weight, SHARE)


@inline
def _label_loss(f, y):
    """Return 1 if the label with the highest score is not y, else 0.

    Which of two labels is the positive one must not matter, since a late label may change that: a score of 0 counts half.
    Of several equal scores, the first one wins.
    """
    if f.size == 1:
        return 0.5 if abs(f[0]) <= TIE else 0.5 - 0.5 * np.sign(f[0] * y)
    best = 0
    for o in range(1, f.size):
        if f[o] > f[best] + TIE:
            best = o
    return 0.0 if best == int(y) else 1.0


@jit
def write_mix(model, kind, fraction, mix):
    """Same as ``output_mix``, for calls from Python."""
    output_mix(model, kind, fraction, mix)


@jit
def freeze_points(model, kind, fraction, mix, coef):
    """Write the weights of the groups in the current output, and its coefficients, (1, outputs, points)."""
    output_mix(model, kind, fraction, mix)
    mix_groups(model, mix, coef)


@inline
def mix_groups(model, mix, coef):
    """Write the weighted sum of all groups of coefficients, (1, outputs, ...)."""
    for o in range(coef.shape[1]):
        out = coef[0, o]
        for i in range(out.size):
            out[i] = 0.0
        for g in range(mix.size):
            weight, group = mix[g], model.coef[g, model.places[o]]
            if weight != 0.0:
                for i in range(out.size):
                    out[i] += weight * group[i]


def averaged_share(model: Expansion, kind: int, fraction: float) -> float:
    """Return the fraction of all models so far that the output averages; with ``AUTO``, that its suffix average does."""
    if kind == LAST or model.clock[EVENTS] == 0.0:
        return 0.0
    mix = np.empty(model.coef.shape[0])
    write_mix(by_address(model), SUFFIX if kind == AUTO else kind, fraction, mix)
    return float(-1.0 / (mix[1] * model.clock[EVENTS]))
