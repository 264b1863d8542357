"""Limits of rows, targets, weights and scores, beyond which learning would overflow.

The square of one step that begins within these bounds is finite, so that no state ever contains NaN or infinity.
"""

from __future__ import annotations

import math

import numpy as np

from ..compiler import COMPILED, inline, jit
from .rows import read_only

LARGEST = {"float64": 1e150, "float32": 1e15}  # numbers in rows: beyond, squared distances overflow or are meaningless
PRODUCT = {"float64": 1e50, "float32": 1e15}  # kernel values and features that are not bounded by 1
ANGLE = {"float64": 1e12, "float32": 1e5}  # beyond, cosines are rounding errors
TARGET = {"float64": 1e50, "float32": 1e15}
WEIGHT = 1e10
SCORE = 1e60
GAMMA = 1e300  # kernel coefficients: beyond, all events are as far from each other
COEFFICIENT = 1e130  # more than learning can produce; its square is finite
FEW = 2**15  # numbers that NumPy checks in less time than it takes to load compiled code
NOTHING = 1e-290  # smaller coefficients become 0: they would soon be subnormal and slow down all arithmetic


@inline
def faded(coefficient):
    """Return the coefficient, or 0 if it is negligible."""
    return coefficient if abs(coefficient) > NOTHING else 0.0


class Diverged(ValueError):
    """Raised if the scores of a model grow without bound."""

    def __init__(self) -> None:
        super().__init__(
            f"the scores have grown beyond {SCORE:g}, where learning would overflow: use smaller steps "
            "(a smaller eta or C, a larger lam), or scale the columns and the targets"
        )


@inline
def all_within(numbers, largest):
    """Return whether no number of a row is NaN or larger than this."""
    outside = 0
    for i in range(numbers.size):
        if not abs(numbers[i]) <= largest:
            outside += 1
    return outside == 0


@inline
def in_bounds(f):
    """Return whether the scores are within the limit."""
    return all_within(f, SCORE)


def within(array: np.ndarray, largest: float) -> bool:
    """Return whether no number of an array is NaN or larger than this."""
    return in_range(array, -largest, largest)


def in_range(array: np.ndarray, lowest: float, highest: float) -> bool:
    """Return whether all numbers of an array are in this range, which NaN is not."""
    if COMPILED and array.size > FEW and array.dtype.kind == "f":
        return row_within(read_only(array.reshape(1, -1)), lowest, highest)
    return not array.size or bool(float(array.min()) >= lowest and float(array.max()) <= highest)


@jit
def row_within(table, lowest, highest):
    """Return whether all numbers are in this range; unlike NumPy, it needs no time to begin with a small table."""
    outside = 0
    for i in range(table.shape[0]):
        for c in range(table.shape[1]):
            if not lowest <= table[i, c] <= highest:
                outside += 1
    return outside == 0


def largest_of_products(d: int, name: str, gamma: float = 1.0, degree: int = 1, coef0: float = 0.0) -> float:
    """Return the largest number in rows of d columns that keeps (gamma |x|^2 + coef0)^degree within bounds."""
    base = max(0.0, PRODUCT[name] ** (1.0 / degree) - abs(coef0))
    return min(LARGEST[name], math.sqrt(base) / math.sqrt(gamma * d))


def largest_of_angles(frequencies: np.ndarray, name: str) -> float:
    """Return the largest number in rows for which distances times frequencies are accurate angles."""
    steepest = np.abs(frequencies).sum(axis=1, dtype=np.float64).max(initial=0.0)
    return min(LARGEST[name], 0.5 * ANGLE[name] / steepest) if steepest > 0.0 else LARGEST[name]
