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

from ..core import drive, losses
from ..core.fourier import Linear, feature_add, new_linear
from ..core.jit import inline
from ..estimators.parameters import CLASS_WEIGHT, FEATURES, POSITIVE, OneOf, Real
from ..estimators.tasks import OnlineClassifier, OnlineRegressor
from ..learners.base import Learner, Needs, Problem, feature_count, no_points
from .shared import loss_of


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
    loop=drive.feature_loop(step),
    configure=configure,
    start=start,
    bound=no_points,
    certificate=feature_count,
)


class FOGDClassifier(OnlineClassifier):
    """Fourier online gradient descent for classification.

    Parameters
    ----------
    loss : {"hinge", "logistic", "softmax"}
        For more than two classes hinge and logistic act on the margin over the best wrong class.
    eta : float
        Step size.
    n_components : int
        Number of features: a cosine and a sine for each frequency, so an odd number is one more.
    features : {"fourier", "orthogonal", "linear"}
        Random frequencies, orthogonal ones, or the columns themselves.
    kernel, gamma, degree, coef0, class_weight, random_state, dtype, block_size, passes, shuffle, n_jobs, verbose
        As in :class:`kernling.AVMClassifier`.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from kernling.baselines import FOGDClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> model = FOGDClassifier(gamma=0.1, random_state=0).fit(X / 16.0, y)
    >>> print(f"{model.score(X / 16.0, y):.2f}")
    0.96
    """

    learner = "fogd"
    rules = {**FEATURES, "loss": (OneOf(("hinge", "logistic", "softmax")),), "eta": (POSITIVE,), "class_weight": CLASS_WEIGHT}

    def __init__(
        self, loss="hinge", *, eta=0.5, n_components=200, features="fourier", kernel="rbf", gamma="scale", degree=3, coef0=0.0,
        class_weight=None, random_state=None, dtype="float64", block_size=128, passes=1, shuffle=False, n_jobs=None,
        verbose=False,
    ):  # fmt: skip
        self._remember(locals())


class FOGDRegressor(OnlineRegressor):
    """Fourier online gradient descent for regression.

    Parameters
    ----------
    loss : {"l2", "epsilon_insensitive", "l1"}
        Of the residual.
    epsilon : float
        Half the width of the tube without loss.
    eta, n_components, features, kernel, gamma, degree, coef0, random_state, dtype, block_size, passes, shuffle, n_jobs, verbose
        As in :class:`FOGDClassifier`.

    Examples
    --------
    >>> import numpy as np
    >>> from kernling.baselines import FOGDRegressor
    >>> X = np.random.default_rng(0).uniform(-3, 3, size=(2000, 1))
    >>> model = FOGDRegressor(gamma=1.0, random_state=0).fit(X, np.sin(X[:, 0]))
    >>> print(f"{model.score(X, np.sin(X[:, 0])):.2f}")
    1.00
    """

    learner = "fogd"
    rules = {**FEATURES, "loss": (OneOf(("l2", "epsilon_insensitive", "l1")),), "eta": (POSITIVE,), "epsilon": (Real(0.0),)}

    def __init__(
        self, loss="l2", *, eta=0.5, epsilon=0.1, n_components=200, features="fourier", kernel="rbf", gamma="scale", degree=3,
        coef0=0.0, random_state=None, dtype="float64", block_size=128, passes=1, shuffle=False, n_jobs=None, verbose=False,
    ):  # fmt: skip
        self._remember(locals())
