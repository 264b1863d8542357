"""POLK, parsimonious online learning with kernels.

A. Koppel, G. Warnell, E. Stump, A. Ribeiro: Parsimonious Online Learning with Kernels via Sparse Projections in Function Space.
Journal of Machine Learning Research 20 (2019).

Mini-batch t = 0, 1, ...: with g_b the gradient of the loss at the scores f_t(x_b),

    f~ = (1 - eta lam) f_t - (eta / B) sum_b g_b K(x_b, .),

then destructive kernel orthogonal matching pursuit: points are removed, the one that costs least first, and the rest is
refitted each time, while ||f - f~|| <= eps: parsimony eta^1.5 with constant steps, parsimony eta^2 with eta = eta_0 / (t + 1).

Departures from the paper, each with its reason:

- The gradient of a batch is the mean (a sum diverges with the printed step sizes).
- All classes share one dictionary, and errors are summed over classes; eps bounds the norm, not its square.
- The gradient of the logistic loss is sigmoid(f) - y at f_t; the paper's (21) has the slope of the sigmoid there.
- ``max_points``: beyond this limit points are removed even if the error exceeds eps.
- A row without loss is not added at all: its coefficient would be 0.
- ``prune="random"`` is the paper's Remark 6, with refitting: without it, an eps below a single coefficient would remove
nothing.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..components.gram import Gram, add_and_prune, greedy, new_gram
from ..core import losses
from ..core.expansion import Expansion
from ..core.minibatch import Batch, BatchLoop, Waiting, batch_scores, learn_waiting, new_waiting
from ..estimators.constraints import NOTHING, OneOf, Real, Whole
from ..estimators.examples import Example
from ..estimators.learner import Learner, Needs, Problem, check_shrinkage, empty_expansion, kept_share, loss_of
from ..estimators.options import Forgets, LossClassifier, RegularisedSteps, SquaredLossRegressor
from ..estimators.parameters import parameter
from ..estimators.ranges import Log
from ..merging.reduction import Reduction
from ..merging.rules import Merge, each

STEPS, EPS, LARGEST_ERROR, LARGEST_SHARE, LARGEST_ORDER = range(5)


class Params(NamedTuple):
    loss: losses.Loss
    eta: float
    lam: float
    keep: float  # factor by which the model is multiplied after each event, to forget
    parsimony: float
    diminishing: bool
    random_order: bool
    max_points: float


class State(NamedTuple):
    model: Expansion
    gram: Gram
    waiting: Waiting
    stats: np.ndarray  # batches learned, current eps, largest error, largest error / eps and largest number of points seen


def step(params: Params, state: State, kernel, batch: Batch) -> None:
    t = state.stats[STEPS]
    eta = params.eta / (t + 1.0) if params.diminishing else params.eta
    eps = params.parsimony * eta ** (2.0 if params.diminishing else 1.5)
    scores, cross = batch_scores(kernel, state.model, batch.X)
    g = np.empty_like(scores)
    losses.gradients(params.loss, scores, batch.targets, batch.weights, g)
    size = int(state.model.size[0])
    old = params.keep ** len(g) * (1.0 - eta * params.lam) * state.model.coef[0, :, :size].T
    lossy = g.any(axis=1)
    new = -eta / len(g) * g[lossy]
    X, cross, chosen = batch.X[lossy], cross.compress(lossy, axis=1), order(params, batch)
    error = add_and_prune(state.model, state.gram, kernel, old, new, X, cross, eps, chosen, params.max_points)
    state.stats[STEPS] += 1
    state.stats[EPS] = eps
    state.stats[LARGEST_ERROR] = max(state.stats[LARGEST_ERROR], error)
    if eps > 0.0:
        state.stats[LARGEST_SHARE] = max(state.stats[LARGEST_SHARE], error / eps)
    state.stats[LARGEST_ORDER] = max(state.stats[LARGEST_ORDER], state.model.size[0])


def order(params: Params, batch: Batch):
    """Return the order of removal: the cheapest first, or random, seeded by the random number of the batch's first event."""
    if not params.random_order:
        return greedy
    rng = np.random.default_rng(int(batch.uniforms[0] * 2**53))
    return rng.permutation


def finish(params: Params, state: State, kernel) -> None:
    learn_waiting(step, params, state, kernel)


def configure(problem: Problem) -> tuple[Params, Needs]:
    check_shrinkage(problem)
    o = problem.options
    params = Params(
        loss=loss_of(problem),
        eta=o["eta"],
        lam=o["lam"],
        keep=kept_share(problem),
        parsimony=o["parsimony"],
        diminishing=o["step"] == "diminishing",
        random_order=o["prune"] == "random",
        max_points=float(o["max_points"] or np.inf),
    )
    return params, Needs(uniforms=int(params.random_order), room=o["batch_size"])


def start(params: Params, needs: Needs, problem: Problem, rng: np.random.Generator) -> State:
    model = empty_expansion(needs, problem)
    return State(model, new_gram(), new_waiting(problem.options["batch_size"], problem.d, problem.dtype), np.zeros(5))


def certificate(params: Params, state: State, problem: Problem) -> dict[str, float]:
    """Return the errors of pruning: ||f - f~|| never exceeded the eps of its step if largest_share <= 1.

    The order is the number of points.  eps is exceeded if ``max_points`` requires it; otherwise only a tiny eps can be,
    by points that are in the span of others up to rounding, which are never stored.
    """
    return {
        "eps": float(state.stats[EPS]),
        "largest_error": float(state.stats[LARGEST_ERROR]),
        "largest_share": float(state.stats[LARGEST_SHARE]),
        "order": int(state.model.size[0]),
        "largest_order": int(state.stats[LARGEST_ORDER]),
    }


def within_eps(params: Params, a: State, b: State) -> Reduction:
    """Prune the union like the model of a step, with the larger eps of both last steps."""
    return Reduction(eps=float(max(a.stats[EPS], b.stats[EPS])), budget=params.max_points)


def bound(params: Params, t: int) -> float:
    """Return the maximum number of points."""
    return min(t, params.max_points)


LEARNER = Learner(
    __name__,
    BatchLoop(step),
    configure,
    start,
    bound,
    certificate,
    finish=finish,
    merge=Merge(points=within_eps, arrays={"stats": each("total", *["largest"] * 4)}, steps={"stats": STEPS}),
)


class _POLK(RegularisedSteps, Forgets):
    """Parameters and attributes shared by all tasks."""

    learner = LEARNER
    eta: float = parameter(default=7.5, search=Log(0.1, 30.0))
    lam: float = parameter(default=1e-06, search=None, doc="Weight of the regulariser; must be less than 1 / eta.")
    parsimony: float = parameter(
        default=0.01,
        allowed=Real(0.0),
        search=Log(0.0001, 0.3),
        doc="K in eps = K eta^1.5, the radius of the ball within which points are pruned; larger values give smaller models.",
    )
    max_points: int | None = parameter(
        default=250,
        allowed=(NOTHING, Whole(1)),
        doc="Maximum number of points, even if pruning them takes more than eps; None: no limit, as in the paper.",
    )
    step: str = parameter(
        default="constant",
        allowed=OneOf(("constant", "diminishing")),
        doc="Whether the step size is eta, or eta / (t + 1) with eps = K eta_t^2.",
    )
    batch_size: int = parameter(
        default=12,
        allowed=Whole(1),
        doc="Number of rows per step; rows of an incomplete batch wait for the next call of ``partial_fit``.",
    )
    prune: str = parameter(
        default="komp",
        allowed=OneOf(("komp", "random")),
        doc="Remove the cheapest point first, or points in random order until one exceeds the error.",
    )

    n_waiting_ = property(lambda self: int(self._fitted().waiting.count[0]), doc="Number of rows in the incomplete batch.")


class POLKClassifier(_POLK, LossClassifier):
    """Parsimonious online learning with kernels: gradient steps in function space, then pruning to at most 250 points."""

    example = Example("0.95", eta=20.0)


class POLKRegressor(_POLK, SquaredLossRegressor):
    """Parsimonious online regression with kernels, on at most 250 points."""

    example = Example("1.00", gamma=1.0)
    eta: float = parameter(
        default=1.0,
        search=Log(0.03, 1.9),
        doc='Step size; with the loss "l2" and a kernel bounded by 1, steps below 2 are stable.',
    )
    batch_size: int = parameter(default=8)
