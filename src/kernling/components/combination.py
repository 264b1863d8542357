"""Combination of several experts' predictions: least squares with forgetting, shrunk towards their mean."""

from __future__ import annotations

import numpy as np

from ..compiler import jit_exact
from . import least_squares
from .least_squares import LeastSquares, Ridge, new_least_squares

RIDGE = Ridge(10.0, 0.998, 1024)
REACH = 5.0  # deviations of the target, beyond which nothing is predicted


def new_combination(experts: int) -> LeastSquares:
    """Return combination weights for this many experts, all equal at first."""
    return new_least_squares(RIDGE, experts, 0, 1)


@jit_exact
def mean_of(predictions):
    """Clip the predictions of experts, (experts, events), and write their mean into the row behind them."""
    n = predictions.shape[0] - 1
    mean = predictions[n]
    for j in range(mean.size):
        mean[j] = 0.0
    for m in range(n):
        own = predictions[m]
        for j in range(mean.size):
            own[j] = min(max(own[j], -REACH), REACH)
            mean[j] += own[j] / n


def expert_weights(combination: LeastSquares) -> np.ndarray:
    """Return the weight of each expert's prediction."""
    n = int(combination.size[least_squares.FIXED])
    found = np.full(n, 1.0 / n)
    found[: combination.count] += combination.weights[0, : combination.count]
    return found
