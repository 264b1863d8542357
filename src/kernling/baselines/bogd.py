"""BOGD, bounded online gradient descent.

P. Zhao, J. Wang, P. Wu, R. Jin, S. C. H. Hoi: Fast Bounded Online Gradient Descent Algorithms for Scalable Kernel-Based Online
Learning.  International Conference on Machine Learning (2012).

f <- (1 - eta lam) f - eta l'(f(x_t)) K(x_t, .). If this exceeds the budget, one of the B old points is removed, i with
probability p_i, and the others are divided by 1 - p_j, which keeps the expected model unchanged. Then the model is
scaled so that its largest coefficient is at most eta ``clip``.

- ``removal="uniform"``: p_i = 1/B.
- ``removal="weighted"`` (BOGD++): the probability to stay, 1 - p_i, is proportional to |a_i| sqrt(K_ii), and at most 1.

Departures from the paper, each with its reason:

- Probabilities to stay are clipped at 1 and the others adjusted so that they sum to B - 1: the paper's formula
  leaves [0, 1] when one coefficient is much larger than the rest.
- A margin of exactly 1 causes no loss.  Several classes by rows of coefficients.
- Regression with the same removal, since the gradient step is the same.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from ..compiler import inline, inner
from ..components.eviction import smallest, store, term_squares
from ..core import losses
from ..core.expansion import SCALE
from ..core.updates import add, add_column, renormalise
from ..driver import loops
from ..estimators.constraints import OneOf, Real
from ..estimators.examples import Example
from ..estimators.learner import Learner, Needs, Problem, budget_of, check_shrinkage, decay_of, loss_of
from ..estimators.options import Budget, Forgets, LossClassifier, LossRegressor, RegularisedSteps
from ..estimators.parameters import parameter


class Params(NamedTuple):
    loss: losses.Loss
    eta: float
    lam: float
    budget: int
    weighted: bool
    clip: float


@inline
def step(params, state, block, j, f, y, weight, u):
    model = state.model
    lossy = losses.gradient(params.loss, f, y, block.g)
    model.clock[SCALE] *= 1.0 - params.eta * params.lam
    if lossy:
        full = model.size[0] == params.budget
        victim = -1
        if full and params.weighted:
            victim = choose_by_weight(model, block, j, u[0])
        elif full:
            victim = int(u[0] * params.budget)
            model.clock[SCALE] *= params.budget / max(1.0, params.budget - 1.0)
        k = store(model, block, j, params.budget, victim)
        add(model, block, j, k, -weight * params.eta, block.g)
        if full:
            clip(model, block, params.eta * params.clip)
    renormalise(model, block, j)


@inner
def choose_by_weight(model, block, j, u):
    """Choose the point to remove; the others are divided by their probabilities to stay."""
    size = model.size[0]
    weights = block.work[0]
    term_squares(model, block.kernel, weights)
    for k in range(size):
        weights[k] = math.sqrt(weights[k])
    factor = stay_factor(weights, size)
    victim, decided = size - 1, False
    for k in range(size):
        weights[k] = min(1.0, factor * weights[k])
        if not decided and weights[k] < 1.0:
            victim = k
            decided = u < 1.0 - weights[k]
            u -= 1.0 - weights[k]
    for k in range(size):
        if k != victim and 0.0 < weights[k] < 1.0:
            for o in range(model.places.size):
                add_column(model, block, j, k, 0, o, model.coef[0, model.places[o], k] * (1.0 / weights[k] - 1.0))
    return victim


@inner
def stay_factor(weights, size):
    """Return the factor with which the probabilities to stay, min(1, factor * weight), sum to size - 1."""
    factor, before = 0.0, -1.0
    while True:
        sure, rest = 0.0, 0.0
        for k in range(size):
            if factor * weights[k] >= 1.0:
                sure += 1.0
            else:
                rest += weights[k]
        if sure == before or rest <= 0.0:
            return factor
        before = sure
        factor = (size - 1.0 - sure) / rest


@inner
def clip(model, block, largest):
    """Scale the model so that no coefficient is larger than this."""
    size = model.size[0]
    top = 0.0
    for o in range(model.places.size):
        coef = model.coef[0, model.places[o]]
        for k in range(size):
            block.work[0, k] = -abs(coef[k])
        top = max(top, -smallest(block.work[0], size))
    top *= model.clock[SCALE]
    if top > largest:
        model.clock[SCALE] *= largest / top


def configure(problem: Problem) -> tuple[Params, Needs]:
    o = problem.options
    check_shrinkage(problem)
    params = Params(loss_of(problem), o["eta"], o["lam"], budget_of(problem), o["removal"] == "weighted", o["clip"])
    return params, Needs(uniforms=1, decay=decay_of(problem))


LEARNER = Learner(__name__, loops.kernel_loop(step), configure)


class _BOGD(RegularisedSteps, Budget, Forgets):
    """Parameters shared by all tasks."""

    learner = LEARNER
    eta: float = parameter(default=0.3)
    lam: float = parameter(default=0.01, doc="Weight of the regulariser; must be less than 1 / eta.")
    removal: str = parameter(
        default="uniform",
        allowed=OneOf(("uniform", "weighted")),
        doc="Which point is removed: each with the same probability, or small terms more often (BOGD++).",
    )
    clip: float = parameter(default=10.0, allowed=Real(1.0), doc="Largest coefficient of a full model, in units of eta.")


class BOGDClassifier(_BOGD, LossClassifier):
    """Bounded online gradient descent: a random point is removed, and the others grow to keep the expected model."""

    example = Example("0.59", random_state=0)
    loss: str = parameter(default="hinge", allowed=OneOf(("hinge", "logistic")))


class BOGDRegressor(_BOGD, LossRegressor):
    """Bounded online gradient descent for regression."""

    example = Example("1.00", gamma=1.0, eta=0.05, random_state=0)
