"""Triangular systems and products, for one vector or many: each number comes from the same operations in the same order.

BLAS rounds differently with the number of vectors, so that events learned one by one and in blocks would differ in their last
digits.  Here sums run in order, and vector instructions run along what does not depend on each other: the rows of a matrix for
one vector, the vectors for many.

A lower triangle L is given by its columns: ``T[j, i]`` is ``L[i, j]``, for i >= j.
"""

from __future__ import annotations

import numpy as np

from ..compiler import inner, inner_exact, jit_exact, shaped
from .tiles import PANEL, TILE, add_rows, load, save

FEW = 4  # vectors, up to which each is solved for alone


@jit_exact
def solve(T, X, n):
    """X <- L^-1 X, for the columns of the first n rows of X, (n or more, vectors)."""
    b = X.shape[1]
    if b == 1:
        solve_one(T, shaped(X, (n,)), 0, n)
    elif b <= FEW:
        _solve_each(T, X, n)
    else:
        _solve_tiles(T, X, n)


@jit_exact
def _solve_each(T, X, n):
    x = np.empty(n)
    for e in range(X.shape[1]):
        for i in range(n):
            x[i] = X[i, e]
        solve_one(T, x, 0, n)
        for i in range(n):
            X[i, e] = x[i]


@inner_exact
def solve_one(T, x, first, n):
    """Do the same for one vector, of which the numbers before ``first`` are solved for and subtracted from the others."""
    T, x = T[first:n, first:n], x[first:n]
    done = x.size // 4 * 4
    for j in range(0, done, 4):
        t0, t1, t2, t3 = T[j], T[j + 1], T[j + 2], T[j + 3]
        for k in range(j, j + 4):
            x[k] /= T[k, k]
            for i in range(k + 1, j + 4):
                x[i] -= T[k, i] * x[k]
        x0, x1, x2, x3 = x[j], x[j + 1], x[j + 2], x[j + 3]
        for i in range(j + 4, x.size):
            x[i] = (((x[i] - t0[i] * x0) - t1[i] * x1) - t2[i] * x2) - t3[i] * x3
    for k in range(done, x.size):
        x[k] /= T[k, k]
        for i in range(k + 1, x.size):
            x[i] -= T[k, i] * x[k]


@jit_exact
def _solve_tiles(T, X, n):
    tile, panel = np.empty((n, TILE)), np.empty((PANEL, TILE))
    for first in range(0, X.shape[1], TILE):
        part = X[:n, first : first + TILE]
        whole = load(part, tile)
        for start in range(0, n, PANEL):
            stop = min(start + PANEL, n)
            for k in range(start, stop):
                a, x, pivot = panel[k - start], tile[k], T[k, k]
                for e in range(whole):
                    a[e] = x[e] / pivot
                    x[e] = a[e]
                for i in range(k + 1, stop):
                    c, rest = T[k, i], tile[i]
                    for e in range(whole):
                        rest[e] -= c * a[e]
            add_rows(-1.0, T, panel, start, stop, tile, stop, n, whole)
        save(tile, part)


@inner_exact
def solve_back(T, x, n):
    """x <- L^-T x for the first n numbers."""
    done = n // 4 * 4
    for i in range(n - 1, done - 1, -1):
        x[i] = (x[i] - dot(T[i], x, i + 1, n)) / T[i, i]
    for j in range(done - 4, -1, -4):
        p0, p1, p2, p3 = four_dots(T, j, x, j + 4, n)
        x[j], x[j + 1], x[j + 2], x[j + 3] = x[j] - p0, x[j + 1] - p1, x[j + 2] - p2, x[j + 3] - p3
        for i in range(j + 3, j - 1, -1):
            for k in range(i + 1, j + 4):
                x[i] -= T[i, k] * x[k]
            x[i] /= T[i, i]


@inner
def dot(a, b, first, last):
    """Return the inner product of parts of two vectors; the order of the sum depends on the length only."""
    total = 0.0
    a, b = a[first:last], b[first:last]
    for i in range(a.size):
        total += a[i] * b[i]
    return total


@inner
def four_dots(A, row, b, first, last):
    """Same for four rows of a matrix and one vector, which is read once."""
    t0 = t1 = t2 = t3 = 0.0
    a0, a1, a2, a3 = A[row, first:last], A[row + 1, first:last], A[row + 2, first:last], A[row + 3, first:last]
    b = b[first:last]
    for i in range(b.size):
        t0 += a0[i] * b[i]
        t1 += a1[i] * b[i]
        t2 += a2[i] * b[i]
        t3 += a3[i] * b[i]
    return t0, t1, t2, t3


@inner_exact
def write_dots(A, n, b, out):
    """Write the inner products of a vector with as much of each of the first n rows of A."""
    done = n // 4 * 4
    for k in range(0, done, 4):
        out[k], out[k + 1], out[k + 2], out[k + 3] = four_dots(A, k, b, 0, b.size)
    for k in range(done, n):
        out[k] = dot(A[k], b, 0, b.size)


@jit_exact
def write_scores(W, n, Z, scores):
    """Write W z for the columns of Z, of which the first n rows count."""
    for o in range(scores.shape[0]):
        write_score(W[o], n, Z, scores[o])


@inner_exact
def write_score(w, n, Z, f):
    """Write <w, z> for the columns of Z, of which the first n rows count."""
    for e in range(f.size):
        f[e] = 0.0
    for k in range(n):
        z, factor = Z[k], w[k]
        for e in range(f.size):
            f[e] += factor * z[e]
