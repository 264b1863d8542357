"""OGD, online gradient descent with kernels.

J. Kivinen, A. J. Smola, R. C. Williamson: Online Learning with Kernels.  IEEE Transactions on Signal Processing 52 (2004),
without its regulariser, as in J. Lu, S. C. H. Hoi, J. Wang, P. Zhao, Z.-Y. Liu: Large Scale Online Kernel Learning.
Journal of Machine Learning Research 17 (2016).

f <- f - eta l'(f(x_t)) K(x_t, .) with a constant step.  Nothing is ever forgotten.  A margin of exactly 1 is no loss.
"""

from __future__ import annotations

from typing import NamedTuple

from ..core import drive, losses
from ..core.changes import add, insert
from ..core.expansion import EVENTS
from ..core.jit import inline
from ..estimators.parameters import CLASS_WEIGHT, POSITIVE, OneOf, Real
from ..estimators.tasks import OnlineClassifier, OnlineRegressor
from ..learners.base import Learner, Needs, Problem
from .shared import loss_of, no_points, point_count, unbounded


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
    loop=drive.kernel_loop(step),
    configure=configure,
    start=no_points,
    bound=unbounded,
    certificate=point_count,
)


class OGDClassifier(OnlineClassifier):
    """Online gradient descent with kernels: every event with a loss is stored.

    Parameters
    ----------
    loss : {"hinge", "logistic", "softmax"}
        For more than two classes hinge and logistic act on the margin over the best wrong class.
    eta : float
        Step size.
    kernel, gamma, degree, coef0, class_weight, random_state, dtype, block_size, passes, shuffle, n_jobs, verbose
        As in :class:`kernling.AVMClassifier`; the kernels "poly" and "linear" work too.

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

    learner = "ogd"
    rules = {"loss": (OneOf(("hinge", "logistic", "softmax")),), "eta": (POSITIVE,), "class_weight": CLASS_WEIGHT}

    def __init__(
        self, loss="hinge", *, eta=0.5, kernel="rbf", gamma="scale", degree=3, coef0=0.0, class_weight=None, random_state=None,
        dtype="float64", block_size=128, passes=1, shuffle=False, n_jobs=None, verbose=False,
    ):  # fmt: skip
        self._remember(locals())


class OGDRegressor(OnlineRegressor):
    """Online gradient descent with kernels for regression.

    Parameters
    ----------
    loss : {"epsilon_insensitive", "l2", "l1"}
        Of the residual.
    eta : float
        Step size.
    epsilon : float
        Half the width of the tube without loss.
    kernel, gamma, degree, coef0, random_state, dtype, block_size, passes, shuffle, n_jobs, verbose
        As in :class:`OGDClassifier`.

    Examples
    --------
    >>> import numpy as np
    >>> from kernling.baselines import OGDRegressor
    >>> X = np.random.default_rng(0).uniform(-3, 3, size=(2000, 1))
    >>> model = OGDRegressor(gamma=1.0, random_state=0).fit(X, np.sin(X[:, 0]))
    >>> print(f"{model.score(X, np.sin(X[:, 0])):.2f} with {model.n_support_} points")
    0.99 with 43 points
    """

    learner = "ogd"
    rules = {"loss": (OneOf(("epsilon_insensitive", "l2", "l1")),), "eta": (POSITIVE,), "epsilon": (Real(0.0),)}

    def __init__(
        self, loss="epsilon_insensitive", *, eta=0.2, epsilon=0.1, kernel="rbf", gamma="scale", degree=3, coef0=0.0,
        random_state=None, dtype="float64", block_size=128, passes=1, shuffle=False, n_jobs=None, verbose=False,
    ):  # fmt: skip
        self._remember(locals())
