"""Where numbers end: rows, targets, weights and scores beyond these cannot be learned from without overflow.

The square of one step that begins within these bounds is finite, so that no state ever holds NaN or infinity.
"""

from __future__ import annotations

import math

import numpy as np

from .jit import inline, jit

LARGEST = {"float64": 1e150, "float32": 1e15}  # numbers in rows: beyond, squared distances overflow or mean nothing
PRODUCT = {"float64": 1e50, "float32": 1e15}  # kernel values and features that are not bounded by 1
ANGLE = {"float64": 1e12, "float32": 1e5}  # beyond, cosines are rounding errors
TARGET = {"float64": 1e50, "float32": 1e15}
WEIGHT = 1e10
SCORE = 1e60
COEFFICIENT = 1e130  # more than learning can make; squares of such are finite
NOTHING = 1e-290  # coefficients that have faded below it are 0: soon they would be subnormal, and slow down all arithmetic


@inline
def faded(coefficient):
    """The coefficient, or 0 where nothing is left of it."""
    return coefficient if abs(coefficient) > NOTHING else 0.0


class Diverged(ValueError):
    """The scores of a model grow without bound."""

    def __init__(self) -> None:
        super().__init__(
            f"the scores have grown beyond {SCORE:g}, where nothing can be learned: take smaller steps "
            "(a smaller eta or C, a larger lam), or scale the columns and the targets"
        )


@inline
def in_bounds(f):
    """Whether these scores can be learned from."""
    outside = 0
    for o in range(f.size):
        if not abs(f[o]) <= SCORE:  # NaN is not
            outside += 1
    return outside == 0


@jit
def within(table, largest):
    """Whether no number of a two-dimensional array is NaN, or larger than this."""
    outside = 0
    for i in range(table.shape[0]):
        for c in range(table.shape[1]):
            if not abs(table[i, c]) <= largest:
                outside += 1
    return outside == 0


def largest_of_products(d: int, name: str, gamma: float = 1.0, degree: int = 1, coef0: float = 0.0) -> float:
    """The largest number in rows of d columns that keeps (gamma |x|^2 + coef0)^degree within bounds."""
    base = max(0.0, PRODUCT[name] ** (1.0 / degree) - abs(coef0))
    return min(LARGEST[name], math.sqrt(base) / math.sqrt(gamma * d))


def largest_of_angles(frequencies: np.ndarray, name: str) -> float:
    """The largest number in rows whose distances, times frequencies, are angles that mean something."""
    steepest = np.abs(frequencies).sum(axis=1, dtype=np.float64).max(initial=0.0)
    return min(LARGEST[name], 0.5 * ANGLE[name] / steepest) if steepest > 0.0 else LARGEST[name]
