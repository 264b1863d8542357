"""Votes that follow who was right lately: a weighted majority with a share.

A vote is multiplied by exp(-RATE * loss), then all get a share of the whole, so that one that was wrong for long comes back
soon once it is right (M. Herbster and M. K. Warmuth, Tracking the Best Expert, 1998).
"""

from __future__ import annotations

import numpy as np

from .jit import inline

RATE = 0.1  # the weight of a mistake
SHARE = 0.001
TIE = 1e-10  # scores that are equal up to this are equal


@inline
def update_votes(votes, losses, weight):
    """Multiply each vote by exp(-RATE * weight * loss), and give each its share; they sum to 1."""
    equal = 1.0 / votes.size
    total = 0.0
    for m in range(votes.size):
        votes[m] *= np.exp(-RATE * weight * losses[m])
        total += votes[m]
    for m in range(votes.size):
        votes[m] = (1.0 - SHARE) * (votes[m] / total if total > 0.0 else equal) + SHARE * equal
