"""Conversion of dictionaries with varying features to rows with a fixed number of columns."""

from __future__ import annotations

import zlib
from collections.abc import Hashable, Iterable, Mapping
from typing import Any

import numpy as np

from ..warned import warn

NUMBERS = frozenset((float, int, bool, np.float64, np.float32, np.int64, np.int32, np.bool_))


class Vocabulary:
    """Assignment of features to columns.

    The first names get a column each, in the order in which they are learned, sorted within a row; once all
    columns are taken, further names share them by their hash (CRC-32), so that memory is bounded.  A feature that a row
    does not have, or that is None, is 0.  Text becomes a feature of its own: ``{"from": "JFK"}`` counts as ``{"from=JFK": 1}``.

    Parameters
    ----------
    columns : int
    names : iterable, optional
        Names that have a column from the start.

    Examples
    --------
    >>> from kernling.compat.names import Vocabulary
    >>> names = Vocabulary(3)
    >>> print(names.row({"b": 2.0}, learning=True), names.row({"a": 1.0, "b": 5.0}, learning=True))
    [2. 0. 0.] [5. 1. 0.]
    >>> print(names.row({"a": 3.0, "from": "JFK"}, learning=False))  # not learned, so the new name has no column yet
    [0. 3. 0.]
    """

    def __init__(self, columns: int, names: Iterable[Hashable] = ()):
        if columns < 1:
            raise ValueError(f"columns must be at least 1, not {columns}")
        self.columns = columns
        self.place = {name: place for place, name in enumerate(names)}
        self._warned = False

    @property
    def is_full(self) -> bool:
        return len(self.place) >= self.columns

    def row(self, x: Mapping[Hashable, Any], learning: bool) -> np.ndarray:
        """Return the row of an event; new names get columns only if it is going to be learned."""
        if not NUMBERS.issuperset(map(type, x.values())):
            x = _numbers(x)
        place = self.place
        new: Iterable[Hashable] = ()
        if not x.keys() <= place.keys():
            if learning:
                self._admit(x)
            new = x.keys() - place.keys() if self.is_full else ()
        row = np.zeros(self.columns)
        get = x.get
        row[: len(place)] = [get(name, 0.0) for name in place]
        for name in new:
            row[self._shared(name)] += x[name]
        return row

    def rows(self, table: Mapping[Any, np.ndarray], n: int, learning: bool) -> np.ndarray:
        """Return the rows of a table of numeric columns by name, in which NaN stands for missing features."""
        if learning:
            self._admit(table)
        out = np.zeros((n, self.columns))
        for name, values in table.items():
            place = self.place.get(name, self._shared(name) if self.is_full else None)
            if place is not None:
                out[:, place] += np.nan_to_num(values, nan=0.0, posinf=np.inf, neginf=-np.inf)
        return out

    def forget(self, known: int) -> None:
        """Release the columns of all but the first names."""
        while len(self.place) > known:
            self.place.popitem()

    def _admit(self, names: Iterable[Hashable]) -> None:
        for name in sorted((name for name in names if name not in self.place), key=str):
            if self.is_full:
                if not self._warned:
                    self._warned = True
                    warn(
                        f"all {self.columns} columns are taken, so {name!r} and all further names share them; "
                        "pass a larger columns= to to_river to avoid this",
                    )
                return
            self.place[name] = len(self.place)

    def _shared(self, name: Hashable) -> int:
        return zlib.crc32(str(name).encode()) % self.columns


def _numbers(x: Mapping[Hashable, Any]) -> dict[Hashable, float]:
    """Convert a row to one whose values are all numbers."""
    out: dict[Hashable, float] = {}
    for name, value in x.items():
        if isinstance(value, str):
            out[f"{name}={value}"] = 1.0
        elif value is not None:
            try:
                out[name] = float(value)
            except (TypeError, ValueError):
                raise TypeError(f"feature {name!r} must be a number or text, not {value!r}") from None
    return out
