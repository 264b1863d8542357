"""Votes that follow who was right lately: a weighted majority with a share.

A vote is multiplied by exp(-rate * loss), then all get a share of the whole, so that one that was wrong for long comes back
soon once it is right (M. Herbster and M. K. Warmuth, Tracking the Best Expert, 1998).
"""

from __future__ import annotations

import numpy as np

from ..compiler import inline_exact

TIE = 1e-10  # scores that are equal up to this are equal


@inline_exact
def update_votes(votes, losses, rate, share):
    """Multiply each vote by exp(-rate * loss), and give each its share; they sum to 1."""
    equal = 1.0 / votes.size
    total = 0.0
    for m in range(votes.size):
        votes[m] *= np.exp(-rate * losses[m])
        total += votes[m]
    for m in range(votes.size):
        votes[m] = (1.0 - share) * (votes[m] / total if total > 0.0 else equal) + share * equal
