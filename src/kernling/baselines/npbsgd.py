"""NPBSGD, nonparametric budgeted stochastic gradient descent.

T. Le, V. Nguyen, T. D. Nguyen, D. Phung: Nonparametric Budgeted Stochastic Gradient Descent.  International Conference on
Artificial Intelligence and Statistics (2016).

w <- (1 - 1/t) w - l'(f(x_t)) / (lam t) Z, as in Pegasos, where Z is random: with probability min(1, beta / t) it
is Phi(x_t), which is stored, else its projection on the span of the points nearest to x_t. The expected number of points
grows with the logarithm of t.  If eta is given, it takes the place of 1 / (lam t).

Choices where descriptions of the method are ambiguous:

- Five nearest points, in feature space; a model without points always stores the event.
- Beyond the budget, the new point replaces the one whose term has the smallest norm, the oldest of equal ones.
- A random number is drawn for every event and used if there is a loss.  A margin of exactly 1 causes no loss.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from ..compiler import inline
from ..components.eviction import event_value, lightest, store
from ..components.neighbours import event_row, project_on_nearest
from ..core import losses
from ..core.expansion import EVENTS
from ..core.updates import add, anneal
from ..driver import loops
from ..estimators.constraints import POSITIVE
from ..estimators.examples import Example
from ..estimators.learner import Learner, Needs, PointState, Problem, budget_of, loss_of, point_count, steps_of
from ..estimators.options import HarmonicOrConstantSteps, HarmonicRegressor, LossClassifier, OptionalBudget
from ..estimators.parameters import parameter
from ..merging.rules import Merge


class Params(NamedTuple):
    loss: losses.Loss
    lam: float
    delay: float
    horizon: float
    beta: float
    budget: int


@inline
def step(params, state, block, j, f, y, weight, u):
    model = state.model
    t = anneal(model, block, j, params.delay, params.horizon)
    if not losses.gradient(params.loss, f, y, block.g):
        return
    size = -weight / (params.lam * t)
    if model.size[0] == 0 or u[0] < params.beta / model.clock[EVENTS]:
        victim = lightest(model, block) if model.size[0] == params.budget else -1
        add(model, block, j, store(model, block, j, params.budget, victim), size, block.g)
    else:
        event_row(model, block, j)
        count, _ = project_on_nearest(model, block, event_value(block, j), -1)
        for n in range(count):
            add(model, block, j, int(block.work[1, n]), size * block.work[0, n], block.g)


def configure(problem: Problem) -> tuple[Params, Needs]:
    o = problem.options
    return Params(loss_of(problem), o["lam"], *steps_of(problem), o["beta"], budget_of(problem)), Needs(uniforms=1)


def certificate(params: Params, state: PointState, problem: Problem) -> dict[str, float]:
    """Return a bound on the expected number of points: the sum of the probabilities, below 1 + beta (1 + log t)."""
    t = max(1.0, float(state.model.clock[EVENTS]))
    return {**point_count(params, state, problem), "expected_bound": 1.0 + params.beta * (1.0 + math.log(t))}


LEARNER = Learner(__name__, loops.kernel_loop(step), configure, certificate=certificate, merge=Merge(harmonic=True))


class _NPBSGD(HarmonicOrConstantSteps, OptionalBudget):
    """Parameters shared by all tasks."""

    learner = LEARNER
    beta: float = parameter(
        default=50.0, allowed=POSITIVE, doc="An event with a loss is stored with probability min(1, beta / t)."
    )


class NPBSGDClassifier(_NPBSGD, LossClassifier):
    """Nonparametric budgeted stochastic gradient descent: fewer and fewer events are stored, the others are projected."""

    example = Example("0.90", random_state=0)


class NPBSGDRegressor(_NPBSGD, HarmonicRegressor):
    """Nonparametric budgeted stochastic gradient descent for regression."""

    example = Example("0.99", gamma=1.0, random_state=0)
