"""Block: the events ahead as a step sees them, with their kernel values against the stored points and their scores.

The driver opens a block of events: all their kernel values against the stored points, and from them the scores of every
column, in one pass.  Kernel values are laid out (points, events): the values of one point for the events ahead are contiguous.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from . import kernels
from .jit import COMPILED, inline, inner, jit
from .rows import Rows, centred_row, is_sparse, sparse_product

STRIP = 512  # kernel values per pass, few enough to stay in the L1 cache
SPARE = 64  # additional numbers of working space
NARROW = 64  # columns up to which rows of a block are transposed, to compute kernel values with vectors along the events


class Scratch(NamedTuple):
    """Buffers of one compiled call; not part of the state."""

    values: np.ndarray  # kernel values, flat
    X: np.ndarray  # (block, d) rows minus the centre; empty when products are taken from CSR
    columns: np.ndarray  # the same rows transposed, flat; empty when they are too wide
    turned: np.ndarray  # (1,) whether ``columns`` is filled
    norms: np.ndarray
    scores: np.ndarray  # flat
    nearest: np.ndarray
    distance: np.ndarray
    transposed: np.ndarray  # (d, capacity) points, for CSR products only
    sums: np.ndarray  # (capacity,) one event's CSR products
    f: np.ndarray  # (outputs,) scores of one event
    g: np.ndarray  # (outputs,) gradient of one event
    work: np.ndarray  # (3, capacity + SPARE) for steps that process all points at once


class Block(NamedTuple):
    kernel: kernels.Kernel
    rows: Rows
    start: int
    size: int
    K: np.ndarray  # (points now and possibly inserted, size)
    scores: np.ndarray  # (groups, outputs, size), without scale
    X: np.ndarray
    columns: np.ndarray  # (d, size) X transposed, once a step needs it; empty if rows are wide
    turned: np.ndarray
    norms: np.ndarray
    nearest: np.ndarray  # index of each event's nearest core point, -1 for none
    distance: np.ndarray  # its squared distance
    tolerance: float  # minimum difference for a point to count as nearer; negative: not needed
    transposed: np.ndarray
    f: np.ndarray
    g: np.ndarray
    work: np.ndarray


@jit
def new_scratch(model, rows, block_size, dense):
    """Return buffers for blocks of this size; ``dense`` requires dense rows whatever the input."""
    capacity, d = model.points.shape
    outputs = model.coef.shape[1]
    from_csr = is_sparse(rows) and not dense
    for c in range(d):
        from_csr = from_csr and model.centre[c] == 0.0
    dtype = model.points.dtype
    transposed = np.empty((d if from_csr else 0, capacity), dtype)
    if from_csr:
        for k in range(model.size[0]):
            set_column(transposed, k, model.points[k])
    return Scratch(
        np.empty(capacity * block_size, dtype),
        np.empty((0 if from_csr else block_size, d), dtype),
        np.empty(0 if from_csr or d > NARROW else block_size * d, dtype),
        np.zeros(1, np.int64),
        np.empty(block_size, dtype),
        np.empty(model.coef.shape[0] * outputs * block_size, dtype),
        np.empty(block_size, dtype),
        np.empty(block_size, dtype),
        transposed,
        np.empty(capacity if from_csr else 0),
        np.empty(outputs),
        np.empty(outputs),
        np.empty((3, capacity + SPARE)),
    )


@inline
def inner_product(a, b):
    total = a.dtype.type(0.0)
    for c in range(a.size):
        total += a[c] * b[c]
    return total


@jit
def products(points, X, out):
    """Compute all inner products of points and rows; for a single event without BLAS, whose threads are not limited there."""
    if X.shape[0] == 1:
        for k in range(points.shape[0]):
            out[k, 0] = inner_product(points[k], X[0])
    elif points.shape[0] == 1:
        for j in range(X.shape[0]):
            out[0, j] = inner_product(points[0], X[j])
    else:
        np.dot(points, X.T, out)


@inner
def set_column(matrix, k, values):
    for c in range(values.size):
        matrix[c, k] = values[c]


@inner
def fill(array, value):
    for i in range(array.size):
        array[i] = value


@inner
def _sparse_products(rows, start, transposed, sums, K):
    """K[k, j] = <point k, row start + j>, summed in double precision."""
    size, b = K.shape
    for j in range(b):
        for k in range(size):
            sums[k] = 0.0
        for p in range(rows.indptr[start + j], rows.indptr[start + j + 1]):
            value = np.float64(rows.data[p])
            column = transposed[rows.indices[p]]
            for k in range(size):
                sums[k] += value * column[k]
        for k in range(size):
            K[k, j] = sums[k]


@inner
def as_distances(K, first, last, point_norms, norms):
    """Turn inner products into squared distances."""
    number = K.dtype.type
    zero = number(0.0)
    two = number(2.0)
    if K.shape[1] == 1:  # a single event: vectors run along the points
        for k in range(first, last):
            q = (point_norms[k] + norms[0]) - two * K[k, 0]
            K[k, 0] = q if q > zero else zero
        return
    for k in range(first, last):
        point_norm = point_norms[k]
        for j in range(K.shape[1]):
            q = (point_norm + norms[j]) - two * K[k, j]
            K[k, j] = q if q > zero else zero


@inner
def _keep_nearest(K, first, last, tags, tolerance, nearest, distance):
    """Update the nearest core points with rows first .. last - 1 of squared distances."""
    number = K.dtype.type
    slack = number(tolerance)
    for k in range(first, last):
        if tags[0, k] == 0.0:
            index = number(k)
            for j in range(K.shape[1]):
                q = K[k, j]
                nearer = q < distance[j] - slack
                distance[j] = q if nearer else distance[j]
                nearest[j] = index if nearer else nearest[j]


@inner
def _accumulate(K, first, last, coef, scores):
    """Add rows first .. last - 1 of K, times their coefficients, to the scores of every column."""
    number = K.dtype.type
    for g in range(coef.shape[0]):
        for o in range(coef.shape[1]):
            if K.shape[1] == 1:
                total = number(0.0)
                for k in range(first, last):
                    total += number(coef[g, o, k]) * K[k, 0]
                scores[g, o, 0] += total
                continue
            k = first
            while k + 4 <= last:
                c0, c1 = number(coef[g, o, k]), number(coef[g, o, k + 1])
                c2, c3 = number(coef[g, o, k + 2]), number(coef[g, o, k + 3])
                for j in range(K.shape[1]):
                    scores[g, o, j] += (c0 * K[k, j] + c1 * K[k + 1, j]) + (c2 * K[k + 2, j] + c3 * K[k + 3, j])
                k += 4
            while k < last:
                c0 = number(coef[g, o, k])
                for j in range(K.shape[1]):
                    scores[g, o, j] += c0 * K[k, j]
                k += 1


@inner
def open_block(kernel, model, rows, start, b, scratch, tolerance):
    """Compute kernel values, nearest points and scores of events start .. start + b - 1."""
    size = model.size[0]
    room = min(size + b, model.points.shape[0])
    K = scratch.values[: room * b].reshape(room, b)
    X = scratch.X[:b]
    width = 0 if scratch.columns.size == 0 else X.shape[1]
    columns = scratch.columns[: width * b].reshape(width, b)
    scratch.turned[0] = 0
    norms = scratch.norms
    number = K.dtype.type
    if scratch.X.shape[0] == 0:
        for j in range(b):
            total = 0.0
            for p in range(rows.indptr[start + j], rows.indptr[start + j + 1]):
                total += np.float64(rows.data[p]) ** 2
            norms[j] = total
        _sparse_products(rows, start, scratch.transposed, scratch.sums, K[:size])
    else:
        for j in range(b):
            centred_row(rows, start + j, model.centre, X[j])
            norms[j] = inner_product(X[j], X[j])
        if size > 0:
            products(model.points[:size], X, K[:size])
    groups, outputs = model.coef.shape[:2]
    flat_scores = scratch.scores[: groups * outputs * b]
    scores = flat_scores.reshape(groups, outputs, b)
    fill(flat_scores, number(0.0))
    fill(scratch.nearest, number(-1.0))
    fill(scratch.distance, number(np.inf))
    height = max(4, STRIP // b)
    isotropic = kernels.is_isotropic(kernel)
    for first in range(0, size, height):
        last = min(first + height, size)
        if isotropic:
            as_distances(K, first, last, model.norms, norms)
            if tolerance >= 0.0:
                _keep_nearest(K, first, last, model.tags, tolerance, scratch.nearest, scratch.distance)
        kernels.transform(kernel, scratch.values[first * b : last * b])
        _accumulate(K, first, last, model.coef, scores)
    return Block(
        kernel, rows, start, b, K, scores, X, columns, scratch.turned, norms, scratch.nearest, scratch.distance,
        tolerance, scratch.transposed, scratch.f, scratch.g, scratch.work,
    )  # fmt: skip


@inner
def squared_distance(model, block, j, k):
    """Return ||x_j - p_k||^2, by differences if rows are dense."""
    if block.X.shape[0] == 0:
        product = sparse_product(block.rows, block.start + j, model.points[k])
        return max(0.0, np.float64(block.norms[j]) + np.float64(model.norms[k]) - 2.0 * product)
    x = block.X[j]
    p = model.points[k]
    total = p.dtype.type(0.0)
    for c in range(p.size):
        z = x[c] - p[c]
        total += z * z
    return np.float64(total)


def apply_kernel(block, values):
    """Turn squared distances, or inner products, into kernel values, in place."""
    kernels.transform(block.kernel, values)


if COMPILED:  # blocks passed by value contain no functions
    from numba.extending import overload

    from .struct import Struct

    @overload(apply_kernel, inline="always")
    def _apply_kernel(block, values):
        if isinstance(block, Struct):
            return lambda block, values: block.transform(block.kernel, values)
        return lambda block, values: kernels.transform(block.kernel, values)


@inner
def fill_row(model, block, k, first):
    """Compute the kernel values of point k for the events from ``first`` on."""
    row = block.K[k, first:]
    if row.size == 0:
        return
    isotropic = kernels.is_isotropic(block.kernel)
    if block.columns.size > 0:
        _fill_by_columns(block, model.points[k], first, isotropic, row)
    elif isotropic:
        for i in range(row.size):
            row[i] = squared_distance(model, block, first + i, k)
    else:
        for i in range(row.size):
            if block.X.shape[0] == 0:
                row[i] = sparse_product(block.rows, block.start + first + i, model.points[k])
            else:
                row[i] = inner_product(block.X[first + i], model.points[k])
    if isotropic and block.tolerance >= 0.0 and model.tags[0, k] == 0.0:
        for i in range(row.size):
            if row[i] < block.distance[first + i] - block.tolerance:
                block.distance[first + i] = row[i]
                block.nearest[first + i] = k
    apply_kernel(block, row)


@inner
def _fill_by_columns(block, point, first, isotropic, row):
    """Compute squared distances or inner products of a point and the events ahead, column by column."""
    if block.turned[0] == 0:
        for j in range(block.size):
            set_column(block.columns, j, block.X[j])
        block.turned[0] = 1
    fill(row, row.dtype.type(0.0))
    for c in range(point.size):
        column, p = block.columns[c, first:], point[c]
        if isotropic:
            for i in range(row.size):
                z = column[i] - p
                row[i] += z * z
        else:
            for i in range(row.size):
                row[i] += p * column[i]


@inner
def point_values(model, kernel, k, out):
    """Write the kernel values of point k with all stored points."""
    size = model.size[0]
    p = model.points[k]
    isotropic = kernels.is_isotropic(kernel)
    for i in range(size):
        q = model.points[i]
        total = p.dtype.type(0.0)
        if isotropic:
            for c in range(p.size):
                z = p[c] - q[c]
                total += z * z
        else:
            for c in range(p.size):
                total += p[c] * q[c]
        out[i] = total
    kernels.transform(kernel, out[:size])
