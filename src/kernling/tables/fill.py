"""Imputation of missing values with running means."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..compiler import jit_exact
from ..components.scaling import ENOUGH
from ..core.limits import LARGEST

FAR = 10.0  # mean deviations; values further away are clipped before they update the mean


@jit_exact
def fill_rows(X, count, mean, deviation):
    """Replace NaN by the running mean of the values before it, row by row; return the number of rows with NaN."""
    rows = 0
    for i in range(X.shape[0]):
        filled = 0
        for j in range(X.shape[1]):
            if X[i, j] != X[i, j]:  # NaN
                X[i, j] = mean[j]
                filled = 1
            else:
                difference = X[i, j] - mean[j]
                if count[j] >= ENOUGH and deviation[j] > 0.0:
                    difference = min(max(difference, -FAR * deviation[j]), FAR * deviation[j])
                count[j] += 1.0
                mean[j] += difference / count[j]
                deviation[j] += (abs(difference) - deviation[j]) / count[j] if count[j] > 1.0 else 0.0
        rows += filled
    return rows


class Fill:
    """Running means of the columns, robust to outliers, and the number of imputed rows."""

    _fields = ("count", "mean", "deviation")

    def __init__(self, d: int):
        self.count, self.mean, self.deviation, self.rows = np.zeros(d), np.zeros(d), np.zeros(d), 0

    def begin(self, X: np.ndarray) -> None:
        """Use the first value of each column as its mean until a row with a value is learned."""
        there = ~np.isnan(X)
        first = X[there.argmax(axis=0), np.arange(X.shape[1])]
        self.mean = np.where(there.any(axis=0), first, 0.0)

    def learn(self, X: np.ndarray) -> Fill:
        """Impute the rows in place; return the updated state, without changing this one."""
        later = self.copied()
        later.rows = self.rows + fill_rows(X, later.count, later.mean, later.deviation)
        return later

    def copied(self) -> Fill:
        """Return a copy."""
        other = object.__new__(Fill)
        other.count, other.mean, other.deviation, other.rows = (
            self.count.copy(),
            self.mean.copy(),
            self.deviation.copy(),
            self.rows,
        )
        return other

    def filled(self, X: np.ndarray) -> np.ndarray:
        """Return the rows imputed with the current means."""
        return np.where(np.isnan(X), self.mean, X)

    def to_state(self) -> dict[str, Any]:
        """Return the state as JSON-compatible data."""
        return {name: getattr(self, name).tolist() for name in self._fields} | {"rows": self.rows}

    @classmethod
    def from_state(cls, state: dict[str, Any], d: int) -> Fill:
        """Restore the state from the result of ``to_state``."""
        fill = cls(d)
        fill.count, fill.mean, fill.deviation = held = [np.array(state[name], dtype=np.float64) for name in cls._fields]
        fill.rows = state["rows"]
        right = all(array.shape == (d,) for array in held) and type(fill.rows) is int and fill.rows >= 0
        if not right or not all(
            (np.abs(array) <= LARGEST["float64"]).all() and (name == "mean" or (array >= 0.0).all())
            for name, array in zip(cls._fields, held, strict=True)
        ):
            raise ValueError(f"these are not valid means of {d} columns")
        return fill
