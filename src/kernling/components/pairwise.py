"""Pairs of events with different labels: their sides, and steps on the loss of a pair.

A learner of pairs has one binary problem per output: the two classes, or each class against the rest.  The negative side has
index 0 and the positive one index 1.
"""

from __future__ import annotations

import numpy as np

from ..compiler import inline
from ..core.losses import HINGE, L2, LOGISTIC, Loss, margin_slope
from ..core.state import Widening

KINDS = {"squared": L2, "hinge": HINGE, "logistic": LOGISTIC}  # squared: (1 - m)^2 / 2, which is l2 of the score m


def pair_loss(name: str) -> Loss:
    """Return a loss of the margin f(positive) - f(negative)."""
    return Loss(KINDS[name], 0.0, 0.0)


@inline
def side_of(y, o, outputs):
    """Return the side of output o that an event with target y belongs to."""
    return int(y > 0.0) if outputs == 1 else int(int(y) == o)


@inline
def pair_slope(loss, m):
    """Return the derivative of a pairwise loss at the margin m = f(positive) - f(negative)."""
    return m - 1.0 if loss.kind == L2 else margin_slope(loss, m)


@inline
def pair_product(w, z, partner):
    """Return <w, z - partner>."""
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
    """Project w on the ball of this radius."""
    norm = 0.0
    for i in range(w.size):
        norm += w[i] * w[i]
    if norm > radius * radius:
        shrink = radius / np.sqrt(norm)
        for i in range(w.size):
            w[i] *= shrink


def inherited(change: Widening) -> list[tuple[int, int] | None]:
    """Return for each output of ``change`` its old output and the order of its sides; None for a new class."""
    each = zip(change.old.tolist(), change.factors.tolist(), strict=True)
    return [None if old < 0 else (old, 1 if factor > 0.0 else -1) for old, factor in each]


def quota(most: int, own: int, other: int, share: float) -> int:
    """Return how many of at most ``most`` items to take from one of two merged models, given their sizes and its share."""
    most = min(most, own + other)
    return min(max(round(most * share), most - other), own)
