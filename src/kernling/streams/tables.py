"""Frames and Arrow tables as chunks of rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from . import files
from .base import Chunk, Stream
from .columns import Columns, RowError, Table


def frames(source: Any) -> Iterator[Table]:
    """The tables of a frame, or of an iterable of frames."""
    if hasattr(source, "schema") and hasattr(source, "num_rows"):
        yield files.arrow_table(source)
    elif hasattr(source, "columns") and hasattr(source, "__getitem__"):
        files.check_names(list(map(str, source.columns)))
        yield {str(name): _column_of(source[name]) for name in source.columns}
    elif isinstance(source, Iterable) and not isinstance(source, (str, bytes, Mapping)):
        for part in source:
            yield from frames(part)
    else:
        raise TypeError(f"cannot stream a {type(source).__name__}; give an array, a frame, an Arrow table, a path or '-'")


def _column_of(series: Any) -> np.ndarray:
    """A pandas or polars column."""
    values = series.to_numpy()
    if values.dtype.kind in "biufU":
        return values
    values = np.array(series.to_list() if hasattr(series, "to_list") else list(values), dtype=object)
    if hasattr(series, "isna"):  # pandas has many values that are none
        values[series.isna().to_numpy()] = None
    return values


def table_chunks(self: Stream, tables: Iterable[Table], columns: Columns) -> Iterator[Chunk]:
    """The rows of tables that a stream reads; those before a damaged one come before its error."""
    row = 0
    for table in tables:
        if not table:
            raise ValueError("the table has no columns")
        damage: RowError | None = None
        while True:
            try:
                X, y = columns.rows(table, row)
                break
            except RowError as error:  # the rows before it are good, unless another column names an even earlier one
                damage = error
                table = {name: values[: error.place] for name, values in table.items()}
        self.names = columns.names
        row += len(next(iter(table.values())))
        yield X, y
        if damage:
            raise damage
