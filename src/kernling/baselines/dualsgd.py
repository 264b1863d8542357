"""DualSGD, gradient descent in the kernel space and in the random-feature space.

T. Le, T. D. Nguyen, V. Nguyen, D. Phung: Dual Space Gradient Descent for Online Learning.
Advances in Neural Information Processing Systems 29 (2016).

At event t = 1, 2, ..., with g the gradient of the loss at the score of both parts together,

    w <- (t-1)/t w - g / (lam t) Phi(x_t)        or, with eta, w <- (1 - eta lam) w - eta g Phi(x_t).

When the kernel part has more than B points, the k points with the smallest coefficients (the oldest of equal ones: those of the
hinge loss all are) leave it: they move to the random part through their features z(x), or are removed.

Departure from the authors' code: frequencies have the standard deviation sqrt(2 gamma), which makes the features' kernel the
requested one; theirs have 2 gamma.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ..compiler import inline, inner
from ..components.eviction import lightest
from ..core import losses
from ..core.block import inner_product
from ..core.expansion import EVENTS, SCALE, Expansion
from ..core.fourier import Linear, feature_scale
from ..core.updates import add, anneal, insert, remove
from ..core.vector import sincos
from ..driver import loops
from ..estimators.constraints import OneOf, Whole
from ..estimators.examples import Example
from ..estimators.learner import Learner, Needs, Problem, budget_of, empty_expansion, empty_linear, loss_of, steps_of
from ..estimators.options import Budget, HarmonicOrConstantSteps, LossClassifier, LossRegressor, RandomFeatures
from ..estimators.parameters import parameter
from ..merging.rules import Merge


class Params(NamedTuple):
    loss: losses.Loss
    lam: float
    delay: float
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
    t = anneal(model, block, j, params.delay, params.horizon)
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
    outputs = model.places.size
    for i in range(L):
        sine, cosine = sincos(inner_product(linear.frequencies[i], p) + number(linear.phase[i]))
        for o in range(outputs):
            c, w = model.clock[SCALE] * model.coef[0, model.places[o], k] / math.sqrt(L), linear.coef[0, linear.places[o]]
            w[i] += c * cosine
            w[L + i] += c * sine
    if L == 0:  # the columns are the features
        for o in range(outputs):
            c, w = model.clock[SCALE] * model.coef[0, model.places[o], k], linear.coef[0, linear.places[o]]
            for i in range(p.size):
                w[i] += c * (np.float64(p[i]) + np.float64(model.centre[i]))


def configure(problem: Problem) -> tuple[Params, Needs]:
    o = problem.options
    merge = o["maintain"] == "merge"
    return Params(loss_of(problem), o["lam"], *steps_of(problem), budget_of(problem), o["n_leaving"], merge), Needs()


def start(params: Params, needs: Needs, problem: Problem, rng: np.random.Generator) -> State:
    return State(empty_expansion(needs, problem, tags=1), empty_linear(needs, problem, rng))


def certificate(params: Params, state: State, problem: Problem) -> dict[str, float]:
    """Return coefficient_bound on the sum of absolute coefficients of an output in both parts, for sample weights of 1."""
    return {"points": state.model.stored, "points_bound": params.budget, "coefficient_bound": 1.0 / params.lam}


LEARNER = Learner(
    __name__,
    loops.dual_loop(step),
    configure,
    start,
    certificate=certificate,
    meanings={"coefficient_bound": "Absolute coefficients of an output in both parts sum to at most this (weights of 1)."},
    merge=Merge(harmonic=True),
)


class _DualSGD(HarmonicOrConstantSteps, RandomFeatures, Budget):
    """Parameters shared by all tasks."""

    learner = LEARNER
    lam: float = parameter(default=0.0001)
    budget: int = parameter(default=100, doc="Maximum number of points in the kernel part.")
    maintain: str = parameter(
        default="merge",
        allowed=OneOf(("merge", "remove")),
        doc="Whether points that leave the kernel part move to the random part or are removed.",
    )
    n_leaving: int = parameter(default=20, allowed=Whole(1), doc="Number of points that leave when the budget is exceeded.")


class DualSGDClassifier(_DualSGD, LossClassifier):
    """Dual space gradient descent for classification."""

    example = Example("0.94", n_components=400, random_state=0)


class DualSGDRegressor(_DualSGD, LossRegressor):
    """Dual space gradient descent for regression."""

    example = Example("1.00", gamma=1.0, random_state=0)
    loss: str = parameter(default="epsilon_insensitive", allowed=OneOf(("epsilon_insensitive", "l1")))
    lam: float = parameter(default=0.01)
