"""Data-dependent parameters, resolved once from the rows of the first call."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import sparse

from ..core.limits import GAMMA
from ..warned import warn

FEW = 50  # minimum number of rows to estimate from alone
PRIOR = 2.0  # numbers of variance 1 that count with fewer rows
USUAL = 0.5  # gamma delta^2 with fewer rows; between 0.1 and 2 on 21 of 25 streams
TRIAL = 1000  # rows on which cells are counted
CELLS = 400  # maximum number of cells of the trial rows
ROUNDING = 1e-13  # of norms and products: rows that are nearer are equal
LOCAL, SMOOTH = 32.0, 0.5  # chosen on normal and abnormal rows of Gaussians, tumours and digits; on benchmarks/peers.py
UNEVEN = 100.0  # ratio of the columns' ranges above which distances are dominated by few columns


def scale_gamma(X, options: dict[str, Any]) -> float:
    """Return 1 / (columns * variance), as in scikit-learn's SVC.

    A stream of single events has only its first one: the variance of few rows counts the more, the more numbers they have,
    against the 1 of standardised columns.
    """
    if sparse.issparse(X):
        variance = X.multiply(X).mean() - X.mean() ** 2
    else:
        variance = np.var(X, dtype=np.float64)
    if X.shape[0] < FEW:
        numbers = X.shape[0] * X.shape[1] if variance > 0.0 else 0
        variance = (numbers * variance + PRIOR) / (numbers + PRIOR)
    if X.shape[1] * variance < 1.0 / GAMMA and X.max() > X.min():
        warn("the columns vary so little that squared distances are lost in rounding: scale them (StandardScaler)")
        return GAMMA
    return 1.0 / (X.shape[1] * variance) if variance > 0.0 else 1.0


def local_gamma(X, options: dict[str, Any]) -> float:
    """Return ``scale_gamma``, or 32 times that if it is to be "local": near events count, as in a density."""
    return min(GAMMA, (LOCAL if options["gamma"] == "local" else 1.0) * scale_gamma(X, options))


def smooth_gamma(X, options: dict[str, Any]) -> float:
    """Return ``scale_gamma``, or half of that if it is to be "smooth": fewer random features are enough."""
    return (SMOOTH if options["gamma"] == "smooth" else 1.0) * scale_gamma(X, options)


def feature_gamma(X, options: dict[str, Any]) -> float:
    """Return ``scale_gamma``, or 1 if the features are the columns, so that models of other rows can be merged."""
    return 1.0 if options["features"] == "linear" else scale_gamma(X, options)


def auto_delta(X, options: dict[str, Any]) -> float:
    """Return the smallest diameter at which the first 1,000 rows open at most 400 cells, or half as many as there are rows.

    Of few rows, it is the diameter that this gives on most data sets, relative to the width of the kernel.
    """
    rows = X[:TRIAL].astype(np.float64)
    if rows.shape[0] < FEW:
        return math.sqrt(USUAL / options["gamma"])
    return smallest_delta(squared_distances(rows), min(CELLS, rows.shape[0] // 2))


def auto_theta(X, options: dict[str, Any]) -> float:
    """Return half the diameter of ``auto_delta``; only used by the coverage oracle."""
    return auto_delta(X, options) / 2.0 if options["oracle"] == "coverage" else 0.0


def squared_distances(rows) -> np.ndarray:
    """Return the squared distances between all rows, without converting sparse rows to dense rows."""
    if sparse.issparse(rows):
        products = (rows @ rows.T).toarray()
    else:
        rows = rows - rows.mean(axis=0)  # products lose digits far from the origin
        products = rows @ rows.T
    norms = products.diagonal()
    sums = norms[:, np.newaxis] + norms
    products *= -2.0  # in place: new arrays of this size take longer than the numbers in them
    squares = np.add(products, sums, out=products)
    sums *= ROUNDING
    squares[squares < sums] = 0.0
    return squares


def smallest_delta(squares: np.ndarray, most: int) -> float:
    """Return the smallest diameter, to a thousandth, at which rows with these squared distances open at most ``most`` cells."""
    low, high = 0.0, 1.0
    while _cells_opened(squares, high / 2.0, most) > most:
        low, high = high, 2.0 * high
    while high - low > 1e-3 * high and high > 1e-300:
        middle = (low + high) / 2.0
        if _cells_opened(squares, middle / 2.0, most) > most:
            low = middle
        else:
            high = middle
    return high


def _cells_opened(squares: np.ndarray, radius: float, most: int) -> int:
    """Count the spheres of this radius that cover the rows, opened in order; stops above ``most``."""
    covered_by = np.packbits(squares < radius * radius, axis=1, bitorder="little")
    uncovered = (1 << len(squares)) - 1  # a bit per row: numbers of this size take a tenth of the time of arrays
    count = 0
    while count <= most and uncovered:
        first = uncovered & -uncovered
        uncovered &= ~(first | int.from_bytes(covered_by[first.bit_length() - 1].tobytes(), "little"))
        count += 1
    return count


def warn_if_uneven(X) -> None:
    """Warn if the range of one column is a hundred times that of another."""
    if X.shape[0] < FEW:
        return
    X = X[:TRIAL]
    ranges = X.max(axis=0) - X.min(axis=0)
    ranges = ranges.tocsr().data if sparse.issparse(X) else ranges
    ranges = ranges[ranges > 0.0]
    if len(ranges) > 1 and ranges.max() > UNEVEN * ranges.min():
        warn(
            f"the columns' ranges differ by a factor of {ranges.max() / ranges.min():.0f}: scale them "
            "(sklearn.preprocessing.StandardScaler), or the widest ones dominate the kernel",
        )
