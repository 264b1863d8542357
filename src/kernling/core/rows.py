"""Dense or CSR rows as one type for compiled code."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import sparse

from ..compiler import inline, inner


class Rows(NamedTuple):
    """Dense rows, or CSR rows when ``indptr`` is not empty.  All arrays are read-only views."""

    dense: np.ndarray  # (rows, d)
    data: np.ndarray
    indices: np.ndarray
    indptr: np.ndarray


_NO_INDEX = np.zeros(0, np.int64)


def read_only(array: np.ndarray) -> np.ndarray:
    """Return a read-only view, so that there is one type, and one compilation, for all callers' arrays."""
    view = array.view()
    view.flags.writeable = False
    return view


def as_rows(X: np.ndarray | sparse.csr_matrix) -> Rows:
    """Wrap validated rows: a C-contiguous array, or a CSR matrix without duplicates."""
    if isinstance(X, np.ndarray):
        return Rows(read_only(X), read_only(X.ravel()[:0]), read_only(_NO_INDEX), read_only(_NO_INDEX))
    return Rows(
        read_only(np.zeros((0, X.shape[1]), X.dtype)),
        read_only(X.data),
        read_only(X.indices.astype(np.int64, copy=False)),
        read_only(X.indptr.astype(np.int64, copy=False)),
    )


def row_count(rows: Rows) -> int:
    """Return the number of rows."""
    return max(len(rows.dense), len(rows.indptr) - 1)


@inline
def is_sparse(rows):
    return rows.indptr.size > 0


@inline
def copy_numbers(source, to):
    for i in range(to.size):
        to[i] = source[i]


@inner
def centred_row(rows, i, centre, out):
    """Write row i minus the centre into out."""
    if is_sparse(rows):
        for c in range(out.size):
            out[c] = -centre[c]
        for p in range(rows.indptr[i], rows.indptr[i + 1]):
            out[rows.indices[p]] += rows.data[p]
    else:
        row = rows.dense[i]
        for c in range(out.size):
            out[c] = row[c] - centre[c]


@inner
def row_of(rows, i, out):
    """Write row i."""
    if is_sparse(rows):
        for c in range(out.size):
            out[c] = 0.0
        for p in range(rows.indptr[i], rows.indptr[i + 1]):
            out[rows.indices[p]] += rows.data[p]
    else:
        for c in range(out.size):
            out[c] = rows.dense[i, c]


@inner
def sparse_product(rows, i, vector):
    """Return <row i, vector> of a CSR row, summed in double precision."""
    total = 0.0
    for p in range(rows.indptr[i], rows.indptr[i + 1]):
        total += np.float64(rows.data[p]) * vector[rows.indices[p]]
    return total
