"""NPBSGD, nonparametric budgeted stochastic gradient descent.

T. Le, V. Nguyen, T. D. Nguyen, D. Phung: Nonparametric Budgeted Stochastic Gradient Descent.  International Conference on
Artificial Intelligence and Statistics (2016).

w <- (1 - 1/t) w - l'(f(x_t)) / (lam t) Z, as in Pegasos, where a coin decides what Z is: with probability min(1, beta / t) it
is Phi(x_t), which is stored, else its projection on the span of the points nearest to x_t. The expected number of points
grows with the logarithm of t.

What was decided where descriptions of the method leave room:

- Five nearest points, in feature space; a model without points stores the event whatever the coin says.
- Beyond the budget the point whose term has the smallest norm, of equal ones the oldest, gives way to the new one.
- The coin is tossed at every event and looked at where there is a loss.  A margin of exactly 1 is no loss.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from ..components.eviction import keep, lightest, project_on_nearest
from ..core import loop, losses
from ..core.expansion import EVENTS
from ..core.jit import inline
from ..core.updates import add, anneal
from ..estimators.constraints import NOTHING, POSITIVE, Whole
from ..estimators.learner import Learner, Needs, Problem, horizon
from ..estimators.options import Forgets, Tube
from ..estimators.parameters import parameter
from ..estimators.ranges import Log
from ..estimators.shared import Points, budget_of, budgeted, loss_of, no_points, point_count
from ..estimators.tasks import OnlineClassifier, OnlineRegressor
from ..merging.rules import Merge, to_budget


class Params(NamedTuple):
    loss: losses.Loss
    lam: float
    horizon: float
    beta: float
    budget: int


@inline
def step(params, state, block, j, f, y, weight, u):
    model = state.model
    t = anneal(model, block, j, params.horizon)
    if not losses.gradient(params.loss, f, y, block.g):
        return
    size = -weight / (params.lam * t)
    if model.size[0] == 0 or u[0] < params.beta / model.clock[EVENTS]:
        victim = lightest(model, block) if model.size[0] == params.budget else -1
        add(model, block, j, keep(model, block, j, params.budget, victim), size, block.g)
    else:
        for n in range(project_on_nearest(model, block, j)):
            add(model, block, j, int(block.work[1, n]), size * block.work[0, n], block.g)


def configure(problem: Problem) -> tuple[Params, Needs]:
    o = problem.options
    return Params(loss_of(problem), o["lam"], horizon(problem), o["beta"], budget_of(problem)), Needs(uniforms=1)


def certificate(params: Params, state: Points, problem: Problem) -> dict[str, float]:
    """The expected number of points is at most the sum of the coins' chances, below 1 + beta (1 + log t)."""
    t = max(1.0, float(state.model.clock[EVENTS]))
    return {**point_count(params, state, problem), "expected_bound": 1.0 + params.beta * (1.0 + math.log(t))}


LEARNER = Learner(
    name="npbsgd",
    title="Nonparametric Budgeted Stochastic Gradient Descent",
    citation="T. Le, V. Nguyen, T. D. Nguyen, D. Phung: Nonparametric Budgeted Stochastic Gradient Descent, AISTATS, 2016",
    loop=loop.kernel_loop(step),
    configure=configure,
    start=no_points,
    bound=budgeted,
    certificate=certificate,
    merge=Merge(points=to_budget, harmonic=True),
)


class _NPBSGD(Forgets):
    """The parameters that all tasks share."""

    learner = LEARNER
    lam: float = parameter(default=0.001, allowed=POSITIVE, search=Log(1e-08, 0.01), doc="Regularisation.")
    beta: float = parameter(
        default=50.0,
        allowed=POSITIVE,
        doc="An event with a loss is stored with probability min(1, beta / t).",
    )
    budget: int | None = parameter(default=None, allowed=(NOTHING, Whole(1)), doc="The largest number of points.")


class NPBSGDClassifier(_NPBSGD, OnlineClassifier):
    """Nonparametric budgeted stochastic gradient descent: ever fewer events are stored, the others are projected.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from kernling.baselines import NPBSGDClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> model = NPBSGDClassifier(gamma=0.1, random_state=0)
    >>> labels = model.predict_then_learn(X / 16.0, y)
    >>> print(f"{(labels != y).mean():.2f} mistakes, {model.n_support_} points")
    0.12 mistakes, 69 points
    """

    loss = "hinge"


class NPBSGDRegressor(_NPBSGD, Tube, OnlineRegressor):
    """Nonparametric budgeted stochastic gradient descent for regression.

    Examples
    --------
    >>> import numpy as np
    >>> from kernling.baselines import NPBSGDRegressor
    >>> X = np.random.default_rng(0).uniform(-3, 3, size=(2000, 1))
    >>> model = NPBSGDRegressor(gamma=1.0, random_state=0).fit(X, np.sin(X[:, 0]))
    >>> print(f"{model.score(X, np.sin(X[:, 0])):.2f} with {model.n_support_} points")
    0.99 with 110 points
    """

    lam: float = parameter(default=0.01)
