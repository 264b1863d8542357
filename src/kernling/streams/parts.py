"""Scaling as part of a stream.  The state is plain data, and every row is scaled by what was known when it came.

Row t is scaled with the statistics of rows 1 to t, so the result never depends on how the stream is cut into chunks.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from ..core.jit import jit_exact


@jit_exact
def _standardise(X, count, mean, squares, out):
    """Welford's recurrence (Technometrics, 1962), row by row."""
    for i in range(X.shape[0]):
        count += 1.0
        for j in range(X.shape[1]):
            difference = X[i, j] - mean[j]
            mean[j] += difference / count
            squares[j] += difference * (X[i, j] - mean[j])
            spread = np.sqrt(squares[j] / count)
            out[i, j] = (X[i, j] - mean[j]) / spread if spread > 0.0 else 0.0
    return count


@jit_exact
def _rescale(X, low, high, out):
    for i in range(X.shape[0]):
        for j in range(X.shape[1]):
            low[j] = min(low[j], X[i, j])
            high[j] = max(high[j], X[i, j])
            width = high[j] - low[j]
            out[i, j] = (X[i, j] - low[j]) / width if width > 0.0 else 0.0


class _Scaling:
    """What both have in common: rows in, rows out, and a state that is data."""

    _fields: tuple[str, ...]

    def _begin(self, X: np.ndarray) -> None:
        raise NotImplementedError

    def _rows(self, X: Any, learning: bool) -> np.ndarray:
        if sparse.issparse(X):
            raise ValueError(
                f"{type(self).__name__} would make sparse rows dense; open the stream with dense=True if they may be"
            )
        X = np.ascontiguousarray(X, dtype=np.float64)
        width = len(getattr(self, self._fields[-1]))
        if learning and width == 0:
            self._begin(X)
        elif X.shape[1] != width:
            raise ValueError(f"the rows have {X.shape[1]} columns, but this {type(self).__name__} has learned from {width}")
        if not np.isfinite(X).all():
            raise ValueError("the rows contain NaN or infinity; fill or drop them (missing='drop') before scaling")
        return X

    def to_state(self) -> dict[str, Any]:
        """The state as JSON would hold it."""
        return {"part": type(self).__name__} | {name: np.asarray(getattr(self, name)).tolist() for name in self._fields}

    @classmethod
    def from_state(cls, state: dict[str, Any]):
        """The part that ``to_state`` described."""
        if state.get("part") != cls.__name__:
            raise ValueError(f"this is the state of {state.get('part')!r}, not of {cls.__name__!r}")
        part = cls()
        for name in cls._fields:
            like = getattr(part, name)
            value = np.array(state[name], dtype=np.float64)
            if value.ndim != np.ndim(like):
                raise ValueError(f"{name} of a {cls.__name__} has {np.ndim(like)} dimensions, not {value.ndim}")
            setattr(part, name, value if value.ndim else float(value))
        return part


class Standardise(_Scaling):
    """Running standardisation: columns get mean 0 and variance 1.

    Examples
    --------
    >>> import numpy as np
    >>> from kernling.streams import Standardise
    >>> part = Standardise()
    >>> X = part.learn_transform(np.array([[1.0], [3.0], [5.0]]))
    >>> print(part.transform(np.array([[3.0]])), part.mean)
    [[0.]] [3.]
    """

    _fields = ("count", "mean", "squares")

    def __init__(self) -> None:
        self.count = 0.0
        self.mean = np.empty(0)
        self.squares = np.empty(0)  # sum of squared differences from the mean

    def _begin(self, X: np.ndarray) -> None:
        self.mean, self.squares = np.zeros(X.shape[1]), np.zeros(X.shape[1])

    @property
    def variance(self) -> np.ndarray:
        """The variance of each column so far."""
        return self.squares / max(self.count, 1.0)

    def learn_transform(self, X: np.ndarray) -> np.ndarray:
        """Rows scaled by what was known when each came, itself included."""
        X = self._rows(X, learning=True)
        out = np.empty_like(X)
        self.count = _standardise(X, self.count, self.mean, self.squares, out)
        return out

    def transform(self, X: np.ndarray) -> np.ndarray:
        """Rows scaled by what is known now; nothing is learned."""
        X = self._rows(X, learning=False)
        spread = np.sqrt(self.variance)
        return np.where(spread > 0.0, (X - self.mean) / np.where(spread > 0.0, spread, 1.0), 0.0)

    def merge(self, other: Standardise) -> Standardise:
        """The part that would have seen both streams (Chan, Golub and LeVeque, 1979)."""
        if not self.count or not other.count:
            return Standardise.from_state((self if self.count else other).to_state())
        both = Standardise()
        both.count = self.count + other.count
        difference = other.mean - self.mean
        both.mean = self.mean + difference * (other.count / both.count)
        both.squares = self.squares + other.squares + difference**2 * (self.count * other.count / both.count)
        return both


class MinMax(_Scaling):
    """Running scaling of columns into [low, high], by the smallest and largest value so far.

    Examples
    --------
    >>> import numpy as np
    >>> from kernling.streams import MinMax
    >>> part = MinMax(-1.0, 1.0)
    >>> X = part.learn_transform(np.array([[2.0], [4.0], [3.0]]))
    >>> print(X.ravel())
    [-1.  1.  0.]
    """

    _fields = ("low", "high", "minimum", "maximum")

    def __init__(self, low: float = 0.0, high: float = 1.0):
        if not low < high:
            raise ValueError(f"low must be below high, not {low} and {high}")
        self.low, self.high = float(low), float(high)
        self.minimum = np.empty(0)
        self.maximum = np.empty(0)

    def _begin(self, X: np.ndarray) -> None:
        self.minimum, self.maximum = np.full(X.shape[1], np.inf), np.full(X.shape[1], -np.inf)

    def learn_transform(self, X: np.ndarray) -> np.ndarray:
        """Rows scaled by what was known when each came, itself included."""
        X = self._rows(X, learning=True)
        out = np.empty_like(X)
        _rescale(X, self.minimum, self.maximum, out)
        return self.low + (self.high - self.low) * out

    def transform(self, X: np.ndarray) -> np.ndarray:
        """Rows scaled by what is known now; nothing is learned, and values outside the range so far stay outside."""
        X = self._rows(X, learning=False)
        width = self.maximum - self.minimum
        unit = np.where(width > 0.0, (X - self.minimum) / np.where(width > 0.0, width, 1.0), 0.0)
        return self.low + (self.high - self.low) * unit

    def merge(self, other: MinMax) -> MinMax:
        """The part that would have seen both streams."""
        if not len(self.minimum) or not len(other.minimum):
            return MinMax.from_state((self if len(self.minimum) else other).to_state())
        both = MinMax(self.low, self.high)
        both.minimum = np.minimum(self.minimum, other.minimum)
        both.maximum = np.maximum(self.maximum, other.maximum)
        return both


def part_from_state(state: dict[str, Any]) -> Any:
    """The scaling that ``to_state`` described, whichever it is.

    Examples
    --------
    >>> import numpy as np
    >>> from kernling.streams import MinMax, part_from_state
    >>> part = MinMax()
    >>> _ = part.learn_transform(np.array([[0.0], [4.0]]))
    >>> print(part_from_state(part.to_state()).transform(np.array([[1.0]])))
    [[0.25]]
    """
    kinds: dict[str, type[_Scaling]] = {"Standardise": Standardise, "MinMax": MinMax}
    if state.get("part") not in kinds:
        raise ValueError(f"part must be one of {sorted(kinds)}, not {state.get('part')!r}")
    return kinds[state["part"]].from_state(state)
