"""The data of a cell of a paper's table."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from ..evaluate.rows import Row
from ..io import synthetic
from .datasets import dataset


class PaperData:
    """Cache of the last data set, since consecutive cells use the same one."""

    def __init__(self) -> None:
        self._about: Row | None = None
        self._loaded: Any = None

    def of(self, about: Row) -> tuple[Any, Any]:
        """Return training rows, and test rows if the data set has a separate part."""
        if about != self._about:
            self._loaded = _load(about)
            self._about = about
        return self._loaded


def _load(about: Row) -> tuple[Any, Any]:
    if "synthetic" in about:
        X, y = synthetic(about["synthetic"], about["rows"] + about.get("test", 0), about.get("seed", 0)).load()
        n = about["rows"]
        return (X[:n], y[:n]), (X[n:], y[n:]) if about.get("test") else None
    named = dataset(about["dataset"], about.get("positive"))
    rows = named.load(about.get("part", "train"))
    test = named.load(about["test"]) if "test" in about else None
    if about.get("norm") == "mean":
        long = _mean_norm(rows[0])
        rows = rows[0] / long, rows[1]
        test = test and (test[0] / long, test[1])
    return _thinned(*rows, about["rare"]) if "rare" in about else rows, test


def _thinned(X: Any, y: np.ndarray, share: float) -> tuple[Any, np.ndarray]:
    """Return the rows with the larger label subsampled to this share."""
    rng = np.random.default_rng(0)
    positive, negative = np.flatnonzero(y == y.max()), np.flatnonzero(y != y.max())
    few = rng.choice(positive, round(share / (1.0 - share) * len(negative)), replace=False)
    kept = rng.permutation(np.concatenate([negative, few]))
    return X[kept], y[kept]


def _mean_norm(X: Any) -> float:
    squares = np.asarray(X.multiply(X).sum(axis=1)).ravel() if sparse.issparse(X) else (X**2).sum(axis=1)
    return float(np.sqrt(squares).mean())
