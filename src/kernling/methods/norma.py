"""NORMA, the naive online R_reg minimisation algorithm.

J. Kivinen, A. J. Smola, R. C. Williamson: Online Learning with Kernels.  IEEE Transactions on Signal Processing 52 (2004).

f <- (1 - eta_t lam) f - eta_t l'(f(x_t)) K(x_t, .), with eta_t = eta / sqrt(t) or constant.  Old terms shrink with every event,
so forgetting all but the newest ``budget`` of them changes little.

Departures from the paper, each with its reason:

- The budget counts stored terms; the paper's tau counts events, of which those without loss have no term.
- A margin of exactly 1 is no loss.
- The variants that adapt the margin or the tube (nu) are not here: the comparisons do without.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from ..components.eviction import keep, oldest
from ..core import loop, losses
from ..core.expansion import EVENTS, SCALE
from ..core.jit import inline
from ..core.updates import add, renormalise
from ..estimators.constraints import NOTHING, POSITIVE, OneOf, Real, Whole
from ..estimators.learner import Learner, Needs, Problem, kept_share
from ..estimators.options import Forgets, Tube
from ..estimators.parameters import parameter
from ..estimators.ranges import Log
from ..estimators.shared import Points, budget_of, budgeted, loss_of, no_points, point_count
from ..estimators.tasks import OnlineClassifier, OnlineRegressor
from ..merging.rules import Merge, to_budget

STEPS = ("constant", "diminishing")


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
        k = keep(model, block, j, params.budget, oldest(model))
        add(model, block, j, k, -weight * eta, block.g)


def configure(problem: Problem) -> tuple[Params, Needs]:
    o = problem.options
    if o["eta"] * o["lam"] >= 1.0:
        raise ValueError(f"eta * lam must be less than 1, but eta={o['eta']:g} and lam={o['lam']:g}")
    return Params(loss_of(problem), o["eta"], o["step"] == "diminishing", o["lam"], budget_of(problem)), Needs(
        keep=kept_share(problem)
    )


def certificate(params: Params, state: Points, problem: Problem) -> dict[str, float]:
    """With a constant step and a loss of slope at most 1, the terms beyond the budget have at most norm truncation."""
    found = point_count(params, state, problem)
    if params.lam > 0.0 and not params.diminishing and "budget" in found:
        found["truncation"] = (1.0 - params.eta * params.lam) ** params.budget / params.lam
    return found


LEARNER = Learner(
    name="norma",
    title="Naive Online R_reg Minimisation",
    citation=(
        "J. Kivinen, A. J. Smola, R. C. Williamson: "
        "Online Learning with Kernels, IEEE Transactions on Signal Processing 52, 2004"
    ),
    loop=loop.kernel_loop(step),
    configure=configure,
    start=no_points,
    bound=budgeted,
    certificate=certificate,
    merge=Merge(points=to_budget),
)


class _NORMA(Forgets):
    """The parameters that all tasks share."""

    learner = LEARNER
    eta: float = parameter(default=0.5, allowed=POSITIVE, search=Log(0.01, 10.0), doc="Step size; eta * lam is less than 1.")
    lam: float = parameter(default=0.01, allowed=Real(0.0), search=Log(1e-08, 0.01), doc="Regularisation.")
    step: str = parameter(default="constant", allowed=OneOf(("constant", "diminishing")), doc="eta, or eta / sqrt(t).")
    budget: int | None = parameter(
        default=None,
        allowed=(NOTHING, Whole(1)),
        doc="The number of newest terms to keep; without it, all are.",
    )


class NORMAClassifier(_NORMA, OnlineClassifier):
    """Online regularised risk minimisation with kernels: gradient steps, and old terms that fade.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from kernling.baselines import NORMAClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> model = NORMAClassifier(gamma=0.1, random_state=0)
    >>> labels = model.predict_then_learn(X / 16.0, y)
    >>> print(f"{(labels != y).mean():.2f} mistakes, {model.n_support_} points")
    0.11 mistakes, 1260 points
    """

    loss: str = parameter(
        default="hinge",
        allowed=OneOf(("hinge", "logistic", "softmax")),
        doc="For more than two classes hinge and logistic act on the margin over the best wrong class.",
    )


class NORMARegressor(_NORMA, Tube, OnlineRegressor):
    """Online regularised risk minimisation with kernels for regression.

    Examples
    --------
    >>> import numpy as np
    >>> from kernling.baselines import NORMARegressor
    >>> X = np.random.default_rng(0).uniform(-3, 3, size=(2000, 1))
    >>> model = NORMARegressor(gamma=1.0, random_state=0).fit(X, np.sin(X[:, 0]))
    >>> print(f"{model.score(X, np.sin(X[:, 0])):.2f} with {model.n_support_} points")
    0.99 with 119 points
    """

    loss: str = parameter(
        default="epsilon_insensitive",
        allowed=OneOf(("epsilon_insensitive", "l2", "l1")),
        doc="Of the residual.",
    )
    eta: float = parameter(default=0.2)
