"""The kernel perceptron.

F. Rosenblatt: The perceptron: A probabilistic model for information storage and organization in the brain.
Psychological Review 65 (1958).  With kernels: Y. Freund, R. E. Schapire: Large Margin Classification Using the Perceptron
Algorithm.  Machine Learning 37 (1999).

When the label is wrong, y f(x_t) <= 0, f <- f + y K(x_t, .).  Nothing is ever forgotten.

Departures from the papers, each with its reason:

- Several classes: wrong is f_y <= f_z for the best wrong class z, and the step is +1 for y and -1 for z.
- Regression, as in the toolbox of Lu and others (JMLR 17, 2016): a residual outside of the tube is a mistake, and the step
  is eta times its sign.
"""

from __future__ import annotations

from typing import NamedTuple

from ..components.eviction import mistaken
from ..core import loop, losses
from ..core.expansion import EVENTS
from ..core.jit import inline
from ..core.updates import add, insert
from ..estimators.constraints import POSITIVE
from ..estimators.learner import Learner, Needs, Problem
from ..estimators.options import Tube
from ..estimators.parameters import parameter
from ..estimators.ranges import Log
from ..estimators.shared import loss_of, no_points, point_count, unbounded
from ..estimators.tasks import OnlineClassifier, OnlineRegressor


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


LEARNER = Learner(
    name="perceptron",
    title="Perceptron",
    citation="Y. Freund, R. E. Schapire: Large Margin Classification Using the Perceptron Algorithm, Machine Learning 37, 1999",
    loop=loop.kernel_loop(step),
    configure=configure,
    start=no_points,
    bound=unbounded,
    certificate=point_count,
)


class PerceptronClassifier(OnlineClassifier):
    """The kernel perceptron: every event whose label was wrong is stored.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from kernling.baselines import PerceptronClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> model = PerceptronClassifier(gamma=0.1, random_state=0)
    >>> labels = model.predict_then_learn(X / 16.0, y)
    >>> print(f"{(labels != y).mean():.2f} mistakes, {model.n_support_} points")
    0.10 mistakes, 186 points
    """

    learner = LEARNER
    loss = "hinge"


class PerceptronRegressor(Tube, OnlineRegressor):
    """The kernel perceptron for regression: every event with a residual outside of the tube is stored.

    Examples
    --------
    >>> import numpy as np
    >>> from kernling.baselines import PerceptronRegressor
    >>> X = np.random.default_rng(0).uniform(-3, 3, size=(2000, 1))
    >>> model = PerceptronRegressor(gamma=1.0, random_state=0).fit(X, np.sin(X[:, 0]))
    >>> print(f"{model.score(X, np.sin(X[:, 0])):.2f} with {model.n_support_} points")
    0.99 with 43 points
    """

    learner = LEARNER
    eta: float = parameter(default=0.2, allowed=POSITIVE, search=Log(0.01, 10.0), doc="Size of a step.")
