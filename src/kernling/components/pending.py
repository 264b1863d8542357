"""Events of least squares that wait: learned, but not yet folded into its sums (least_squares.py)."""

from __future__ import annotations

import math
from typing import Annotated, NamedTuple

import numpy as np

from ..compiler import inner_exact, jit_exact, shaped
from ..core.limits import SCORE
from ..core.shapes import declared
from ..core.state import padded
from ..core.tiles import TILE, add_product, add_products, subtract_products
from ..core.triangles import FEW, solve, solve_back, solve_one, write_dots, write_score

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
    (n, b), outputs, pending = Z.shape, scores.shape[0], sums.pending
    held, keep = sums.size[WAITING], sums.record[KEEP]
    Y, stretch, spread, places = np.empty((n, b)), np.empty(b), np.zeros(b), np.empty(b, np.int64)
    c, shared = np.empty(held + b), np.empty((held + b) * TILE)
    known, left = np.zeros((outputs, b)), np.empty(b)
    count = 0
    for e in range(b):
        places[e] = held + count
        count += 1 if weights[e] > 0.0 else 0
        stretch[e] = 1.0 / math.sqrt(_power(keep, held + count))
    whiten(sums, Z, Y)
    _stretch(Y, stretch, spread, left)
    for o in range(outputs):
        write_score(sums.weights[sums.places[o]], min(n, sums.size[BASE]), Z, scores[o])
    _write_columns(Z, Y, weights, places, pending)
    for first in range(0, b, TILE):
        last = min(first + TILE, b)
        several, before = last - first > FEW, places[first] if last - first > FEW else 0
        G = shaped(shared, (places[last - 1], last - first))
        if several:
            _share(sums, Y, first, places[first:last], weights[first:last], G, known[:, first:last], left[first:last])
        for e in range(first, last):
            for i in range(before, places[e]):
                c[i] = G[i, e - first] if several else 0.0
            if not several:
                add_product(pending.whitened, places[e], Y, e, c)
            if not _stage_event(sums, e, before, places[e], c, known, left, targets, weights, stretch, spread, scores):
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
def _stretch(Y, stretch, spread, left):
    """Multiply the columns of Y, and write the squared norms of what they become, twice."""
    if spread.size == 1:  # without a loop for each number
        total, z = 0.0, shaped(Y, (Y.shape[0],))
        for k in range(z.size):
            z[k] *= stretch[0]
        for k in range(z.size):
            total += z[k] * z[k]
        spread[0] = left[0] = total
        return
    for k in range(Y.shape[0]):
        y = Y[k]
        for e in range(spread.size):
            y[e] *= stretch[e]
            spread[e] += y[e] * y[e]
    for e in range(spread.size):
        left[e] = spread[e]


@inner_exact
def _write_columns(Z, Y, weights, places, pending):
    for k in range(Z.shape[0]):
        z, y = pending.features[k], pending.whitened[k]
        for e in range(places.size):
            if weights[e] > 0.0:
                z[places[e]], y[places[e]] = Z[k, e], Y[k, e]


@jit_exact
def _share(sums, Y, first, places, weights, G, known, left):
    """Compute at once what some events have in common with those before them.

    That is their columns of C down to the first of their own places, and what follows for their scores and their pivots.
    Below, G is what is left to solve for.
    """
    pending, before, b = sums.pending, places[0], places.size
    for i in range(G.shape[0]):
        for e in range(b):
            G[i, e] = 0.0
    add_products(pending.whitened, Y[:, first : first + b], G)
    solve(pending.factor, G, before)
    for i in range(before):
        column = pending.factor[i]
        for e in range(b):
            left[e] -= G[i, e] * G[i, e]
            if weights[e] > 0.0:
                column[places[e]] = G[i, e]
        for o in range(known.shape[0]):
            rest = pending.rest[sums.places[o], i]
            for e in range(b):
                known[o, e] += G[i, e] * rest
    subtract_products(pending.factor, G[:before], before, G)


@inner_exact
def _stage_event(sums, e, before, place, c, known, left, targets, weights, stretch, spread, scores):
    """Compute the row of C of an event, and what is left of its targets; return whether its scores are within the limit.

    Of what was computed before, ``known`` and ``left`` are the parts of the scores and of the squared pivot.
    """
    pending, weight, rest = sums.pending, weights[e], left[e]
    solve_one(pending.factor, c, before, place)
    for o in range(scores.shape[0]):
        total, rests = known[o, e], pending.rest[sums.places[o]]
        for i in range(before, place):
            total += c[i] * rests[i]
        scores[o, e] += total / stretch[e]
        if weight > 0.0 and not abs(scores[o, e]) <= SCORE:
            return False
    if weight > 0.0:
        for i in range(before, place):
            rest -= c[i] * c[i]
            pending.factor[i, place] = c[i]
        pivot = math.sqrt(1.0 / max(weight, LIGHTEST) + max(rest, LEAST * spread[e]))
        pending.factor[place, place] = pivot
        pending.weights[place] = weight
        for o in range(scores.shape[0]):
            pending.targets[sums.places[o], place] = targets[o, e]
            pending.rest[sums.places[o], place] = (targets[o, e] - scores[o, e]) * stretch[e] / pivot
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
    Y, C = np.empty((n, b)), np.zeros((held, b))
    whiten(sums, Z, Y)
    if b == 1:
        add_product(sums.pending.whitened, held, Y, 0, shaped(C, (held,)))
    else:
        add_products(sums.pending.whitened, Y[:, :b], C)
    solve(sums.pending.factor, C, held)
    for e in range(b):
        out[e] = 0.0
    for k in range(n):
        for e in range(b):
            out[e] += Y[k, e] * Y[k, e]
    for i in range(held):
        for e in range(b):
            out[e] -= C[i, e] * C[i, e]
    for e in range(b):
        out[e] = max(out[e], 0.0) / _power(keep, held)
