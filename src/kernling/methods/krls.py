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
- Events wait until a block of them is folded into the sums (components/least_squares.py), which only affects speed.
- ``features``: random Fourier features, or nothing, in place of z(x).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ..compiler import by_address, inner_exact, jit_exact, shaped
from ..components import least_squares
from ..components.least_squares import (
    BLOCK,
    FEATURES,
    FIXED,
    LARGEST,
    LeastSquares,
    Ridge,
    class_targets,
    learn,
    new_least_squares,
    until_due,
)
from ..components.pending import REGRET, WAITING, commit, write_leverages, write_weights_of
from ..components.whitened import Whitening, admit, least_novelty, new_whitening, whiten
from ..core import state as states
from ..core.blas import one_thread
from ..core.expansion import EVENTS, Expansion
from ..core.fourier import Features, Linear, new_linear, open_features
from ..core.kernels import ISOTROPIC
from ..core.rows import Rows, as_rows, row_count, row_of
from ..core.setup import Setup
from ..core.triangles import solve_back
from ..driver.settled import SettledLoop, record
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

    @property
    def fits(self) -> bool:
        """Whether there is memory for events that wait; a model from a file has no spare room."""
        return not self.squares.waits or len(self.squares.pending.weights) == BLOCK

    def fitted(self) -> State:
        """Return the same with memory for events that wait."""
        return states.grown(self, len(self.model.points))


class Work:
    """What a compiled call needs besides the events: the state, and memory for a block of rows."""

    def __init__(self, setup: Setup, params: Params, state: State, rows: Rows, size: int):
        d, outputs, n = len(state.model.centre), state.model.outputs, int(state.squares.size[FIXED]) + params.most
        self.kernel, self.params, self.state = setup.kernel, params, state
        self.turns = Features(state.waves, rows, 1)  # one row at a time, since products of several round differently
        self.Z = np.empty(n * size)  # (features, events): 1, waves, columns, whitened kernel values
        self.X, self.norms = np.empty(size * d), np.empty(size)  # rows minus the centre, in the precision of points
        self.new = np.empty(size)  # k(x, x) - |z(x)|^2
        self.T, self.scores = np.empty((2, outputs * size))
        self.w = np.empty(n)
        self.fits = state.fits
        self.due = np.zeros(1, np.int64)  # whether there is something to settle


def _loop(call, first, last):
    """Learn blocks of events until something is due, or there is no room; return where it stopped, or -1 if it diverges."""
    work, events, start = call.block, call.events, first
    model, squares, outputs, learned = call.state.model, call.state.squares, call.state.model.places.size, 0
    while start < last and work.due[0] == 0 and work.fits:
        ahead = until_due(squares)
        b, new = cut(events.weights, start, min(last, start + work.norms.size), ahead)
        if min(work.params.most, model.size[0] + b) > model.points.shape[0]:
            break
        T, scores, weights = shaped(work.T, (outputs, b)), shaped(work.scores, (outputs, b)), events.weights[start : start + b]
        class_targets(events.targets[start : start + b], T)
        if not learn_block(work, events.rows, start, b, T, weights, scores):
            return -1
        model.clock[EVENTS] += new
        learned += new
        record(scores, events.before, start)
        work.due[0] = 1 if new == ahead else 0
        start += b
    if learned > 0:
        _write_coefficients(work.state, work.params.unit, 0, outputs, work.w)
    return start


@inner_exact
def cut(weights, start, last, ahead):
    """Return how many events there are until so many are learned, and how many are."""
    b = learned = 0
    while start + b < last and learned < ahead:
        learned += 1 if weights[start + b] > 0.0 else 0
        b += 1
    return b, learned


@inner_exact
def learn_block(work, rows, start, b, T, weights, scores):
    """Learn the events of a block, and write the scores before each, (outputs, events); return False if it diverges."""
    params, model, whitening, squares = work.params, work.state.model, work.state.whitening, work.state.squares
    known, features, fixed = model.size[0], squares.size[FEATURES], squares.size[FIXED]
    n = min(params.most, known + b)
    Z, X = shaped(work.Z, (fixed + n, b)), shaped(work.X, (b, model.centre.size))
    _write_features(work, rows, start, Z, X)
    if params.most > 0:
        norms, new, others = work.norms[:b], work.new[:b], Z[fixed:]
        whiten(whitening, work.kernel, model, X, norms, others, new)
        n = admit(whitening, work.kernel, model, X, norms, weights, new, params.novelty, others)
    waiting = learn(squares, Z[: fixed + n], T, weights, scores)
    if waiting < 0:
        model.size[0], squares.size[FEATURES] = known, features
        return False
    commit(squares, waiting)
    return True


@inner_exact
def _write_features(work, rows, start, Z, X):
    """Write the features of rows that are always there, and the rows minus the centre."""
    state = work.state
    number = state.model.points.dtype.type
    L, fixed, b, d = state.waves.phase.size, state.squares.size[FIXED], Z.shape[1], X.shape[1]
    root = math.sqrt(L / (L - 1.0)) if L > 1 else 1.0
    for j in range(b):
        Z[0, j] = 1.0
        if L > 1:
            open_features(state.waves, work.turns, start + j, 1)
            z = work.turns.Z[0]
            for i in range(1, L):
                Z[i, j], Z[L - 1 + i, j] = root * z[i], root * z[L + i]
        if fixed >= 2 * L or work.params.most > 0:
            row_of(rows, start + j, X[j])
        if fixed >= 2 * L:
            for c in range(d):
                Z[2 * L - 1 + c, j] = work.params.unit * X[j, c]
        total = 0.0
        for c in range(d):
            X[j, c] = np.float64(number(X[j, c] - state.model.centre[c]))
            total += X[j, c] * X[j, c]
        work.norms[j] = np.float64(number(total))


@jit_exact
def _write_coefficients(state, unit, first, last, w):
    """Write the solution of the least squares problem for some outputs into the model that predicts, by way of w."""
    L, fixed, n, d = state.waves.phase.size, state.squares.size[FIXED], state.model.size[0], state.model.centre.size
    root = math.sqrt(L / (L - 1.0)) if L > 1 else 1.0
    left, turned = np.empty(state.squares.size[WAITING]), np.empty(state.squares.size[FEATURES])
    for o in range(first, last):
        waves, linear = state.waves.coef[0, state.waves.places[o]], state.linear.coef[0, state.linear.places[o]]
        coef = state.model.coef[0, state.model.places[o]]
        write_weights_of(state.squares, o, left, turned, w)
        waves[0] = w[0] * math.sqrt(1.0 * L)
        for i in range(1, L):
            waves[i], waves[L + i] = w[i] * root, w[L - 1 + i] * root
        if fixed >= 2 * L:
            for c in range(d):
                linear[c] = w[2 * L - 1 + c] * unit
        for k in range(n):
            coef[k] = w[fixed + k]
        solve_back(state.whitening.factor, coef, n)


def settle(setup: Setup, params: Params, state: State) -> None:
    """Fold events into the sums where it is time; a ridge that comes back changes the solution."""
    least_squares.settle(state.squares)
    write_coefficients(params, state)


def write_coefficients(params: Params, state: State, outputs: slice = slice(None)) -> None:
    """Write the solution of the least squares problem, or some outputs of it, into the model that predicts."""
    first, last, _ = outputs.indices(state.model.outputs)
    _write_coefficients(by_address(state), params.unit, first, last, np.empty(int(state.squares.size[FIXED]) + params.most))


@jit_exact
def _write_spread(work, rows, start, rho, out):
    """Write the variance of rows from ``start`` on, as a multiple of the noise."""
    b, d, state = out.size, work.state.model.centre.size, work.state
    fixed, n = state.squares.size[FIXED], state.model.size[0]
    Z, X, norms, new = shaped(work.Z, (fixed + n, b)), shaped(work.X, (b, d)), work.norms[:b], work.new[:b]
    _write_features(work, rows, start, Z, X)
    whiten(state.whitening, work.kernel, state.model, X, norms, Z[fixed:], new)
    write_leverages(state.squares, Z, out)
    for j in range(b):
        out[j] += 1.0 + (max(0.0, new[j]) / rho if work.params.most > 0 else 0.0)


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
    coef, phase = np.zeros((1, linear.outputs, 2 * len(frequencies))), np.zeros(len(frequencies))
    return Linear(frequencies, phase, linear.centre.copy(), coef, linear.places, linear.clock.copy(), linear.votes)


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
    losses = squares.losses[squares.places]
    regret = 4.0 * squares.record[LARGEST] ** 2 * squares.record[REGRET] * len(losses)
    return {**found, "least_loss": float(losses.sum()), "regret_bound": float(regret)}


LEARNER = Learner(
    __name__,
    SettledLoop(_loop, Work, settle, lambda state: until_due(state.squares), {None: {"learn_block": learn_block}}),
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
        doc="Added to a constant and the columns (up to 512): kernel values against stored points, random Fourier features, "
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
        is_one_of_many = len(self.classes_) > 3  # whose coefficients no others depend on
        write_coefficients(self._params, self._state, slice(place, place + 1) if is_one_of_many else slice(None))


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
        work = Work(self._setup, self._params, self._state, rows, BLOCK)
        for start in range(0, n if squares.count else 0, BLOCK):
            _write_spread(by_address(work), by_address(rows), start, squares.rho, spread[start : start + BLOCK])
        return np.sqrt(squares.noise * spread)
