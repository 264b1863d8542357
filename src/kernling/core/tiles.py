"""Sums over the columns of two tables, of products or of distances, for all pairs of their rows.

Both tables are given by their columns.  Sums run in the order of the columns, so that each number is the same whatever others
there are; BLAS rounds differently with their number.  Vector instructions run along the rows of the second table, of which a
tile is copied to where it is aligned and overlaps with nothing, since only then loops are as fast as BLAS.
"""

from __future__ import annotations

import numpy as np

from ..compiler import inline_exact, inner_exact, jit_exact

TILE = 64  # rows of the second table that are computed with at once: as many as stay in the cache
PANEL = 16  # columns, likewise
LANES = 8  # numbers of the longest vector instructions, of which tiles are made up: the rest would be computed one by one


@jit_exact
def add_products(A, B, G):
    """Add products: G += A'B.  A and B may have more columns than G has rows and columns, and A more rows than B."""
    if G.shape[0] == 1:
        add_product(B, G.shape[1], A[: B.shape[0]], 0, G[0])
    else:
        _add_products(1.0, A, B, 0, G)


@jit_exact
def subtract_products(A, B, start, G):
    """Subtract them, from the rows of G from ``start`` on."""
    _add_products(-1.0, A, B, start, G)


@inline_exact
def _add_products(sign, A, B, start, G):
    A, G = A[: B.shape[0], start : G.shape[0]], G[start:]
    tile, panel = np.empty((G.shape[0], TILE)), np.empty((PANEL, TILE))
    for first in range(0, G.shape[1], TILE):
        part = G[:, first : first + TILE]
        width = load(part, tile)
        for k in range(0, B.shape[0], PANEL):
            stop = min(k + PANEL, B.shape[0])
            load(B[k:stop, first : first + part.shape[1]], panel)
            add_rows(sign, A, panel, k, stop, tile, 0, G.shape[0], width)
        save(tile, part)


@inner_exact
def add_product(A, count, B, e, g):
    """Add the inner products of a column of B with the first ``count`` columns of A, which may have more rows, to g."""
    n = B.shape[0]
    done = n // 8 * 8
    g = g[:count]
    for k in range(0, done, 8):
        a0, a1, a2, a3, a4, a5, a6, a7 = A[k], A[k + 1], A[k + 2], A[k + 3], A[k + 4], A[k + 5], A[k + 6], A[k + 7]
        y0, y1, y2, y3 = B[k, e], B[k + 1, e], B[k + 2, e], B[k + 3, e]
        y4, y5, y6, y7 = B[k + 4, e], B[k + 5, e], B[k + 6, e], B[k + 7, e]
        for i in range(g.size):
            half = (((g[i] + a0[i] * y0) + a1[i] * y1) + a2[i] * y2) + a3[i] * y3
            g[i] = (((half + a4[i] * y4) + a5[i] * y5) + a6[i] * y6) + a7[i] * y7
    for k in range(done, n):
        a0, y0 = A[k], B[k, e]
        for i in range(g.size):
            g[i] += a0[i] * y0


@jit_exact
def add_distances(A, B, shares, G, H):
    """Add distances along each column c, G[i, e] += |A[c, i] - B[c, e]|, and times the column's share to H if it has rows."""
    (d, b), weighs = A.shape, H.shape[0] > 0
    if b == 1:
        if weighs:
            _add_weighed(A, 0, 0, d, B, shares, G[0], H[0], G.shape[1])
        else:
            _add_distances(A, 0, 0, d, B, G[0], G.shape[1])
        return
    tile, other, panel = np.empty((b, TILE)), np.empty((H.shape[0], TILE)), np.empty((PANEL, TILE))
    for first in range(0, G.shape[1], TILE):
        part, weighed = G[:, first : first + TILE], H[:, first : first + TILE]
        width = load(part, tile)
        load(weighed, other)
        for start in range(0, d, PANEL):
            stop = min(start + PANEL, d)
            load(B[start:stop, first : first + part.shape[1]], panel)
            for i in range(b):
                if weighs:
                    _add_weighed(A, i, start, stop, panel, shares, tile[i], other[i], width)
                else:
                    _add_distances(A, i, start, stop, panel, tile[i], width)
        save(tile, part)
        save(other, weighed)


@inline_exact
def _add_distances(A, i, start, stop, panel, x, width):
    """Four columns at once, for each of which the sums need not be read and written."""
    fours = start + (stop - start) // 4 * 4
    for c in range(start, fours, 4):
        v0, v1, v2, v3 = np.float64(A[c, i]), np.float64(A[c + 1, i]), np.float64(A[c + 2, i]), np.float64(A[c + 3, i])
        a0, a1, a2, a3 = panel[c - start], panel[c - start + 1], panel[c - start + 2], panel[c - start + 3]
        for e in range(width):
            x[e] = (((x[e] + abs(v0 - a0[e])) + abs(v1 - a1[e])) + abs(v2 - a2[e])) + abs(v3 - a3[e])
    for c in range(fours, stop):
        v, a = np.float64(A[c, i]), panel[c - start]
        for e in range(width):
            x[e] += abs(v - a[e])


@inline_exact
def _add_weighed(A, i, start, stop, panel, shares, x, y, width):
    for c in range(start, stop):
        v, a, share = np.float64(A[c, i]), panel[c - start], shares[c]
        for e in range(width):
            distance = abs(v - a[e])
            x[e] += distance
            y[e] += distance * share


@inline_exact
def load(X, tile):
    """Copy columns into a tile, which is made up with 0; return how many columns there are then."""
    width = X.shape[1]
    whole = (width + LANES - 1) // LANES * LANES
    for i in range(X.shape[0]):
        x, own = X[i], tile[i]
        for e in range(width):
            own[e] = x[e]
        for e in range(width, whole):
            own[e] = 0.0
    return whole


@inline_exact
def save(tile, X):
    """Copy a tile back."""
    for i in range(X.shape[0]):
        x, own = X[i], tile[i]
        for e in range(x.size):
            x[e] = own[e]


@inline_exact
def add_rows(sign, A, panel, start, stop, tile, first, last, width):
    """Add multiples of the rows of a panel to rows of a tile, by the numbers in rows ``start`` to ``stop`` of A.

    Four rows are added to four at once: so each number that is read is used four times.
    """
    done, fours = first + (last - first) // 4 * 4, start + (stop - start) // 4 * 4
    for i in range(first, done, 4):
        x0, x1, x2, x3 = tile[i], tile[i + 1], tile[i + 2], tile[i + 3]
        for k in range(start, fours, 4):
            a0, a1, a2, a3 = panel[k - start], panel[k - start + 1], panel[k - start + 2], panel[k - start + 3]
            t0, t1, t2, t3 = A[k], A[k + 1], A[k + 2], A[k + 3]
            c0, c1, c2, c3 = sign * t0[i], sign * t1[i], sign * t2[i], sign * t3[i]
            d0, d1, d2, d3 = sign * t0[i + 1], sign * t1[i + 1], sign * t2[i + 1], sign * t3[i + 1]
            f0, f1, f2, f3 = sign * t0[i + 2], sign * t1[i + 2], sign * t2[i + 2], sign * t3[i + 2]
            g0, g1, g2, g3 = sign * t0[i + 3], sign * t1[i + 3], sign * t2[i + 3], sign * t3[i + 3]
            for e in range(width):
                x0[e] = (((x0[e] + c0 * a0[e]) + c1 * a1[e]) + c2 * a2[e]) + c3 * a3[e]
                x1[e] = (((x1[e] + d0 * a0[e]) + d1 * a1[e]) + d2 * a2[e]) + d3 * a3[e]
                x2[e] = (((x2[e] + f0 * a0[e]) + f1 * a1[e]) + f2 * a2[e]) + f3 * a3[e]
                x3[e] = (((x3[e] + g0 * a0[e]) + g1 * a1[e]) + g2 * a2[e]) + g3 * a3[e]
        for k in range(fours, stop):
            for row in range(i, i + 4):
                _add_row(sign * A[k, row], panel[k - start], tile[row], width)
    for i in range(done, last):
        x = tile[i]
        for k in range(start, fours, 4):
            a0, a1, a2, a3 = panel[k - start], panel[k - start + 1], panel[k - start + 2], panel[k - start + 3]
            c0, c1, c2, c3 = sign * A[k, i], sign * A[k + 1, i], sign * A[k + 2, i], sign * A[k + 3, i]
            for e in range(width):
                x[e] = (((x[e] + c0 * a0[e]) + c1 * a1[e]) + c2 * a2[e]) + c3 * a3[e]
        for k in range(fours, stop):
            _add_row(sign * A[k, i], panel[k - start], x, width)


@inline_exact
def _add_row(factor, a, x, width):
    for e in range(width):
        x[e] += factor * a[e]
