"""Combination of several experts' predictions: least squares with forgetting, shrunk towards their mean."""

from __future__ import annotations

import numpy as np

from . import least_squares
from .least_squares import LeastSquares, Ridge, new_least_squares, scores_of

RIDGE = Ridge(10.0, 0.998, 1000)
REACH = 5.0  # deviations of the target, beyond which nothing is predicted


def new_combination(experts: int) -> LeastSquares:
    """Return combination weights for this many experts, all equal at first."""
    return new_least_squares(RIDGE, experts, 0, 1)


def combined(combination: LeastSquares, predictions: np.ndarray) -> np.ndarray:
    """Return one prediction for each event, (1, events), from those of the experts, (experts, events)."""
    Z = np.clip(predictions, -REACH, REACH)
    return np.clip(Z.mean(axis=0) + scores_of(combination, Z), -REACH, REACH)


def learn_combined(combination: LeastSquares, predictions: np.ndarray, targets: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Learn events; return what ``combined`` would have returned before learning each."""
    Z = np.clip(predictions, -REACH, REACH)
    mean = Z.mean(axis=0)
    corrections = least_squares.learn(combination, RIDGE, Z, (targets - mean)[np.newaxis], weights)
    return np.clip(mean + corrections, -REACH, REACH)


def expert_weights(combination: LeastSquares) -> np.ndarray:
    """Return the weight of each expert's prediction."""
    n = int(combination.size[least_squares.FIXED])
    found = np.full(n, 1.0 / n)
    found[: combination.count] += combination.weights[0, : combination.count]
    return found
