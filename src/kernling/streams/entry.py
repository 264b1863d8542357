"""The one way in: arrays, tables and files as streams."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from . import files, libsvm
from .base import CHUNK, Chunk, Stream, dense_pieces
from .columns import Columns
from .tables import frames, table_chunks


def stream(
    source: Any,
    y: Any = None,
    *,
    target: str | int | None = None,
    features: Sequence[str] | None = None,
    categorical: Sequence[str] | Mapping[str, Sequence[Any]] = (),
    hash: int | None = None,
    missing: str = "error",
    columns: Columns | None = None,
    format: str | None = None,
    header: bool = True,
    delimiter: str | None = None,
    n_features: int | None = None,
    zero_based: bool = False,
    dense: bool = False,
    chunk: int = CHUNK,
) -> Stream:
    """Rows in chunks of (X, y), from any source.

    Parameters
    ----------
    source : object
        A NumPy array or SciPy sparse matrix (with ``y``); a pandas or polars frame; an Arrow table, record batch or record
        batch reader; an iterable of record batches; a path, "-" for standard input, or an open binary file; a list of paths,
        which are read one after the other.  Files may be compressed (gz, xz, bz2, zst), which is seen from their content.
    y : array, optional
        Targets of an array.
    target, features, categorical, hash, missing
        Which columns of a table are used and how; see :class:`Columns`.
    columns : Columns, optional
        Instead of the former: columns whose state is kept by the caller, to be saved with a model.
    format : {"libsvm", "csv", "parquet", "arrow", "jsonl"}, optional
        The format of a file whose name and content don't tell.
    header : bool
        False for CSV whose first line is data; its columns are then called f0, f1, ...
    delimiter : str, optional
        Of CSV; a comma, or a tab for .tsv.
    n_features : int, optional
        The columns of LIBSVM text.  Without it files are read twice, first to find the largest index; of what can be read only
        once, such as standard input, the first 8,192 rows tell.
    zero_based : bool
        True if indices in LIBSVM text begin at 0.
    dense : bool
        Give the rows of sparse sources as plain arrays.
    chunk : int
        Rows per chunk.

    Returns
    -------
    Stream

    Examples
    --------
    >>> from kernling.streams import stream
    >>> with open("two.libsvm", "w") as file:
    ...     _ = file.write("1 1:0.5 3:2\\n-1 2:1\\n")
    >>> X, y = stream("two.libsvm").load()
    >>> print(X.toarray(), y)
    [[0.5 0.  2. ]
     [0.  1.  0. ]] [ 1. -1.]
    """
    columns = Columns(target, features, categorical, hash, missing) if columns is None else columns
    if not isinstance(columns, Columns):
        raise TypeError(f"columns must be made by kernling.streams.Columns, not {columns!r}")
    if n_features is not None and (not isinstance(n_features, int) or n_features < 1):
        raise ValueError(f"n_features must be a whole number of at least 1, not {n_features!r}")
    if isinstance(source, np.ndarray) or sparse.issparse(source):
        pieces, once = _arrays(source, y), False
    elif y is not None:
        raise ValueError("y is for arrays; name the target column of a table or file with target=")
    elif _is_path(source) or hasattr(source, "read") or _are_paths(source):
        if format is not None and format not in files.FORMATS:
            raise ValueError(f"format must be one of {', '.join(map(repr, files.FORMATS))}, not {format!r}")
        how = _Reading(columns, format, header, delimiter, n_features, zero_based)
        several = _are_paths(source)
        pieces = (lambda self: _files(self, source, how)) if several else (lambda self: _file(self, source, how))
        once = any(map(files.is_read_once, source if several else [source]))
    else:
        once = not hasattr(source, "columns")
        pieces = lambda self: table_chunks(self, frames(source), columns)  # noqa: E731

    told = os.fspath(source) if _is_path(source) else type(source).__name__
    info = {"source": ", ".join(map(os.fspath, source)) if _are_paths(source) else told}
    return Stream(dense_pieces(pieces) if dense else pieces, chunk=chunk, names=columns.names, info=info, once=once)


def _is_path(source: Any) -> bool:
    return isinstance(source, (str, os.PathLike))


def _are_paths(source: Any) -> bool:
    return isinstance(source, (list, tuple)) and len(source) > 0 and all(map(_is_path, source))


class _Reading(NamedTuple):
    """How files are read."""

    columns: Columns
    format: str | None
    header: bool
    delimiter: str | None
    n_features: int | None
    zero_based: bool


def _file(self: Stream, source: Any, how: _Reading) -> Iterator[Chunk]:
    with files.opened(source) as file:
        kind = how.format or files.format_of(source, file)
        if kind == "libsvm":
            width = how.n_features or libsvm_width(source, kind, how.zero_based) or None
            yield from libsvm.read(file, width, how.zero_based)
            return
        if kind == "csv":
            words = {str(name) for name in how.columns.categorical}
            tables = files.read_csv(file, words, how.header, how.delimiter or files.delimiter_of(source))
        elif kind == "parquet":
            tables = files.read_parquet(file, self.chunk)
        elif kind == "arrow":
            tables = files.read_arrow(file)
        else:
            named, target = how.columns.features, how.columns.target
            asked = [*(named or ()), *([target] if isinstance(target, str) else [])]
            tables = files.read_jsonl(file, asked, more=named is not None)
        yield from table_chunks(self, tables, how.columns)


def _files(self: Stream, paths: Sequence[Any], how: _Reading) -> Iterator[Chunk]:
    """One after the other; an error names its file."""
    if how.n_features is None:
        widths = (libsvm_width(path, how.format, how.zero_based) for path in paths)
        how = how._replace(n_features=max(widths, default=0) or None)
    for path in paths:
        try:
            yield from _file(self, path, how)
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from error


def libsvm_width(path: Any, format: str | None, zero_based: bool) -> int:
    """The columns of a LIBSVM file; 0 for other formats, and for what can be read only once."""
    if files.is_read_once(path):
        return 0
    with files.opened(path) as file:
        return libsvm.count_features(file, zero_based) if (format or files.format_of(path, file)) == "libsvm" else 0


def _arrays(X: Any, y: Any):
    if sparse.issparse(X):
        X = X.tocsr()
    X = X.astype(np.float64, copy=False)
    if X.ndim != 2:
        raise ValueError(f"rows must be a 2-D array, not {X.ndim}-D")
    if y is not None:
        y = np.asarray(y)
        if y.shape != (X.shape[0],):
            raise ValueError(f"y has shape {y.shape}, but there are {X.shape[0]} rows")

    def pieces(self: Stream) -> Iterator[Chunk]:
        for first in range(0, X.shape[0], self.chunk):
            part = slice(first, first + self.chunk)
            yield X[part], None if y is None else y[part]

    return pieces
