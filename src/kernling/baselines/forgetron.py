"""The self-tuned Forgetron.

O. Dekel, S. Shalev-Shwartz, Y. Singer: The Forgetron: A Kernel-Based Perceptron on a Budget.
SIAM Journal on Computing 37 (2008).

A perceptron that, on a mistake with a full budget, adds the event, then multiplies all coefficients by phi and removes the
oldest point r.  With sigma the weight of r, mu = y_r f(x_r) and

    Psi(phi) = (sigma phi)^2 + 2 sigma phi (1 - phi mu),

phi is the largest number in (0, 1] for which the sum Q of all Psi so far stays within 15/32 of the number of mistakes M.

Departures from the paper, each with its reason:

- Several classes (not in the paper): a is the row of coefficients of r and sigma its largest entry; (sigma phi)^2 becomes
  phi^2 |a|^2 and sigma mu becomes <a, f(x_r)>.
- Regression (not in the paper): as in the perceptron, a residual outside of the tube is a mistake, and the step is eta times
  its sign, which takes the place of the label; sigma and mu are in units of eta.
- K(x, x) may differ from 1; the mistake bound assumes that it does not.
"""

from __future__ import annotations

import math
from typing import Annotated, NamedTuple

import numpy as np

from ..compiler import inline, inner
from ..components.eviction import mistaken, oldest, point_scores, point_value, square, store
from ..core import losses
from ..core.expansion import SCALE, Expansion
from ..core.shapes import declared
from ..core.updates import add, renormalise
from ..driver import loops
from ..estimators.examples import Example
from ..estimators.learner import Learner, Needs, Problem, budget_of, empty_expansion, loss_of, point_count
from ..estimators.options import Budget, StepRegressor
from ..estimators.tasks import OnlineClassifier
from ..merging.rules import Merge, each

MISTAKES, DAMAGE, LEAST = range(3)  # in stats: M, Q and the smallest phi


class Params(NamedTuple):
    loss: losses.Loss
    eta: float
    budget: int


@declared()
class State(NamedTuple):
    model: Expansion
    stats: Annotated[np.ndarray, "counts", "coefficients", "0..1"]


@inline
def step(params, state, block, j, f, y, weight, u):
    model, stats = state.model, state.stats
    if mistaken(params.loss, f, y, block.g):
        stats[MISTAKES] += 1.0
        r = -1
        phi = 1.0
        if model.size[0] == params.budget:
            r = oldest(model)
            phi = shrinkage(state, block, j, f, weight, r, params.eta)
            model.clock[SCALE] *= phi
            renormalise(model, block, j)
        k = store(model, block, j, params.budget, r)
        add(model, block, j, k, -weight * params.eta * phi, block.g)


@inner
def shrinkage(state, block, j, f, weight, r, eta):
    """Return the largest phi that the bound on Q allows, and update Q."""
    model, stats = state.model, state.stats
    scale = model.clock[SCALE] / eta
    point_scores(model, block, r, f)
    sigma, agreement = 0.0, 0.0
    for o in range(f.size):
        a = scale * model.coef[0, model.places[o], r]
        sigma = max(sigma, abs(a))
        agreement += a * (scale * f[o] - weight * block.g[o] * np.float64(block.K[r, j]))  # f including the new event
    curve = scale * scale * square(model, r) * point_value(model, block.kernel, r) - 2.0 * agreement
    room = 15.0 / 32.0 * stats[MISTAKES] - stats[DAMAGE]
    phi = 1.0  # Psi is curve phi^2 + 2 sigma phi
    if curve + 2.0 * sigma > room:
        phi = room / (sigma + math.sqrt(max(0.0, sigma * sigma + curve * room)))
    stats[DAMAGE] += curve * phi * phi + 2.0 * sigma * phi
    stats[LEAST] = min(stats[LEAST], phi)
    return phi


def configure(problem: Problem) -> tuple[Params, Needs]:
    return Params(loss_of(problem), problem.options.get("eta", 1.0), budget_of(problem)), Needs()


def start(params: Params, needs: Needs, problem: Problem, rng: np.random.Generator) -> State:
    return State(empty_expansion(needs, problem, tags=1), np.array([0.0, 0.0, 1.0]))


def certificate(params: Params, state: State, problem: Problem) -> dict[str, float]:
    """Return the bound: if ||g|| <= largest_norm and budget >= 83, then M <= 2 ||g||^2 + 4 times g's total hinge loss.

    It is for labels only.
    """
    n = params.budget + 1
    bound = {} if problem.task == "regression" else {"largest_norm": 0.25 * math.sqrt(n / math.log(n))}
    return {
        **point_count(params, state, problem),
        "mistakes": float(state.stats[MISTAKES]),
        "damage": float(state.stats[DAMAGE]),
        "smallest_phi": float(state.stats[LEAST]),
        **bound,
    }


LEARNER = Learner(
    __name__,
    loops.kernel_loop(step),
    configure,
    start,
    certificate=certificate,
    meanings={
        "mistakes": "Mistakes so far, M in the paper.",
        "damage": "Sum of the damages of removed points, at most 15/32 of the mistakes.",
        "smallest_phi": "Smallest factor by which coefficients were shrunk.",
        "largest_norm": "If ||g|| is at most this and budget at least 83, mistakes <= 2 ||g||^2 + 4 hinge losses of g.",
    },
    merge=Merge(arrays={"stats": each("total", "total", "smallest")}),
)


class ForgetronClassifier(Budget, OnlineClassifier):
    """The Forgetron: a perceptron that shrinks its coefficients as little as possible and removes its oldest point."""

    learner = LEARNER
    example = Example("0.73", random_state=0)


class ForgetronRegressor(Budget, StepRegressor):
    """The Forgetron for regression: a residual outside of the tube is a mistake."""

    learner = LEARNER
    example = Example("1.00", gamma=1.0, random_state=0)
