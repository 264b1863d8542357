"""AVM, the Approximation Vector Machine.

T. Le, T. D. Nguyen, V. Nguyen, D. Phung: Approximation Vector Machines for Large-scale Online Learning.
Journal of Machine Learning Research 18 (2017).

At event t = 1, 2, ..., with alpha the derivative of the loss at the score w_t(x_t) and c the core point of x_t's cell,

    w <- (T-1)/T w - alpha / (lam T) Phi(c),        T = t - 1 + max(1, 1 / (eta lam)),

and for the l2 loss with lam <= 1 a projection on the ball ||w|| <= y_max / sqrt(lam).

Departures from the paper, each with its reason:

- Boxes have sides delta / sqrt(d), so that their diameter is delta as the paper defines it; in its Algorithm 4 it is twice
  that.
- A margin of exactly 1 causes no loss (the paper has both readings; its experiments use this one).
- An event stored without approximation (Bernoulli and margin rules) does not become a core point, so cores stay separated.
- ``eta``, the largest step.  In the paper T = t: the first step is 1 / lam, and on short streams the model is little more than
  its first events.
- ``max_cells``: once it is reached, an event outside of all cells takes the place of the core whose cell has not been visited
  for longest, and whose term in all models so far is projected on the five nearest points, or is dropped (``full``).  The
  paper's experiments used such a limit without mentioning it (500 cells on ijcnn1).
- The margin rule for regression, which the paper does not specify: approximate when the residual is within epsilon.
- Without ``y_max`` the ball uses the largest absolute target seen so far.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from ..compiler import inline
from ..components.coverage import (
    CORE,
    VISITED,
    Coverage,
    cell_distance,
    feature_distance,
    find_cell,
    least_recent_core,
    reassign,
)
from ..components.eviction import point_value
from ..components.neighbours import add_projection, point_row, project_on_nearest
from ..components.norm import Norm, new_norm, norm_add, norm_insert, project_on_ball
from ..core import losses, run
from ..core.expansion import EVENTS, SCALE, Expansion
from ..core.shapes import declared
from ..core.updates import add, anneal, insert, replace
from ..estimators.constraints import NOTHING, POSITIVE, SWITCH, OneOf, Real, Whole
from ..estimators.examples import Example
from ..estimators.learner import Learner, Needs, Problem, empty_expansion, horizon
from ..estimators.options import Averaged, HarmonicSteps, IsotropicKernel, TubeRegressor
from ..estimators.parameters import parameter
from ..estimators.ranges import Log, Times
from ..estimators.resolve import auto_delta
from ..estimators.tasks import OnlineClassifier
from ..merging.reduction import Reduction
from ..merging.rules import Merge, Merging, each

ALWAYS, BERNOULLI, MARGIN = range(3)
RULES = {"always": ALWAYS, "bernoulli": BERNOULLI, "margin": MARGIN}
CELLS, OVERFLOWS, FARTHEST, LARGEST_Y, LARGEST_WEIGHT = range(5)


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


@declared(stats=("counts", "counts", "not negative", "0..1e50", "weights"))
class State(NamedTuple):
    model: Expansion
    norm: Norm  # for the l2 loss only
    stats: np.ndarray  # cells, cells that found no room, farthest core used (squared), largest target and weight

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
        c = keep(state, block, j, 1.0) if lossy else -1
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


@inline
def open_cell(params, state, block, j):
    """Return the core of a new cell for event j; -1 if there is no room."""
    if state.stats[CELLS] < params.max_cells:
        state.stats[CELLS] += 1
        return keep(state, block, j, 0.0)
    state.stats[OVERFLOWS] += 1
    return replace_core(state, block, j) if params.replace else -1


@inline
def replace_core(state, block, j):
    """Replace the core whose cell has not been visited for longest by event j; return its index."""
    model = state.model
    c = least_recent_core(model)
    point_row(model, block, c)
    count, _ = project_on_nearest(model, block, point_value(model, block.kernel, c), c)
    for n in range(count):
        norm_add(state.norm, model, int(block.work[1, n]), block.work[0, n] * model.coef[0, 0, c])
    add_projection(model, block, j, c, count)
    norm_add(state.norm, model, c, -model.coef[0, 0, c])
    reassign(model, block, j, c)
    replace(model, block, j, c, 0.0)
    norm_insert(state.norm, model, block, j, c)
    return c


@inline
def keep(state, block, j, tag):
    """Store event j as a point, a core if its tag is 0; return its index."""
    c = insert(state.model, block, j, tag)
    state.model.tags[VISITED, c] = 0.0
    norm_insert(state.norm, state.model, block, j, c)
    return c


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
        replace=o["full"] == "replace",
        zero_cells=o["zero_cells"],
        project=o["loss"] == "l2" and o["lam"] <= 1.0,
        y_max=o.get("y_max") or 0.0,
        horizon=horizon(problem),
    )
    needs = Needs(
        tolerance=coverage.tolerance if o["coverage"] == "sphere" else -1.0,
        dense=o["coverage"] == "box",
        output=o["output"],
        suffix=o["suffix"],
        uniforms=int(o["approximate"] == "bernoulli"),
    )
    return params, needs


def delay(problem: Problem) -> float:
    """Return by how many events t is advanced, so that no step is larger than eta."""
    eta, lam = problem.options["eta"], problem.options["lam"]
    return 0.0 if eta is None else max(0.0, 1.0 / (eta * lam) - 1.0)


def start(params: Params, needs: Needs, problem: Problem, rng: np.random.Generator) -> State:
    return State(empty_expansion(needs, problem, tags=2), new_norm(params.project), np.zeros(5))


def bound(params: Params, t: float) -> float:
    """Return the maximum number of points: bounded only if all events are approximated by a bounded number of cells."""
    return min(t, params.max_cells) if params.rule == ALWAYS else t


def certificate(params: Params, state: State, problem: Problem) -> dict[str, float]:
    """Return delta_phi, a bound on ||Phi(x) - Phi(c)||, and norm_bound, one on ||w||, for all events so far."""
    stats = state.stats
    radius = params.coverage.radius * (1.0 if problem.options["coverage"] == "sphere" else math.sqrt(problem.d))
    scale = stats[LARGEST_WEIGHT] * (math.sqrt(2.0) if problem.outputs > 1 else 1.0)
    norm_bound = scale / params.lam
    if params.loss.kind == losses.L2:
        y_max = params.y_max or stats[LARGEST_Y]
        norm_bound = y_max / math.sqrt(params.lam) if params.project else y_max / (params.lam - 1.0)
    return {
        "delta_phi": feature_distance(problem.kernel, max(radius, math.sqrt(stats[FARTHEST]))),
        "farthest": math.sqrt(stats[FARTHEST]),
        "cells": int(stats[CELLS]),
        "norm_bound": float(norm_bound),
    }


def apart(params: Params, a: State, b: State) -> Reduction:
    """Merged cores have separate cells, at most ``max_cells``."""
    return Reduction(coverage=params.coverage, budget=bound(params, math.inf))


def merged_stats(merging: Merging, name: str) -> np.ndarray:
    """Add the distance by which cores moved to the distances of events from their cores."""
    stats = each("total", "total", "largest", "largest", "largest")(merging, name)
    stats[CELLS] = np.count_nonzero(merging.model.tags[0] == 0.0)
    stats[FARTHEST] = (math.sqrt(stats[FARTHEST]) + merging.moved) ** 2
    return stats


LEARNER = Learner(
    __name__,
    run.kernel_loop(step),
    configure,
    start,
    bound,
    certificate,
    merge=Merge(points=apart, harmonic=True, arrays={"stats": merged_stats}),
)


class _AVM(HarmonicSteps, Averaged, IsotropicKernel):
    """Parameters and attributes shared by all tasks."""

    learner = LEARNER
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
    delta: str | float = parameter(
        default="auto",
        allowed=(OneOf(("auto",)), Real(0.0, extreme=1e100)),
        search=Times(1.0, 3.0),  # smaller cells would be replaced all the time
        resolve=auto_delta,
        doc='Diameter of a cell; "auto" is the smallest at which the first 1,000 rows open at most 400 cells.',
    )
    coverage: str = parameter(default="sphere", allowed=OneOf(("sphere", "box")), doc="Shape of a cell.")
    approximate: str = parameter(
        default="always",
        allowed=OneOf(("always", "bernoulli", "margin")),
        doc="When an event is replaced by its core point: always; with probability 1 - beta / t**rho; when its "
        "margin is at least 1 or its residual within epsilon (which, with the hinge loss, never bounds the model).",
    )
    beta: float = parameter(default=0.0, allowed=Real(0.0), doc="Factor in the probability of the Bernoulli rule.")
    rho: float = parameter(default=1.0, allowed=POSITIVE, doc="Exponent in the probability of the Bernoulli rule.")
    max_cells: int | None = parameter(
        default=1000, allowed=(NOTHING, Whole(1)), doc="Maximum number of cells; None: no limit, as in the paper."
    )
    full: str = parameter(
        default="replace",
        allowed=OneOf(("replace", "drop")),
        doc="What happens to an event outside of all cells when there are ``max_cells``: it takes the place of the core point "
        "whose cell has not been visited for longest, or is dropped.",
    )
    zero_cells: bool = parameter(
        default=False, allowed=SWITCH, doc="Whether events without loss open cells, too, as in the paper."
    )

    n_cells_ = property(lambda self: int(self._fitted().stats[CELLS]), doc="Cells now.")
    n_replaced_ = property(lambda self: self._overflows("replace"), doc="Cells replaced because of ``max_cells``.")
    n_dropped_ = property(lambda self: self._overflows("drop"), doc="Events dropped because of ``max_cells``.")

    def _overflows(self, full: str) -> int:
        return int(self._fitted().stats[OVERFLOWS]) if self._problem.options["full"] == full else 0


class AVMClassifier(_AVM, OnlineClassifier):
    """Approximation Vector Machine: every event is represented by the core point of its cell, one of at most 1,000."""

    example = Example("0.98")
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
