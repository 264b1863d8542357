"""Scaling as part of a stream.  The state is plain data, and every row is scaled by what was known when it came.

Row t is scaled with the statistics of rows 1 to t, so the result never depends on how the stream is cut into chunks.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin, clone
from sklearn.utils.validation import check_is_fitted, validate_data

from ..core.jit import jit_exact
from ..core.limits import LARGEST

MOST = LARGEST["float64"]  # what a scale that comes from outside may be made of: beyond, nothing behind it would be finite
ENOUGH = 30  # rows before one can be called an outlier


@jit_exact
def _standardise(X, count, mean, squares, clip, out):
    """Welford's recurrence (Technometrics, 1962), row by row.

    Values more than ``clip`` deviations away count as if they were so far away, once there are enough rows to tell.
    """
    clipped_rows = 0
    for i in range(X.shape[0]):
        clipped = 0
        reach = clip if count >= ENOUGH else np.inf
        count += 1.0
        for j in range(X.shape[1]):
            value = X[i, j]
            if reach < np.inf and squares[j] > 0.0:
                far = reach * np.sqrt(squares[j] / (count - 1.0))
                value = min(max(value, mean[j] - far), mean[j] + far)
                if value != X[i, j]:
                    clipped = 1
            difference = value - mean[j]
            mean[j] += difference / count
            squares[j] += difference * (value - mean[j])
            spread = np.sqrt(squares[j] / count)
            out[i, j] = min(max((value - mean[j]) / spread, -clip), clip) if spread > 0.0 else 0.0
        clipped_rows += clipped
    return count, clipped_rows


@jit_exact
def _rescale(X, low, high, out):
    for i in range(X.shape[0]):
        for j in range(X.shape[1]):
            low[j] = min(low[j], X[i, j])
            high[j] = max(high[j], X[i, j])
            width = high[j] - low[j]
            out[i, j] = (X[i, j] - low[j]) / width if width > 0.0 else 0.0


class _Scaling(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """What both have in common: rows in, rows out, a state that is data, and scikit-learn's interface."""

    _fields: tuple[str, ...]  # of the state; the last one has a number for each column
    _settings: tuple[str, ...] = ()

    def _begin(self, d: int) -> None:
        raise NotImplementedError

    def _learn(self, X: np.ndarray, out: np.ndarray) -> None:
        raise NotImplementedError

    def _scaled(self, X: np.ndarray) -> np.ndarray:
        raise NotImplementedError

    def _is_sound(self) -> bool:
        """Whether the state is one that rows can lead to."""
        raise NotImplementedError

    def _affine(self) -> tuple[np.ndarray, np.ndarray]:
        """Shift and width such that the rows are shift + width * scaled rows."""
        raise NotImplementedError

    def fit(self, X, y=None):
        """Forget everything and learn the rows."""
        learned = clone(self).partial_fit(X)
        self.__dict__.pop("feature_names_in_", None)
        self.__dict__.update(vars(learned))
        return self

    def partial_fit(self, X, y=None):
        """Go on learning."""
        fresh = not self.__sklearn_is_fitted__()
        self._dense(X)
        self.learn_transform(validate_data(self, X, dtype=np.float64, order="C", reset=fresh))
        return self

    def learn_transform(self, X: Any) -> np.ndarray:
        """Learn the rows; returns each scaled by what was known when it came, itself included."""
        X = self._rows(X)
        if not self.__sklearn_is_fitted__():
            self._begin(X.shape[1])
            self.n_features_in_ = X.shape[1]
        for name in self._fields:  # so that a copy of the attributes is a copy of the state
            setattr(self, name, np.copy(getattr(self, name)))
        out = np.empty_like(X)
        self._learn(X, out)
        return out

    def transform(self, X) -> np.ndarray:
        """Rows scaled by what is known now; nothing is learned, and values outside the range so far stay outside."""
        check_is_fitted(self)
        self._dense(X)
        return self._scaled(validate_data(self, X, dtype=np.float64, reset=False))

    def transform_one(self, x: Any) -> np.ndarray:
        """One row, a 1-D array, scaled by what is known now: the cheap way."""
        return self.scaled(np.asarray(x)[np.newaxis])[0]

    def learn_transform_one(self, x: Any) -> np.ndarray:
        """Learn one row, a 1-D array; returns it scaled by what is known then."""
        return self.learn_transform(np.asarray(x)[np.newaxis])[0]

    def scaled(self, X: Any) -> np.ndarray:
        """The same as ``transform``, without what scikit-learn checks: the cheap way for few rows."""
        if not self.__sklearn_is_fitted__():
            check_is_fitted(self)
        return self._scaled(self._rows(X))

    def inverse_transform(self, X) -> np.ndarray:
        """Rows on their own scale again."""
        check_is_fitted(self)
        shift, width = self._affine()
        return shift + width * np.asarray(X, dtype=np.float64)

    def _dense(self, X: Any) -> None:
        if sparse.issparse(X):
            raise ValueError(
                f"{type(self).__name__} would make sparse rows dense; open the stream with dense=True if they may be"
            )

    def _rows(self, X: Any) -> np.ndarray:
        """Quickly checked rows."""
        self._dense(X)
        X = np.ascontiguousarray(X, dtype=np.float64)
        if X.ndim != 2:
            raise ValueError(f"rows must be a 2-D array, not {X.ndim}-D")
        if self.__sklearn_is_fitted__() and X.shape[1] != self.n_features_in_:
            learned = f"this {type(self).__name__} has learned from {self.n_features_in_}"
            raise ValueError(f"the rows have {X.shape[1]} columns, but {learned}")
        if not np.isfinite(X).all():
            raise ValueError("the rows contain NaN or infinity; fill or drop them (missing='drop') before scaling")
        return X

    def __sklearn_is_fitted__(self) -> bool:
        return self._fields[-1] in self.__dict__

    def to_state(self) -> dict[str, Any]:
        """The state as JSON would hold it."""
        held = {name: np.asarray(getattr(self, name, [])).tolist() for name in (*self._settings, *self._fields)}
        names = {"names": self.feature_names_in_.tolist()} if hasattr(self, "feature_names_in_") else {}
        return {"part": type(self).__name__} | {name.rstrip("_"): value for name, value in held.items()} | names

    @classmethod
    def from_state(cls, state: dict[str, Any]):
        """The part that ``to_state`` described."""
        if state.get("part") != cls.__name__:
            raise ValueError(f"this is the state of {state.get('part')!r}, not of {cls.__name__!r}")
        part = cls(**{name: None if state[name] is None else float(state[name]) for name in cls._settings})
        d = len(state[cls._fields[-1].rstrip("_")])
        if not d:
            return part
        part._begin(d)
        part.n_features_in_ = d
        for name in cls._fields:
            value = np.array(state[name.rstrip("_")], dtype=np.float64)
            if value.shape != np.shape(getattr(part, name)):
                raise ValueError(f"{name.rstrip('_')} of a {cls.__name__} of {d} columns cannot have shape {value.shape}")
            setattr(part, name, value)
        if not part._is_sound():
            raise ValueError(f"these are no numbers that a {cls.__name__} can have learned")
        if "names" in state:
            part.feature_names_in_ = np.array(state["names"], dtype=object)
        return part


class Standardise(_Scaling):
    """Running standardisation: columns get mean 0 and variance 1; a constant column becomes 0.

    ``learn_transform`` scales each row by what was known when it came, itself included; ``transform`` by what is known now.

    Parameters
    ----------
    clip : float, optional
        Outliers: a value more than this many deviations from the mean counts as if it were so far away, so that one value
        cannot flatten all others.  The first 30 rows are believed.

    Attributes
    ----------
    count_, mean_, squares_ : array
        Rows seen, the mean of each column, and the sum of squared differences from it.
    clipped_ : array
        The number of rows learned in which a value was clipped.

    Examples
    --------
    >>> import numpy as np
    >>> from kernling.streams import Standardise
    >>> part = Standardise()
    >>> X = part.learn_transform(np.array([[1.0], [3.0], [5.0]]))
    >>> print(part.transform(np.array([[3.0]])), part.mean_)
    [[0.]] [3.]
    """

    _fields = ("count_", "clipped_", "mean_", "squares_")
    _settings = ("clip",)

    def __init__(self, clip: float | None = None):
        self.clip = clip

    def _begin(self, d: int) -> None:
        if self.clip is not None and not self.clip > 0.0:
            raise ValueError(f"clip must be a number above 0, or None, not {self.clip!r}")
        self.count_, self.clipped_, self.mean_, self.squares_ = np.zeros(()), np.zeros(()), np.zeros(d), np.zeros(d)

    def _learn(self, X, out) -> None:
        state = float(self.count_), self.mean_, self.squares_, self._reach
        count, clipped = _standardise(X, *state, out)
        self.count_, self.clipped_ = np.array(count), self.clipped_ + clipped

    def _is_sound(self) -> bool:
        right = (np.abs(self.mean_) <= MOST) & (self.squares_ >= 0.0) & (self.variance_ <= MOST**2)
        return 0.0 <= float(self.clipped_) <= float(self.count_) < np.inf and bool(right.all())

    @property
    def _reach(self) -> float:
        return np.inf if self.clip is None else float(self.clip)

    @property
    def variance_(self) -> np.ndarray:
        """The variance of each column so far."""
        return self.squares_ / max(float(self.count_), 1.0)

    def _affine(self):
        return self.mean_, np.sqrt(self.variance_)

    def _scaled(self, X):
        spread = np.sqrt(self.variance_)
        scaled = np.where(spread > 0.0, (X - self.mean_) / np.where(spread > 0.0, spread, 1.0), 0.0)
        return scaled if self.clip is None else np.clip(scaled, -self.clip, self.clip)


class MinMax(_Scaling):
    """Running scaling of columns into [low, high], by the smallest and largest value so far; a constant column becomes low.

    ``learn_transform`` scales each row by what was known when it came, itself included; ``transform`` by what is known now.

    Attributes
    ----------
    minimum_, maximum_ : array
        Of each column so far.

    Examples
    --------
    >>> import numpy as np
    >>> from kernling.streams import MinMax
    >>> part = MinMax(-1.0, 1.0)
    >>> X = part.learn_transform(np.array([[2.0], [4.0], [3.0]]))
    >>> print(X.ravel())
    [-1.  1.  0.]
    """

    _fields = ("minimum_", "maximum_")
    _settings = ("low", "high")

    def __init__(self, low: float = 0.0, high: float = 1.0):
        self.low = low
        self.high = high

    def _begin(self, d: int) -> None:
        if not self.low < self.high:
            raise ValueError(f"low must be below high, not {self.low} and {self.high}")
        self.minimum_, self.maximum_ = np.full(d, np.inf), np.full(d, -np.inf)

    def _learn(self, X, out) -> None:
        _rescale(X, self.minimum_, self.maximum_, out)
        out *= self.high - self.low
        out += self.low

    def _is_sound(self) -> bool:
        nothing = (self.minimum_ == np.inf) & (self.maximum_ == -np.inf)
        right = (self.minimum_ >= -MOST) & (self.minimum_ <= self.maximum_) & (self.maximum_ <= MOST)
        return bool((nothing | right).all())

    def _affine(self):
        width = (self.maximum_ - self.minimum_) / (self.high - self.low)
        return self.minimum_ - self.low * width, width

    def _scaled(self, X):
        width = self.maximum_ - self.minimum_
        unit = np.where(width > 0.0, (X - self.minimum_) / np.where(width > 0.0, width, 1.0), 0.0)
        return self.low + (self.high - self.low) * unit
