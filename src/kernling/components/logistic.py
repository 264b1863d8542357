"""Logistic regression on features, one pass over the events, for classes that are rare.

Least squares estimates how frequent each class is.  For a rare one that is nearly 0 nearly everywhere, and the few places where
it is not decide; its log odds are as smooth as those of any other.  With the score of class k, <w_k, z>, the weights minimise

    1/2 sum_k (w_k - v_k)' (H + rho I) (w_k - v_k)  +  sum_i s_i (log-loss of event i)

over the events since the last fold, v the weights then, and H the curvature of the log-loss of all events before: what these
say is replaced by a Gaussian (sequential Laplace approximation).  An event with probabilities p adds s max_k p_k (1 - p_k) z z'
to it, and twice that if there is a score for each class, which bounds the curvature along all of them.  Two classes have a
single score, the log odds.

An event that is no surprise hardly changes anything, so few are kept: an event of class y with a chance in proportion to half
of (1 - p_y)^2 + max_k p_k (1 - p_k), its squared gradient and what is expected of that, and with a weight s of one over the
chance (W. Fithian and T. Hastie: Local case-control sampling, Annals of Statistics 42, 2014).  A quarter of all events is kept
at most, and an eighth while nothing can be predicted, when the mean of these numbers is 1/4.  Chances are added up, and an
event is kept whenever another whole one is reached, so nothing is random.  Events are scored with the weights of the last
fold.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, NamedTuple

import numpy as np

from ..compiler import inner_exact, jit_exact
from ..core import state as states
from ..core.blas import blas, lapack
from ..core.expansion import check_room
from ..core.limits import COEFFICIENT, Diverged
from ..core.shapes import declared
from ..core.state import Widening, padded
from ..core.triangles import write_score
from .least_squares import LIFTS, into
from .pending import FEATURES, FIXED, MOST

if TYPE_CHECKING:
    from ..merging.rules import Merging

RIDGE = 0.3  # rho of two classes; twice that with a score for each class
LEAST_CHANCE = 1e-3  # of an event to be kept
LEAST = 1e-12  # mean of what events say
ROOM = 256  # kept events at most: any others are left out until the next fold
ENOUGH = 192  # kept events to be folded; fewer at first
EIGHTH = 8  # a fold also takes place once so many times the kept events are as many as those folded before
STEPS = 30  # of Newton's method at most
LEAST_GAIN = 1e-7  # of a step, as a part of the loss, for another one
SMALLEST = 1e-6  # part of a step
RATE = 0.001  # the least weight of an event in the mean of what events say
ENTRIES, WAITING, FOLDED = range(3, 6)  # what else size holds: numbers of H, kept events, and folded ones
MEAN, CREDIT, EVENTS = range(3)  # what record holds: of what events say, the sum of chances beyond whole ones, and events


@declared(lengths={"features": ("size", FEATURES), "entries": ("size", ENTRIES), "waiting": ("size", WAITING)})
class Logistic(NamedTuple):
    weights: Annotated[np.ndarray, "coefficients: outputs features"]
    places: Annotated[np.ndarray, "settings: outputs"]  # the row of each output, as in an expansion
    curvature: Annotated[np.ndarray, "numbers: entries"]  # the lower triangle of H, row by row
    # events that were kept since the last fold
    rows: Annotated[np.ndarray, "numbers: waiting features"]
    labels: Annotated[np.ndarray, "targets: waiting"]
    parts: Annotated[np.ndarray, "weights: waiting"]  # s
    # features now, those that are always there, how many others can join, and see ENTRIES and the rest above
    size: Annotated[np.ndarray, "counts", "settings", "settings", "counts", "counts", "counts"]
    record: Annotated[np.ndarray, "positive", "0..1", "counts"]  # see MEAN and the rest above

    def check(self, dimensions: Mapping[str, int]) -> None:
        """Raise unless there is a feature for each point, a triangle of them, and not too many events wait."""
        n, fixed, most, entries, waiting, _ = self.size.tolist()
        joined = min(dimensions["stored"], most)
        if n != fixed + joined and not n == joined == 0:
            raise ValueError(f"there are {n} features of logistic regression, but {fixed + joined} with {joined} points")
        if entries != triangle(n) or waiting > ROOM:
            raise ValueError(f"{entries} numbers and {waiting} events cannot be those of logistic regression on {n} features")

    @property
    def count(self) -> int:  # type: ignore[override]  # hides the method of tuples
        """Number of features in use."""
        return int(self.size[FEATURES])

    @property
    def has_begun(self) -> bool:
        """Whether any event has been folded: classes have been uneven."""
        return bool(self.size[FOLDED])

    @property
    def has_room(self) -> bool:
        """Whether there is memory for events."""
        return len(self.parts) == ROOM

    def grown(self, capacity: int) -> Logistic:
        """Return a copy with room for this many features besides the fixed ones, and for events."""
        n = int(self.size[FIXED]) + min(capacity, int(self.size[MOST]))
        if n <= self.weights.shape[1] and self.has_room:
            return self
        check_room(n, n, "features")
        return self._replace(
            weights=padded(self.weights, 1, n),
            curvature=padded(self.curvature, 0, triangle(n)),
            rows=padded(padded(self.rows, 1, n), 0, ROOM),
            labels=padded(self.labels, 0, ROOM),
            parts=padded(self.parts, 0, ROOM),
        )

    def trimmed(self, size: int) -> Logistic:
        """Return a copy without room for more features and events."""
        n, waiting = self.count, int(self.size[WAITING])
        return self._replace(
            weights=self.weights[:, :n].copy(),
            curvature=self.curvature[: triangle(n)].copy(),
            rows=self.rows[:waiting, :n].copy(),
            labels=self.labels[:waiting].copy(),
            parts=self.parts[:waiting].copy(),
        )

    def ordered(self) -> Logistic:
        """Return a copy with the rows of weights in the order of the labels, and no others."""
        return self._replace(weights=self.weights[self.places], places=np.arange(len(self.places)))

    def widened(self, change: Widening) -> Logistic:
        """Convert to the outputs of ``change``; a new class is as likely as the least likely one, all else being equal."""
        weights, places = change.columns(self.weights, self.places, 0), change.places(self.places)
        known = places[change.old >= 0]
        if self.count and change.outputs > 1:
            weights[places[change.old < 0], 0] = weights[known, 0].min()
        is_first = len(self.places) == 1 and change.outputs > 1  # log odds become a score for each class, of half their size
        return self._replace(
            weights=weights,
            places=places,
            curvature=self.curvature * (2.0 if is_first else 1.0),
            labels=states.recoded(self.labels, change),
        )

    def merged(self, other: Logistic, start: Logistic | None, merging: Merging) -> Logistic:
        """Return the product of what the events of both say, in the features of the merged points."""
        if not (self.has_begun and other.has_begun):
            start = None  # what only one of them says is subtracted from nothing
        own, other = self.folded(), other.folded()
        n = int(self.size[FIXED]) + min(merging.model.stored, int(self.size[MOST]))
        parts = [(merging.a, own, 1.0), (merging.b, other, 1.0)]
        if start is not None and merging.a.model.stored == merging.b.model.stored == merging.start.model.stored:
            parts.append((merging.start, start.folded(), -1.0))
        H, pull, mean = np.zeros((n, n)), np.zeros((len(self.weights), n)), np.zeros((len(self.weights), n))
        for (state, part, sign), share in zip(parts, (*merging.shares, 0.0), strict=False):
            turn = into(merging, state, part, n)
            W, curvature = part.weights[:, : part.count] @ turn.T, turn @ _symmetric(part.curvature, part.count) @ turn.T
            H, pull, mean = H + sign * curvature, pull + sign * W @ curvature, mean + share * W
        weights = mean.copy()
        if n:
            rho = _ridge(len(weights))
            values, vectors = np.linalg.eigh(H)
            H = (vectors * np.maximum(values, 0.0)) @ vectors.T  # what is subtracted need not be a part of the others
            weights = np.ascontiguousarray(np.linalg.solve(H + rho * np.eye(n), (pull + rho * mean).T).T)
        record = np.array([max(own.record[MEAN], other.record[MEAN]), 0.0, own.record[EVENTS] + other.record[EVENTS]])
        folded = own.size[FOLDED] + other.size[FOLDED]
        size = np.array([n, *self.size[FIXED : MOST + 1], triangle(n), 0, folded])
        new = new_logistic(1, 0, len(weights))
        return new._replace(weights=weights, curvature=H[np.tril_indices(n)], rows=np.zeros((0, n)), size=size, record=record)

    def folded(self) -> Logistic:
        """Return a copy in which no event waits, without spare room; where none has been folded, those that wait are forgotten.

        They have waited since classes were even.
        """
        found = self.trimmed(0)
        if self.has_begun:
            fold(found)
        else:
            forget(found)
        return found.trimmed(0)

    def rescaled(self, factors: np.ndarray) -> Logistic:
        """Return the same function of features that are each multiplied by a factor; no event may wait."""
        n = self.count
        H = _symmetric(self.curvature, n) * factors * factors[:, np.newaxis]
        return self._replace(weights=self.weights[:, :n] / factors, curvature=H[np.tril_indices(n)])


def triangle(n: int) -> int:
    """Return how many numbers a triangle of n rows has."""
    return n * (n + 1) // 2


def new_logistic(fixed: int, most: int, outputs: int) -> Logistic:
    """Return logistic regression without events on ``fixed`` features, the first of which is 1, and at most ``most`` others."""
    check_room(fixed + most, fixed + most, "features", later=True)
    none, size = np.zeros(0), np.array([0, fixed, most, 0, 0, 0])
    weights, places = np.zeros((outputs, 0)), np.arange(outputs)
    return Logistic(weights, places, none, np.zeros((0, 0)), none.copy(), none.copy(), size, np.array([0.25, 0.0, 0.0]))


def clear(held: Logistic) -> None:
    """Forget all events and features."""
    held.size[[FEATURES, ENTRIES]] = 0
    forget(held)


def forget(held: Logistic) -> None:
    """Forget all events; the features stay, since there is one for each point."""
    n = held.count
    held.weights[:, :n], held.curvature[: triangle(n)] = 0.0, 0.0
    held.size[[WAITING, FOLDED]] = 0
    held.record[:] = 0.25, 0.0, 0.0


# ---------------------------------------------------------------------- learning


@jit_exact
def learn(held, Z, targets, weights, scores):
    """Write the scores of events, (outputs, events), and keep some of them; Z is (features, events).

    It may have more features than were known, which are then 0 for the events before they came.  Events of weight 0 are only
    scored.
    """
    if Z.shape[0] > held.size[FEATURES]:
        _join(held, Z.shape[0])
    for o in range(scores.shape[0]):
        write_score(held.weights[held.places[o]], Z.shape[0], Z, scores[o])
    for e in range(weights.size):
        if weights[e] > 0.0 and held.size[WAITING] < ROOM:
            _consider(held, Z, e, targets[e], weights[e], scores)


@inner_exact
def _join(held, n):
    """Add features that have been 0 so far, until there are n."""
    known = held.size[FEATURES]
    for k in range(known, n):
        for o in range(held.weights.shape[0]):
            held.weights[o, k] = 0.0
        for i in range(held.size[WAITING]):
            held.rows[i, k] = 0.0
    entries = n * (n + 1) // 2
    for i in range(held.size[ENTRIES], entries):
        held.curvature[i] = 0.0
    held.size[FEATURES], held.size[ENTRIES] = n, entries


@inner_exact
def _consider(held, Z, e, target, weight, scores):
    """Keep an event if another whole chance is reached."""
    record = held.record
    says, mean = _information(scores, e, target), record[MEAN]
    record[EVENTS] += 1.0
    record[MEAN] = max(mean + (says - mean) * max(1.0 / record[EVENTS], RATE), LEAST)
    chance = min(max(says / (record[MEAN] * (4.0 + 16.0 * record[MEAN])), LEAST_CHANCE), 1.0)
    record[CREDIT] += chance
    if record[CREDIT] < 1.0:
        return
    record[CREDIT] -= 1.0
    place = held.size[WAITING]
    for k in range(Z.shape[0]):
        held.rows[place, k] = Z[k, e]
    held.labels[place], held.parts[place] = target, weight / chance
    held.size[WAITING] = place + 1


@inner_exact
def _information(scores, e, target):
    """Return half of the squared gradient of an event's own score, and half of the largest variance of a class."""
    outputs = scores.shape[0]
    if outputs == 1:
        p = 1.0 / (1.0 + np.exp(-scores[0, e]))
        missing = 1.0 - p if target > 0.0 else p
        return 0.5 * (missing * missing + p * (1.0 - p))
    highest, total, largest = scores[0, e], 0.0, 0.0
    for o in range(1, outputs):
        highest = max(highest, scores[o, e])
    for o in range(outputs):
        total += np.exp(scores[o, e] - highest)
    for o in range(outputs):
        p = np.exp(scores[o, e] - highest) / total
        largest = max(largest, p * (1.0 - p))
    missing = 1.0 - np.exp(scores[int(target), e] - highest) / total
    return 0.5 * (missing * missing + largest)


@inner_exact
def write_weights(held, place, known):
    """Write a row of weights, 0 for features that have not joined; return whether there was any other number before."""
    has_changed = False
    for k in range(known.size):
        weight = held.weights[place, k] if k < held.size[FEATURES] else 0.0
        has_changed = has_changed or weight != known[k]
        known[k] = weight
    return has_changed


def settle(held: Logistic) -> None:
    """Fold the events that wait if they are enough."""
    waiting, folded = int(held.size[WAITING]), int(held.size[FOLDED])
    if waiting >= ENOUGH or EIGHTH * waiting >= folded:
        fold(held)


def fold(held: Logistic) -> None:
    """Let the weights follow the events that wait, and add these to what is known of the curvature."""
    n, waiting, outputs = held.count, int(held.size[WAITING]), len(held.places)
    if not waiting:
        return
    Z, parts, labels = np.ascontiguousarray(held.rows[:waiting, :n]), held.parts[:waiting], held.labels[:waiting]
    W = held.weights[held.places, :n]  # in the order of the labels: BLAS may round each row differently
    is_own = np.eye(max(2, outputs))[(labels if outputs > 1 else labels > 0.0).astype(np.intp)]
    U = _factor(held.curvature, n, _ridge(outputs))
    Y = lapack.dtrtrs(U, Z.T, trans=1)[0]
    scores, a = _minimum(Z @ W.T, Y.T @ Y, parts, is_own)
    W -= lapack.dtrtrs(U, Y @ a)[0].T
    if not (np.abs(W) <= COEFFICIENT).all():
        raise Diverged
    Zs = np.sqrt(_bend(_probabilities(scores), parts, outputs))[:, np.newaxis] * Z
    H = _unpacked(held.curvature, n)
    blas.dsyrk(1.0, Zs.T, beta=1.0, c=H.T, overwrite_c=1)
    _pack(H, held.curvature)
    held.weights[held.places, :n] = W
    held.size[FOLDED] += waiting
    held.size[WAITING] = 0


def _minimum(start: np.ndarray, G: np.ndarray, parts: np.ndarray, is_own: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the scores of events at the minimum, (events, outputs), and the gradients there, by Newton's method.

    With G = Z (H + rho I)^-1 Z', weights v - (H + rho I)^-1 Z' a lead to the scores ``start`` - G a, and what they add to the
    first term is half of a' G a.  At the minimum, a are the gradients (C. E. Rasmussen and C. K. I. Williams, Gaussian
    Processes for Machine Learning, 2006, section 3.4).  A step is halved until it lowers the loss, and doubled as long as that
    lowers it further: with several scores, the matrix only bounds the curvature.
    """
    outputs = start.shape[1]
    at = _At(start, np.zeros_like(start), np.zeros_like(start))
    loss = at.loss(parts, is_own)
    for _ in range(STEPS):
        p = _probabilities(at.scores)
        root = np.sqrt(_bend(p, parts, outputs))[:, np.newaxis]
        r = (parts[:, np.newaxis] * (p - is_own))[:, -outputs:] + root**2 * at.moved
        B = np.eye(len(G)) + root * G * root.T
        step = r - root * lapack.dposv(B, root * (G @ r), lower=1)[1] - at.a
        through, size = G @ step, 1.0
        while (new := at.after(size, step, through).loss(parts, is_own)) > loss and size > SMALLEST:
            size /= 2.0
        while (further := at.after(2.0 * size, step, through).loss(parts, is_own)) < new:
            new, size = further, 2.0 * size
        gain, loss = loss - new, min(loss, new)
        if gain > 0.0:
            at = at.after(size, step, through)
        if not gain > LEAST_GAIN * loss:
            break
    return at.scores, at.a


class _At(NamedTuple):
    """Where the search for the minimum is: scores are those at its start minus ``moved``, which is G a."""

    scores: np.ndarray
    moved: np.ndarray
    a: np.ndarray

    def after(self, size: float, step: np.ndarray, through: np.ndarray) -> _At:
        """Return where a part of a step in a leads, given G times the step."""
        return _At(self.scores - size * through, self.moved + size * through, self.a + size * step)

    def loss(self, parts: np.ndarray, is_own: np.ndarray) -> float:
        """Return what is to be minimised."""
        p = np.maximum((_probabilities(self.scores) * is_own).sum(axis=1), np.finfo(np.float64).tiny)
        away = max(0.5 * (self.moved * self.a).sum(), 0.0)  # less is rounding, which a longer step would only multiply
        return float(away - parts @ np.log(p))


def _probabilities(scores: np.ndarray) -> np.ndarray:
    """Return those of classes, (events, classes), given log odds or a score for each class."""
    scores = np.hstack([-0.5 * scores, 0.5 * scores]) if scores.shape[1] == 1 else scores
    p = np.exp(scores - scores.max(axis=1, keepdims=True))
    return p / p.sum(axis=1, keepdims=True)


def _bend(p: np.ndarray, parts: np.ndarray, outputs: int) -> np.ndarray:
    """Return how much each event bends the loss along a score: at most, if there are several."""
    return _per_score(outputs) * parts * (p * (1.0 - p)).max(axis=1)


def _per_score(outputs: int) -> float:
    """Return 2 if there is a score for each class: log odds are the difference of two."""
    return 1.0 if outputs == 1 else 2.0


def _ridge(outputs: int) -> float:
    return RIDGE * _per_score(outputs)


def _factor(packed: np.ndarray, n: int, rho: float) -> np.ndarray:
    """Return U with U' U = H + rho I, given the triangle of H; below the diagonal of U there is something else."""
    for lift in LIFTS:
        A = _unpacked(packed, n)
        A.flat[:: n + 1] += rho + lift * A.diagonal()
        U, failed = lapack.dpotrf(A.T, clean=0, overwrite_a=1)
        if not failed:
            return U
    raise Diverged


def _unpacked(packed: np.ndarray, n: int) -> np.ndarray:
    """Return a matrix of n rows with this lower triangle, and anything above."""
    square = np.empty((n, n))
    _write_triangle(packed, square)
    return square


def _symmetric(packed: np.ndarray, n: int) -> np.ndarray:
    """Return a matrix with this lower triangle, and the same above."""
    lower = np.tril(_unpacked(packed, n))
    return lower + np.tril(lower, -1).T


@jit_exact
def _write_triangle(packed, square):
    """Write the lower triangle of a matrix."""
    place = 0
    for i in range(square.shape[0]):
        for j in range(i + 1):
            square[i, j] = packed[place]
            place += 1


@jit_exact
def _pack(square, packed):
    """Read it."""
    place = 0
    for i in range(square.shape[0]):
        for j in range(i + 1):
            packed[place] = square[i, j]
            place += 1
