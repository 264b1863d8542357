"""Points that are added to a model in batches, and destructive matching pursuit, with the inverse Gram matrix (see gram.py).

With G = K^-1, appending points whose inner products with the others are C and among themselves S0 adds V'V, where
S = S0 - C'GC = LL' and V = L^-1 [-C'G, I]; removing point j subtracts u u' with u = G[:, j] / sqrt(G[j, j]).  A mini-batch
appends and removes tens of points: removals are chosen with columns of the not yet updated inverse corrected on the fly, and
the matrix is updated once, by products of matrices.

A point that is nearly in the span of the others is not appended but projected on them.  The inverse is checked periodically and
after every update by large numbers.  Solutions with a slightly inexact inverse get one step of iterative refinement.
"""

from __future__ import annotations

import math

import numpy as np

from ..compiler import inline, inner, jit, shaped
from .gram import DEPENDENT, DEPENDENT_32, FLOOR, LAST, RENEWED, UPDATES, WORST, add_products, drift, recompute

DRIFT = 1e-8  # of K G from the identity, above which the inverse is recomputed
PROBE = 8  # updates between checks
STEEP = 1e4  # squared entries of an update, relative to 1 / k(x, x), above which the inverse is checked at once
REFINE = 1e-11  # drift above which solutions by the inverse are refined
PANEL = 128  # rows of a symmetric matrix that are updated at once
TINY = 1e-300


class Pruning:
    """Working memory for a model with room for ``capacity`` points, to which ``batch`` are added at once."""

    def __init__(self, capacity: int, batch: int, outputs: int):
        self.new = np.empty((batch, outputs))  # coefficients of the new points
        self.cross = np.empty(capacity * batch)  # kernel values of points and new points, row by row
        self.own = np.empty(batch * batch)  # and among the new points
        self.shares = np.empty(capacity * batch)  # G C
        self.left = np.empty(capacity * batch)  # C - K G C
        self.known = np.empty(batch * batch)  # C'G C
        self.lower = np.empty(batch * batch)  # L
        self.weights = np.empty(batch)
        self.kept = np.empty(batch, np.bool_)  # which of the new points are appended
        self.rows = np.empty((capacity + batch) * capacity)  # V, then the u of the removed points; or a factor of K
        self.diagonal = np.empty(capacity)  # of the inverse
        self.squares = np.empty(capacity)  # of the coefficients of each point
        self.alive = np.empty(capacity, np.bool_)  # points that are not removed
        self.order = np.empty(capacity, np.int64)  # of removal


@inner
def add_and_prune(model, gram, work, X, norms, eps, most, u):
    """Add points X with the coefficients and kernel values in ``work``, then remove points; return the change in norm.

    Points are removed and the rest refitted while the function changes by at most eps in norm, or there are more than ``most``;
    the cheapest first, or in a random order that u determines, unless it is negative.
    """
    size, m = model.size[0], X.shape[0]
    coef, places = model.coef[0], model.places
    dependent = DEPENDENT_32 if X.itemsize == 4 else DEPENDENT
    _solve(gram, work, size, m)
    count, error = _factorise(work, size, m, coef, places, dependent)
    _write_factor(work, size, m, count)
    n = size + count
    _append(model, gram, work, X, norms)
    order = work.order[: n if u >= 0.0 else 0]
    shuffle(order, u)
    removed, error = matching_pursuit(gram.inverse, work, size, n, count, coef, places, error, eps * eps, order, 0, most)
    _update(gram, work, n, count, removed)
    gram.record[UPDATES] += 1.0
    is_due = gram.record[UPDATES] % PROBE == 0.0 or _is_steep(gram, work, n, count + removed)
    _close_gaps(model, gram, work, n)
    if is_due:
        _mind_drift(gram, work, n - removed)
    return math.sqrt(error)


@jit
def pursue(work, m, coef, places, dependent, budget, least):
    """Reduce m points alone, like ``add_and_prune``, to at least ``least`` points, within a squared error.

    ``coef`` (outputs, m), with ``places`` 0, 1, ..., gets the coefficients of those that are not in the span of others: see
    ``kept``, and ``alive`` for which of them remain.  Returns how many there were.
    """
    for i in range(m * m):
        work.known[i] = 0.0
    count, error = _factorise(work, 0, m, coef, places, dependent)
    _write_factor(work, 0, m, count)
    n = 0
    for b in range(m):
        if work.kept[b]:
            for o in range(coef.shape[0]):
                coef[o, n] = work.new[b, o]
            n += 1
    nothing = shaped(work.own, (0, 0))
    matching_pursuit(nothing, work, 0, n, n, coef, places, error, budget, work.order[:0], least, np.inf)
    return n


# ---------------------------------------------------------------------- appending


@inner
def _solve(gram, work, size, m):
    """Compute G C and C'G C."""
    cross, shares, left = shaped(work.cross, (size, m)), shaped(work.shares, (size, m)), shaped(work.left, (size, m))
    inverse, known = gram.inverse[:size, :size], shaped(work.known, (m, m))
    for i in range(size * m):
        work.shares[i] = 0.0
        work.left[i] = work.cross[i]
    add_products(inverse, cross, 1.0, shares)
    if gram.record[LAST] > REFINE:
        add_products(gram.matrix[:size, :size], shares, -1.0, left)
        add_products(inverse, left, 1.0, shares)
    for i in range(m * m):
        work.known[i] = 0.0
    add_products(cross, shares, 1.0, known)


@inner
def _factorise(work, size, m, coef, places, dependent):
    """Compute L row by row; a point whose distance from the span is tiny is projected on the others instead.

    Its coefficients are distributed over the others.  Returns how many are kept, and the squared error: an upper bound, reached
    if the residuals of all projected points have the same direction.
    """
    own, known, lower = shaped(work.own, (m, m)), shaped(work.known, (m, m)), shaped(work.lower, (m, m))
    shares, kept, weights, new = shaped(work.shares, (size, m)), work.kept, work.weights, work.new
    error = 0.0
    count = 0
    for b in range(m):
        kept[b] = False
        gap = own[b, b] - known[b, b]
        for i in range(b):
            lower[b, i] = 0.0
            if kept[i]:
                total = own[b, i] - known[b, i]
                for q in range(i):
                    total -= lower[b, q] * lower[i, q]
                lower[b, i] = total / lower[i, i]
                gap -= lower[b, i] ** 2
        if gap > dependent * own[b, b]:
            kept[b] = True
            count += 1
            lower[b, b] = np.sqrt(gap)
            continue
        for i in range(b - 1, -1, -1):  # weights of the kept points before it: solve L' weights = lower[b]
            weights[i] = 0.0
            if kept[i]:
                total = lower[b, i]
                for q in range(i + 1, b):
                    if kept[q]:
                        total -= lower[q, i] * weights[q]
                weights[i] = total / lower[i, i]
        amounts = 0.0
        for o in range(places.size):
            amount, values = new[b, o], coef[places[o]]
            amounts += amount * amount
            if amount != 0.0:
                for k in range(size):
                    share = shares[k, b]
                    for i in range(b):
                        share -= shares[k, i] * weights[i]
                    values[k] += amount * share
                for i in range(b):
                    new[i, o] += amount * weights[i]
        error += np.sqrt(max(gap, 0.0) * amounts)
    return count, error * error


@inner
def _write_factor(work, size, m, count):
    """Write V = L^-1 [-C'G, I], for the points that are kept."""
    shares, lower, kept = shaped(work.shares, (size, m)), shaped(work.lower, (m, m)), work.kept
    factor = shaped(work.rows, (count, size + count))
    r = 0
    for b in range(m):
        if kept[b]:
            row = factor[r]
            for k in range(size):
                row[k] = -shares[k, b]
            for i in range(size, row.size):
                row[i] = 0.0
            row[size + r] = 1.0
            q = 0
            for i in range(b):
                if kept[i]:
                    a, before = lower[b, i], factor[q]
                    for k in range(row.size):
                        row[k] -= a * before[k]
                    q += 1
            for k in range(row.size):
                row[k] /= lower[b, b]
            r += 1


@inner
def _append(model, gram, work, X, norms):
    """Store the points that are kept, with their coefficients and kernel values; their number is not changed yet."""
    size, m, matrix, kept = model.size[0], X.shape[0], gram.matrix, work.kept
    cross, own = shaped(work.cross, (size, m)), shaped(work.own, (m, m))
    n = size
    for b in range(m):
        if kept[b]:
            point = model.points[n]
            for c in range(point.size):
                point[c] = X[b, c]
            model.norms[n] = norms[b]
            for o in range(work.new.shape[1]):
                model.coef[0, model.places[o], n] = work.new[b, o]
            for k in range(size):
                matrix[k, n] = cross[k, b]
                matrix[n, k] = cross[k, b]
            i = size
            for q in range(b + 1):
                if kept[q]:
                    matrix[n, i] = own[b, q]
                    matrix[i, n] = own[b, q]
                    i += 1
            n += 1


# ---------------------------------------------------------------------- removing


@inner
def shuffle(order, u):
    """Write a random order that the uniform number u determines.

    The generator is the minimal standard one: S. K. Park, K. W. Miller, Random Number Generators: Good Ones Are Hard to Find,
    1988, with the multiplier of 1993.
    """
    seed = 1 + int(u * 2147483646.0)
    for i in range(order.size):
        order[i] = i
    for i in range(order.size - 1, 0, -1):
        seed = seed * 48271 % 2147483647
        k = seed % (i + 1)
        order[i], order[k] = order[k], order[i]


@inner
def matching_pursuit(inverse, work, size, n, count, coef, places, error, budget, order, fewest, most):
    """Remove points, refitting the rest after each, while the squared error stays within budget; return (removed, error).

    The current inverse is ``inverse`` (of the first ``size`` points) + V'V.  Without an ``order`` the point whose removal costs
    least is removed first; with one, points are removed in that order until one exceeds the budget.  At least ``fewest`` of the
    n points remain, and at most ``most``, whatever the error.  ``coef`` (columns, points) is refitted in place, ``alive`` marks
    the remaining points, and the u of each removal are written after V.
    """
    rows, alive, diagonal, squares = shaped(work.rows, (count + n, n)), work.alive, work.diagonal, work.squares
    for i in range(n):
        alive[i] = True
        diagonal[i] = inverse[i, i] if i < size else 0.0
        squares[i] = 0.0
    for q in range(count):
        for i in range(n):
            diagonal[i] += rows[q, i] * rows[q, i]
    for o in range(places.size):
        values = coef[places[o]]
        for i in range(n):
            squares[i] += values[i] * values[i]
    removed = 0
    for turn in range(n - fewest):
        chosen = order[turn] if order.size > 0 else _cheapest(n, squares, diagonal, alive)
        if chosen < 0 or diagonal[chosen] <= 0.0:  # rounding errors have made the inverse useless
            break
        cost = squares[chosen] / diagonal[chosen]
        if error + cost > budget and n - removed <= most:
            break
        error += cost
        alive[chosen] = False
        _column(inverse, rows, size, count, removed, chosen)
        u = rows[count + removed]
        root = np.sqrt(diagonal[chosen])
        for i in range(n):
            u[i] /= root
            diagonal[i] -= u[i] * u[i]
            squares[i] = 0.0
        for o in range(places.size):
            values = coef[places[o]]
            share = values[chosen] / root
            for i in range(n):
                values[i] -= share * u[i]
                squares[i] += values[i] * values[i]
        removed += 1
    return removed, error


@inline
def _cheapest(n, squares, diagonal, alive):
    """Return the point whose removal costs least, -1 if there is none."""
    chosen = -1
    least = np.inf
    for i in range(n):
        if alive[i] and squares[i] < least * diagonal[i]:
            least = squares[i] / diagonal[i]
            chosen = i
    return chosen


@inner
def _column(inverse, rows, size, count, removed, chosen):
    """Write the column of the current inverse that belongs to a point after those of the points removed before."""
    u = rows[count + removed]
    for i in range(u.size):
        u[i] = 0.0
    if chosen < size:
        row = inverse[chosen]
        for i in range(size):
            u[i] = row[i]
    for q in range(count + removed):
        a, row = rows[q, chosen], rows[q]
        if q >= count:
            a = -a
        if a != 0.0:
            for i in range(u.size):
                u[i] += a * row[i]


@inner
def _update(gram, work, n, count, removed):
    """Update the inverse: compute one half in panels, and copy it to the other."""
    inverse = gram.inverse
    V, U = shaped(work.rows, (count, n)), shaped(work.rows[count * n :], (removed, n))
    for first in range(0, n, PANEL):
        last = min(first + PANEL, n)
        panel = inverse[first:last, first:n]
        add_products(V[:, first:last], V[:, first:], 1.0, panel)
        add_products(U[:, first:last], U[:, first:], -1.0, panel)
        for i in range(last, n):
            for k in range(first, last):
                inverse[i, k] = inverse[k, i]


@inner
def _close_gaps(model, gram, work, n):
    """Move the last of the remaining points into the holes; what is left behind becomes 0."""
    matrix, inverse, alive, moves = gram.matrix, gram.inverse, work.alive, work.order
    left = 0
    for i in range(n):
        if alive[i]:
            left += 1
    count = 0
    source = left
    for hole in range(left):
        if not alive[hole]:
            while not alive[source]:
                source += 1
            _move_point(model, source, hole)
            moves[2 * count] = source
            moves[2 * count + 1] = hole
            count += 1
            source += 1
    model.size[0] = left
    _move(matrix, moves, count, left, n)
    _move(inverse, moves, count, left, n)


@inline
def _move_point(model, source, to):
    point, moved = model.points[to], model.points[source]
    for c in range(point.size):
        point[c] = moved[c]
    model.norms[to] = model.norms[source]
    for o in range(model.coef.shape[1]):
        model.coef[0, o, to] = model.coef[0, o, source]


@inner
def _move(table, moves, count, left, n):
    """Move rows and columns of a matrix; only the first ``left`` remain."""
    for m in range(count):
        row, moved = table[moves[2 * m + 1]], table[moves[2 * m]]
        for i in range(n):
            row[i] = moved[i]
    for i in range(n):
        row = table[i]
        for m in range(count):
            row[moves[2 * m + 1]] = row[moves[2 * m]]
        for k in range(left if i < left else 0, n):
            row[k] = 0.0


# ---------------------------------------------------------------------- rounding errors


@inner
def _is_steep(gram, work, n, count):
    """Return whether the last update was by large numbers, of which the inverse could not keep all digits."""
    largest = TINY
    for i in range(n):
        largest = max(largest, gram.matrix[i, i])
    limit = math.sqrt(STEEP / largest)
    steep = 0
    for i in range(count * n):
        if not abs(work.rows[i]) <= limit:
            steep += 1
    return steep > 0


@inner
def _mind_drift(gram, work, size):
    """Check the inverse and recompute it if it has drifted, unless that would not improve it."""
    record = gram.record
    record[LAST] = drift(gram, size, work.diagonal, work.squares)
    record[WORST] = max(record[WORST], record[LAST])
    if not record[LAST] <= max(DRIFT, 4.0 * record[FLOOR]):
        recompute(gram, size, work.diagonal, work.squares, work.rows)
        record[RENEWED] += 1.0
