"""FOGD, Fourier online gradient descent.

J. Lu, S. C. H. Hoi, J. Wang, P. Zhao, Z.-Y. Liu: Large Scale Online Kernel Learning.
Journal of Machine Learning Research 17 (2016).

A linear model on random Fourier features z(x), by gradient steps of constant size: w <- w - eta l'(f) z(x_t).

Departure from the authors' code: features are divided by the square root of the number of frequencies, so that
<z(x), z(x)> = 1 and eta means the same whatever their number.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..core import loop, losses
from ..core.fourier import Linear, feature_add, new_linear
from ..core.jit import inline
from ..estimators.constraints import POSITIVE, OneOf
from ..estimators.learner import Learner, Needs, Problem, feature_count, no_points
from ..estimators.options import RandomFeatures, Tube
from ..estimators.parameters import parameter
from ..estimators.ranges import Log
from ..estimators.shared import loss_of
from ..estimators.tasks import OnlineClassifier, OnlineRegressor


class Params(NamedTuple):
    loss: losses.Loss
    eta: float


class State(NamedTuple):
    model: Linear


@inline
def step(params, state, features, j, f, y, weight, u):
    if losses.gradient(params.loss, f, y, features.g):
        feature_add(state.model, features, j, -params.eta * weight, features.g)


def configure(problem: Problem) -> tuple[Params, Needs]:
    return Params(loss_of(problem), problem.options["eta"]), Needs()


def start(params: Params, needs: Needs, problem: Problem, rng: np.random.Generator) -> State:
    o = problem.options
    return State(new_linear(problem, o["features"], o["n_components"], rng))


LEARNER = Learner(
    name="fogd",
    title="Fourier Online Gradient Descent",
    citation="J. Lu, S. C. H. Hoi, J. Wang, P. Zhao, Z.-Y. Liu: Large Scale Online Kernel Learning, JMLR 17, 2016",
    loop=loop.feature_loop(step),
    configure=configure,
    start=start,
    bound=no_points,
    certificate=feature_count,
)


class _FOGD(RandomFeatures):
    """The parameters that all tasks share."""

    learner = LEARNER
    eta: float = parameter(default=0.5, allowed=POSITIVE, search=Log(0.01, 10.0), doc="Step size.")


class FOGDClassifier(_FOGD, OnlineClassifier):
    """Fourier online gradient descent for classification.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from kernling.baselines import FOGDClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> model = FOGDClassifier(gamma=0.1, random_state=0).fit(X / 16.0, y)
    >>> print(f"{model.score(X / 16.0, y):.2f}")
    0.96
    """

    loss: str = parameter(
        default="hinge",
        allowed=OneOf(("hinge", "logistic", "softmax")),
        doc="For more than two classes hinge and logistic act on the margin over the best wrong class.",
    )


class FOGDRegressor(_FOGD, Tube, OnlineRegressor):
    """Fourier online gradient descent for regression.

    Examples
    --------
    >>> import numpy as np
    >>> from kernling.baselines import FOGDRegressor
    >>> X = np.random.default_rng(0).uniform(-3, 3, size=(2000, 1))
    >>> model = FOGDRegressor(gamma=1.0, random_state=0).fit(X, np.sin(X[:, 0]))
    >>> print(f"{model.score(X, np.sin(X[:, 0])):.2f}")
    1.00
    """

    loss: str = parameter(default="l2", allowed=OneOf(("l2", "epsilon_insensitive", "l1")), doc="Of the residual.")
