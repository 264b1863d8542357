"""Writing rows to files, chunk by chunk."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np
from scipy import sparse

from ..atomic import replaced
from ..extras import need_pyarrow
from ..tables.table import Table
from .base import Chunk

_COMPRESSED: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}


def write(rows: Iterable[Chunk], path: str | os.PathLike, names: Sequence[str] | None = None, target: str = "target") -> int:
    """Write chunks of (X, y) to a .libsvm, .csv, .jsonl (each also .gz, .bz2, .xz) or .parquet file; return the number of rows.

    The file is created atomically.  Numbers are written without loss of precision.

    Parameters
    ----------
    rows : iterable of (X, y)
        For example a stream.
    path : path
    names : sequence of str, optional
        Column names; by default those of a :class:`Table`, or f0, f1, ...  LIBSVM text has no names.
    target : str
        Name of the target column, which comes first.

    Examples
    --------
    >>> import numpy as np
    >>> from kernling.io import stream, synthetic, write
    >>> write(synthetic("spirals", 1000), "spirals.csv", ("x1", "x2"))
    1000
    >>> X, y = stream("spirals.csv", target="target").load()
    >>> print((np.asarray(X) == synthetic("spirals", 1000).load()[0]).all())
    True
    """
    path = Path(path)
    compressed = path.suffix if path.suffix in _COMPRESSED else ""
    kind = Path(path.name.removesuffix(compressed)).suffix
    writers = {".libsvm": _libsvm, ".svm": _libsvm, ".csv": _csv, ".jsonl": _jsonl, ".parquet": _parquet}
    if kind not in writers or (compressed and kind == ".parquet"):
        raise ValueError(f"rows are written to .libsvm, .csv, .jsonl (also .gz, .bz2, .xz) or .parquet, not to {path.name!r}")
    counted = _Counted(rows)
    with replaced(path) as temporary, _COMPRESSED.get(compressed, open)(temporary, "xb") as file:
        writers[kind](counted, file, names, target)
    return counted.rows


class _Counted:
    def __init__(self, chunks: Iterable[Chunk]):
        self._chunks = chunks
        self.rows = 0

    def __iter__(self) -> Iterator[Chunk]:
        for X, y in self._chunks:
            self.rows += X.shape[0]
            yield X, y


def _dense(X: Any) -> np.ndarray:
    return X.toarray() if sparse.issparse(X) else np.asarray(X)


def _names(X: Any, names: Sequence[str] | None) -> list[str]:
    if names is None and isinstance(X, Table):
        names = X.names
    return list(names) if names is not None else [f"f{i}" for i in range(X.shape[1])]


def _text(number: Any) -> str:
    """Return the shortest text that parses to the same number."""
    return repr(int(number)) if isinstance(number, float) and number.is_integer() and abs(number) < 2**53 else str(number)


def _libsvm(rows: Iterable[Chunk], file: IO[bytes], names: Sequence[str] | None, target: str) -> None:
    for X, y in rows:
        X = sparse.csr_matrix(X if sparse.issparse(X) else _dense(X))
        X.sort_indices()
        labels = np.zeros(X.shape[0]) if y is None else y
        if labels.dtype.kind in "OUS":
            raise ValueError(f"LIBSVM text needs numeric labels, not {labels[0]!r}; write .csv, .jsonl or .parquet")
        lines = []
        for i, label in enumerate(labels.tolist()):
            part = slice(X.indptr[i], X.indptr[i + 1])
            pairs = zip(X.indices[part].tolist(), X.data[part].tolist(), strict=True)
            lines.append(" ".join([_text(label), *(f"{j + 1}:{_text(value)}" for j, value in pairs)]))
        file.write(("\n".join(lines) + "\n").encode())


def _csv(rows: Iterable[Chunk], file: IO[bytes], names: Sequence[str] | None, target: str) -> None:
    import csv
    import io

    for number, (X, y) in enumerate(rows):
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        if number == 0:
            writer.writerow([*([] if y is None else [target]), *_names(X, names)])
        labels: list[list[Any]] = [[] for _ in range(X.shape[0])] if y is None else [[one] for one in y.tolist()]
        writer.writerows([*label, *line] for label, line in zip(labels, _dense(X).tolist(), strict=True))
        file.write(out.getvalue().encode())


def _jsonl(rows: Iterable[Chunk], file: IO[bytes], names: Sequence[str] | None, target: str) -> None:
    for X, y in rows:
        heads = _names(X, names)
        for i, line in enumerate(_dense(X).tolist()):
            label = {} if y is None else {target: y[i].item() if isinstance(y[i], np.generic) else y[i]}
            file.write((json.dumps(label | dict(zip(heads, line, strict=True))) + "\n").encode())


def _parquet(rows: Iterable[Chunk], file: IO[bytes], names: Sequence[str] | None, target: str) -> None:
    pyarrow = need_pyarrow()
    writer = None
    for X, y in rows:
        columns = dict(zip(_names(X, names), _dense(X).T, strict=True))
        table = pyarrow.table(({} if y is None else {target: y}) | columns)
        if writer is None:
            writer = pyarrow.parquet.ParquetWriter(file, table.schema)
        writer.write_table(table)
    if writer is not None:
        writer.close()
