"""What neighbours say of rows whose columns change one after the other from those of a start to those of a row (shapley.py).

From step to step, values and distances change by one column, so a step costs the events, not their columns.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ..compiler import inline, jit
from ..core.kernels import Kernel
from ..core.vector import exp
from .archive import CELLS, PROBES, ROOM, VIEWS, Archive, keep_nearest, say
from .archive import NEIGHBOURS as OF_MEMORY
from .experts import Experts
from .shapley import Game, Orders
from .window import FAR, KINDS, LITTLE, LMS, NEAR, NEIGHBOURS, SIZE, SUM, WEIGHT, Window, city_rate

FARTHEST = -math.log(FAR)
LANES = 16  # numbers of a vector, at most
STRIP = 256  # events of the window whose factors are in fast memory at once
APART = 64  # places between events of which the nearest is looked at first
POWERS, TABLES = 3, 3  # of each kernel; of coefficients of each power
LINES = 3  # of numbers of a player: the factors in the values of two kernels, and a part of a distance


class Paths(NamedTuple):
    """From starts to rows."""

    rows: np.ndarray  # (rows, columns)
    starts: np.ndarray  # (pairs, columns)
    players: np.ndarray  # (columns,)
    orders: np.ndarray  # (pairs, 2, players), in which they come
    columns: np.ndarray  # (pairs, 2, columns), in the order in which they change
    changed: np.ndarray  # (pairs, 2, 1 + players): how many have changed after each step


def paths_of(game: Game, orders: Orders, view: Callable[[np.ndarray], np.ndarray]) -> Paths:
    """Return the paths to rows as a function of single columns sees them."""
    players, ranks = game.players.astype(np.int64), orders.ranks
    when = ranks[:, :, players]
    changed = (when[:, :, np.newaxis] < np.arange(ranks.shape[2] + 1)[:, np.newaxis]).sum(axis=3)
    columns = np.argsort(when, axis=2, kind="stable")
    starts = orders.starts[: len(ranks)]
    return Paths(view(game.rows), view(starts), players, np.argsort(ranks, axis=2), columns, changed)


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


def along_memory(held: Archive, cells: Cells, paths: Paths, row: int, outputs: int) -> np.ndarray:
    """Return the scores of the memory from starts to a row, (pairs, 2, steps, views, outputs); of values, 0 outputs."""
    out = np.zeros((*paths.changed.shape, VIEWS, max(outputs, 1)))
    x, starts = (np.ascontiguousarray(part, np.float32) for part in (paths.rows[row], paths.starts))
    if len(cells.is_copied):
        walk_memory(held, cells, x, starts, paths.columns, paths.changed, outputs, out)
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
    few = np.empty(max(core_gaps.size, gaps.shape[1]), np.int64)
    for i in range(orders.shape[0]):
        for side in range(orders.shape[1]):
            order, start = orders[i, side], starts[i]
            for c in range(row.size):
                x[c] = start[c]
            _measure_columns(cells.cores, x, core_gaps)
            for cell in range(count):
                measured[cell] = -1
            now = probes = neighbours = 0
            for step in range(changed.shape[2]):
                _change_columns(cells.cores, start, row, order[now : changed[i, side, step]], core_gaps)
                for k in range(now, changed[i, side, step]):
                    x[order[k]] = row[order[k]]
                now = changed[i, side, step]
                reach = _farthest(core_gaps, probed[:probes])
                probes = _nearest_within(core_gaps, 0, count, reach, 0, probed, nearest_cores, few)
                for probe in range(probes):
                    cell = probed[probe]
                    if cells.is_copied[cell] == 0:
                        _copy_cell(archive, archive.first[cell], archive.count[cell], cells.points[cell])
                        cells.is_copied[cell] = 1
                    near = gaps[cell, : (archive.count[cell] + LANES - 1) // LANES * LANES]
                    if measured[cell] < 0 or 2 * (now - measured[cell]) >= x.size:
                        _measure_columns(cells.points[cell], x, near)
                    else:
                        _change_columns(cells.points[cell], start, row, order[measured[cell] : now], near)
                    measured[cell] = now
                neighbours = _neighbours(archive, probed[:probes], gaps, neighbours, found, nearest, few)
                for view in range(VIEWS):
                    say(archive, found, nearest, neighbours, outputs, view, share, out[i, side, step, view])


@inline
def _neighbours(archive, probed, gaps, known, found, nearest, few):
    """Replace the neighbours of the step before by those of this one; return how many there are."""
    reach, seen = 0.0, 0
    for probe in range(probed.size):
        cell = probed[probe]
        for k in range(known):
            place = found[k] - archive.first[cell]
            if 0 <= place < archive.count[cell]:
                reach = max(reach, gaps[cell, place])
                seen += 1
    if seen < OF_MEMORY:  # some are in other cells
        reach = np.inf
    known = 0
    for probe in range(probed.size):
        cell = probed[probe]
        known = _nearest_within(gaps[cell], archive.first[cell], archive.count[cell], reach, known, found, nearest, few)
    for k in range(known):
        nearest[k] = max(nearest[k], 0.0)
    return known


@inline
def _farthest(gaps, places):
    """Return how far the cores are that were probed at the step before: there are as many within this distance."""
    reach = 0.0 if places.size == PROBES else np.inf
    for k in range(places.size):
        reach = max(reach, gaps[places[k]])
    return reach


@inline
def _nearest_within(gaps, first, count, reach, known, places, nearest, few):
    """Put those of some points that are nearer than the places so far among them, nearest first, as ``nearest_of`` does.

    None of the nearest is farther than ``reach``.  ``few`` has room for all points.
    """
    candidates = 0
    for i in range(count):
        few[candidates] = i
        candidates += 1 if gaps[i] <= reach else 0
    for n in range(candidates):
        known = keep_nearest(gaps[few[n]], first + few[n], known, places, nearest)
    return known


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


class Strips(NamedTuple):
    """The window's events, strip by strip, in single precision; behind the last one there are zeros."""

    columns: np.ndarray  # (strips, columns, STRIP)
    coef: np.ndarray  # (strips, views TABLES, STRIP): sums and weights of the mean, and the kernel expansion's


def strips_of(held: Window) -> Strips:
    """Return a window strip by strip."""
    n = held.stored
    coef = held.coef[:, [SUM, WEIGHT, LMS], :n].reshape(TABLES * len(held.coef), n)
    return Strips(_stripped(held.columns[:, :n]), _stripped(coef))


def _stripped(table: np.ndarray) -> np.ndarray:
    count = -(-table.shape[1] // STRIP)
    out = np.zeros((len(table), count * STRIP), np.float32)
    out[:, : table.shape[1]] = table
    return np.ascontiguousarray(out.reshape(len(table), count, STRIP).swapaxes(0, 1))


def along_window(experts: Experts, kernel: Kernel, strips: Strips, paths: Paths, row: int, weights: np.ndarray) -> np.ndarray:
    """Return the weighted sum of what neighbours say, and what each kernel expansion says, (pairs, 2, steps, 1 + views).

    Weights are those of the means of all views, and of the nearest few.
    """
    ends = np.vstack([paths.rows[row], paths.starts]).astype(np.float32)
    out = np.empty((*paths.changed.shape, len(weights)))
    rates = np.array([kernel.gamma, city_rate(kernel)], np.float32)
    shrink = (1.0 / experts.early.stretch).astype(np.float32)
    walk(experts.window, strips, rates, shrink, ends, paths.orders, paths.players, weights, out)
    return out


@jit
def walk(window, strips, rates, shrink, ends, orders, players, weights, out):
    """Write what is said along all orders.

    A kernel value is the product of the factors of the players that are there, and of those of the others.
    """
    pairs, sides, steps, _ = out.shape
    there, absent = np.empty((LINES * steps, STRIP), np.float32), np.empty((LINES * steps, STRIP), np.float32)
    behind, values = np.empty((LINES * steps, STRIP), np.float32), np.empty((LINES, STRIP), np.float32)
    own, few = np.empty(STRIP, np.float32), np.empty(APART, np.int64)
    totals = np.zeros((pairs * sides * steps, strips.coef.shape[1]))
    near, slots = (
        np.full((pairs * sides * steps, NEIGHBOURS), np.inf, np.float32),
        np.full((pairs * sides * steps, NEIGHBOURS), -1, np.int64),
    )
    nobody, farthest = np.full(NEIGHBOURS, -1, np.int64), np.float32(FARTHEST / rates[1])
    for strip in range(strips.columns.shape[0]):
        events = min(STRIP, window.place[SIZE] - strip * STRIP)
        _write_factors(strips.columns[strip], ends[0], players, rates, shrink, there)
        for i in range(pairs):
            _write_factors(strips.columns[strip], ends[1 + i], players, rates, shrink, absent)
            for side in range(sides):
                order, place = orders[i, side], (i * sides + side) * steps
                _multiply_behind(order, absent, behind)
                _begin(values)
                before = nobody
                for step in range(steps):
                    _add_sums(strips.coef[strip], values, behind[LINES * step : LINES * (step + 1)], totals[place + step])
                    _keep_nearest_of_strip(
                        values[2],
                        behind[LINES * step + 2],
                        strip * STRIP,
                        events,
                        farthest,
                        own,
                        few,
                        before,
                        near[place + step],
                        slots[place + step],
                    )
                    before = slots[place + step]
                    if step < order.size:
                        _join(there[LINES * order[step] : LINES * (order[step] + 1)], values)
    for i in range(pairs):
        for side in range(sides):
            for step in range(steps):
                place = (i * sides + side) * steps + step
                _say(window, totals[place], weights, rates[1], near[place], slots[place], out[i, side, step])


@inline
def _write_factors(columns, x, players, rates, shrink, lines):
    """Write the factors of each player in both kernels, and its part of the distance without factors of columns."""
    for line in range(lines.shape[0]):
        for k in range(STRIP):
            lines[line, k] = np.float32(0.0)
    for c in range(x.size):
        value, column, share, line = x[c], columns[c], shrink[c], LINES * players[c]
        squares, blocks, without = lines[line], lines[line + 1], lines[line + 2]
        for k in range(STRIP):
            gap = value - column[k]
            squares[k] += gap * gap
            blocks[k] += abs(gap)
            without[k] += share * abs(gap)
    for line in range(0, lines.shape[0], LINES):
        for kind in range(KINDS):
            rate, own = -rates[kind], lines[line + kind]
            for k in range(STRIP):
                own[k] = exp(rate * own[k])


@inline
def _multiply_behind(order, absent, behind):
    """Write the product of the factors of those that have not come after each step, and the sum of their distances."""
    _begin(behind[LINES * order.size :])
    for step in range(order.size - 1, -1, -1):
        for line in range(LINES):
            own, before, after = (
                absent[LINES * order[step] + line],
                behind[LINES * step + line],
                behind[LINES * (step + 1) + line],
            )
            if line < KINDS:
                for k in range(STRIP):
                    before[k] = after[k] * own[k]
            else:
                for k in range(STRIP):
                    before[k] = after[k] + own[k]


@inline
def _begin(lines):
    """Write the factors and the distance of no players."""
    for line in range(LINES):
        start, own = np.float32(1.0 if line < KINDS else 0.0), lines[line]
        for k in range(STRIP):
            own[k] = start


@inline
def _join(own, values):
    """Add a player to those that are there."""
    squares, blocks, without, one, two, three = values[0], values[1], values[2], own[0], own[1], own[2]
    for k in range(STRIP):
        squares[k] *= one[k]
        blocks[k] *= two[k]
        without[k] += three[k]


@inline
def _add_sums(coef, values, behind, totals):
    """Add what the events of a strip say in all views."""
    for kind in range(KINDS):
        first = kind * POWERS * TABLES
        _add_powers(coef[first : first + POWERS * TABLES], values[kind], behind[kind], totals[first : first + POWERS * TABLES])


@inline
def _add_powers(coef, there, absent, totals):
    """Add the sums over events of three tables, times kernel values, their fourth and their sixteenth powers."""
    a, b, c, d, e, f, g, h, i = coef[0], coef[1], coef[2], coef[3], coef[4], coef[5], coef[6], coef[7], coef[8]
    p = q = r = s = t = u = v = w = x = np.float32(0.0)
    for k in range(STRIP):
        wide = there[k] * absent[k]
        square = wide * wide
        narrow = square * square
        square = narrow * narrow
        narrowest = square * square
        p += a[k] * wide
        q += b[k] * wide
        r += c[k] * wide
        s += d[k] * narrow
        t += e[k] * narrow
        u += f[k] * narrow
        v += g[k] * narrowest
        w += h[k] * narrowest
        x += i[k] * narrowest
    totals[0] += p
    totals[1] += q
    totals[2] += r
    totals[3] += s
    totals[4] += t
    totals[5] += u
    totals[6] += v
    totals[7] += w
    totals[8] += x


@inline
def _keep_nearest_of_strip(there, behind, first, events, farthest, least, few, before, near, slots):
    """Put those of the events of a strip that are nearer among the nearest few; of those as near, the first ones.

    The farthest are all as far, as in predictions.

    In the first strip, those of the step before, if there are any in it, say how far they are at most.  ``least`` becomes the
    least distance of the events that are ``APART`` places apart.
    """
    last = NEIGHBOURS - 1
    far = near[last]
    if first == 0 and before[last] >= 0:
        far = np.float32(0.0)
        for i in range(NEIGHBOURS):
            far = max(far, min(there[before[i]] + behind[before[i]], farthest))
    for k in range(STRIP):
        least[k] = min(there[k] + behind[k], farthest)
    half = STRIP // 2
    while half >= APART:
        for k in range(half):
            least[k] = min(least[k], least[half + k])
        half //= 2
    candidates = 0
    for k in range(APART):  # without a branch
        few[candidates] = k
        candidates += 1 if least[k] <= far else 0
    for n in range(candidates):
        for k in range(few[n], events, APART):
            gap, slot = min(there[k] + behind[k], farthest), first + k
            i = NEIGHBOURS
            while gap <= far and i > 0 and (gap < near[i - 1] or (gap == near[i - 1] and slot < slots[i - 1])):
                if i < NEIGHBOURS:
                    near[i], slots[i] = near[i - 1], slots[i - 1]
                i -= 1
            if i < NEIGHBOURS:
                near[i], slots[i] = gap, slot


@inline
def _say(window, totals, weights, city, near, slots, out):
    """Write the weighted sum of what the neighbours say, and what each kernel expansion says."""
    views = weights.size - 1
    total, above, below = 0.0, 0.0, 0.0
    for view in range(views):
        total += weights[view] * totals[TABLES * view] / (totals[TABLES * view + 1] + LITTLE)
        out[1 + view] = totals[TABLES * view + 2]
    for i in range(min(NEIGHBOURS, window.place[SIZE])):
        distance = city * near[i]
        share = 1.0 / (distance * distance + NEAR * NEAR)
        above += share * window.coef[0, SUM, slots[i]]
        below += share * window.coef[0, WEIGHT, slots[i]]
    out[0] = total + weights[views] * (above / below if below > 0.0 else 0.0)
