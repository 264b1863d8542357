"""KRLS, kernel recursive least squares on stored points, in exact blocks.

Y. Engel, S. Mannor, R. Meir: The Kernel Recursive Least-Squares Algorithm.  IEEE Transactions on Signal Processing 52 (2004).

The model after event t is the ridge regression on all events so far,

    argmin_w  ridge |w|^2 + sum_i s_i (y_i - <w, [1, sqrt(gamma) x_i, z(x_i)]>)^2,

where z(x) = L^-1 k(x) are the kernel values against the stored points, whitened by the Cholesky factor L of the points' kernel
matrix.  An event is stored as a point while there is room and the fraction of k(x, x) that the points do not explain,
1 - |z(x)|^2 / k(x, x), is above ``novelty``: the paper's approximate linear dependence.  Classes are encoded as -1 and 1: one
output for two classes, one per class for more.

Departures from the paper, each with its reason:

- A ridge, without which the regression overfits; and a constant and the columns in addition to the kernel,
  for linear effects.  With gamma="scale", the columns times sqrt(gamma) have about the same norm as z.
- The number of points is bounded: after that, events are represented by the stored points.
- Events are learned in blocks (components/least_squares.py), which only affects speed.
- ``features``: random Fourier features, or nothing, in place of z(x).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ..components.least_squares import (
    BLOCK,
    FIXED,
    LARGEST,
    REGRET,
    RHO,
    LeastSquares,
    Ridge,
    class_targets,
    learn,
    leverages,
    new_least_squares,
    scores_of,
)
from ..components.whitened import Whitening, admit, coefficients, least_novelty, new_whitening, whiten
from ..core.blas import one_thread
from ..core.expansion import EVENTS, Expansion
from ..core.fourier import Linear, feature_table, new_linear
from ..core.kernels import ISOTROPIC, Kernel
from ..core.limits import SCORE, Diverged
from ..core.matrices import rows_between, squared_norms
from ..core.rows import Rows, as_rows, columns_between, row_count
from ..driver.events import WORK
from ..estimators.checking import canonical, checked
from ..estimators.constraints import POSITIVE, OneOf, Real, Whole
from ..estimators.examples import Example
from ..estimators.learner import Learner, Needs, Problem, decay_of, empty_expansion
from ..estimators.options import Forgets
from ..estimators.parameters import parameter
from ..estimators.ranges import Log
from ..estimators.tasks import OnlineClassifier, OnlineRegressor
from ..estimators.turns import predicting
from ..merging.rules import Merge, within_limit

WIDE = 512  # maximum number of columns that are used as features in addition to the points
SHORTEST = 16  # minimum number of events after which the ridge is restored if events are forgotten


class Params(NamedTuple):
    ridge: Ridge
    novelty: float  # the fraction of k(x, x) above which an event is new
    most: int  # maximum number of points
    unit: float  # factor of the columns as features


class State(NamedTuple):
    model: Expansion
    linear: Linear  # on the columns
    waves: Linear  # on a constant, which has frequency 0, and on random Fourier features
    whitening: Whitening
    squares: LeastSquares


class Seen(NamedTuple):
    """A block of events and its features."""

    Z: np.ndarray  # (features, events): 1, waves, columns, whitened kernel values, and room for points to come
    X: np.ndarray  # rows minus the centre, if there can be points
    norms: np.ndarray
    new: np.ndarray  # k(x, x) - |z(x)|^2


def blocks(setup, params: Params, state: State, events, uniforms, before, first: int, last: int) -> int:
    """Learn events in blocks; return how far it got before the arrays were full or time was up."""
    last = min(last, first + BLOCK * max(1, WORK // (8 * BLOCK * max(1, state.squares.count**2))))
    start = first
    while start < last:
        stop = min(start + min(BLOCK, setup.block_size), last)
        if min(params.most, state.model.stored + stop - start) > len(state.model.points):
            break
        scores = step(params, state, setup.kernel, events, start, stop)
        if len(before):
            before[start:stop] = scores.T
        start = stop
    write_coefficients(params, state)
    return start


def step(params: Params, state: State, kernel: Kernel, events, start: int, stop: int) -> np.ndarray:
    """Learn the events of a block; return the scores before learning each, (outputs, events)."""
    weights = events.weights[start:stop]
    Z, X, norms, new = look(params, state, kernel, events.rows, start, stop, room=stop - start)
    fixed = int(state.squares.size[FIXED])
    n = fixed + state.model.stored
    if not (np.abs(scores_of(state.squares, Z[:n])) <= SCORE).all():
        raise Diverged
    if params.most:
        n = fixed + admit(state.whitening, kernel, state.model, X, norms, weights, new, params.novelty, Z[fixed:])
    targets = class_targets(events.targets[start:stop], state.model.coef.shape[1])
    scores = learn(state.squares, params.ridge, Z[:n], targets, weights)
    state.model.clock[EVENTS] += np.count_nonzero(weights)
    return scores


def look(params: Params, state: State, kernel: Kernel, rows: Rows, start: int, stop: int, room: int = 0) -> Seen:
    """Return the features of rows, with room for this many new points."""
    model, waves, b = state.model, state.waves, stop - start
    fixed = int(state.squares.size[FIXED])
    Z = np.empty((fixed + min(params.most, model.stored + room), b))
    Z[0] = 1.0
    L = len(waves.phase)
    if L > 1:
        turns = feature_table(waves, rows, start, b) * math.sqrt(L / (L - 1))
        Z[1:L], Z[L : 2 * L - 1] = turns[1:L], turns[L + 1 :]
    if fixed >= 2 * L:
        columns_between(rows, start, Z[2 * L - 1 : fixed])
        Z[2 * L - 1 : fixed] *= params.unit
    if not params.most:
        return Seen(Z, np.empty((0, 0)), np.empty(0), np.zeros(b))
    X = np.empty((b, len(model.centre)), model.points.dtype)
    rows_between(rows, start, model.centre, X)
    norms = squared_norms(X)
    return Seen(Z, X, norms, whiten(state.whitening, kernel, model, X, norms, Z[fixed:]))


def write_coefficients(params: Params, state: State) -> None:
    """Write the solution of the least squares problem into the model that predicts."""
    model, linear, waves, whitening, squares = state
    W, fixed, L = squares.weights[:, : squares.count], int(squares.size[FIXED]), len(waves.phase)
    if not W.size:
        return
    waves.coef[0, :, 0] = W[:, 0] * math.sqrt(L)
    if L > 1:
        waves.coef[0, :, 1:L] = W[:, 1:L] * math.sqrt(L / (L - 1))
        waves.coef[0, :, L + 1 :] = W[:, L : 2 * L - 1] * math.sqrt(L / (L - 1))
    if fixed >= 2 * L:
        linear.coef[0] = W[:, 2 * L - 1 : fixed] * params.unit
    model.coef[0, :, : model.stored] = coefficients(whitening.factor, W[:, fixed:])


def configure(problem: Problem) -> tuple[Params, Needs]:
    o = problem.options
    if o["features"] == "fourier" and o["kernel"] not in ISOTROPIC:
        raise ValueError(f"random Fourier features need a kernel of the distance, not {o['kernel']!r}; use kernel='rbf'")
    decay = decay_of(problem)
    period = 0 if decay == 1.0 else max(SHORTEST, math.ceil(o["forget"]))
    most = o["points"] if o["features"] == "points" else 0
    params = Params(
        ridge=Ridge(o["ridge"], decay, period),
        novelty=least_novelty(o["novelty"], problem.dtype),
        most=most,
        unit=1.0 if o["features"] == "linear" else math.sqrt(o["gamma"]),
    )
    return params, Needs(room=1)


def start(params: Params, needs: Needs, problem: Problem, rng: np.random.Generator) -> State:
    o, d = problem.options, problem.d
    linear = new_linear(problem, "linear", d, rng)
    waves = with_constant(new_linear(problem, "fourier", o["points"], rng) if o["features"] == "fourier" else linear)
    columns = d if d <= WIDE or o["features"] == "linear" else 0
    squares = new_least_squares(params.ridge, waves.coef.shape[2] - 1 + columns, params.most, problem.outputs)
    return State(empty_expansion(needs, problem), linear, waves, new_whitening(params.most), squares)


def with_constant(linear: Linear) -> Linear:
    """Return an empty model on the same frequencies, preceded by frequency 0."""
    frequencies = np.vstack([np.zeros_like(linear.centre), linear.frequencies])
    coef = np.zeros((1, linear.coef.shape[1], 2 * len(frequencies)))
    return Linear(frequencies, np.zeros(len(frequencies)), linear.centre.copy(), coef, linear.clock.copy(), linear.votes)


def bound(params: Params, t: int) -> float:
    """Return the maximum number of points."""
    return min(t, params.most)


def certificate(params: Params, state: State, problem: Problem) -> dict[str, float]:
    """Return ``least_loss``, the minimum regularised loss of any w on the events so far, and ``regret_bound``.

    With predictions clipped to the largest target Y, the sum of the weighted squared errors before learning is at most
    ``least_loss + regret_bound``, where the second is 4 Y^2 log det(I + S / ridge) for each output (weights of 1): Theorem 4 of
    V. Vovk, Competitive On-line Statistics, 2001, in the form of F. Zhdanov and Y. Kalnishkan, An Identity for Kernel Ridge
    Regression, 2013.  Neither holds with forgetting.
    """
    found: dict[str, float] = {"points": state.model.stored, "points_bound": params.most}
    if params.ridge.keep < 1.0:
        return found
    squares = state.squares
    regret = 4.0 * squares.record[LARGEST] ** 2 * squares.record[REGRET] * len(squares.losses)
    return {**found, "least_loss": float(squares.losses.sum()), "regret_bound": float(regret)}


LEARNER = Learner(
    __name__,
    one_thread(blocks),
    configure,
    start,
    bound,
    certificate,
    meanings={
        "least_loss": "The least regularised sum of squares that any weights have on all events so far.",
        "regret_bound": "Vovk 2001, Theorem 4: squared errors before learning, of predictions clipped to the largest target, "
        "sum to at most least_loss plus this; absent with forget.",
    },
    merge=Merge(points=within_limit, settle=write_coefficients),
)


class _KRLS(Forgets):
    """Parameters shared by all tasks."""

    learner = LEARNER
    features: str = parameter(
        default="points",
        allowed=OneOf(("points", "fourier", "linear")),
        doc="Besides a constant and the columns (up to 512): kernel values against stored points, random Fourier features, "
        "or nothing.",
    )
    points: int = parameter(
        default=512,
        allowed=Whole(1),
        doc="Maximum number of stored points, or number of Fourier features. Time and memory grow with its square.",
    )
    ridge: float = parameter(default=0.1, allowed=POSITIVE, search=Log(0.001, 10.0), doc="Weight of the squared norm.")
    novelty: float = parameter(
        default=0.02,
        allowed=Real(0.0, 1.0),
        search=Log(0.001, 0.3),
        doc="An event is stored, while there is room, if the stored points leave more than this fraction of it unexplained.",
    )
    block_size: int = parameter(default=BLOCK)
    forget: float | None = parameter(
        default=None,
        doc="Half-life in events, for streams that drift: after this many events, the weight of an event is halved.",
    )


class KRLSClassifier(_KRLS, OnlineClassifier):
    """Kernel recursive least squares classification: the ridge regression of -1 and 1 on all events so far, in fixed memory.

    By default it stores at most 512 points.
    """

    example = Example("1.00")

    def _widen(self, place, change):
        super()._widen(place, change)
        write_coefficients(self._params, self._state)


class KRLSRegressor(_KRLS, OnlineRegressor):
    """Kernel recursive least squares: the ridge regression on all events so far, in fixed memory, with standard deviations.

    By default it stores at most 512 points.
    """

    example = Example("1.00", gamma=1.0)

    @predicting
    def predict(self, X, return_std=False):
        """Predict the value of each row; with ``return_std``, return a pair of arrays, values and standard deviations.

        The standard deviations are those of a new target: the noise, estimated from the errors so far, and the model's
        uncertainty.
        """
        values = super().predict(X)
        return (values, self.target_spread_ * self._deviations(X)) if return_std else values

    @one_thread
    def _deviations(self, X) -> np.ndarray:
        rows = as_rows(canonical(checked(self, X, largest=self._largest, dtype=self._problem.dtype, reset=False)))
        n, squares = row_count(rows), self._state.squares
        spread = np.full(n, np.inf)
        for start in range(0, n if squares.count else 0, BLOCK):
            part = slice(start, min(start + BLOCK, n))
            seen = look(self._params, self._state, self._problem.kernel, rows, part.start, part.stop)
            unseen = np.maximum(0.0, seen.new) / squares.record[RHO]
            spread[part] = 1.0 + leverages(squares, seen.Z) + unseen
        return np.sqrt(squares.noise * spread)
