"""A large memory of past events, in cells: neighbours of a row are looked for in the few cells whose cores are nearest.

Each event is stored in the cell of the nearest core, next to the others of that cell.  A full cell is divided in two, by a few
turns of two means, as long as there are cells left; then its oldest event goes.  So an event costs a distance to each core, and
to the events of a few cells.  Rows are kept in single precision.

Of the nearest few events, one expert weighs each by the inverse of its squared distance, and another one also by that of its
squared age.  For classes, the scores are logarithms of their shares of the weight, and an event is stored unless its own class
had nearly all of the weight: events in the midst of their class say little.  For values, the prediction is the mean.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import numpy as np

from ..compiler import inline, inner, jit
from ..core.expansion import check_room
from ..core.limits import LARGEST
from ..core.shapes import declared
from ..core.state import Widening, recoded
from .eviction import squared_gap

if TYPE_CHECKING:
    from ..merging.rules import Merging

NEIGHBOURS = 10
PROBES = 3  # cells that are searched
VIEWS = 2  # ways to weigh neighbours: by distance, and by distance and age
SURE = 0.9  # the share of its own class from which on an event is not stored
SMOOTH = 0.02  # added to the shares of all classes
NEAR = 1e-9  # added to squared distances
TURNS = 3  # of two means
FEWEST = 8  # events for which a cell has room
EXTRA = 24  # bytes of an event besides its row
FAR = LARGEST["float32"]
HELD, CELLS, CLOCK, MOST, ROOM = range(5)  # what size holds: events, cells, events learned; most cells, and events of a cell


@declared(lengths={"held": ("size", HELD), "used": ("size", CELLS)})
class Archive(NamedTuple):
    points: Annotated[np.ndarray, "rows: held columns"]  # cell by cell
    targets: Annotated[np.ndarray, "targets: held"]
    weights: Annotated[np.ndarray, "weights: held"]
    times: Annotated[np.ndarray, "counts: held"]  # the number of events learned before
    cores: Annotated[np.ndarray, "rows: used columns"]
    first: Annotated[np.ndarray, "counts: used"]  # where each cell begins
    count: Annotated[np.ndarray, "counts: used"]  # type: ignore[assignment]  # of events in each cell
    size: Annotated[np.ndarray, "counts", "counts", "counts", "settings", "settings"]  # see HELD and the rest above

    def check(self, dimensions: Mapping[str, int]) -> None:
        """Raise unless the cells follow each other, and none has too many events."""
        if self.size[CELLS] > self.size[MOST] or (self.count > self.size[ROOM]).any() or self.count.sum() != self.size[HELD]:
            raise ValueError("the cells of the memory hold other numbers of events than it has room for")
        if not np.array_equal(self.first, np.cumsum(self.count) - self.count):
            raise ValueError("the cells of the memory do not follow each other")
        if (self.times >= self.size[CLOCK]).any():
            raise ValueError("the memory holds events later than the last one")

    @property
    def stored(self) -> int:
        """Number of events in the memory."""
        return int(self.size[HELD])

    @property
    def has_room(self) -> bool:
        """Whether the memory has its full size."""
        return len(self.points) == int(self.size[MOST] * self.size[ROOM])

    def grown(self, capacity: int) -> Archive:
        """Return the memory at its full size, with room for as many events in each cell."""
        most, room = int(self.size[MOST]), int(self.size[ROOM])
        if self.has_room:
            return self
        check_room(most * room, self.points.shape[1], "events")
        places = self._places(np.arange(most) * room)
        whole = {name: np.zeros((most * room, *part.shape[1:]), part.dtype) for name, part in self._events().items()}
        for name, part in self._events().items():
            whole[name][places] = part
        cores, count = np.zeros((most, self.cores.shape[1]), np.float32), np.zeros(most, np.int64)
        cores[: len(self.cores)], count[: len(self.count)] = self.cores, self.count
        return Archive(**whole, cores=cores, first=np.arange(most) * room, count=count, size=self.size.copy())

    def trimmed(self, size: int) -> Archive:
        """Return the memory without unused space."""
        cells = int(self.size[CELLS])
        places = self._places(self.first)
        events = {name: part[places] for name, part in self._events().items()}
        count = self.count[:cells].copy()
        return Archive(
            **events, cores=self.cores[:cells].copy(), first=np.cumsum(count) - count, count=count, size=self.size.copy()
        )

    def copied(self) -> Archive:
        """Return a copy; of cells that are not used, nothing is read, and no memory is taken as long as it is not written."""
        if not self.has_room:
            return Archive(*(part.copy() for part in self))
        used, events = int(self.size[CELLS] * self.size[ROOM]), {}
        for name, part in self._events().items():
            events[name] = np.zeros(part.shape, part.dtype)
            events[name][:used] = part[:used]
        return Archive(**events, **{name: getattr(self, name).copy() for name in self._fields[4:]})

    def __deepcopy__(self, memo: Any) -> Archive:
        return self.copied()

    def _events(self) -> dict[str, np.ndarray]:
        return {name: getattr(self, name) for name in self._fields[:4]}

    def _places(self, first: np.ndarray) -> np.ndarray:
        """Return the places of all events, in the order of the cells, if these begin there."""
        count = self.count[: int(self.size[CELLS])]
        return np.arange(count.sum()) + np.repeat(first[: len(count)] - (np.cumsum(count) - count), count)

    def widened(self, change: Widening) -> Archive:
        """Recode the targets for the outputs of ``change``."""
        places, targets = self._places(self.first), np.zeros_like(self.targets)
        targets[places] = recoded(self.targets[places], change)
        return self._replace(targets=targets)

    def moved(self, factor: np.ndarray) -> Archive:
        """Return the memory with rows multiplied by a factor for each column."""
        return self._replace(
            points=(self.points * factor).astype(np.float32),
            cores=(self.cores * factor).astype(np.float32),
        )

    def merged(self, other: Archive, start: Archive | None, merging: Merging) -> Archive:
        """Return the latest events of both, in new cells; those of a common start are kept once."""
        begun = 0 if start is None else start.size[CLOCK]
        later = other.times >= begun
        clock = int(self.size[CLOCK] + other.size[CLOCK] - begun)
        found = {name: np.concatenate([own, getattr(other, name)[later]]) for name, own in self._events().items()}
        ages = np.concatenate([self.size[CLOCK] - self.times, (other.size[CLOCK] - other.times)[later]])
        found["times"] = clock - ages
        order = np.argsort(-ages, kind="stable")
        merged = new_archive(self.points.shape[1], 0)._replace(size=np.array([0, 0, clock, *self.size[MOST:]])).grown(0)
        _store_all(merged, *(part[order] for part in found.values()))
        return merged.trimmed(0)


def new_archive(d: int, budget: int) -> Archive:
    """Return an empty memory for d columns within a number of bytes."""
    row = 4 * d
    room = max(FEWEST, math.isqrt(budget // ((row + EXTRA) * PROBES)))
    most = budget // (room * (row + EXTRA) + row + EXTRA)
    check_room(most * room, d, "events", later=True)
    size = np.array([0, 0, 0, most, room])
    nothing, places = np.zeros(0), np.zeros(0, np.int64)
    rows = np.zeros((0, d), np.float32)
    return Archive(rows, nothing, nothing.copy(), places, rows.copy(), places.copy(), places.copy(), size)


def clear(archive: Archive) -> None:
    """Remove all events."""
    archive.size[[HELD, CELLS, CLOCK]] = 0


@jit
def learn(archive, X, targets, weights, outputs, out):
    """Store events; write their scores before, (views, outputs, events), or with 0 outputs the values, (views, 1, events)."""
    if archive.size[MOST] == 0:
        for view in range(VIEWS):
            for o in range(out.shape[1]):
                for j in range(out.shape[2]):
                    out[view, o, j] = 0.0
        return
    cells, found = np.empty(PROBES, np.int64), np.empty(NEIGHBOURS, np.int64)
    nearest, gaps = np.empty(NEIGHBOURS), np.empty((2, max(archive.size[MOST], archive.size[ROOM])))
    shares, scores, sums = np.empty((VIEWS, max(2, outputs))), np.empty(max(1, outputs)), np.empty((2, X.shape[1]))
    for j in range(X.shape[0]):
        probes = _search(archive.cores, 0, archive.size[CELLS], X[j], gaps[0], 0, cells, nearest)
        neighbours = 0
        for probe in range(probes):
            first, count = archive.first[cells[probe]], archive.count[cells[probe]]
            neighbours = _search(archive.points, first, count, X[j], gaps[0], neighbours, found, nearest)
        _measure_exactly(archive, X[j], found, neighbours, nearest)
        for view in range(VIEWS):
            say(archive, found, nearest, neighbours, outputs, view, shares[view], scores)
            for o in range(scores.size):
                out[view, o, j] = scores[o]
        if weights[j] > 0.0:
            if outputs == 0 or neighbours == 0 or shares[0, _label(targets[j], outputs)] < SURE:
                place = _place_for(archive, X[j], cells[0] if probes > 0 else 0, gaps, sums)
                _write(archive, place, X[j], targets[j], weights[j], archive.size[CLOCK])
            archive.size[CLOCK] += 1


@jit
def _store_all(archive, points, targets, weights, times):
    """Store events without learning."""
    cells, nearest, sums = np.zeros(1, np.int64), np.empty(1), np.empty((2, points.shape[1]))
    gaps = np.empty((2, max(archive.size[MOST], archive.size[ROOM])))
    for j in range(points.shape[0]):
        _search(archive.cores, 0, archive.size[CELLS], points[j], gaps[0], 0, cells, nearest)
        place = _place_for(archive, points[j], cells[0], gaps, sums)
        _write(archive, place, points[j], targets[j], weights[j], times[j])


@inner
def _measure(points, first, count, x, gaps):
    """Write the squared distances of some points."""
    for i in range(count):
        gaps[i] = squared_gap(x, points[first + i])


@inner
def _search(points, first, count, x, gaps, known, places, nearest):
    """Put those of some points that are nearer than the places so far among them, nearest first; returns how many there are."""
    _measure(points, first, count, x, gaps)
    return nearest_of(gaps, first, count, known, places, nearest)


@inner
def nearest_of(gaps, first, count, known, places, nearest):
    """Do the same, given squared distances.  Of those that are as near, the first one stays first."""
    for i in range(count):
        known = keep_nearest(gaps[i], first + i, known, places, nearest)
    return known


@inline
def keep_nearest(gap, place, known, places, nearest):
    """Put a place among those so far if it is nearer than the last of them, or there is room; return how many there are."""
    if known < places.size or gap < nearest[known - 1]:
        k = min(known, places.size - 1)
        while k > 0 and gap < nearest[k - 1]:
            nearest[k], places[k] = nearest[k - 1], places[k - 1]
            k -= 1
        nearest[k], places[k] = gap, place
        known = min(known + 1, places.size)
    return known


@inner
def _measure_exactly(archive, x, found, neighbours, nearest):
    """Write the squared distances of neighbours in double precision."""
    for i in range(neighbours):
        gap = 0.0
        for c in range(x.size):
            z = np.float64(x[c]) - np.float64(archive.points[found[i], c])
            gap += z * z
        nearest[i] = gap


@inline
def _label(target, outputs):
    return int(target) if outputs > 1 else int(target > 0.0)


@inner
def say(archive, found, nearest, neighbours, outputs, view, share, out):
    """Write the scores of a view, given neighbours and their squared distances: of classes, or with 0 outputs the value."""
    total = 0.0
    for k in range(share.size):
        share[k] = 0.0
    for i in range(neighbours):
        place = found[i]
        age = float(archive.size[CLOCK] - archive.times[place]) if view == 1 else 1.0
        weight = archive.weights[place] / ((NEAR + nearest[i]) * age * age)
        total += weight
        if outputs == 0:
            share[0] += weight * archive.targets[place]
        else:
            share[_label(archive.targets[place], outputs)] += weight
    for k in range(share.size):
        share[k] /= total if total > 0.0 else 1.0
    if outputs == 0:
        out[0] = share[0]
    elif outputs == 1:
        out[0] = np.log((share[1] + SMOOTH) / (share[0] + SMOOTH))
    else:
        for k in range(outputs):
            out[k] = np.log(share[k] + SMOOTH)


@inner
def _write(archive, place, x, target, weight, time):
    for c in range(x.size):
        archive.points[place, c] = x[c]
    archive.targets[place], archive.weights[place], archive.times[place] = target, weight, time


@inner
def _place_for(archive, x, cell, gaps, sums):
    """Return a place in the nearest cell: a full one is divided, or loses its oldest event if there are no more cells."""
    size = archive.size
    if size[CELLS] == 0:
        size[CELLS] = 1
        archive.count[0] = 0
        for c in range(x.size):
            archive.cores[0, c] = x[c]
    if archive.count[cell] == size[ROOM] and size[CELLS] < size[MOST]:
        cell = _divide(archive, x, cell, gaps, sums)
    place = archive.first[cell]
    if archive.count[cell] < size[ROOM]:
        place += archive.count[cell]
        archive.count[cell] += 1
        size[HELD] += 1
    else:
        for other in range(place + 1, place + size[ROOM]):
            if archive.times[other] < archive.times[place]:
                place = other
    return place


@inner
def _divide(archive, x, cell, gaps, sums):
    """Move a part of a cell's events to a new cell, unless all are the same; returns the one of both that is nearer to x."""
    new, points, cores = archive.size[CELLS], archive.points, archive.cores
    first, count = archive.first[cell], archive.count[cell]
    stays, moves = gaps[0], gaps[1]  # distances to both cores
    _measure(points, first, count, cores[cell], moves)
    one = _largest(moves, count)
    _measure(points, first, count, points[first + one], moves)
    other = _largest(moves, count)
    if moves[other] == 0.0:
        return cell
    for c in range(x.size):
        cores[new, c], cores[cell, c] = points[first + one, c], points[first + other, c]
    for turn in range(TURNS):
        _measure(points, first, count, cores[cell], stays)
        _measure(points, first, count, cores[new], moves)
        if turn < TURNS - 1:
            _set_means(archive, cell, new, gaps, sums)
    archive.size[CELLS] += 1
    archive.count[cell] = archive.count[new] = 0
    for e in range(count):
        goal = new if moves[e] < stays[e] else cell
        place = archive.first[goal] + archive.count[goal]
        archive.count[goal] += 1
        event = first + e
        _write(archive, place, points[event], archive.targets[event], archive.weights[event], archive.times[event])
    _measure(cores, cell, 1, x, stays)
    _measure(cores, new, 1, x, moves)
    return new if moves[0] < stays[0] else cell


@inline
def _largest(gaps, count):
    best = 0
    for i in range(count):
        if gaps[i] > gaps[best]:
            best = i
    return best


@inner
def _set_means(archive, cell, new, gaps, sums):
    """Make the cores of two cells the means of the events that are nearer to each."""
    moved = 0
    first, count = archive.first[cell], archive.count[cell]
    for c in range(sums.shape[1]):
        sums[0, c] = sums[1, c] = 0.0
    for e in range(count):
        side = 1 if gaps[1, e] < gaps[0, e] else 0
        moved += side
        for c in range(sums.shape[1]):
            sums[side, c] += archive.points[first + e, c]
    if 0 < moved < count:
        for c in range(sums.shape[1]):
            archive.cores[cell, c] = sums[0, c] / (count - moved)
            archive.cores[new, c] = sums[1, c] / moved
