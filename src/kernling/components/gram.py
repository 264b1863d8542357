"""The inverse Gram matrix of the stored points, updated as points are added and removed, and destructive matching pursuit.

With G = K^-1, appending points whose inner products with the others are C and among themselves S0 adds V'V, where
S = S0 - C'GC = LL' and V = L^-1 [-C'G, I]; removing point j subtracts u u' with u = G[:, j] / sqrt(G[j, j]).  A mini-batch
appends and removes tens of points: removals are chosen with columns of the not yet updated inverse corrected on the fly, and
the matrix is updated once, by one product of matrices.

A point that is nearly in the span of the others is not appended but projected on them.  Rounding errors accumulate in G, the
faster the worse K is conditioned: the inverse is checked with a vector of signs, periodically and after every update by large
numbers, and recomputed when it has drifted.  Solutions with a slightly inexact inverse get one step of iterative refinement.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..core.blas import lapack
from ..core.expansion import Expansion, padded
from ..core.jit import jit
from ..core.kernels import Kernel
from ..core.minibatch import own_matrix, point_matrix, squared_norms

if TYPE_CHECKING:
    from ..merging.rules import Merging

DEPENDENT = 1e-7  # squared distance from the span, relative to k(x, x), below which a point is projected
DEPENDENT_32 = 1e-4  # the same for kernel values in single precision
DRIFT = 1e-8  # of K G from the identity, above which the inverse is recomputed
PROBE = 8  # updates between checks
STEEP = 1e4  # squared entries of an update, relative to 1 / k(x, x), above which the inverse is checked at once
REFINE = 1e-11  # drift above which solutions by the inverse are refined
PANEL = 128  # rows of a symmetric matrix that are updated at once
WORST, RENEWED, UPDATES, LAST, FLOOR = range(5)  # what record holds


def greedy(n: int) -> np.ndarray:
    """Return an empty order: the cheapest point is removed first."""
    return np.empty(0, np.int64)


class Gram(NamedTuple):
    matrix: np.ndarray  # (capacity, capacity) kernel values of the stored points, zero beyond them
    inverse: np.ndarray  # (capacity, capacity)
    record: np.ndarray  # drift and renewals, see WORST and the rest above; empty when the matrix is not used

    def grown(self, capacity: int) -> Gram:
        """Return a copy with room for more points."""
        if not len(self.record):
            return self
        return self._replace(
            matrix=padded(padded(self.matrix, 0, capacity), 1, capacity),
            inverse=padded(padded(self.inverse, 0, capacity), 1, capacity),
        )

    def trimmed(self, size: int) -> Gram:
        """Return a copy without spare room."""
        return self._replace(matrix=self.matrix[:size, :size].copy(), inverse=self.inverse[:size, :size].copy())

    def merged(self, other: Gram, start: Gram | None, merging: Merging) -> Gram:
        """Return the matrix of the merged model's points."""
        if not len(self.record):
            return self
        matrix = point_matrix(merging.kernel, merging.model)
        gram = Gram(matrix, np.zeros_like(matrix), np.zeros(5))
        renew(gram, len(matrix))
        gram.record[LAST] = gram.record[FLOOR] = probe(gram, len(matrix))
        return gram

    def check(self, size: int, d: int, outputs: int) -> None:
        """Raise unless all shapes agree."""
        n = len(self.matrix)
        if not len(self.record) and self.matrix.shape == self.inverse.shape == (0, 0):
            return
        if n != size or self.matrix.shape != (n, n) or self.inverse.shape != (n, n) or self.record.shape != (5,):
            raise ValueError("the Gram matrix does not match the model")


def new_gram(used: bool = True) -> Gram:
    """Return an empty Gram matrix; it uses no memory unless ``used``."""
    return Gram(np.zeros((0, 0)), np.zeros((0, 0)), np.zeros(5 if used else 0))


class Extension(NamedTuple):
    """Points to be appended to a Gram matrix, without those that are nearly in the span of the others."""

    kept: np.ndarray  # which of the new points are appended
    factor: np.ndarray  # V: (kept, old + kept)
    error: float  # squared norm of the change by projecting the rest


def extend(
    gram: Gram,
    size: int,
    cross: np.ndarray,
    own: np.ndarray,
    old: np.ndarray,
    new: np.ndarray,
    dependent: float = DEPENDENT,
) -> Extension:
    """Prepare to append points: cross (size, new) and own (new, new) are their kernel values.

    ``old`` (size, outputs) and ``new`` (new, outputs) are coefficients; those of projected points are distributed over the
    others.
    """
    inverse = gram.inverse[:size, :size]
    shares = inverse @ cross
    if gram.record[LAST] > REFINE:
        shares += inverse @ (cross - gram.matrix[:size, :size] @ shares)
    kept = np.zeros(len(own), np.bool_)
    lower = np.zeros_like(own)
    count, error = _factorise(own, cross.T @ shares, dependent, shares, old, new, kept, lower)
    factor = np.empty((count, size + count))
    _solve(lower, kept, shares, factor)
    return Extension(kept, factor, error)


@jit
def _factorise(own, known, dependent, shares, old, new, kept, lower):
    """Compute the Cholesky factor of own - known, row by row; a row with a tiny diagonal is projected on those before it.

    Returns how many are kept, and the squared error: an upper bound, reached if the residuals of all projected points have the
    same direction.
    """
    n = own.shape[0]
    outputs = new.shape[1]
    weights = np.empty(n)
    error = 0.0
    count = 0
    for b in range(n):
        for i in range(b):
            if kept[i]:
                total = own[b, i] - known[b, i]
                for m in range(i):
                    if kept[m]:
                        total -= lower[b, m] * lower[i, m]
                lower[b, i] = total / lower[i, i]
        gap = own[b, b] - known[b, b]
        for m in range(b):
            if kept[m]:
                gap -= lower[b, m] ** 2
        if gap > dependent * own[b, b]:
            kept[b] = True
            count += 1
            lower[b, b] = np.sqrt(gap)
            continue
        for i in range(b - 1, -1, -1):  # weights of the kept points before it: solve lower' weights = lower[b]
            if kept[i]:
                total = lower[b, i]
                for m in range(i + 1, b):
                    if kept[m]:
                        total -= lower[m, i] * weights[m]
                weights[i] = total / lower[i, i]
        amounts = 0.0
        for o in range(outputs):
            amount = new[b, o]
            amounts += amount * amount
            if amount != 0.0:
                for k in range(old.shape[0]):
                    share = shares[k, b]
                    for i in range(b):
                        if kept[i]:
                            share -= shares[k, i] * weights[i]
                    old[k, o] += amount * share
                for i in range(b):
                    if kept[i]:
                        new[i, o] += amount * weights[i]
        error += np.sqrt(max(gap, 0.0) * amounts)
    return count, error * error


@jit
def _solve(lower, kept, shares, factor):
    """Write L^-1 [-shares', I], for the points that are kept."""
    size = shares.shape[0]
    r = 0
    for b in range(kept.size):
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


@jit
def matching_pursuit(inverse, factor, coef, error, budget, order, columns, alive, least=0, most=np.inf):
    """Remove points, refitting the rest after each, while the squared error stays within budget; return (removed, error).

    The current inverse is ``inverse`` (old points) + factor'factor.  Without an ``order`` the point whose removal costs
    least is removed first; with one, points are removed in that order until one exceeds the budget.  At least ``least`` points
    remain, and at most ``most``, whatever the error.  ``coef`` (points, outputs) is refitted in place, ``alive`` marks the
    remaining points, and rows of ``columns`` are the u of each removal.
    """
    n, outputs = coef.shape
    old = inverse.shape[0]
    diagonal = np.zeros(n)
    squares = np.zeros(n)
    for i in range(min(n, old)):
        diagonal[i] = inverse[i, i]
    for q in range(factor.shape[0]):
        for i in range(n):
            diagonal[i] += factor[q, i] * factor[q, i]
    for i in range(n):
        alive[i] = True
        for o in range(outputs):
            squares[i] += coef[i, o] * coef[i, o]
    removed = 0
    for turn in range(n - least):
        if order.size > 0:
            chosen = order[turn]
        else:
            chosen = -1
            least = np.inf
            for i in range(n):
                if alive[i] and squares[i] < least * diagonal[i]:
                    least = squares[i] / diagonal[i]
                    chosen = i
        if chosen < 0 or diagonal[chosen] <= 0.0:  # rounding errors have made the inverse useless
            break
        cost = squares[chosen] / diagonal[chosen]
        if error + cost > budget and n - removed <= most:
            break
        error += cost
        alive[chosen] = False
        u = columns[removed]
        for i in range(n):
            u[i] = inverse[chosen, i] if chosen < old and i < old else 0.0
        for q in range(factor.shape[0]):
            a = factor[q, chosen]
            if a != 0.0:
                for i in range(n):
                    u[i] += a * factor[q, i]
        for q in range(removed):
            a = columns[q, chosen]
            for i in range(n):
                u[i] -= a * columns[q, i]
        root = np.sqrt(diagonal[chosen])
        for i in range(n):
            u[i] /= root
        for i in range(n):
            if alive[i]:
                diagonal[i] -= u[i] * u[i]
                squares[i] = 0.0
                for o in range(outputs):
                    coef[i, o] -= u[i] / root * coef[chosen, o]
                    squares[i] += coef[i, o] * coef[i, o]
        removed += 1
    return removed, error


def add_and_prune(
    model: Expansion,
    gram: Gram,
    kernel: Kernel,
    old: np.ndarray,
    new: np.ndarray,
    X: np.ndarray,
    cross: np.ndarray,
    eps: float,
    order: Callable[[int], np.ndarray] = greedy,
    most: float = np.inf,
) -> float:
    """Set the coefficients ``old`` (points, outputs), add new points X with coefficients ``new``, then remove points.

    Points are removed and the rest refitted while the function changes by at most eps in norm, or there are more than ``most``;
    returns the change.
    ``cross`` contains the kernel values (points, new points).
    """
    size = int(model.size[0])
    norms = squared_norms(X)
    own = own_matrix(kernel, X, norms)
    dependent = DEPENDENT_32 if X.dtype == np.float32 else DEPENDENT
    kept, factor, error = extend(gram, size, cross, own, old, new, dependent)
    coef = np.ascontiguousarray(np.vstack([old, new[kept]]))
    n = len(coef)
    columns = np.empty((n, n))
    alive = np.empty(n, np.bool_)
    removed, error = matching_pursuit(
        gram.inverse[:size, :size], factor, coef, error, eps * eps, order(n), columns, alive, 0, most
    )
    moves = update(gram, size, cross, own, kept, factor, columns[:removed], alive)
    _store(model.points, model.norms, model.coef[0], size, X, norms, kept, coef, moves)
    model.size[0] = n - removed
    return math.sqrt(error)


@jit
def _store(points, norms, columns, size, X, new_norms, kept, coef, moves):
    """Append the points that are kept, set all coefficients, and move points."""
    k = size
    for b in range(kept.size):
        if kept[b]:
            for c in range(X.shape[1]):
                points[k, c] = X[b, c]
            norms[k] = new_norms[b]
            k += 1
    for o in range(columns.shape[0]):
        for k in range(coef.shape[0]):
            columns[o, k] = coef[k, o]
    for m in range(moves.shape[0]):
        to, source = moves[m, 0], moves[m, 1]
        for c in range(X.shape[1]):
            points[to, c] = points[source, c]
        norms[to] = norms[source]
        for o in range(columns.shape[0]):
            columns[o, to] = columns[o, source]


def update(
    gram: Gram,
    size: int,
    cross: np.ndarray,
    own: np.ndarray,
    kept: np.ndarray,
    factor: np.ndarray,
    columns: np.ndarray,
    alive: np.ndarray,
) -> np.ndarray:
    """Append the points that are kept, and that ``factor`` describes, and remove those that are not alive.

    cross and own are the kernel values of the new points, columns the u of the removed ones.  The last survivors fill
    the holes: returns the moves, (to, from) in each row.
    """
    n = len(alive)
    stacked, signed = np.empty((2, len(factor) + len(columns), n))
    steepest = _append(gram.matrix, size, cross, own, kept, factor, columns, stacked, signed)
    if len(stacked):
        _add_products(gram.inverse[:n, :n], signed, stacked)
    moves = np.empty((len(columns), 2), np.int64)
    moves = moves[: _close_gaps(gram.matrix, gram.inverse, alive, moves)]
    gram.record[UPDATES] += 1
    if gram.record[UPDATES] % PROBE == 0 or steepest > STEEP:
        mind_drift(gram, n - len(columns))
    return moves


def _add_products(matrix: np.ndarray, a: np.ndarray, b: np.ndarray) -> None:
    """Add a'b, which is symmetric, to a symmetric matrix: compute one half in panels, and copy it to the other."""
    n = len(matrix)
    for first in range(0, n, PANEL):
        last = min(first + PANEL, n)
        panel = matrix[first:last, first:]
        panel += a[:, first:last].T @ b[:, first:]
        matrix[last:, first:last] = panel[:, last - first :].T


@jit
def _append(matrix, size, cross, own, kept, factor, columns, stacked, signed):
    """Append kernel values; write factor and columns into one matrix, and once more with columns negated.

    Returns the largest square of their entries, relative to 1 / k(x, x).
    """
    n = size
    for b in range(kept.size):
        if kept[b]:
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
    added = factor.shape[0]
    steepest = 0.0
    for q in range(stacked.shape[0]):
        sign = 1.0 if q < added else -1.0
        for i in range(n):
            value = factor[q, i] if q < added else columns[q - added, i]
            steepest = max(steepest, abs(value))
            stacked[q, i] = value
            signed[q, i] = sign * value
    largest = 0.0
    for i in range(n):
        largest = max(largest, matrix[i, i])
    return steepest * steepest * largest


@jit
def _close_gaps(matrix, inverse, alive, moves):
    """Move the last survivors into the holes, in both matrices; write the moves (to, from) and return how many there are."""
    n = alive.size
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
            moves[count, 0], moves[count, 1] = hole, source
            count += 1
            source += 1
    for m in range(count):
        to, source = moves[m, 0], moves[m, 1]
        for i in range(n):
            matrix[to, i] = matrix[source, i]
            inverse[to, i] = inverse[source, i]
    for i in range(n):
        for m in range(count):
            to, source = moves[m, 0], moves[m, 1]
            matrix[i, to] = matrix[i, source]
            inverse[i, to] = inverse[i, source]
        for k in range(left, n):
            matrix[i, k] = 0.0
            inverse[i, k] = 0.0
    for i in range(left, n):
        for k in range(n):
            matrix[i, k] = 0.0
            inverse[i, k] = 0.0
    return count


def mind_drift(gram: Gram, size: int) -> None:
    """Check the inverse and recompute it if it has drifted, unless that would not improve it."""
    drift = probe(gram, size)
    gram.record[WORST] = max(gram.record[WORST], drift)
    if not drift <= max(DRIFT, 4.0 * gram.record[FLOOR]):
        renew(gram, size)
        drift = gram.record[FLOOR] = probe(gram, size)
        gram.record[RENEWED] += 1
    gram.record[LAST] = drift


def probe(gram: Gram, size: int) -> float:
    """Return how far K G is from the identity, applied to a vector of signs."""
    signs = np.where(np.arange(size) * 2654435761 % 2**32 < 2**31, 1.0, -1.0)
    return float(np.abs(gram.matrix[:size, :size] @ (gram.inverse[:size, :size] @ signs) - signs).max(initial=0.0))


def renew(gram: Gram, size: int) -> None:
    """Recompute the inverse from the kernel values; in single precision this may require a ridge."""
    matrix = gram.matrix[:size, :size]
    if not size:
        return
    for ridge in (0.0, 1e-12, 1e-9, 1e-6, 1e-3):
        lower, failed = lapack.dpotrf(matrix + ridge * np.diag(matrix.diagonal()), lower=1)
        if not failed:
            break
    inverse = lapack.dpotri(lower, lower=1)[0]
    gram.inverse[:size, :size] = np.tril(inverse) + np.tril(inverse, -1).T
