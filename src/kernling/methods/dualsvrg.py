"""DualSVRG, stochastic variance-reduced gradient descent for online kernel learning.

T. Le, K. Nguyen, D. Phung: Improving kernel online learning with a snapshot memory.  Machine Learning 111 (2022).

The model has a kernel part on stored points and a part on random features; an oracle decides whether an event is stored
(Psi = Phi) or represented by its random features.  At event t, with g and g_u the gradients of the loss at the scores of w and
of the snapshot u, and M the last m events, this one included,

    w <- (w - eta ((g - g_u) Psi(x_t) + 1/|M| sum_{i in M} g_u,i Psi(x_i))) / (1 + eta lam).

Every n events u and w become the mean of the last n models.

Departures from the paper, each with its reason:

- The coverage oracle moves close events to the features and stores distant ones, as in its Algorithm 4; its prose says the
  opposite.
- Gradients at the snapshot are stored and the mean over a period is a running sum, so the cost of a step does not grow
  with m, nor the memory with n, as in the paper.
- Several classes (the paper uses such data but gives the binary method): the margins of w and of u each have their own best
wrong class.
- ``max_points``: at this limit the coverage oracle stores no more events, and all others are represented by their features.
- The smoothness constant M of the logistic loss, which the paper does not give, is taken as 1 in eta = 1 / (76 M).
"""

from __future__ import annotations

import math
from typing import Annotated, NamedTuple

import numpy as np

from ..compiler import inline, inner
from ..components.coverage import SPHERE, Coverage
from ..components.memory import (
    COUNT,
    SNAPSHOT,
    STALE,
    Memory,
    average_columns,
    new_memory,
    refresh,
    remember,
    subtract_gradient,
)
from ..components.stats import DUALSVRG_STATS, HEAVIEST_EVENT, merged_dualsvrg_stats
from ..core import losses
from ..core.expansion import EVENTS, SCALE, TOTAL, Expansion
from ..core.fourier import Linear, feature_score
from ..core.shapes import declared
from ..core.updates import add, insert, renormalise
from ..driver import loops
from ..estimators.cells import Oracle
from ..estimators.constraints import NOTHING, POSITIVE, OneOf, Whole
from ..estimators.examples import Example
from ..estimators.learner import Learner, Needs, Problem, decay_of, empty_expansion, empty_linear
from ..estimators.options import Forgets, RandomFeatures, TubeRegressor
from ..estimators.parameters import parameter
from ..estimators.published import Published
from ..estimators.ranges import Log
from ..estimators.tasks import OnlineClassifier
from ..merging.reduction import Reduction
from ..merging.rules import Merge
from ..theory import dualsvrg as theory

COVERAGE, BUDGET, ALWAYS = range(3)
ORACLES = {"coverage": COVERAGE, "budget": BUDGET, "always": ALWAYS}


class Params(NamedTuple):
    loss: losses.Loss
    eta: float
    lam: float
    oracle: int
    threshold: float  # the square of theta
    budget: float  # maximum number of points
    period: int


@declared()
class State(NamedTuple):
    model: Expansion  # groups: w, its sum over the period, the snapshot u, the memory's gradients
    linear: Linear  # groups: w, its sum over the period, the snapshot u
    memory: Memory
    stats: Annotated[np.ndarray, "weights", "not negative"]  # what certificates need, by the names of stats.py


@inline
def step(params, state, block, features, j, f, y, weight, u):
    model, linear, memory = state.model, state.linear, state.memory
    if memory.ring[STALE] > 0:
        refresh(memory, params.loss, model, linear, block, features, j - 1)
    slot = insert(model, block, j, 0.0) if stores(params, model, block, j) else -1
    g, f_u, g_u, z = block.g, features.f, features.g, features.Z[j]
    for o in range(f.size):
        f_u[o] = block.scores[SNAPSHOT, o, j] + feature_score(linear.coef[SNAPSHOT, linear.places[o]], z)
    losses.gradient(params.loss, f, y, g)
    losses.gradient(params.loss, f_u, y, g_u)
    for o in range(f.size):
        g_u[o] *= weight
        g[o] = weight * g[o] - g_u[o]
    remember(memory, model, block, features, j, y, weight, slot, g_u)
    state.stats[HEAVIEST_EVENT] = max(state.stats[HEAVIEST_EVENT], weight)

    shrink = 1.0 / (1.0 + params.eta * params.lam)
    share = params.eta / memory.ring[COUNT]
    subtract_gradient(memory, model, block, j, share / model.clock[SCALE], model.clock[TOTAL])
    model.clock[SCALE] *= shrink
    if slot >= 0:
        add(model, block, j, slot, -params.eta * shrink, g)
    model.clock[TOTAL] += model.clock[SCALE]
    renormalise(model, block, j)
    for o in range(f.size):
        w, total, gradients = linear.coef[0, linear.places[o]], linear.coef[1, linear.places[o]], memory.features_sum[o]
        own = params.eta * g[o] if slot < 0 else 0.0
        for i in range(w.size):
            w[i] = shrink * (w[i] - own * np.float64(z[i]) - share * gradients[i])
            total[i] += w[i]
    if int(model.clock[EVENTS]) % params.period == 0:
        take_snapshot(params, state, block, features, j)


@inline
def stores(params, model, block, j):
    """Return the oracle's decision whether event j is stored in the kernel part."""
    if model.size[0] >= params.budget:
        return False
    return params.oracle == BUDGET or block.nearest[j] < 0 or block.distance[j] > params.threshold + block.tolerance


@inner
def take_snapshot(params, state, block, features, j):
    model, linear = state.model, state.linear
    average_columns(model.coef, 0, model.size[0], model.clock[TOTAL], -1.0, params.period)
    average_columns(block.scores, j + 1, block.size, model.clock[TOTAL], -1.0, params.period)
    average_columns(linear.coef, 0, linear.coef.shape[2], 0.0, 1.0, params.period)
    model.clock[SCALE] = 1.0
    model.clock[TOTAL] = 0.0
    refresh(state.memory, params.loss, model, linear, block, features, j)


def configure(problem: Problem) -> tuple[Params, Needs]:
    o = problem.options
    M = losses.smoothness(o["loss"], o["tau"])
    params = Params(
        loss=losses.Loss(losses.KINDS[o["loss"]], o["tau"], o.get("epsilon", 0.0)),
        eta=o["eta"] or 1.0 / (76.0 * M),
        lam=o["lam"],
        oracle=ORACLES[o["oracle"]],
        threshold=o["theta"] ** 2,
        budget={"coverage": o["max_points"] or math.inf, "budget": o["budget"], "always": 0}[o["oracle"]],
        period=o["period"],
    )
    tie = 1e-9 if problem.dtype is np.float64 else 1e-5
    tolerance = tie * params.threshold if params.oracle == COVERAGE else -1.0
    return params, Needs(tolerance=tolerance, dense=True, decay=decay_of(problem))


def start(params: Params, needs: Needs, problem: Problem, rng: np.random.Generator) -> State:
    model = empty_expansion(needs, problem, tags=1, groups=4)
    linear = empty_linear(needs, problem, rng, groups=3)
    memory = new_memory(problem.options["memory"], problem.d, linear.coef.shape[2], problem.outputs, problem.dtype)
    return State(model, linear, memory, np.zeros(DUALSVRG_STATS))


def bound(params: Params, t: float) -> float:
    """Return the maximum number of points."""
    return min(t, params.budget)


def within_bound(params: Params, a: State, b: State) -> Reduction:
    """Keep stored points within the budget and, with the coverage oracle, more than theta apart."""
    coverage = Coverage(SPHERE, math.sqrt(params.threshold), 0.0) if params.oracle == COVERAGE else None
    return Reduction(coverage=coverage, budget=params.budget)


LEARNER = Learner(
    __name__,
    loops.dual_loop(step),
    configure,
    start,
    bound,
    theory.certificate,
    assumed=theory.assumed,
    meanings=theory.MEANINGS,
    merge=Merge(points=within_bound, period=lambda params: params.period, arrays={"stats": merged_dualsvrg_stats}),
)


class _DualSVRG(Oracle, RandomFeatures, Forgets):
    """Parameters shared by all tasks."""

    learner = LEARNER
    lam: float = parameter(
        default=0.0001,
        allowed=POSITIVE,
        search=Log(1e-07, 0.01),
        doc="Weight of the regulariser, which is handled implicitly.",
    )
    eta: float | None = parameter(
        default=0.3,
        allowed=(NOTHING, POSITIVE),
        search=Log(0.01, 3.0),
        doc="Step size; None: 1 / (76 M) as in the theory, with M the smoothness of the loss: too small for most streams.",
    )
    memory: int = parameter(
        default=100,
        allowed=Whole(1),
        doc="Number of events in the mean gradient at the snapshot; costs little if it is small against ``period``.",
    )
    period: int = parameter(default=100, allowed=Whole(1), doc="Number of events between snapshots.")
    tau: float = parameter(default=0.5, allowed=POSITIVE, doc="Width of the smooth hinge.")

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        kind = tags.classifier_tags or tags.regressor_tags
        kind.poor_score = True  # steps are small, for streams longer than the 200 rows of scikit-learn's checks
        return tags


class DualSVRGClassifier(_DualSVRG, OnlineClassifier):
    """Variance-reduced gradient descent on at most 1,000 kernel points and a linear model on random features."""

    example = Example("0.94", eta=0.5, random_state=0)
    published_settings = Published(
        required=("gamma", "lam", "oracle"),
        choices={"loss": ("smooth_hinge", "logistic")},
        values={"eta": None, "tau": 0.5, "memory": 100, "period": 100, "n_components": 200, "budget": 100}
        | {"kernel": "rbf", "degree": 3},
        required_with={"theta": ("oracle", "coverage")},
        off={"max_points": None, "features": "fourier", "coef0": 0.0, "forget": None, "class_weight": None},
    )
    loss: str = parameter(
        default="smooth_hinge",
        allowed=OneOf(("smooth_hinge", "logistic", "softmax")),
        doc="Loss of the margin; with more than two classes, the first two use the margin over the best wrong class.",
    )


class DualSVRGRegressor(_DualSVRG, TubeRegressor):
    """Variance-reduced regression on at most 1,000 kernel points and a linear model on random features."""

    example = Example("1.00", gamma=1.0, eta=0.2, random_state=0)
    loss: str = parameter(
        default="huber",
        allowed=OneOf(("huber", "l2", "smooth_epsilon")),
        doc="Loss of the residual; the steps of l2 grow with outliers, and need a smaller eta.",
    )
    epsilon: float = parameter(default=0.1, doc="Half the width of the tube without loss of smooth_epsilon.")
    tau: float = parameter(default=0.5, doc="Knee of Huber's loss; width of the rounded corner of smooth_epsilon.")
