"""Single events that are dictionaries: their numbers are filled and scaled, and plain ones are also read, by one compiled call.

The statistics of all numbers are in one table; ``Fill`` and ``Standardise`` are made from it when they are needed.
"""

from __future__ import annotations

import copy
import struct
from collections.abc import Callable
from functools import cached_property, partial
from itertools import chain
from operator import itemgetter
from typing import Any

import numpy as np

from ..compiler import entry_point, jit_exact
from ..components.scaling import as_they_are, standardise
from ..core.limits import all_within, within
from .fill import Fill, fill_rows
from .scalers import SCALED, Standardise
from .schema import Schema

UNUSUAL = (KeyError, struct.error, TypeError, OverflowError)  # a name that is missing, or a value that is not a number
# rows of the table; totals are rows and clipped ones, gaps the rows that had some
STATISTICS = COUNT, FILL, DEVIATION, MEAN, SQUARES, KIND, TOTALS, GAPS = range(8)


@jit_exact
def _learn(X, out, table, after, clip):
    """Learn and scale one row, as filling and scaling do: write the table after it.  Return whether the row is usual."""
    if not all_within(X[0], SCALED):
        return False
    _learn_row(X, out, table, after, clip)
    return True


@jit_exact
def _learn_row(X, out, table, after, clip):
    """Same for a row that may have gaps, which are filled."""
    for r in range(table.shape[0]):
        for c in range(table.shape[1]):
            after[r, c] = table[r, c]
    totals = after[TOTALS]
    after[GAPS, 0] += fill_rows(X, after[COUNT], after[FILL], after[DEVIATION])
    totals[0], clipped = standardise(X, totals[0], after[MEAN], after[SQUARES], after[KIND], clip, out)
    totals[1] += clipped


@jit_exact
def _scale(X, out, table, clip):
    """Scale one row with the current statistics, as ``Scale.scaled`` does; return whether it is usual."""
    if not all_within(X[0], SCALED):
        return False
    _scale_row(X, out, table, clip)
    return True


@jit_exact
def _scale_row(X, out, table, clip):
    """Same for a row that may have gaps, which are filled."""
    count = max(table[TOTALS, 0], 1.0)
    as_is = as_they_are(table[KIND])
    for c in range(table.shape[1]):
        value, width = X[0, c], np.sqrt(table[SQUARES, c] / count)
        if value != value:  # NaN
            value = table[FILL, c]
        if table[KIND, c] <= as_is:
            out[0, c] = min(max(value, -clip), clip)
            continue
        out[0, c] = min(max((value - table[MEAN, c]) / width, -clip), clip) if width > 0.0 else 0.0


class PlainRows:
    """Reads events whose columns are all numbers, imputed and standardised; for one thread at a time.

    Others are left to ``Encode``, which gives the same for these.
    """

    def __init__(self, names: tuple[str, ...], reach: float, spare: int):
        self._names, self._reach, self._count, self._spare = names, reach, len(names), spare
        self._get: Callable = itemgetter(*names)
        given, scaled = bytearray(8 * len(names)), np.zeros((1, len(names) + spare))
        self._put: Callable = partial(struct.Struct(f"{len(names)}d").pack_into, given, 0)
        self.given = np.frombuffer(given)[np.newaxis]  # the last one that was read
        self._buffers = self.given, scaled
        self.event = scaled[0]  # the last one that was read, scaled
        self.after = np.empty((len(STATISTICS), len(names)))  # the table after it

    @cached_property
    def _learn(self) -> Callable:
        return entry_point(_learn, *self._buffers, self.after, self.after, 0.0)

    @cached_property
    def _scale(self) -> Callable:
        return entry_point(_scale, *self._buffers, self.after, 0.0)

    @classmethod
    def of(cls, schema: Schema, scale: Standardise, spare: int) -> PlainRows | None:
        """Return the reader for a table, or None if not all its columns are numbers without indicators."""
        if len(schema) < 2 or any(column.treatment != "number" or column.width != 1 for column in schema):
            return None
        return cls(tuple(column.name for column in schema), scale.reach, spare)

    def __reduce__(self) -> tuple[Any, ...]:
        return PlainRows, (self._names, self._reach, self._spare)

    def _reads(self, x: Any) -> bool:
        """Read an event, and return whether that was possible."""
        if type(x) is not dict or len(x) != self._count:
            return False
        try:
            self._put(*self._get(x))
        except UNUSUAL:
            return False
        return True

    def table(self, X: Any) -> np.ndarray | None:
        """Return rows, dictionaries of plain numbers or an array of them, as a new array; None if any is unusual."""
        if type(X) is np.ndarray and X.dtype == np.float64 and X.ndim == 2 and X.shape[1] == self._count and len(X):
            table = np.array(X, order="C")
        elif type(X) is list and X and all(type(x) is dict and len(x) == self._count for x in X):
            table = np.empty((len(X), self._count))
            try:
                struct.pack_into(f"{table.size}d", table.data, 0, *chain.from_iterable(map(self._get, X)))
            except UNUSUAL:
                return None
        else:
            return None
        return table if within(table, SCALED) else None

    def learns(self, x: Any, table: np.ndarray) -> bool:
        """Read an event, learn and scale it; return False if it is unusual."""
        given, scaled = self._buffers
        return self._reads(x) and self._learn(given, scaled, table, self.after, self._reach)

    def scales(self, x: Any, table: np.ndarray) -> bool:
        """Read an event and scale it with the current statistics; return False if it is unusual."""
        given, scaled = self._buffers
        return self._reads(x) and self._scale(given, scaled, table, self._reach)


class PlainStatistics:
    """The running statistics of an ``Encode``, and their table for events of plain numbers."""

    _plain_rows: PlainRows | None
    _filled: Fill
    _scaling: Any
    _scaled: int  # columns that are scaled, the first ones
    _has_table: bool  # whether all measured columns are filled and standardised
    missing: str
    _numbers: np.ndarray | None = None  # the table; None unless events of plain numbers have been read since the last others
    _is_ahead = False  # whether the table has learned what the others have not

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()  # type: ignore[assignment]
        return state | {
            name: copy.copy(state[name]) for name in ("_plain_rows", "_numbers") if name in state
        }  # its own buffers

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
            fill.count, fill.mean, fill.deviation, scale.mean_, scale.squares_, scale.kind_, totals, gaps = table.copy()
            fill.rows = int(gaps[0])
            scale.count_, scale.clipped_ = np.array(totals[0]), np.array(totals[1])
            self._filled, self._scaling, self._is_ahead = fill, scale, False

    def _table_now(self) -> np.ndarray | None:
        """Return the table; None before anything has been scaled."""
        if self._numbers is None and self._scaling.__sklearn_is_fitted__():
            fill, scale = self._filled, self._scaling
            totals, gaps = np.zeros((2, len(fill.mean)))
            totals[:2], gaps[0] = (scale.count_, scale.clipped_), fill.rows
            known = fill.count, fill.mean, fill.deviation, scale.mean_, scale.squares_, scale.kind_
            self._numbers = np.array([*known, totals, gaps])
        return self._numbers

    def _transformed(self, values: np.ndarray) -> np.ndarray:
        """Scale values in place with the current statistics."""
        if self.scale_ is not None and self._scaled:
            values[:, : self._scaled] = self.scale_.scaled(values[:, : self._scaled])
        return values

    def _learned(self, values: np.ndarray, scaled: Any) -> np.ndarray:
        """Learn values, and fill and scale them in place; ``scaled`` is a function of the scaling and of the values."""
        if self.missing == "impute":
            self._fill = self._fill.learn(values)
        if self.scale_ is not None and self._scaled:
            self.scale_ = self.scale_.twin()  # so that a copy of the attributes is a copy of the state
            values[:, : self._scaled] = scaled(self.scale_, np.ascontiguousarray(values[:, : self._scaled]))
        return values

    def _learned_row(self, values: np.ndarray) -> np.ndarray:
        """Return the values of one row, NaN where missing, learned, filled and scaled; they may be changed."""
        table = self._table_now() if self._has_table else None
        if table is None:
            return self._learned(values, lambda part, rows: part.learn_checked(rows))
        after, out = np.empty_like(table), np.empty_like(values)
        _learn_row(values, out, table, after, self._scaling.reach)
        self._numbers, self._is_ahead = after, True
        return out

    def _scaled_row(self, values: np.ndarray) -> np.ndarray:
        """Return the values of one row filled and scaled with the current statistics; they may be changed."""
        table = self._table_now() if self._has_table else None
        if table is None:
            return self._transformed(self._fill.filled(values) if np.isnan(values).any() else values)
        out = np.empty_like(values)
        _scale_row(values, out, table, self._scaling.reach)
        return out

    def _plain_table(self, X: Any) -> np.ndarray | None:
        """Return rows of plain numbers as a new array; None for any others."""
        return None if self._plain_rows is None else self._plain_rows.table(X)

    def learned_numbers(self, x: Any) -> np.ndarray | None:
        """Return an event of plain numbers as it is scaled if it is learned, in a buffer that the next one replaces.

        None stands for any other event.  Nothing has changed before ``accept`` is called.
        """
        rows, table = self._plain_rows, self._numbers
        if rows is None or (table is None and (table := self._table_now()) is None):
            return None
        return rows.event if rows.learns(x, table) else None

    @property
    def given_numbers(self) -> np.ndarray:
        """The last event of plain numbers as it was given, a table of one row."""
        rows: Any = self._plain_rows
        return rows.given

    def accept(self) -> None:
        """Continue with the statistics after the last event."""
        rows: Any = self._plain_rows
        self._numbers, rows.after, self._is_ahead = rows.after, self._numbers, True

    def scaled_numbers(self, x: Any) -> np.ndarray | None:
        """Return an event of plain numbers scaled with the current statistics, in the same buffer; None for any other."""
        rows, table = self._plain_rows, self._numbers
        if rows is None or (table is None and (table := self._table_now()) is None):
            return None
        return rows.event if rows.scales(x, table) else None
