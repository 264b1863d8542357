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

from ..core import loop, losses
from ..core.expansion import EVENTS
from ..core.jit import inline
from ..core.updates import add, anneal, insert
from ..estimators.constraints import POSITIVE
from ..estimators.learner import Learner, Needs, Problem, horizon
from ..estimators.options import Forgets, Tube
from ..estimators.parameters import parameter
from ..estimators.ranges import Log
from ..estimators.shared import loss_of, no_points, point_count, unbounded
from ..estimators.tasks import OnlineClassifier, OnlineRegressor
from ..merging.rules import Merge


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
    loop=loop.kernel_loop(step),
    configure=configure,
    start=no_points,
    bound=unbounded,
    certificate=point_count,
    merge=Merge(harmonic=True),
)


class _Pegasos(Forgets):
    """The parameters that all tasks share."""

    learner = LEARNER
    lam: float = parameter(default=0.001, allowed=POSITIVE, search=Log(1e-08, 0.01), doc="Regularisation.")


class PegasosClassifier(_Pegasos, OnlineClassifier):
    """Stochastic sub-gradient descent on the SVM objective: every event with a margin below 1 is stored.

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

    loss = "hinge"


class PegasosRegressor(_Pegasos, Tube, OnlineRegressor):
    """Stochastic sub-gradient descent on the support vector regression objective.

    Examples
    --------
    >>> import numpy as np
    >>> from kernling.baselines import PegasosRegressor
    >>> X = np.random.default_rng(0).uniform(-3, 3, size=(2000, 1))
    >>> model = PegasosRegressor(gamma=1.0, random_state=0).fit(X, np.sin(X[:, 0]))
    >>> print(f"{model.score(X, np.sin(X[:, 0])):.2f} with {model.n_support_} points")
    0.99 with 290 points
    """

    lam: float = parameter(default=0.01)
