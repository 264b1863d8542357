"""BPA-NN, budgeted passive-aggressive learning with a nearest neighbour.

Z. Wang, S. Vucetic: Online Passive-Aggressive Algorithms on a Budget.  International Conference on Artificial Intelligence and
Statistics (2010).

PA-I; once the budget is full, a point r is removed and its term is projected on the span V of x_t and of the point nearest to r
in feature space, with coefficients c = K_V^-1 k_Vr. r is the point with the smallest a_r^2 (K_rr - k_Vr'c), and tau y is added
to the coefficient of x_t, with the tau of PA-I, as in bpas.py.

Kernel values between points, and the nearest of each, are stored.  If x_t and the neighbour are equal up to rounding, V is
x_t alone.  Several classes, regression and weights as in bpas.py.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..compiler import inline, inner
from ..components.eviction import Pairs, columns_changed, event_value, new_pairs, set_pairs, square, store
from ..core import losses
from ..core.expansion import Expansion
from ..core.updates import add
from ..driver import loops
from ..estimators.examples import Example
from ..estimators.learner import Learner, Needs, Problem, empty_expansion
from ..estimators.options import Aggressive, Budget, TubeRegressor
from ..estimators.tasks import OnlineClassifier
from .bpas import Params, configure

ALIKE = 1e-10  # relative to K_tt K_nn: a smaller determinant counts as 0


class State(NamedTuple):
    model: Expansion
    pairs: Pairs


@inline
def step(params, state, block, j, f, y, weight, u):
    model, pairs = state.model, state.pairs
    k_tt = event_value(block, j)
    loss = losses.value(params.loss, f, y)
    if loss <= 0.0 or k_tt <= 0.0:
        return
    losses.gradient(params.loss, f, y, block.g)
    tau = min(weight * params.C, loss / (columns_changed(f) * k_tt))
    for o in range(f.size):
        f[o] = -tau * block.g[o]
    r = model.size[0]
    if r == params.budget:
        r = cheapest(state, block, j, k_tt)
        n = pairs.nearest[r]
        event_share, neighbour_share = shares(pairs, block, j, k_tt, r, n)
        for o in range(f.size):
            block.g[o] = model.coef[0, model.places[o], r]
            f[o] += event_share * block.g[o]
        if n >= 0:
            add(model, block, j, n, neighbour_share, block.g)
    set_pairs(pairs, model, block, j, r)
    k = store(model, block, j, params.budget, r)
    add(model, block, j, k, 1.0, f)


@inline
def shares(pairs, block, j, k_tt, r, n):
    """Return c, the shares of x_t and the neighbour n in the term of point r."""
    k_rt = np.float64(block.K[r, j])
    if n >= 0:
        k_nt, k_nn, k_rn = np.float64(block.K[n, j]), pairs.matrix[n, n], pairs.matrix[r, n]
        determinant = k_tt * k_nn - k_nt * k_nt
        if determinant > ALIKE * k_tt * k_nn:
            return (k_nn * k_rt - k_nt * k_rn) / determinant, (k_tt * k_rn - k_nt * k_rt) / determinant
    return k_rt / k_tt, 0.0


@inner
def cheapest(state, block, j, k_tt):
    """Return the point whose term changes least when it is projected."""
    model, pairs = state.model, state.pairs
    best, least = 0, np.inf
    for r in range(model.size[0]):
        n = pairs.nearest[r]
        event_share, neighbour_share = shares(pairs, block, j, k_tt, r, n)
        gap = pairs.matrix[r, r] - event_share * np.float64(block.K[r, j])
        if n >= 0:
            gap -= neighbour_share * pairs.matrix[r, n]
        cost = square(model, r) * gap
        if cost < least:
            best, least = r, cost
    return best


def start(params: Params, needs: Needs, problem: Problem, rng: np.random.Generator) -> State:
    return State(empty_expansion(needs, problem, tags=1), new_pairs())


LEARNER = Learner(__name__, loops.kernel_loop(step), configure, start)


class BPANNClassifier(Aggressive, Budget, OnlineClassifier):
    """Budgeted passive-aggressive classification: the term of a removed point is projected on the event and a neighbour."""

    learner = LEARNER
    example = Example("0.97", random_state=0)


class BPANNRegressor(Aggressive, Budget, TubeRegressor):
    """Budgeted passive-aggressive regression with a nearest neighbour."""

    learner = LEARNER
    example = Example("1.00", gamma=1.0, random_state=0)
