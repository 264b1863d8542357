"""Open arrays, tables and files as streams."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from ..brokers import is_url
from ..estimators.checking import refuse_lazy
from ..tables.columns import Columns
from ..tables.frames import frames
from ..tables.table import RowError, Table
from . import csv_text, files, libsvm
from .base import CHUNK, Chunk, Stream, cut_chunk, dense_pieces
from .events import Events


def stream(
    source: Any,
    y: Any = None,
    *,
    target: str | int | None = None,
    target_optional: bool = False,
    features: Sequence[str] | None = None,
    categorical: Sequence[str] = (),
    missing: str = "error",
    format: str | None = None,
    header: bool = True,
    delimiter: str | None = None,
    encoding: str | None = None,
    decimal: str | None = None,
    n_features: int | None = None,
    zero_based: bool = False,
    dense: bool = False,
    chunk: int = CHUNK,
) -> Stream:
    """Open any source of rows as a stream of (X, y) chunks.

    X is an array or sparse matrix if the source is one; otherwise it is a :class:`Table` of raw columns, which
    :class:`Encode`, the first step of a :class:`kernling.StreamPipeline`, converts to numbers.

    Parameters
    ----------
    source : object
        A NumPy array, SciPy sparse matrix or Table (with ``y``); a pandas or polars frame; an Arrow table, record batch or
        record batch reader; an iterable of record batches; a path, "-" for standard input, or an open binary file; a list of
        paths, which are read one after the other; the URL of a stream of a broker, such as "redis://localhost/flights", which
        never ends.  Files may be compressed (gz, xz, bz2, zst), which is detected from their
        content.
    y : array, optional
        Targets of an array or Table.
    target : str, int or None
        Target column: its name, or its position (-1 is the last); None if there is none.  Targets are numbers if the
        first ones are, except for a few damaged ones, and otherwise labels.
    target_optional : bool
        Whether the source may lack the target column; there are no targets then.
    features : sequence of str, optional
        Columns to use, in this order; by default all but the target.
    categorical : sequence of str
        Columns to treat as categories, even if their values look like numbers.  If the target is one of them, targets are
        labels.
    missing : {"error", "drop", "keep"}
        How to handle rows with missing values, which include empty texts and targets that are not finite.  With "keep", rows
        are returned as read, and values of the wrong type are not an error: ``Encode(missing="impute")`` handles them.
    format : {"libsvm", "csv", "parquet", "arrow", "jsonl"}, optional
        File format; by default detected from name and content.
    header : bool
        False if the first line of a CSV file is data; columns are then called f0, f1, ...
    delimiter : str, optional
        CSV delimiter; by default a tab for .tsv, otherwise the most frequent of comma, tab, semicolon and vertical bar in the
        first line.  With semicolons, numbers may have decimal commas.
    encoding : str, optional
        Encoding of text, such as "cp1252".  By default UTF-8, UTF-16 if the file begins with its mark, and for CSV files that
        are not UTF-8 cp1252, with a warning.
    decimal : {".", ","}, optional
        Decimal mark in numbers that are text; by default the values of each column decide.
    n_features : int, optional
        Number of columns of LIBSVM text.  By default files are read twice, first to find the largest index; sources that can be
        read only once, such as standard input, use the largest index of the first 8,192 rows.
    zero_based : bool
        Whether the indices of LIBSVM text start at 0.
    dense : bool
        Whether to convert sparse rows to dense arrays.
    chunk : int
        Number of rows per chunk.

    Returns
    -------
    Stream

    Examples
    --------
    >>> from kernling.io import stream
    >>> with open("two.libsvm", "w") as file:
    ...     _ = file.write("1 1:0.5 3:2\\n-1 2:1\\n")
    >>> X, y = stream("two.libsvm").load()
    >>> print(X.toarray(), y)
    [[0.5 0.  2. ]
     [0.  1.  0. ]] [ 1. -1.]
    """
    if n_features is not None and (not isinstance(n_features, int) or n_features < 1):
        raise ValueError(f"n_features must be an integer of at least 1, not {n_features!r}")
    if format is not None and format not in files.FORMATS:
        raise ValueError(f"format must be one of {', '.join(map(repr, files.FORMATS))}, not {format!r}")
    columns = Columns(target, features, categorical, missing, target_optional, decimal)
    how = _Reading(columns, format, header, delimiter, encoding, n_features, zero_based)
    pieces, once = _pieces(source, y, how)
    told = os.fspath(source) if _is_path(source) else type(source).__name__
    info = {"source": ", ".join(map(os.fspath, source)) if _are_paths(source) else told}
    kept: Any = {"chunk": chunk, "names": columns.features, "target": target, "info": info, "once": once}
    return Stream(dense_pieces(pieces) if dense else pieces, **kept)


class _Reading(NamedTuple):
    """Options for reading files."""

    columns: Columns
    format: str | None
    header: bool
    delimiter: str | None
    encoding: str | None
    n_features: int | None
    zero_based: bool


def _pieces(source: Any, y: Any, how: _Reading) -> tuple[Callable[[Stream], Iterator[Chunk]], bool]:
    """Return a function that yields the rows of a source in pieces of any size, and whether it can be called only once."""
    if isinstance(source, np.ndarray) or sparse.issparse(source) or (isinstance(source, Table) and y is not None):
        return _arrays(source, y), False
    if y is not None:
        raise ValueError("y is for arrays; name the target column of a table or file with target=")
    if _are_paths(source):
        return (lambda self: _files(self, source, how)), any(map(files.is_read_once, source))
    if isinstance(source, str) and is_url(source):
        source = Events(source)
    if _is_path(source) or hasattr(source, "read"):
        return (lambda self: _file(self, source, how)), files.is_read_once(source)
    refuse_lazy("source", source)
    return (lambda self: table_chunks(self, frames(source), how.columns)), not hasattr(source, "columns")


def _is_path(source: Any) -> bool:
    return isinstance(source, (str, os.PathLike))


def _are_paths(source: Any) -> bool:
    return isinstance(source, (list, tuple)) and len(source) > 0 and all(map(_is_path, source))


def _file(self: Stream, source: Any, how: _Reading) -> Iterator[Chunk]:
    with files.opened(source, how.encoding) as file:
        self.more_within = files.more_within(file)
        kind = how.format or files.format_of(source, file)
        if kind == "libsvm":
            width = how.n_features or libsvm_width(source, kind, how.zero_based) or None
            yield from libsvm.read(file, width, how.zero_based)
            return
        yield from table_chunks(self, _tables(self, source, file, kind, how), how.columns)


def _tables(self: Stream, source: Any, file: Any, kind: str, how: _Reading) -> Iterator[Table]:
    """Yield the tables of an open file."""
    if kind == "csv":
        words = set(how.columns.categorical)
        return csv_text.read_csv(file, words, how.header, how.delimiter or csv_text.delimiter_of(source, file))
    if kind == "parquet":
        return files.read_parquet(file, self.chunk)
    if kind == "arrow":
        return files.read_arrow(file)
    named, target = how.columns.features, how.columns.target
    asked = [*(named or ()), *([target] if isinstance(target, str) and not how.columns.target_optional else [])]
    more = named is not None or how.columns.missing == "keep" or isinstance(source, Events)
    return files.read_jsonl(file, asked, more=more)


def _files(self: Stream, paths: Sequence[Any], how: _Reading) -> Iterator[Chunk]:
    """Read files one after the other; errors name the file."""
    if how.n_features is None:
        widths = (libsvm_width(path, how.format, how.zero_based) for path in paths)
        how = how._replace(n_features=max(widths, default=0) or None)
    for path in paths:
        try:
            yield from _file(self, path, how)
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from error


def libsvm_width(path: Any, format: str | None, zero_based: bool) -> int:
    """Return the number of columns of a LIBSVM file; 0 for other formats and for sources that can be read only once."""
    if files.is_read_once(path):
        return 0
    with files.opened(path) as file:
        return libsvm.count_features(file, zero_based) if (format or files.format_of(path, file)) == "libsvm" else 0


def _arrays(X: Any, y: Any) -> Callable[[Stream], Iterator[Chunk]]:
    if sparse.issparse(X):
        X = X.tocsr()
    if not isinstance(X, Table):
        X = X.astype(np.float64, copy=False)
    if len(X.shape) != 2:
        raise ValueError(f"rows must be a 2-D array, not {len(X.shape)}-D")
    if y is not None:
        y = np.asarray(y)
        if y.shape != (X.shape[0],):
            raise ValueError(f"y has shape {y.shape}, but there are {X.shape[0]} rows")

    def pieces(self: Stream) -> Iterator[Chunk]:
        return cut_chunk(X, y, range(self.chunk, X.shape[0], self.chunk)) if X.shape[0] else iter(())

    return pieces


def table_chunks(self: Stream, tables: Iterable[Table], columns: Columns) -> Iterator[Chunk]:
    """Yield the rows of tables; rows before a damaged one are yielded before the error is raised."""
    row = 0
    for table in tables:
        damage: RowError | None = None
        while True:
            try:
                rows, y = columns.split(table, row)
                break
            except RowError as error:  # the rows before it are valid, unless another column has an even earlier error
                damage = error
                table = table[: error.place]
        self.names, self.target, self.dropped = columns.features, columns.target, columns.dropped
        row += len(table)
        yield rows, y
        if damage:
            raise damage
