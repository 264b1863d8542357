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
from .archive import CELLS, PROBES, ROOM, VIEWS, Archive, nearest_of, say
from .archive import NEIGHBOURS as OF_MEMORY
from .experts import Experts
from .window import CITY, FAR, KINDS, LITTLE, LMS, NEAR, NEIGHBOURS, SIZE, SUM, WEIGHT

FARTHEST = -math.log(FAR)
LANES = 16  # numbers of a vector, at most


class Paths(NamedTuple):
    """From starts to a row: (columns,), (pairs, columns), (pairs, 2, players) and (columns,)."""

    row: np.ndarray
    starts: np.ndarray
    ranks: np.ndarray  # of players: when they change
    players: np.ndarray

    def columns(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the columns in the order in which they change, and how many have changed after each step."""
        ranks = self.ranks[:, :, self.players]
        steps = np.arange(self.ranks.shape[2] + 1)
        counts = (ranks[:, :, np.newaxis] < steps[:, np.newaxis]).sum(axis=3)
        return np.argsort(ranks, axis=2, kind="stable").astype(np.int64), counts.astype(np.int64)


# ---------------------------------------------------------------------- the memory


class Cells(NamedTuple):
    """The memory's cores, and the events of its cells as they are asked for, column by column."""

    cores: np.ndarray  # (columns, cells)
    points: np.ndarray  # (cells, columns, events)
    is_copied: np.ndarray  # (cells,)


def cells_of(held: Archive) -> Cells:
    """Return the cells of a memory, of whose events none are copied."""
    count, d = int(held.size[CELLS]), held.points.shape[1]
    points = np.zeros((count, d, _padded(int(held.size[ROOM]))), np.float32)  # takes no memory before it is written
    cores = np.zeros((d, _padded(count)), np.float32)
    cores[:, :count] = held.cores[:count].T
    return Cells(cores, points, np.zeros(count, np.int64))


def _padded(count: int) -> int:
    """Return a number of points that fills vectors, so that no loop ends with single ones."""
    return -(-count // LANES) * LANES


def along_memory(held: Archive, cells: Cells, paths: Paths, outputs: int) -> np.ndarray:
    """Return the scores of the memory from starts to a row, (pairs, 2, steps, views, outputs); of values, 0 outputs."""
    pairs, sides, players = paths.ranks.shape
    out = np.zeros((pairs, sides, players + 1, VIEWS, max(outputs, 1)))
    row, starts = (np.ascontiguousarray(part, np.float32) for part in (paths.row, paths.starts))
    if len(cells.is_copied):
        walk_memory(held, cells, row, starts, *paths.columns(), outputs, out)
    return out


@jit
def walk_memory(archive, cells, row, starts, orders, changed, outputs, out):
    """Write the scores along all orders of columns, of which so many have changed after each step."""
    count, x = cells.is_copied.size, np.empty(row.size, np.float32)
    core_gaps, gaps, measured = (
        np.empty(cells.cores.shape[1]),
        np.empty((count, cells.points.shape[2])),
        np.empty(count, np.int64),
    )
    probed, nearest_cores = np.empty(PROBES, np.int64), np.empty(PROBES)
    found, nearest, share = np.empty(OF_MEMORY, np.int64), np.empty(OF_MEMORY), np.empty(max(2, outputs))
    for i in range(orders.shape[0]):
        for side in range(orders.shape[1]):
            order, start = orders[i, side], starts[i]
            for c in range(row.size):
                x[c] = start[c]
            _measure_columns(cells.cores, x, core_gaps)
            for cell in range(count):
                measured[cell] = -1
            now = 0
            for step in range(changed.shape[2]):
                _change_columns(cells.cores, start, row, order[now : changed[i, side, step]], core_gaps)
                for k in range(now, changed[i, side, step]):
                    x[order[k]] = row[order[k]]
                now = changed[i, side, step]
                probes, neighbours = nearest_of(core_gaps, 0, count, 0, probed, nearest_cores), 0
                for probe in range(probes):
                    cell = probed[probe]
                    points, events = cells.points[cell], archive.count[cell]
                    near = gaps[cell, : (events + LANES - 1) // LANES * LANES]
                    if cells.is_copied[cell] == 0:
                        _copy_cell(archive, archive.first[cell], events, points)
                        cells.is_copied[cell] = 1
                    if measured[cell] < 0 or 2 * (now - measured[cell]) >= x.size:
                        _measure_columns(points, x, near)
                    else:
                        _change_columns(points, start, row, order[measured[cell] : now], near)
                    measured[cell] = now
                    neighbours = nearest_of(gaps[cell], archive.first[cell], archive.count[cell], neighbours, found, nearest)
                for k in range(neighbours):
                    nearest[k] = max(nearest[k], 0.0)
                for view in range(VIEWS):
                    say(archive, found, nearest, neighbours, outputs, view, share, out[i, side, step, view])


@inline
def _copy_cell(archive, first, events, points):
    """Copy the events of a cell, column by column."""
    for k in range(events):
        for c in range(points.shape[0]):
            points[c, k] = archive.points[first + k, c]


@inline
def _measure_columns(table, x, gaps):
    """Write the squared distances of some points, (columns, points)."""
    for k in range(gaps.size):
        gaps[k] = 0.0
    for c in range(x.size):
        value, column = np.float64(x[c]), table[c]
        for k in range(gaps.size):
            gap = value - np.float64(column[k])
            gaps[k] += gap * gap


@inline
def _change_columns(table, start, row, order, gaps):
    """Change some columns from the values of a start to those of a row."""
    for n in range(order.size):
        before, after, column = np.float64(start[order[n]]), np.float64(row[order[n]]), table[order[n]]
        for k in range(gaps.size):
            old, new = before - np.float64(column[k]), after - np.float64(column[k])
            gaps[k] += new * new - old * old


# ---------------------------------------------------------------------- the window


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
                _add_column(window.columns[c], n, starts[i, c], 1.0 / stretch[c], gaps)
            for step in range(out.shape[2]):
                for c in range(row.size):
                    if step > 0 and players[c] == orders[i, side, step - 1]:
                        _change_column(window.columns[c], n, starts[i, c], row[c], 1.0 / stretch[c], gaps)
                _view(gaps, gamma, city, values)
                out[i, side, step] = _beyond(window, values, gaps[2], city, weights, near, slots)


@inline
def _add_column(column, n, value, share, gaps):
    """Add a column to the squared distances, and to those of city blocks, with and without factors of columns."""
    squares, blocks, without = gaps[0], gaps[1], gaps[2]
    for k in range(n):
        gap = value - column[k]
        squares[k] += gap * gap
        blocks[k] += abs(gap)
        without[k] += share * abs(gap)


@inline
def _change_column(column, n, before, after, share, gaps):
    """Change the value of a column."""
    squares, blocks, without = gaps[0], gaps[1], gaps[2]
    for k in range(n):
        old, new = before - column[k], after - column[k]
        step = abs(new) - abs(old)
        squares[k] += new * new - old * old
        blocks[k] += step
        without[k] += share * step


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
    """Return the mean target of the nearest events, over their squared distance; the farthest are all as far."""
    known = 0
    for k in range(without.size):
        gap = min(without[k], FARTHEST / city)
        if known < near.size or gap < near[known - 1]:
            i = min(known, near.size - 1)
            while i > 0 and gap < near[i - 1]:
                near[i], slots[i] = near[i - 1], slots[i - 1]
                i -= 1
            near[i], slots[i] = gap, k
            known = min(known + 1, near.size)
    above, below = 0.0, 0.0
    for i in range(known):
        distance = city * max(near[i], 0.0)
        share = 1.0 / (distance * distance + NEAR * NEAR)
        above += share * window.coef[0, SUM, slots[i]]
        below += share * window.coef[0, WEIGHT, slots[i]]
    return above / below if below > 0.0 else 0.0
