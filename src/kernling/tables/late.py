"""Columns that come later than the first rows: they share a few encoded columns that were kept free for them."""

from __future__ import annotations

import zlib
from typing import Any, NamedTuple

import numpy as np

from ..components.scaling import MOST, REACH, standardise_column
from .dates import elapsed
from .scalers import SCALED, Scale
from .schema import Column, dates_of, kind_of
from .table import Table
from .written import is_gap, numbers

SPARE = 16  # encoded columns that are kept free if rows are dictionaries, whose keys come and go
HASHED = 4  # of these, for a column of categories


class LateColumn(NamedTuple):
    """A late column, the first of its encoded columns, and the running statistics of its numbers."""

    column: Column
    first: int
    count: float = 0.0  # type: ignore[assignment]
    mean: float = 0.0
    squares: float = 0.0

    @property
    def end(self) -> int:
        """Index after the last of its encoded columns."""
        return self.first + self.column.width

    @property
    def scale(self) -> Scale:
        """The scale of its numbers; 0 is the mean, and stands for a missing one."""
        return Scale(np.array(self.mean), np.sqrt(np.array(self.squares / max(self.count, 1.0))), reach=REACH)

    def encode(self, table: Table, rows: np.ndarray, learn: bool) -> LateColumn:
        """Write the encoded columns of a table into rows of 0; return this column after having learned them."""
        if self.column.name not in table.columns:
            return self
        if self.column.treatment == "category":
            words, codes = table.categories(self.column.name)
            places = np.array([zlib.crc32(word.encode()) % HASHED for word in words], dtype=np.intp)[codes]
            there = np.flatnonzero(~table.missing(self.column.name))
            rows[there, self.first + places[there]] = 1.0
            return self
        values = self._values(table)
        there = np.abs(values) <= SCALED
        if not learn:
            rows[there, self.first] = self.scale.scaled(values[there, np.newaxis])[:, 0]
            return self
        rows[there, self.first], (count, mean, squares) = standardise_column(values[there], self.count, self.mean, self.squares)
        return self._replace(count=count, mean=mean, squares=squares)

    def _values(self, table: Table) -> np.ndarray:
        if self.column.treatment == "date":
            return elapsed(dates_of(table, self.column.name, self.column.form), self.column.origin)
        return numbers(table.columns[self.column.name], self.column.form)

    def to_state(self) -> dict[str, Any]:
        """Return the column as JSON-compatible data."""
        return self._asdict() | {"column": self.column._asdict()}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> LateColumn:
        """Restore a column from the result of ``to_state``."""
        found = cls(**state | {"column": Column.from_plain(state["column"])})
        sizes = found.count, found.mean, found.squares
        right = all(type(size) is float and np.isfinite(size) for size in sizes) and found.count >= 0.0 <= found.squares
        if not right or abs(found.mean) > MOST or type(found.first) is not int or found.column.treatment == "ignore":
            raise ValueError(f"{found.column.name!r} is not a column that can come later")
        return found


def new_columns(table: Table, names: list[str], used: int, spare: int) -> list[LateColumn]:
    """Return columns for these names of a table, as many as fit into the free ones; names without any value are left out."""
    found = []
    for name in names:
        values = table.columns[name]
        if all(map(is_gap, values.tolist())):
            continue
        treatment, form = kind_of(values)
        others = HASHED if treatment == "category" else 0
        origin = 0
        if treatment == "date":
            times = dates_of(table, name, form)
            origin = int(times[~np.isnat(times)][0].astype(np.int64))
        column = Column(name, treatment, others=others, origin=origin, form=form, late=True)
        if used + column.width <= spare:
            found.append(LateColumn(column, used))
            used += column.width
    return found
