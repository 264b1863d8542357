"""What methods note for their certificates (theory/): indices in the array ``stats`` of their states."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from ..merging.rules import Merging

# POLK: batches learned; the current eps; the largest error, error / eps, number of points, K(x, x) and weight of a row
POLK_STATS = 7
STEPS, EPS, LARGEST_ERROR, LARGEST_SHARE, LARGEST_ORDER, LARGEST_SELF, HEAVIEST_ROW = range(POLK_STATS)

# SPA: the sum of the probabilities; the largest squared norm of a gradient; terms projected; weights other than 1 and merges
SPA_STATS = 4
CHANCES, STEEPEST, TERMS_PROJECTED, UNPROVEN = range(SPA_STATS)

# DualSVRG: the largest weight; points that merging has projected on others
DUALSVRG_STATS = 2
HEAVIEST_EVENT, POINTS_PROJECTED = range(DUALSVRG_STATS)


def merged_dualsvrg_stats(merging: Merging, name: str) -> np.ndarray:
    """Return the largest weight of both, and all points that merging has projected."""
    (own_weight, own), (other_weight, other) = getattr(merging.a, name), getattr(merging.b, name)
    return np.array([max(own_weight, other_weight), own + other + merging.projected])
