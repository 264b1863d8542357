"""Block: the events ahead as a step sees them, with their kernel values against the stored points and their scores.

The driver opens a block of events: all their kernel values against the stored points, and from them the scores of every
column, in one pass.  Kernel values are laid out (points, events): the values of one point for the events ahead are contiguous.
"""

from __future__ import annotations

import numpy as np

from ..compiler import OWNER, FunctionField, inline, inner, jit, pluggable, shaped
from . import kernels
from .expansion import Expansion
from .rows import Rows, centred_row, sparse_product
from .setup import Setup

STRIP = 512  # kernel values per pass, few enough to stay in the L1 cache
SPARE = 64  # additional numbers of working space
NARROW = 64  # columns up to which rows of a block are transposed, to compute kernel values with vectors along the events


APART = 512  # bytes: more than a vectorised loop reads at once


def buffers_apart(size: int) -> tuple[np.ndarray, np.ndarray]:
    """Return two buffers at a fixed distance from each other.

    A vectorised loop checks how far apart its arrays are and falls back to a scalar loop, which rounds differently, if they are
    close.  Small arrays that NumPy allocates one by one may or may not be.
    """
    table = np.empty((2, max(size, APART // 8)))
    return table[0, :size], table[1, :size]


class Block:
    """The events ahead: their kernel values against the stored points and their scores.  Not part of the state."""

    ASSIGNED = ("start", "size", "K", "scores", "columns")

    def __init__(self, setup: Setup, model: Expansion, rows: Rows, size: int):
        capacity, d = model.points.shape
        groups, outputs = len(model.coef), model.outputs
        dtype = model.points.dtype
        from_csr = bool(rows.indptr.size) and not setup.dense and not model.centre.any()
        self.kernel = setup.kernel
        self.load = FunctionField(load_sparse if from_csr else load_dense, model, OWNER, 0, 0)
        self.transform = FunctionField(
            kernels.TRANSFORMS.get(setup.kernel.kind, kernels.any_kernel), setup.kernel, np.empty(0, dtype)
        )
        self.rows = rows
        self.centre = model.centre  # of rows and points
        self.tolerance = setup.tolerance  # minimum difference for a point to count as nearer; negative: not needed
        self.start = 0
        self.size = 0
        self.turned = np.zeros(1, np.int64)  # whether columns have been filled
        self.values = np.empty(capacity * size, dtype)  # K, flat
        self.K = self.values[:0].reshape(0, 0)  # (points now and possibly inserted, events)
        self.flat_scores = np.empty(groups * outputs * size, dtype)
        self.scores = self.flat_scores[:0].reshape(0, 0, 0)  # (groups, outputs, events), without scale
        self.X = np.empty((0 if from_csr else size, d), dtype)  # rows minus the centre; none when products are from CSR
        self.flat_columns = np.empty(0 if from_csr or d > NARROW else size * d, dtype)
        self.columns = self.flat_columns[:0].reshape(0, 0)  # (d, events) X transposed, once a step needs it
        self.norms = np.empty(size, dtype)
        self.nearest = np.empty(size, dtype)  # index of each event's nearest core point, -1 for none
        self.distance = np.empty(size, dtype)  # its squared distance
        self.transposed = np.empty((d if from_csr else 0, capacity), dtype)  # points, for CSR products only
        if from_csr:
            self.transposed[:, : model.stored] = model.points[: model.stored].T
        self.sums = np.empty(capacity if from_csr else 0)
        self.f, self.g = buffers_apart(outputs)  # scores and gradient of one event
        self.mix = np.empty(groups)
        self.used = np.ones(groups)  # not 0: groups whose scores are needed
        self.work = np.empty((3, capacity + SPARE))  # for steps that process all points at once


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
def as_distances(K, point_norms, norms):
    """Turn inner products of points and events into squared distances."""
    number = K.dtype.type
    zero = number(0.0)
    two = number(2.0)
    if K.shape[1] == 1:  # a single event: vectors run along the points
        values = shaped(K, (K.shape[0],))
        for k in range(values.size):
            q = (point_norms[k] + norms[0]) - two * values[k]
            values[k] = q if q > zero else zero
        return
    for k in range(K.shape[0]):
        point_norm = point_norms[k]
        for j in range(K.shape[1]):
            q = (point_norm + norms[j]) - two * K[k, j]
            K[k, j] = q if q > zero else zero


@inner
def _keep_nearest(K, first, last, tags, tolerance, nearest, distance):
    """Update the nearest core points with rows first .. last - 1 of squared distances.

    Four at a time, since reading and writing what is known takes longer than comparing.  At the end, the last row is compared
    several times, which changes nothing.
    """
    number = K.dtype.type
    for k in range(first, last, 4):
        k1, k2, k3 = min(k + 1, last - 1), min(k + 2, last - 1), min(k + 3, last - 1)
        slack0, slack1 = number(_slack(tags, k, tolerance)), number(_slack(tags, k1, tolerance))
        slack2, slack3 = number(_slack(tags, k2, tolerance)), number(_slack(tags, k3, tolerance))
        for j in range(K.shape[1]):
            least, known = _nearer(K[k, j], slack0, number(k), distance[j], nearest[j])
            least, known = _nearer(K[k1, j], slack1, number(k1), least, known)
            least, known = _nearer(K[k2, j], slack2, number(k2), least, known)
            distance[j], nearest[j] = _nearer(K[k3, j], slack3, number(k3), least, known)


@inline
def _slack(tags, k, tolerance):
    """Return by how much point k must be nearer than others: a point that is no core never is."""
    return tolerance if tags[0, k] == 0.0 else np.inf


@inline
def _nearer(q, slack, k, least, known):
    """Return the squared distance and index of point k if it is nearer than the nearest so far, else those."""
    nearer = q < least - slack
    return q if nearer else least, k if nearer else known


@inner
def _accumulate(K, first, model, used, scores):
    """Add the kernel values of points from ``first`` on, times their coefficients, to the scores of all groups in use."""
    number = K.dtype.type
    n = K.shape[0]
    for g in range(scores.shape[0]):
        if used[g] == 0.0:
            continue
        for o in range(scores.shape[1]):
            row = model.coef[g, model.places[o], first : first + n]  # indices from 0 on, which are known not to be negative
            if K.shape[1] == 1:
                values, total = shaped(K, (n,)), number(0.0)
                for k in range(n):
                    total += number(row[k]) * values[k]
                scores[g, o, 0] += total
                continue
            k = 0
            while k + 4 <= n:
                c0, c1, c2, c3 = number(row[k]), number(row[k + 1]), number(row[k + 2]), number(row[k + 3])
                for j in range(K.shape[1]):
                    scores[g, o, j] += (c0 * K[k, j] + c1 * K[k + 1, j]) + (c2 * K[k + 2, j] + c3 * K[k + 3, j])
                k += 4
            while k < n:
                c0 = number(row[k])
                for j in range(K.shape[1]):
                    scores[g, o, j] += c0 * K[k, j]
                k += 1


@pluggable
def load_dense(model, block, start, b):
    """Compute the norms of dense rows, and their inner products with all points."""
    size, norms, K = model.size[0], block.norms, block.K
    X, centre = block.X[:b], block.centre
    for j in range(b):
        centred_row(block.rows, start + j, centre, X[j])
        norms[j] = inner_product(X[j], X[j])
    if size > 0:
        products(model.points[:size], X, K[:size])


@pluggable
def load_sparse(model, block, start, b):
    """Compute the norms of CSR rows, and their inner products with all points."""
    size, norms, K = model.size[0], block.norms, block.K
    data, indptr = block.rows.data, block.rows.indptr
    for j in range(b):
        total = 0.0
        for p in range(indptr[start + j], indptr[start + j + 1]):
            total += np.float64(data[p]) ** 2
        norms[j] = total
    _sparse_products(block.rows, start, block.transposed, block.sums, K[:size])


@inner
def open_block(model, block, start, b):
    """Compute kernel values, nearest points and scores of events start .. start + b - 1."""
    size = model.size[0]
    room = min(size + b, model.points.shape[0])
    block.start, block.size = start, b
    block.turned[0] = 0
    values = block.values
    K = shaped(values, (room, b))
    block.K = K
    width = 0 if block.flat_columns.size == 0 else block.X.shape[1]
    block.columns = shaped(block.flat_columns, (width, b))
    block.load(model, block, start, b)
    groups, outputs = model.coef.shape[0], model.places.size
    flat_scores = block.flat_scores[: groups * outputs * b]
    scores = shaped(flat_scores, (groups, outputs, b))
    block.scores = scores
    number = K.dtype.type
    fill(flat_scores, number(0.0))
    fill(block.nearest, number(-1.0))
    fill(block.distance, number(np.inf))
    height = max(4, STRIP // b)
    isotropic = kernels.is_isotropic(block.kernel)
    for first in range(0, size, height):
        last = min(first + height, size)
        strip = K[first:last]
        if isotropic:
            as_distances(strip, model.norms[first:last], block.norms)
            if block.tolerance >= 0.0:
                _keep_nearest(K, first, last, model.tags, block.tolerance, block.nearest, block.distance)
        block.transform(block.kernel, values[first * b : last * b])
        _accumulate(strip, first, model, block.used, scores)


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
            least, slack = block.distance[first + i], block.tolerance
            if row[i] < least - slack or (row[i] <= least + slack and k < block.nearest[first + i]):
                block.distance[first + i] = row[i]
                block.nearest[first + i] = k
    block.transform(block.kernel, row)


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
