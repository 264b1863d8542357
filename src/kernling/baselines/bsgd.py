"""BSGD, budgeted stochastic gradient descent.

Z. Wang, K. Crammer, S. Vucetic: Breaking the Curse of Kernelization: Budgeted Stochastic Gradient Descent for Large-Scale SVM
Training.  Journal of Machine Learning Research 13 (2012).

w <- (1 - 1/t) w - l'(f(x_t)) / (lam t) K(x_t, .), as in Pegasos; if eta is given, it takes the place of 1 / (lam t). If this
exceeds the budget, the point p whose term has the smallest norm is removed:

- ``maintenance="removal"``: it is dropped;
- ``"projection"``: its term is projected on the span of the others;
- ``"merging"``: it and a point q of the same sign are merged into one point between them, with the q for which this costs
least.

Departures from the paper, each with its reason:

- With removal, terms often have equal norms (all steps end up with the same size): then the oldest is removed.
- If no q makes merging cheaper than removal, the point is removed, so merging never costs more.
- Merging for several classes: q is of the same sign if the product of the rows is positive, and the place between p and q is
  that of one column with the rows' norms as coefficients; coefficients and cost are exact for that place.
- Projection keeps an inverse matrix instead of solving equations at each step.
- The best place is read from a table (components/point_merging.py).  A margin of exactly 1 causes no loss.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..compiler import inline, inner
from ..components.eviction import lightest
from ..components.gram import Gram, new_gram
from ..components.point_merging import best_partner, merge
from ..components.projection import add_or_project, project_event, project_point
from ..core import losses
from ..core.expansion import EVENTS, Expansion
from ..core.kernels import RBF
from ..core.updates import add, anneal, insert, remove
from ..driver import loops
from ..estimators.constraints import OneOf
from ..estimators.examples import Example
from ..estimators.learner import Learner, Needs, Problem, budget_of, empty_expansion, loss_of, steps_of
from ..estimators.options import Budget, HarmonicOrConstantSteps, HarmonicRegressor
from ..estimators.parameters import parameter
from ..estimators.tasks import OnlineClassifier
from ..merging.reduction import Reduction
from ..merging.rules import Merge

REMOVAL, PROJECTION, MERGING = range(3)
MAINTENANCE = {"removal": REMOVAL, "projection": PROJECTION, "merging": MERGING}


class Params(NamedTuple):
    loss: losses.Loss
    lam: float
    delay: float
    horizon: float
    budget: int
    maintenance: int


class State(NamedTuple):
    model: Expansion
    gram: Gram  # for projection only


@inline
def step(params, state, block, j, f, y, weight, u):
    model = state.model
    t = anneal(model, block, j, params.delay, params.horizon)
    if losses.gradient(params.loss, f, y, block.g):
        size, birth = -weight / (params.lam * t), model.clock[EVENTS]
        if params.maintenance == PROJECTION:
            gap = project_event(state.gram, model, block, j)
            add_or_project(state.gram, model, block, j, gap, False, birth, size, block.g)
        else:
            add(model, block, j, insert(model, block, j, birth), size, block.g)
        if model.size[0] > params.budget:
            shorten(params, state, block, j)


@inner
def shorten(params, state, block, j):
    """Reduce the model by one point."""
    model = state.model
    p = lightest(model, block)
    if params.maintenance == PROJECTION:
        project_point(state.gram, model, block, j, p)
        return
    q, h = -1, 0.0
    if params.maintenance == MERGING:
        q, h = best_partner(model, block.kernel, p)
    if q >= 0:
        merge(model, block, j, p, q, h)
    else:
        remove(model, block, j, p)


def configure(problem: Problem) -> tuple[Params, Needs]:
    o = problem.options
    if o["maintenance"] == "merging" and problem.kernel.kind != RBF:
        raise ValueError(f"maintenance='merging' needs kernel='rbf', not {o['kernel']!r}; use 'removal' or 'projection'")
    return Params(loss_of(problem), o["lam"], *steps_of(problem), budget_of(problem), MAINTENANCE[o["maintenance"]]), Needs()


def start(params: Params, needs: Needs, problem: Problem, rng: np.random.Generator) -> State:
    return State(empty_expansion(needs, problem, tags=1), new_gram(params.maintenance == PROJECTION))


def independent_if_projected(params: Params, a: State, b: State) -> Reduction:
    """Keep the points independent, since projection inverts their kernel matrix."""
    return Reduction(budget=params.budget, independent=params.maintenance == PROJECTION)


LEARNER = Learner(
    __name__, loops.kernel_loop(step), configure, start, merge=Merge(points=independent_if_projected, harmonic=True)
)


class _BSGD(HarmonicOrConstantSteps, Budget):
    """Parameters shared by all tasks."""

    learner = LEARNER
    maintenance: str = parameter(
        default="merging",
        allowed=OneOf(("removal", "projection", "merging")),
        doc="How the model is reduced to the budget; merging needs the Gaussian kernel.",
    )


class BSGDClassifier(_BSGD, OnlineClassifier):
    """Budgeted stochastic gradient descent on the SVM objective."""

    example = Example("0.96", random_state=0)


class BSGDRegressor(_BSGD, HarmonicRegressor):
    """Budgeted stochastic gradient descent on the support vector regression objective."""

    example = Example("0.99", gamma=1.0, random_state=0)
