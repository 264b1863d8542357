"""Projection of single points on the span of the stored points, with the inverse of their Gram matrix (see gram.py).

With G = K^-1 and k the kernel values of an event, its projection on the span has the coefficients s = G k, and the squared
distance from the span is gap = K(x, x) - k's.  Appending the event adds g g' / gap, g = (s, -1); removing point p, and
projecting its term on the span of the others, subtracts u u' / G[p, p], u = G[:, p].

Rounding errors accumulate in G: after every update it is checked with a vector of signs, and recomputed if it has drifted too
far. Solutions with a G that has drifted slightly get a step of iterative refinement with K itself.
"""

from __future__ import annotations

from ..compiler import inline, inner
from ..core.updates import add, add_column, insert, remove
from .eviction import event_value
from .gram import DEPENDENT, DEPENDENT_32, LAST, RENEWED, UPDATES, WORST, drift, row_product

DRIFT = 1e-6  # of K G from the identity, above which the inverse is recomputed; refinement squares it
REFINE = 1e-10  # drift above which solutions are refined


@inner
def _refine(gram, size, values, shares, left):
    """Refine the solution of K shares = values if the inverse has drifted; ``left`` is the final residual, or 0."""
    for i in range(size):
        left[i] = 0.0
    if gram.record[LAST] <= REFINE:
        return
    for turn in range(2):
        for i in range(size):
            left[i] = values[i] - row_product(gram.matrix[i], shares, size)
        if turn == 0:
            for i in range(size):
                shares[i] += row_product(gram.inverse[i], left, size)


@inner
def project_event(gram, model, block, j):
    """Return the squared distance of event j from the span.

    The coefficients of its projection are written to work[0], its kernel values to work[1].
    """
    size = model.size[0]
    shares, values, left = block.work[0], block.work[1], block.work[2]
    for i in range(size):
        values[i] = block.K[i, j]
    for i in range(size):
        shares[i] = row_product(gram.inverse[i], values, size)
    _refine(gram, size, values, shares, left)
    gap = event_value(block, j)
    for i in range(size):  # the squared distance from the sum with these coefficients, exact or not
        gap -= shares[i] * (values[i] + left[i])
    return max(0.0, gap)


@inline
def is_dependent(block, j, gap):
    """Return whether event j is in the span up to rounding, in which case it must not be appended."""
    return gap <= (DEPENDENT_32 if block.K.itemsize == 4 else DEPENDENT) * event_value(block, j)


@inner
def append(gram, model, block, j, gap, tag):
    """Store event j, whose squared distance project_event has just computed; return its index."""
    shares, values = block.work[0], block.work[1]
    k = model.size[0]
    for i in range(k):
        share = shares[i] / gap
        row = gram.inverse[i]
        for m in range(k):
            row[m] += share * shares[m]
        row[k] = -share
        gram.inverse[k, i] = -share
        gram.matrix[i, k] = values[i]
        gram.matrix[k, i] = values[i]
    gram.inverse[k, k] = 1.0 / gap
    gram.matrix[k, k] = event_value(block, j)
    _mind_drift(gram, block, k + 1)
    return insert(model, block, j, tag)


@inner
def add_projection(model, block, j, factor, values):
    """f <- f + factor * values * (the projection of event j), with the coefficients in work[0]; one value per output."""
    for k in range(model.size[0]):
        add(model, block, j, k, factor * block.work[0, k], values)


@inner
def add_or_project(gram, model, block, j, gap, projects, tag, factor, values):
    """f <- f + factor * values * K(x_j, .), stored, or projected if ``projects`` or x_j is in the span."""
    if projects or is_dependent(block, j, gap):
        add_projection(model, block, j, factor, values)
    else:
        add(model, block, j, append(gram, model, block, j, gap, tag), factor, values)


@inner
def project_point(gram, model, block, j, p):
    """Remove point p and add the projection of its term on the span of the others."""
    size = model.size[0]
    last = size - 1
    shares, values, left = block.work[0], block.work[1], block.work[2]
    inverse, matrix = gram.inverse, gram.matrix
    pivot = inverse[p, p]
    for i in range(size):
        shares[i] = -inverse[i, p] / pivot
        values[i] = matrix[i, p]
    for i in range(size):
        if i != p:
            row = inverse[i]
            share = shares[i]
            for m in range(size):
                row[m] += share * inverse[p, m]
    for m in range(size):  # the row and column of p itself become 0
        inverse[p, m] = 0.0
        inverse[m, p] = 0.0
        matrix[p, m] = 0.0
        matrix[m, p] = 0.0
    values[p] = 0.0
    shares[p] = 0.0
    _refine(gram, size, values, shares, left)
    for i in range(size):
        if i != p:
            for o in range(model.places.size):
                coefficient = model.coef[0, model.places[o], p]
                if coefficient != 0.0:
                    add_column(model, block, j, i, 0, o, shares[i] * coefficient)
    remove(model, block, j, p)
    _move_last(inverse, p, last)
    _move_last(matrix, p, last)
    _mind_drift(gram, block, last)


@inner
def _move_last(table, p, last):
    for m in range(last + 1):
        table[p, m] = table[last, m]
    for m in range(last + 1):
        table[m, p] = table[m, last]


@inner
def _mind_drift(gram, block, size):
    record = gram.record
    record[UPDATES] += 1.0
    record[LAST] = drift(gram, size, block.work[1], block.work[2])
    record[WORST] = max(record[WORST], record[LAST])
    if not record[LAST] <= DRIFT:
        record[RENEWED] += 1.0
        _invert(gram.matrix[:size, :size], gram.inverse[:size, :size])
        record[LAST] = drift(gram, size, block.work[1], block.work[2])


@inner
def _invert(matrix, inverse):
    """Invert a matrix in place by sweeps; a Gram matrix needs no pivoting."""
    n = matrix.shape[0]
    for i in range(n):
        for m in range(n):
            inverse[i, m] = matrix[i, m]
    for k in range(n):
        swept = inverse[k]
        pivot = swept[k]
        swept[k] = 1.0
        for m in range(n):
            swept[m] /= pivot
        for i in range(n):
            if i != k:
                row = inverse[i]
                factor = row[k]
                row[k] = 0.0
                for m in range(n):
                    row[m] -= factor * swept[m]
