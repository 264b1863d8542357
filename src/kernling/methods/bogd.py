"""BOGD, bounded online gradient descent.

P. Zhao, J. Wang, P. Wu, R. Jin, S. C. H. Hoi: Fast Bounded Online Gradient Descent Algorithms for Scalable Kernel-Based Online
Learning.  International Conference on Machine Learning (2012).

f <- (1 - eta lam) f - eta l'(f(x_t)) K(x_t, .). When that is one point too many, one of the B old points goes, i with
probability p_i, and the others are divided by 1 - p_j, which keeps the mean of the model what it was. Then the model is
multiplied by what brings its largest coefficient down to eta ``clip``, if it is larger.

- ``removal="uniform"``: p_i = 1/B.
- ``removal="weighted"`` (BOGD++): the chance to stay, 1 - p_i, is proportional to |a_i| sqrt(K_ii), and at most 1.

Departures from the paper, each with its reason:

- Chances to stay that would be more than 1 are 1, and the others are adjusted so that they add up to B - 1: the paper's formula
  leaves [0, 1] when one coefficient is much larger than the rest.
- A margin of exactly 1 is no loss.  Several classes by rows of coefficients.
- Regression by the same removal, since it is the same gradient step.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from ..components.eviction import keep, smallest, term_squares
from ..core import loop, losses
from ..core.expansion import SCALE
from ..core.jit import inline, inner
from ..core.updates import _add_column, add, renormalise
from ..estimators.constraints import POSITIVE, OneOf, Real, Whole
from ..estimators.learner import Learner, Needs, Problem, kept_share
from ..estimators.options import Forgets, Tube
from ..estimators.parameters import parameter
from ..estimators.ranges import Log
from ..estimators.shared import budget_of, budgeted, loss_of, no_points, point_count
from ..estimators.tasks import OnlineClassifier, OnlineRegressor
from ..merging.rules import Merge, to_budget


class Params(NamedTuple):
    loss: losses.Loss
    eta: float
    lam: float
    budget: int
    weighted: bool
    clip: float


@inline
def step(params, state, block, j, f, y, weight, u):
    model = state.model
    lossy = losses.gradient(params.loss, f, y, block.g)
    model.clock[SCALE] *= 1.0 - params.eta * params.lam
    if lossy:
        full = model.size[0] == params.budget
        victim = -1
        if full and params.weighted:
            victim = choose_by_weight(model, block, j, u[0])
        elif full:
            victim = int(u[0] * params.budget)
            model.clock[SCALE] *= params.budget / max(1.0, params.budget - 1.0)
        k = keep(model, block, j, params.budget, victim)
        add(model, block, j, k, -weight * params.eta, block.g)
        if full:
            clip(model, block, params.eta * params.clip)
    renormalise(model, block, j)


@inner
def choose_by_weight(model, block, j, u):
    """The point that goes; the others are divided by their chances to stay."""
    size = model.size[0]
    weights = block.work[0]
    term_squares(model, block.kernel, weights)
    for k in range(size):
        weights[k] = math.sqrt(weights[k])
    factor = stay_factor(weights, size)
    victim, decided = size - 1, False
    for k in range(size):
        weights[k] = min(1.0, factor * weights[k])
        if not decided and weights[k] < 1.0:
            victim = k
            decided = u < 1.0 - weights[k]
            u -= 1.0 - weights[k]
    for k in range(size):
        if k != victim and 0.0 < weights[k] < 1.0:
            for o in range(model.coef.shape[1]):
                _add_column(model, block, j, k, 0, o, model.coef[0, o, k] * (1.0 / weights[k] - 1.0))
    return victim


@inner
def stay_factor(weights, size):
    """The factor with which the chances to stay, min(1, factor * weight), add up to size - 1."""
    factor, before = 0.0, -1.0
    while True:
        sure, rest = 0.0, 0.0
        for k in range(size):
            if factor * weights[k] >= 1.0:
                sure += 1.0
            else:
                rest += weights[k]
        if sure == before or rest <= 0.0:
            return factor
        before = sure
        factor = (size - 1.0 - sure) / rest


@inner
def clip(model, block, largest):
    """Shrink the model until no coefficient is larger than this."""
    size = model.size[0]
    top = 0.0
    for o in range(model.coef.shape[1]):
        for k in range(size):
            block.work[0, k] = -abs(model.coef[0, o, k])
        top = max(top, -smallest(block.work[0], size))
    top *= model.clock[SCALE]
    if top > largest:
        model.clock[SCALE] *= largest / top


def configure(problem: Problem) -> tuple[Params, Needs]:
    o = problem.options
    if o["eta"] * o["lam"] >= 1.0:
        raise ValueError(f"eta * lam must be less than 1, but eta={o['eta']:g} and lam={o['lam']:g}")
    params = Params(loss_of(problem), o["eta"], o["lam"], budget_of(problem), o["removal"] == "weighted", o["clip"])
    return params, Needs(uniforms=1, keep=kept_share(problem))


LEARNER = Learner(
    name="bogd",
    title="Bounded Online Gradient Descent",
    citation=(
        "P. Zhao, J. Wang, P. Wu, R. Jin, S. C. H. Hoi: "
        "Fast Bounded Online Gradient Descent Algorithms for Scalable Kernel-Based Online Learning, ICML, 2012"
    ),
    loop=loop.kernel_loop(step),
    configure=configure,
    start=no_points,
    bound=budgeted,
    certificate=point_count,
    merge=Merge(points=to_budget),
)


class _BOGD(Forgets):
    """The parameters that all tasks share."""

    learner = LEARNER
    eta: float = parameter(default=0.3, allowed=POSITIVE, search=Log(0.01, 10.0), doc="Step size; eta * lam is less than 1.")
    lam: float = parameter(default=0.01, allowed=Real(0.0), search=Log(1e-08, 0.01), doc="Regularisation.")
    budget: int = parameter(default=100, allowed=Whole(1), doc="The largest number of points.")
    removal: str = parameter(
        default="uniform",
        allowed=OneOf(("uniform", "weighted")),
        doc="All points alike, or small terms more often (BOGD++).",
    )
    clip: float = parameter(default=10.0, allowed=Real(1.0), doc="The largest coefficient of a full model, in units of eta.")


class BOGDClassifier(_BOGD, OnlineClassifier):
    """Bounded online gradient descent: a random point goes, and the others grow so that the model's mean stays.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from kernling.baselines import BOGDClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> model = BOGDClassifier(gamma=0.1, random_state=0)
    >>> labels = model.predict_then_learn(X / 16.0, y)
    >>> print(f"{(labels != y).mean():.2f} mistakes, {model.n_support_} points")
    0.33 mistakes, 100 points
    """

    loss: str = parameter(
        default="hinge",
        allowed=OneOf(("hinge", "logistic")),
        doc="For more than two classes, of the margin over the best wrong class.",
    )


class BOGDRegressor(_BOGD, Tube, OnlineRegressor):
    """Bounded online gradient descent for regression.

    Examples
    --------
    >>> import numpy as np
    >>> from kernling.baselines import BOGDRegressor
    >>> X = np.random.default_rng(0).uniform(-3, 3, size=(2000, 1))
    >>> model = BOGDRegressor(gamma=1.0, random_state=0).fit(X, np.sin(X[:, 0]))
    >>> print(f"{model.score(X, np.sin(X[:, 0])):.2f} with {model.n_support_} points")
    -0.13 with 100 points
    """

    loss: str = parameter(
        default="epsilon_insensitive",
        allowed=OneOf(("epsilon_insensitive", "l2", "l1")),
        doc="Of the residual.",
    )
