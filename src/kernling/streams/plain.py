"""Single events that are dictionaries of numbers: read, checked and scaled by one compiled call."""

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


@jit_exact
def _are_numbers(X):
    """Return whether all numbers can be scaled: NaN cannot."""
    outside = 0
    for c in range(X.shape[1]):
        if not abs(X[0, c]) <= SCALED:
            outside += 1
    return outside == 0


@jit_exact
def _learn(X, fill_count, fill_mean, deviation, count, mean, squares, clip, out):
    """Learn and scale one row, as filling and scaling do; return -1 as the number of rows if the row is unusual."""
    if not _are_numbers(X):
        return -1.0, 0
    fill_rows(X, fill_count, fill_mean, deviation)
    return standardise(X, count, mean, squares, clip, out)


@jit_exact
def _scale(X, count, mean, squares, clip, out):
    """Scale one row with the current statistics, as ``Scale.scaled`` does; return whether it is usual."""
    if not _are_numbers(X):
        return False
    for c in range(X.shape[1]):
        width = np.sqrt(squares[c] / max(count, 1.0))
        out[0, c] = min(max((X[0, c] - mean[c]) / width, -clip), clip) if width > 0.0 else 0.0
    return True


class PlainRows:
    """Reads events whose columns are all numbers, imputed and standardised; None stands for any unusual event.

    Others are left to ``Encode``, which gives the same for these.
    """

    def __init__(self, names: tuple[str, ...]):
        self._names = names
        self._get: Callable = itemgetter(*names)
        self._pack = struct.Struct(f"{len(names)}d").pack_into

    @cached_property
    def _learn(self) -> Callable:
        row, column = np.empty((1, len(self._names))), np.empty(len(self._names))
        return entry_point(_learn, row, column, column, column, 0.0, column, column, 0.0, row)

    @cached_property
    def _scale(self) -> Callable:
        row, column = np.empty((1, len(self._names))), np.empty(len(self._names))
        return entry_point(_scale, row, 0.0, column, column, 0.0, row)

    @classmethod
    def of(cls, schema: Schema) -> PlainRows | None:
        """Return the reader for a table, or None if not all its columns are numbers without indicators."""
        if len(schema) < 2 or any(column.treatment != "number" or column.width != 1 for column in schema):
            return None
        return cls(tuple(column.name for column in schema))

    def __reduce__(self) -> tuple[Any, ...]:
        return PlainRows, (self._names,)

    def _read(self, x: Any, scale: Standardise) -> np.ndarray | None:
        if type(x) is not dict or len(x) != len(self._names) or not scale.__sklearn_is_fitted__():
            return None
        row = np.empty((1, len(x)))
        try:
            self._pack(row.data, 0, *self._get(x))
        except UNUSUAL:
            return None
        return row

    def learned(self, x: Any, fill: Fill, scale: Standardise) -> tuple[np.ndarray, Fill, Standardise] | None:
        """Return the scaled event, and the states after it, without changing the given ones."""
        row = self._read(x, scale)
        if row is None:
            return None
        fill, scale, out = fill.copied(), scale.copied(), np.empty_like(row)
        count, clipped = self._learn(
            row, fill.count, fill.mean, fill.deviation, float(scale.count_), scale.mean_, scale.squares_, scale.reach, out
        )
        if count < 0.0:
            return None
        scale.advance(count, clipped)
        return out[0], fill, scale

    def scaled(self, x: Any, scale: Standardise) -> np.ndarray | None:
        """Return the event scaled with the current statistics."""
        row = self._read(x, scale)
        if row is None:
            return None
        out = np.empty_like(row)
        return out[0] if self._scale(row, float(scale.count_), scale.mean_, scale.squares_, scale.reach, out) else None
