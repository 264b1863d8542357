"""Tables of named raw columns, before scaling and encoding."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

import numpy as np

from ..estimators.constraints import short
from ..text import check_text, flaw
from .written import PLAIN, is_gap, numbers

SHOWN = 10  # columns that a message lists


class RowError(ValueError):
    """Error about a row; ``place`` is its index in the table, so that the rows before it can still be used."""

    def __init__(self, message: str, place: int):
        super().__init__(message)
        self.place = place


class Table:
    """Raw named columns of equal length.

    Rows are selected as from an array (``table[:100]``, ``table[mask]``), and a table of numeric columns can be used in
    place of an array.

    Parameters
    ----------
    columns : mapping of str to 1-D array
    places : 1-D array, optional
        The place of each row in the stream it comes from, where rows in between were left out.
    keyed : bool
        Whether the rows were dictionaries, whose keys may come and go: a column that is not there has no values.

    Examples
    --------
    >>> import numpy as np
    >>> from kernling.tables import Table
    >>> table = Table({"hour": np.array([8, 17, 9]), "km": np.array([2.5, 3.0, 1.5])})
    >>> table.shape, table[1:].names
    ((3, 2), ('hour', 'km'))
    >>> print(np.asarray(table[:1]))
    [[8.  2.5]]
    """

    def __init__(self, columns: Mapping[str, np.ndarray], places: np.ndarray | None = None, keyed: bool = False):
        self.places = places
        self.keyed = keyed
        self.columns = {str(name): _durations_as_seconds(np.asarray(values)) for name, values in columns.items()}
        self._categories: dict[str, tuple[list[str], np.ndarray]] = {}
        if not self.columns:
            raise ValueError("the table has no columns")
        if len({values.shape for values in self.columns.values()}) > 1 or next(iter(self.columns.values())).ndim != 1:
            shapes = ", ".join(f"{name!r}: {values.shape}" for name, values in self.columns.items())
            raise ValueError(f"the columns of a table must be 1-D and equally long, not {shapes}")

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(self.columns)

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and columns."""
        return len(self), len(self.columns)

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def __getitem__(self, rows: slice | np.ndarray) -> Table:
        places = None if self.places is None else self.places[rows]
        part = Table({name: values[rows] for name, values in self.columns.items()}, places, self.keyed)
        part._categories = {name: (words, codes[rows]) for name, (words, codes) in self._categories.items()}
        return part

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        rows = np.column_stack([self.numbers(name) for name in self.columns])
        return rows if dtype is None else rows.astype(dtype, copy=False)

    def numbers(self, name: str, first_row: int = 0, form: str = PLAIN) -> np.ndarray:
        """Return a column, written in this form, as float64, NaN where there is no value; messages count from ``first_row``."""
        values = self.columns[name]
        check_plain(name, values)
        found = numbers(values, form)
        wrong = np.isnan(found)
        for row in np.flatnonzero(wrong).tolist() if values.dtype.kind in "OU" else ():
            value = values[row]
            if is_gap(value):
                continue
            if isinstance(value, int):
                what = f"a number of {len(str(value))} digits in column {name!r} is too large"
            else:
                cure = "add the column to categorical if its values are categories"
                what = f"{short(value)} in column {short(name)} is not a number; {cure}"
            raise RowError(f"row {first_row + row + 1}: {what}", row)
        return found

    def categories(self, name: str) -> tuple[list[str], np.ndarray]:
        """Return the categories of a column and the index of each row's category; cached, also for slices of the table."""
        if name not in self._categories:
            found: dict[Any, int] = {}
            column = self.columns[name]
            values = (column.astype("datetime64[s]") if column.dtype.kind == "M" else column).tolist()
            try:
                raw = np.array([found.setdefault((type(v), v), len(found)) for v in values], dtype=np.intp)
            except TypeError:  # only values with other values inside cannot be looked up
                raise _nested(name, next(v for v in values if not isinstance(v, Hashable))) from None
            words = {place: category(v, name) for (_, v), place in found.items()}  # 3, 3.0 and "3" are one category
            known = {word: place for place, word in enumerate(sorted(set(words.values())))}
            codes = np.array([known[words[place]] for place in range(len(words))], dtype=np.intp)
            self._categories[name] = list(known), codes[raw]
        return self._categories[name]

    def completed(self, names: Iterable[str]) -> Table:
        """Return the table with all of these columns, without values where it lacks them."""
        lacking = [name for name in names if name not in self.columns]
        return (
            Table(self.columns | {name: objects([None] * len(self)) for name in lacking}, self.places, self.keyed)
            if lacking
            else self
        )

    def missing(self, name: str) -> np.ndarray:
        """Return a mask of the rows without a value in a column; empty texts count as missing."""
        return missing(self.columns[name])


def listed(names: Iterable[str]) -> str:
    """Return the names of columns for messages, the first of them if there are many."""
    names = list(names)
    rest = f" and {len(names) - SHOWN:,} more" if len(names) > SHOWN else ""
    return ", ".join(map(short, names[:SHOWN])) + rest


def no_column(name: str, names: Iterable[str]) -> str:
    """Return the message that there is no column of this name; it suggests a similar one."""
    by_small_letters = {known.lower(): known for known in names}
    close = get_close_matches(name.lower(), by_small_letters, n=1)
    cure = f"did you mean {short(by_small_letters[close[0]])}?" if close else f"the columns are {listed(names)}"
    return f"there is no column {short(name)}; {cure}"


def check_plain(name: str, values: np.ndarray) -> None:
    """Raise if a column holds lists, structs or maps instead of single values."""
    if values.dtype.kind == "O":
        first = next((value for value in values if value is not None), None)
        if isinstance(first, (list, tuple, dict, set, np.ndarray)):
            raise _nested(name, first)


def _nested(name: str, value: Any) -> ValueError:
    kind = "structs or maps" if isinstance(value, dict) else "lists"
    return ValueError(f"column {name!r} holds {kind}: give each of their values a column of its own, or ignore it")


def _durations_as_seconds(values: np.ndarray) -> np.ndarray:
    if values.dtype.kind != "m":
        return values
    return np.where(np.isnat(values), np.nan, values / np.timedelta64(1, "s"))


def objects(values: Sequence[Any]) -> np.ndarray:
    """Return a column of values of any type."""
    column = np.empty(len(values), dtype=object)
    column[:] = values
    return column


def joined(tables: Sequence[Table]) -> Table:
    """Concatenate the rows of several tables, with the columns of the first; if they are keyed, with all columns."""
    places = [table.places for table in tables if table.places is not None]
    keyed = all(table.keyed for table in tables)
    names = dict.fromkeys(name for table in (tables if keyed else tables[:1]) for name in table.columns)
    parts = [table.completed(names) if keyed else table for table in tables]
    columns = {name: np.concatenate([part.columns[name] for part in parts]) for name in names}
    return Table(columns, np.concatenate(places) if places else None, keyed)


def places_of(X: Any, first: int) -> np.ndarray:
    """Return the positions of rows in their source: those that a table stores, or consecutive ones from ``first``."""
    places = getattr(X, "places", None)
    return np.arange(first, first + X.shape[0]) if places is None else places


def missing(values: np.ndarray) -> np.ndarray:
    """Return a mask of missing values: NaN, None and empty texts."""
    if values.dtype.kind == "f":
        return np.isnan(values)
    if values.dtype.kind == "M":
        return np.isnat(values)
    if values.dtype.kind in "OU":
        return np.array([v is None or v == "" or v != v for v in values.tolist()], dtype=bool)
    return np.zeros(len(values), dtype=bool)


def category(value: Any, column: str) -> str:
    """Return the name of a category: the same for 3, 3.0 and "3", so that it does not depend on a column's type."""
    if isinstance(value, (float, np.floating)) and float(value).is_integer():
        value = int(value)
    text = str(value)
    return check_text(f"column {short(column)}: the text", text) if flaw(text) else text
