"""The inverse of the Gram matrix of the stored points, which pruning.py and projection.py update.

Rounding errors accumulate in G = K^-1, the faster the worse K is conditioned: the inverse is checked with a vector of signs,
and recomputed when it has drifted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, NamedTuple

import numpy as np

from ..compiler import add_product, by_address, inline, inner, jit, shaped
from ..core.matrices import point_matrix
from ..core.shapes import declared

if TYPE_CHECKING:
    from ..merging.rules import Merging

DEPENDENT = 1e-7  # squared distance from the span, relative to k(x, x), below which a point is projected
DEPENDENT_32 = 1e-4  # the same for kernel values in single precision
BAND = 64  # rows of a factor that are computed at once
FEW = 256  # multiplications that take less time than a call of BLAS
WORST, RENEWED, UPDATES, LAST, FLOOR = range(5)  # what record holds


@declared(used="record")
class Gram(NamedTuple):
    matrix: Annotated[np.ndarray, "coefficients: stored stored"]  # kernel values of the stored points, zero beyond them
    inverse: Annotated[np.ndarray, "coefficients: stored stored"]
    # drift and renewals, see WORST and the rest above; empty when the matrix is not used
    record: Annotated[np.ndarray, "not negative: record"]

    def merged(self, other: Gram, start: Gram | None, merging: Merging) -> Gram:
        """Return the matrix of the merged model's points."""
        if not len(self.record):
            return self
        return of_points(point_matrix(merging.kernel, merging.model))


def new_gram(used: bool = True) -> Gram:
    """Return an empty Gram matrix; it uses no memory unless ``used``."""
    return Gram(np.zeros((0, 0)), np.zeros((0, 0)), np.zeros(5 if used else 0))


def of_points(matrix: np.ndarray) -> Gram:
    """Return the Gram matrix of points with these kernel values."""
    n = len(matrix)
    gram = Gram(matrix, np.zeros_like(matrix), np.zeros(5))
    renew(by_address(gram), n, *np.empty((2, n)), np.empty(n * n))
    return gram


@inner
def add_products(a, b, factor, out):
    """out += factor a'b."""
    if a.shape[0] * a.shape[1] * b.shape[1] > FEW:
        add_product(a, b, factor, out)
        return
    for k in range(a.shape[0]):
        for i in range(a.shape[1]):
            share = factor * a[k, i]
            for j in range(b.shape[1]):
                out[i, j] += share * b[k, j]


@inline
def row_product(row, vector, size):
    total = 0.0
    for m in range(size):
        total += row[m] * vector[m]
    return total


@inner
def drift(gram, size, signs, solved):
    """Return how far K G is from the identity, applied to a vector of signs."""
    for i in range(size):
        signs[i] = 1.0 if (i * 2654435761) % 4294967296 < 2147483648 else -1.0
    for i in range(size):
        solved[i] = row_product(gram.inverse[i], signs, size)
    found = 0.0
    for i in range(size):
        found = max(found, abs(row_product(gram.matrix[i], solved, size) - signs[i]))
    return found


@inner
def recompute(gram, size, signs, solved, table):
    """Compute the inverse from the kernel values; in single precision this may require a ridge.

    The rest is working memory for two vectors and a matrix.
    """
    factor = shaped(table, (size, size))
    ridge = 0.0
    while not _factor(gram.matrix, ridge, factor) and ridge < 1e6:
        ridge = max(1e-12, 1e3 * ridge)
    _invert(factor, gram.inverse)
    gram.record[LAST] = drift(gram, size, signs, solved)
    gram.record[FLOOR] = gram.record[LAST]


@jit
def renew(gram, size, signs, solved, table):
    """Same as ``recompute``, for calls from Python."""
    recompute(gram, size, signs, solved, table)


@inner
def _factor(matrix, ridge, R):
    """Compute the upper factor, R'R = matrix + ridge * diagonal, in bands of rows; return whether there is one."""
    n = R.shape[0]
    for i in range(n):
        for k in range(n):
            R[i, k] = matrix[i, k]
        R[i, i] += ridge * matrix[i, i]
    for first in range(0, n, BAND):
        last = min(first + BAND, n)
        add_products(R[:first, first:last], R[:first, first:], -1.0, R[first:last, first:])
        for i in range(first, last):
            row = R[i]
            for k in range(first, i):
                a, above = R[k, i], R[k]
                for j in range(i, n):
                    row[j] -= a * above[j]
            if not row[i] > 0.0:
                return False
            root = np.sqrt(row[i])
            for j in range(i, n):
                row[j] /= root
    return True


@inner
def _invert(R, inverse):
    """Write (R'R)^-1 = N'N, where R'N = I, in the same bands; R is overwritten."""
    n = R.shape[0]
    for first in range(0, n, BAND):
        last = min(first + BAND, n)
        for i in range(first, last):
            for k in range(n):
                inverse[i, k] = 1.0 if k == i else 0.0
        add_products(R[:first, first:last], inverse[:first, :first], -1.0, inverse[first:last, :first])
        for i in range(first, last):
            row = inverse[i]
            for k in range(first, i):
                a, above = R[k, i], inverse[k]
                for j in range(k + 1):
                    row[j] -= a * above[j]
            for j in range(i + 1):
                row[j] /= R[i, i]
    for first in range(0, n, BAND):
        last = min(first + BAND, n)
        for i in range(first, last):
            for k in range(first, n):
                R[i, k] = 0.0
        add_products(inverse[first:n, first:last], inverse[first:n, first:n], 1.0, R[first:last, first:])
    for i in range(n):
        for k in range(i, n):
            inverse[i, k] = R[i, k]
            inverse[k, i] = R[i, k]
