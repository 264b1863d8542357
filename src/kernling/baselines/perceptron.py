"""The kernel perceptron.

F. Rosenblatt: The perceptron: A probabilistic model for information storage and organization in the brain.
Psychological Review 65 (1958).  With kernels: Y. Freund, R. E. Schapire: Large Margin Classification Using the Perceptron
Algorithm.  Machine Learning 37 (1999).

When the label is wrong, y f(x_t) <= 0, f <- f + y K(x_t, .).  No point is ever removed.

Departures from the papers, each with its reason:

- Several classes: a mistake is f_y <= f_z for the best wrong class z, and the step is +1 for y and -1 for z.
- Regression, as in the toolbox of Lu and others (JMLR 17, 2016): a residual outside of the tube is a mistake, and the step
  is eta times its sign.
"""

from __future__ import annotations

from typing import NamedTuple

from ..compiler import inline
from ..components.eviction import mistaken
from ..core import losses
from ..core.expansion import EVENTS
from ..core.updates import add, insert
from ..driver import loops
from ..estimators.examples import Example
from ..estimators.learner import Learner, Needs, Problem, loss_of
from ..estimators.options import StepRegressor
from ..estimators.tasks import OnlineClassifier


class Params(NamedTuple):
    loss: losses.Loss
    eta: float


@inline
def step(params, state, block, j, f, y, weight, u):
    model = state.model
    if mistaken(params.loss, f, y, block.g):
        k = insert(model, block, j, model.clock[EVENTS])
        add(model, block, j, k, -weight * params.eta, block.g)


def configure(problem: Problem) -> tuple[Params, Needs]:
    return Params(loss_of(problem), problem.options.get("eta", 1.0)), Needs()


LEARNER = Learner(__name__, loops.kernel_loop(step), configure)


class PerceptronClassifier(OnlineClassifier):
    """The kernel perceptron: every misclassified event is stored.

    It grows with the stream, as published.
    """

    learner = LEARNER
    example = Example("0.92", random_state=0)


class PerceptronRegressor(StepRegressor):
    """The kernel perceptron for regression: every event with a residual outside of the tube is stored.

    It grows with the stream, as published.
    """

    learner = LEARNER
    example = Example("1.00", gamma=1.0, random_state=0)
