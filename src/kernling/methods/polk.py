"""POLK, parsimonious online learning with kernels.

A. Koppel, G. Warnell, E. Stump, A. Ribeiro: Parsimonious Online Learning with Kernels via Sparse Projections in Function Space.
Journal of Machine Learning Research 20 (2019).

Mini-batch t = 0, 1, ...: with g_b the gradient of the loss at the scores f_t(x_b),

    f~ = (1 - eta lam) f_t - (eta / B) sum_b g_b K(x_b, .),

then destructive kernel orthogonal matching pursuit: points are removed, the one that costs least first, and the rest is
refitted each time, while ||f - f~|| <= eps: parsimony eta^1.5 with constant steps, parsimony eta^2 with eta = eta_0 / (t + 1).

Departures from the paper, each with its reason:

- The gradient of a batch is the mean (a sum diverges with the printed step sizes).
- All classes share one dictionary, and errors are summed over classes; eps bounds the norm, not its square.
- The gradient of the logistic loss is sigmoid(f) - y at f_t; the paper's (21) has the slope of the sigmoid there.
- ``max_points``: beyond this limit points are removed even if the error exceeds eps.
- A row without loss is not added at all: its coefficient would be 0.
- ``prune="random"`` is the paper's Remark 6, with refitting: without it, an eps below a single coefficient would remove
nothing.
"""

from __future__ import annotations

from functools import partial
from typing import Annotated, NamedTuple

import numpy as np

from ..compiler import inline
from ..components.gram import Gram, new_gram
from ..components.pruning import Pruning, add_and_prune
from ..components.stats import EPS, HEAVIEST_ROW, LARGEST_ERROR, LARGEST_ORDER, LARGEST_SELF, LARGEST_SHARE, POLK_STATS, STEPS
from ..core import losses
from ..core.expansion import Expansion
from ..core.kernels import self_value
from ..core.shapes import declared
from ..core.updates import read_scores, scale_model
from ..driver.events import learn_waiting
from ..driver.minibatch import Waiting, batch_loop, gather, new_waiting
from ..estimators.constraints import NOTHING, OneOf, Real, Whole
from ..estimators.examples import Example
from ..estimators.learner import Learner, Needs, Problem, check_shrinkage, decay_of, empty_expansion, loss_of
from ..estimators.options import Forgets, LossClassifier, RegularisedSteps, SquaredLossRegressor
from ..estimators.parameters import parameter
from ..estimators.published import Published
from ..estimators.ranges import Log
from ..merging.reduction import Reduction
from ..merging.rules import Merge, each
from ..theory import polk as theory


class Params(NamedTuple):
    loss: losses.Loss
    eta: float
    lam: float
    decay: float  # factor by which the model is multiplied after each event, to forget
    parsimony: float
    diminishing: bool
    random_order: bool
    max_points: float


@declared()
class State(NamedTuple):
    model: Expansion
    gram: Gram
    waiting: Waiting
    # what certificates need, by the names of stats.py
    stats: Annotated[
        np.ndarray, "not negative", "not negative", "not negative", "not negative", "counts", "not negative", "weights"
    ]


@inline
def step(params, state, batch):
    model, waiting, block, work = state.model, state.waiting, batch.block, batch.work
    rows = waiting.count[0]
    t = state.stats[STEPS]
    eta = params.eta / (t + 1.0) if params.diminishing else params.eta
    eps = params.parsimony * eta ** (2.0 if params.diminishing else 1.5)
    n = 0  # rows with a loss
    for b in range(rows):
        note_row(state.stats, self_value(block.kernel, np.float64(block.norms[b])), waiting.weights[b])
        read_scores(model, block, b, block.f)
        losses.gradient(params.loss, block.f, waiting.targets[b], block.g)
        if has_loss(block.g, -eta / rows * waiting.weights[b], work.new[n]):
            batch.chosen[n] = b
            n += 1
    gather(model, batch, n, work.cross, work.own)
    scale_model(model, block, rows, params.decay ** float(rows) * (1.0 - eta * params.lam))
    u = waiting.uniforms[0] if params.random_order else -1.0
    error = add_and_prune(model, state.gram, work, block.X[:n], block.norms, eps, params.max_points, u)
    remember(state.stats, model.size[0], eps, error)


@inline
def has_loss(g, factor, out):
    """Write the coefficients of a row, factor * g; return whether any is not 0."""
    lossy = False
    for o in range(g.size):
        out[o] = factor * g[o]
        lossy = lossy or out[o] != 0.0
    return lossy


@inline
def note_row(stats, k_xx, weight):
    stats[LARGEST_SELF] = max(stats[LARGEST_SELF], k_xx)
    stats[HEAVIEST_ROW] = max(stats[HEAVIEST_ROW], weight)


@inline
def remember(stats, size, eps, error):
    """Keep what the certificate says."""
    stats[STEPS] += 1.0
    stats[EPS] = eps
    stats[LARGEST_ERROR] = max(stats[LARGEST_ERROR], error)
    if eps > 0.0:
        stats[LARGEST_SHARE] = max(stats[LARGEST_SHARE], error / eps)
    stats[LARGEST_ORDER] = max(stats[LARGEST_ORDER], float(size))


def configure(problem: Problem) -> tuple[Params, Needs]:
    check_shrinkage(problem)
    o = problem.options
    params = Params(
        loss=loss_of(problem),
        eta=o["eta"],
        lam=o["lam"],
        decay=decay_of(problem),
        parsimony=o["parsimony"],
        diminishing=o["step"] == "diminishing",
        random_order=o["prune"] == "random",
        max_points=float(o["max_points"] or np.inf),
    )
    return params, Needs(uniforms=int(params.random_order), room=o["batch_size"])


def start(params: Params, needs: Needs, problem: Problem, rng: np.random.Generator) -> State:
    model = empty_expansion(needs, problem)
    return State(model, new_gram(), new_waiting(problem.options["batch_size"], problem.d, problem.dtype), np.zeros(POLK_STATS))


def within_eps(params: Params, a: State, b: State) -> Reduction:
    """Prune the union like the model of a step, with the larger eps of both last steps."""
    return Reduction(eps=float(max(a.stats[EPS], b.stats[EPS])), budget=params.max_points)


def bound(params: Params, t: int) -> float:
    """Return the maximum number of points."""
    return min(t, params.max_points)


LOOP = batch_loop(step, Pruning)
LEARNER = Learner(
    __name__,
    LOOP,
    configure,
    start,
    bound,
    theory.certificate,
    meanings=theory.MEANINGS,
    finish=partial(learn_waiting, LOOP),
    merge=Merge(points=within_eps, arrays={"stats": each("total", *["largest"] * (POLK_STATS - 1))}, steps={"stats": STEPS}),
)


class _POLK(RegularisedSteps, Forgets):
    """Parameters and attributes shared by all tasks."""

    learner = LEARNER
    published_settings = Published(
        required=("gamma", "eta", "lam", "parsimony"),
        choices={"step": ("constant", "diminishing"), "prune": ("komp", "random")},
        values={"kernel": "rbf", "degree": 3, "coef0": 0.0, "batch_size": 1},
        off={"max_points": None, "forget": None},
    )
    eta: float = parameter(default=7.5, search=Log(0.1, 30.0))
    lam: float = parameter(default=1e-06, search=None, doc="Weight of the regulariser; must be less than 1 / eta.")
    parsimony: float = parameter(
        default=0.01,
        allowed=Real(0.0),
        search=Log(0.0001, 0.3),
        doc="K in eps = K eta^1.5, the radius of the ball within which points are pruned; larger values give smaller models.",
    )
    max_points: int | None = parameter(
        default=250,
        allowed=(NOTHING, Whole(1)),
        doc="Maximum number of points, even if pruning to it exceeds the error eps; None: no limit, as in the paper.",
    )
    step: str = parameter(
        default="constant",
        allowed=OneOf(("constant", "diminishing")),
        doc="Whether the step size is eta, or eta / (t + 1) with eps = K eta_t^2.",
    )
    batch_size: int = parameter(
        default=12,
        allowed=Whole(1),
        doc="Number of rows per step; rows of an incomplete batch wait for the next call of ``partial_fit``.",
    )
    prune: str = parameter(
        default="komp",
        allowed=OneOf(("komp", "random")),
        doc="Remove the cheapest point first, or points in random order until one exceeds the error.",
    )

    n_waiting_ = property(lambda self: int(self._fitted().waiting.count[0]), doc="Number of rows in the incomplete batch.")


class POLKClassifier(_POLK, LossClassifier):
    """Parsimonious online learning with kernels: gradient steps in function space, then pruning to at most 250 points."""

    example = Example("0.95", eta=20.0)
    published_settings = _POLK.published_settings.also(
        choices={"loss": ("hinge", "softmax", "squared_hinge")}, off={"class_weight": None}
    )
    loss: str = parameter(
        default="hinge",
        allowed=OneOf(("hinge", "squared_hinge", "logistic", "softmax")),
        doc="Loss of the margin; with more than two classes, all but softmax take the margin over the best wrong class.",
    )


class POLKRegressor(_POLK, SquaredLossRegressor):
    """Parsimonious online regression with kernels, on at most 250 points."""

    example = Example("1.00", gamma=1.0)
    published_settings = _POLK.published_settings.also(
        choices={"loss": ("l2",)}, off={"epsilon": 0.1, "standardise_target": False}
    )
    eta: float = parameter(
        default=1.0,
        search=Log(0.03, 1.9),
        doc='Step size; with the loss "l2" and a kernel bounded by 1, steps below 2 are stable.',
    )
    batch_size: int = parameter(default=8)
