"""Recursive least squares: ridge regression on features, one pass over the events, as if one by one.

With A = rho I + S, where S is the sum of s z z' over the events (features z, weight s, targets t), the weights are W = A^-1 B
with B the sum of s t z.  Events wait, learned but not folded into these sums yet: with A = L L' of the events before, and
y = L^-1 z for each that waits, C is the factor of Y' Y plus the noise 1 / s on the diagonal, and

    a = C^-1 (T - Z W),  T - a diag(C) the scores just before each event was learned.

So an event adds a row to C and a number to a, and its score is W z + <c, a>.  Up to BLOCK events are then folded at once,

    S <- S + Z s Z',  B <- B + Z s T,  L L' = rho I + S,  W = A^-1 B,

which takes fewer operations than updates of A^-1, and since L and W come from the sums, rounding errors do not accumulate.
When events are folded depends on their number only, and all that happens between is computed in the same order for one event
and for many (core/triangles.py): the results do not depend on how events are divided among calls, to the last bit.
With few features, events do not wait: they update L and W themselves, and after some of them both come from the sums again.

Forgetting by beta an event, A <- beta A + s z z', is the same on rows that are multiplied by beta^(-i/2), i = 1, 2, ... since
the last fold.  It forgets the ridge as well: rho is what is left of it, until it is restored at fixed counts of events.

Features may join at any time, as if they had been 0 before.  Matrices are flat arrays without gaps, of which only one triangle
is used.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import numpy as np

from ..compiler import by_address, jit_exact
from ..core import state as states
from ..core.blas import blas, lapack
from ..core.expansion import check_room
from ..core.limits import Diverged
from ..core.matrices import kernel_matrix, squared_norms
from ..core.shapes import declared
from ..core.state import Widening, added, padded
from ..core.triangles import solve
from .one_by_one import learn_each, widen_sums
from .pending import (
    BASE,
    BLOCK,
    COUNT,
    EVENTS,
    FEATURES,
    FIXED,
    FULL,
    KEEP,
    LARGEST,
    MOST,
    PERIOD,
    RECORDS,
    RHO,
    WAITING,
    Pending,
    join,
    no_events,
    stage,
    write_weights,
)
from .whitened import point_factor

if TYPE_CHECKING:
    from ..merging.rules import Merging

NARROW = 32  # features, up to which events do not wait
RENEW = 1024  # events that have not waited, after which L and W are computed from the sums
SHORTEST = 16  # minimum number of events after which the ridge is restored if events are forgotten
UNEVEN = 0.01  # the least variance of classes over that of equally frequent ones
PER_OUTPUT, WAITING_PER_OUTPUT = ("weights", "moments", "losses"), ("rest", "targets")  # arrays with a row for each output
LIFTS = (0.0, 1e-14, 1e-12, 1e-9, 1e-6, 1e-3)  # of the diagonal, tried in turn until a matrix has a factor


class Ridge(NamedTuple):
    """Regularisation of least squares."""

    ridge: float
    keep: float  # factor by which the weight of earlier events shrinks per event
    period: int  # events after which a forgotten ridge is restored; 0 without forgetting

    @classmethod
    def forgetting(cls, ridge: float, keep: float, half_life: float | None) -> Ridge:
        """Return a ridge that is restored after each half-life of events."""
        return cls(ridge, keep, 0 if half_life is None else max(SHORTEST, math.ceil(half_life)))


@declared(lengths={"features": ("size", FEATURES), "base": ("size", BASE)})
class LeastSquares(NamedTuple):
    # L', its upper triangle row by row in the first base^2 numbers: base features at the last fold
    factor: Annotated[np.ndarray, "triangle: base*base"]
    squares: Annotated[np.ndarray, "triangle: base*base"]  # S, likewise
    weights: Annotated[np.ndarray, "coefficients: outputs features"]  # W, (outputs, capacity)
    moments: Annotated[np.ndarray, "numbers: outputs features"]  # B, (outputs, capacity)
    losses: Annotated[np.ndarray, "numbers: outputs"]  # the least regularised squared loss of all events so far: the sum of a^2
    # the row of each output in these and in what waits, as in an expansion (core/expansion.py)
    places: Annotated[np.ndarray, "settings: outputs"]
    size: Annotated[np.ndarray, "counts", "settings", "settings", "counts", "counts"]  # see FEATURES and the rest above
    # see RHO and the rest above
    record: Annotated[
        np.ndarray, "positive", "counts", "numbers", "numbers", "not negative", "settings", "settings", "settings"
    ]
    pending: Pending

    def check(self, dimensions: Mapping[str, int]) -> None:
        """Raise unless there is a feature for each point, the factors are such, and not too many events wait."""
        n, fixed, most, base, waiting = self.size.tolist()
        joined = min(dimensions["stored"], most)
        if n != fixed + joined and not n == joined == 0:
            raise ValueError(f"there are {n} features of least squares, but {fixed + joined} with {joined} points")
        if base > n or waiting >= (BLOCK if self.waits else 1) or self.pending.size.tolist() != [n if waiting else 0, waiting]:
            raise ValueError(f"{waiting} events of {n} features cannot wait for least squares of {base}")
        for factor in (self.factor[:: base + 1], self.pending.factor.diagonal()):
            if not (factor > 0.0).all():
                raise ValueError("the factor of least squares has a diagonal that is not positive")

    @property
    def rho(self) -> float:
        """What is left of the ridge after all events."""
        return float(self.record[RHO] * self.record[KEEP] ** self.size[WAITING])

    @property
    def waits(self) -> bool:
        """Whether events wait to be folded into the sums."""
        return bool(self.size[FIXED] + self.size[MOST] > NARROW)

    @property
    def count(self) -> int:  # type: ignore[override]  # hides the method of tuples
        """Number of features in use."""
        return int(self.size[FEATURES])

    @property
    def noise(self) -> float:
        """Return the mean of e^2 / (1/s + z'A^-1 z) over all events and outputs, e the error before learning."""
        return float(self.losses[self.places].mean() / self.record[COUNT]) if self.record[COUNT] > 0.0 else math.inf

    def grown(self, capacity: int) -> LeastSquares:
        """Return a copy with room for this many features besides the fixed ones."""
        n = int(self.size[FIXED]) + min(capacity, int(self.size[MOST]))
        if n * n <= len(self.factor) and n <= self.weights.shape[1] and (not self.waits or len(self.pending.weights) == BLOCK):
            return self
        check_room(n, n, "features")
        return self._replace(
            factor=padded(self.factor, 0, n * n),
            squares=padded(self.squares, 0, n * n),
            weights=padded(self.weights, 1, n),
            moments=padded(self.moments, 1, n),
            pending=self.pending.grown(n) if self.waits else self.pending,
        )

    def trimmed(self, size: int) -> LeastSquares:
        """Return a copy without room for more features and events."""
        n, base = self.count, int(self.size[BASE])
        return self._replace(
            factor=self.factor[: base * base].copy(),
            squares=self.squares[: base * base].copy(),
            weights=self.weights[:, :n].copy(),
            moments=self.moments[:, :n].copy(),
            pending=self.pending.trimmed(n, int(self.size[WAITING])),
        )

    def ordered(self) -> LeastSquares:
        """Return a copy with the rows in the order of the labels, and no others."""
        parts = {name: getattr(self, name)[self.places] for name in PER_OUTPUT}
        pending = {name: getattr(self.pending, name)[self.places] for name in WAITING_PER_OUTPUT}
        return self._replace(**parts, places=np.arange(len(self.places)), pending=self.pending._replace(**pending))

    def folded(self) -> LeastSquares:
        """Return a copy in which no event waits; it may have less spare room."""
        if not self.size[WAITING] and self.size[BASE] == self.count:
            return self
        found = states.copied(self.trimmed(0).grown(self.count - int(self.size[FIXED])))
        fold(found)
        return found

    def widened(self, change: Widening) -> LeastSquares:
        """Add a column of targets that were all -1 so far: exactly as if it had existed from the start.

        The one column of two classes, -1 for the first and 1 for the second, becomes one for each.
        """
        same = change._replace(factors=np.abs(change.signs.factors))  # losses have no sign
        parts = {name: change.signs.columns(getattr(self, name), self.places, 0) for name in PER_OUTPUT[:2]}
        pending = {name: change.signs.columns(getattr(self.pending, name), self.places, 0) for name in WAITING_PER_OUTPUT}
        wider = self._replace(
            **parts,
            losses=same.columns(self.losses, self.places, 0),
            places=change.places(self.places),
            pending=self.pending._replace(**pending),
        )
        for place in wider.places[change.old < 0]:
            _learn_absent(wider, place)
        return wider

    def merged(self, other: LeastSquares, start: LeastSquares | None, merging: Merging) -> LeastSquares:
        """Return the sums of both in the features of the merged points, on which events are projected.

        With the same points, or none, that is least squares on all events.  Otherwise the weights are those of the mean of the
        functions, and the sums say how much each direction has been seen.
        """
        self, other = self.folded(), other.folded()
        start = None if start is None else start.folded()
        began = 0.0 if start is None else start.record[EVENTS]
        events = self.record[EVENTS] + other.record[EVENTS] - began
        parts = [(merging.a, self, 1.0), (merging.b, other, 1.0)]
        for i, share in enumerate(merging.shares):
            own = parts[i][1].record[EVENTS] - began
            parts[i] = (*parts[i][:2], share * (events - began) / own if own > 0.0 else 0.0)
        kept = 1.0  # of what the start knew, in whichever has forgotten more of it
        if start is not None:
            kept = float(self.record[KEEP] ** (max(self.record[EVENTS], other.record[EVENTS]) - began))
            parts.append((merging.start, start, kept * (1.0 - parts[0][2] - parts[1][2])))
        n = int(self.size[FIXED]) + min(merging.model.stored, int(self.size[MOST]))
        S, B, W = np.zeros((n, n)), np.zeros((len(self.weights), n)), np.zeros((len(self.weights), n))
        for (state, sums, factor), share, shift, width in zip(parts, (*merging.shares, 0.0), *merging.units, strict=False):
            turn = into(merging, state, sums, n)
            squares = _symmetric(sums.squares, sums.count)
            S += factor * (turn @ squares @ turn.T)
            B += factor * ((shift * squares[:1] + width * sums.moments[:, : sums.count]) @ turn.T)  # the first feature is 1
            W += share * (width * (sums.weights[:, : sums.count] @ turn.T) + shift * np.eye(1, n))
        total = lambda value: added(self, other, start, value)  # noqa: E731
        scaled = [width**2 * sums.losses for (_, sums, _), width in zip(parts, merging.units.width, strict=False)]
        losses = scaled[0] + scaled[1] - (kept * scaled[2] if start is not None else 0.0)
        record = total(lambda sums: sums.record)
        record[COUNT] += 0.0 if start is None else (1.0 - kept) * start.record[COUNT]
        record[FULL:] = self.record[FULL:]
        record[RHO] = max(record[FULL], self.record[RHO], other.record[RHO])  # not what forgetting has left of it
        record[LARGEST] = max(self.record[LARGEST], other.record[LARGEST])
        size = np.array([n, *self.size[FIXED : MOST + 1], n, 0])
        same = merging.model.stored == merging.a.model.stored == merging.b.model.stored and (merging.places >= 0).all()
        if self.size[MOST] and not same:
            if start is not None:  # what is subtracted need not be a part of the others in these features
                S[:] = _without_negative_part(S)
            W[:, self.size[FIXED] :] = merging.model.coef[0] @ point_factor(merging.kernel, merging.model).T
            B[:] = W @ S + record[RHO] * W
        places = np.arange(len(W))
        sums = LeastSquares(np.zeros(n * n), np.triu(S).ravel(), W, B, losses, places, size, record, no_events(len(W)))
        renew(sums)
        return sums


def new_least_squares(ridge: Ridge, fixed: int, most: int, outputs: int) -> LeastSquares:
    """Return least squares without events on ``fixed`` features, the first of which is 1, and at most ``most`` others."""
    check_room(fixed + most, fixed + most, "features", later=True)
    record = np.zeros(RECORDS)
    record[FULL:] = ridge
    record[RHO] = ridge.ridge
    nothing, size = np.zeros((outputs, 0)), np.array([0, fixed, most, 0, 0])
    losses, places, waiting = np.zeros(outputs), np.arange(outputs), no_events(outputs)
    return LeastSquares(np.zeros(0), np.zeros(0), nothing, nothing.copy(), losses, places, size, record, waiting)


def _learn_absent(sums: LeastSquares, place: int) -> None:
    """Learn all events so far in the row at ``place``, which is 0: its targets are -1."""
    base, held, keep, pending = int(sums.size[BASE]), int(sums.size[WAITING]), sums.record[KEEP], sums.pending
    w, lost = np.zeros(base), 0.0
    if base:
        q = sums.squares[:base]  # the sum of s z, since the first feature is 1
        w = -_solved(sums, q[np.newaxis])[0]
        sums.weights[place, :base], sums.moments[place, :base], lost = w, -q, q[0] + w @ q
    rest = np.zeros((held, 1))
    if held:
        rest[:, 0] = (-1.0 - w @ pending.features[:base, :held]) * keep ** (-0.5 * np.arange(1.0, held + 1.0))
        solve(pending.factor, rest, held)
        pending.targets[place, :held], pending.rest[place, :held] = -1.0, rest[:, 0]
    sums.losses[place] = keep**held * (lost + (rest**2).sum())


def clear(sums: LeastSquares) -> None:
    """Forget all events and features."""
    sums.size[[FEATURES, BASE, WAITING]] = 0
    sums.losses[:] = 0.0
    sums.record[:FULL] = 0.0
    sums.record[RHO] = sums.record[FULL]


# ---------------------------------------------------------------------- learning


@jit_exact
def class_targets(targets, columns):
    """Write the targets of least squares, (outputs, events): 1 for the output of an event's class, -1 for the others."""
    for e in range(targets.size):
        if columns.shape[0] == 1:
            columns[0, e] = targets[e]
        else:
            for o in range(columns.shape[0]):
                columns[o, e] = -1.0
            columns[int(targets[e]), e] = 1.0


def current_weights(sums: LeastSquares) -> np.ndarray:
    """Return W after all events, (outputs, features)."""
    W = np.empty((len(sums.places), sums.count))
    write_weights(by_address(sums), W)
    return W


@jit_exact
def learn(sums, Z, targets, weights, scores):
    """Learn events, or stage them if they wait (pending.py); return how many wait, -1 if a score is too large.

    Z is (features, events), and may have more features than were known, which are then 0 for the events before they came;
    targets, and scores before each event was learned, are (outputs, events).  There may not be more events than ``until_due``.
    Events of weight 0 are only scored.
    """
    if Z.shape[0] > sums.size[FEATURES]:
        join(sums, Z.shape[0])
    if sums.size[FIXED] + sums.size[MOST] > NARROW:
        return stage(sums, Z, targets, weights, scores)
    widen_sums(sums, Z.shape[0])
    return 0 if learn_each(sums, Z, targets, weights, scores) else -1


@jit_exact
def until_due(sums):
    """Return the number of events after which ``settle`` has something to do."""
    period, waits = int(sums.record[PERIOD]), sums.size[FIXED] + sums.size[MOST] > NARROW
    ahead = BLOCK - sums.size[WAITING] if waits else RENEW - int(sums.record[EVENTS]) % RENEW
    ahead = min(ahead, period - int(sums.record[EVENTS]) % period) if period > 0 else ahead
    return max(ahead, 1)  # also with the numbers of a file


def settle(sums: LeastSquares, even: bool = False) -> None:
    """Fold events, or restore the ridge and the accuracy of the factor, if it is time; for ``even`` see ``fold``."""
    period, events = int(sums.record[PERIOD]), int(sums.record[EVENTS])
    due = bool(period) and events % period == 0
    if due or sums.size[WAITING] == BLOCK or not (sums.waits or events % RENEW):
        fold(sums, restore=due, even=even)


def fold(sums: LeastSquares, restore: bool = False, even: bool = False) -> None:
    """Add the waiting events to the sums, and compute L and W from these; with ``restore``, the ridge is whole again.

    With ``even``, the ridge is that of classes that are equally frequent, over how even they are.
    """
    n, waiting, keep, pending = sums.count, int(sums.size[WAITING]), sums.record[KEEP], sums.pending
    widen_sums(by_address(sums), n)
    if waiting:
        fade = keep**waiting
        Z, s, T = pending.features[:n, :waiting], pending.weights[:waiting], pending.targets[sums.places, :waiting]
        if keep < 1.0 or not (s == 1.0).all():
            s = s * keep ** -np.arange(1.0, waiting + 1.0)
            Zs = Z * np.sqrt(s)
        else:
            Zs = np.ascontiguousarray(Z)
        blas.dsyrk(fade, Zs.T, beta=fade, trans=1, c=_matrix(sums.squares, n), lower=1, overwrite_c=1)
        B = sums.moments[sums.places, :n] + (T * s) @ Z.T  # in the order of the labels: BLAS may round each row differently
        sums.moments[sums.places, :n] = fade * B
        sums.record[RHO] *= fade
        sums.size[WAITING] = 0
    if restore:
        sums.record[RHO] = sums.record[FULL]
    if even and n:
        sums.record[RHO] = sums.record[FULL] / _evenness(sums)
    renew(sums)


def _evenness(sums: LeastSquares) -> float:
    """Return the variance of the classes so far over that of equally frequent ones, at least UNEVEN."""
    shares = 0.5 + 0.5 * sums.moments[sums.places, 0] / sums.squares[0]  # the first feature is 1, and the targets are -1 and 1
    share = 1.0 / max(2, len(shares))
    return max(float(np.mean(shares * (1.0 - shares))) / (share * (1.0 - share)), UNEVEN)


def into(merging: Merging, state: Any, sums: Any, n: int) -> np.ndarray:
    """Return the matrix that maps the features of a model to those of the merged one: a projection on the merged points."""
    fixed, size = int(sums.size[FIXED]), sums.count - int(sums.size[FIXED])
    turn = np.zeros((n, sums.count))
    turn[:fixed, :fixed] = np.eye(fixed, min(fixed, sums.count))
    if n > fixed and size > 0:
        model = merging.model
        own = state.model.points[:size] + (state.model.centre - model.centre)
        cross = kernel_matrix(merging.kernel, model.points, model.norms, own, squared_norms(own)).astype(np.float64)
        solve(point_factor(merging.kernel, model), cross, len(cross))
        turned = np.ascontiguousarray(cross.T)
        solve(state.whitening.factor, turned, len(turned))
        turn[fixed:, fixed:] = turned.T
    return turn


def _without_negative_part(S: np.ndarray) -> np.ndarray:
    """Return the nearest matrix without negative eigenvalues."""
    values, vectors = np.linalg.eigh(S)
    return (vectors * np.maximum(values, 0.0)) @ vectors.T


def turned(sums: LeastSquares, turn: np.ndarray) -> LeastSquares:
    """Return the sums of features ``turn @ z``; the factor is left for ``renew``."""
    sums = sums.folded()
    n, room = len(turn), (len(sums.weights), len(turn))
    S = turn @ _symmetric(sums.squares, sums.count) @ turn.T
    weights, moments = (part[:, : sums.count] @ turn.T for part in (sums.weights, sums.moments))
    size = np.array([n, *sums.size[FIXED : MOST + 1], n, 0])
    return sums._replace(
        factor=np.zeros(n * n),
        squares=np.triu(S).ravel(),
        weights=weights.reshape(room),
        moments=moments.reshape(room),
        size=size,
    )


def rescaled(sums: LeastSquares, factors: np.ndarray) -> LeastSquares:
    """Return the sums of features that are each multiplied by a factor; the weights are of the same function."""
    sums = sums.folded().trimmed(0)
    n = sums.count
    squares = (sums.squares.reshape(n, n) * factors * factors[:, np.newaxis]).ravel()
    found = sums._replace(
        factor=np.zeros(n * n), squares=squares, weights=sums.weights / factors, moments=sums.moments * factors
    )
    renew(found)
    return found


def renew(sums: LeastSquares) -> None:
    """Compute L and W from the sums."""
    n = sums.count
    if not n:
        return
    L, diagonal = _matrix(sums.factor, n), sums.factor[: n * n : n + 1]
    for lift in LIFTS:
        sums.factor[: n * n] = sums.squares[: n * n]
        diagonal += sums.record[RHO] + lift * diagonal
        if not lapack.dpotrf(L, lower=1, clean=0, overwrite_a=1)[1]:
            break
    else:
        raise Diverged
    sums.weights[sums.places, :n] = _solved(sums, sums.moments[sums.places, :n])


def _matrix(flat: np.ndarray, n: int) -> np.ndarray:
    """Return a matrix as BLAS sees it: in Fortran order, of which the lower triangle counts."""
    return flat[: n * n].reshape(n, n).T


def _symmetric(flat: np.ndarray, n: int) -> np.ndarray:
    """Both triangles."""
    upper = np.triu(flat[: n * n].reshape(n, n))
    return upper + np.triu(upper, 1).T


def _solved(sums: LeastSquares, B: np.ndarray) -> np.ndarray:
    """Return A^-1 b for the rows b of B."""
    return lapack.dpotrs(_matrix(sums.factor, int(sums.size[BASE])), B.T, lower=1)[0].T
