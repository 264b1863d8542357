"""DualSGD, gradient descent in the kernel's space and in that of random features.

T. Le, T. D. Nguyen, V. Nguyen, D. Phung: Dual Space Gradient Descent for Online Learning.
Advances in Neural Information Processing Systems 29 (2016).

At event t = 1, 2, ..., with g the gradient of the loss at the score of both parts together,

    w <- (t-1)/t w - g / (lam t) Phi(x_t).

When the kernel part has more than B points, the k with the smallest coefficients (the oldest of equal ones: those of the hinge
all are) leave it: they move to the random part through their features z(x), or are removed.

Departure from the authors' code: frequencies have the standard deviation sqrt(2 gamma), which makes the features' kernel the
one that is asked for; theirs have 2 gamma.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ..components.eviction import lightest
from ..core import loop, losses
from ..core.block import inner_product
from ..core.expansion import EVENTS, SCALE, Expansion
from ..core.fourier import Linear, feature_scale, new_linear
from ..core.jit import inline, inner
from ..core.updates import add, anneal, insert, remove
from ..core.vector import sincos
from ..estimators.constraints import POSITIVE, OneOf, Whole
from ..estimators.learner import Learner, Needs, Problem, empty_expansion, horizon
from ..estimators.options import Forgets, RandomFeatures, Tube
from ..estimators.parameters import parameter
from ..estimators.ranges import Log
from ..estimators.shared import budget_of, budgeted, loss_of
from ..estimators.tasks import OnlineClassifier, OnlineRegressor
from ..merging.rules import Merge, to_budget


class Params(NamedTuple):
    loss: losses.Loss
    lam: float
    horizon: float
    budget: int
    leavers: int
    merge: bool


class State(NamedTuple):
    model: Expansion
    linear: Linear


@inline
def step(params, state, block, features, j, f, y, weight, u):
    model = state.model
    t = anneal(model, block, j, params.horizon)
    feature_scale(state.linear, (t - 1.0) / t)
    if losses.gradient(params.loss, f, y, block.g):
        add(model, block, j, insert(model, block, j, model.clock[EVENTS]), -weight / (params.lam * t), block.g)
        if model.size[0] > params.budget:
            make_room(params, state, block, j)


@inner
def make_room(params, state, block, j):
    for _ in range(min(params.leavers, state.model.size[0])):
        k = lightest(state.model, block)
        if params.merge:
            move(state.model, state.linear, k)
        remove(state.model, block, j, k)


@inner
def move(model, linear, k):
    """Add point k to the random part, through its features."""
    p = model.points[k]
    L = linear.frequencies.shape[0]
    number = p.dtype.type
    outputs = model.coef.shape[1]
    for i in range(L):
        sine, cosine = sincos(inner_product(linear.frequencies[i], p) + number(linear.phase[i]))
        for o in range(outputs):
            c = model.clock[SCALE] * model.coef[0, o, k] / math.sqrt(L)
            linear.coef[0, o, i] += c * cosine
            linear.coef[0, o, L + i] += c * sine
    if L == 0:  # the columns are the features
        for o in range(outputs):
            c = model.clock[SCALE] * model.coef[0, o, k]
            for i in range(p.size):
                linear.coef[0, o, i] += c * (np.float64(p[i]) + np.float64(model.centre[i]))


def configure(problem: Problem) -> tuple[Params, Needs]:
    o = problem.options
    merge = o["maintain"] == "merge"
    return Params(loss_of(problem), o["lam"], horizon(problem), budget_of(problem), o["n_leaving"], merge), Needs()


def start(params: Params, needs: Needs, problem: Problem, rng: np.random.Generator) -> State:
    o = problem.options
    return State(empty_expansion(needs, problem, tags=1), new_linear(problem, o["features"], o["n_components"], rng))


def certificate(params: Params, state: State, problem: Problem) -> dict[str, float]:
    """The absolute coefficients of one output, in both parts together, sum to at most coefficient_bound for weights of 1."""
    return {"points": state.model.stored, "points_bound": params.budget, "coefficient_bound": 1.0 / params.lam}


LEARNER = Learner(
    name="dualsgd",
    title="Dual Space Gradient Descent",
    citation="T. Le, T. D. Nguyen, V. Nguyen, D. Phung: Dual Space Gradient Descent for Online Learning, NIPS 29, 2016",
    loop=loop.dual_loop(step),
    configure=configure,
    start=start,
    bound=budgeted,
    certificate=certificate,
    merge=Merge(points=to_budget, harmonic=True),
)


class _DualSGD(Forgets, RandomFeatures):
    """The parameters that all tasks share."""

    learner = LEARNER
    lam: float = parameter(default=0.0001, allowed=POSITIVE, search=Log(1e-08, 0.01), doc="Weight of the regulariser.")
    budget: int = parameter(default=100, allowed=Whole(1), doc="Points in the kernel part at most.")
    maintain: str = parameter(
        default="merge",
        allowed=OneOf(("merge", "remove")),
        doc="Whether points that leave the kernel part move to the random part or are forgotten.",
    )
    n_leaving: int = parameter(default=20, allowed=Whole(1), doc="How many leave when there are too many.")


class DualSGDClassifier(_DualSGD, OnlineClassifier):
    """Dual space gradient descent for classification.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from kernling.baselines import DualSGDClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> model = DualSGDClassifier(gamma=0.1, n_components=400, random_state=0).fit(X / 16.0, y)
    >>> print(f"{model.score(X / 16.0, y):.2f} with {model.n_support_} points")
    0.93 with 88 points
    """

    loss: str = parameter(
        default="hinge",
        allowed=OneOf(("hinge", "logistic")),
        doc="For more than two classes they act on the margin over the best wrong class.",
    )


class DualSGDRegressor(_DualSGD, Tube, OnlineRegressor):
    """Dual space gradient descent for regression.

    Examples
    --------
    >>> import numpy as np
    >>> from kernling.baselines import DualSGDRegressor
    >>> X = np.random.default_rng(0).uniform(-3, 3, size=(2000, 1))
    >>> model = DualSGDRegressor(gamma=1.0, random_state=0).fit(X, np.sin(X[:, 0]))
    >>> print(f"{model.score(X, np.sin(X[:, 0])):.2f} with {model.n_support_} points")
    0.99 with 82 points
    """

    loss: str = parameter(default="epsilon_insensitive", allowed=OneOf(("epsilon_insensitive", "l1")), doc="Of the residual.")
    lam: float = parameter(default=0.01)
