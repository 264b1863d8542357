"""Tables as rows of numbers: every column finds its treatment; and steps from what a model file holds."""

from __future__ import annotations

import copy
import warnings
import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.utils.validation import check_is_fitted

from . import dates
from .fill import Fill
from .frames import as_table, has_names, one_row
from .parts import MinMax, Standardise
from .schema import Column, Schema, dates_of, decide, names_of
from .tables import RowError, Table, category, numbers

MOST = 2**31 - 1  # columns


class Encode(TransformerMixin, BaseEstimator):
    """Turns tables into rows of numbers; each column is treated as its name or its first values ask for.

    - Numbers stay one column, on a running scale if there is a ``scale``; so do booleans, as 0 and 1, which are not scaled.
    - Text becomes one column of 0 and 1 per category, and one for all others.  Of more than ``limit`` categories, the most
      frequent have a column of their own and the others are hashed into 16; so are those that come later where many are to be
      expected, since more than one row in a hundred has a category of its own.  Text that hardly repeats is ignored.
    - Dates (ISO 8601, or of a type of their own) become sine and cosine of month, weekday and time of day, if they have one,
      and the days elapsed, which are scaled like numbers.

    The first rows that come decide, and later rows never change the number of columns.  Takes :class:`Table`, pandas and polars
    frames, Arrow tables, dictionaries of columns (of values, for a single event), lists of dictionaries, and 2-D arrays, whose
    columns are called x0, x1, ...  Later, columns are found by name, in any order; a warning names those that are new.  The
    columns of an array are found by their place.

    Parameters
    ----------
    categorical : sequence of str or mapping of str to sequence
        Columns whose values are names, also where they look like numbers.  The categories are those given, or those of the
        first rows that come.
    hash : int or None
        Instead, categories are hashed into this many columns (after all others), and rows are sparse.
    scale : Standardise or MinMax, optional
        A running scale for numbers and elapsed days; columns of 0 and 1, and angles, stay as they are.
    numeric, date, ignore : sequence of str
        Columns that are numbers, dates, or nothing to learn from, whatever the first rows look like.  Numbers in a column of
        dates are seconds since 1970.
    missing : {"error", "impute"}
        With "impute", a value that is missing, infinite or not of its column's kind becomes the running mean of the values
        before it.  If a value is missing in the first rows, a further column of 0 and 1 says where.  A missing category
        has a column of its own then, and otherwise counts as one of the others.
    limit : int
        The largest number of categories of a column that have a column of their own.

    Attributes
    ----------
    schema_ : Schema
        The treatment of each column and the number of columns that it becomes; prints as a table.
    scale_ : Standardise or MinMax
        The scale of the columns of numbers, where there is one.
    imputed_ : int
        The number of rows learned in which a number, boolean or date was imputed.

    Examples
    --------
    >>> import pandas
    >>> from kernling.streams import Encode, MinMax
    >>> encode = Encode({"from": ["EWR", "JFK"]}, scale=MinMax())
    >>> print(encode.fit_transform(pandas.DataFrame({"from": ["JFK", "EWR", "JFK"], "km": [3.0, 4.0, 5.0]})))
    [[0.  1.  0.  0. ]
     [1.  0.  0.  0.5]
     [0.  1.  0.  1. ]]
    >>> print(encode.schema_)
    from  category (2 values)  3 columns
    km    number               1 column
    """

    takes_tables = True
    scale_: Any

    def __init__(
        self,
        categorical: Sequence[str] | Mapping[str, Sequence[Any]] = (),
        hash: int | None = None,
        scale: Any = None,
        *,
        numeric: Sequence[str] = (),
        date: Sequence[str] = (),
        ignore: Sequence[str] = (),
        missing: str = "error",
        limit: int = 64,
    ):
        self.categorical = categorical
        self.hash = hash
        self.scale = scale
        self.numeric = numeric
        self.date = date
        self.ignore = ignore
        self.missing = missing
        self.limit = limit

    # ------------------------------------------------------------------ learning

    def fit(self, X, y=None):
        """Forget everything; take names, treatments and scales from the rows."""
        learned = clone(self).begin(X)
        learned._learn(X, lambda part, values: part.fit_transform(values))
        self.__dict__.pop("feature_names_in_", None)
        self.__dict__.update(vars(learned))
        return self

    def partial_fit(self, X, y=None):
        """Go on learning: the first rows settle names and treatments, all rows move the scale."""
        self.learn_transform(X)
        return self

    def learn_transform(self, X: Any) -> Any:
        """The rows as numbers, each on the scale that was known when it came, itself included."""
        self.begin(X)
        return self._learn(X, lambda part, values: part.learn_transform(values))

    def begin(self, X: Any) -> Encode:
        """Settle names and treatments by these rows, unless they are settled; scales learn nothing."""
        if hasattr(self, "schema_"):
            return self
        given = self._checked()
        table = as_table(X)
        unknown = [name for name in given if name not in table.names]
        if unknown:
            option = next(one for one in ("categorical", "numeric", "date", "ignore") if unknown[0] in getattr(self, one))
            listed = ", ".join(map(repr, table.names))
            raise ValueError(f"{option} names {unknown[0]!r}, which is not among the columns {listed}")
        schema = decide(table, given, self.missing == "impute", self.limit)
        self._settle(schema, has_names(X), None if self.scale is None else clone(self.scale))
        if self.missing == "impute":
            self._fill.begin(self._values(table)[0])
        return self

    def _settle(self, schema: Schema, named: bool, scale: Any, fill: Fill | None = None) -> None:
        self.schema_, self.scale_ = schema, scale
        self.n_features_in_ = len(schema)
        if named:
            self.feature_names_in_ = np.array([column.name for column in schema], dtype=object)
        self._places = {column.name: {word: place for place, word in enumerate(column.categories)} for column in schema}
        scaled = names_of(schema, "number", "date")
        self._scaled = len(scaled)
        self._measured = [*scaled, *names_of(schema, "boolean")]  # a matrix of these is filled, then scaled in part
        place = {name: place for place, name in enumerate(self._measured)}
        dense = [column for column in schema if self.hash is None or column.treatment != "category"]
        ends = np.cumsum([0, *(column.width for column in dense)]).tolist()
        self._layout = list(zip(dense, ends[:-1], strict=True))
        self._width = ends[-1]
        self._plan = [
            (
                column,
                first,
                *((None, self._places[column.name]) if column.treatment == "category" else (place[column.name], None)),
            )
            for column, first in self._layout
            if column.width
        ]
        self._is_plain = self.hash is None and not names_of(schema, "date")
        self._firsts = [first for name in self._measured for column, first in self._layout if column.name == name]
        self._fill = Fill(len(self._measured)) if fill is None else fill
        self._told: frozenset[str] = frozenset()  # what was warned of

    def _checked(self) -> dict[str, Any]:
        """The treatments that are given, once the parameters have proved right."""
        if self.hash is not None and (not isinstance(self.hash, int) or not 1 <= self.hash <= MOST):
            raise ValueError(f"hash must be a whole number of columns from 1 to {MOST}, not {self.hash!r}")
        if not isinstance(self.limit, int) or not 1 <= self.limit <= MOST:
            raise ValueError(f"limit must be a whole number of at least 1, not {self.limit!r}")
        if self.missing not in ("error", "impute"):
            raise ValueError(
                f"missing must be 'error' or 'impute', not {self.missing!r}; stream(missing='drop') leaves rows out"
            )
        if self.scale is not None and not hasattr(self.scale, "learn_transform"):
            raise TypeError(f"scale must be Standardise() or MinMax(), not {self.scale!r}")
        words = self.categorical if isinstance(self.categorical, Mapping) else {}
        chosen = {"category": self.categorical, "number": self.numeric, "date": self.date, "ignore": self.ignore}
        given: dict[str, Any] = {}
        for treatment, names in (*chosen.items(), *(("category", values) for values in words.values())):
            if isinstance(names, (str, bytes)) or not isinstance(names, Iterable):
                option = {"category": "categorical", "number": "numeric"}.get(treatment, treatment)
                raise TypeError(f"{option} must be a list of names, not {names!r}")
        for treatment, names in chosen.items():
            for name in names:
                if name in given:
                    raise ValueError(f"column {name!r} cannot be both {given[name]} and {treatment}")
                given[str(name)] = treatment
        for name, values in words.items() if self.hash is None else ():
            given[str(name)] = [category(value) for value in values]
            if len(set(given[str(name)])) < len(given[str(name)]):
                raise ValueError(f"the categories of {name!r} must differ")
        return given

    # ------------------------------------------------------------------ rows

    def transform(self, X) -> Any:
        """The rows as numbers, by what is known now; nothing is learned."""
        if not hasattr(self, "schema_"):  # quicker than to let scikit-learn look
            check_is_fitted(self)
        table = self._table(X)
        values, times = self._values(table)
        absent = np.isnan(values)
        if absent.any():
            values = self._fill.filled(values)
        return self._rows(table, self._transformed(values), absent, times)

    def _transformed(self, values: np.ndarray) -> np.ndarray:
        if self.scale_ is not None and self._scaled:
            values[:, : self._scaled] = self.scale_.scaled(values[:, : self._scaled])
        return values

    def _learn(self, X: Any, scaled: Any) -> Any:
        table = self._table(X)
        values, times = self._values(table)
        absent = np.isnan(values)
        return self._rows(table, self._learned(values, scaled), absent, times)

    def _learned(self, values: np.ndarray, scaled: Any) -> np.ndarray:
        if self.missing == "impute":
            self._fill = self._fill.learn(values)
        if self.scale_ is not None and self._scaled:
            self.scale_ = copy.copy(self.scale_)  # so that a copy of the attributes is a copy of the state
            values[:, : self._scaled] = scaled(self.scale_, values[:, : self._scaled])
        return values

    def transform_one(self, x: Any) -> np.ndarray:
        """One event, a dictionary of values or a 1-D array."""
        found = self._plain_row(x)
        if found is None:
            return self.transform(one_row(x))[0]
        row, values = found
        return self._joined(row, self._transformed(values))

    def learn_transform_one(self, x: Any) -> np.ndarray:
        """Learn one event; returns it by what is known then."""
        found = self._plain_row(x)
        if found is None:
            return self.learn_transform(one_row(x))[0]
        row, values = found
        return self._joined(row, self._learned(values, lambda part, rows: part.learn_transform(rows)))

    def _plain_row(self, x: Any) -> tuple[np.ndarray, np.ndarray] | None:
        """The categories and the values of an event, if it is a dictionary of plain numbers and texts: the cheap way."""
        if type(x) is not dict or not self._is_plain:
            return None
        row, values = np.zeros(self._width), np.empty((1, len(self._measured)))
        for column, first, place, known in self._plan:
            value = x.get(column.name)
            if known is None:
                if not isinstance(value, (float, int)) or not -np.inf < value < np.inf:
                    return None
                values[0, place] = value
            elif isinstance(value, str) and value:
                row[first + column.place(value, known)] = 1.0
            else:
                return None
        if len(x) > len(self._plan):
            self._check_names(x)
        return row, values

    def _joined(self, row: np.ndarray, values: np.ndarray) -> np.ndarray:
        row[self._firsts] = values[0]
        return row

    def _table(self, X: Any) -> Table:
        """The rows as a table that has all columns."""
        table = as_table(X)
        if not has_names(X):
            found, own = len(table.names), self.n_features_in_
            if found != own:
                raise ValueError(f"X has {found} features, but {type(self).__name__} is expecting {own} features as input")
            return Table(dict(zip((column.name for column in self.schema_), table.columns.values(), strict=True)))
        self._check_names(table.columns)
        return table

    def _check_names(self, found: Mapping[str, Any]) -> None:
        lacking = [column.name for column in self.schema_ if column.treatment != "ignore" and column.name not in found]
        if lacking:
            what = "there is no column" if len(lacking) == 1 else "there are no columns"
            raise ValueError(f"{what} {', '.join(map(repr, lacking))}; the columns are {', '.join(map(repr, found))}")
        new = found.keys() - self._places.keys() if len(found) > len(self.schema_) else ()
        if new:
            listed = ", ".join(map(repr, sorted(new)))
            self._warn("", f"nothing was learned about the columns {listed}, which are ignored")

    def _warn(self, about: str, message: str) -> None:
        """Warn once about a column, or with an empty name about new ones."""
        if about not in self._told:
            self._told |= {about}
            warnings.warn(message, UserWarning, stacklevel=2)

    def _values(self, table: Table) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        """The columns of numbers, elapsed days and booleans, NaN where there is no value; and all dates."""
        values = np.empty((len(table), len(self._measured)))
        columns = {column.name: column for column in self.schema_}
        times = {name: dates_of(table, name) for name in names_of(self.schema_, "date")}
        for place, name in enumerate(self._measured):
            if name in times:
                values[:, place] = dates.elapsed(times[name], columns[name].origin)
            elif self.missing == "error":
                values[:, place] = table.numbers(name)
            else:
                values[:, place] = numbers(table.columns[name])
        if not np.isfinite(values).all():
            self._look_at_gaps(table, values)
        return values, times

    def _look_at_gaps(self, table: Table, values: np.ndarray) -> None:
        """Raise for missing values, or make them all NaN and warn of those that are there but cannot be read."""
        if self.missing == "error":
            for name, column in zip(self._measured, values.T, strict=True):
                _check_present(name, table.missing(name))
                _check_dates(table, name, np.isnan(column))
            raise ValueError("the rows contain infinity; fill or drop such values before they are encoded")
        values[np.isinf(values)] = np.nan
        for name, column in zip(self._measured, values.T, strict=True):
            wrong = np.isnan(column) & ~table.missing(name)
            if wrong.any():
                kind = next(one.treatment for one in self.schema_ if one.name == name)
                value = str(table.columns[name][int(wrong.argmax())])
                self._warn(name, f"{value!r} in column {name!r} is no {kind} that can be read, and counts as missing")

    def _rows(self, table: Table, values: np.ndarray, absent: np.ndarray, times: dict[str, np.ndarray]) -> Any:
        rows = np.zeros((len(table), self._width))
        index = {name: place for place, name in enumerate(self._measured)}
        for column, first in self._layout:
            if column.treatment == "category":
                rows[np.arange(len(table)), first + self._codes(table, column)] = 1.0
            elif column.is_measured:
                place = index[column.name]
                rows[:, first] = values[:, place]
                if column.gaps:
                    rows[:, first + column.width - 1] = absent[:, place]
            if column.treatment == "date":
                angles = dates.angles(times[column.name], column.clock)
                rows[:, first + 1 : first + 1 + angles.shape[1]] = angles
        return rows if self.hash is None else self._hashed(table, rows)

    def _codes(self, table: Table, column: Column) -> np.ndarray:
        """For each row, which of the columns of its category is 1."""
        words, codes = table.categories(column.name)
        known = self._places[column.name]
        places = np.array([column.place(word, known) for word in words], dtype=np.intp)[codes]
        gaps = table.missing(column.name)
        if gaps.any():
            self._check_gaps(column.name, gaps)
            places[gaps] = column.width - 1 if column.gaps else column.place("", known)
        return places

    def readable(self, X: Any) -> np.ndarray:
        """Which rows have what is needed to transform them; all of them where missing values are imputed."""
        table = self._table(X)
        good = np.ones(len(table), dtype=bool)
        for column in self.schema_ if self.missing == "error" else ():
            if column.treatment == "date":
                good &= ~np.isnat(dates_of(table, column.name))
            elif column.is_measured:
                good &= np.isfinite(numbers(table.columns[column.name]))
            elif column.treatment == "category":
                good &= ~table.missing(column.name)
        return good

    def _hashed(self, table: Table, dense: np.ndarray) -> sparse.csr_matrix:
        n, width = len(table), self.hash or 0
        hashed = sparse.csr_matrix((n, width))
        for name in names_of(self.schema_, "category"):
            words, codes = table.categories(name)
            self._check_gaps(name, table.missing(name))
            columns = np.array([zlib.crc32(f"{name}={word}".encode()) % width for word in words], dtype=np.int32)
            hashed = hashed + sparse.csr_matrix((np.ones(n), columns[codes], np.arange(n + 1)), (n, width))
        return sparse.hstack([sparse.csr_matrix(dense), hashed], format="csr")

    def _check_gaps(self, name: str, gaps: np.ndarray) -> None:
        if self.missing == "error":
            _check_present(name, gaps)

    # ------------------------------------------------------------------ what it is now

    @property
    def is_running(self) -> bool:
        """Whether later rows change what is made of a row."""
        return self.scale is not None or self.missing == "impute"

    @property
    def imputed_(self) -> int:
        """The number of rows learned in which a number, boolean or date was imputed."""
        return self._fill.rows

    def get_feature_names_out(self, input_features=None) -> np.ndarray:
        """The names of the columns that come out."""
        check_is_fitted(self)
        names = [name for column, _ in self._layout for name in column.names_out()]
        return np.array([*names, *(f"hash={i}" for i in range(self.hash or 0))], dtype=object)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = tags.input_tags.string = True
        tags.input_tags.allow_nan = self.missing == "impute"
        tags.transformer_tags.preserves_dtype = []
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "schema_")

    def to_state(self) -> dict[str, Any]:
        """The state as JSON would hold it."""
        given = self._checked()
        scale = getattr(self, "scale_", None) or self.scale
        names: Any = list(self.categorical)
        if isinstance(self.categorical, Mapping):
            names = {name: given[name] for name in names} if self.hash is None else {name: [] for name in names}
        return {
            "part": "Encode",
            "categorical": names,
            "numeric": list(self.numeric),
            "date": list(self.date),
            "ignore": list(self.ignore),
            "missing": self.missing,
            "limit": self.limit,
            "hash": self.hash,
            "scale": None if scale is None else scale.to_state(),
            "schema": [column._asdict() for column in getattr(self, "schema_", ())],
            "fill": self._fill.to_state() if hasattr(self, "schema_") else None,
            "named": hasattr(self, "feature_names_in_"),
        }

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Encode:
        """The step that ``to_state`` described."""
        scale = None if state["scale"] is None else part_from_state(state["scale"])
        params = {name: state[name] for name in ("categorical", "hash", "numeric", "date", "ignore", "missing", "limit")}
        part = cls(**params, scale=None if scale is None else clone(scale))
        given = part._checked()
        schema = Schema(Column.from_plain(column) for column in state["schema"])
        names = [column.name for column in schema]
        if len(set(names)) < len(names) or not all(isinstance(name, str) for name in given):
            raise ValueError("the names of columns must be words that differ")
        if schema:
            if not set(given) <= set(names):
                raise ValueError("the treatments are not those of the columns")
            measured = sum(column.is_measured for column in schema)
            part._settle(schema, bool(state["named"]), scale, Fill.from_state(state["fill"], measured))
            if scale is not None and getattr(scale, "n_features_in_", part._scaled) != part._scaled:
                raise ValueError(f"the scale is for {scale.n_features_in_} columns, but {part._scaled} are scaled")
        return part


def _check_present(name: str, gaps: np.ndarray) -> None:
    if gaps.any():
        row = int(gaps.argmax())
        raise RowError(f"row {row + 1} has no value in column {name!r}: fill NaN and None before they are encoded", row)


def _check_dates(table: Table, name: str, wrong: np.ndarray) -> None:
    if wrong.any():
        row = int(wrong.argmax())
        value = str(table.columns[name][row])
        raise RowError(
            f"row {row + 1}: {value!r} in column {name!r} is not a date as ISO 8601 writes it, such as 2026-01-31", row
        )


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
