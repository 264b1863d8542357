"""The Projectron.

F. Orabona, J. Keshet, B. Caputo: Bounded Kernel-Based Online Learning.  Journal of Machine Learning Research 10 (2009).

A perceptron that, before it stores an event, computes the distance of Phi(x_t) from the span of its points. If it is at
most ``threshold``, the projection of Phi(x_t) on the span is added instead, f <- f + y sum_i d_i K(x_i, .) with d = K^-1 k_t,
and nothing is stored.

Departures from the paper, each with its reason:

- A budget: once it is full every mistake is projected, as in the toolbox of Lu and others (JMLR 17, 2016).
- A point in the span up to rounding is projected even if the threshold is 0, since the inverse matrix would not exist.
- Several classes and regression as in the perceptron.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..compiler import inline
from ..components.eviction import mistaken
from ..components.gram import RENEWED, WORST, Gram, new_gram
from ..components.projection import add_or_project, project_event
from ..core import losses
from ..core.expansion import EVENTS, Expansion
from ..driver import loops
from ..estimators.constraints import Real
from ..estimators.examples import Example
from ..estimators.learner import Learner, Needs, Problem, budget_of, empty_expansion, loss_of, point_count
from ..estimators.options import OptionalBudget, StepRegressor
from ..estimators.parameters import parameter
from ..estimators.tasks import OnlineClassifier
from ..merging.reduction import Reduction
from ..merging.rules import Merge


class Params(NamedTuple):
    loss: losses.Loss
    eta: float
    threshold: float
    budget: int


class State(NamedTuple):
    model: Expansion
    gram: Gram


@inline
def step(params, state, block, j, f, y, weight, u):
    model = state.model
    if mistaken(params.loss, f, y, block.g):
        gap = project_event(state.gram, model, block, j)
        projects = model.size[0] >= params.budget or gap <= params.threshold**2
        add_or_project(state.gram, model, block, j, gap, projects, model.clock[EVENTS], -weight * params.eta, block.g)


def configure(problem: Problem) -> tuple[Params, Needs]:
    o = problem.options
    return Params(loss_of(problem), o.get("eta", 1.0), o["threshold"], budget_of(problem)), Needs()


def start(params: Params, needs: Needs, problem: Problem, rng: np.random.Generator) -> State:
    return State(empty_expansion(needs, problem, tags=1), new_gram())


def certificate(params: Params, state: State, problem: Problem) -> dict[str, float]:
    """Return the accuracy of the inverse matrix: its largest drift, and how often it was recomputed."""
    record = state.gram.record
    return {**point_count(params, state, problem), "drift": float(record[WORST]), "renewed": float(record[RENEWED])}


def independent(params: Params, a: State, b: State) -> Reduction:
    """Keep the points independent, since projection inverts their kernel matrix."""
    return Reduction(budget=params.budget, independent=True)


LEARNER = Learner(
    __name__,
    loops.kernel_loop(step),
    configure,
    start,
    certificate=certificate,
    meanings={
        "drift": "Largest entry of the identity minus the kernel matrix times its inverse.",
        "renewed": "How often the inverse was computed anew.",
    },
    merge=Merge(points=independent),
)


class _Projectron(OptionalBudget):
    """Parameters shared by all tasks."""

    learner = LEARNER
    threshold: float = parameter(
        default=0.1, allowed=Real(0.0), doc="Distance from the span of the points within which a mistake is projected."
    )
    budget: int | None = parameter(default=None, doc="Maximum number of points; a full model projects all mistakes.")


class ProjectronClassifier(_Projectron, OnlineClassifier):
    """The Projectron: a perceptron that projects mistakes on its stored points if that loses little."""

    example = Example("0.92", random_state=0)


class ProjectronRegressor(_Projectron, StepRegressor):
    """The Projectron for regression: a residual outside of the tube is a mistake."""

    example = Example("1.00", gamma=1.0, random_state=0)
