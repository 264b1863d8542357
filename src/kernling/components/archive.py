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
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..compiler import inline, jit
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


@declared(
    lengths={"held": ("size", HELD), "used": ("size", CELLS)},
    points="rows: held columns",
    targets="targets: held",
    weights="weights: held",
    times="counts: held",
    cores="rows: used columns",
    first="counts: used",
    count="counts: used",
    size=("counts", "counts", "counts", "settings", "settings"),
)
class Archive(NamedTuple):
    points: np.ndarray  # cell by cell
    targets: np.ndarray
    weights: np.ndarray
    times: np.ndarray  # the number of events learned before
    cores: np.ndarray
    first: np.ndarray  # where each cell begins
    count: np.ndarray  # type: ignore[assignment]  # of events in each cell
    size: np.ndarray  # see HELD and the rest above

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

    def grown(self, capacity: int) -> Archive:
        """Return the memory at its full size, with room for as many events in each cell."""
        most, room = int(self.size[MOST]), int(self.size[ROOM])
        if len(self.points) == most * room:
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

    def moved(self, factor: np.ndarray, shift: np.ndarray) -> Archive:
        """Return a memory without spare room whose rows are multiplied by a factor and shifted."""
        rows = ((part * factor + shift).astype(np.float32) for part in (self.points, self.cores))
        return self._replace(**dict(zip(("points", "cores"), rows, strict=True)))

    def merged(self, other: Archive, start: Archive | None, merging: Merging) -> Archive:
        """Return the latest events of both, in new cells; those of a common start are kept once."""
        begun = 0 if start is None else start.size[CLOCK]
        theirs = other.moved(np.ones(other.points.shape[1]), merging.shift)._events()
        later = other.times >= begun
        clock = int(self.size[CLOCK] + other.size[CLOCK] - begun)
        found = {name: np.concatenate([own, theirs[name][later]]) for name, own in self._events().items()}
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


def as_stored(X: np.ndarray, stretch: np.ndarray) -> np.ndarray:
    """Return rows times the factors of the columns in single precision."""
    return np.clip(X, -FAR, FAR).astype(np.float32) * stretch.astype(np.float32)


def scores_of(archive: Archive, X: np.ndarray, outputs: int) -> np.ndarray:
    """Return the current scores of rows, (views, outputs, rows), or with 0 outputs the values, (views, 1, rows)."""
    return learn(archive, X, np.zeros(len(X)), np.zeros(len(X)), outputs)


def learn(archive: Archive, X: np.ndarray, targets: np.ndarray, weights: np.ndarray, outputs: int) -> np.ndarray:
    """Store events; return what ``scores_of`` would have returned before each."""
    out = np.zeros((VIEWS, max(1, outputs), len(X)))
    if archive.size[MOST]:
        _learn(archive, X, targets, weights, outputs, out)
    return out


@jit
def _learn(archive, X, targets, weights, outputs, out):
    cells, found = np.empty(PROBES, np.int64), np.empty(NEIGHBOURS, np.int64)
    gaps = np.empty(max(PROBES, NEIGHBOURS))
    shares = np.empty((VIEWS, max(2, outputs)))
    for j in range(X.shape[0]):
        probes = _nearest_cells(archive, X[j], cells, gaps)
        neighbours = _nearest_events(archive, X[j], cells, probes, found, gaps)
        _weigh(archive, X[j], found, neighbours, outputs, shares)
        for view in range(VIEWS):
            _say(shares[view], outputs, out[view], j)
        if weights[j] > 0.0:
            label = _label(targets[j], outputs)
            if outputs == 0 or neighbours == 0 or shares[0, label] < SURE:
                _store(archive, X[j], targets[j], weights[j], archive.size[CLOCK], cells[0])
            archive.size[CLOCK] += 1


@jit
def _store_all(archive, points, targets, weights, times):
    cells, gaps = np.empty(1, np.int64), np.empty(1)
    for j in range(points.shape[0]):
        _nearest_cells(archive, points[j], cells, gaps)
        _store(archive, points[j], targets[j], weights[j], times[j], cells[0])


@inline
def _sort_in(gap, place, count, gaps, places):
    """Put a place with this distance among the nearest so far; of those that are as near, the first one stays first."""
    i = min(count, places.size - 1)
    while i > 0 and gap < gaps[i - 1]:
        gaps[i], places[i] = gaps[i - 1], places[i - 1]
        i -= 1
    gaps[i], places[i] = gap, place


@inline
def _nearest_cells(archive, x, cells, gaps):
    """Write the cells with the nearest cores, nearest first; returns how many there are."""
    count = 0
    cells[0] = 0
    for cell in range(archive.size[CELLS]):
        gap = squared_gap(x, archive.cores[cell])
        if count < cells.size or gap < gaps[count - 1]:
            _sort_in(gap, cell, count, gaps, cells)
            count = min(count + 1, cells.size)
    return count


@inline
def _nearest_events(archive, x, cells, probes, found, gaps):
    """Write the places of the nearest events in these cells; returns how many there are."""
    count = 0
    for probe in range(probes):
        first = archive.first[cells[probe]]
        for place in range(first, first + archive.count[cells[probe]]):
            gap = squared_gap(x, archive.points[place])
            if count < found.size or gap < gaps[count - 1]:
                _sort_in(gap, place, count, gaps, found)
                count = min(count + 1, found.size)
    return count


@inline
def _label(target, outputs):
    return int(target) if outputs > 1 else int(target > 0.0)


@inline
def _weigh(archive, x, found, neighbours, outputs, shares):
    """Write the share of each class among the neighbours, or the mean of their values, for both views."""
    for view in range(VIEWS):
        total = 0.0
        for k in range(shares.shape[1]):
            shares[view, k] = 0.0
        for i in range(neighbours):
            place = found[i]
            gap = NEAR
            for c in range(x.size):
                z = np.float64(x[c]) - np.float64(archive.points[place, c])
                gap += z * z
            weight = archive.weights[place] / gap
            if view == 1:
                age = float(archive.size[CLOCK] - archive.times[place])
                weight /= age * age
            total += weight
            if outputs == 0:
                shares[view, 0] += weight * archive.targets[place]
            else:
                shares[view, _label(archive.targets[place], outputs)] += weight
        if total > 0.0:
            for k in range(shares.shape[1]):
                shares[view, k] /= total


@inline
def _say(share, outputs, out, j):
    if outputs == 0:
        out[0, j] = share[0]
    elif outputs == 1:
        out[0, j] = np.log((share[1] + SMOOTH) / (share[0] + SMOOTH))
    else:
        for k in range(outputs):
            out[k, j] = np.log(share[k] + SMOOTH)


@inline
def _store(archive, x, target, weight, time, cell):
    """Store an event in the nearest cell, which is divided if it is full and there is another one, or else loses its oldest."""
    size = archive.size
    if size[CELLS] == 0:
        size[CELLS] = 1
        archive.count[0] = 0
        for c in range(x.size):
            archive.cores[0, c] = x[c]
    if archive.count[cell] == size[ROOM] and size[CELLS] < size[MOST]:
        new = _divide(archive, cell)
        if new > 0 and squared_gap(x, archive.cores[new]) < squared_gap(x, archive.cores[cell]):
            cell = new
    place = archive.first[cell]
    if archive.count[cell] < size[ROOM]:
        place += archive.count[cell]
        archive.count[cell] += 1
        size[HELD] += 1
    else:
        for other in range(place + 1, place + size[ROOM]):
            if archive.times[other] < archive.times[place]:
                place = other
    for c in range(x.size):
        archive.points[place, c] = x[c]
    archive.targets[place], archive.weights[place], archive.times[place] = target, weight, time


@inline
def _farthest(archive, cell, x):
    """The place of the event of a cell that is farthest from a row."""
    first = archive.first[cell]
    best, far = first, -1.0
    for place in range(first, first + archive.count[cell]):
        gap = squared_gap(x, archive.points[place])
        if gap > far:
            best, far = place, gap
    return best


@inline
def _divide(archive, cell):
    """Move a part of a cell's events to a new cell; returns it, or 0 if all events are the same."""
    new = archive.size[CELLS]
    first, count, d = archive.first[cell], archive.count[cell], archive.cores.shape[1]
    one = _farthest(archive, cell, archive.cores[cell])
    other = _farthest(archive, cell, archive.points[one])
    if squared_gap(archive.points[one], archive.points[other]) == 0.0:
        return 0
    for c in range(d):
        archive.cores[new, c], archive.cores[cell, c] = archive.points[one, c], archive.points[other, c]
    sums = np.empty((2, d))
    moves = np.empty(count, np.int64)
    for turn in range(TURNS):
        moved = 0
        for c in range(d):
            sums[0, c] = sums[1, c] = 0.0
        for e in range(count):
            x = archive.points[first + e]
            moves[e] = squared_gap(x, archive.cores[new]) < squared_gap(x, archive.cores[cell])
            moved += moves[e]
            for c in range(d):
                sums[moves[e], c] += x[c]
        if turn < TURNS - 1 and 0 < moved < count:
            for c in range(d):
                archive.cores[cell, c] = sums[0, c] / (count - moved)
                archive.cores[new, c] = sums[1, c] / moved
    archive.size[CELLS] += 1
    archive.count[cell] = archive.count[new] = 0
    for e in range(count):
        goal = new if moves[e] else cell
        place = archive.first[goal] + archive.count[goal]
        archive.count[goal] += 1
        for c in range(d):
            archive.points[place, c] = archive.points[first + e, c]
        archive.targets[place] = archive.targets[first + e]
        archive.weights[place] = archive.weights[first + e]
        archive.times[place] = archive.times[first + e]
    return new
