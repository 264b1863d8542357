"""Splitting tables into rows and targets: selection of columns and handling of incomplete rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from numbers import Number
from typing import Any

import numpy as np

from .schema import kind_of
from .table import RowError, Table, category, check_plain, missing, no_column
from .written import FEW, PLAIN, form_of, numbers

MISSING = ("error", "drop", "keep")


class Columns:
    """Split tables into rows and targets; see :func:`stream` for the parameters."""

    def __init__(
        self,
        target: str | int | None = None,
        features: Sequence[str] | None = None,
        categorical: Sequence[str] = (),
        missing: str = "error",
        target_optional: bool = False,
        decimal: str | None = None,
    ):
        if missing not in MISSING:
            raise ValueError(f"missing must be 'error', 'drop' or 'keep', not {missing!r}")
        if not isinstance(target, (str, int, type(None))):
            raise TypeError(f"target must be the name or the position of a column, not {target!r}")
        for name, names in (("features", () if features is None else features), ("categorical", categorical)):
            if isinstance(names, (str, bytes)) or not isinstance(names, Iterable):
                raise TypeError(f"{name} must be a list of names, not {names!r}")
        self.target, self.target_optional = target, target_optional
        self.features = None if features is None else tuple(features)
        self._is_open = features is None and missing == "keep"  # whether further keys of dictionaries are further columns
        self.categorical = tuple(categorical)
        self.missing = missing
        self.decimal = decimal
        self.dropped = 0  # rows dropped because of missing values
        self._labels: bool | None = None  # whether targets are text, once known
        self._form = PLAIN  # how targets that are numbers are written
        self._rows = 0
        self._numbers: dict[str, str] = {}  # columns whose first values are numbers, and how these are written

    def split(self, table: Table, first_row: int = 0) -> tuple[Table, Any]:
        """Return the rows and targets of a table; ``first_row``, its offset in the stream, is used in messages."""
        if table.keyed and self.features is not None:
            table = table.completed([*self.features, *([self.target] if isinstance(self.target, str) else [])])
        names = self._chosen(table.names)
        if table.keyed and self._is_open:
            names = tuple(name for name in table.names if name != self.target)
            self.features = tuple(dict.fromkeys([*(self.features or ()), *names]))
        rows = {name: table.columns[name] for name in names}
        y = None if self.target is None else self._targets(table, first_row)
        if self.missing == "keep":
            return Table(rows, keyed=table.keyed), y
        for name in names:
            check_plain(name, rows[name])
        if not self._rows:  # a header that arrives alone tells nothing
            found = {name: kind_of(rows[name], self.decimal) for name in names if name not in self.categorical}
            self._numbers = {name: form for name, (treatment, form) in found.items() if treatment == "number"}
        self._rows += len(table)
        raw = Table(rows)
        rows |= {name: raw.numbers(name, first_row, form) for name, form in self._numbers.items()}
        good = self._complete(rows, y, first_row)
        places = first_row + np.arange(len(table)) if self.missing == "drop" else None
        if good.all():
            return Table(rows, places, table.keyed), y
        self.dropped += int((~good).sum())
        return Table(rows, places, table.keyed)[good], None if y is None else y[good]

    def _chosen(self, names: Sequence[str]) -> tuple[str, ...]:
        """Determine the target column from the names of a table, and return the feature columns."""
        if isinstance(self.target, int):
            if not -len(names) <= self.target < len(names):
                raise ValueError(f"target is column {self.target}, but there are {len(names)} columns")
            self.target = names[self.target]
        if self.target_optional and self.target not in names:
            self.target = None
        if self.features is None:
            self.features = tuple(name for name in names if name != self.target)
            unknown = [name for name in self.categorical if name not in names]
            if unknown:
                raise ValueError(f"categorical: {no_column(unknown[0], names)}")
        if not self.features:
            raise ValueError(f"there is no column to learn from besides the target {self.target!r}")
        known = set(names)
        lacking = [name for name in (*self.features, *([] if self.target is None else [self.target])) if name not in known]
        if lacking:
            raise ValueError(no_column(lacking[0], names))
        return self.features

    def _targets(self, table: Table, first_row: int) -> np.ndarray:
        """Return targets as numbers or labels, like the first ones; None is a missing label."""
        values = table.columns[str(self.target)]
        check_plain(str(self.target), values)
        if values.dtype.kind == "M" and self.target not in self.categorical:
            raise ValueError(
                f"the target {self.target!r} holds dates, and should hold labels or numbers, such as days from now"
            )
        gaps = missing(values)
        present = values[~gaps]
        if self._labels is None and len(present):
            self._labels = self.target in self.categorical or self._are_labels(present.tolist())
        if self._labels:
            return np.array(
                [
                    None if lost else self._label(v, first_row, row)
                    for row, (v, lost) in enumerate(zip(values, gaps, strict=True))
                ],
                object,
            )
        if values.dtype.kind in "biu":
            return values
        if self.target_optional:
            return numbers(values, self._form)
        return table.numbers(str(self.target), first_row, self._form)

    def _are_labels(self, present: list[Any]) -> bool:
        """Return whether targets are labels, and note how numbers are written: 1.234,56 is a number, but "3" a label."""
        texts = [value for value in present if not isinstance(value, (Number, np.bool_))]
        if len(texts) <= FEW * len(present):
            return False
        self._form = form_of(Counter(texts), self.decimal) or PLAIN
        return self._form == PLAIN

    def _label(self, value: Any, first_row: int, row: int) -> str:
        try:
            return category(value, str(self.target))
        except ValueError as error:
            raise RowError(f"row {first_row + row + 1}: {error}", row) from None

    def _complete(self, rows: dict[str, np.ndarray], y: Any, first_row: int) -> np.ndarray:
        """Return a mask of the complete rows; raise for infinite values and for incomplete rows that are not to be dropped."""
        good = np.ones(len(next(iter(rows.values()))), dtype=bool)
        for name, values in [*rows.items(), *([] if y is None or self.target_optional else [(str(self.target), y)])]:
            infinite = np.isinf(values) if values.dtype.kind == "f" else np.zeros(len(values), dtype=bool)
            gaps = missing(values)
            if name == self.target:  # a row without a target is useless
                gaps, infinite = gaps | infinite, infinite & (self.missing == "error")
            wrong = gaps | infinite if self.missing == "error" else infinite
            if wrong.any():
                row = int(wrong.argmax())
                what = "an infinite value" if infinite[row] else "no value"
                cure = "; use missing='drop' to drop such rows" if gaps[row] else ""
                raise RowError(f"row {first_row + row + 1} has {what} in column {name!r}{cure}", row)
            good &= ~gaps
        return good
