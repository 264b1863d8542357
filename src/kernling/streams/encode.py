"""Tables as rows of numbers: categories as columns, numbers on a running scale; and steps from what a model file holds."""

from __future__ import annotations

import copy
import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.utils.validation import check_is_fitted

from .frames import as_table, has_names, one_row
from .parts import MinMax, Standardise
from .tables import RowError, Table, category

MOST = 2**31 - 1  # columns


class Encode(TransformerMixin, BaseEstimator):
    """Turns tables into rows of numbers: a column of numbers stays one, a column of categories becomes several.

    Takes :class:`Table`, pandas and polars frames, Arrow tables, dictionaries of columns (of values, for a single event), lists
    of dictionaries, and 2-D arrays, whose columns are called x0, x1, ...  Later, columns are found by name, in any order and
    among others; those of an array by their place.

    Parameters
    ----------
    categorical : sequence of str or mapping of str to sequence
        Columns whose values are names, not numbers.  Each becomes one column per category, and one for all others.
        The categories are those given, or those of the first rows that come: give them where events come one by one.
    hash : int or None
        Instead, categories are hashed into this many columns (after the numeric ones), and rows are sparse.
    scale : Standardise or MinMax, optional
        A running scale for the columns of numbers; those of categories stay 0 and 1.

    Attributes
    ----------
    categories_ : dict of str to list of str
        The categories of each column that is not hashed.
    scale_ : Standardise or MinMax
        What the columns of numbers are scaled by, where there is a scale.

    Examples
    --------
    >>> import pandas
    >>> from kernling.streams import Encode, MinMax
    >>> encode = Encode(categorical={"from": ["EWR", "JFK"]}, scale=MinMax())
    >>> print(encode.fit_transform(pandas.DataFrame({"from": ["JFK", "LGA", "EWR"], "km": [3.0, 4.0, 5.0]})))
    [[0.  1.  0.  0. ]
     [0.  0.  1.  0.5]
     [1.  0.  0.  1. ]]
    >>> print(*encode.get_feature_names_out())
    from=EWR from=JFK from=? km
    """

    takes_tables = True
    scale_: Any

    def __init__(
        self, categorical: Sequence[str] | Mapping[str, Sequence[Any]] = (), hash: int | None = None, scale: Any = None
    ):
        self.categorical = categorical
        self.hash = hash
        self.scale = scale

    # ------------------------------------------------------------------ learning

    def fit(self, X, y=None):
        """Forget everything; take names, categories that were not given, and scales from the rows."""
        learned = clone(self).begin(X)
        learned._rows(X, lambda part, numbers: part.fit_transform(numbers))
        self.__dict__.pop("feature_names_in_", None)
        self.__dict__.update(vars(learned))
        return self

    def partial_fit(self, X, y=None):
        """Go on learning: the first rows settle names and categories, all rows move the scale."""
        self.learn_transform(X)
        return self

    def learn_transform(self, X: Any) -> Any:
        """The rows as numbers, each on the scale that was known when it came, itself included."""
        self.begin(X)
        if self.scale_ is not None:  # so that a copy of the attributes is a copy of the state
            self.scale_ = copy.copy(self.scale_)
        return self._rows(X, lambda part, numbers: part.learn_transform(numbers))

    def begin(self, X: Any) -> Encode:
        """Settle names and categories by these rows, unless they are settled; scales learn nothing."""
        if hasattr(self, "features_"):
            return self
        given = self._checked()
        table = as_table(X)
        unknown = [name for name in self.categorical if name not in table.names]
        if unknown:
            listed = ", ".join(map(repr, table.names))
            raise ValueError(f"categorical names {unknown[0]!r}, which is not among the columns {listed}")
        categories = {} if self.hash is not None else {name: _categories(table, name) for name in self.categorical}
        categories |= given
        self._settle(table.names, categories, has_names(X), None if self.scale is None else clone(self.scale))
        return self

    def _settle(self, features: tuple[str, ...], categories: dict[str, list[str]], named: bool, scale: Any) -> None:
        for name, words in categories.items():
            if len(set(words)) < len(words):
                raise ValueError(f"the categories of {name!r} must differ")
        self.features_, self.categories_, self.scale_ = features, categories, scale
        self._places = {name: {word: place for place, word in enumerate(words)} for name, words in categories.items()}
        self.n_features_in_ = len(features)
        if named:
            self.feature_names_in_ = np.array(features, dtype=object)

    def _checked(self) -> dict[str, list[str]]:
        """The categories that are given, once the parameters have proved right."""
        if self.hash is not None and (not isinstance(self.hash, int) or not 1 <= self.hash <= MOST):
            raise ValueError(f"hash must be a whole number of columns from 1 to {MOST}, not {self.hash!r}")
        if self.scale is not None and not hasattr(self.scale, "learn_transform"):
            raise TypeError(f"scale must be Standardise() or MinMax(), not {self.scale!r}")
        given = self.categorical if isinstance(self.categorical, Mapping) else {}
        for names in (self.categorical, *given.values()):
            if isinstance(names, (str, bytes)) or not isinstance(names, Iterable):
                raise TypeError(f"categorical must be a list of names, not {names!r}")
        return {str(name): [category(v) for v in values] for name, values in given.items()}

    # ------------------------------------------------------------------ rows

    def transform(self, X) -> Any:
        """The rows as numbers, by what is known now; nothing is learned."""
        if not hasattr(self, "features_"):  # quicker than to let scikit-learn look
            check_is_fitted(self)
        return self._rows(X, lambda part, numbers: part.scaled(numbers))

    def transform_one(self, x: Any) -> np.ndarray:
        """One event, a dictionary of values or a 1-D array."""
        return self.transform(one_row(x))[0]

    def _rows(self, X: Any, scaled: Any) -> Any:
        table = self._table(X)
        numbers = self._numbers(table)
        if self.scale_ is not None and numbers.shape[1]:
            numbers = scaled(self.scale_, numbers)
        return self._dense(table, numbers) if self.hash is None else self._hashed(table, numbers)

    def _table(self, X: Any) -> Table:
        """The rows as a table that has all columns."""
        table = as_table(X)
        if not has_names(X):
            found, own = len(table.names), len(self.features_)
            if found != own:
                raise ValueError(f"X has {found} features, but {type(self).__name__} is expecting {own} features as input")
            return Table(dict(zip(self.features_, table.columns.values(), strict=True)))
        lacking = [name for name in self.features_ if name not in table.columns]
        if lacking:
            raise ValueError(f"there is no column {lacking[0]!r}; the columns are {', '.join(map(repr, table.names))}")
        return table

    def _numbers(self, table: Table) -> np.ndarray:
        """The columns of numbers."""
        names = [name for name in self.features_ if name not in self.categorical]
        numbers = np.empty((len(table), len(names)))
        for place, name in enumerate(names):
            numbers[:, place] = table.numbers(name)
        if not np.isfinite(numbers).all():
            for name, values in zip(names, numbers.T, strict=True):
                _check_present(name, np.isnan(values))
            raise ValueError("the rows contain infinity; fill or drop such values before they are encoded")
        return numbers

    def _dense(self, table: Table, numbers: np.ndarray) -> np.ndarray:
        n = len(table)
        rows = np.zeros((n, sum(len(self.categories_[name]) + 1 if name in self.categorical else 1 for name in self.features_)))
        place = taken = 0
        for name in self.features_:
            if name not in self.categorical:
                rows[:, place] = numbers[:, taken]
                place, taken = place + 1, taken + 1
                continue
            words, codes = _coded(table, name)
            known = self._places[name]
            columns = np.array([known.get(word, len(known)) for word in words], dtype=np.intp)
            rows[np.arange(n), place + columns[codes]] = 1.0
            place += len(known) + 1
        return rows

    def _hashed(self, table: Table, numbers: np.ndarray) -> sparse.csr_matrix:
        n, width = len(table), self.hash or 0
        hashed = sparse.csr_matrix((n, width))
        for name in (name for name in self.features_ if name in self.categorical):
            words, codes = _coded(table, name)
            columns = np.array([zlib.crc32(f"{name}={word}".encode()) % width for word in words], dtype=np.int32)
            hashed = hashed + sparse.csr_matrix((np.ones(n), columns[codes], np.arange(n + 1)), (n, width))
        return sparse.hstack([sparse.csr_matrix(numbers), hashed], format="csr")

    # ------------------------------------------------------------------ what it is now

    @property
    def is_running(self) -> bool:
        """Whether later rows change what is made of a row."""
        return self.scale is not None

    def get_feature_names_out(self, input_features=None) -> np.ndarray:
        """The names of the columns that come out."""
        check_is_fitted(self)
        names: list[str] = []
        for name in self.features_:
            if name not in self.categorical:
                names.append(name)
            elif self.hash is None:
                names += [f"{name}={value}" for value in (*self.categories_[name], "?")]
        return np.array([*names, *(f"hash={i}" for i in range(self.hash or 0))], dtype=object)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = tags.input_tags.string = True
        tags.transformer_tags.preserves_dtype = []
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "features_")

    def to_state(self) -> dict[str, Any]:
        """The state as JSON would hold it."""
        categorical = self.categorical
        scale = getattr(self, "scale_", None) or self.scale
        return {
            "part": "Encode",
            "categorical": self._checked() if isinstance(categorical, Mapping) else list(categorical),
            "hash": self.hash,
            "scale": None if scale is None else scale.to_state(),
            "features": list(getattr(self, "features_", ())),
            "categories": getattr(self, "categories_", {}),
            "named": hasattr(self, "feature_names_in_"),
        }

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Encode:
        """The step that ``to_state`` described."""
        scale = None if state["scale"] is None else part_from_state(state["scale"])
        part = cls(state["categorical"], state["hash"], None if scale is None else clone(scale))
        part._checked()
        features = tuple(state["features"])
        categories = {str(name): [str(v) for v in values] for name, values in state["categories"].items()}
        if not all(isinstance(name, str) for name in (*features, *part.categorical)) or len(set(features)) < len(features):
            raise ValueError("the names of columns must be words that differ")
        if features:
            if not set(part.categorical) <= set(features) or (part.hash is None and set(categories) != set(part.categorical)):
                raise ValueError("the categories are not those of the columns")
            part._settle(features, categories, bool(state["named"]), scale)
            numeric = len(features) - len(part.categorical)
            if scale is not None and getattr(scale, "n_features_in_", numeric) != numeric:
                raise ValueError(f"the scale is for {scale.n_features_in_} columns of numbers, but there are {numeric}")
        return part


def _categories(table: Table, name: str) -> list[str]:
    """The categories that occur in these rows of a column, sorted."""
    words, codes = _coded(table, name)
    return [words[place] for place in np.unique(codes)]


def _coded(table: Table, name: str) -> tuple[list[str], np.ndarray]:
    _check_present(name, table.missing(name))
    return table.categories(name)


def _check_present(name: str, gaps: np.ndarray) -> None:
    if gaps.any():
        row = int(gaps.argmax())
        raise RowError(f"row {row + 1} has no value in column {name!r}: fill NaN and None before they are encoded", row)


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
