"""Partitions of the data, and reading them in chunks."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from ..io import Stream, stream
from ..io.base import CHUNK
from ..io.sources import libsvm_width


class Partition(NamedTuple):
    """A file, or a piece of a Dask collection, which is passed to a worker's task."""

    name: str
    path: str | None = None


class Reading(NamedTuple):
    """Options of ``kernling.io.stream``, and a pipeline that transforms rows for its last step."""

    options: dict[str, Any]
    pipeline: Any = None

    def chunks(self, partition: Partition, piece: Any) -> Iterator[tuple[Any, Any]]:
        """Yield the rows of a partition; files are read in chunks."""
        for X, y in self.stream(partition, piece):
            yield X if self.pipeline is None else self.pipeline.passed(X), y

    def stream(self, partition: Partition, piece: Any) -> Stream:
        """Return the raw rows of a partition as a stream."""
        if partition.path is not None:
            return stream(partition.path, **self.options)
        if isinstance(piece, tuple):
            X, y = piece
            return stream(X if sparse.issparse(X) else np.asarray(X), y, chunk=self.options.get("chunk", CHUNK))
        return stream(piece, **self.options)


def partitions_of(data: Any, y: Any) -> tuple[list[Partition], list[Any]]:
    """Return the partitions of files, of a Dask frame, or of Dask arrays; and for each its piece, or None for a file."""
    if hasattr(data, "to_delayed") and hasattr(data, "divisions"):
        pieces = data.to_delayed()
        return [Partition(f"partition {i} of the frame") for i in range(len(pieces))], list(pieces)
    if hasattr(data, "to_delayed") and hasattr(data, "chunks"):
        return _of_arrays(data, y)
    if y is not None:
        raise ValueError("y is for Dask arrays; name the target column of files and frames with target=")
    if isinstance(data, (str, os.PathLike)):
        data = [data]
    if not isinstance(data, (list, tuple)) or not all(isinstance(path, (str, os.PathLike)) for path in data):
        raise TypeError(f"data must be a Dask frame, Dask arrays or a list of files, not {type(data).__name__}")
    return [Partition(os.fspath(path), os.path.abspath(path)) for path in data], [None] * len(data)


def _of_arrays(X: Any, y: Any) -> tuple[list[Partition], list[Any]]:
    if X.ndim != 2:
        raise ValueError(f"rows must be a 2-D array, not {X.ndim}-D")
    X = X.rechunk({1: -1})
    blocks = X.to_delayed().ravel().tolist()
    targets: list[Any] = [None] * len(blocks)
    if y is not None:
        if y.shape != X.shape[:1]:
            raise ValueError(f"y has shape {y.shape}, but there are {X.shape[0]} rows")
        targets = y.rechunk({0: X.chunks[0]}).to_delayed().ravel().tolist()
    return [Partition(f"block {i} of the array") for i in range(len(blocks))], list(zip(blocks, targets, strict=True))


def width_of(partition: Partition, options: dict[str, Any]) -> int:
    """Return the number of columns of a LIBSVM file; 0 for other formats and for files that cannot be read."""
    try:
        return libsvm_width(partition.path, options.get("format"), options.get("zero_based", False))
    except (ValueError, OSError, ImportError):
        return 0  # the error is reported when it is learned
