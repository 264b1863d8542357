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
- ``restart``: when errors rise, another model learns beside this one from then on, and takes its place once it is better
  (components/succession.py).  From then on, "all events so far" are those since it began.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ..compiler import shaped
from ..components import restarting
from ..components.least_squares import BLOCK, LARGEST, LeastSquares, Ridge, class_targets, new_least_squares
from ..components.line import WIDE
from ..components.pending import REGRET
from ..components.regression import Regression, cut, learn_block, variances, with_constant, write_coefficients, write_solution
from ..components.restarting import FUNCTIONS, Work, events_ahead, follow_block, of_the_same_events, settle, until_due
from ..components.succession import Nothing, new_succession
from ..components.whitened import Whitening, least_novelty, new_whitening
from ..core.blas import one_thread
from ..core.expansion import EVENTS, Expansion
from ..core.fourier import Linear, new_linear
from ..core.kernels import ISOTROPIC
from ..core.rows import as_rows
from ..driver.settled import SettledLoop, record
from ..estimators.checking import canonical, checked
from ..estimators.constraints import POSITIVE, OneOf, Real, Whole
from ..estimators.examples import Example
from ..estimators.learner import Learner, Needs, Problem, decay_of, empty_expansion
from ..estimators.options import Forgets, Restarts
from ..estimators.parameters import parameter
from ..estimators.ranges import Log
from ..estimators.tasks import OnlineClassifier, OnlineRegressor
from ..estimators.turns import predicting
from ..merging.rules import Merge, within_limit


class Params(NamedTuple):
    ridge: Ridge
    novelty: float  # the fraction of k(x, x) above which an event is new
    most: int  # maximum number of points
    unit: float  # factor of the columns as features


class State(NamedTuple):
    model: Expansion
    whitening: Whitening
    squares: LeastSquares
    linear: Linear  # on the columns
    waves: Linear  # on a constant, which has frequency 0, and on random Fourier features
    succession: Any = Nothing()  # Succession, with ``restart``
    successor: Any = Nothing()  # Regression, likewise

    @property
    def regression(self) -> Regression:
        """What learns."""
        return Regression(self.model, self.whitening, self.squares)

    @property
    def fits(self) -> bool:
        """Whether there is memory for what comes next; a model from a file has no spare room."""
        return restarting.fits(self)

    def fitted(self) -> State:
        """Return the same with such memory."""
        return restarting.fitted(self)


def _loop(call, first, last):
    """Learn blocks of events until something is due, or there is no room; return where it stopped, or -1 if it diverges."""
    work, events, start = call.block, call.events, first
    model, outputs, learned = call.state.model, call.state.model.places.size, 0
    while start < last and work.due[0] == 0 and work.fits:
        ahead = events_ahead(work.own, work.heir, work.contest, work.times)
        b, new = cut(events.weights, start, min(last, start + work.seen.norms.size), ahead)
        if b == 0 or min(work.seen.params.most, model.size[0] + b) > model.points.shape[0]:
            break
        T, scores, weights = shaped(work.T, (outputs, b)), shaped(work.scores, (outputs, b)), events.weights[start : start + b]
        class_targets(events.targets[start : start + b], T)
        if not learn_block(work.seen, work.own, events.rows, start, T, weights, scores):
            return -1
        model.clock[EVENTS] += new
        learned += new
        follow_block(work, events, start, T, weights, scores)
        record(scores, events.before, start)
        work.due[0] = 1 if new == ahead else 0
        start += b
    if learned > 0:
        write_solution(work.state, work.seen.params.unit, 0, outputs, work.w)
    return start


def configure(problem: Problem) -> tuple[Params, Needs]:
    o = problem.options
    if o["features"] == "fourier" and o["kernel"] not in ISOTROPIC:
        raise ValueError(f"random Fourier features need a kernel of the distance, not {o['kernel']!r}; use kernel='rbf'")
    most = o["points"] if o["features"] == "points" else 0
    params = Params(
        ridge=Ridge.forgetting(o["ridge"], decay_of(problem), o["forget"]),
        novelty=least_novelty(o["novelty"], problem.dtype),
        most=most,
        unit=1.0 if o["features"] == "linear" else math.sqrt(o["gamma"]),
    )
    return params, Needs(room=max(1, most) if o["restart"] else 1)  # a successor has as much, and may store more points


def start(params: Params, needs: Needs, problem: Problem, rng: np.random.Generator) -> State:
    o, d = problem.options, problem.d
    linear = new_linear(problem, "linear", d, rng)
    waves = with_constant(new_linear(problem, "fourier", o["points"], rng) if o["features"] == "fourier" else linear)
    columns = d if d <= WIDE or o["features"] == "linear" else 0
    fixed = waves.coef.shape[2] - 1 + columns

    def regression() -> Regression:
        squares = new_least_squares(params.ridge, fixed, params.most, problem.outputs)
        return Regression(empty_expansion(needs, problem), new_whitening(params.most), squares)

    state = State(*regression(), linear, waves)
    held = new_succession(max(2, problem.outputs))
    return state._replace(succession=held, successor=regression()) if o["restart"] else state


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
    SettledLoop(_loop, Work, settle, until_due, FUNCTIONS, lambda state: bool(state.succession)),
    configure,
    start,
    bound,
    certificate,
    meanings={
        "least_loss": "The least regularised sum of squares that any weights have on all events so far, after a restart on "
        "those since.",
        "regret_bound": "Vovk 2001, Theorem 4: squared errors before learning, of predictions clipped to the largest target, "
        "sum to at most least_loss plus this; absent with forget.",
    },
    merge=Merge(points=within_limit, align=of_the_same_events, settle=write_coefficients),
)


class _KRLS(Forgets, Restarts):
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
        return np.sqrt(self._state.squares.noise * variances(self._setup.kernel, self._params, self._state, rows))
