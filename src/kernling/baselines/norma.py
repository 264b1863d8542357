"""NORMA, the naive online R_reg minimisation algorithm.

J. Kivinen, A. J. Smola, R. C. Williamson: Online Learning with Kernels.  IEEE Transactions on Signal Processing 52 (2004).

f <- (1 - eta_t lam) f - eta_t l'(f(x_t)) K(x_t, .), with eta_t = eta / sqrt(t) or constant.  Old terms shrink with every event,
so removing all but the newest ``budget`` of them changes little.

Departures from the paper, each with its reason:

- The budget counts stored terms; the paper's tau counts events, of which those without loss have no term.
- A margin of exactly 1 causes no loss.
- The variants that adapt the margin or the tube (nu) are not implemented: the comparisons do not use them.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from ..compiler import inline
from ..components.eviction import oldest, store
from ..core import losses
from ..core.expansion import EVENTS, SCALE
from ..core.updates import add, renormalise
from ..driver import loops
from ..estimators.constraints import OneOf
from ..estimators.examples import Example
from ..estimators.learner import (
    Learner,
    Needs,
    PointState,
    Problem,
    budget_of,
    check_shrinkage,
    decay_of,
    loss_of,
    point_count,
)
from ..estimators.options import Forgets, LossClassifier, OptionalBudget, RegularisedSteps, StepLossRegressor
from ..estimators.parameters import parameter


class Params(NamedTuple):
    loss: losses.Loss
    eta: float
    diminishing: bool
    lam: float
    budget: int


@inline
def step(params, state, block, j, f, y, weight, u):
    model = state.model
    eta = params.eta / math.sqrt(model.clock[EVENTS]) if params.diminishing else params.eta
    lossy = losses.gradient(params.loss, f, y, block.g)
    model.clock[SCALE] *= 1.0 - eta * params.lam
    renormalise(model, block, j)
    if lossy:
        k = store(model, block, j, params.budget, oldest(model))
        add(model, block, j, k, -weight * eta, block.g)


def configure(problem: Problem) -> tuple[Params, Needs]:
    o = problem.options
    check_shrinkage(problem)
    params = Params(loss_of(problem), o["eta"], o["step"] == "diminishing", o["lam"], budget_of(problem))
    return params, Needs(decay=decay_of(problem))


def certificate(params: Params, state: PointState, problem: Problem) -> dict[str, float]:
    """Return truncation, a bound on the norm of the removed terms for constant steps and a loss whose slope is bounded."""
    found = point_count(params, state, problem)
    if params.lam > 0.0 and not params.diminishing and "budget" in found:
        slope = losses.lipschitz(problem.options["loss"], 0.0, problem.outputs)
        found["truncation"] = slope * (1.0 - params.eta * params.lam) ** params.budget / params.lam
    return {name: value for name, value in found.items() if math.isfinite(value)}


LEARNER = Learner(
    __name__,
    loops.kernel_loop(step),
    configure,
    certificate=certificate,
    meanings={"truncation": "The norm of the terms that were removed is at most this, for sample weights of 1."},
)


class _NORMA(RegularisedSteps, OptionalBudget, Forgets):
    """Parameters shared by all tasks."""

    learner = LEARNER
    lam: float = parameter(default=0.01, doc="Weight of the regulariser; must be less than 1 / eta.")
    step: str = parameter(
        default="constant", allowed=OneOf(("constant", "diminishing")), doc="Whether the step size is eta, or eta / sqrt(t)."
    )
    budget: int | None = parameter(default=None, doc="Number of newest terms to keep; by default all are kept.")


class NORMAClassifier(_NORMA, LossClassifier):
    """Online regularised risk minimisation with kernels: gradient steps with shrinking of old terms.

    Without a budget, the default, it grows with the stream, as published.
    """

    example = Example("0.78", random_state=0)


class NORMARegressor(_NORMA, StepLossRegressor):
    """Online regularised risk minimisation with kernels for regression.

    Without a budget, the default, it grows with the stream, as published.
    """

    example = Example("1.00", gamma=1.0, random_state=0)
