"""The last N stored events, shared by several experts: kernel expansions on the same points, of which the oldest is replaced.

The experts see the kernel k, its fourth power and, where asked for, the sixteenth: products of kernels are kernels, and of the
Gaussian these are those of 4 and 16 times the gamma, from one set of distances.  Others see the same powers of
exp(-sqrt(gamma) / 4 |x - x'|_1), of the city-block distance, whose borders follow the axes.  For each of these views there are
some columns of coefficients.  Events are learned one by one; vector instructions run along the stored events.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from ..compiler import inline, inline_exact, inner_exact, jit_exact, shaped
from ..core.expansion import check_room
from ..core.kernels import Kernel, transform
from ..core.matrices import squared_norms
from ..core.shapes import are_norms, declared
from ..core.state import Widening, padded
from ..core.tiles import TILE, add_distances, add_products
from ..core.triangles import dot
from ..core.vector import exp

if TYPE_CHECKING:
    from ..merging.rules import Merging

SIZE, NEXT = range(2)  # what place holds: events stored, and where the next one goes
POWER = 4  # of a kernel is the next one
STEP = 2.0  # of a passive-aggressive step on one output at most: C = 1 for each of two classes
RATE = 0.3  # of least mean squares
LOG_REST = math.log(1.0 - RATE)
LITTLE = 1e-3  # added to the weight of all neighbours, so that far from all of them the prediction is 0
LMS, SUM, WEIGHT = range(3)  # columns of a window of values
VALUES = 3
KINDS = 2  # of kernels: the model's, and that of the city-block distance
CITY = 0.25  # the rate of the latter, over the root of gamma
NEIGHBOURS = 5
NEAR = 1e-3  # logarithm of a kernel value around which neighbours count as equally near
ROOM = 2**16  # pairs of a row and a stored event that are measured at once
FAR = 1e-30  # kernel value below which all events are as far: float32 has no smaller ones with all digits
TIE, TIE_32 = 1e-10, 1e-5  # two events are as near if the ratio of their kernel values is 1 up to this


@declared(lengths={"held": ("place", SIZE)})
class Window(NamedTuple):
    columns: Annotated[np.ndarray, "rows: columns held"]  # of the events: (d, events)
    norms: Annotated[np.ndarray, "not negative: most"]  # squared: the only array that always has its full length
    coef: Annotated[np.ndarray, "coefficients: views scores held"]
    # the column of each output, as in an expansion; none is late in a regression
    places: Annotated[np.ndarray, "settings: scores"]
    place: Annotated[np.ndarray, "counts", "index of most"]  # see SIZE and the rest above

    def check(self, dimensions: Mapping[str, int]) -> None:
        """Raise unless the next place follows from the number of events."""
        (n, following), most = self.place.tolist(), len(self.norms)
        if n > most or following != (n if n < most else following % most):
            raise ValueError(f"a window of {most} events cannot hold {n} and go on at {following}")
        if not are_norms(self.norms[:n], self.columns.T):
            raise ValueError("the norms of the window are not the squared norms of its points")

    @property
    def stored(self) -> int:
        """Number of events in the window."""
        return int(self.place[SIZE])

    def grown(self, capacity: int) -> Window:
        """Return the window at its full size: memory is constant from the first event on."""
        n = len(self.norms)
        if n == self.columns.shape[1]:
            return self
        check_room(n, len(self.columns), "events")
        return self._replace(columns=padded(self.columns, 1, n), coef=padded(self.coef, 2, n))

    def trimmed(self, size: int) -> Window:
        """Return the window without unused space."""
        n = self.stored
        return self._replace(columns=self.columns[:, :n].copy(), coef=self.coef[:, :, :n].copy())

    def widened(self, change: Widening) -> Window:
        """Convert to the outputs of ``change``."""
        return self._replace(coef=change.columns(self.coef, self.places), places=change.places(self.places))

    def ordered(self) -> Window:
        """Return a copy with the columns in the order of the labels, and no others."""
        return self._replace(coef=self.coef.take(self.places, axis=1), places=np.arange(len(self.places)))

    @property
    def tie(self) -> float:
        """Share of a kernel value that may be due to rounding."""
        return TIE_32 if self.columns.itemsize == 4 else TIE

    def by_age(self) -> np.ndarray:
        """Return the indices, newest event first."""
        return (int(self.place[NEXT]) - 1 - np.arange(self.stored)) % max(self.stored, 1)

    def merged(self, other: Window, start: Window | None, merging: Merging) -> Window:
        """Return the latest events of both, alternating, weighted by the share of their model."""
        most = len(self.norms)
        sides = [(self, merging.shares[0], 0.0), (other, merging.shares[1], merging.shift)]
        rows = [(age, side, place) for side, (window, *_) in enumerate(sides) for age, place in enumerate(window.by_age())]
        kept = sorted(rows)[:most][::-1]
        points = [sides[side][0].columns[:, place] + sides[side][2] for _, side, place in kept]
        coef = [sides[side][1] * sides[side][0].coef[:, :, place] for _, side, place in kept]
        n = len(kept)
        table = np.array(points, self.columns.dtype).reshape(n, len(self.columns))
        columns = np.moveaxis(np.array(coef).reshape(n, *self.coef.shape[:2]), 0, 2)
        norms = np.zeros_like(self.norms)
        norms[:n] = squared_norms(table)
        place = np.array([n, n % most])
        return Window(np.ascontiguousarray(table.T), norms, np.ascontiguousarray(columns), self.places, place)


def new_window(most: int, d: int, dtype: DTypeLike, powers: int, columns: int) -> Window:
    """Return an empty window of at most this many events."""
    check_room(most, 1, "events")
    coef, places = np.zeros((KINDS * powers, columns, 0)), np.arange(columns)
    return Window(np.zeros((d, 0), dtype), np.zeros(most, dtype), coef, places, np.zeros(2, np.int64))


def clear(window: Window) -> None:
    """Remove all events."""
    window.place[SIZE] = window.place[NEXT] = 0


# ---------------------------------------------------------------------- an event


def city_rate(kernel: Kernel) -> float:
    """Return the rate of the kernel of the city-block distance."""
    return CITY * math.sqrt(kernel.gamma)


@inner_exact
def _to_kernel_values(window, kernel, distances):
    """Convert city-block distances to kernel values."""
    rate = CITY * math.sqrt(kernel.gamma)
    for k in range(window.place[SIZE]):
        distances[k] = exp(-rate * distances[k])


@inner_exact
def _view(window, kernel, norm, sums, own, j, entered, count, values):
    """Write the values of both kernels and their powers, (views, events), of row j of those that were measured."""
    n, powers = window.place[SIZE], window.coef.shape[0] // KINDS
    for kind in range(KINDS):
        _fetch(sums[kind], own[kind], j, entered, count, values[kind * powers])
    products = values[0, :n]
    for k in range(n):
        products[k] = max((norm + window.norms[k]) - 2.0 * products[k], 0.0)
    transform(kernel, products)
    _to_kernel_values(window, kernel, values[powers])
    for v in range(values.shape[0]):
        if v % powers > 0:
            wide, narrow = values[v - 1], values[v]
            for k in range(n):
                square = wide[k] * wide[k]
                narrow[k] = square * square


@jit_exact
def _measure(window, X, shares, sums, own):
    """Write the inner products and city-block distances of rows and stored events, (2, rows, events), and of pairs of rows.

    With a third table, these are the distances with columns times ``shares``.
    """
    for kind in range(sums.shape[0]):
        for j in range(X.shape[0]):
            for k in range(sums.shape[2]):
                sums[kind, j, k] = 0.0
            for k in range(X.shape[0]):
                own[kind, j, k] = 0.0
    empty = 0 if sums.shape[0] > KINDS else X.shape[0]
    columns = np.empty((X.shape[1], X.shape[0]))
    for j in range(X.shape[0]):
        for c in range(X.shape[1]):
            columns[c, j] = X[j, c]
    add_products(X.T, window.columns, sums[0])
    add_products(X.T, columns, own[0])
    last = sums.shape[0] - 1
    add_distances(X.T, window.columns, shares, sums[1], sums[last, empty:])
    add_distances(X.T, columns, shares, own[1], own[last, empty:])


@inner_exact
def _fetch(sums, own, j, entered, count, values):
    """Write what was measured of row j: with stored events, and with those rows that have taken their places since."""
    known = sums[j]
    for k in range(known.size):
        values[k] = known[k]
    for i in range(count):
        values[entered[0, i]] = own[j, entered[1, i]]


@inline_exact
def _at_once(window, b):
    """Return how many of some rows are measured at once."""
    return max(1, min(b, TILE, ROOM // window.norms.size))


@inner_exact
def _enter(window, x, norm, entry):
    """Store an event with these coefficients, (views, columns), in the place of the oldest."""
    place = window.place
    slot = place[NEXT]
    place[SIZE] = min(place[SIZE] + 1, window.norms.size)
    place[NEXT] = (slot + 1) % window.norms.size
    for c in range(x.size):
        window.columns[c, slot] = x[c]
    window.norms[slot] = norm
    for p in range(entry.shape[0]):
        for c in range(entry.shape[1]):
            window.coef[p, window.places[c], slot] = entry[p, c]


# ---------------------------------------------------------------------- classes


@jit_exact
def learn_classes(window, kernel, X, norms, targets, weights, scores):
    """Take passive-aggressive steps for each view; an event of positive weight is stored if any of them changes.

    Scores become those before each event, (views, outputs, events).
    """
    views, outputs = window.coef.shape[0], window.places.size
    values, f, entry = np.empty((views, window.norms.size)), np.empty(outputs), np.empty((views, outputs))
    rows, shares = _at_once(window, X.shape[0]), np.empty(0)
    measured, pairs = np.empty(KINDS * rows * window.norms.size), np.empty(KINDS * rows * rows)
    entered = np.empty((2, rows), np.int64)
    for first in range(0, X.shape[0], rows):
        last, count = min(first + rows, X.shape[0]), 0
        sums = shaped(measured, (KINDS, last - first, window.place[SIZE]))
        own = shaped(pairs, (KINDS, last - first, last - first))
        _measure(window, X[first:last], shares, sums, own)
        for j in range(first, last):
            _view(window, kernel, norms[j], sums, own, j - first, entered, count, values)
            stepped, n = False, window.place[SIZE]
            for p in range(views):
                for o in range(outputs):
                    f[o] = scores[p, o, j] = dot(window.coef[p, window.places[o]], values[p], 0, n)
                if weights[j] > 0.0 and _margin_step(f, targets[j], weights[j], entry[p]):
                    stepped = True
            if stepped:
                entered[0, count], entered[1, count] = window.place[NEXT], j - first
                count += 1
                _enter(window, X[j], norms[j], entry)


@inline
def _margin_step(f, target, weight, entry):
    """Write the coefficients that bring the margin over the best wrong class to 1, or near it; whether there is a step."""
    for o in range(entry.size):
        entry[o] = 0.0
    if entry.size == 1:
        loss = 1.0 - target * f[0]
        if loss > 0.0:
            entry[0] = target * min(STEP * weight, loss)
        return loss > 0.0
    label = int(target)
    rival = 1 if label == 0 else 0
    for o in range(entry.size):
        if o != label and f[o] > f[rival]:
            rival = o
    loss = 1.0 - (f[label] - f[rival])
    if loss > 0.0:
        entry[label] = min(STEP * weight, loss) / 2.0
        entry[rival] = -entry[label]
    return loss > 0.0


# ---------------------------------------------------------------------- values


@jit_exact
def learn_values(window, kernel, X, norms, stretch, targets, weights, found):
    """Take a step of least mean squares for each view, and store every event of positive weight as a neighbour.

    The nearest few are those before columns were multiplied by ``stretch``.  Predictions before each event,
    (2 views + 1, events), are those of least mean squares, of weighted neighbours, and of the nearest few.
    """
    views = window.coef.shape[0]
    values, entry = np.empty((views, window.norms.size)), np.empty((views, VALUES))
    unstretched, near, largest = np.empty(window.norms.size), np.empty(window.norms.size), np.empty(NEIGHBOURS)
    rows, shares, kinds = _at_once(window, X.shape[0]), np.empty(stretch.size), KINDS + 1
    measured, pairs = np.empty(kinds * rows * window.norms.size), np.empty(kinds * rows * rows)
    entered = np.empty((2, rows), np.int64)
    for c in range(shares.size):
        shares[c] = 1.0 / stretch[c]
    for first in range(0, X.shape[0], rows):
        last, count = min(first + rows, X.shape[0]), 0
        sums = shaped(measured, (kinds, last - first, window.place[SIZE]))
        own = shaped(pairs, (kinds, last - first, last - first))
        _measure(window, X[first:last], shares, sums, own)
        for j in range(first, last):
            _view(window, kernel, norms[j], sums, own, j - first, entered, count, values)
            _fetch(sums[KINDS], own[KINDS], j - first, entered, count, unstretched)
            _to_kernel_values(window, kernel, unstretched)
            _learn_value(window, values, targets[j], weights[j], found[:, j], entry)
            found[2 * views, j] = _nearest_few(window, unstretched, near, largest)
            if weights[j] > 0.0:
                entered[0, count], entered[1, count] = window.place[NEXT], j - first
                count += 1
                _enter(window, X[j], norms[j], entry)


@inner_exact
def _learn_value(window, values, target, weight, found, entry):
    """Write what each view predicts, and the coefficients of the event."""
    n, views = window.place[SIZE], window.coef.shape[0]
    rate = 1.0 - np.exp(weight * LOG_REST)  # as if the event came that often
    for p in range(views):
        found[p] = dot(window.coef[p, LMS], values[p], 0, n)
        around = dot(window.coef[p, WEIGHT], values[p], 0, n) + LITTLE
        found[views + p] = dot(window.coef[p, SUM], values[p], 0, n) / around
        entry[p, LMS] = rate * (target - found[p])
        entry[p, SUM] = weight * target
        entry[p, WEIGHT] = weight


@inline
def _nearest_few(window, kernel, near, largest):
    """Return the mean target of the nearest events by city-block distance, over its square; 0 if there are none.

    Of those that are as near as the last of them, the first places are taken.
    """
    n = window.place[SIZE]
    number = window.columns.dtype.type
    tie = TIE_32 if number(1.0 + TIE) == number(1.0) else TIE  # single precision
    count = min(n, largest.size)
    for slot in range(n):
        near[slot] = max(kernel[slot], FAR)
        if slot < count or near[slot] > largest[count - 1]:
            i = min(slot, count - 1)
            while i > 0 and near[slot] > largest[i - 1]:
                largest[i] = largest[i - 1]
                i -= 1
            largest[i] = near[slot]
    equal = 0
    while equal < count and largest[count - 1 - equal] <= largest[count - 1] * (1.0 + tie):
        equal += 1
    total = weight = 0.0
    for slot in range(n):
        taken = near[slot] > largest[count - 1] * (1.0 + tie)
        if not taken and equal > 0 and near[slot] >= largest[count - 1] / (1.0 + tie):
            taken = True
            equal -= 1
        if taken:
            distance = np.log(near[slot])
            share = 1.0 / (distance * distance + NEAR * NEAR)
            total += share * window.coef[0, SUM, slot]
            weight += share * window.coef[0, WEIGHT, slot]
    return total / weight if weight > 0.0 else 0.0
