"""Parameters that come from the data: resolved once, from the rows of the first call."""

from __future__ import annotations

import math
import warnings
from typing import NamedTuple

import numpy as np
from scipy import sparse

from ..core.coverage import smallest_delta

FEW = 50  # rows below which data say too little
TRIAL = 1000  # rows on which cells are counted
CELLS = 100  # of the trial rows, at most
UNEVEN = 100.0  # ratio of the columns' ranges above which a distance means little


def scale_gamma(X) -> float:
    """1 / (columns * variance), as in scikit-learn's SVC; 1 / columns when there are few rows."""
    if X.shape[0] < FEW:
        return 1.0 / X.shape[1]
    if sparse.issparse(X):
        variance = X.multiply(X).mean() - X.mean() ** 2
    else:
        variance = np.var(X, dtype=np.float64)
    return 1.0 / (X.shape[1] * variance) if variance > 0.0 else 1.0


def auto_delta(X, gamma: float) -> float:
    """The smallest diameter at which the first 1,000 rows open at most 100 cells (of fewer rows: half as many cells)."""
    rows = _dense(X[:TRIAL])
    if len(rows) < FEW:
        return math.sqrt(2.0 / gamma)
    return smallest_delta(rows, min(CELLS, len(rows) // 2))


class SuggestedDelta(NamedTuple):
    """A diameter and the range to vary it in."""

    delta: float
    low: float
    high: float


def suggest_delta(X, random_state: int = 0) -> SuggestedDelta:
    """The AVM paper's heuristic for the diameter of cells: twice the mean pairwise distance, give or take twice its spread.

    At most 1,000 rows, chosen at random, are compared.  It tends to give cells that are too large (21.9 % mistakes on a9a,
    where ``delta="auto"`` counts cells instead).

    Examples
    --------
    >>> import numpy as np, kernling
    >>> X = np.random.default_rng(0).normal(size=(500, 3))
    >>> round(kernling.suggest_delta(X).delta, 2)
    4.46
    """
    X = sparse.csr_array(X) if sparse.issparse(X) else np.asarray(X, dtype=np.float64)
    if X.ndim != 2 or X.shape[0] < 2:
        raise ValueError(f"suggest_delta needs a table of at least 2 rows, not one of shape {X.shape}")
    if X.shape[0] > TRIAL:
        X = X[np.sort(np.random.default_rng(random_state).choice(X.shape[0], TRIAL, replace=False))]
    from scipy.spatial.distance import pdist

    distances = pdist(_dense(X))
    mean, spread = float(distances.mean()), float(distances.std())
    return SuggestedDelta(2.0 * mean, max(0.0, 2.0 * (mean - spread)), 2.0 * (mean + spread))


def _dense(X) -> np.ndarray:
    return np.ascontiguousarray(X.toarray() if sparse.issparse(X) else X, dtype=np.float64)


def warn_if_uneven(X) -> None:
    """Distances mean little when one column's range is a hundred times another's."""
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
            "(sklearn.preprocessing.StandardScaler), or the kernel sees only the widest ones",
            stacklevel=5,
        )
