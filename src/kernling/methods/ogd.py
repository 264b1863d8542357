"""OGD, online gradient descent with kernels.

J. Kivinen, A. J. Smola, R. C. Williamson: Online Learning with Kernels.  IEEE Transactions on Signal Processing 52 (2004),
without its regulariser, as in J. Lu, S. C. H. Hoi, J. Wang, P. Zhao, Z.-Y. Liu: Large Scale Online Kernel Learning.
Journal of Machine Learning Research 17 (2016).

f <- f - eta l'(f(x_t)) K(x_t, .) with a constant step.  Nothing is ever forgotten.  A margin of exactly 1 is no loss.
"""

from __future__ import annotations

from typing import NamedTuple

from ..core import loop, losses
from ..core.expansion import EVENTS
from ..core.jit import inline
from ..core.updates import add, insert
from ..estimators.base import OnlineEstimator
from ..estimators.constraints import POSITIVE, OneOf
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
    if losses.gradient(params.loss, f, y, block.g):
        k = insert(model, block, j, model.clock[EVENTS])
        add(model, block, j, k, -weight * params.eta, block.g)


def configure(problem: Problem) -> tuple[Params, Needs]:
    return Params(loss_of(problem), problem.options["eta"]), Needs()


LEARNER = Learner(
    name="ogd",
    title="Online Gradient Descent",
    citation=(
        "J. Kivinen, A. J. Smola, R. C. Williamson: "
        "Online Learning with Kernels, IEEE Transactions on Signal Processing 52, 2004"
    ),
    loop=loop.kernel_loop(step),
    configure=configure,
    start=no_points,
    bound=unbounded,
    certificate=point_count,
)


class _OGD(OnlineEstimator):
    """The parameters that all tasks share."""

    learner = LEARNER
    eta: float = parameter(default=0.5, allowed=POSITIVE, search=Log(0.01, 10.0), doc="Step size.")


class OGDClassifier(_OGD, OnlineClassifier):
    """Online gradient descent with kernels: every event with a loss is stored.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from kernling.baselines import OGDClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> model = OGDClassifier(gamma=0.1, random_state=0)
    >>> labels = model.predict_then_learn(X / 16.0, y)
    >>> print(f"{(labels != y).mean():.2f} mistakes, {model.n_support_} points")
    0.07 mistakes, 580 points
    """

    loss: str = parameter(
        default="hinge",
        allowed=OneOf(("hinge", "logistic", "softmax")),
        doc="For more than two classes hinge and logistic act on the margin over the best wrong class.",
    )


class OGDRegressor(_OGD, Tube, OnlineRegressor):
    """Online gradient descent with kernels for regression.

    Examples
    --------
    >>> import numpy as np
    >>> from kernling.baselines import OGDRegressor
    >>> X = np.random.default_rng(0).uniform(-3, 3, size=(2000, 1))
    >>> model = OGDRegressor(gamma=1.0, random_state=0).fit(X, np.sin(X[:, 0]))
    >>> print(f"{model.score(X, np.sin(X[:, 0])):.2f} with {model.n_support_} points")
    0.99 with 43 points
    """

    loss: str = parameter(
        default="epsilon_insensitive",
        allowed=OneOf(("epsilon_insensitive", "l2", "l1")),
        doc="Of the residual.",
    )
    eta: float = parameter(default=0.2)
