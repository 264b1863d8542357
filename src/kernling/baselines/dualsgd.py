"""DualSGD, gradient descent in the kernel's space and in that of random features.

T. Le, T. D. Nguyen, V. Nguyen, D. Phung: Dual Space Gradient Descent for Online Learning.
Advances in Neural Information Processing Systems 29 (2016).

At event t = 1, 2, ..., with g the gradient of the loss at the score of both parts together,

    w <- (t-1)/t w - g / (lam t) Phi(x_t).

When the kernel part has more than B points, the k with the smallest coefficients (the oldest of equal ones: those of the hinge
all are) leave it: they move to the random part through their features z(x), or are removed.

Departure from the authors' code: frequencies have the standard deviation sqrt(2 gamma), which makes the features' kernel the
one that is asked for; theirs have 2 gamma.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ..core import drive, losses
from ..core.block import inner_product
from ..core.budget import lightest
from ..core.changes import add, anneal, insert, remove
from ..core.combine import Merge, to_budget
from ..core.expansion import EVENTS, SCALE, Expansion
from ..core.fourier import Linear, feature_scale, new_linear
from ..core.jit import inline, inner
from ..core.vector import sincos
from ..estimators.parameters import CLASS_WEIGHT, FEATURES, FORGET, POSITIVE, OneOf, Real, Rule, Whole
from ..estimators.tasks import OnlineClassifier, OnlineRegressor
from ..learners.base import Learner, Needs, Problem, empty_expansion, horizon
from .shared import BUDGET, budget_of, budgeted, loss_of


class Params(NamedTuple):
    loss: losses.Loss
    lam: float
    horizon: float
    budget: int
    leavers: int
    merge: bool


class State(NamedTuple):
    model: Expansion
    linear: Linear


@inline
def step(params, state, block, features, j, f, y, weight, u):
    model = state.model
    t = anneal(model, block, j, params.horizon)
    feature_scale(state.linear, (t - 1.0) / t)
    if losses.gradient(params.loss, f, y, block.g):
        add(model, block, j, insert(model, block, j, model.clock[EVENTS]), -weight / (params.lam * t), block.g)
        if model.size[0] > params.budget:
            make_room(params, state, block, j)


@inner
def make_room(params, state, block, j):
    for _ in range(min(params.leavers, state.model.size[0])):
        k = lightest(state.model, block)
        if params.merge:
            move(state.model, state.linear, k)
        remove(state.model, block, j, k)


@inner
def move(model, linear, k):
    """Add point k to the random part, through its features."""
    p = model.points[k]
    L = linear.frequencies.shape[0]
    number = p.dtype.type
    outputs = model.coef.shape[1]
    for i in range(L):
        sine, cosine = sincos(inner_product(linear.frequencies[i], p) + number(linear.phase[i]))
        for o in range(outputs):
            c = model.clock[SCALE] * model.coef[0, o, k] / math.sqrt(L)
            linear.coef[0, o, i] += c * cosine
            linear.coef[0, o, L + i] += c * sine
    if L == 0:  # the columns are the features
        for o in range(outputs):
            c = model.clock[SCALE] * model.coef[0, o, k]
            for i in range(p.size):
                linear.coef[0, o, i] += c * (np.float64(p[i]) + np.float64(model.centre[i]))


def configure(problem: Problem) -> tuple[Params, Needs]:
    o = problem.options
    merge = o["maintain"] == "merge"
    return Params(loss_of(problem), o["lam"], horizon(problem), budget_of(problem), o["n_leaving"], merge), Needs()


def start(params: Params, needs: Needs, problem: Problem, rng: np.random.Generator) -> State:
    o = problem.options
    return State(empty_expansion(needs, problem, tags=1), new_linear(problem, o["features"], o["n_components"], rng))


def certificate(params: Params, state: State, problem: Problem) -> dict[str, float]:
    """The absolute coefficients of one output, in both parts together, sum to at most coefficient_bound for weights of 1."""
    return {"points": state.model.stored, "points_bound": params.budget, "coefficient_bound": 1.0 / params.lam}


LEARNER = Learner(
    name="dualsgd",
    title="Dual Space Gradient Descent",
    citation="T. Le, T. D. Nguyen, V. Nguyen, D. Phung: Dual Space Gradient Descent for Online Learning, NIPS 29, 2016",
    loop=drive.dual_loop(step),
    configure=configure,
    start=start,
    bound=budgeted,
    certificate=certificate,
    merge=Merge(points=to_budget, harmonic=True),
)

_RULES: dict[str, tuple[Rule, ...]] = {
    "forget": FORGET,
    **FEATURES,
    "lam": (POSITIVE,),
    "budget": BUDGET,
    "n_leaving": (Whole(1),),
    "maintain": (OneOf(("merge", "remove")),),
}


class DualSGDClassifier(OnlineClassifier):
    """Dual space gradient descent for classification.

    Parameters
    ----------
    loss : {"hinge", "logistic"}
        For more than two classes they act on the margin over the best wrong class.
    lam : float
        Weight of the regulariser.
    budget : int
        Points in the kernel part at most.
    maintain : {"merge", "remove"}
        Whether points that leave the kernel part move to the random part or are forgotten.
    n_leaving : int
        How many leave when there are too many.
    n_components : int
        Number of random features: a cosine and a sine for each frequency, so an odd number is one more.
    features : {"fourier", "orthogonal", "linear"}
        Random frequencies, orthogonal ones, or the columns themselves.
    forget, kernel, gamma, degree, coef0, class_weight, random_state, dtype, block_size, passes, shuffle, n_jobs, verbose
        As in :class:`kernling.AVMClassifier`.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from kernling.baselines import DualSGDClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> model = DualSGDClassifier(gamma=0.1, n_components=400, random_state=0).fit(X / 16.0, y)
    >>> print(f"{model.score(X / 16.0, y):.2f} with {model.n_support_} points")
    0.93 with 88 points
    """

    learner = "dualsgd"
    rules = {**_RULES, "loss": (OneOf(("hinge", "logistic")),), "class_weight": CLASS_WEIGHT}

    def __init__(
        self, loss="hinge", *, lam=1e-4, budget=100, maintain="merge", n_leaving=20, n_components=200, features="fourier",
        forget=None, kernel="rbf", gamma="scale", degree=3, coef0=0.0, class_weight=None, random_state=None, dtype="float64",
        block_size=128, passes=1, shuffle=False, n_jobs=None, verbose=False,
    ):  # fmt: skip
        self._remember(locals())


class DualSGDRegressor(OnlineRegressor):
    """Dual space gradient descent for regression.

    Parameters
    ----------
    loss : {"epsilon_insensitive", "l1"}
        Of the residual.
    epsilon : float
        Half the width of the tube without loss.
    lam, budget, maintain, n_leaving, n_components, features, forget, kernel, gamma, degree, coef0, random_state, dtype,\
    block_size, passes, shuffle, n_jobs, verbose
        As in :class:`DualSGDClassifier`.

    Examples
    --------
    >>> import numpy as np
    >>> from kernling.baselines import DualSGDRegressor
    >>> X = np.random.default_rng(0).uniform(-3, 3, size=(2000, 1))
    >>> model = DualSGDRegressor(gamma=1.0, random_state=0).fit(X, np.sin(X[:, 0]))
    >>> print(f"{model.score(X, np.sin(X[:, 0])):.2f} with {model.n_support_} points")
    0.99 with 82 points
    """

    learner = "dualsgd"
    rules = {**_RULES, "loss": (OneOf(("epsilon_insensitive", "l1")),), "epsilon": (Real(0.0),)}

    def __init__(
        self, loss="epsilon_insensitive", *, lam=0.01, epsilon=0.1, budget=100, maintain="merge", n_leaving=20,
        n_components=200, features="fourier", forget=None, kernel="rbf", gamma="scale", degree=3, coef0=0.0, random_state=None,
        dtype="float64", block_size=128, passes=1, shuffle=False, n_jobs=None, verbose=False,
    ):  # fmt: skip
        self._remember(locals())
