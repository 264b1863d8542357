"""AVM, the Approximation Vector Machine.

T. Le, T. D. Nguyen, V. Nguyen, D. Phung: Approximation Vector Machines for Large-scale Online Learning.
Journal of Machine Learning Research 18 (2017).

At event t = 1, 2, ..., with alpha the derivative of the loss at the score w_t(x_t) and c the core point of x_t's cell,

    w <- (T-1)/T w - alpha / (lam T) Phi(c),        T = t - 1 + max(1, 1 / (eta lam)),

and for the l2 loss with lam <= 1 a projection on the ball ||w|| <= y_max / sqrt(lam).

Departures from the paper, each with its reason:

- Boxes have the diameter delta that the paper defines; in its Algorithm 4 it is twice that (``coverage="printed_box"``).
- A margin of exactly 1 causes no loss (the paper has both readings; its experiments use this one).
- An event stored without approximation (Bernoulli and margin rules) does not become a core point, so cores stay separated.
- ``eta``, the largest step.  In the paper T = t: the first step is 1 / lam, and on short streams the model is little more than
  its first events.
- Events without a loss open no cell by default (``zero_cells``): in the paper they do, though nothing is learned from them.
- ``max_cells``: once it is reached, an event outside of all cells takes the place of the core whose cell has not been visited
  for longest, and whose term in all models so far is projected on the five nearest points, or is dropped (``when_full``).  The
  paper's experiments used such a limit without mentioning it (500 cells on ijcnn1).
- The margin rule for regression, which the paper does not specify: approximate when the residual is within epsilon.
- Without ``y_max`` the ball uses the largest absolute target seen so far.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, NamedTuple

import numpy as np

from ..compiler import inline
from ..components.cells import CELLS, FARTHEST, LARGEST_WEIGHT, LARGEST_Y, STATS, merged_stats, open_cell, store
from ..components.coverage import BOX, CORE, VISITED, Coverage, cell_distance, find_cell
from ..components.norm import Norm, new_norm, norm_add, project_on_ball
from ..core import losses
from ..core.expansion import EVENTS, SCALE, Expansion
from ..core.shapes import declared
from ..core.updates import add, anneal
from ..driver import loops
from ..estimators.cells import Cells
from ..estimators.constraints import NOTHING, POSITIVE, OneOf, Real
from ..estimators.examples import Example
from ..estimators.learner import Learner, Needs, Problem, delay, empty_expansion, horizon
from ..estimators.options import Averaged, HarmonicSteps, IsotropicKernel, TubeRegressor
from ..estimators.parameters import parameter
from ..estimators.published import Published
from ..estimators.ranges import Log
from ..estimators.tasks import OnlineClassifier
from ..merging.reduction import Reduction
from ..merging.rules import Merge
from ..theory import avm as theory

ALWAYS, BERNOULLI, MARGIN = range(3)
RULES = {"always": ALWAYS, "bernoulli": BERNOULLI, "margin": MARGIN}


class Params(NamedTuple):
    loss: losses.Loss
    lam: float
    delay: float  # events by which t is advanced, which limits the first steps
    coverage: Coverage
    rule: int
    beta: float
    rho: float
    max_cells: float
    replace: bool  # whether a new cell replaces one when there are max_cells
    zero_cells: bool
    project: bool
    y_max: float
    horizon: float  # maximum of t, to forget


@declared()
class State(NamedTuple):
    model: Expansion
    norm: Norm  # for the l2 loss only
    # what certificates need, by the names of cells.py
    stats: Annotated[np.ndarray, "counts", "counts", "not negative", "0..1e50", "weights", "not negative", "counts"]

    def check(self, dimensions: Mapping[str, int]) -> None:
        """Raise unless the cells are those of the core points: one of them is replaced when there are too many."""
        cores = np.count_nonzero(self.model.tags[CORE] == 0.0)
        if self.stats[CELLS] != cores:
            raise ValueError(f"there are {self.stats[CELLS]:g} cells, but {cores} core points")


@inline
def step(params, state, block, j, f, y, weight, u):
    model, stats, alpha = state.model, state.stats, block.g
    t = anneal(model, block, j, params.delay, params.horizon)
    lossy = losses.gradient(params.loss, f, y, alpha)
    if approximates(params, f, y, model.clock[EVENTS], u):
        c = find_cell(params.coverage, model, block, j)
        if c >= 0:
            stats[FARTHEST] = max(stats[FARTHEST], cell_distance(params.coverage, model, block, j, c))
        elif lossy or params.zero_cells:
            c = open_cell(params, state, block, j)
        if c >= 0:
            model.tags[VISITED, c] = model.clock[EVENTS]
    else:
        c = store(state, block, j, 1.0) if lossy else -1
    stats[LARGEST_WEIGHT] = max(stats[LARGEST_WEIGHT], weight)
    stats[LARGEST_Y] = max(stats[LARGEST_Y], abs(y))
    if lossy and c >= 0:
        add(model, block, j, c, -weight / (params.lam * t), alpha)
        norm_add(state.norm, model, c, -weight * alpha[0] / (params.lam * t * model.clock[SCALE]))
    if params.project:
        y_max = params.y_max if params.y_max > 0.0 else stats[LARGEST_Y]
        project_on_ball(state.norm, model, block, j, y_max / math.sqrt(params.lam))


@inline
def approximates(params, f, y, t, u):
    if params.rule == ALWAYS:
        return True
    if params.rule == BERNOULLI:
        return u[0] < 1.0 - params.beta / t**params.rho
    if losses.is_regression(params.loss):
        return abs(y - f[0]) <= params.loss.width
    return losses.margin(f, y) >= 1.0


def configure(problem: Problem) -> tuple[Params, Needs]:
    o = problem.options
    coverage = Coverage.of(o["coverage"], o["delta"], problem.d, problem.dtype)
    width = o["tau"] if o["loss"] == "smooth_hinge" else o.get("epsilon", 0.0)
    params = Params(
        loss=losses.Loss(losses.KINDS[o["loss"]], width, 0.0),
        lam=o["lam"],
        delay=delay(problem),
        coverage=coverage,
        rule=RULES[o["approximate"]],
        beta=o["beta"],
        rho=o["rho"],
        max_cells=float(o["max_cells"] or math.inf),
        replace=o["when_full"] == "replace",
        zero_cells=o["zero_cells"],
        project=o["loss"] == "l2" and o["lam"] <= 1.0,
        y_max=o.get("y_max") or 0.0,
        horizon=horizon(problem),
    )
    needs = Needs(
        tolerance=coverage.tolerance if o["coverage"] == "sphere" else -1.0,
        dense=coverage.kind == BOX,
        output=o["output"],
        suffix=o["suffix"],
        uniforms=int(o["approximate"] == "bernoulli"),
    )
    return params, needs


def start(params: Params, needs: Needs, problem: Problem, rng: np.random.Generator) -> State:
    return State(empty_expansion(needs, problem, tags=2), new_norm(params.project), np.zeros(STATS))


def bound(params: Params, t: float) -> float:
    """Return the maximum number of points; with the Bernoulli rule in expectation, by Theorem 15."""
    if params.rule == ALWAYS:
        return min(t, params.max_cells)
    return min(t, theory.kept_events(params.beta, params.rho, t) + params.max_cells) if params.rule == BERNOULLI else t


def apart(params: Params, a: State, b: State) -> Reduction:
    """Merged cores have separate cells, at most ``max_cells`` if there are no other points."""
    return Reduction(coverage=params.coverage, budget=params.max_cells if params.rule == ALWAYS else math.inf)


LEARNER = Learner(
    __name__,
    loops.kernel_loop(step),
    configure,
    start,
    bound,
    theory.certificate,
    assumed=theory.assumed,
    meanings=theory.MEANINGS,
    expected_bound=lambda params: params.rule == BERNOULLI,
    merge=Merge(points=apart, harmonic=True, arrays={"stats": merged_stats}),
)


class _AVM(Cells, HarmonicSteps, Averaged, IsotropicKernel):
    """Parameters shared by all tasks."""

    learner = LEARNER
    published_settings = Published(
        required=("gamma", "lam", "delta"),
        choices={
            "coverage": ("sphere", "printed_box"),
            "approximate": ("always", "bernoulli", "margin"),
            "output": ("last", "average", "suffix"),
        },
        values={"kernel": "rbf", "degree": 3, "suffix": 0.5},
        required_with={"beta": ("approximate", "bernoulli"), "rho": ("approximate", "bernoulli")},
        off={"eta": None, "max_cells": None, "when_full": "replace", "zero_cells": True, "coef0": 0.0, "forget": None},
    )
    lam: float = parameter(
        default=0.00001,
        search=Log(1e-07, 0.01),
        doc="Weight of the regulariser; the step at event t is 1 / (lam (t - 1) + 1 / eta).",
    )
    eta: float | None = parameter(
        default=0.5,
        allowed=(NOTHING, POSITIVE),
        search=Log(0.05, 5.0),
        doc="Largest step, that of the first event; None: 1 / lam, as in the paper.",
    )


class AVMClassifier(_AVM, OnlineClassifier):
    """Approximation Vector Machine: every event is represented by the core point of one of at most 1,000 cells."""

    example = Example("0.98")
    published_settings = _AVM.published_settings.also(
        choices={"loss": ("hinge", "smooth_hinge", "logistic")},
        required_with={"tau": ("loss", "smooth_hinge")},
        off={"class_weight": None},
    )
    loss: str = parameter(
        default="hinge",
        allowed=OneOf(("hinge", "smooth_hinge", "logistic")),
        doc="Loss of the margin; with more than two classes, of the margin f_y - f_z over the best wrong class.",
    )
    tau: float = parameter(default=0.5, allowed=POSITIVE, doc="Width of the smooth hinge.")
    output: str = parameter(default="auto")


class AVMRegressor(_AVM, TubeRegressor):
    """Approximation Vector Machine for regression: events are represented by the core points of at most 1,000 cells."""

    example = Example("1.00")
    published_settings = _AVM.published_settings.also(
        choices={"loss": ("epsilon_insensitive", "l1", "l2")},
        required_with={"epsilon": ("loss", "epsilon_insensitive"), "y_max": ("loss", "l2")},
        off={"standardise_target": False},
    )
    loss: str = parameter(
        default="epsilon_insensitive",
        allowed=OneOf(("epsilon_insensitive", "l1", "l2")),
        doc="Loss of the residual. With l2 and lam <= 1 the model is projected on a ball of radius y_max / sqrt(lam) after "
        "every event, which requires a matrix of all cells.",
    )
    eta: float | None = parameter(default=0.2)
    y_max: float | None = parameter(
        default=None,
        allowed=(NOTHING, Real(0.0, strict=True, extreme=1e100)),
        doc="Largest absolute target, for the ball; by default the largest seen so far.",
    )
