"""Recursive least squares in exact blocks: ridge regression on features, one pass over the events, as if one by one.

With A = rho I + S, where S is the sum of s z z' over the events (features z, weight s, targets t), the weights are W = A^-1 B
with B the sum of s t z.  For a block of events Z, with A = L L', Y = L^-1 Z and C the factor of Y' Y plus the noise 1 / s on
the diagonal,

    a = C^-1 (T - Z W),  S <- S + Z s Z',  B <- B + Z s T,  L L' = rho I + S,  W = A^-1 B,

and T - a diag(C) are the scores just before each event was learned: the factorisation of C goes through the block in order.
This takes fewer operations than updates of A^-1, and since L and W come from the sums, rounding errors do not accumulate.
Single events, and those of few features, update L and W themselves; after some of them, both are computed from the sums again.

Forgetting by beta an event, A <- beta A + s z z', is the same on rows that are multiplied by beta^(-i/2), i = 1, 2, ... in the
block.  It forgets the ridge as well: rho is what is left of it, until it is restored at fixed counts of events.

Features may join at any time, as if they had been 0 before.  Matrices are flat arrays without gaps, of which only one triangle
is used.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..compiler import inline, jit
from ..core.blas import blas, lapack
from ..core.expansion import check_room, padded
from ..core.limits import SCORE, Diverged
from ..core.matrices import kernel_matrix, squared_norms
from ..core.shapes import declared
from ..core.state import Widening, added
from .whitened import point_factor, solve

if TYPE_CHECKING:
    from ..merging.rules import Merging

BLOCK = 256  # events that are learned at once: longer blocks need fewer factors of S, but cost more inside
SHORT = 128  # the same for fewer features than BLOCK
FEW = 7  # events in a row that are learned one by one: less than the factor of a block costs
FEW_NUMBERS = 1500  # the same for events times features: with few features, a block's calls of BLAS take longer than its factor
NARROW = 16  # features, up to which events are learned one by one: calls of BLAS take longer
RENEW = 1000  # events learned one by one, after which L and W are computed from the sums
UNHEARD = 1e200  # noise of an event that is only scored
LIFTS = (0.0, 1e-14, 1e-12, 1e-9, 1e-6, 1e-3)  # of the diagonal, tried in turn until a matrix has a factor
FEATURES, FIXED, MOST = range(3)  # what size holds: features now, those that are always there, and how many others can join
RHO, EVENTS, COUNT, REGRET, LARGEST, FULL = range(6)  # what record holds; FULL is the ridge
RECORDS = 6


class Ridge(NamedTuple):
    """Regularisation of least squares."""

    ridge: float
    keep: float  # factor by which the weight of earlier events shrinks per event
    period: int  # events after which a forgotten ridge is restored; 0 without forgetting


@declared(
    lengths={"features": ("size", FEATURES)},
    factor="numbers: features*features",
    squares="numbers: features*features",
    weights="coefficients: outputs features",
    moments="numbers: outputs features",
    losses="numbers: outputs",
    size=("counts", "settings", "settings"),
    record=("positive", "counts", "numbers", "numbers", "not negative", "settings"),
)
class LeastSquares(NamedTuple):
    factor: np.ndarray  # L', its upper triangle row by row in the first features^2 numbers
    squares: np.ndarray  # S, likewise
    weights: np.ndarray  # W, (outputs, capacity)
    moments: np.ndarray  # B, (outputs, capacity)
    losses: np.ndarray  # the least regularised squared loss of all events so far: the sum of a^2
    size: np.ndarray  # see FEATURES and the rest above
    record: np.ndarray  # see RHO and the rest above

    def check(self, dimensions: Mapping[str, int]) -> None:
        """Raise unless there is a feature for each point, and the factor is one."""
        n, fixed, most = self.size.tolist()
        joined = min(dimensions["stored"], most)
        if n != fixed + joined and not n == joined == 0:
            raise ValueError(f"there are {n} features of least squares, but {fixed + joined} with {joined} points")
        if not (self.factor[:: n + 1] > 0.0).all():
            raise ValueError("the factor of least squares has a diagonal that is not positive")

    @property
    def count(self) -> int:  # type: ignore[override]  # hides the method of tuples
        """Number of features in use."""
        return int(self.size[FEATURES])

    @property
    def noise(self) -> float:
        """Return the mean of e^2 / (1/s + z'A^-1 z) over all events and outputs, e the error before learning."""
        return float(self.losses.mean() / self.record[COUNT]) if self.record[COUNT] > 0.0 else math.inf

    def grown(self, capacity: int) -> LeastSquares:
        """Return a copy with room for this many features besides the fixed ones."""
        n = int(self.size[FIXED]) + min(capacity, int(self.size[MOST]))
        if n <= self.weights.shape[1]:
            return self
        check_room(n, n, "features")
        return self._replace(
            factor=padded(self.factor, 0, n * n),
            squares=padded(self.squares, 0, n * n),
            weights=padded(self.weights, 1, n),
            moments=padded(self.moments, 1, n),
        )

    def trimmed(self, size: int) -> LeastSquares:
        """Return a copy without spare room."""
        n = self.count
        return self._replace(
            factor=self.factor[: n * n].copy(),
            squares=self.squares[: n * n].copy(),
            weights=self.weights[:, :n].copy(),
            moments=self.moments[:, :n].copy(),
        )

    def widened(self, change: Widening) -> LeastSquares:
        """Add a column of targets that were all -1 so far: exactly as if it had existed from the start.

        The one column of two classes, -1 for the first and 1 for the second, becomes one for each.
        """
        n = self.count
        q = self.squares[:n]  # the sum of s z, since the first feature is 1
        new = np.zeros(self.weights.shape[1])
        if n:
            new[:n] = -_solved(self, q[np.newaxis])[0]
        of_all = np.zeros_like(new)
        of_all[:n] = -q
        lost = float(q[0] + new[:n] @ q) if n else 0.0
        is_new, signs = change.old < 0, change._replace(factors=np.sign(change.factors))
        weights, moments = signs.of(self.weights), signs.of(self.moments)
        losses = change._replace(factors=1.0 - is_new).of(self.losses)
        weights[is_new], moments[is_new], losses[is_new] = new, of_all, lost
        return self._replace(weights=weights, moments=moments, losses=losses)

    def merged(self, other: LeastSquares, start: LeastSquares | None, merging: Merging) -> LeastSquares:
        """Return the sums of both in the features of the merged points, on which events are projected.

        With the same points, or none, that is least squares on all events.  Otherwise the weights are those of the mean of the
        functions, and the sums say how much each direction has been seen.
        """
        began = 0.0 if start is None else start.record[EVENTS]
        events = self.record[EVENTS] + other.record[EVENTS] - began
        parts = [(merging.a, self, 1.0), (merging.b, other, 1.0)]
        for i, share in enumerate(merging.shares):
            own = parts[i][1].record[EVENTS] - began
            parts[i] = (*parts[i][:2], share * (events - began) / own if own > 0.0 else 0.0)
        if start is not None:
            parts.append((merging.start, start, 1.0 - parts[0][2] - parts[1][2]))
        n = int(self.size[FIXED]) + min(merging.model.stored, int(self.size[MOST]))
        S, B, W = np.zeros((n, n)), np.zeros((len(self.weights), n)), np.zeros((len(self.weights), n))
        for (state, sums, factor), share, shift, width in zip(parts, (*merging.shares, 0.0), *merging.units, strict=False):
            turn = _into(merging, state, sums, n)
            squares = _symmetric(sums.squares, sums.count)
            S += factor * (turn @ squares @ turn.T)
            B += factor * ((shift * squares[:1] + width * sums.moments[:, : sums.count]) @ turn.T)  # the first feature is 1
            W += share * (width * (sums.weights[:, : sums.count] @ turn.T) + shift * np.eye(1, n))
        total = lambda value: added(self, other, start, value)  # noqa: E731
        scaled = [width**2 * sums.losses for (_, sums, _), width in zip(parts, merging.units.width, strict=False)]
        losses = scaled[0] + scaled[1] - (scaled[2] if start is not None else 0.0)
        record = total(lambda sums: sums.record)
        record[RHO] = record[FULL] = self.record[FULL]
        record[LARGEST] = max(self.record[LARGEST], other.record[LARGEST])
        size = np.array([n, *self.size[FIXED:]])
        sums = LeastSquares(np.zeros(n * n), S.ravel(), W, B, losses, size, record)
        same = merging.model.stored == merging.a.model.stored == merging.b.model.stored and (merging.places >= 0).all()
        if self.size[MOST] and not same:
            if start is not None:  # what is subtracted need not be a part of the others in these features
                S[:] = _without_negative_part(S)
            W[:, self.size[FIXED] :] = merging.model.coef[0] @ point_factor(merging.kernel, merging.model)
            B[:] = W @ S + record[RHO] * W
        renew(sums)
        return sums


def new_least_squares(ridge: Ridge, fixed: int, most: int, outputs: int) -> LeastSquares:
    """Return least squares without events on ``fixed`` features, the first of which is 1, and at most ``most`` others."""
    check_room(fixed + most, fixed + most, "features", later=True)
    record = np.zeros(RECORDS)
    record[RHO] = record[FULL] = ridge.ridge
    nothing = np.zeros((outputs, 0))
    return LeastSquares(
        np.zeros(0), np.zeros(0), nothing, nothing.copy(), np.zeros(outputs), np.array([0, fixed, most]), record
    )


def clear(sums: LeastSquares, ridge: Ridge) -> None:
    """Forget all events and features."""
    sums.size[FEATURES] = 0
    sums.losses[:] = 0.0
    sums.record[:] = 0.0
    sums.record[RHO] = sums.record[FULL] = ridge.ridge


# ---------------------------------------------------------------------- learning


def class_targets(targets: np.ndarray, outputs: int) -> np.ndarray:
    """Return the targets of least squares, (outputs, events): 1 for the output of an event's class, -1 for the others."""
    if outputs == 1:
        return targets[np.newaxis]
    columns = np.full((outputs, len(targets)), -1.0)
    columns[targets.astype(np.intp), np.arange(len(targets))] = 1.0
    return columns


def scores_of(sums: LeastSquares, Z: np.ndarray) -> np.ndarray:
    """Return W z for the columns of Z, (outputs, events); features beyond the known ones have no weight yet."""
    n = min(sums.count, len(Z))
    return sums.weights[:, :n] @ Z[:n]


def learn(sums: LeastSquares, ridge: Ridge, Z: np.ndarray, targets: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Learn events; return the scores before each, (outputs, events).

    Z is (features, events), and may have more features than were known, which are then 0 for the events before they came;
    targets are (outputs, events).  Events of weight 0 are only scored.  Raises Diverged, if a score is too large, before the
    event is learned.
    """
    extend(sums, len(Z))
    one_by_one = len(weights) <= max(FEW, FEW_NUMBERS // sums.count) or sums.count <= NARROW
    learn_part = _learn_in_order if one_by_one else _learn_block
    period = ridge.period or (RENEW if one_by_one else sys.maxsize)
    most = BLOCK if sums.count >= BLOCK else SHORT
    if len(weights) < min(most, period - int(sums.record[EVENTS]) % period):  # the rest would take longer than one event
        return learn_part(sums, ridge, Z, targets, weights)
    scores = np.empty_like(targets)
    learned = np.cumsum(weights > 0.0)
    first = 0
    while first < len(weights):
        ahead = period - int(sums.record[EVENTS]) % period
        done = learned[first - 1] if first else 0
        end = int(np.searchsorted(learned, done + ahead)) + 1  # of the period
        last = min(end, first + most)
        part = slice(first, last)
        scores[:, part] = learn_part(sums, ridge, Z[:, part], targets[:, part], weights[part])
        if last == end <= len(weights):
            sums.record[RHO] = ridge.ridge
            renew(sums)
        first = last
    return scores


def _learn_in_order(sums: LeastSquares, ridge: Ridge, Z: np.ndarray, T: np.ndarray, s: np.ndarray) -> np.ndarray:
    scores = np.empty(T.shape)
    if not _learn_each(sums, ridge.keep, np.ascontiguousarray(Z.T), T, s, scores):
        raise Diverged
    return scores


@jit
def _learn_each(sums, keep, rows, targets, weights, scores):
    """Learn events one by one; whether all scores are within their limit."""
    n = rows.shape[1]
    left, gain = np.empty(n), np.empty(n)
    for e in range(weights.size):
        for o in range(scores.shape[0]):
            total = 0.0
            for i in range(n):
                total += sums.weights[o, i] * rows[e, i]
            scores[o, e] = total
            if weights[e] > 0.0 and not abs(total) <= SCORE:
                return False
        if weights[e] > 0.0:
            _learn_event(sums, keep, rows[e], targets[:, e], scores[:, e], weights[e], left, gain)
    return True


@inline
def _learn_event(sums, keep, z, targets, scores, weight, left, gain):
    """One step of recursive least squares.

    While z is solved for, row by row, the factor is updated with the same numbers: P. E. Gill, G. H. Golub, W. Murray,
    M. A. Saunders, Methods for Modifying Matrix Factorizations, 1974.  ``left`` is what the rows so far leave of z, ``gain``
    becomes A^-1 z / (noise + z'A^-1 z).
    """
    n = z.size
    R, S, record = sums.factor, sums.squares, sums.record
    noise = keep / max(weight, 1.0 / UNHEARD)
    spread, rest, root = 0.0, 1.0, math.sqrt(keep)
    for i in range(n):
        left[i] = z[i]
    for i in range(n):
        p, r, push = left[i], R[i * n + i], weight * z[i]
        share = rest * p / noise
        new = math.sqrt(r * r + share * p)
        step, stretch, add = p / r, root * new / r, root * share / new
        spread += step * step
        rest *= (r / new) ** 2
        gain[i] = add
        R[i * n + i] = root * new
        S[i * n + i] = keep * S[i * n + i] + push * z[i]
        for j in range(i + 1, n):
            left[j] -= step * R[i * n + j]
            R[i * n + j] = stretch * R[i * n + j] + add * left[j]
            S[i * n + j] = keep * S[i * n + j] + push * z[j]
    for i in range(n - 1, -1, -1):
        total = 0.0
        for j in range(i + 1, n):
            total += R[i * n + j] * gain[j]
        gain[i] = (gain[i] - total) / R[i * n + i]
    d = noise + spread
    for o in range(targets.size):
        error = targets[o] - scores[o]
        for i in range(n):
            sums.weights[o, i] += error * gain[i]
            sums.moments[o, i] = keep * sums.moments[o, i] + weight * targets[o] * z[i]
        sums.losses[o] = keep * (sums.losses[o] + error * error / d)
        record[LARGEST] = max(record[LARGEST], abs(targets[o]))
    record[RHO] *= keep
    record[COUNT] = keep * record[COUNT] + 1.0
    record[EVENTS] += 1.0
    record[REGRET] += weight * math.log(max(1.0, weight * d / keep))


def _learn_block(sums: LeastSquares, ridge: Ridge, Z: np.ndarray, T: np.ndarray, s: np.ndarray) -> np.ndarray:
    n = sums.count
    Z = np.ascontiguousarray(Z)
    heard = s > 0.0
    record, B = sums.record, sums.moments[:, :n]
    fade = 1.0
    stretch: np.ndarray = np.ones(len(s))
    if ridge.keep < 1.0:
        stretch = ridge.keep ** (-0.5 * np.cumsum(heard))
        fade = ridge.keep ** int(np.count_nonzero(heard))
        Z, T = Z * stretch, T * stretch
    C = _block_factor(sums, Z, np.minimum(1.0 / np.maximum(s, 1.0 / UNHEARD), UNHEARD))
    d = C.diagonal()
    a = blas.dtrsm(1.0, C, (T - sums.weights[:, :n] @ Z).T, lower=1).T
    scores = (T - a * d) / stretch
    if not (np.abs(scores) <= SCORE).all():
        raise Diverged
    Zs = Z if (s == 1.0).all() else Z * np.sqrt(s)
    blas.dsyrk(fade, Zs.T, beta=fade, trans=1, c=_matrix(sums.squares, n), lower=1, overwrite_c=1)
    B += (T * s) @ Z.T
    B *= fade
    sums.losses[:] = fade * (sums.losses + np.square(a).sum(axis=1))
    record[RHO] *= fade
    record[COUNT] = fade * (record[COUNT] + np.square(stretch[heard]).sum())
    record[EVENTS] += np.count_nonzero(heard)
    record[REGRET] += s[heard] @ np.log(np.maximum(1.0, s[heard] * np.square(d[heard])))
    record[LARGEST] = max(record[LARGEST], np.abs(T[:, heard] / stretch[heard]).max(initial=0.0))
    renew(sums)
    return scores


def _block_factor(sums: LeastSquares, Z: np.ndarray, noise: np.ndarray) -> np.ndarray:
    """Return the factor of Z'A^-1 Z + noise.

    No pivot can be below its noise, unless that is lost in rounding errors (rows of 1e20 that repeat): then it is lifted
    above them.
    """
    Y = _whitened(sums, Z)
    for lift in LIFTS:
        G = blas.dsyrk(1.0, Y, lower=1)
        diagonal = G.T.ravel()[:: len(G) + 1]
        diagonal += noise + lift * diagonal.sum()
        C, failed = lapack.dpotrf(G, lower=1, clean=0, overwrite_a=1)
        if not failed and (np.square(C.diagonal()) >= 0.5 * noise).all():
            return C
    raise Diverged


def extend(sums: LeastSquares, n: int) -> None:
    """Add features that have been 0 so far: only their ridge is known."""
    known = sums.count
    if n == known:
        return
    for flat in (sums.factor, sums.squares):
        before = flat[: known * known].reshape(known, known).copy()
        flat[: n * n] = 0.0
        flat[: n * n].reshape(n, n)[:known, :known] = before
    sums.factor[: n * n].reshape(n, n)[range(known, n), range(known, n)] = math.sqrt(sums.record[RHO])
    sums.weights[:, known:n] = 0.0
    sums.moments[:, known:n] = 0.0
    sums.size[FEATURES] = n


def _into(merging: Merging, state: Any, sums: LeastSquares, n: int) -> np.ndarray:
    """Return the matrix that maps the features of a model to those of the merged one: a projection on the merged points."""
    fixed, size = int(sums.size[FIXED]), sums.count - int(sums.size[FIXED])
    turn = np.zeros((n, sums.count))
    turn[:fixed, :fixed] = np.eye(fixed, min(fixed, sums.count))
    if n > fixed and size > 0:
        model = merging.model
        own = state.model.points[:size] + (state.model.centre - model.centre)
        cross = kernel_matrix(merging.kernel, model.points, model.norms, own, squared_norms(own)).astype(np.float64)
        solve(point_factor(merging.kernel, model).ravel(), cross)
        turned = np.ascontiguousarray(cross.T)
        solve(state.whitening.factor, turned)
        turn[fixed:, fixed:] = turned.T
    return turn


def _without_negative_part(S: np.ndarray) -> np.ndarray:
    """Return the nearest matrix without negative eigenvalues."""
    values, vectors = np.linalg.eigh(S)
    return (vectors * np.maximum(values, 0.0)) @ vectors.T


def turned(sums: LeastSquares, turn: np.ndarray) -> LeastSquares:
    """Return the sums of features ``turn @ z``; the factor is left for ``renew``."""
    n, room = len(turn), (len(sums.weights), len(turn))
    S = turn @ _symmetric(sums.squares, sums.count) @ turn.T
    weights, moments = (part[:, : sums.count] @ turn.T for part in (sums.weights, sums.moments))
    size = np.array([n, *sums.size[FIXED:]])
    return sums._replace(
        factor=np.zeros(n * n), squares=S.ravel(), weights=weights.reshape(room), moments=moments.reshape(room), size=size
    )


def rescaled(sums: LeastSquares, factors: np.ndarray) -> LeastSquares:
    """Return the sums of features that are each multiplied by a factor; the weights are of the same function."""
    n = sums.count
    squares = (_symmetric(sums.squares, n) * factors * factors[:, np.newaxis]).ravel()
    found = sums._replace(
        factor=np.zeros(n * n), squares=squares, weights=sums.weights / factors, moments=sums.moments * factors
    )
    renew(found)
    return found


def leverages(sums: LeastSquares, Z: np.ndarray) -> np.ndarray:
    """Return z'A^-1 z for the columns of Z: the uncertainty there, as a multiple of the noise."""
    return np.square(_whitened(sums, Z)).sum(axis=1)


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
    sums.weights[:, :n] = _solved(sums, sums.moments[:, :n])


def _matrix(flat: np.ndarray, n: int) -> np.ndarray:
    """Return a matrix as BLAS sees it: in Fortran order, of which the lower triangle counts."""
    return flat[: n * n].reshape(n, n).T


def _symmetric(flat: np.ndarray, n: int) -> np.ndarray:
    """Both triangles."""
    upper = np.triu(flat[: n * n].reshape(n, n))
    return upper + np.triu(upper, 1).T


def _solved(sums: LeastSquares, B: np.ndarray) -> np.ndarray:
    """Return A^-1 b for the rows b of B."""
    return lapack.dpotrs(_matrix(sums.factor, sums.count), B.T, lower=1)[0].T


def _whitened(sums: LeastSquares, Z: np.ndarray) -> np.ndarray:
    """Return L^-1 z for the columns of Z, (events, features)."""
    return blas.dtrsm(1.0, _matrix(sums.factor, sums.count), Z.T, side=1, lower=1, trans_a=1)
