"""Running scaling of streams.

Row t is scaled with the statistics of rows 1 to t, so the result does not depend on the size of the chunks.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin, clone
from sklearn.utils.validation import check_is_fitted, validate_data

from ..compiler import jit_exact
from ..components.scaling import ANY, KINDS, MOST, ZERO_OR_ONE, standardise, stay
from ..estimators.checking import are_plain
from ..estimators.stored import take_names

SCALED = 1e70  # largest number in rows: the sum of squares stays below MOST


@jit_exact
def _rescale(X, low, high, out):
    for i in range(X.shape[0]):
        for j in range(X.shape[1]):
            low[j] = min(low[j], X[i, j])
            high[j] = max(high[j], X[i, j])
            width = high[j] - low[j]
            out[i, j] = (X[i, j] - low[j]) / width if width > 0.0 else 0.0


class Scale(NamedTuple):
    """The scale of each column: x becomes low + height (x - shift) / width, and low where width is 0; at most ``reach``."""

    shift: np.ndarray
    width: np.ndarray
    low: float = 0.0
    height: float = 1.0
    reach: float = np.inf

    def scaled(self, X: np.ndarray) -> np.ndarray:
        """Return rows on this scale."""
        unit = np.divide(X - self.shift, self.width, out=np.zeros(X.shape), where=self.width > 0.0)
        scaled = self.low + self.height * unit
        return scaled if self.reach == np.inf else np.clip(scaled, -self.reach, self.reach)

    def affine(self) -> tuple[np.ndarray, np.ndarray]:
        """Shift and width such that rows are shift + width * scaled rows."""
        width = self.width / self.height
        return self.shift - self.low * width, width


class _Scaling(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Common interface of running scalers."""

    _fields: tuple[str, ...]  # of the state; the last one has one number per column
    _settings: tuple[str, ...] = ()

    def _begin(self, d: int) -> None:
        raise NotImplementedError

    def _learn(self, X: np.ndarray, out: np.ndarray) -> None:
        raise NotImplementedError

    def scale_now(self) -> Scale:
        """Return the current scale."""
        raise NotImplementedError

    def _is_sound(self) -> bool:
        """Return whether the state is valid."""
        raise NotImplementedError

    def fit(self, X, y=None):
        """Fit to the rows, discarding earlier state."""
        learned = clone(self).partial_fit(X)
        self.__dict__.pop("feature_names_in_", None)
        self.__dict__.update(vars(learned))
        return self

    def partial_fit(self, X, y=None):
        """Update with the rows."""
        fresh = not self.__sklearn_is_fitted__()
        self._dense(X)
        self.learn_transform(validate_data(self, X, dtype=np.float64, order="C", reset=fresh))
        return self

    def learn_transform(self, X: Any) -> np.ndarray:
        """Learn the rows and return each scaled with the statistics of the rows up to and including itself."""
        return self.learn_checked(self._rows(X))

    def learn_checked(self, X: np.ndarray) -> np.ndarray:
        """Same as ``learn_transform`` for finite rows of the right width, without validation."""
        if not self.__sklearn_is_fitted__():
            self._begin(X.shape[1])
            self.n_features_in_ = X.shape[1]
        self._own_state()
        out = np.empty(X.shape)
        self._learn(X, out)
        return out

    def _own_state(self) -> None:
        """Copy the state before it changes, so that a copy of the attributes is a copy of the state."""
        for name in self._fields:
            setattr(self, name, getattr(self, name).copy())

    def copied(self) -> Any:
        """Return a copy that can learn without changing this one."""
        other = self.twin()
        other._own_state()
        return other

    def transform(self, X) -> np.ndarray:
        """Scale the rows with the current statistics, without learning; values outside of the range so far stay outside."""
        if not self.__sklearn_is_fitted__():  # faster than scikit-learn's check
            check_is_fitted(self)
        self._dense(X)
        if not are_plain(self, X, dtype=np.float64, reset=False) or not np.isfinite(X).all():
            X = validate_data(self, X, dtype=np.float64, reset=False)
        return self.scale_now().scaled(X)

    def transform_one(self, x: Any) -> np.ndarray:
        """Scale one row, a 1-D array, with the current statistics (the fast path)."""
        return self.scaled(np.asarray(x)[np.newaxis])[0]

    def learn_transform_one(self, x: Any) -> np.ndarray:
        """Learn one row, a 1-D array, and return it scaled with the updated statistics."""
        return self.learn_transform(np.asarray(x)[np.newaxis])[0]

    def scaled(self, X: Any) -> np.ndarray:
        """Same as ``transform`` without scikit-learn's validation (the fast path for few rows)."""
        if not self.__sklearn_is_fitted__():
            check_is_fitted(self)
        return self.scale_now().scaled(self._rows(X))

    def inverse_transform(self, X) -> np.ndarray:
        """Transform rows back to their original scale."""
        check_is_fitted(self)
        shift, width = self.scale_now().affine()
        return shift + width * np.asarray(X, dtype=np.float64)

    def _dense(self, X: Any) -> None:
        if sparse.issparse(X):
            raise ValueError(
                f"{type(self).__name__} would make sparse rows dense; if that is acceptable, open the stream with dense=True"
            )

    def _rows(self, X: Any) -> np.ndarray:
        """Return the rows after a fast validation."""
        self._dense(X)
        X = np.ascontiguousarray(X, dtype=np.float64)
        if X.ndim != 2:
            raise ValueError(f"rows must be a 2-D array, not {X.ndim}-D")
        if self.__sklearn_is_fitted__() and X.shape[1] != self.n_features_in_:
            learned = f"this {type(self).__name__} has learned from {self.n_features_in_}"
            raise ValueError(f"the rows have {X.shape[1]} columns, but {learned}")
        if not np.abs(X).max(initial=0.0) <= SCALED:
            if np.isfinite(X).all():
                raise ValueError(
                    f"the rows contain numbers above {SCALED:g}, whose squares are too large to be summed for a scale"
                )
            raise ValueError("the rows contain NaN or infinity; fill or drop them (missing='drop') before scaling")
        return X

    @property
    def columns_out(self) -> int:
        """Number of columns of scaled rows."""
        return self.n_features_in_

    def twin(self) -> Any:
        """Return a copy that shares the arrays, which learning replaces; much faster than ``copy.copy``."""
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        return other

    def __sklearn_is_fitted__(self) -> bool:
        return self._fields[-1] in self.__dict__

    def to_state(self) -> dict[str, Any]:
        """Return the state as JSON-compatible data."""
        held = {name: np.asarray(getattr(self, name, [])).tolist() for name in (*self._settings, *self._fields)}
        names = {"names": self.feature_names_in_.tolist()} if hasattr(self, "feature_names_in_") else {}
        return {"part": type(self).__name__} | {name.rstrip("_"): value for name, value in held.items()} | names

    @classmethod
    def from_state(cls, state: dict[str, Any]):
        """Restore a scaler from the result of ``to_state``."""
        if state.get("part") != cls.__name__:
            raise ValueError(f"this is the state of {state.get('part')!r}, not of {cls.__name__!r}")
        settings = {name: state[name] for name in cls._settings}
        part = cls(**{name: one if one is None or type(one) is bool else float(one) for name, one in settings.items()})
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
            raise ValueError(f"this is not a valid state of a {cls.__name__}")
        take_names(part, state)
        return part


class Standardise(_Scaling):
    """Running standardisation of columns to mean 0 and variance 1; a constant column becomes 0.

    ``learn_transform`` scales each row with the statistics up to and including itself; ``transform`` with the current ones.

    Parameters
    ----------
    clip : float, optional
        Values more than this many standard deviations from the mean are clipped to that distance, so that a single outlier does
        not compress all other values.  The first 30 rows are not clipped.
    keep_units : bool
        Whether columns of 0 and 1 stay as they are, and all columns while all numbers are in [0, 1], since they share a scale
        then, as in histograms.  Auto scales like this.

    Attributes
    ----------
    count_, mean_, squares_ : array
        Number of rows, mean of each column, and sum of squared differences from it.
    kind_ : array
        Of each column: 0 if it contains only 0 and 1, 1 if only numbers in [0, 1], else 2; always 2 without ``keep_units``.
    clipped_ : array
        Number of learned rows in which a value was clipped.

    Examples
    --------
    >>> import numpy as np
    >>> from kernling.tables import Standardise
    >>> part = Standardise()
    >>> X = part.learn_transform(np.array([[1.0], [3.0], [5.0]]))
    >>> print(part.transform(np.array([[3.0]])), part.mean_)
    [[0.]] [3.]
    """

    _fields = ("count_", "clipped_", "kind_", "mean_", "squares_")
    _settings = ("clip", "keep_units")

    def __init__(self, clip: float | None = None, keep_units: bool = False):
        self.clip = clip
        self.keep_units = keep_units

    def _begin(self, d: int) -> None:
        if self.clip is not None and not self.clip > 0.0:
            raise ValueError(f"clip must be a number above 0, or None, not {self.clip!r}")
        self.count_, self.clipped_, self.mean_, self.squares_ = np.zeros(()), np.zeros(()), np.zeros(d), np.zeros(d)
        self.kind_ = np.full(d, float(ZERO_OR_ONE if self.keep_units else ANY))

    def _learn(self, X, out) -> None:
        self.advance(*standardise(X, float(self.count_), self.mean_, self.squares_, self.kind_, self.reach, out))

    def advance(self, count: float, clipped: int) -> None:
        """Set the number of rows, and count those that were clipped."""
        self.count_, self.clipped_ = np.array(count), self.clipped_ + clipped

    def _is_sound(self) -> bool:
        right = (np.abs(self.mean_) <= MOST) & (self.squares_ >= 0.0) & (self.variance_ <= MOST**2)
        right &= np.isin(self.kind_, KINDS if self.keep_units else ANY)
        return 0.0 <= float(self.clipped_) <= float(self.count_) < np.inf and bool(right.all())

    @property
    def reach(self) -> float:
        """Maximum distance from the mean, in deviations."""
        return np.inf if self.clip is None else float(self.clip)

    @property
    def variance_(self) -> np.ndarray:
        """Variance of each column so far."""
        return self.squares_ / max(float(self.count_), 1.0)

    def scale_now(self) -> Scale:
        """Return the current scale."""
        stays = stay(self.kind_)
        return Scale(np.where(stays, 0.0, self.mean_), np.where(stays, 1.0, np.sqrt(self.variance_)), reach=self.reach)


class MinMax(_Scaling):
    """Running scaling of columns to [low, high] by their minimum and maximum so far; a constant column becomes low.

    ``learn_transform`` scales each row with the statistics up to and including itself; ``transform`` with the current ones.

    Attributes
    ----------
    minimum_, maximum_ : array
        Minimum and maximum of each column so far.

    Examples
    --------
    >>> import numpy as np
    >>> from kernling.tables import MinMax
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

    def scale_now(self) -> Scale:
        """Return the current scale."""
        return self._scale(self.minimum_, self.maximum_ - self.minimum_)

    def _scale(self, minimum: np.ndarray, width: np.ndarray) -> Scale:
        return Scale(minimum, width, self.low, self.high - self.low)


def scaling_from_state(state: dict[str, Any]) -> Standardise | MinMax:
    """Restore a scaler of either class from the result of ``to_state``."""
    kinds: dict[str, Any] = {"MinMax": MinMax, "Standardise": Standardise}
    if state.get("part") not in kinds:
        raise ValueError(f"part must be one of {sorted(kinds)}, not {state.get('part')!r}")
    return kinds[state["part"]].from_state(state)
