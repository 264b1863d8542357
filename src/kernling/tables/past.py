"""Streams in time: targets and columns of the rows before each row, as further columns of a table.

Only learned rows count, so there is nothing from the future: a row that is predicted follows the last learned one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from .table import Table, no_column, objects
from .written import numbers

MOST = {"lags": 10_000, "windows": 1_000}  # rows back
PLAIN = (int, float, str, bool, type(None))


class Wanted(NamedTuple):
    """A column of the past: the value so many rows before, or the mean of so many rows before."""

    source: str | None  # a column, or None for the target
    rows: int
    is_mean: bool

    @property
    def name(self) -> str:
        """Name of the column."""
        source = "target" if self.source is None else self.source
        return f"{source} mean of {self.rows} before" if self.is_mean else f"{source} {self.rows} before"

    def value(self, known: Sequence[Any], place: int) -> Any:
        """Return the value for the row at this place, of which only those before are looked at; None if there is none."""
        if not self.is_mean:
            return known[place - self.rows] if place >= self.rows else None
        there = [value for value in known[max(place - self.rows, 0) : place] if value is not None and value == value]
        return math.fsum(there) / len(there) if there else None  # exact, so that chunks make no difference


def wanted_of(lags: Any, windows: Any) -> tuple[Wanted, ...]:
    """Return the columns of the past that parameters ask for: rows back of the target, or pairs of a column and rows back."""
    found = []
    for option, given in (("lags", lags), ("windows", windows)):
        if isinstance(given, (str, bytes)) or not isinstance(given, Sequence):
            raise TypeError(f"{option} must be a list such as [1, 24, ('humidity', 1)], not {given!r}")
        for one in given:
            source, rows = one if isinstance(one, (tuple, list)) and len(one) == 2 else (None, one)
            most = MOST[option]
            if type(rows) is not int or not 1 <= rows <= most or not isinstance(source, (str, type(None))):
                what = f"numbers of rows from 1 to {most:,}, or pairs of a column and such a number"
                raise ValueError(f"{option} must be {what}, not {one!r}")
            found.append(Wanted(source, rows, option == "windows"))
    return tuple(dict.fromkeys(found))


class Past:
    """The last values of the target and of columns, as many as are needed; learning returns another object.

    Examples
    --------
    >>> import numpy as np
    >>> from kernling.tables import Table
    >>> from kernling.tables.past import Past, wanted_of
    >>> past, table = Past(wanted_of([1], [2])).learned(Table({"x": np.zeros(4)}), [1.0, 2.0, 3.0, 4.0])
    >>> print(table.columns["target 1 before"], table.columns["target mean of 2 before"])
    [None 1.0 2.0 3.0] [None 1.0 1.5 2.5]
    >>> print(past.ahead(Table({"x": np.zeros(1)})).columns["target 1 before"])
    [4.0]
    """

    def __init__(self, wanted: tuple[Wanted, ...], held: Mapping[str | None, tuple[Any, ...]] | None = None):
        self.wanted = wanted
        self.longest = {one.source: max(other.rows for other in wanted if other.source == one.source) for one in wanted}
        self.held = dict.fromkeys(self.longest, ()) if held is None else dict(held)

    @property
    def names(self) -> list[str]:
        """Names of its columns."""
        return [one.name for one in self.wanted]

    def learned(self, table: Table, y: Any) -> tuple[Past, Table]:
        """Return the past after the rows of a table, and the table with the past of each row."""
        known = {source: [*self.held[source], *self._values(table, source, y)] for source in self.longest}
        columns = {}
        for one in self.wanted:
            begin = len(self.held[one.source])
            columns[one.name] = [one.value(self._seen(known, one), begin + place) for place in range(len(table))]
        later = Past(self.wanted, {source: tuple(values[-self.longest[source] :]) for source, values in known.items()})
        return later, self._joined(table, columns)

    def ahead(self, table: Table) -> Table:
        """Return a table of rows that follow the last learned one."""
        columns = {}
        for one in self.wanted:
            seen = self._seen(self.held, one)
            columns[one.name] = [one.value(seen, len(seen))] * len(table)
        return self._joined(table, columns)

    @staticmethod
    def _seen(known: Mapping[str | None, Sequence[Any]], one: Wanted) -> Sequence[Any]:
        """Return the values of a column, as numbers if their mean is wanted."""
        return numbers(known[one.source]).tolist() if one.is_mean else known[one.source]

    @staticmethod
    def _joined(table: Table, columns: dict[str, list[Any]]) -> Table:
        added = {name: objects(values) for name, values in columns.items()}
        return Table(table.columns | added, table.places, table.keyed)

    @staticmethod
    def _values(table: Table, source: str | None, y: Any) -> list[Any]:
        """Return the values of a source, None for gaps, and for a target that is not there."""
        if source is None:
            values = [None] * len(table) if y is None else np.asarray(y).tolist()
        elif source in table.columns:
            values = table.columns[source].tolist()
        elif table.keyed:
            values = [None] * len(table)
        else:
            raise ValueError(f"lags: {no_column(source, table.names)}")
        if not all(isinstance(value, PLAIN) for value in values) or len(values) != len(table):
            raise ValueError(
                f"lags of {'the target' if source is None else repr(source)} need numbers or texts, one for each row"
            )
        return [None if value != value else value for value in values]

    # ------------------------------------------------------------------ as a file

    def to_state(self) -> list[Any]:
        """Return the values as JSON-compatible data."""
        return [[source, list(values)] for source, values in self.held.items()]

    def restored(self, state: list[Any]) -> Past:
        """Return the past with the values of ``to_state``."""
        held = {source: tuple(values) for source, values in state}
        if held.keys() != self.longest.keys() or any(len(values) > self.longest[source] for source, values in held.items()):
            raise ValueError("the values of rows before do not match the lags")
        for values in held.values():
            if not all(isinstance(value, PLAIN) and (type(value) is not float or math.isfinite(value)) for value in values):
                raise ValueError("the values of rows before are not numbers or texts")
        return Past(self.wanted, held)


class Order:
    """Counts rows whose time is before that of an earlier one; counting returns another object."""

    def __init__(self, latest: int | None = None, count: int = 0):
        self.latest, self.count = latest, count

    def learned(self, times: np.ndarray) -> Order:
        """Return the counts after these times."""
        seconds = times[~np.isnat(times)].astype("datetime64[s]").astype(np.int64)
        if not len(seconds):
            return self
        first = seconds[:1] if self.latest is None else np.array([self.latest])
        before = np.maximum.accumulate(np.concatenate([first, seconds]))
        return Order(int(before[-1]), self.count + int((seconds < before[:-1]).sum()))
