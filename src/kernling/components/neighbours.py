"""Projection of single terms on the span of the few nearest points, which needs no matrix of all points.

The term of a point is projected in all functions on the points at once: the model, the sums for averages, the snapshots.  So
the average stays exact: it is the mean of all models so far, in each of which K(p, .) is replaced by its projection.
"""

from __future__ import annotations

import numpy as np

from ..compiler import inner
from ..core.block import inner_product, point_values
from ..core.kernels import is_isotropic, transform
from ..core.updates import add_column, remove
from .eviction import point_value, smallest, squared_gap
from .gram import DEPENDENT, DEPENDENT_32

NEIGHBOURS = 5  # number of points that a term is projected on
TIE, TIE_32 = 1e-9, 1e-5  # relative to K(x, x): squared distances that differ by less count as equal


@inner
def event_row(model, block, j):
    """Write the kernel values of event j with all points, for ``project_on_nearest``."""
    for k in range(model.size[0]):
        block.work[2, k] = block.K[k, j]


@inner
def point_row(model, block, p):
    """Write the kernel values of point p with all points, for ``project_on_nearest``."""
    point_values(model, block.kernel, p, block.work[2])


@inner
def project_on_nearest(model, block, own, left_out):
    """Project a row with kernel values work[2] and K(x, x) = own on the span of the points nearest to it, except one.

    Their indices are written to work[1], their coefficients to work[0].  Returns their number, and the squared distance from
    the span.  A point in the span of nearer ones gets no coefficient.  Of equally near points, such as duplicates, the first
    ones are used.
    """
    count = min(NEIGHBOURS, model.size[0] - (left_out >= 0))
    single = block.K.itemsize == 4
    tie = (TIE_32 if single else TIE) * own
    dependent = DEPENDENT_32 if single else DEPENDENT
    shares, places, values = block.work[0], block.work[1], block.work[2]
    lower = block.work[1, NEIGHBOURS:]  # the Cholesky factor of their kernel values, row by row
    distances = block.work[0, NEIGHBOURS:]
    for k in range(model.size[0]):
        distances[k] = point_value(model, block.kernel, k) - 2.0 * values[k]
    if left_out >= 0:
        distances[left_out] = np.inf
    for n in range(count):
        best = _first_nearest(distances, model.size[0], tie)
        distances[best] = np.inf
        places[n] = best
        for i in range(n + 1):
            lower[n * count + i] = _pair_value(model, block.kernel, best, int(places[i]), shares)
        for i in range(n):
            entry = lower[n * count + i]
            for m in range(i):
                entry -= lower[n * count + m] * lower[i * count + m]
            pivot = lower[i * count + i]
            lower[n * count + i] = entry / pivot if pivot > 0.0 else 0.0
        rest = lower[n * count + n]
        floor = dependent * rest
        for i in range(n):
            rest -= lower[n * count + i] ** 2
        lower[n * count + n] = np.sqrt(rest) if rest > floor else 0.0
    gap = own
    for n in range(count):  # solve lower z = values, then lower' shares = z
        total = values[int(places[n])]
        for i in range(n):
            total -= lower[n * count + i] * shares[i]
        pivot = lower[n * count + n]
        shares[n] = total / pivot if pivot > 0.0 else 0.0
        gap -= shares[n] * shares[n]
    for n in range(count - 1, -1, -1):
        total = shares[n]
        for i in range(n + 1, count):
            total -= lower[i * count + n] * shares[i]
        pivot = lower[n * count + n]
        shares[n] = total / pivot if pivot > 0.0 else 0.0
    return count, max(0.0, gap)


@inner
def _first_nearest(distances, size, tie):
    """Return the first point that is as near as the nearest."""
    most = smallest(distances, size) + tie
    for k in range(size):
        if distances[k] <= most:
            return k
    return 0


@inner
def _pair_value(model, kernel, i, k, buffer):
    """Return the kernel value of two stored points; the first number of the buffer is overwritten."""
    p, q = model.points[i], model.points[k]
    buffer[0] = squared_gap(p, q) if is_isotropic(kernel) else np.float64(inner_product(p, q))
    transform(kernel, buffer[:1])
    return buffer[0]


@inner
def move_to_nearest(model, block, j, p, count):
    """Remove point p, after ``project_on_nearest`` has found its projection, which replaces its term in all functions."""
    add_projection(model, block, j, p, count)
    remove(model, block, j, p)


@inner
def add_projection(model, block, j, p, count):
    """Add the projection of the term of point p, found by ``project_on_nearest``, to all functions."""
    for n in range(count):
        share = block.work[0, n]
        for g in range(model.coef.shape[0]):
            for o in range(model.places.size):
                coefficient = model.coef[g, model.places[o], p]
                if coefficient != 0.0:
                    add_column(model, block, j, int(block.work[1, n]), g, o, share * coefficient)
