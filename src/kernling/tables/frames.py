"""Conversion of frames, Arrow tables, dictionaries and arrays to tables.

By hand rather than with narwhals, which converts times with a zone to UTC (dates here use the local hour), refuses record
batches and integer column names, and takes 1.4 to 8 times as long.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_array

from ..estimators.checking import check_type, refuse_lazy
from ..estimators.constraints import short
from ..extras import need_pyarrow
from .table import Table, joined, objects


def frames(source: Any) -> Iterator[Table]:
    """Yield the tables of a frame, or of an iterable of frames."""
    refuse_lazy("source", source)
    if isinstance(source, Table):
        yield source
    elif hasattr(source, "schema") and hasattr(source, "num_rows"):
        yield arrow_table(source)
    elif hasattr(source, "__arrow_c_stream__") and not hasattr(source, "to_numpy"):  # Arrow's interface, as in duckdb
        for batch in need_pyarrow().RecordBatchReader.from_stream(source):
            yield arrow_table(batch)
    elif hasattr(source, "columns") and hasattr(source, "__getitem__"):
        check_names(list(map(str, source.columns)))
        yield Table({str(name): _column_of(source[name]) for name in source.columns})
    elif isinstance(source, Iterable) and not isinstance(source, (str, bytes, Mapping)):
        for part in source:
            yield from frames(part)
    else:
        raise TypeError(f"cannot stream a {type(source).__name__}; pass an array, a frame, an Arrow table, a path or '-'")


def _column_of(series: Any) -> np.ndarray:
    """Convert a pandas or polars column."""
    values = series.to_numpy()
    if values.dtype.kind in "biufUMm":
        return values
    values = np.array(series.to_list() if hasattr(series, "to_list") else list(values), dtype=object)
    if hasattr(series, "isna"):  # pandas has several missing values
        values[series.isna().to_numpy()] = None
    return values


def has_names(X: Any) -> bool:
    """Return whether rows have column names."""
    named = any(hasattr(X, name) for name in ("columns", "schema", "__arrow_c_stream__"))
    return named or isinstance(X, (Table, Mapping)) or _are_dictionaries(X)


def _are_dictionaries(X: Any) -> bool:
    return isinstance(X, (list, tuple)) and len(X) > 0 and all(isinstance(row, Mapping) for row in X)


def as_table(X: Any) -> Table:
    """Convert rows to a table: a frame, a dictionary of columns, a list of dictionaries, or an array (x0, x1, ...)."""
    refuse_lazy("X", X)
    if sparse.issparse(X):
        raise ValueError("a table is needed, but these rows are a sparse matrix, which needs no encoding")
    if isinstance(X, Mapping):
        return Table({str(name): np.asarray(values) for name, values in X.items()})
    if _are_dictionaries(X):
        keys = dict.fromkeys(name for row in X for name in row)
        return Table({str(name): objects([row.get(name) for row in X]) for name in keys}, keyed=True)
    if has_names(X):
        return joined(list(frames(X)))
    if np.ma.isMaskedArray(X) or getattr(getattr(X, "dtype", None), "kind", "") == "c":
        check_type("X", X)
    X = check_array(X, dtype=None, ensure_all_finite=False)
    return Table({f"x{place}": column for place, column in enumerate(X.T)})


def named_row(x: Any) -> Any:
    """Convert one event with names, such as a row of a frame or a named tuple, to a dictionary; return others unchanged."""
    if isinstance(x, tuple) and hasattr(x, "_asdict"):
        return x._asdict()
    return x.to_dict() if hasattr(x, "to_dict") and hasattr(x, "index") else x


def one_row(x: Any) -> Any:
    """Convert one event to a table or array of one row."""
    x = named_row(x)
    if isinstance(x, Mapping):
        return Table({str(name): objects([value]) for name, value in x.items()}, keyed=True)
    return np.asarray(x)[np.newaxis]


def check_names(names: list[str]) -> None:
    """Raise if two columns have the same name."""
    known: set[str] = set()
    for name in names:
        if name in known:
            raise ValueError(f"two columns are called {short(name)}; give them distinct names")
        known.add(name)


def arrow_table(batch: Any) -> Table:
    """Convert a record batch or Arrow table to a Table; numbers with missing values become float64 with NaN."""
    pyarrow = need_pyarrow()
    check_names(batch.schema.names)
    table: dict[str, np.ndarray] = {}
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        if pyarrow.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        if pyarrow.types.is_decimal(column.type):
            column = column.cast(pyarrow.float64())
        if pyarrow.types.is_time(column.type):  # of day: the time since midnight
            whole = column.cast(pyarrow.int32() if column.type.bit_width == 32 else pyarrow.int64()).cast(pyarrow.int64())
            column = whole.cast(pyarrow.duration(column.type.unit))
        table[name] = _as_numpy(pyarrow, column)
    return Table(table)


def _as_numpy(pyarrow: Any, column: Any) -> np.ndarray:
    """Convert a column, where possible without its ``to_numpy``, which imports pandas."""
    types = pyarrow.types
    if isinstance(column, pyarrow.ChunkedArray):
        column = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
    if types.is_string(column.type):
        return objects(column.to_pylist())
    if not column.null_count and types.is_boolean(column.type):
        return np.array(column.to_pylist(), dtype=bool)
    if not column.null_count and types.is_primitive(column.type) and not types.is_temporal(column.type):
        return np.from_dlpack(column)
    return column.to_numpy(zero_copy_only=False)
