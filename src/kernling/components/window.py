"""The last N stored events, shared by several experts: kernel expansions on the same points, of which the oldest is replaced.

The experts see the kernel k, its fourth power and, where asked for, the sixteenth: products of kernels are kernels, and of the
Gaussian these are those of 4 and 16 times the gamma, from one set of distances.  Others see the same powers of
exp(-sqrt(gamma) / 4 |x - x'|_1), of the city-block distance, whose borders follow the axes.  For each of these views there are
some columns of coefficients.  Kernel values and sums are computed for a block of events at once; when an event enters the ring,
the sums of the events behind it are corrected by the column that came and the one that went, so blocks change the speed only.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from ..compiler import inline, jit
from ..core.expansion import check_room, padded
from ..core.kernels import Kernel
from ..core.matrices import kernel_matrix, kernel_values, squared_norms
from ..core.shapes import are_norms, declared
from ..core.state import Widening
from ..core.vector import exp

if TYPE_CHECKING:
    from ..merging.rules import Merging

BLOCK = 128  # events that are learned at once: in longer blocks, corrections cost more than is saved
SIZE, NEXT = range(2)  # what place holds: events stored, and where the next one goes
POWER = 4  # of a kernel is the next one
STEP = 2.0  # of a passive-aggressive step on one output at most: C = 1 for each of two classes
RATE = 0.3  # of least mean squares
LITTLE = 1e-3  # added to the weight of all neighbours, so that far from all of them the prediction is 0
LMS, SUM, WEIGHT = range(3)  # columns of a window of values
VALUES = 3
KINDS = 2  # of kernels: the model's, and that of the city-block distance
CITY = 0.25  # the rate of the latter, over the root of gamma
NEIGHBOURS = 5
NEAR = 1e-3  # logarithm of a kernel value around which neighbours count as equally near
FAR = 1e-30  # kernel value below which all events are as far: float32 has no smaller ones with all digits
TIE, TIE_32 = 1e-10, 1e-5  # two events are as near if the ratio of their kernel values is 1 up to this


@declared(
    lengths={"held": ("place", SIZE)},
    points="rows: held columns",
    norms="not negative: most",
    coef="coefficients: views scores held",
    place=("counts", "index of most"),
)
class Window(NamedTuple):
    points: np.ndarray
    norms: np.ndarray  # squared: the only array that always has its full length
    coef: np.ndarray
    place: np.ndarray  # see SIZE and the rest above

    def check(self, dimensions: Mapping[str, int]) -> None:
        """Raise unless the next place follows from the number of events."""
        (n, following), most = self.place.tolist(), len(self.norms)
        if n > most or following != (n if n < most else following % most):
            raise ValueError(f"a window of {most} events cannot hold {n} and go on at {following}")
        if not are_norms(self.norms[:n], self.points):
            raise ValueError("the norms of the window are not the squared norms of its points")

    @property
    def stored(self) -> int:
        """Number of events in the window."""
        return int(self.place[SIZE])

    def grown(self, capacity: int) -> Window:
        """Return the window at its full size: memory is constant from the first event on."""
        n = len(self.norms)
        if n == len(self.points):
            return self
        check_room(n, self.points.shape[1], "events")
        return self._replace(points=padded(self.points, 0, n), coef=padded(self.coef, 2, n))

    def trimmed(self, size: int) -> Window:
        """Return the window without unused space."""
        n = self.stored
        return self._replace(points=self.points[:n].copy(), coef=self.coef[:, :, :n].copy())

    def widened(self, change: Widening) -> Window:
        """Convert to the outputs of ``change``."""
        return self._replace(coef=change.of(self.coef, axis=1))

    @property
    def tie(self) -> float:
        """Share of a kernel value that may be due to rounding."""
        return TIE_32 if self.points.itemsize == 4 else TIE

    def by_age(self) -> np.ndarray:
        """Return the indices, newest event first."""
        return (int(self.place[NEXT]) - 1 - np.arange(self.stored)) % max(self.stored, 1)

    def merged(self, other: Window, start: Window | None, merging: Merging) -> Window:
        """Return the latest events of both, alternating, weighted by the share of their model."""
        most = len(self.norms)
        sides = [(self, merging.shares[0], 0.0), (other, merging.shares[1], merging.shift)]
        rows = [(age, side, place) for side, (window, *_) in enumerate(sides) for age, place in enumerate(window.by_age())]
        kept = sorted(rows)[:most][::-1]
        points = [sides[side][0].points[place] + sides[side][2] for _, side, place in kept]
        coef = [sides[side][1] * sides[side][0].coef[:, :, place] for _, side, place in kept]
        n = len(kept)
        table = np.array(points, self.points.dtype).reshape(n, self.points.shape[1])
        columns = np.moveaxis(np.array(coef).reshape(n, *self.coef.shape[:2]), 0, 2)
        norms = np.zeros_like(self.norms)
        norms[:n] = squared_norms(table)
        return Window(table, norms, np.ascontiguousarray(columns), np.array([n, n % most]))


def new_window(most: int, d: int, dtype: DTypeLike, powers: int, columns: int) -> Window:
    """Return an empty window of at most this many events."""
    check_room(most, 1, "events")
    return Window(np.zeros((0, d), dtype), np.zeros(most, dtype), np.zeros((KINDS * powers, columns, 0)), np.zeros(2, np.int64))


def clear(window: Window) -> None:
    """Remove all events."""
    window.place[SIZE] = window.place[NEXT] = 0


# ---------------------------------------------------------------------- a block of events


class Seen(NamedTuple):
    """A block of events as the window sees them, until the same thread looks at another one."""

    values: np.ndarray  # (views or one more, places now or soon taken, events)
    sums: np.ndarray  # (views, columns, events)


class _Spare(threading.local):
    """Memory that a thread uses again and again: to get megabytes from the system takes longer than to fill them."""

    def __init__(self) -> None:
        self.memory = np.empty(0)

    def array(self, shape: tuple[int, ...]) -> np.ndarray:
        """Return an array that is valid until the next call."""
        size = math.prod(shape)
        if len(self.memory) < size:
            self.memory = np.empty(size)
        return self.memory[:size].reshape(shape)


_spare = _Spare()


def see(
    window: Window, kernel: Kernel, X: np.ndarray, norms: np.ndarray, room: int = 0, stretch: np.ndarray | None = None
) -> Seen:
    """Return the kernel values of rows, with room for this many new events, and their sums with the coefficients.

    If ``stretch`` is given, values of the city-block distance over it come after those of the views.
    """
    n, views = window.stored, len(window.coef)
    values = _spare.array((views + (stretch is not None), min(n + room, len(window.norms)), len(X)))
    _view(kernel, window.points[:n], window.norms[:n], X, norms, stretch, values)
    sums = np.empty((views, window.coef.shape[1], len(X)))
    for v in range(views):
        np.matmul(window.coef[v, :, :n], values[v, :n], out=sums[v])
    return Seen(values, sums)


def _among(kernel: Kernel, X: np.ndarray, norms: np.ndarray, views: int, stretch: np.ndarray | None = None) -> np.ndarray:
    """Return the kernel values between the events of a block, (views or one more, events, events)."""
    values = np.empty((views + (stretch is not None), len(X), len(X)))
    _view(kernel, X, norms, X, norms, stretch, values)
    return values


def _view(
    kernel: Kernel,
    points: np.ndarray,
    point_norms: np.ndarray,
    X: np.ndarray,
    norms: np.ndarray,
    stretch: np.ndarray | None,
    values: np.ndarray,
) -> None:
    """Write the values of both kernels and their powers, for the first places."""
    n, powers = len(points), len(values) // KINDS
    if stretch is not None:
        _city_values(kernel, points / stretch, X / stretch, values[-1])
    if X.dtype == values.dtype:
        kernel_values(kernel, points, point_norms, X, norms, values[0, :n])
    else:
        values[0, :n] = kernel_matrix(kernel, points, point_norms, X, norms)
    _city_values(kernel, points, X, values[powers])
    for kind in range(KINDS):
        _raise(values[kind * powers : (kind + 1) * powers], n)


def _parts(events: int) -> list[slice]:
    """Return the blocks of events."""
    return [slice(first, first + BLOCK) for first in range(0, events, BLOCK)]


def city_rate(kernel: Kernel) -> float:
    """Return the rate of the kernel of the city-block distance."""
    return CITY * math.sqrt(kernel.gamma)


def _city_values(kernel: Kernel, points: np.ndarray, X: np.ndarray, values: np.ndarray) -> None:
    """Write exp(-rate |p - x|_1) for points and rows."""
    _write_city_values(city_rate(kernel), points, X, np.ascontiguousarray(X.T), values)


@jit
def _write_city_values(rate, points, X, columns, values):
    """Write them for rows that are given by rows and by columns."""
    b, d = X.shape
    for k in range(points.shape[0]):
        p, distances = points[k], values[k]
        if b == 1:
            total = 0.0
            for c in range(d):
                total += abs(p[c] - X[0, c])
            distances[0] = total
        else:
            for j in range(b):
                distances[j] = 0.0
            for c in range(0, d - 3, 4):  # several columns at once, since distances have to be read and written each time
                p0, p1, p2, p3 = p[c], p[c + 1], p[c + 2], p[c + 3]
                x0, x1, x2, x3 = columns[c], columns[c + 1], columns[c + 2], columns[c + 3]
                for j in range(b):
                    distances[j] += (abs(p0 - x0[j]) + abs(p1 - x1[j])) + (abs(p2 - x2[j]) + abs(p3 - x3[j]))
            for c in range(d // 4 * 4, d):
                for j in range(b):
                    distances[j] += abs(p[c] - columns[c, j])
        for j in range(b):
            distances[j] = exp(-rate * distances[j])


@jit
def _raise(values, n):
    """Fill in the fourth powers, from one to the next."""
    for p in range(1, values.shape[0]):
        for k in range(n):
            for j in range(values.shape[2]):
                square = values[p - 1, k, j] * values[p - 1, k, j]
                values[p, k, j] = square * square


@inline
def _enter(window, values, sums, among, X, norms, j, entry):
    """Store event j with these coefficients, (views, columns), in the place of the oldest, and correct the sums behind it."""
    place = window.place
    slot = place[NEXT]
    fresh = place[SIZE] < window.norms.size
    if fresh:
        place[SIZE] += 1
    place[NEXT] = (slot + 1) % window.norms.size
    for c in range(X.shape[1]):
        window.points[slot, c] = X[j, c]
    window.norms[slot] = norms[j]
    for p in range(entry.shape[0]):
        for c in range(entry.shape[1]):
            came, went = entry[p, c], 0.0 if fresh else window.coef[p, c, slot]
            window.coef[p, c, slot] = came
            for i in range(j + 1, X.shape[0]):
                sums[p, c, i] += came * among[p, j, i]
            if went != 0.0:
                for i in range(j + 1, X.shape[0]):
                    sums[p, c, i] -= went * values[p, slot, i]
    for p in range(values.shape[0]):
        for i in range(j + 1, X.shape[0]):
            values[p, slot, i] = among[p, j, i]


# ---------------------------------------------------------------------- classes


def scores_of(window: Window, kernel: Kernel, X: np.ndarray, norms: np.ndarray) -> np.ndarray:
    """Return the current scores of rows, (views, outputs, rows)."""
    return np.concatenate([see(window, kernel, X[part], norms[part]).sums for part in _parts(len(X))], axis=2)


def learn_classes(
    window: Window, kernel: Kernel, X: np.ndarray, norms: np.ndarray, targets: np.ndarray, weights: np.ndarray
) -> np.ndarray:
    """Take passive-aggressive steps for each view; an event is stored if any of them changes.

    Returns the scores before each event, (views, outputs, events).
    """
    scores = np.empty((*window.coef.shape[:2], len(X)))
    for part in _parts(len(X)):
        rows = (X[part], norms[part])
        seen = see(window, kernel, *rows, room=len(rows[0]))
        _learn_classes(window, *seen, _among(kernel, *rows, len(window.coef)), *rows, targets[part], weights[part])
        scores[:, :, part] = seen.sums
    return scores


@jit
def _learn_classes(window, values, sums, among, X, norms, targets, weights):
    views, outputs = sums.shape[0], sums.shape[1]
    entry = np.zeros((views, outputs))
    for j in range(X.shape[0]):
        stepped = False
        for p in range(views):
            if _margin_step(sums[p], j, targets[j], weights[j], entry[p]):
                stepped = True
        if stepped and weights[j] > 0.0:
            _enter(window, values, sums, among, X, norms, j, entry)


@inline
def _margin_step(f, j, target, weight, entry):
    """Write the coefficients that bring the margin over the best wrong class to 1, or near it; whether there is a step."""
    for o in range(entry.size):
        entry[o] = 0.0
    if entry.size == 1:
        loss = 1.0 - target * f[0, j]
        if loss > 0.0:
            entry[0] = target * min(STEP * weight, loss)
        return loss > 0.0
    label = int(target)
    rival = 1 if label == 0 else 0
    for o in range(entry.size):
        if o != label and f[o, j] > f[rival, j]:
            rival = o
    loss = 1.0 - (f[label, j] - f[rival, j])
    if loss > 0.0:
        entry[label] = min(STEP * weight, loss) / 2.0
        entry[rival] = -entry[label]
    return loss > 0.0


# ---------------------------------------------------------------------- values


def learn_values(
    window: Window,
    kernel: Kernel,
    X: np.ndarray,
    norms: np.ndarray,
    stretch: np.ndarray,
    targets: np.ndarray,
    weights: np.ndarray,
) -> np.ndarray:
    """Take a step of least mean squares for each view, and store every event as a neighbour.

    The nearest few are those before columns were multiplied by ``stretch``.
    Returns the predictions before each event, (2 views + 1, events): least mean squares, weighted neighbours, the nearest few.
    """
    found = np.empty((2 * len(window.coef) + 1, len(X)))
    for part in _parts(len(X)):
        rows = (X[part], norms[part])
        seen = see(window, kernel, *rows, room=len(rows[0]), stretch=stretch)
        nearest = np.empty(len(rows[0]))
        among = _among(kernel, *rows, len(window.coef), stretch)
        _learn_values(window, *seen, among, *rows, targets[part], weights[part], window.tie, nearest)
        found[:, part] = _predictions(seen.sums, nearest)
    return found


def values_of(window: Window, kernel: Kernel, X: np.ndarray, norms: np.ndarray, stretch: np.ndarray) -> np.ndarray:
    """Return the current predictions of rows."""
    found = np.empty((2 * len(window.coef) + 1, len(X)))
    for part in _parts(len(X)):
        seen = see(window, kernel, X[part], norms[part], stretch=stretch)
        nearest = np.empty(len(norms[part]))
        _predict_nearest(window, seen.values, window.tie, nearest)
        found[:, part] = _predictions(seen.sums, nearest)
    return found


def _predictions(sums: np.ndarray, nearest: np.ndarray) -> np.ndarray:
    return np.concatenate([sums[:, LMS], sums[:, SUM] / (sums[:, WEIGHT] + LITTLE), nearest[np.newaxis]])


@inline
def _nearest_few(window, values, j, tie, near, largest):
    """Return the mean target of the nearest events by city-block distance, over its square; 0 if there are none.

    Of those that are as near as the last of them, the first places are taken.
    """
    n = window.place[SIZE]
    kernel = values[values.shape[0] - 1]
    count = min(n, largest.size)
    for slot in range(n):
        near[slot] = max(kernel[slot, j], FAR)
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


@jit
def _predict_nearest(window, values, tie, nearest):
    near, largest = np.empty(window.norms.size), np.empty(NEIGHBOURS)
    for j in range(nearest.size):
        nearest[j] = _nearest_few(window, values, j, tie, near, largest)


@jit
def _learn_values(window, values, sums, among, X, norms, targets, weights, tie, nearest):
    views = sums.shape[0]
    entry = np.zeros((views, VALUES))
    near, largest = np.empty(window.norms.size), np.empty(NEIGHBOURS)
    for j in range(X.shape[0]):
        nearest[j] = _nearest_few(window, values, j, tie, near, largest)
        if weights[j] > 0.0:
            rate = 1.0 - (1.0 - RATE) ** weights[j]  # as if the event came that often
            for p in range(views):
                entry[p, LMS] = rate * (targets[j] - sums[p, LMS, j])
                entry[p, SUM] = weights[j] * targets[j]
                entry[p, WEIGHT] = weights[j]
            _enter(window, values, sums, among, X, norms, j, entry)
