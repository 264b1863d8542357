"""Data-dependent parameters, resolved once from the rows of the first call."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
from scipy import sparse

from ..components.coverage import smallest_delta

FEW = 50  # minimum number of rows to estimate a variance from
TRIAL = 1000  # rows on which cells are counted
CELLS = 100  # maximum number of cells of the trial rows
LOCAL = 16.0  # chosen on normal and abnormal rows of Gaussians, tumours and digits
UNEVEN = 100.0  # ratio of the columns' ranges above which distances are dominated by few columns


def scale_gamma(X, options: dict[str, Any]) -> float:
    """Return 1 / (columns * variance), as in scikit-learn's SVC; 1 / columns when there are few rows."""
    if X.shape[0] < FEW:
        return 1.0 / X.shape[1]
    if sparse.issparse(X):
        variance = X.multiply(X).mean() - X.mean() ** 2
    else:
        variance = np.var(X, dtype=np.float64)
    return 1.0 / (X.shape[1] * variance) if variance > 0.0 else 1.0


def local_gamma(X, options: dict[str, Any]) -> float:
    """Return ``scale_gamma``, or 16 times that if it is to be "local": near events count, as in a density."""
    return (LOCAL if options["gamma"] == "local" else 1.0) * scale_gamma(X, options)


def auto_delta(X, options: dict[str, Any]) -> float:
    """Return the smallest diameter at which the first 1,000 rows open at most 100 cells, or half as many as there are rows."""
    rows = _dense(X[:TRIAL])
    if len(rows) < FEW:
        return math.sqrt(2.0 / options["gamma"])
    return smallest_delta(rows, min(CELLS, len(rows) // 2))


def _dense(X) -> np.ndarray:
    return np.ascontiguousarray(X.toarray() if sparse.issparse(X) else X, dtype=np.float64)


def warn_if_uneven(X) -> None:
    """Warn if the range of one column is a hundred times that of another."""
    if X.shape[0] < FEW:
        return
    X = X[:TRIAL]
    highest, lowest = X.max(axis=0), X.min(axis=0)
    if sparse.issparse(X):
        highest, lowest = highest.toarray(), lowest.toarray()
    ranges = np.ravel(highest - lowest)
    ranges = ranges[ranges > 0.0]
    if len(ranges) > 1 and ranges.max() > UNEVEN * ranges.min():
        warnings.warn(
            f"the columns' ranges differ by a factor of {ranges.max() / ranges.min():.0f}: scale them "
            "(sklearn.preprocessing.StandardScaler), or the widest ones dominate the kernel",
            stacklevel=5,
        )
