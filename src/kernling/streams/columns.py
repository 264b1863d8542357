"""From tables as they are read to rows and targets: which columns are used, and which rows are whole."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from numbers import Number
from typing import Any

import numpy as np

from .base import Chunk, Stream
from .schema import kind_of
from .tables import FEW, RowError, Table, category, missing

MISSING = ("error", "drop", "keep")


class Columns:
    """Separates the rows of tables from their targets; see the parameters of these names of :func:`stream`."""

    def __init__(
        self,
        target: str | int | None = None,
        features: Sequence[str] | None = None,
        categorical: Sequence[str] = (),
        missing: str = "error",
    ):
        if missing not in MISSING:
            raise ValueError(f"missing must be 'error', 'drop' or 'keep', not {missing!r}")
        if not isinstance(target, (str, int, type(None))):
            raise TypeError(f"target must be the name or the place of a column, not {target!r}")
        for name, names in (("features", () if features is None else features), ("categorical", categorical)):
            if isinstance(names, (str, bytes)) or not isinstance(names, Iterable):
                raise TypeError(f"{name} must be a list of names, not {names!r}")
        self.target = target
        self.features = None if features is None else tuple(features)
        self.categorical = tuple(categorical)
        self.missing = missing
        self.dropped = 0  # rows left out because a value was missing
        self._labels: bool | None = None  # whether targets are text, once one was seen
        self._numbers: frozenset[str] | None = None  # the columns whose first values are numbers

    def split(self, table: Table, first_row: int = 0) -> tuple[Table, Any]:
        """The rows and targets of a table; ``first_row`` is the place of its first row in the stream, for messages."""
        names = self._chosen(table.names)
        rows = {name: table.columns[name] for name in names}
        y = None if self.target is None else self._targets(table, first_row)
        if self.missing == "keep":
            return Table(rows), y
        if self._numbers is None:
            self._numbers = frozenset(n for n in names if n not in self.categorical and kind_of(rows[n]) == "number")
        rows |= {name: table.numbers(name, first_row) for name in names if name in self._numbers}
        good = self._complete(rows, y, first_row)
        places = first_row + np.arange(len(table)) if self.missing == "drop" else None
        if good.all():
            return Table(rows, places), y
        self.dropped += int((~good).sum())
        return Table(rows, places)[good], None if y is None else y[good]

    def _chosen(self, names: Sequence[str]) -> tuple[str, ...]:
        """The features; settles from a table's names which column is the target and which are features."""
        if isinstance(self.target, int):
            if not -len(names) <= self.target < len(names):
                raise ValueError(f"target is column {self.target}, but there are {len(names)} columns")
            self.target = names[self.target]
        if self.features is None:
            self.features = tuple(name for name in names if name != self.target)
            unknown = [name for name in self.categorical if name not in names]
            if unknown:
                listed = ", ".join(map(repr, names))
                raise ValueError(f"categorical names {unknown[0]!r}, which is not among the columns {listed}")
        if not self.features:
            raise ValueError(f"there is no column to learn from besides the target {self.target!r}")
        lacking = [name for name in (*self.features, *([] if self.target is None else [self.target])) if name not in names]
        if lacking:
            raise ValueError(f"there is no column {lacking[0]!r}; the columns are {', '.join(map(repr, names))}")
        return self.features

    def _targets(self, table: Table, first_row: int) -> np.ndarray:
        """Numbers or labels, as the first ones were; None is a label that is missing."""
        values = table.columns[str(self.target)]
        gaps = missing(values)
        present = values[~gaps]
        if self._labels is None and len(present):
            texts = sum(not isinstance(v, (Number, np.bool_)) for v in present.tolist())
            self._labels = self.target in self.categorical or texts > FEW * len(present)
        if self._labels:
            return np.array([None if lost else category(v) for v, lost in zip(values, gaps, strict=True)], object)
        return values if values.dtype.kind in "biu" else table.numbers(str(self.target), first_row)

    def _complete(self, rows: dict[str, np.ndarray], y: Any, first_row: int) -> np.ndarray:
        """Which rows have all their values; raises for the first that holds infinity, or is not to be dropped."""
        good = np.ones(len(next(iter(rows.values()))), dtype=bool)
        for name, values in [*rows.items(), *([] if y is None else [(str(self.target), y)])]:
            infinite = np.isinf(values) if values.dtype.kind == "f" else np.zeros(len(values), dtype=bool)
            gaps = missing(values)
            if name == self.target:  # without it, a row says nothing
                gaps, infinite = gaps | infinite, infinite & (self.missing == "error")
            wrong = gaps | infinite if self.missing == "error" else infinite
            if wrong.any():
                row = int(wrong.argmax())
                what = "an infinite value" if infinite[row] else "no value"
                cure = "; missing='drop' leaves such rows out" if gaps[row] else ""
                raise RowError(f"row {first_row + row + 1} has {what} in column {name!r}{cure}", row)
            good &= ~gaps
        return good


def table_chunks(self: Stream, tables: Iterable[Table], columns: Columns) -> Iterator[Chunk]:
    """The rows of tables that a stream reads; those before a damaged one come before its error."""
    row = 0
    for table in tables:
        damage: RowError | None = None
        while True:
            try:
                rows, y = columns.split(table, row)
                break
            except RowError as error:  # the rows before it are good, unless another column names an even earlier one
                damage = error
                table = table[: error.place]
        self.names, self.target, self.dropped = columns.features, columns.target, columns.dropped
        row += len(table)
        yield rows, y
        if damage:
            raise damage
