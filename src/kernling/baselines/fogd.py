"""FOGD, Fourier online gradient descent.

J. Lu, S. C. H. Hoi, J. Wang, P. Zhao, Z.-Y. Liu: Large Scale Online Kernel Learning.
Journal of Machine Learning Research 17 (2016).

A linear model on random Fourier features z(x), with gradient steps of constant size: w <- w - eta l'(f) z(x_t).

Departure from the authors' code: features are divided by the square root of the number of frequencies, so that
<z(x), z(x)> = 1 and eta means the same whatever their number.
"""

from __future__ import annotations

from typing import NamedTuple

from ..compiler import inline
from ..core import losses
from ..core.fourier import feature_add
from ..driver import loops
from ..estimators.examples import Example
from ..estimators.learner import FeatureLearner, Needs, Problem, loss_of
from ..estimators.options import LossClassifier, RandomFeatures, SquaredLossRegressor, StepSize


class Params(NamedTuple):
    loss: losses.Loss
    eta: float


@inline
def step(params, state, features, j, f, y, weight, u):
    if losses.gradient(params.loss, f, y, features.g):
        feature_add(state.model, features, j, -params.eta * weight, features.g)


def configure(problem: Problem) -> tuple[Params, Needs]:
    return Params(loss_of(problem), problem.options["eta"]), Needs()


LEARNER = FeatureLearner(__name__, loops.feature_loop(step), configure)


class FOGDClassifier(StepSize, RandomFeatures, LossClassifier):
    """Fourier online gradient descent for classification."""

    learner = LEARNER
    example = Example("0.96", random_state=0)


class FOGDRegressor(StepSize, RandomFeatures, SquaredLossRegressor):
    """Fourier online gradient descent for regression."""

    learner = LEARNER
    example = Example("1.00", gamma=1.0, random_state=0)
