"""Merging two points of a Gaussian expansion into one between them.

a_p K(p, .) + a_q K(q, .) becomes a_z K(z, .) at z = h p + (1 - h) q with a_z = a_p kappa^((1-h)^2) + a_q kappa^(h^2),
kappa = K(p, q), the best coefficient for this z.  The best h maximises m kappa^((1-h)^2) + (1 - m) kappa^(h^2), with
m = a_p / (a_p + a_q), and depends on m and kappa only: it is interpolated from a table.
The table is filled once, by golden-section search.  With p the point of smaller weight, m and h are at most 1/2.

Z. Wang, K. Crammer, S. Vucetic: Breaking the Curse of Kernelization: Budgeted Stochastic Gradient Descent for Large-Scale SVM
Training, JMLR 13, 2012.  T. Glasmachers, S. Qaadan: Speeding Up Budgeted Stochastic Gradient Descent SVM Training with
Precomputed Golden Section Search, 2018.
"""

from __future__ import annotations

import math

import numpy as np

from ..compiler import inline, inner
from ..core.block import fill_row, inner_product, set_column
from ..core.updates import add_column, clear, remove
from ..core.vector import exp
from .eviction import square, squared_gap

GRID = 100  # entries per side of the table
GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0


def golden_section(m: np.ndarray, kappa: np.ndarray, rounds: int = 40) -> np.ndarray:
    """Return the h in [0, 1/2] that maximises m kappa^((1-h)^2) + (1 - m) kappa^(h^2)."""

    def value(h):
        return m * kappa ** ((1.0 - h) ** 2) + (1.0 - m) * kappa ** (h**2)

    low, high = np.zeros(np.broadcast(m, kappa).shape), np.full(np.broadcast(m, kappa).shape, 0.5)
    for _ in range(rounds):
        left, right = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
        rises = value(left) < value(right)
        low, high = np.where(rises, left, low), np.where(rises, high, right)
    return (low + high) / 2.0


TABLE = golden_section(np.linspace(0.0, 0.5, GRID)[:, np.newaxis], np.linspace(0.0, 1.0, GRID)[np.newaxis, :])


@inline
def best_share(m, kappa):
    """Return h from the table, for m in [0, 1/2] and kappa in [0, 1]."""
    a, b = 2.0 * (GRID - 1) * m, (GRID - 1) * kappa
    i, k = min(int(a), GRID - 2), min(int(b), GRID - 2)
    a, b = a - i, b - k
    return (1.0 - a) * ((1.0 - b) * TABLE[i, k] + b * TABLE[i, k + 1]) + a * (
        (1.0 - b) * TABLE[i + 1, k] + b * TABLE[i + 1, k + 1]
    )


@inner
def best_partner(model, kernel, p):
    """Return the point q with which merging point p costs least in squared norm, and h; (-1, 0) if removing p costs no more.

    Only points whose coefficients have a positive product with those of p are considered.
    """
    own = square(model, p)
    least = own
    partner, share = -1, 0.0
    for q in range(model.size[0]):
        both = 0.0
        for o in range(model.places.size):
            coef = model.coef[0, model.places[o]]
            both += coef[p] * coef[q]
        if q == p or both <= 0.0:
            continue
        other = square(model, q)
        rate = kernel.gamma * squared_gap(model.points[p], model.points[q])
        kappa = exp(-rate)
        h = best_share(min(0.5, 1.0 / (1.0 + math.sqrt(other / own))), kappa)
        near_p, near_q = exp(-rate * (1.0 - h) ** 2), exp(-rate * h**2)
        kept = own * near_p**2 + other * near_q**2 + 2.0 * both * near_p * near_q
        cost = own + other + 2.0 * both * kappa - kept
        if cost < least:
            least = cost
            partner, share = q, h
    return partner, share


@inner
def merge(model, block, j, p, q, h):
    """Move point q towards p by the fraction h, add the coefficients of p to it, and remove p."""
    rate = block.kernel.gamma * squared_gap(model.points[p], model.points[q])
    near_p, near_q = exp(-rate * (1.0 - h) ** 2), exp(-rate * h**2)
    for o in range(block.g.size):
        coef = model.coef[0, model.places[o]]
        block.g[o] = near_p * coef[p] + near_q * coef[q]
    clear(model, block, j, q)
    point, other = model.points[q], model.points[p]
    for c in range(point.size):
        point[c] = h * other[c] + (1.0 - h) * point[c]
    if block.X.shape[0] == 0:
        set_column(block.transposed, q, point)
    model.norms[q] = inner_product(point, point)
    fill_row(model, block, q, j + 1)
    for o in range(block.g.size):
        add_column(model, block, j, q, 0, o, block.g[o])
    remove(model, block, j, p)
