"""Recursive least squares in exact blocks: ridge regression on features, one pass over the events, as if one by one.

With A = rho I + S, where S is the sum of s z z' over the events (features z, weight s, targets t), the weights are W = P B with
P = A^-1 and B the sum of s t z.  For a block of events Z, with U = P Z' and the factor C of G = Z U plus the noise 1 / s on the
diagonal,

    a = C^-1 (T - Z W),  V = C^-1 U',  W <- W + V' a,  P <- P - V' V,

and T - a diag(C) are the scores just before each event was learned: the factorisation goes through the block in order.

Forgetting by beta an event, A <- beta A + s z z', is the same on rows that are multiplied by beta^(-i/2), i = 1, 2, ... in the
block.  It forgets the ridge as well: rho is what is left of it, until it is restored from the sum S at fixed counts of events.

Features may join at any time, as if they had been 0 before.  Matrices are flat arrays without gaps, of which BLAS sees one
triangle.  S is stored for what the inverse alone cannot do: restoring the ridge, merging with other models, and correcting P,
which is compared with it periodically and recomputed once rounding errors have accumulated.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.linalg import blas, lapack

from ..core.expansion import check_room, padded
from ..core.jit import jit
from ..core.limits import SCORE, Diverged
from ..core.minibatch import kernel_matrix, squared_norms
from ..core.state import Widening, added
from .whitened import point_factor, solve

if TYPE_CHECKING:
    from ..merging.rules import Merging

PROBE = 64  # blocks between checks of the inverse; more frequent at first, when most digits are lost
DRIFT = 1e-9  # of P A from the identity, above which P is recomputed
UNHEARD = 1e200  # noise of an event that is only scored
LIFTS = (0.0, 1e-14, 1e-12, 1e-9, 1e-6, 1e-3)  # of the diagonal, tried in turn until a matrix has a factor
FEATURES, FIXED, MOST = range(3)  # what size holds: features now, those that are always there, and how many others can join
RHO, EVENTS, COUNT, REGRET, LARGEST, BLOCKS, FLOOR, WORST, RENEWED, FULL = range(10)  # what record holds; FULL is the ridge
RECORDS = 10


class Ridge(NamedTuple):
    """Regularisation of least squares."""

    ridge: float
    keep: float  # factor by which the weight of earlier events shrinks per event
    period: int  # events after which a forgotten ridge is restored; 0 without forgetting


class LeastSquares(NamedTuple):
    inverse: np.ndarray  # P, its lower triangle row by row in the first features^2 numbers
    squares: np.ndarray  # S, likewise
    weights: np.ndarray  # W, (outputs, capacity)
    moments: np.ndarray  # B, (outputs, capacity)
    losses: np.ndarray  # (outputs,) the least regularised squared loss of all events so far: the sum of a^2
    size: np.ndarray  # see FEATURES and the rest above
    record: np.ndarray  # see RHO and the rest above

    @property
    def count(self) -> int:  # type: ignore[override]  # hides the method of tuples
        """Number of features in use."""
        return int(self.size[FEATURES])

    @property
    def noise(self) -> float:
        """Return the mean of e^2 / (1/s + z'Pz) over all events and outputs, e the error before learning."""
        return float(self.losses.mean() / self.record[COUNT]) if self.record[COUNT] > 0.0 else math.inf

    def grown(self, capacity: int) -> LeastSquares:
        """Return a copy with room for this many features besides the fixed ones."""
        n = int(self.size[FIXED]) + min(capacity, int(self.size[MOST]))
        if n <= self.weights.shape[1]:
            return self
        check_room(n, n, "features")
        return self._replace(
            inverse=padded(self.inverse, 0, n * n),
            squares=padded(self.squares, 0, n * n),
            weights=padded(self.weights, 1, n),
            moments=padded(self.moments, 1, n),
        )

    def trimmed(self, size: int) -> LeastSquares:
        """Return a copy without spare room."""
        n = self.count
        return self._replace(
            inverse=self.inverse[: n * n].copy(),
            squares=self.squares[: n * n].copy(),
            weights=self.weights[:, :n].copy(),
            moments=self.moments[:, :n].copy(),
        )

    def widened(self, change: Widening) -> LeastSquares:
        """Add a column of targets that were all -1 so far: exactly as if it had existed from the start.

        The one column of two classes, -1 for the first and 1 for the second, becomes one for each.
        """
        n = self.count
        sums = _symmetric(self.squares, n)
        q = sums[:1].T.ravel() if n else np.zeros(0)  # the sum of s z, since the first feature is 1
        new = np.zeros(self.weights.shape[1])
        new[:n] = -_times(_matrix(self.inverse, n), q[:, np.newaxis])[:, 0]
        of_all = np.zeros_like(new)
        of_all[:n] = -q
        lost = float(q[0] + new[:n] @ q) if n else 0.0
        columns = list(zip(change.old.tolist(), np.sign(change.factors).tolist(), strict=True))
        return self._replace(
            weights=np.array([sign * self.weights[o] if sign else new for o, sign in columns]),
            moments=np.array([sign * self.moments[o] if sign else of_all for o, sign in columns]),
            losses=np.array([self.losses[o] if sign else lost for o, sign in columns]),
        )

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
        record[FLOOR] = 0.0
        size = np.array([n, *self.size[FIXED:]])
        sums = LeastSquares(np.zeros(n * n), S.ravel(), W, B, losses, size, record)
        same = merging.model.stored == merging.a.model.stored == merging.b.model.stored and (merging.places >= 0).all()
        if self.size[MOST] and not same:
            W[:, self.size[FIXED] :] = merging.model.coef[0] @ point_factor(merging.kernel, merging.model)
            B[:] = W @ S + record[RHO] * W
        renew(sums)
        return sums

    def check(self, size: int, d: int, outputs: int) -> None:
        """Raise unless all shapes agree."""
        n, fixed, most = self.size.tolist() if self.size.shape == (3,) else (-1, 0, 0)
        joined = min(size, most)
        fits = (
            (n == fixed + joined or n == joined == 0)
            and fixed >= 0
            and self.inverse.shape == self.squares.shape == (n * n,)
            and self.weights.shape == self.moments.shape == (outputs, n)
            and self.losses.shape == (outputs,)
            and self.record.shape == (RECORDS,)
            and (self.record[[RHO, FULL]] > 0.0).all()
        )
        if not fits:
            raise ValueError("the sums of least squares do not match the model")


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
    targets are (outputs, events).  Events of weight 0 are only scored.  Raises Diverged before anything has changed, unless
    the events end more than one period.
    """
    extend(sums, len(Z))
    if len(weights) == 1:
        return _learn_event(sums, ridge, Z, targets, float(weights[0]))
    if ridge.period == 0:
        return _learn_block(sums, ridge, Z, targets, weights)
    scores = np.empty_like(targets)
    first = 0
    learned = np.cumsum(weights > 0.0)
    while first < len(weights):
        ahead = ridge.period - int(sums.record[EVENTS]) % ridge.period
        done = learned[first - 1] if first else 0
        last = int(np.searchsorted(learned, done + ahead)) + 1
        part = slice(first, last)
        scores[:, part] = _learn_block(sums, ridge, np.ascontiguousarray(Z[:, part]), targets[:, part], weights[part])
        if last <= len(weights):
            sums.record[RHO] = ridge.ridge
            renew(sums)
        first = last
    return scores


def _learn_event(sums: LeastSquares, ridge: Ridge, Z: np.ndarray, targets: np.ndarray, weight: float) -> np.ndarray:
    """Do the same for one event, without the matrices of a block."""
    scores = scores_of(sums, Z)
    if weight == 0.0:
        return scores
    if not (np.abs(scores) <= SCORE).all():
        raise Diverged
    if not _learn_single(sums, ridge.keep, Z[:, 0].copy(), targets[:, 0], scores[:, 0], weight):
        return _learn_block(sums, ridge, Z, targets, np.array([weight]))  # rounding has spoilt P
    _look_after(sums)
    if ridge.period and sums.record[EVENTS] % ridge.period == 0:
        sums.record[RHO] = ridge.ridge
        renew(sums)
    return scores


@jit
def _learn_single(sums, keep, z, targets, scores, weight):
    """One step of recursive least squares on triangles that lie row by row; whether P was fit for it."""
    n = z.size
    P, S, record = sums.inverse, sums.squares, sums.record
    u = np.zeros(n)
    for i in range(n):
        row = P[i * n : i * n + i]
        total = 0.0
        for j in range(i):
            total += row[j] * z[j]
            u[j] += row[j] * z[i]
        u[i] += total + P[i * n + i] * z[i]
    spread = 0.0
    for i in range(n):
        spread += u[i] * z[i]
    noise = keep / max(weight, 1.0 / UNHEARD)
    d = noise + spread
    if not d >= 0.5 * noise:
        return False
    for i in range(n):
        pull, push = u[i] / d, weight * z[i]
        for j in range(i + 1):
            P[i * n + j] = (P[i * n + j] - pull * u[j]) / keep
            S[i * n + j] = keep * S[i * n + j] + push * z[j]
    for o in range(targets.size):
        error = targets[o] - scores[o]
        for i in range(n):
            sums.weights[o, i] += error / d * u[i]
            sums.moments[o, i] = keep * sums.moments[o, i] + weight * targets[o] * z[i]
        sums.losses[o] = keep * (sums.losses[o] + error * error / d)
        record[LARGEST] = max(record[LARGEST], abs(targets[o]))
    record[RHO] *= keep
    record[COUNT] = keep * record[COUNT] + 1.0
    record[EVENTS] += 1.0
    record[REGRET] += weight * math.log(max(1.0, weight * d / keep))
    return True


def _look_after(sums: LeastSquares) -> None:
    """Count a block, and look at the inverse now and then."""
    blocks = sums.record[BLOCKS] = sums.record[BLOCKS] + 1.0
    if blocks % PROBE == 0 or (blocks < PROBE and math.log2(blocks).is_integer()):
        mind_drift(sums)


def _learn_block(sums: LeastSquares, ridge: Ridge, Z: np.ndarray, T: np.ndarray, s: np.ndarray) -> np.ndarray:
    n = sums.count
    heard = s > 0.0
    record, W, B = sums.record, sums.weights[:, :n], sums.moments[:, :n]
    P, S = _matrix(sums.inverse, n), _matrix(sums.squares, n)
    fade = 1.0
    stretch: np.ndarray = np.ones(len(s))
    if ridge.keep < 1.0:
        stretch = ridge.keep ** (-0.5 * np.cumsum(heard))
        fade = ridge.keep ** int(np.count_nonzero(heard))
        Z, T = Z * stretch, T * stretch
    noise = np.minimum(1.0 / np.maximum(s, 1.0 / UNHEARD), UNHEARD)
    C, U = _factorised(sums, Z, noise)
    d = C.diagonal()
    a = blas.dtrsm(1.0, C, (T - W @ Z).T, lower=1).T
    scores = (T - a * d) / stretch
    if not (np.abs(scores) <= SCORE).all():
        raise Diverged
    V = blas.dtrsm(1.0, C, U, lower=1, overwrite_b=1)
    _add_squares(P, V, -1.0 / fade, 1.0 / fade)
    W += a @ V
    Zs = Z if (s == 1.0).all() else Z * np.sqrt(s)
    _add_squares(S, Zs.T, fade, fade)
    B += (T * s) @ Z.T
    B *= fade
    sums.losses[:] = fade * (sums.losses + np.square(a).sum(axis=1))
    record[RHO] *= fade
    record[COUNT] = fade * (record[COUNT] + np.square(stretch[heard]).sum())
    record[EVENTS] += np.count_nonzero(heard)
    record[REGRET] += s[heard] @ np.log(np.maximum(1.0, s[heard] * np.square(d[heard])))
    record[LARGEST] = max(record[LARGEST], np.abs(T[:, heard] / stretch[heard]).max(initial=0.0))
    _look_after(sums)
    return scores


def _factorised(sums: LeastSquares, Z: np.ndarray, noise: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the factor of G + noise, and U', (events, features).

    No pivot can be below its noise, unless rounding errors have spoiled P; then P is recomputed.  If even that does not help
    (rows of 1e20 that repeat), the noise is lifted above the rounding errors of G.
    """
    P = _matrix(sums.inverse, sums.count)
    for attempt, lift in enumerate(LIFTS):
        if attempt < 2:
            U = _times(P, Z)
            G = Z.T @ U
        M = G.copy()
        M.ravel()[:: len(M) + 1] += noise + lift * np.trace(G)
        C, failed = lapack.dpotrf(M, lower=1)
        if not failed and (np.square(C.diagonal()) >= 0.5 * noise).all():
            return C, U.T
        if attempt == 0:
            renew(sums)
    raise Diverged


def extend(sums: LeastSquares, n: int) -> None:
    """Add features that have been 0 so far: only their ridge is known."""
    known = sums.count
    if n == known:
        return
    for flat in (sums.inverse, sums.squares):
        before = flat[: known * known].reshape(known, known).copy()
        flat[: n * n] = 0.0
        flat[: n * n].reshape(n, n)[:known, :known] = before
    sums.inverse[: n * n].reshape(n, n)[range(known, n), range(known, n)] = 1.0 / sums.record[RHO]
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


def turned(sums: LeastSquares, turn: np.ndarray) -> LeastSquares:
    """Return the sums of features ``turn @ z``; P is left for ``renew``."""
    n, room = len(turn), (len(sums.weights), len(turn))
    S = turn @ _symmetric(sums.squares, sums.count) @ turn.T
    weights, moments = (part[:, : sums.count] @ turn.T for part in (sums.weights, sums.moments))
    size = np.array([n, *sums.size[FIXED:]])
    return sums._replace(
        inverse=np.zeros(n * n), squares=S.ravel(), weights=weights.reshape(room), moments=moments.reshape(room), size=size
    )


def leverages(sums: LeastSquares, Z: np.ndarray) -> np.ndarray:
    """Return z'Pz for the columns of Z: the uncertainty there, as a multiple of the noise."""
    n = sums.count
    return np.maximum(0.0, np.einsum("ij,ij->j", Z, _times(_matrix(sums.inverse, n), Z)))


# ---------------------------------------------------------------------- numerics


def mind_drift(sums: LeastSquares) -> None:
    """Compare P with the sum and recompute it if it has drifted, unless that would not improve it."""
    record = sums.record
    drift = probe(sums)
    record[WORST] = max(record[WORST], drift)
    if not drift <= max(DRIFT, 4.0 * record[FLOOR]):
        renew(sums)
        record[FLOOR] = probe(sums)
        record[RENEWED] += 1


def probe(sums: LeastSquares) -> float:
    """Return how far P A is from the identity, applied to a vector of signs."""
    n = sums.count
    signs = np.where(np.arange(n) * 2654435761 % 2**32 < 2**31, 1.0, -1.0)[:, np.newaxis]
    there = _times(_matrix(sums.squares, n), signs) + sums.record[RHO] * signs
    return float(np.abs(_times(_matrix(sums.inverse, n), there) - signs).max(initial=0.0))


def renew(sums: LeastSquares) -> None:
    """Compute P and W from the sums."""
    n = sums.count
    if not n:
        return
    S = _matrix(sums.squares, n)
    for lift in LIFTS:
        A = S.copy(order="F")
        A[np.diag_indices(n)] += sums.record[RHO] + lift * A.diagonal()
        factor, failed = lapack.dpotrf(A, overwrite_a=1)
        if not failed:
            break
    else:
        raise Diverged
    sums.weights[:, :n] = lapack.dpotrs(factor, sums.moments[:, :n].T)[0].T
    _matrix(sums.inverse, n)[:] = lapack.dpotri(factor, overwrite_c=1)[0]


def _matrix(flat: np.ndarray, n: int) -> np.ndarray:
    """Return a matrix as BLAS sees it: in Fortran order, of which the upper triangle counts."""
    return flat[: n * n].reshape(n, n).T


def _symmetric(flat: np.ndarray, n: int) -> np.ndarray:
    """Both triangles."""
    lower = np.tril(flat[: n * n].reshape(n, n))
    return lower + np.tril(lower, -1).T


def _times(matrix: np.ndarray, Z: np.ndarray) -> np.ndarray:
    """Return a symmetric matrix times Z, (features, events)."""
    if Z.shape[1] == 1:
        return blas.dsymv(1.0, matrix, Z[:, 0])[:, np.newaxis]
    return blas.dsymm(1.0, matrix, Z.T, side=1).T


def _add_squares(matrix: np.ndarray, rows: np.ndarray, factor: float, keep: float) -> None:
    """matrix <- keep * matrix + factor * rows' rows."""
    if len(rows) == 1 and keep == 1.0:
        blas.dsyr(factor, rows[0], a=matrix, overwrite_a=1)
    else:
        blas.dsyrk(factor, rows, beta=keep, trans=1, c=matrix, overwrite_c=1)
