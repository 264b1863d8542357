"""BPA-S, budgeted passive-aggressive learning that shifts a point.

Z. Wang, S. Vucetic: Online Passive-Aggressive Algorithms on a Budget.  International Conference on Artificial Intelligence and
Statistics (2010).

PA-I; once the budget is full, a point r is replaced by x_t such that the model changes as little as possible: r and the
coefficient b of x_t minimise

    1/2 ||b K(x_t, .) - a_r K(x_r, .)||^2 + C max(0, 1 - y f(x_t)).

That has a closed form. b = a_r K_rt / K_tt + tau y with the step tau = min(C, l / K_tt) of PA-I, whatever r is, and r is the
point with the smallest a_r^2 (K_rr - K_rt^2 / K_tt). So a step considers each point once, where the paper solves a problem
for each.

Several classes: rows of coefficients, squares summed over columns, and tau = min(C, l / (2 K_tt)).  Regression: the
epsilon-insensitive loss.  A sample weight multiplies C.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..compiler import inline, inner
from ..components.eviction import columns_changed, event_value, point_value, square, store
from ..core import losses
from ..core.updates import add
from ..driver import loops
from ..estimators.examples import Example
from ..estimators.learner import Learner, Needs, Problem, budget_of, loss_of
from ..estimators.options import Aggressive, Budget, TubeRegressor
from ..estimators.tasks import OnlineClassifier


class Params(NamedTuple):
    loss: losses.Loss
    C: float
    budget: int


@inline
def step(params, state, block, j, f, y, weight, u):
    model = state.model
    k_tt = event_value(block, j)
    loss = losses.value(params.loss, f, y)
    if loss <= 0.0 or k_tt <= 0.0:  # if K_tt = 0, nothing can change the score
        return
    losses.gradient(params.loss, f, y, block.g)
    tau = min(weight * params.C, loss / (columns_changed(f) * k_tt))
    r = -1
    for o in range(f.size):
        f[o] = -tau * block.g[o]
    if model.size[0] == params.budget:
        r = cheapest(model, block, j, k_tt)
        for o in range(f.size):
            f[o] += model.coef[0, model.places[o], r] * np.float64(block.K[r, j]) / k_tt
    k = store(model, block, j, params.budget, r)
    add(model, block, j, k, 1.0, f)


@inner
def cheapest(model, block, j, k_tt):
    """Return the point whose term is nearest to the span of event j."""
    best, least = 0, np.inf
    for r in range(model.size[0]):
        k_rt = np.float64(block.K[r, j])
        cost = square(model, r) * (point_value(model, block.kernel, r) - k_rt * k_rt / k_tt)
        if cost < least:
            best, least = r, cost
    return best


def configure(problem: Problem) -> tuple[Params, Needs]:
    return Params(loss_of(problem), problem.options["C"], budget_of(problem)), Needs()


LEARNER = Learner(__name__, loops.kernel_loop(step), configure)


class BPASClassifier(Aggressive, Budget, OnlineClassifier):
    """Budgeted passive-aggressive classification: the new event replaces the point whose term it approximates best."""

    learner = LEARNER
    example = Example("0.86", random_state=0)


class BPASRegressor(Aggressive, Budget, TubeRegressor):
    """Budgeted passive-aggressive regression."""

    learner = LEARNER
    example = Example("1.00", gamma=1.0, random_state=0)
