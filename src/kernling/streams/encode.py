"""Categories as columns of numbers, as part of a stream; and parts from what a model file holds of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from .columns import Columns, RowError, Table
from .parts import MinMax, Standardise
from .tables import frames


class Encode(TransformerMixin, BaseEstimator):
    """Turns tables with categorical columns into rows of numbers, as :class:`Columns` does for files.

    Takes pandas and polars frames, dictionaries of columns (of values, for a single event) and 2-D arrays, whose columns are
    called x0, x1, ...

    Parameters
    ----------
    categorical : sequence of str or mapping of str to sequence
        Columns whose values are names, not numbers.  Each becomes one column per category, and one for all others.
        The categories are those given, or those of the first rows that come: give them where events come one by one.
    hash : int or None
        Instead, categories are hashed into this many columns (after the numeric ones), and rows are sparse.

    Examples
    --------
    >>> import pandas
    >>> from kernling.streams import Encode
    >>> encode = Encode(categorical={"from": ["EWR", "JFK"]})
    >>> print(encode.fit_transform(pandas.DataFrame({"from": ["JFK", "LGA"], "km": [3.0, 4.0]})))
    [[0. 1. 0. 3.]
     [0. 0. 1. 4.]]
    >>> print(*encode.get_feature_names_out())
    from=EWR from=JFK from=? km
    """

    takes_tables = True

    def __init__(self, categorical: Sequence[str] | Mapping[str, Sequence[Any]] = (), hash: int | None = None):
        self.categorical = categorical
        self.hash = hash

    def fit(self, X, y=None):
        """Forget everything; take names, and categories that were not given, from the rows."""
        columns = Columns(None, None, self.categorical, self.hash)
        _encoded(columns, _table(X))
        if isinstance(X, Mapping):
            self.n_features_in_ = len(X)
            self.feature_names_in_ = np.array(list(X), dtype=object)
        else:
            validate_data(self, X, skip_check_array=True)
        self.columns_ = columns
        return self

    def partial_fit(self, X, y=None):
        """The first rows settle names and categories; later ones are only looked at for errors."""
        if hasattr(self, "columns_"):
            self.transform(X)
            return self
        return self.fit(X)

    def learn_transform(self, X: Any) -> Any:
        """The rows, encoded; the first ones settle names and categories."""
        if not hasattr(self, "columns_"):
            self.fit(X)
        return _encoded(self.columns_, _table(X))

    def transform(self, X) -> Any:
        """The rows, encoded; nothing is learned."""
        check_is_fitted(self)
        table = _table(X)
        if not isinstance(X, Mapping):
            validate_data(self, X, skip_check_array=True, reset=False)
        return _encoded(self.columns_, table)

    def transform_one(self, x: Any) -> np.ndarray:
        """One event, a dictionary of values or a 1-D array."""
        return self.transform(one_row(x))[0]

    def get_feature_names_out(self, input_features=None) -> np.ndarray:
        """The names of the columns that come out."""
        check_is_fitted(self)
        return np.array(self.columns_.names, dtype=object)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = tags.input_tags.string = True
        tags.transformer_tags.preserves_dtype = []
        return tags

    def to_state(self) -> dict[str, Any]:
        """The state as JSON would hold it."""
        columns = self.columns_ if hasattr(self, "columns_") else Columns(None, None, self.categorical, self.hash)
        given = None
        if isinstance(self.categorical, Mapping):
            given = {name: list(map(str, values)) for name, values in self.categorical.items()}
        named = hasattr(self, "feature_names_in_")
        return {"part": "Encode", "given": given, "named": named, "columns": columns.to_state()}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Encode:
        """The part that ``to_state`` described."""
        columns = Columns.from_state(state["columns"])
        if columns.target is not None:
            raise ValueError(f"an Encode has no target, but this one names {columns.target!r}")
        part = cls(columns.categorical if state["given"] is None else state["given"], columns.hash)
        if columns.features is not None:
            part.columns_ = columns
            part.n_features_in_ = len(columns.features)
            if state["named"]:
                part.feature_names_in_ = np.array(columns.features, dtype=object)
        return part


def one_row(x: Any) -> Any:
    """One event as a table of one row."""
    if isinstance(x, Mapping):
        return {name: np.array([value]) for name, value in x.items()}
    return np.asarray(x)[np.newaxis]


def _table(X: Any) -> Table:
    """Columns by name."""
    if sparse.issparse(X):
        raise ValueError("Encode takes tables, and these rows are sparse: they are numbers already")
    if isinstance(X, Mapping):
        return {str(name): np.asarray(values) for name, values in X.items()}
    if hasattr(X, "columns"):
        return next(frames(X))
    X = check_array(X, dtype=None, ensure_all_finite=False)
    return {f"x{place}": column for place, column in enumerate(X.T)}


def _encoded(columns: Columns, table: Table) -> Any:
    try:
        rows, _ = columns.rows(table)
    except RowError as error:
        fact, _, cure = str(error).partition(";")
        if "missing" not in cure:
            raise
        raise ValueError(f"{fact}: fill NaN and None before they are encoded") from None
    if not np.isfinite(rows.data if sparse.issparse(rows) else rows).all():
        raise ValueError("the rows contain infinity; fill or drop such values before they are encoded")
    return rows


def part_from_state(state: dict[str, Any]) -> Any:
    """The part that ``to_state`` described, whichever it is.

    Examples
    --------
    >>> import numpy as np
    >>> from kernling.streams import MinMax, part_from_state
    >>> part = MinMax()
    >>> _ = part.learn_transform(np.array([[0.0], [4.0]]))
    >>> print(part_from_state(part.to_state()).transform(np.array([[1.0]])))
    [[0.25]]
    """
    kinds: dict[str, Any] = {"Encode": Encode, "MinMax": MinMax, "Standardise": Standardise}
    if state.get("part") not in kinds:
        raise ValueError(f"part must be one of {sorted(kinds)}, not {state.get('part')!r}")
    return kinds[state["part"]].from_state(state)
