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

from ..core import drive, losses
from ..core.budget import keep, oldest
from ..core.changes import add, renormalise
from ..core.combine import Merge, to_budget
from ..core.expansion import EVENTS, SCALE
from ..core.jit import inline
from ..estimators.parameters import CLASS_WEIGHT, FORGET, POSITIVE, OneOf, Real, Rule
from ..estimators.tasks import OnlineClassifier, OnlineRegressor
from ..learners.base import Learner, Needs, Problem, kept_share
from .shared import OPTIONAL_BUDGET, Points, budget_of, budgeted, loss_of, no_points, point_count

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
    loop=drive.kernel_loop(step),
    configure=configure,
    start=no_points,
    bound=budgeted,
    certificate=certificate,
    merge=Merge(points=to_budget),
)


_RULES: dict[str, tuple[Rule, ...]] = {
    "forget": FORGET,
    "eta": (POSITIVE,),
    "lam": (Real(0.0),),
    "step": (OneOf(STEPS),),
    "budget": OPTIONAL_BUDGET,
}


class NORMAClassifier(OnlineClassifier):
    """Online regularised risk minimisation with kernels: gradient steps, and old terms that fade.

    Parameters
    ----------
    loss : {"hinge", "logistic", "softmax"}
        For more than two classes hinge and logistic act on the margin over the best wrong class.
    eta : float
        Step size; eta * lam is less than 1.
    lam : float
        Regularisation.
    step : {"constant", "diminishing"}
        eta, or eta / sqrt(t).
    budget : int, optional
        The number of newest terms to keep; without it, all are.
    forget, kernel, gamma, degree, coef0, class_weight, random_state, dtype, block_size, passes, shuffle, n_jobs, verbose
        As in :class:`kernling.AVMClassifier`; the kernels "poly" and "linear" work too.

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

    learner = "norma"
    rules = {**_RULES, "loss": (OneOf(("hinge", "logistic", "softmax")),), "class_weight": CLASS_WEIGHT}

    def __init__(
        self, loss="hinge", *, eta=0.5, lam=0.01, step="constant", budget=None, forget=None, kernel="rbf", gamma="scale",
        degree=3, coef0=0.0, class_weight=None, random_state=None, dtype="float64", block_size=128, passes=1, shuffle=False,
        n_jobs=None, verbose=False,
    ):  # fmt: skip
        self._remember(locals())


class NORMARegressor(OnlineRegressor):
    """Online regularised risk minimisation with kernels for regression.

    Parameters
    ----------
    loss : {"epsilon_insensitive", "l2", "l1"}
        Of the residual.
    epsilon : float
        Half the width of the tube without loss.
    eta, lam, step, budget, forget, kernel, gamma, degree, coef0, random_state, dtype, block_size, passes, shuffle,\
    n_jobs, verbose
        As in :class:`NORMAClassifier`.

    Examples
    --------
    >>> import numpy as np
    >>> from kernling.baselines import NORMARegressor
    >>> X = np.random.default_rng(0).uniform(-3, 3, size=(2000, 1))
    >>> model = NORMARegressor(gamma=1.0, random_state=0).fit(X, np.sin(X[:, 0]))
    >>> print(f"{model.score(X, np.sin(X[:, 0])):.2f} with {model.n_support_} points")
    0.99 with 119 points
    """

    learner = "norma"
    rules = {**_RULES, "loss": (OneOf(("epsilon_insensitive", "l2", "l1")),), "epsilon": (Real(0.0),)}

    def __init__(
        self, loss="epsilon_insensitive", *, eta=0.2, lam=0.01, step="constant", epsilon=0.1, budget=None, forget=None,
        kernel="rbf", gamma="scale", degree=3, coef0=0.0, random_state=None, dtype="float64", block_size=128, passes=1,
        shuffle=False, n_jobs=None, verbose=False,
    ):  # fmt: skip
        self._remember(locals())
