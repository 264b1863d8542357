"""A threshold for converting scores to labels: the one with the largest balanced accuracy on recent scores of both sides."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, NamedTuple

import numpy as np

from ..compiler import inline, inner
from ..core.expansion import EVENTS
from ..core.fourier import feature_outputs
from ..core.shapes import declared
from ..core.state import Widening
from .pairwise import inherited, quota, side_of

if TYPE_CHECKING:
    from ..merging.rules import Merging

RECENT = 128  # scores of each side that determine a threshold
PERIOD = 32  # events between two stored scores of one side, on a long stream


@declared()
class Recent(NamedTuple):
    """Some recent scores of each side, and the threshold that separates them best."""

    ring: Annotated[np.ndarray, "coefficients: outputs 2 recent"]  # a ring buffer, in order of arrival
    counts: Annotated[np.ndarray, "counts: outputs 2"]  # number of scores stored so far
    times: Annotated[np.ndarray, "not negative: outputs 2"]  # the event of the last of them
    scores: Annotated[np.ndarray, "coefficients: outputs both"]  # the scores of both sides, sorted
    sides: Annotated[np.ndarray, "0..1: outputs both"]  # that the sorted scores belong to
    threshold: Annotated[np.ndarray, "coefficients: outputs"]

    def widened(self, change: Widening) -> Recent:
        """Convert to the outputs of ``change``; a new class has no scores yet."""
        wider = new_recent(change.outputs)
        for p, old in enumerate(inherited(change)):
            if old is None:
                continue
            o, order = old
            factor = change.factors[p]
            size = int(np.minimum(self.counts[o], RECENT).sum())
            wider.ring[p] = factor * self.ring[o, ::order]
            wider.counts[p], wider.times[p] = self.counts[o, ::order], self.times[o, ::order]
            wider.scores[p, :size] = factor * self.scores[o, :size][::order]
            wider.sides[p, :size] = self.sides[o, :size] if order > 0 else 1 - self.sides[o, :size][::-1]
            wider.threshold[p] = factor * self.threshold[o]
        return wider

    def merged(self, other: Recent, start: Recent | None, merging: Merging) -> Recent:
        """Return the newest scores of both; the threshold is the mean, like the function, until the next score."""
        both = new_recent(len(self.threshold))
        for o, side in np.ndindex(*self.counts.shape):
            a, b = self._in_order(o, side), other._in_order(o, side)
            own = quota(RECENT, len(a), len(b), merging.shares[0])
            kept = np.concatenate([a[len(a) - own :], b[len(b) - min(RECENT - own, len(b)) :]])
            both.ring[o, side, : len(kept)] = kept
            both.counts[o, side] = len(kept)
        for o in range(len(self.threshold)):
            held = [both.ring[o, side, : int(both.counts[o, side])] for side in range(2)]
            scores, sides = np.concatenate(held), np.repeat([0, 1], [len(part) for part in held])
            order = np.argsort(scores, kind="stable")
            both.scores[o, : len(order)], both.sides[o, : len(order)] = scores[order], sides[order]
        both.times[:] = merging.model.clock[EVENTS]
        both.threshold[:] = merging.shares @ np.stack([self.threshold, other.threshold])
        return both

    def retimed(self, factor: float) -> Recent:
        """Return the same scores with all times multiplied by a factor."""
        return self._replace(times=factor * self.times)

    def _in_order(self, o: int, side: int) -> np.ndarray:
        """Return the scores in order of arrival, the oldest first."""
        count = int(self.counts[o, side])
        return np.roll(self.ring[o, side], -count % RECENT) if count >= RECENT else self.ring[o, side, :count]


def new_recent(outputs: int) -> Recent:
    """Return an empty set of scores with threshold 0."""
    return Recent(
        ring=np.zeros((outputs, 2, RECENT)),
        counts=np.zeros((outputs, 2)),
        times=np.zeros((outputs, 2)),
        scores=np.zeros((outputs, 2 * RECENT)),
        sides=np.zeros((outputs, 2 * RECENT), np.int64),
        threshold=np.zeros(outputs),
    )


@inline
def is_due(recent, o, side, t):
    """Return whether the score of event t of this side is to be stored: all at first, then one in ``PERIOD``."""
    return t - recent.times[o, side] >= min(PERIOD, t / (2.0 * RECENT))


@inner
def keep_score(recent, o, side, score, t):
    """Store the score of event t of this side, replacing the oldest if the buffer is full."""
    ring, scores, sides = recent.ring[o, side], recent.scores[o], recent.sides[o]
    size = int(min(RECENT, recent.counts[o, 0]) + min(RECENT, recent.counts[o, 1]))
    count = int(recent.counts[o, side])
    slot = count % RECENT
    i = 0
    if count < RECENT:
        i = size
        size += 1
    else:
        i = _first_not_below(scores, size, ring[slot])
        while i < size - 1 and sides[i] != side:  # the same score of the other side
            i += 1
    while i > 0 and scores[i - 1] > score:
        scores[i], sides[i] = scores[i - 1], sides[i - 1]
        i -= 1
    while i < size - 1 and scores[i + 1] < score:
        scores[i], sides[i] = scores[i + 1], sides[i + 1]
        i += 1
    scores[i], sides[i], ring[slot] = score, side, score
    recent.counts[o, side] += 1.0
    recent.times[o, side] = t
    _part(recent, o, size)


@inner
def _first_not_below(scores, size, score):
    """Return the index of the first of the sorted scores that is not below this one."""
    low, high = 0, size - 1
    while low < high:
        middle = (low + high) // 2
        if scores[middle] < score:
            low = middle + 1
        else:
            high = middle
    return low


@inner
def _part(recent, o, size):
    """Set the threshold to the lowest value with the largest balanced accuracy on the recent scores."""
    scores, sides = recent.scores[o], recent.sides[o]
    negatives, positives = min(RECENT, recent.counts[o, 0]), min(RECENT, recent.counts[o, 1])
    if negatives == 0.0 or positives == 0.0:
        return
    best = value = 0.0  # times twice the size of both sides: integers, so that ties are exact
    recent.threshold[o] = scores[0]
    for i in range(size - 1):
        value += positives - (positives + negatives) * sides[i]  # either positives or -negatives, without a branch
        if value > best and scores[i + 1] > scores[i]:
            best = value
            recent.threshold[o] = 0.5 * (scores[i] + scores[i + 1])


@inline
def keep_scores(recent, model, features, j, y, output):
    """Store those scores of event j, before it is learned, that are due."""
    t = model.clock[EVENTS]
    outputs = features.g.size
    due = False
    for o in range(outputs):
        due = due or is_due(recent, o, side_of(y, o, outputs), t)
    if due:
        feature_outputs(model, features, j, output, features.g)
        for o in range(outputs):
            side = side_of(y, o, outputs)
            if is_due(recent, o, side, t):
                keep_score(recent, o, side, features.g[o], t)


@inline
def note(params, state, row):
    """Record the thresholds with the scores of each event."""
    outputs = state.recent.threshold.size
    for o in range(outputs):
        row[outputs + o] = state.recent.threshold[o]
