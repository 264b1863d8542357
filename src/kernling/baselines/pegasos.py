"""Pegasos, the primal estimated sub-gradient solver, with kernels and on a stream.

S. Shalev-Shwartz, Y. Singer, N. Srebro, A. Cotter: Pegasos: Primal Estimated sub-GrAdient SOlver for SVM.
Mathematical Programming 127 (2011).

w <- (1 - 1/t) w - l'(f(x_t)) / (lam t) K(x_t, .) for lam/2 ||w||^2 + the mean of the hinge loss.

Departures from the paper, each with its reason:

- Events come in the order of the stream instead of by draws with replacement; ``passes`` and ``shuffle`` bring epochs.
- Without the projection on the ball ||w|| <= 1 / sqrt(lam), which the paper leaves to choice.
- A margin of exactly 1 is no loss, as in the paper.
- Several classes by the margin f_y - f_z; regression by the epsilon-insensitive loss.
"""

from __future__ import annotations

from typing import NamedTuple

from ..core import drive, losses
from ..core.changes import add, anneal, insert
from ..core.combine import Merge
from ..core.expansion import EVENTS
from ..core.jit import inline
from ..estimators.parameters import CLASS_WEIGHT, FORGET, POSITIVE, Real
from ..estimators.tasks import OnlineClassifier, OnlineRegressor
from ..learners.base import Learner, Needs, Problem, horizon
from .shared import loss_of, no_points, point_count, unbounded


class Params(NamedTuple):
    loss: losses.Loss
    lam: float
    horizon: float


@inline
def step(params, state, block, j, f, y, weight, u):
    model = state.model
    t = anneal(model, block, j, params.horizon)
    if losses.gradient(params.loss, f, y, block.g):
        k = insert(model, block, j, model.clock[EVENTS])
        add(model, block, j, k, -weight / (params.lam * t), block.g)


def configure(problem: Problem) -> tuple[Params, Needs]:
    return Params(loss_of(problem), problem.options["lam"], horizon(problem)), Needs()


LEARNER = Learner(
    name="pegasos",
    title="Pegasos",
    citation=(
        "S. Shalev-Shwartz, Y. Singer, N. Srebro, A. Cotter: "
        "Pegasos: Primal Estimated sub-GrAdient SOlver for SVM, Mathematical Programming 127, 2011"
    ),
    loop=drive.kernel_loop(step),
    configure=configure,
    start=no_points,
    bound=unbounded,
    certificate=point_count,
    merge=Merge(harmonic=True),
)


class PegasosClassifier(OnlineClassifier):
    """Stochastic sub-gradient descent on the SVM objective: every event with a margin below 1 is stored.

    Parameters
    ----------
    lam : float
        Regularisation.
    forget, kernel, gamma, degree, coef0, class_weight, random_state, dtype, block_size, passes, shuffle, n_jobs, verbose
        As in :class:`kernling.AVMClassifier`; the kernels "poly" and "linear" work too.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from kernling.baselines import PegasosClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> model = PegasosClassifier(gamma=0.1, random_state=0)
    >>> labels = model.predict_then_learn(X / 16.0, y)
    >>> print(f"{(labels != y).mean():.2f} mistakes, {model.n_support_} points")
    0.07 mistakes, 430 points
    """

    learner = "pegasos"
    rules = {"lam": (POSITIVE,), "forget": FORGET, "class_weight": CLASS_WEIGHT}
    loss = "hinge"

    def __init__(
        self, lam=0.001, *, forget=None, kernel="rbf", gamma="scale", degree=3, coef0=0.0, class_weight=None, random_state=None,
        dtype="float64", block_size=128, passes=1, shuffle=False, n_jobs=None, verbose=False,
    ):  # fmt: skip
        self._remember(locals())


class PegasosRegressor(OnlineRegressor):
    """Stochastic sub-gradient descent on the support vector regression objective.

    Parameters
    ----------
    lam : float
        Regularisation.
    epsilon : float
        Half the width of the tube without loss.
    forget, kernel, gamma, degree, coef0, random_state, dtype, block_size, passes, shuffle, n_jobs, verbose
        As in :class:`PegasosClassifier`.

    Examples
    --------
    >>> import numpy as np
    >>> from kernling.baselines import PegasosRegressor
    >>> X = np.random.default_rng(0).uniform(-3, 3, size=(2000, 1))
    >>> model = PegasosRegressor(gamma=1.0, random_state=0).fit(X, np.sin(X[:, 0]))
    >>> print(f"{model.score(X, np.sin(X[:, 0])):.2f} with {model.n_support_} points")
    0.99 with 290 points
    """

    learner = "pegasos"
    rules = {"lam": (POSITIVE,), "forget": FORGET, "epsilon": (Real(0.0),)}

    def __init__(
        self, lam=0.01, *, epsilon=0.1, forget=None, kernel="rbf", gamma="scale", degree=3, coef0=0.0, random_state=None,
        dtype="float64", block_size=128, passes=1, shuffle=False, n_jobs=None, verbose=False,
    ):  # fmt: skip
        self._remember(locals())
