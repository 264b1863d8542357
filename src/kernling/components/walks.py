"""What neighbours say of rows whose columns change one after the other from those of a start to those of a row (shapley.py).

From step to step, distances to the window's events change by one column, so a step costs the events, not their columns.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ..compiler import inline, jit
from ..core.kernels import Kernel
from ..core.vector import exp
from . import archive
from .archive import VIEWS, Archive
from .experts import Experts
from .shapley import mixed_rows
from .window import CITY, FAR, KINDS, LITTLE, LMS, NEAR, NEIGHBOURS, SIZE, SUM, WEIGHT

FARTHEST = -math.log(FAR)


def memory_scores(held: Archive, rows: np.ndarray, outputs: int) -> np.ndarray:
    """Return what the memory says of rows, (rows, views, outputs), or with 0 outputs the values, (rows, views, 1)."""
    out, nothing = np.empty((VIEWS, max(outputs, 1), len(rows))), np.zeros(len(rows))
    archive.learn(held, rows, nothing, nothing, outputs, out)  # events of weight 0 are not stored
    return out.transpose(2, 0, 1)


class Paths(NamedTuple):
    """From starts to a row: (columns,), (pairs, columns), (pairs, 2, players) and (columns,)."""

    row: np.ndarray
    starts: np.ndarray
    ranks: np.ndarray  # of players: when they change
    players: np.ndarray


def along_memory(held: Archive, paths: Paths, outputs: int) -> np.ndarray:
    """Return the scores of the memory from starts to a row, (pairs, 2, steps, views, outputs); of values, 0 outputs."""
    between = mixed_rows(*paths).astype(np.float32)
    said = memory_scores(held, between.reshape(-1, between.shape[-1]), outputs)
    return said.reshape(*between.shape[:3], *said.shape[1:])


def along_window(experts: Experts, kernel: Kernel, paths: Paths, weights: np.ndarray) -> np.ndarray:
    """Return the weighted sum of what neighbours in the window say beyond its first expert, (pairs, 2, steps).

    Weights are those of the means of all views, and of the nearest few.
    """
    row, starts, ranks, players = paths
    out = np.empty((*ranks.shape[:2], ranks.shape[2] + 1))
    orders = np.argsort(ranks, axis=2).astype(np.int64)
    walk(experts.window, kernel.gamma, experts.early.stretch, row, starts, orders, players.astype(np.int64), weights, out)
    return out


@jit
def walk(window, gamma, stretch, row, starts, orders, players, weights, out):
    """Write the sums along all orders."""
    n, views, city = window.place[SIZE], window.coef.shape[0], CITY * math.sqrt(gamma)
    gaps, values, near = np.empty((3, n)), np.empty((views, n)), np.empty(NEIGHBOURS)
    slots = np.empty(NEIGHBOURS, np.int64)
    for i in range(orders.shape[0]):
        for side in range(orders.shape[1]):
            for kind in range(3):
                for k in range(n):
                    gaps[kind, k] = 0.0
            for c in range(row.size):
                _add_column(window.columns[c], n, starts[i, c], 1.0, 1.0 / stretch[c], gaps)
            for step in range(out.shape[2]):
                for c in range(row.size):
                    if step > 0 and players[c] == orders[i, side, step - 1]:
                        _add_column(window.columns[c], n, starts[i, c], -1.0, 1.0 / stretch[c], gaps)
                        _add_column(window.columns[c], n, row[c], 1.0, 1.0 / stretch[c], gaps)
                _view(gaps, gamma, city, values)
                out[i, side, step] = _beyond(window, values, gaps[2], city, weights, near, slots)


@inline
def _add_column(column, n, value, sign, share, gaps):
    """Add a column to the squared distances, and to those of city blocks, with and without factors of columns."""
    squares, blocks, without = gaps[0], gaps[1], gaps[2]
    for k in range(n):
        gap = value - column[k]
        squares[k] += sign * gap * gap
        blocks[k] += sign * abs(gap)
        without[k] += sign * share * abs(gap)


@inline
def _view(gaps, gamma, city, values):
    """Write the values of both kernels and their powers, (views, events)."""
    powers = values.shape[0] // KINDS
    for kind in range(KINDS):
        rate, wide, own = gamma if kind == 0 else city, values[kind * powers], gaps[kind]
        for k in range(wide.size):
            wide[k] = exp(-rate * max(own[k], 0.0))
        for power in range(1, powers):
            wide, narrow = values[kind * powers + power - 1], values[kind * powers + power]
            for k in range(narrow.size):
                square = wide[k] * wide[k]
                narrow[k] = square * square


@inline
def _beyond(window, values, without, city, weights, near, slots):
    """Return the weighted sum of what the neighbours say beyond the first expert."""
    views, n = values.shape
    total, first, whole = 0.0, 0.0, 0.0
    for v in range(views):
        own, sums, shares = values[v], window.coef[v, SUM], window.coef[v, WEIGHT]
        above, below = 0.0, 0.0
        for k in range(n):
            above += sums[k] * own[k]
            below += shares[k] * own[k]
        total += weights[v] * above / (below + LITTLE)
    own, steps = values[0], window.coef[0, LMS]
    for k in range(n):
        first += steps[k] * own[k]
    for v in range(weights.size):
        whole += weights[v]
    return total + weights[views] * _nearest_few(window, without, city, near, slots) - whole * first


@inline
def _nearest_few(window, without, city, near, slots):
    """Return the mean target of the nearest events, over their squared distance."""
    known = 0
    for k in range(without.size):
        if known < near.size or without[k] < near[known - 1]:
            i = min(known, near.size - 1)
            while i > 0 and without[k] < near[i - 1]:
                near[i], slots[i] = near[i - 1], slots[i - 1]
                i -= 1
            near[i], slots[i] = without[k], k
            known = min(known + 1, near.size)
    above, below = 0.0, 0.0
    for i in range(known):
        distance = min(city * max(near[i], 0.0), FARTHEST)
        share = 1.0 / (distance * distance + NEAR * NEAR)
        above += share * window.coef[0, SUM, slots[i]]
        below += share * window.coef[0, WEIGHT, slots[i]]
    return above / below if below > 0.0 else 0.0
