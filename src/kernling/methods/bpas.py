"""BPA-S, budgeted passive-aggressive learning that shifts a point.

Z. Wang, S. Vucetic: Online Passive-Aggressive Algorithms on a Budget.  International Conference on Artificial Intelligence and
Statistics (2010).

PA-I; once the budget is full, a point r gives way to x_t, and the model changes as little as it can: r and the coefficient b
of x_t minimise

    1/2 ||b K(x_t, .) - a_r K(x_r, .)||^2 + C max(0, 1 - y f(x_t)).

That has a closed form. b = a_r K_rt / K_tt + tau y with the step tau = min(C, l / K_tt) of PA-I, whatever r is, and r is the
point with the smallest a_r^2 (K_rr - K_rt^2 / K_tt). So a step looks at each point once, where the paper solves a problem
for each.

Several classes: rows of coefficients, squares summed over columns, and tau = min(C, l / (2 K_tt)).  Regression: the
epsilon-insensitive loss.  A weight multiplies C.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..components.eviction import columns_changed, event_value, keep, point_value, square
from ..core import loop, losses
from ..core.jit import inline, inner
from ..core.updates import add
from ..estimators.base import OnlineEstimator
from ..estimators.constraints import POSITIVE, Whole
from ..estimators.learner import Learner, Needs, Problem
from ..estimators.options import Tube
from ..estimators.parameters import parameter
from ..estimators.ranges import Log
from ..estimators.shared import budget_of, budgeted, loss_of, no_points, point_count
from ..estimators.tasks import OnlineClassifier, OnlineRegressor
from ..merging.rules import Merge, to_budget


class Params(NamedTuple):
    loss: losses.Loss
    C: float
    budget: int


@inline
def step(params, state, block, j, f, y, weight, u):
    model = state.model
    k_tt = event_value(block, j)
    loss = losses.value(params.loss, f, y)
    if loss <= 0.0 or k_tt <= 0.0:  # where K_tt = 0 nothing can change the score
        return
    losses.gradient(params.loss, f, y, block.g)
    tau = min(weight * params.C, loss / (columns_changed(f) * k_tt))
    r = -1
    for o in range(f.size):
        f[o] = -tau * block.g[o]
    if model.size[0] == params.budget:
        r = cheapest(model, block, j, k_tt)
        for o in range(f.size):
            f[o] += model.coef[0, o, r] * np.float64(block.K[r, j]) / k_tt
    k = keep(model, block, j, params.budget, r)
    add(model, block, j, k, 1.0, f)


@inner
def cheapest(model, block, j, k_tt):
    """The point whose term is nearest to the span of event j."""
    best, least = 0, np.inf
    for r in range(model.size[0]):
        k_rt = np.float64(block.K[r, j])
        cost = square(model, r) * (point_value(model, block.kernel, r) - k_rt * k_rt / k_tt)
        if cost < least:
            best, least = r, cost
    return best


def configure(problem: Problem) -> tuple[Params, Needs]:
    return Params(loss_of(problem), problem.options["C"], budget_of(problem)), Needs()


LEARNER = Learner(
    name="bpas",
    title="Budgeted Passive-Aggressive, simple",
    citation="Z. Wang, S. Vucetic: Online Passive-Aggressive Algorithms on a Budget, AISTATS, 2010",
    loop=loop.kernel_loop(step),
    configure=configure,
    start=no_points,
    bound=budgeted,
    certificate=point_count,
    merge=Merge(points=to_budget),
)


class _BPAS(OnlineEstimator):
    """The parameters that all tasks share."""

    learner = LEARNER
    C: float = parameter(default=1.0, allowed=POSITIVE, search=Log(0.01, 10.0), doc="Aggressiveness: the cap of a step.")
    budget: int = parameter(default=100, allowed=Whole(1), doc="The largest number of points.")


class BPASClassifier(_BPAS, OnlineClassifier):
    """Budgeted passive-aggressive classification: the point whose term the new event can best stand in for gives way.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from kernling.baselines import BPASClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> model = BPASClassifier(gamma=0.1, random_state=0)
    >>> labels = model.predict_then_learn(X / 16.0, y)
    >>> print(f"{(labels != y).mean():.2f} mistakes, {model.n_support_} points")
    0.10 mistakes, 100 points
    """

    loss = "hinge"


class BPASRegressor(_BPAS, Tube, OnlineRegressor):
    """Budgeted passive-aggressive regression.

    Examples
    --------
    >>> import numpy as np
    >>> from kernling.baselines import BPASRegressor
    >>> X = np.random.default_rng(0).uniform(-3, 3, size=(2000, 1))
    >>> model = BPASRegressor(gamma=1.0, random_state=0).fit(X, np.sin(X[:, 0]))
    >>> print(f"{model.score(X, np.sin(X[:, 0])):.2f} with {model.n_support_} points")
    0.99 with 39 points
    """
