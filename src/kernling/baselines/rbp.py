"""RBP, the randomised budget perceptron.

G. Cavallanti, N. Cesa-Bianchi, C. Gentile: Tracking the best hyperplane with a simple budget Perceptron.
Machine Learning 69 (2007).

A perceptron; on a mistake with a full budget, the new point replaces a random one.  Several classes and regression, which
are not in the paper, as in the perceptron.
"""

from __future__ import annotations

from typing import NamedTuple

from ..compiler import inline
from ..components.eviction import mistaken, store
from ..core import losses
from ..core.updates import add
from ..driver import loops
from ..estimators.examples import Example
from ..estimators.learner import Learner, Needs, Problem, budget_of, loss_of
from ..estimators.options import Budget, StepRegressor
from ..estimators.tasks import OnlineClassifier


class Params(NamedTuple):
    loss: losses.Loss
    eta: float
    budget: int


@inline
def step(params, state, block, j, f, y, weight, u):
    if mistaken(params.loss, f, y, block.g):
        k = store(state.model, block, j, params.budget, int(u[0] * params.budget))
        add(state.model, block, j, k, -weight * params.eta, block.g)


def configure(problem: Problem) -> tuple[Params, Needs]:
    return Params(loss_of(problem), problem.options.get("eta", 1.0), budget_of(problem)), Needs(uniforms=1)


LEARNER = Learner(__name__, loops.kernel_loop(step), configure)


class RBPClassifier(Budget, OnlineClassifier):
    """The randomised budget perceptron: a misclassified event replaces a random point."""

    learner = LEARNER
    example = Example("0.61", random_state=0)


class RBPRegressor(Budget, StepRegressor):
    """The randomised budget perceptron for regression: an event with a residual outside of the tube replaces a random point."""

    learner = LEARNER
    example = Example("1.00", gamma=1.0, random_state=0)
