"""Encoding of tables as numeric rows, with a treatment for each column; and restoring steps from model files."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.utils.validation import check_is_fitted

from ..estimators.constraints import short
from ..estimators.task_choice import task_of
from . import dates
from .facts import TellsColumns
from .fill import Fill
from .frames import as_table, has_names, one_row
from .given import OPTIONS, given_treatments
from .late import SPARE, LateColumn
from .past import Order, Past, wanted_of
from .plain import PlainRows, PlainStatistics
from .prose import Prose
from .reading import ReadsTables
from .scalers import SCALED, Standardise, scaling_from_state
from .schema import Column, Hints, Schema, decide, names_of
from .stored import StoredEncode
from .table import Table, no_column


class Encode(ReadsTables, TellsColumns, StoredEncode, PlainStatistics, TransformerMixin, BaseEstimator):
    """Encode tables as numeric rows; the treatment of each column is given or inferred from its first values.

    - Numbers stay one column, which is scaled if ``scale`` is given; booleans become 0 and 1, which are not scaled.  Text is
      taken as numbers if it is written like them, with thousands, decimal commas, currencies or per cent; marks such as "-",
      "n/a" and "?" are missing values.  Whole numbers that differ in each row, and increase or have a name like that of an id,
      are ignored.
    - Text becomes one column of 0 and 1 per category, and one for all others.  With more than ``limit`` categories, the most
      frequent ones have their own columns and the others are hashed into 16.  New categories are also hashed if many are to be
      expected: if more than 1 % of the first rows have a category of their own.
    - Prose, text that is mostly distinct and has four words or more on average, becomes 16 columns, or one if targets are
      values: the scores of a linear model of its words and pairs of words, hashed and weighted by how rare they are.  A row is
      scored before it is learned.  Without targets prose is ignored, and so is other text with mostly distinct values.
    - Dates (a date type, or text) become sine and cosine of month, weekday and, if present, time of day, and the number of
      elapsed days, which is scaled like other numbers.  Where day and month could be swapped, the data decide.

    Treatments are inferred from the first rows, and later rows never change the number of columns.  A warning names the columns
    that are ignored, with the reasons.  The input may be a :class:`Table`, a pandas or polars frame, an Arrow table, a mapping
    of columns (of values, for a single event), a list of dictionaries, or a 2-D array, whose columns are called x0, x1, ...
    Afterwards, columns are matched by name, in any order, and new columns are ignored with a warning; the columns of an array
    are matched by position.

    If rows are dictionaries and ``missing="impute"``, their keys may come and go: a key that is absent is a missing value, and
    new keys are new columns, which share 16 encoded columns that are kept free for them.

    Parameters
    ----------
    categorical : sequence of str or mapping of str to sequence
        Columns to treat as categories, even if their values look like numbers.  The categories are those given, or those of the
        first rows.
    hash : int or None
        Hash all categories into this many columns, which come after all others; rows are then sparse.
    scale : Standardise or MinMax, optional
        Running scaling of numbers and elapsed days; columns of 0 and 1 and angles are not scaled.
    numeric, date, text, ignore : sequence of str
        Columns to treat as numbers, as dates (numbers are seconds since 1970), as prose, or to ignore, whatever the first rows
        look like.
    missing : {"error", "impute"}
        With "impute", a value that is missing, above 1e70 or of the wrong type is replaced by the running mean of the values
        before it.  If a value is missing in the first rows, an indicator column is added.  A missing category
        then has its own column, and otherwise counts as one of the others.
    limit : int
        Maximum number of categories of a column that have their own columns.
    decimal : {".", ","}, optional
        Decimal mark in numbers that are text; by default the values of each column decide.
    day_first : bool, optional
        Whether 3/4/2026 is in April; by default the values of each column decide.
    lags : sequence of int or (str, int)
        For time series: adds columns with the target this many rows before each row, or with the value of another column, as in
        ``[1, 24, ("humidity", 1)]``.  Only learned rows count; a row that is predicted follows the last of them.
    windows : sequence of int or (str, int)
        In the same way, adds columns with the mean over this many rows before each row.
    time : str, optional
        The column of dates by which rows should be ordered; by default the only one, if there are lags or windows.

    Attributes
    ----------
    schema_ : Schema
        The treatment of each column and its number of encoded columns; prints as a table.
    scale_ : Standardise or MinMax
        The fitted scaling of numeric columns, if ``scale`` is given.
    imputed_ : int
        Number of learned rows in which a number, boolean or date was imputed.
    unread_ : dict of str to int
        For each column, the number of learned values that were not numbers or dates, nor marks of gaps: they count as missing.
    disordered_ : int
        Number of learned rows whose time is before that of an earlier row.

    Examples
    --------
    >>> import pandas
    >>> from kernling.tables import Encode, MinMax
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

    def __init__(
        self,
        categorical: Sequence[str] | Mapping[str, Sequence[Any]] = (),
        hash: int | None = None,
        scale: Any = None,
        *,
        numeric: Sequence[str] = (),
        date: Sequence[str] = (),
        text: Sequence[str] = (),
        ignore: Sequence[str] = (),
        missing: str = "error",
        limit: int = 64,
        decimal: str | None = None,
        day_first: bool | None = None,
        lags: Sequence[Any] = (),
        windows: Sequence[Any] = (),
        time: str | None = None,
    ):
        self.categorical = categorical
        self.hash = hash
        self.scale = scale
        self.numeric = numeric
        self.date = date
        self.text = text
        self.ignore = ignore
        self.missing = missing
        self.limit = limit
        self.decimal = decimal
        self.day_first = day_first
        self.lags = lags
        self.windows = windows
        self.time = time

    # ------------------------------------------------------------------ learning

    def fit(self, X, y=None):
        """Fit names, treatments and scales to the rows, discarding earlier state; prose only with targets."""
        self.fit_transform(X, y)
        return self

    def fit_transform(self, X, y=None, task=None):
        """Fit to the rows and encode them; prose is scored by what was learned from the rows before."""
        learned = clone(self).begin(X, task or _task_of(y), y)
        before = learned._learn(X, lambda part, values: part.fit_transform(values), y)
        self.__dict__.pop("feature_names_in_", None)
        self.__dict__.update(vars(learned))
        if self._past.wanted:
            return before
        rows = self.transform(X)
        for _, places in self._texts():
            rows[:, places] = before[:, places]
        return rows

    def partial_fit(self, X, y=None):
        """Update scales and scores with the rows; names and treatments are determined by the first rows."""
        self.learn_transform(X, y)
        return self

    def learn_transform(self, X: Any, y: Any = None, task: str | None = None) -> Any:
        """Learn and encode the rows, each scaled with the statistics of the rows up to and including itself.

        Prose is scored by what was learned from the rows before.  The task is that of the targets, unless it is given.
        """
        self.begin(X, task or _task_of(y), y)
        return self._learn(X, lambda part, values: part.learn_checked(values), y)

    def begin(self, X: Any, task: str | None = None, y: Any = None) -> Encode:
        """Determine names and treatments from these rows, unless they are already known, without updating the scales."""
        if hasattr(self, "schema_"):
            return self
        given = given_treatments(self)
        table = as_table(X)
        unknown = [name for name in given if name not in table.columns]
        if unknown:
            option = next(one for one in OPTIONS if unknown[0] in getattr(self, one))
            raise ValueError(f"{option}: {no_column(unknown[0], table.names)}")
        past = Past(wanted_of(self.lags, self.windows))
        given |= _treatments(past, task)
        table = past.learned(table, y)[1]
        hints = Hints(given, self.missing == "impute", self.limit, self.decimal, self.day_first, Prose.width(task))
        schema = decide(table, hints)
        is_open = table.keyed and self.missing == "impute" and self.hash is None and any(column.width for column in schema)
        spare = SPARE if is_open else 0
        self._settle(schema, has_names(X), None if self.scale is None else clone(self.scale), spare=spare)
        self._prose = tuple(Prose(str(task)) for _ in self._texts())
        dates_there = names_of(schema, "date")
        self._time = self.time or (dates_there[0] if past.wanted and len(dates_there) == 1 else None)
        ignored = [column for column in schema if column.treatment == "ignore" and column.name not in given]
        if ignored:
            self._warn("", f"ignored: {Schema(ignored).ignored()}")
        if self.missing == "impute":
            self._fill.begin(self._values(table)[0])
        return self

    def _settle(self, schema: Schema, named: bool, scale: Any, fill: Fill | None = None, spare: int = 0) -> None:
        self._own, self.scale_, self._spare = schema, scale, spare
        self._past, self._order, self._time = Past(wanted_of(self.lags, self.windows)), Order(), None
        self._is_named = named
        self._welcome(())
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
                *((None, self._places[column.name]) if column.treatment == "category" else (place.get(column.name), None)),
            )
            for column, first in self._layout
            if column.width
        ]
        self._is_plain = self.hash is None and not names_of(schema, "text") and not self._past.wanted
        self._prose: tuple[Prose, ...] = ()  # of each text
        is_usual = self.missing == "impute" and type(scale) is Standardise
        self._plain_rows = PlainRows.of(schema, scale, spare) if is_usual else None
        self._has_table = is_usual and len(self._measured) == len(scaled) > 1
        firsts = {column.name: first for column, first in self._layout}
        self._firsts = [firsts[name] for name in self._measured]
        self._fill = Fill(len(self._measured)) if fill is None else fill
        self._told: tuple[str, ...] = ()  # columns already warned about
        self.unread_: dict[str, int] = {}

    def _welcome(self, late: tuple[LateColumn, ...]) -> None:
        """Set the columns that came after the first rows."""
        self._late = late
        self.schema_ = Schema((*self._own, *(one.column for one in late)))
        given = [column.name for column in self.schema_ if column.name not in self.past_names]
        self.n_features_in_ = len(given)
        if self._is_named:
            self.feature_names_in_ = np.array(given, dtype=object)

    # ------------------------------------------------------------------ rows

    def transform(self, X) -> Any:
        """Encode the rows with the current state, without learning."""
        if not hasattr(self, "schema_"):  # faster than scikit-learn's check
            check_is_fitted(self)
        plain = self._plain_table(X)
        if plain is not None:
            return self._padded(self._transformed(plain))
        table = self._past.ahead(self._table(X))
        values, times = self._values(table)
        absent = np.isnan(values)
        if absent.any():
            values = self._fill.filled(values)
        rows = self._rows(table, self._transformed(values), absent, times)
        self._score_texts(table, rows)
        for one in self._late:
            one.encode(table, rows[:, self._width :], learn=False)
        return rows if self.hash is None else self._hashed(table, rows)

    def _texts(self) -> list[tuple[str, slice]]:
        """Return the name of each column of prose and its encoded columns."""
        return [(one.name, slice(first, first + one.width)) for one, first in self._layout if one.treatment == "text"]

    def _score_texts(self, table: Table, rows: np.ndarray, y: Any = None) -> tuple[Prose, ...]:
        """Write the scores of prose into rows; return what is known of words after learning the targets, if there are any."""
        later = []
        for prose, (name, places) in zip(self._prose, self._texts(), strict=True):
            texts = _texts(table, name)
            learned, scores = prose.learn(texts, y) if prose.can_learn(texts, y) else (prose, prose.scores(texts))
            rows[:, places.start : places.start + scores.shape[1]] = scores
            later.append(learned)
        return tuple(later)

    def _learn(self, X: Any, scaled: Any, y: Any = None) -> Any:
        plain = self._plain_table(X)
        if plain is not None:
            return self._padded(self._learned(plain, scaled))
        past, table = self._past.learned(self._table(X, learn=True), y)
        values, times = self._values(table, learn=True)
        self._past = past
        if self._time is not None:
            self._order = self._order.learned(times[self._time])
        if self.disordered_:
            self._warn(
                "order", f"rows are not in order of {short(self._time)}: lags are those of rows before, whatever their times"
            )
        absent = np.isnan(values)
        rows = self._rows(table, self._learned(values, scaled), absent, times)
        self._prose = self._score_texts(table, rows, y)
        if self._late:
            self._late = tuple(one.encode(table, rows[:, self._width :], learn=True) for one in self._late)
        return rows if self.hash is None else self._hashed(table, rows)

    def _padded(self, rows: np.ndarray) -> np.ndarray:
        """Return rows with the columns that are kept free."""
        return np.hstack([rows, np.zeros((len(rows), self._spare))]) if self._spare else rows

    def transform_one(self, x: Any) -> np.ndarray:
        """Encode one event, a dictionary of values or a 1-D array."""
        found = self._plain_row(x)
        if found is None:
            return self.transform(one_row(x))[0]
        row, values = found
        return self._joined(row, self._scaled_row(values))

    def learn_transform_one(self, x: Any, y: Any = None, task: str | None = None) -> np.ndarray:
        """Learn one event and return it encoded with the updated state; prose is scored before it is learned."""
        found = self._plain_row(x)
        if found is None:
            return self.learn_transform(one_row(x), None if y is None else [y], task)[0]
        row, values = found
        return self._joined(row, self._learned_row(values))

    def _plain_row(self, x: Any) -> tuple[np.ndarray, np.ndarray] | None:
        """Return an event without its values, and its values, NaN where missing; None if it is unusual (the fast path).

        It is usual if it is a dictionary of plain numbers, texts, dates that are written, and gaps that are to be imputed.
        """
        if type(x) is not dict or not self._is_plain or self._time is not None:
            return None
        row, values, absent = np.zeros(self._width + self._spare), np.empty((1, len(self._measured))), 0
        for column, first, place, known in self._plan:
            value = x.get(column.name)
            if value is None:
                absent += column.name not in x
                if not column.gaps or self.missing != "impute":
                    return None
                row[first + column.width - 1] = 1.0
                if place is not None:
                    values[0, place] = np.nan
            elif known is not None:
                if not isinstance(value, str) or not value:
                    return None
                row[first + column.place(value, known)] = 1.0
            elif column.treatment == "date":
                time = dates.moment(value, column.form) if isinstance(value, str) else None
                if time is None or np.isnat(time):
                    return None
                values[0, place], angles = dates.elapsed_and_angles(time, column.origin, column.clock)
                row[first + 1 : first + 1 + len(angles)] = angles
            elif isinstance(value, (float, int)) and -SCALED <= value <= SCALED:
                values[0, place] = value
            else:
                return None
        has_others = len(x) + absent != len(self._plan) and not x.keys() <= self._places.keys()  # which may be new
        return None if has_others or absent == len(self._plan) else (row, values)

    def _joined(self, row: np.ndarray, values: np.ndarray) -> np.ndarray:
        row[self._firsts] = values[0]
        return row

    def _rows(self, table: Table, values: np.ndarray, absent: np.ndarray, times: dict[str, np.ndarray]) -> Any:
        rows = np.zeros((len(table), self._width + self._spare))
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
        return rows

    def _codes(self, table: Table, column: Column) -> np.ndarray:
        """Return for each row the index of the category column that is 1."""
        words, codes = table.categories(column.name)
        known = self._places[column.name]
        places = np.array([column.place(word, known) for word in words], dtype=np.intp)[codes]
        gaps = table.missing(column.name)
        if gaps.any():
            self._check_gaps(column.name, gaps)
            places[gaps] = column.width - 1 if column.gaps else column.place("", known)
        return places

    def _hashed(self, table: Table, dense: np.ndarray) -> sparse.csr_matrix:
        n, width = len(table), self.hash or 0
        hashed = sparse.csr_matrix((n, width))
        for name in names_of(self._own, "category"):
            words, codes = table.categories(name)
            self._check_gaps(name, table.missing(name))
            columns = np.array([zlib.crc32(f"{name}={word}".encode()) % width for word in words], dtype=np.int32)
            hashed = hashed + sparse.csr_matrix((np.ones(n), columns[codes], np.arange(n + 1)), (n, width))
        return sparse.hstack([sparse.csr_matrix(dense), hashed], format="csr")

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = tags.input_tags.string = True
        tags.input_tags.allow_nan = self.missing == "impute"
        tags.transformer_tags.preserves_dtype = []
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "schema_")


def _treatments(past: Past, task: str | None) -> dict[str, str]:
    """Return the treatments of columns of the past that are known: means, and targets of a task."""
    kinds = {"classification": "category", "regression": "number"}
    targets = [one for one in past.wanted if one.source is None]
    if targets and task not in kinds:
        raise ValueError("lags and windows of the target need a classifier or a regressor")
    if task == "classification" and any(one.is_mean for one in targets):
        raise ValueError("windows of the target need targets that are numbers, not labels")
    return {one.name: kinds[str(task)] for one in targets} | {one.name: "number" for one in past.wanted if one.is_mean}


def _task_of(y: Any) -> str | None:
    return None if y is None else task_of(y)


def _texts(table: Table, name: str) -> list[str | None]:
    """Return a column as texts, None where there is none."""
    words, codes = table.categories(name)
    return [None if gap else words[code] for code, gap in zip(codes.tolist(), table.missing(name).tolist(), strict=True)]


def part_from_state(state: dict[str, Any], arrays: dict[str, np.ndarray] | None = None) -> Any:
    """Restore a step of any class from the result of ``to_state`` and, if it has any, its arrays.

    Examples
    --------
    >>> import numpy as np
    >>> from kernling.tables import MinMax, part_from_state
    >>> part = MinMax()
    >>> _ = part.learn_transform(np.array([[0.0], [4.0]]))
    >>> print(part_from_state(part.to_state()).transform(np.array([[1.0]])))
    [[0.25]]
    """
    if state.get("part") == "Encode":
        return Encode.from_state(state, arrays)
    if arrays:
        raise ValueError(f"{state.get('part')!r} has no arrays")
    return scaling_from_state(state)
