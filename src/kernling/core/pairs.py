"""Pairs of events with different labels: what is kept of each class, and a threshold on recent scores.

A learner of pairs has one binary problem per output: the two classes, or each class against the rest.  The negative side has
index 0 and the positive one index 1.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .expansion import EVENTS
from .fourier import feature_outputs
from .jit import inline, inner
from .losses import HINGE, L2, LOGISTIC, margin_slope

LOSSES = {"squared": L2, "hinge": HINGE, "logistic": LOGISTIC}  # squared: (1 - m)^2 / 2, which is l2 of the score m
RECENT = 128  # scores of each side behind a threshold
PERIOD = 16  # events between two looks for the threshold, once both sides may be full


@inline
def side_of(y, o, outputs):
    """On which side of output o an event with target y is."""
    return int(y > 0.0) if outputs == 1 else int(int(y) == o)


@inline
def pair_slope(loss, m):
    """Derivative of a pairwise loss at the margin m = f(positive) - f(negative)."""
    return m - 1.0 if loss.kind == L2 else margin_slope(loss, m)


class Sides(NamedTuple):
    """Of each side of each output: how many events came, the mean of their features and one of them."""

    counts: np.ndarray  # (outputs, 2)
    means: np.ndarray  # (outputs, 2, features)
    examples: np.ndarray  # (outputs, 2, features)

    def widened(self, change: np.ndarray) -> Sides:
        """For outputs ``change @ outputs``; on the side of all others of a new class is everything so far."""
        return Sides(*(np.stack(parts) for parts in zip(*(self._behind(row) for row in change), strict=True)))

    def _behind(self, row: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        o = int(np.argmax(np.abs(row)))
        if row.any():
            order = slice(None) if row[o] > 0.0 else slice(None, None, -1)
            return self.counts[o, order], self.means[o, order], self.examples[o, order]
        counts, means, examples = np.zeros(2), np.zeros_like(self.means[o]), np.zeros_like(self.examples[o])
        counts[0] = self.counts[o].sum()
        means[0] = self.counts[o] @ self.means[o] / max(1.0, counts[0])
        examples[0] = self.examples[o, np.argmax(self.counts[o])]
        return counts, means, examples

    def check(self, size: int, d: int, outputs: int) -> None:
        """Raise unless all shapes agree."""
        if self.counts.shape != (outputs, 2) or not self.means.shape == self.examples.shape == (outputs, 2, self.means.shape[2]):
            raise ValueError("the arrays of the sides do not fit each other")


def new_sides(model: Any) -> Sides:
    """No event has come to either side of any output of a linear model."""
    _, outputs, width = model.coef.shape
    return Sides(np.zeros((outputs, 2)), np.zeros((outputs, 2, width)), np.zeros((outputs, 2, width)))


@inline
def join_mean(sides, z, o, side):
    """The event with features z joins the mean of its side."""
    sides.counts[o, side] += 1.0
    mean, share = sides.means[o, side], 1.0 / sides.counts[o, side]
    for i in range(mean.size):
        mean[i] += share * (np.float64(z[i]) - mean[i])


@inline
def keep_example(sides, z, o, side):
    """The event with features z becomes the example of its side."""
    example = sides.examples[o, side]
    for i in range(example.size):
        example[i] = z[i]


class Recent(NamedTuple):
    """The last scores of each side, and the threshold that parts them best."""

    ring: np.ndarray  # (outputs, 2, RECENT) in order of arrival, around
    counts: np.ndarray  # (outputs, 2)
    scores: np.ndarray  # (outputs, 2 * RECENT) the same of both sides, sorted
    sides: np.ndarray  # (outputs, 2 * RECENT) that the sorted scores belong to
    threshold: np.ndarray  # (outputs,)

    def widened(self, change: np.ndarray) -> Recent:
        """For outputs ``change @ outputs``; a new class has no scores yet."""
        wider = new_recent(len(change))
        for p, o in zip(*np.nonzero(change), strict=True):
            factor = change[p, o]
            order = 1 if factor > 0.0 else -1
            size = int(np.minimum(self.counts[o], RECENT).sum())
            wider.ring[p] = factor * self.ring[o, ::order]
            wider.counts[p] = self.counts[o, ::order]
            wider.scores[p, :size] = factor * self.scores[o, :size][::order]
            wider.sides[p, :size] = self.sides[o, :size][::order] if factor > 0.0 else 1 - self.sides[o, :size][::order]
            wider.threshold[p] = factor * self.threshold[o]
        return wider

    def check(self, size: int, d: int, outputs: int) -> None:
        """Raise unless all shapes agree."""
        if [array.shape for array in self] != [array.shape for array in new_recent(outputs)]:
            raise ValueError("the arrays of recent scores do not fit the outputs")


def new_recent(outputs: int) -> Recent:
    """No scores, and 0 for a threshold."""
    return Recent(
        ring=np.zeros((outputs, 2, RECENT)),
        counts=np.zeros((outputs, 2)),
        scores=np.zeros((outputs, 2 * RECENT)),
        sides=np.zeros((outputs, 2 * RECENT), np.int64),
        threshold=np.zeros(outputs),
    )


@inner
def keep_score(recent, o, side, score, t):
    """Score the event t of this side had joins the recent ones, in place of the oldest if there are enough."""
    ring, scores, sides = recent.ring[o, side], recent.scores[o], recent.sides[o]
    size = int(min(RECENT, recent.counts[o, 0]) + min(RECENT, recent.counts[o, 1]))
    count = int(recent.counts[o, side])
    slot = count % RECENT
    i = 0
    if count < RECENT:
        i = size
        size += 1
    else:
        while i < size - 1 and not (scores[i] == ring[slot] and sides[i] == side):
            i += 1
    while i > 0 and scores[i - 1] > score:
        scores[i], sides[i] = scores[i - 1], sides[i - 1]
        i -= 1
    while i < size - 1 and scores[i + 1] < score:
        scores[i], sides[i] = scores[i + 1], sides[i + 1]
        i += 1
    scores[i], sides[i], ring[slot] = score, side, score
    recent.counts[o, side] += 1.0
    if t <= 2.0 * RECENT or t % PERIOD == 0.0:
        _part(recent, o, size)


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
        value += positives if sides[i] == 0 else -negatives
        if value > best and scores[i + 1] > scores[i]:
            best = value
            recent.threshold[o] = 0.5 * (scores[i] + scores[i + 1])


@inline
def keep_scores(recent, model, features, j, y, averaged):
    """Keep the scores that the output gives event j, which is about to be learned."""
    feature_outputs(model, features, j, averaged, features.g)
    for o in range(features.g.size):
        keep_score(recent, o, side_of(y, o, features.g.size), features.g[o], model.clock[EVENTS])


@inline
def note(params, state, row):
    """The thresholds, beside the scores of each event that is recorded."""
    outputs = state.recent.threshold.size
    for o in range(outputs):
        row[outputs + o] = state.recent.threshold[o]
