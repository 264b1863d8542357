"""Validation of rows, targets and weights, with errors of one sentence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import assert_all_finite, check_is_fitted, validate_data

from ..core.limits import LARGEST, WEIGHT, within


def is_fitted(model: Any) -> bool:
    """Return whether a model has been fitted."""
    try:
        check_is_fitted(model)
    except NotFittedError:
        return False
    return True


def checked(estimator, *arrays, largest: float | None = None, **options):
    """Validate like scikit-learn, with one fast check for numbers that are not finite or too large."""
    labels = options.get("y_numeric") is False
    if are_plain(estimator, *arrays, dtype=options["dtype"], reset=options["reset"], labels=labels):
        estimator.n_features_in_ = arrays[0].shape[1]
        check_entries(arrays[0], LARGEST[arrays[0].dtype.name] if largest is None else largest)
        return arrays if len(arrays) > 1 else arrays[0]
    arrays = (checked_sparse(arrays[0]), *arrays[1:])
    for name, array in zip(("X", "y"), arrays, strict=False):
        check_type(name, array)
    try:
        found = validate_data(estimator, *arrays, accept_sparse="csr", order="C", ensure_all_finite=False, **options)
    except (ValueError, TypeError, OverflowError) as error:
        if isinstance(error, OverflowError) or "could not convert" in str(error) or "float() argument" in str(error):
            culprit = "y" if options.get("y_numeric") and not _is_numeric(arrays[1]) else "X"
            wrong = TypeError if isinstance(error, TypeError) else ValueError
            cure = "; kernling.StreamPipeline.auto(model) encodes text and dates" if culprit == "X" else ""
            raise wrong(f"{culprit} must contain only numbers: {error}{cure}") from None
        if "Complex" in str(error):  # its message contains all of the data
            raise ValueError("Complex data not supported: take real and imaginary parts as columns") from None
        raise
    if isinstance(found, tuple):
        check_type("y", found[1])  # a list has its type only now
    X = found[0] if isinstance(found, tuple) else found
    check_entries(X, LARGEST[X.dtype.name] if largest is None else largest)
    return found


def are_plain(estimator, X, *targets, dtype, reset: bool, labels: bool = False) -> bool:
    """Return whether the arrays need no validation by scikit-learn, which takes longer than learning 50 events.

    Targets are numbers, or also texts if they are labels.
    """
    if type(X) is not np.ndarray or X.ndim != 2 or X.dtype != dtype or not X.flags.c_contiguous or not X.size:
        return False
    if hasattr(estimator, "feature_names_in_") or not (reset or X.shape[1] == getattr(estimator, "n_features_in_", 0)):
        return False
    return all(
        type(y) is np.ndarray
        and y.shape == X.shape[:1]
        and ((labels and y.dtype.kind == "U") or (y.dtype.kind in "biuf" and bool(np.isfinite(y).all())))
        for y in targets
    )


_MEANINGLESS = {  # kinds of NumPy types whose conversion to numbers or labels would be surprising
    "c": "complex numbers (Complex data not supported): take real and imaginary parts as columns",  # scikit-learn's wording
    "M": "dates: convert them to numbers or text first (kernling.StreamPipeline does it for columns)",
    "m": "durations: convert them to numbers first, such as seconds",
    "S": "bytes: decode them to text first, for example with astype(str)",
    "V": "records of several fields: use a data frame, or one plain array per column",
}


def refuse_lazy(name: str, values) -> None:
    """Raise for a frame that has not been computed, such as polars' LazyFrame: its rows may need any amount of memory."""
    if hasattr(values, "collect") and not hasattr(values, "__len__"):
        raise TypeError(f"{name} is a {type(values).__name__}, which has no rows before it is collected: pass {name}.collect()")


def check_type(name: str, values) -> None:
    """Raise for arrays and frames whose silent conversion would not be what was meant."""
    refuse_lazy(name, values)
    if np.ma.is_masked(values):
        raise ValueError(f"{name} has masked entries: fill them, for example with {name}.filled(0), or drop their rows")
    types: Any = getattr(values, "dtypes", None)  # of the columns of a frame, or of a single column
    for dtype in list(types) if hasattr(types, "__iter__") else [getattr(values, "dtype", None)]:
        kind = getattr(dtype, "kind", "")
        meaning = _MEANINGLESS.get(kind)
        if meaning and not (name == "X" and kind == "S"):  # numbers as text are converted, other text is named in an error
            raise ValueError(f"{name} contains {meaning}")


def checked_sparse(X):
    """Return the rows; raise for sparse rows with indices outside of the matrix.

    SciPy's constructors accept such indices, and neither its conversions nor compiled code check them.
    """
    if not sparse.issparse(X):
        return X
    if X.ndim != 2:
        raise ValueError(f"X is a sparse array of {X.ndim} dimension{'s' * (X.ndim != 1)}, but 2 are required")
    if X.format in ("csr", "csc", "bsr"):
        rows, columns = X.shape if X.format != "csc" else X.shape[::-1]
        height, width = X.blocksize if X.format == "bsr" else (1, 1)
        _check_compressed(X, rows // height, columns // width)
        return X
    if X.format == "coo":
        for indices, n in zip(X.coords, X.shape, strict=True):
            _check_indices(indices, n, len(X.data))
        return X
    X = X.tocsr()  # lists, dictionaries and diagonals are converted to indices first
    _check_compressed(X, *X.shape)
    return X


def _check_compressed(X, rows: int, columns: int) -> None:
    starts = X.indptr
    if starts.ndim != 1 or len(starts) != rows + 1 or starts[0] != 0 or starts[-1] > len(X.indices):
        raise ValueError(f"X is not a valid {X.format} matrix: indptr does not match its {rows} rows and its indices")
    if (starts[1:] < starts[:-1]).any():
        raise ValueError(f"X is not a valid {X.format} matrix: indptr decreases")
    _check_indices(X.indices[: starts[-1]], columns, len(X.data))


def _check_indices(indices: np.ndarray, n: int, values: int) -> None:
    if indices.ndim != 1 or len(indices) > values:
        raise ValueError(f"X is not a valid sparse matrix: there are {indices.size} indices for {values} values")
    if len(indices) and not (indices.min() >= 0 and indices.max() < n):
        raise ValueError(f"X is not a valid sparse matrix: an index is outside of 0 to {n - 1}")


def check_entries(X, largest: float) -> None:
    """Raise for numbers that are not finite or too large."""
    if within(X.data if sparse.issparse(X) else X, largest):
        return
    try:
        assert_all_finite(X, input_name="X")
    except ValueError as error:  # keep only the sentence that says what is wrong
        raise ValueError(str(error).splitlines()[0]) from None
    raise ValueError(f"X contains numbers above {largest:g}, too large for this model in {X.dtype.name}: scale the columns")


def _is_numeric(y) -> bool:
    try:
        np.asarray(y, dtype=np.float64)
    except (ValueError, TypeError, OverflowError):
        return False
    return True


def one_row(x) -> np.ndarray:
    """Convert one event to an array."""
    if isinstance(x, Mapping):
        raise TypeError("x must be a 1-D array of numbers; kernling.StreamPipeline.auto(model) learns from dictionaries")
    try:
        x = np.asarray(x)
    except (ValueError, TypeError, OverflowError) as error:
        raise ValueError(f"x must be a 1-D array of numbers: {error}") from None
    if x.ndim != 1:
        raise ValueError(f"x has shape {x.shape}, but one event is a 1-D array")
    check_type("x", x)
    return x


def checked_weights(sample_weight, n: int) -> np.ndarray:
    if sample_weight is None:
        return np.ones(n)
    try:
        check_type("sample_weight", sample_weight)
        weights = np.asarray(sample_weight)
        check_type("sample_weight", weights)
        weights = weights.astype(np.float64)
    except (ValueError, TypeError, OverflowError) as error:
        raise ValueError(f"sample_weight must contain only numbers: {error}") from None
    if weights.ndim == 0:
        weights = np.full(n, float(weights))
    if weights.shape != (n,):
        raise ValueError(f"sample_weight has shape {weights.shape}, but there are {n} rows")
    if not ((weights >= 0.0) & (weights <= WEIGHT)).all():
        raise ValueError(f"sample_weight must be finite and not negative, and at most {WEIGHT:g}")
    return weights


def canonical(X):
    """Return CSR rows with sorted, unique indices, without changing the caller's matrix."""
    if sparse.issparse(X) and not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X
