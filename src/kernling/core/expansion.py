"""Expansion, the stored points and their columns of coefficients, and Block, what a step sees of the events ahead.

A model is f(x) = scale * sum_k coef[0, :, k] K(p_k, x).  Further groups of coefficients (sums for averages, snapshots,
a memory's gradient) live on the same points: a group is ``outputs`` columns wide.

The driver opens a block of events: all their kernel values against the stored points, and from them the scores of every
column, in one pass.  A step then changes the model through the operations below, each of which also corrects the
scores of the events still to come, so no step ever sums over the model, and nothing is approximated.  Kernel values
are laid out (points, events): what one point means for the events ahead is contiguous.

Points are stored less ``centre`` (the first dense row ever seen; zero for CSR and for kernels of inner products), since
distances by norms and products lose digits far from the origin.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import NamedTuple

import numpy as np

from . import kernels
from .bounds import COEFFICIENT
from .jit import inline, inner, jit
from .rows import Rows, centred_row, is_sparse, sparse_product

SCALE, TOTAL, EVENTS, NEXT, EXACT = range(5)  # what clock holds; TOTAL, NEXT and EXACT belong to averages.py
STRIP = 512  # kernel values handled per pass, few enough to stay in the first-level cache
SPARE = 64  # numbers of working space besides one per point
LIMIT = 2**28  # numbers in points: beyond, a model is refused


room = ContextVar("room", default=LIMIT)  # loading a file allows no more than the file holds


class Expansion(NamedTuple):
    points: np.ndarray  # (capacity, d)
    norms: np.ndarray  # (capacity,) squared
    coef: np.ndarray  # (groups, outputs, capacity), float64
    tags: np.ndarray  # (tags, capacity), float64: what a learner remembers of each point
    centre: np.ndarray  # (d,)
    size: np.ndarray  # (1,) how many points there are
    clock: np.ndarray  # scale of group 0, its running total, events learned, times of the next snapshots
    marks: np.ndarray  # events at which each snapshot was taken, -1 for none

    @property
    def work(self) -> int:
        """Multiplications per event."""
        return int(self.size[0]) * self.points.shape[1]

    @property
    def stored(self) -> int:
        """Points stored."""
        return int(self.size[0])

    def has_room(self, points: int) -> bool:
        """Whether so many more points fit."""
        return int(self.size[0]) + points <= len(self.points)

    def set_centre(self, row: np.ndarray) -> None:
        """Measure rows from this one."""
        self.centre[:] = row

    def grown(self, capacity: int) -> Expansion:
        """The same model with room for more points."""
        check_room(capacity, self.points.shape[1])
        return self._replace(
            points=padded(self.points, 0, capacity),
            norms=padded(self.norms, 0, capacity),
            coef=padded(self.coef, 2, capacity),
            tags=padded(self.tags, 1, capacity),
        )

    def check(self, size: int, d: int, outputs: int) -> None:
        """Raise unless all shapes agree, without spare room."""
        groups, tags = self.coef.shape[0], self.tags.shape[0]
        fits = (
            size == len(self.points)
            and self.points.shape == (len(self.norms), d)
            and self.coef.shape == (groups, outputs, len(self.norms))
            and self.tags.shape == (tags, len(self.norms))
            and self.centre.shape == (d,)
            and self.size.shape == (1,)
            and self.clock.shape == (5,)
            and groups >= (2 + len(self.marks) if len(self.marks) else 1)
            and bool((np.abs(self.coef) <= COEFFICIENT).all())
        )
        if not fits:
            raise ValueError("the arrays of the model do not fit each other")

    def trimmed(self, n: int) -> Expansion:
        """The same model without spare room."""
        return self._replace(
            points=self.points[:n].copy(),
            norms=self.norms[:n].copy(),
            coef=self.coef[:, :, :n].copy(),
            tags=self.tags[:, :n].copy(),
        )

    def widened(self, change: np.ndarray) -> Expansion:
        """The same points with outputs ``change @ outputs``."""
        return self._replace(coef=np.einsum("po,gok->gpk", change, self.coef))


def padded(array: np.ndarray, axis: int, length: int) -> np.ndarray:
    """A zero-filled copy that is longer along one axis."""
    shape = list(array.shape)
    shape[axis] = length
    out = np.zeros(shape, array.dtype)
    out[tuple(slice(n) for n in array.shape)] = array
    return out


def check_room(count: int, d: int, what: str = "points") -> None:
    """Raise if a table of this size is more than a model may hold."""
    if count * d > room.get():
        raise ValueError(
            f"{count} {what} of {d} columns are too many to store; hash the columns to fewer "
            f"(sklearn.feature_extraction.FeatureHasher) or bound the number of {what}"
        )


def new_expansion(d: int, outputs: int, dtype, *, groups: int = 1, tags: int = 0, marks: int = 0) -> Expansion:
    """An empty model."""
    check_room(1, d)
    clock = np.zeros(5)
    clock[SCALE] = 1.0
    clock[EXACT] = -1.0
    return Expansion(
        points=np.zeros((0, d), dtype),
        norms=np.zeros(0, dtype),
        coef=np.zeros((groups, outputs, 0)),
        tags=np.zeros((tags, 0)),
        centre=np.zeros(d, dtype),
        size=np.zeros(1, np.int64),
        clock=clock,
        marks=np.full(marks, -1.0),
    )


class Scratch(NamedTuple):
    """Buffers of one compiled call; never state."""

    values: np.ndarray  # kernel values, flat
    X: np.ndarray  # (block, d) rows less the centre; empty when products are taken from CSR
    norms: np.ndarray
    scores: np.ndarray  # flat
    nearest: np.ndarray
    distance: np.ndarray
    transposed: np.ndarray  # (d, capacity) points, for CSR products only
    sums: np.ndarray  # (capacity,) one event's CSR products
    f: np.ndarray  # (outputs,) scores of one event
    g: np.ndarray  # (outputs,) gradient of one event
    work: np.ndarray  # (3, capacity + SPARE) for steps that look at all points at once


class Block(NamedTuple):
    kernel: kernels.Kernel
    rows: Rows
    start: int
    size: int
    K: np.ndarray  # (points now and possibly inserted, size)
    scores: np.ndarray  # (groups, outputs, size), without scale
    X: np.ndarray
    norms: np.ndarray
    nearest: np.ndarray  # index of each event's nearest core point, -1 for none
    distance: np.ndarray  # its squared distance
    tolerance: float  # by how much a point must be nearer to count as nearer; negative: nobody asks
    transposed: np.ndarray
    f: np.ndarray
    g: np.ndarray
    work: np.ndarray


@jit
def new_scratch(model, rows, block_size, dense):
    """Buffers for blocks of this size; ``dense`` asks for dense rows whatever the input is."""
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


@jit
def products(points, X, out):
    """All inner products of points and rows."""
    np.dot(points, X.T, out)


@inline
def inner_product(a, b):
    total = a.dtype.type(0.0)
    for c in range(a.size):
        total += a[c] * b[c]
    return total


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
    """Let the core points among rows first .. last - 1 of squared distances compete for the nearest one."""
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
    """Kernel values, nearest points and scores of events start .. start + b - 1."""
    size = model.size[0]
    room = min(size + b, model.points.shape[0])
    K = scratch.values[: room * b].reshape(room, b)
    X = scratch.X[:b]
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
        kernel, rows, start, b, K, scores, X, norms, scratch.nearest, scratch.distance, tolerance,
        scratch.transposed, scratch.f, scratch.g, scratch.work,
    )  # fmt: skip


@inner
def squared_distance(model, block, j, k):
    """||x_j - p_k||^2 by differences where rows are dense."""
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
    """Kernel values of point k for the events from ``first`` on."""
    row = block.K[k, first:]
    if kernels.is_isotropic(block.kernel):
        track = block.tolerance >= 0.0
        if track:
            track = model.tags[0, k] == 0.0
        for i in range(row.size):
            j = first + i
            q = squared_distance(model, block, j, k)
            row[i] = q
            if track and q < block.distance[j] - block.tolerance:
                block.distance[j] = q
                block.nearest[j] = k
    else:
        for i in range(row.size):
            j = first + i
            if block.X.shape[0] == 0:
                row[i] = sparse_product(block.rows, block.start + j, model.points[k])
            else:
                row[i] = inner_product(block.X[j], model.points[k])
    kernels.transform(block.kernel, row)


@inner
def store(model, block, j, k):
    """Write event j into slot k and compute its kernel values for the events ahead."""
    point = model.points[k]
    if block.X.shape[0] == 0:
        centred_row(block.rows, block.start + j, model.centre, point)
        set_column(block.transposed, k, point)
    else:
        x = block.X[j]
        for c in range(point.size):
            point[c] = x[c]
    model.norms[k] = block.norms[j]
    fill_row(model, block, k, j + 1)


@inner
def insert(model, block, j, tag):
    """Store event j as a new point with coefficient 0 and this tag; returns its index."""
    k = model.size[0]
    model.size[0] = k + 1
    for g in range(model.coef.shape[0]):
        for o in range(model.coef.shape[1]):
            model.coef[g, o, k] = 0.0
    if model.tags.shape[0] > 0:
        model.tags[0, k] = tag
    store(model, block, j, k)
    return k


@inner
def clear(model, block, j, k):
    """Set all coefficients of point k to 0."""
    row = block.K[k]
    number = row.dtype.type
    for g in range(model.coef.shape[0]):
        for o in range(model.coef.shape[1]):
            c = number(model.coef[g, o, k])
            model.coef[g, o, k] = 0.0
            if c != 0.0:
                f = block.scores[g, o]
                for i in range(j + 1, block.size):
                    f[i] -= c * row[i]


@inner
def replace(model, block, j, k, tag):
    """Event j takes the place of point k, with coefficient 0 and this tag."""
    clear(model, block, j, k)
    if model.tags.shape[0] > 0:
        model.tags[0, k] = tag
    store(model, block, j, k)


@inner
def remove(model, block, j, k):
    """Forget point k; the last point takes its place."""
    clear(model, block, j, k)
    last = model.size[0] - 1
    model.size[0] = last
    if k == last:
        return
    for c in range(model.points.shape[1]):
        model.points[k, c] = model.points[last, c]
    if block.X.shape[0] == 0:
        set_column(block.transposed, k, model.points[k])
    model.norms[k] = model.norms[last]
    for g in range(model.coef.shape[0]):
        for o in range(model.coef.shape[1]):
            model.coef[g, o, k] = model.coef[g, o, last]
            model.coef[g, o, last] = 0.0
    for i in range(model.tags.shape[0]):
        model.tags[i, k] = model.tags[i, last]
    for i in range(j, block.size):
        block.K[k, i] = block.K[last, i]


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


@inline
def _add_column(model, block, j, k, g, o, value):
    model.coef[g, o, k] += value
    row = block.K[k]
    f = block.scores[g, o]
    c = row.dtype.type(value)
    for i in range(j + 1, block.size):
        f[i] += c * row[i]


@inline
def add(model, block, j, k, factor, values):
    """f <- f + factor * values * K(p_k, .): values has one number per output."""
    scale = model.clock[SCALE]
    averaged = model.coef.shape[0] > 1
    for o in range(values.size):
        if values[o] != 0.0:
            u = factor * values[o] / scale
            _add_column(model, block, j, k, 0, o, u)
            if averaged:  # group 1 holds what the average needs, see averages.py
                _add_column(model, block, j, k, 1, o, u * model.clock[TOTAL])


@inline
def read_scores(model, block, j, f):
    """Write the current model's scores of event j."""
    for o in range(f.size):
        f[o] = model.clock[SCALE] * block.scores[0, o, j]


@inner
def scale_model(model, block, j, factor):
    """f <- factor * f, applied to the coefficients at once; the sums behind averages stay what they were."""
    _scale_columns(model.coef, 0, factor, model.clock[TOTAL])
    _scale_columns(block.scores, j + 1, factor, model.clock[TOTAL])


@inner
def _scale_columns(columns, first, factor, total):
    number = columns.dtype.type
    averaged = columns.shape[0] > 1
    keep = number(factor)
    shift = number((factor - 1.0) * total)
    for o in range(columns.shape[1]):
        for i in range(first, columns.shape[2]):
            if averaged:
                columns[1, o, i] += shift * columns[0, o, i]
            columns[0, o, i] *= keep


@inline
def renormalise(model, block, j):
    """Put a scale that has become small, or large, into the coefficients, before it loses digits."""
    if not 1e-6 < model.clock[SCALE] < 1e6:
        scale_model(model, block, j, model.clock[SCALE])
        model.clock[SCALE] = 1.0
