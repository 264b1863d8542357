"""Events of least squares that wait: learned, but not yet folded into its sums (least_squares.py)."""

from __future__ import annotations

import math
from typing import Annotated, NamedTuple

import numpy as np

from ..compiler import inner_exact, jit_exact, shaped
from ..core.limits import SCORE
from ..core.shapes import declared
from ..core.state import padded
from ..core.triangles import add_products, solve, solve_back, solve_one, write_dots, write_score

TILE = 64  # events whose products are computed at once
BLOCK = 256  # events that wait at most: more need fewer factors of S, but cost more each
LIGHTEST = 1e-200  # weight of an event: for less, its noise would not be finite
LEAST = 1e-14  # of z'A^-1 z, which is rounding: no less is left of it when what is known is subtracted
# what size holds: features now, those that are always there, how many others can join, those of the sums, and waiting events
FEATURES, FIXED, MOST, BASE, WAITING = range(5)
RHO, EVENTS, COUNT, REGRET, LARGEST, FULL, KEEP, PERIOD = range(8)  # what record holds; FULL and the rest are those of Ridge
RECORDS = 8


@declared(lengths={"known": ("size", 0), "events": ("size", 1)})
class Pending(NamedTuple):
    features: Annotated[np.ndarray, "numbers: known events"]  # Z, (capacity, BLOCK)
    whitened: Annotated[np.ndarray, "numbers: known events"]  # Y
    factor: Annotated[np.ndarray, "triangle: events events"]  # C by columns, as in core/triangles.py
    rest: Annotated[np.ndarray, "numbers: outputs events"]  # a
    targets: Annotated[np.ndarray, "numbers: outputs events"]  # T
    weights: Annotated[np.ndarray, "weights: events"]  # s
    # of the arrays without spare room, where there is none: features and events
    size: Annotated[np.ndarray, "counts", "counts"]

    def grown(self, n: int) -> Pending:
        """Return a copy with room for n features and all events."""
        return self._replace(
            features=padded(padded(self.features, 0, n), 1, BLOCK),
            whitened=padded(padded(self.whitened, 0, n), 1, BLOCK),
            factor=padded(padded(self.factor, 0, BLOCK), 1, BLOCK),
            rest=padded(self.rest, 1, BLOCK),
            targets=padded(self.targets, 1, BLOCK),
            weights=padded(self.weights, 0, BLOCK),
            size=np.zeros(2, np.int64),
        )

    def trimmed(self, n: int, events: int) -> Pending:
        """Return a copy without room for more features and events."""
        n = n if events else 0
        return Pending(
            self.features[:n, :events].copy(),
            self.whitened[:n, :events].copy(),
            self.factor[:events, :events].copy(),
            self.rest[:, :events].copy(),
            self.targets[:, :events].copy(),
            self.weights[:events].copy(),
            np.array([n, events]),
        )


def no_events(outputs: int) -> Pending:
    """Return the events of least squares that has learned none."""
    table, columns = np.zeros((0, 0)), np.zeros((outputs, 0))
    return Pending(table, table.copy(), table.copy(), columns, columns.copy(), np.zeros(0), np.zeros(2, np.int64))


@jit_exact
def stage(sums, Z, targets, weights, scores):
    """Let events wait, from the first free place on; return how many, -1 if a score is too large.

    Z is (features, events); targets, and scores before each event was learned, are (outputs, events).  Events of weight 0 are
    only scored.  Nothing has changed until ``commit``.
    """
    n, b = Z.shape
    held, pending, keep = sums.size[WAITING], sums.pending, sums.record[KEEP]
    Y, c, stretch = np.empty((n, b)), np.empty((b, held + b + 1)), np.empty(b)
    places = np.empty(b, np.int64)
    count = 0
    for e in range(b):
        places[e] = held + count
        count += 1 if weights[e] > 0.0 else 0
        stretch[e] = 1.0 / math.sqrt(_power(keep, held + count))
    whiten(sums, Z, Y)
    if keep < 1.0:
        for k in range(n):
            for e in range(b):
                Y[k, e] *= stretch[e]
    for o in range(scores.shape[0]):
        write_score(sums.weights[sums.places[o]], min(n, sums.size[BASE]), Z, scores[o])
    _write_columns(Z, Y, weights, places, pending)
    for first in range(0, b, TILE):
        last = min(first + TILE, b)
        _write_products(pending.whitened, places[last - 1] + 1, Y, first, last, c)
        for e in range(first, last):
            if not _stage_event(sums, Y, e, places[e], targets, weights[e], stretch[e], c[e], scores):
                return -1
    return count


@inner_exact
def _power(base, exponent):
    result = 1.0
    if base < 1.0:
        for _ in range(exponent):
            result *= base
    return result


@inner_exact
def _write_columns(Z, Y, weights, places, pending):
    for k in range(Z.shape[0]):
        z, y = pending.features[k], pending.whitened[k]
        for e in range(places.size):
            if weights[e] > 0.0:
                z[places[e]], y[places[e]] = Z[k, e], Y[k, e]


@inner_exact
def _write_products(whitened, count, Y, first, last, c):
    for e in range(first, last):
        for i in range(count):
            c[e, i] = 0.0
    add_products(whitened, count, Y, first, last, c)


@inner_exact
def _stage_event(sums, Y, e, place, targets, weight, stretch, c, scores):
    """Compute the row of C of an event, and what is left of its targets; return whether its scores are within the limit."""
    pending = sums.pending
    solve_one(pending.factor, c, place)
    for o in range(scores.shape[0]):
        known, rest = 0.0, pending.rest[sums.places[o]]
        for i in range(place):
            known += c[i] * rest[i]
        scores[o, e] += known / stretch
        if weight > 0.0 and not abs(scores[o, e]) <= SCORE:
            return False
    if weight > 0.0:
        spread = 0.0
        for k in range(Y.shape[0]):
            spread += Y[k, e] * Y[k, e]
        known = spread
        for i in range(place):
            known -= c[i] * c[i]
            pending.factor[i, place] = c[i]
        pivot = math.sqrt(1.0 / max(weight, LIGHTEST) + max(known, LEAST * spread))
        pending.factor[place, place] = pivot
        pending.weights[place] = weight
        for o in range(scores.shape[0]):
            pending.targets[sums.places[o], place] = targets[o, e]
            pending.rest[sums.places[o], place] = (targets[o, e] - scores[o, e]) * stretch / pivot
    return True


@jit_exact
def commit(sums, count):
    """Let the events that were staged last be learned."""
    pending, record = sums.pending, sums.record
    held, keep = sums.size[WAITING], record[KEEP]
    for place in range(held, held + count):
        weight, pivot = pending.weights[place], pending.factor[place, place]
        shrunk = _power(keep, place + 1)
        for o in range(sums.places.size):  # the columns in use come first
            sums.losses[o] = keep * sums.losses[o] + shrunk * pending.rest[o, place] * pending.rest[o, place]
            record[LARGEST] = max(record[LARGEST], abs(pending.targets[o, place]))
        record[COUNT] = keep * record[COUNT] + 1.0
        record[EVENTS] += 1.0
        record[REGRET] += weight * math.log(max(1.0, weight * pivot * pivot))
    sums.size[WAITING] = held + count


@jit_exact
def join(sums, n):
    """Add features that have been 0 so far, until there are n."""
    known, held, pending = sums.size[FEATURES], sums.size[WAITING], sums.pending
    for k in range(known, n):
        for o in range(sums.weights.shape[0]):
            sums.weights[o, k] = 0.0
            sums.moments[o, k] = 0.0
        for i in range(held):
            pending.features[k, i] = 0.0
            pending.whitened[k, i] = 0.0
    sums.size[FEATURES] = n


@inner_exact
def whiten(sums, Z, Y):
    """Write L^-1 z for the columns of Z; features that have joined since the last fold are divided by the root of rho."""
    n, base = Z.shape[0], min(Z.shape[0], sums.size[BASE])
    for k in range(n):
        for e in range(Z.shape[1]):
            Y[k, e] = Z[k, e]
    solve(shaped(sums.factor, (sums.size[BASE], sums.size[BASE])), Y, base)
    root = math.sqrt(sums.record[RHO])
    for k in range(base, n):
        for e in range(Z.shape[1]):
            Y[k, e] /= root


@jit_exact
def write_weights(sums, W):
    """Write the weights that all events have led to, (outputs, features or more)."""
    left, turned = np.empty(sums.size[WAITING]), np.empty(sums.size[FEATURES])
    for o in range(W.shape[0]):
        write_weights_of(sums, o, left, turned, W[o])


@inner_exact
def write_weights_of(sums, o, left, turned, w):
    """Write the weights of an output; ``left`` and ``turned`` have room for the events that wait and the features."""
    n, base, held, pending = sums.size[FEATURES], sums.size[BASE], sums.size[WAITING], sums.pending
    known, rest, root = sums.weights[sums.places[o]], pending.rest[sums.places[o]], math.sqrt(sums.record[RHO])
    for k in range(w.size):
        w[k] = known[k] if k < n else 0.0
    if held > 0:
        for i in range(held):
            left[i] = rest[i]
        solve_back(pending.factor, left, held)
        write_dots(pending.whitened, n, left, turned)
        solve_back(shaped(sums.factor, (base, base)), turned, base)
        for k in range(n):
            w[k] += turned[k] if k < base else turned[k] / root


@jit_exact
def write_leverages(sums, Z, out):
    """Write z'A^-1 z for the columns of Z: the uncertainty there, as a multiple of the noise."""
    (n, b), held, keep = Z.shape, sums.size[WAITING], sums.record[KEEP]
    Y, c = np.empty((n, b)), np.empty((b, held))
    whiten(sums, Z, Y)
    _write_products(sums.pending.whitened, held, Y, 0, b, c)
    for e in range(b):
        solve_one(sums.pending.factor, c[e], held)
        out[e] = 0.0
        for k in range(n):
            out[e] += Y[k, e] * Y[k, e]
        for i in range(held):
            out[e] -= c[e, i] * c[e, i]
        out[e] = max(out[e], 0.0) / _power(keep, held)
