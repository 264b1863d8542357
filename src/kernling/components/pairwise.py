"""Pairs of events with different labels: what is kept of each class, and a threshold on recent scores.

A learner of pairs has one binary problem per output: the two classes, or each class against the rest.  The negative side has
index 0 and the positive one index 1.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..core.expansion import EVENTS, check_room
from ..core.fourier import feature_outputs
from ..core.jit import inline, inner
from ..core.losses import HINGE, L2, LOGISTIC, margin_slope
from ..core.state import added

LOSSES = {"squared": L2, "hinge": HINGE, "logistic": LOGISTIC}  # squared: (1 - m)^2 / 2, which is l2 of the score m
RECENT = 128  # scores of each side behind a threshold
PERIOD = 32  # events between two scores that one side keeps, on a long stream


@inline
def side_of(y, o, outputs):
    """On which side of output o an event with target y is."""
    return int(y > 0.0) if outputs == 1 else int(int(y) == o)


@inline
def pair_slope(loss, m):
    """Derivative of a pairwise loss at the margin m = f(positive) - f(negative)."""
    return m - 1.0 if loss.kind == L2 else margin_slope(loss, m)


def inherited(change: np.ndarray) -> list[tuple[int, int] | None]:
    """For each of the outputs ``change @ outputs`` the old one behind it and the order of its sides; None for a new class."""
    return [(o := int(np.argmax(np.abs(row))), 1 if row[o] > 0.0 else -1) if row.any() else None for row in change]


def quota(most: int, own: int, other: int, share: float) -> int:
    """How many of ``most`` kept things one of two merged models gives, which have so many; its share is what they would be."""
    most = min(most, own + other)
    return min(max(round(most * share), most - other), own)


def pooled_means(own: Any, other: Any, start: Any) -> tuple[np.ndarray, np.ndarray]:
    """Counts, and means over the last axis, of two parts that have ``counts`` and ``means``."""
    counts = added(own, other, start, lambda part: part.counts)
    sums = added(own, other, start, lambda part: part.counts[..., np.newaxis] * part.means)
    return counts, sums / np.maximum(counts, 1.0)[..., np.newaxis]


def pooled_examples(own: Any, other: Any) -> np.ndarray:
    """Of two parts that have ``counts`` and ``examples``, the example of the one that has met more."""
    return np.where((other.counts > own.counts)[..., np.newaxis], other.examples, own.examples)


class Sides(NamedTuple):
    """Of each side of each output: how many events came, the mean of their features and one of them."""

    counts: np.ndarray  # (outputs, 2)
    means: np.ndarray  # (outputs, 2, features), or without features where a learner has no use for them
    examples: np.ndarray  # the same

    def widened(self, change: np.ndarray) -> Sides:
        """For outputs ``change @ outputs``; all that came so far is on the side of the others of a new class."""
        outputs = [self._everything() if old is None else self._turned(*old) for old in inherited(change)]
        return Sides(*(np.stack(parts) for parts in zip(*outputs, strict=True)))

    def _turned(self, o: int, order: int) -> tuple[np.ndarray, ...]:
        return self.counts[o, ::order], self.means[o, ::order], self.examples[o, ::order]

    def _everything(self) -> tuple[np.ndarray, ...]:
        counts, means, examples = (np.zeros_like(array[0]) for array in self)
        counts[0] = self.counts[0].sum()
        means[0] = self.counts[0] @ self.means[0] / max(1.0, counts[0])
        examples[0] = self.examples[0, np.argmax(self.counts[0])]
        return counts, means, examples

    def merged(self, other: Sides, start: Sides | None, merging) -> Sides:
        """The counts and means of all events, exactly."""
        return Sides(*pooled_means(self, other, start), pooled_examples(self, other))

    def check(self, size: int, d: int, outputs: int) -> None:
        """Raise unless all shapes agree."""
        if not all(array.shape[:2] == (outputs, 2) for array in self):
            raise ValueError("the arrays of the sides do not fit the outputs")


def new_sides(model: Any, means: bool = True, examples: bool = True) -> Sides:
    """No event has come to either side of any output of a linear model."""
    _, outputs, width = model.coef.shape
    return Sides(np.zeros((outputs, 2)), np.zeros((outputs, 2, width * means)), np.zeros((outputs, 2, width * examples)))


@inline
def join_mean(mean, z, share):
    """An event with features z joins a mean of which it is this share."""
    for i in range(mean.size):
        mean[i] += share * (np.float64(z[i]) - mean[i])


@inline
def keep_example(sides, z, o, side):
    """The event with features z becomes the example of its side."""
    example = sides.examples[o, side]
    for i in range(example.size):
        example[i] = z[i]


@inline
def pair_product(w, z, partner):
    """<w, z - partner>."""
    total = 0.0
    for i in range(w.size):
        total += w[i] * (np.float64(z[i]) - partner[i])
    return total


@inline
def pair_move(w, z, partner, kept, change):
    """w <- kept w + change (z - partner)."""
    for i in range(w.size):
        w[i] = kept * w[i] + change * (np.float64(z[i]) - partner[i])


@inline
def keep_in_ball(w, radius):
    """Project w on the vectors of at most this norm."""
    norm = 0.0
    for i in range(w.size):
        norm += w[i] * w[i]
    if norm > radius * radius:
        shrink = radius / np.sqrt(norm)
        for i in range(w.size):
            w[i] *= shrink


def are_counts(counts: np.ndarray) -> bool:
    """Whether numbers can be counts of events; they tell places in buffers."""
    return bool(((counts >= 0.0) & (counts < 2.0**53) & (counts == np.floor(counts))).all())


class Buffers(NamedTuple):
    """Of each side of each output: how many events came, and the features of a few of them."""

    counts: np.ndarray  # (outputs, 2)
    rows: np.ndarray  # (outputs, 2, size, features)

    def widened(self, change: np.ndarray) -> Buffers:
        """For outputs ``change @ outputs``; the others of a new class are taken evenly from both sides of an old one."""
        counts, rows = np.zeros((len(change), 2)), np.zeros((len(change), *self.rows.shape[1:]))
        filled = [self.rows[0, side, : int(self.counts[0, side])] for side in range(2)]
        everything = np.concatenate(filled)
        size = min(len(everything), self.rows.shape[2])
        for p, old in enumerate(inherited(change)):
            if old is None:
                counts[p, 0] = self.counts[0].sum()
                rows[p, 0, :size] = everything[np.arange(size) * len(everything) // max(1, size)]
            else:
                counts[p], rows[p] = self.counts[old[0], :: old[1]], self.rows[old[0], :: old[1]]
        return Buffers(counts, rows)

    def merged(self, other: Buffers, start: Buffers | None, merging) -> Buffers:
        """As many rows of either as it has met events: of exchangeable rows, the first of one and the last of the other."""
        size = self.rows.shape[2]
        rows = np.zeros_like(self.rows)
        for place in np.ndindex(*self.counts.shape):
            met = self.counts[place], other.counts[place]
            held = [int(min(n, size)) for n in met]
            own = quota(size, *held, met[0] / max(1.0, sum(met)))
            rest = min(size, sum(held)) - own
            rows[place][:own] = self.rows[place][:own]
            rows[place][own : own + rest] = other.rows[place][held[1] - rest : held[1]]
        return Buffers(added(self, other, start, lambda part: part.counts), rows)

    def check(self, size: int, d: int, outputs: int) -> None:
        """Raise unless all shapes agree."""
        if self.counts.shape != (outputs, 2) or self.rows.shape[:2] != (outputs, 2) or not are_counts(self.counts):
            raise ValueError("the arrays of the buffers do not fit the outputs")


def new_buffers(model: Any, size: int) -> Buffers:
    """Empty buffers for the features of a linear model."""
    _, outputs, width = model.coef.shape
    check_room(2 * outputs * size, width, "buffered rows")
    return Buffers(np.zeros((outputs, 2)), np.zeros((outputs, 2, size, width)))


@inline
def buffer_row(buffers, o, side, k, z):
    """The event with features z takes place k."""
    row = buffers.rows[o, side, k]
    for i in range(row.size):
        row[i] = z[i]


@inline
def buffered(buffers, o, side):
    """How many events a buffer holds."""
    return int(min(buffers.counts[o, side], np.float64(buffers.rows.shape[2])))


class Recent(NamedTuple):
    """Some of the last scores of each side, and the threshold that parts them best."""

    ring: np.ndarray  # (outputs, 2, RECENT) in order of arrival, around
    counts: np.ndarray  # (outputs, 2) of scores kept so far
    times: np.ndarray  # (outputs, 2) the event that gave the last of them
    scores: np.ndarray  # (outputs, 2 * RECENT) the same of both sides, sorted
    sides: np.ndarray  # (outputs, 2 * RECENT) that the sorted scores belong to
    threshold: np.ndarray  # (outputs,)

    def widened(self, change: np.ndarray) -> Recent:
        """For outputs ``change @ outputs``; a new class has no scores yet."""
        wider = new_recent(len(change))
        for p, old in enumerate(inherited(change)):
            if old is None:
                continue
            o, order = old
            factor = change[p, o]
            size = int(np.minimum(self.counts[o], RECENT).sum())
            wider.ring[p] = factor * self.ring[o, ::order]
            wider.counts[p], wider.times[p] = self.counts[o, ::order], self.times[o, ::order]
            wider.scores[p, :size] = factor * self.scores[o, :size][::order]
            wider.sides[p, :size] = self.sides[o, :size] if order > 0 else 1 - self.sides[o, :size][::-1]
            wider.threshold[p] = factor * self.threshold[o]
        return wider

    def merged(self, other: Recent, start: Recent | None, merging) -> Recent:
        """The newest scores of both; the threshold is the mean, as the function is, until the next score comes."""
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
        """With times as of a clock that runs so much faster."""
        return self._replace(times=factor * self.times)

    def _in_order(self, o: int, side: int) -> np.ndarray:
        """Scores by arrival, the oldest first."""
        count = int(self.counts[o, side])
        return np.roll(self.ring[o, side], -count % RECENT) if count >= RECENT else self.ring[o, side, :count]

    def check(self, size: int, d: int, outputs: int) -> None:
        """Raise unless all shapes agree."""
        if [array.shape for array in self] != [array.shape for array in new_recent(outputs)] or not are_counts(self.counts):
            raise ValueError("the arrays of recent scores do not fit the outputs")


def new_recent(outputs: int) -> Recent:
    """No scores, and 0 for a threshold."""
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
    """Whether event t of this side should give its score: all do at first, then one now and then."""
    return t - recent.times[o, side] >= min(PERIOD, t / (2.0 * RECENT))


@inner
def keep_score(recent, o, side, score, t):
    """The score of event t, of this side, joins the recent ones, in place of the oldest if there are enough."""
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
    """The place of the first of the sorted scores that is not below this one."""
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
    """Put the threshold where the balanced accuracy on the recent scores is largest, the lowest such place."""
    scores, sides = recent.scores[o], recent.sides[o]
    negatives, positives = min(RECENT, recent.counts[o, 0]), min(RECENT, recent.counts[o, 1])
    if negatives == 0.0 or positives == 0.0:
        return
    best = value = 0.0  # times twice the size of both sides: whole numbers, so that ties are ties
    recent.threshold[o] = scores[0]
    for i in range(size - 1):
        value += positives - (positives + negatives) * sides[i]  # either positives or -negatives, without a branch
        if value > best and scores[i + 1] > scores[i]:
            best = value
            recent.threshold[o] = 0.5 * (scores[i] + scores[i + 1])


@inline
def keep_scores(recent, model, features, j, y, averaged):
    """Keep those scores that are due, of the outputs that event j gets before it is learned."""
    t = model.clock[EVENTS]
    outputs = features.g.size
    due = False
    for o in range(outputs):
        due = due or is_due(recent, o, side_of(y, o, outputs), t)
    if due:
        feature_outputs(model, features, j, averaged, features.g)
        for o in range(outputs):
            side = side_of(y, o, outputs)
            if is_due(recent, o, side, t):
                keep_score(recent, o, side, features.g[o], t)


@inline
def note(params, state, row):
    """The thresholds, beside the scores of each event that is recorded."""
    outputs = state.recent.threshold.size
    for o in range(outputs):
        row[outputs + o] = state.recent.threshold[o]
