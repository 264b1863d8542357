"""Single events that are dictionaries of numbers: read, checked and scaled by one compiled call.

The statistics of all columns are in one table, which an event replaces; ``Fill`` and ``Standardise`` are made from it when they
are needed.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import cached_property
from operator import itemgetter
from typing import Any

import numpy as np

from ..components.scaling import standardise
from ..core.jit import entry_point, jit_exact
from .fill import Fill, fill_rows
from .parts import SCALED, Standardise
from .schema import Schema

UNUSUAL = (KeyError, struct.error, TypeError, OverflowError)  # a name that is missing, or a value that is not a number
GIVEN, OUT, COUNT, FILL, DEVIATION, MEAN, SQUARES, TOTALS = range(8)  # rows of the table; the totals are rows and clipped rows


@jit_exact
def _are_numbers(row):
    """Return whether all numbers can be scaled: NaN cannot."""
    outside = 0
    for c in range(row.size):
        if not abs(row[c]) <= SCALED:
            outside += 1
    return outside == 0


@jit_exact
def _learn(table, clip):
    """Learn and scale the given row, as filling and scaling do; return whether it is usual."""
    if not _are_numbers(table[GIVEN]):
        return False
    X, out, totals = table[GIVEN : GIVEN + 1], table[OUT : OUT + 1], table[TOTALS]
    fill_rows(X, table[COUNT], table[FILL], table[DEVIATION])
    totals[0], clipped = standardise(X, totals[0], table[MEAN], table[SQUARES], clip, out)
    totals[1] += clipped
    return True


@jit_exact
def _scale(table, rows, clip):
    """Scale the given one of two rows with the current statistics, as ``Scale.scaled`` does; return whether it is usual."""
    if not _are_numbers(rows[GIVEN]):
        return False
    count = max(table[TOTALS, 0], 1.0)
    for c in range(table.shape[1]):
        width = np.sqrt(table[SQUARES, c] / count)
        rows[OUT, c] = min(max((rows[GIVEN, c] - table[MEAN, c]) / width, -clip), clip) if width > 0.0 else 0.0
    return True


class PlainRows:
    """Reads events whose columns are all numbers, imputed and standardised; None stands for any unusual event.

    Others are left to ``Encode``, which gives the same for these.
    """

    def __init__(self, names: tuple[str, ...], reach: float):
        self._names, self._reach = names, reach
        self._get: Callable = itemgetter(*names)
        self._pack: Callable = struct.Struct(f"{len(names)}d").pack_into

    @cached_property
    def _learn(self) -> Callable:
        return entry_point(_learn, np.empty((1, 1)), 0.0)

    @cached_property
    def _scale(self) -> Callable:
        return entry_point(_scale, np.empty((1, 1)), np.empty((1, 1)), 0.0)

    @classmethod
    def of(cls, schema: Schema, scale: Standardise) -> PlainRows | None:
        """Return the reader for a table, or None if not all its columns are numbers without indicators."""
        if len(schema) < 2 or any(column.treatment != "number" or column.width != 1 for column in schema):
            return None
        return cls(tuple(column.name for column in schema), scale.reach)

    def __reduce__(self) -> tuple[Any, ...]:
        return PlainRows, (self._names, self._reach)

    def _reads(self, x: Any, table: np.ndarray) -> bool:
        """Write an event into a table, and return whether that was possible."""
        if type(x) is not dict or len(x) != len(self._names):
            return False
        try:
            self._pack(table, 0, *self._get(x))
        except UNUSUAL:
            return False
        return True

    def learned(self, x: Any, table: np.ndarray) -> np.ndarray | None:
        """Return the table after an event, which is scaled in its row ``OUT``."""
        after = table.copy()
        return after if self._reads(x, after) and self._learn(after, self._reach) else None

    def scaled(self, x: Any, table: np.ndarray) -> np.ndarray | None:
        """Return the event scaled with the current statistics."""
        rows = np.empty((2, len(self._names)))
        return rows[OUT] if self._reads(x, rows) and self._scale(table, rows, self._reach) else None


class PlainStatistics:
    """The running statistics of an ``Encode``, and their table for events of plain numbers."""

    _plain_rows: PlainRows | None
    _filled: Fill
    _scaling: Any
    _numbers: np.ndarray | None = None  # the table; None unless events of plain numbers have been read since the last others
    _is_ahead = False  # whether the table has learned what the others have not

    @property
    def _fill(self) -> Fill:
        self._catch_up()
        return self._filled

    @_fill.setter
    def _fill(self, fill: Fill) -> None:
        self._catch_up()
        self._filled, self._numbers = fill, None

    @property
    def scale_(self) -> Any:
        """The running scaling of numbers; None if they are not scaled."""
        self._catch_up()
        return self._scaling

    @scale_.setter
    def scale_(self, scale: Any) -> None:
        self._catch_up()
        self._scaling, self._numbers = scale, None

    def _catch_up(self) -> None:
        """Replace the statistics by those of the table, if it is ahead."""
        if self._is_ahead:
            table: Any = self._numbers
            fill, scale = self._filled.copied(), self._scaling.twin()
            fill.count, fill.mean, fill.deviation = table[COUNT], table[FILL], table[DEVIATION]
            scale.mean_, scale.squares_ = table[MEAN], table[SQUARES]
            scale.count_, scale.clipped_ = np.array(table[TOTALS, 0]), np.array(table[TOTALS, 1])
            self._filled, self._scaling, self._is_ahead = fill, scale, False

    def _table_now(self) -> np.ndarray | None:
        """Return the table; None before anything has been scaled."""
        if self._numbers is None and self._scaling.__sklearn_is_fitted__():
            fill, scale = self._filled, self._scaling
            totals = np.zeros(len(fill.mean))
            totals[:2] = scale.count_, scale.clipped_
            nothing = np.zeros(len(fill.mean))
            self._numbers = np.array(
                [nothing, nothing, fill.count, fill.mean, fill.deviation, scale.mean_, scale.squares_, totals]
            )
        return self._numbers

    def learned_numbers(self, x: Any) -> np.ndarray | None:
        """Return the table after an event of plain numbers, for ``accept``; None for any other."""
        table = self._table_now() if self._plain_rows else None
        return None if table is None else self._plain_rows.learned(x, table)  # type: ignore[union-attr]

    def accept(self, table: np.ndarray) -> None:
        """Continue with the statistics after an event."""
        self._numbers, self._is_ahead = table, True

    def scaled_numbers(self, x: Any) -> np.ndarray | None:
        """Return an event of plain numbers scaled with the current statistics; None for any other."""
        table = self._table_now() if self._plain_rows else None
        return None if table is None else self._plain_rows.scaled(x, table)  # type: ignore[union-attr]
