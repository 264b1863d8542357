"""AVM's theorems: T. Le, T. D. Nguyen, V. Nguyen, D. Phung, JMLR 18 (2017).

The constants of Lemmas 21 and 22 are written for gradients of norm at most ``slope``, B in the paper; its A is 0 for all losses
but l2, whose gradients are bounded because the norm of the model is.  Two corrections:

- Lemma 22 proves E ||w_{t+1} - w*||^2 <= W by induction with the factor (t - 2) / t, which is negative at t = 1: then the
  bound is 2 W.  The same is allowed for t = 3, so two terms of the sums are larger by a factor of sqrt(2).
- A loss that is mu-smooth makes an objective that is (lam + mu)-smooth, not (lam / 2 + mu)-smooth, and Theorem 13 needs the
  square of the distance.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from ..components.cells import CELLS, FARTHEST, LARGEST_WEIGHT, LARGEST_Y, MERGES, OVERFLOWS, PROJECTED
from ..components.coverage import feature_distance
from ..core import losses
from ..core.averages import KINDS, averaged_share
from ..core.expansion import EVENTS
from .draws import are_alike

MEANINGS = {
    "delta_phi": "Theorem 4: no event with a loss was learned in the place of a core point farther away than this in "
    "the kernel's space, and all these core points are in the model; absent once cells were replaced, dropped or "
    "projected.",
    "farthest": "The same distance in the space of the rows.",
    "cells": "Number of cells.",
    "replaced": "Cells that were replaced, or events that were dropped, because of max_cells.",
    "norm_bound": "Lemma 21 (with Theorems 23 and 25 for l2): ||w|| is at most this; absent once terms were projected.",
    "expected_points": "Theorem 15 for approximate='bernoulli': the expected number of points is at most the number of "
    "events kept without a cell, in expectation, plus that of the cells, for which the cells of this run stand.",
    "regret_bound": "Theorem 5 for output='average', Theorem 9 for 'suffix', with the constants of Lemmas 21 and 22: if "
    "events are drawn independently, the objective lam/2 ||w||^2 + E loss exceeds its minimum by at most this, in "
    "expectation. Only for the published steps (eta=None, no forgetting), and as long as delta_phi is certified.",
    "random_regret_bound": "Theorems 8, 10 and, for smooth losses, 13: with this confidence, a model drawn at random "
    "from those that the output averages has at most this excess. Needs confidence=...",
    "cells_bound": "Theorem 19, Remark 20: there are at most this many cells if rows are within a set of this diameter: "
    "(1 + 4 D / delta)^d; the paper omits the 1, without which a set smaller than a cell would need none. Needs "
    "diameter=...",
}
FEW = 1000  # terms of a sum that are added one by one; the rest is bounded by an integral


class Run(NamedTuple):
    """What a run's guarantees depend on."""

    events: float
    lam: float
    slope: float  # largest norm of a gradient of the loss; infinite if it is not bounded
    norm: float  # bound on ||w||; infinite if there is none
    smoothness: float  # Lipschitz constant of the loss's gradient; infinite if there is none
    distance: float  # delta_phi
    terms: float  # models in the mean that predicts; 0 if it is no mean
    is_covered: bool  # every event is represented by a point within this distance
    is_published: bool  # steps 1 / (lam t) on events as they are drawn, and the ball of l2, if any, does not move
    beta: float  # of the Bernoulli rule; 0: all events are approximated
    rho: float


def kept_events(beta: float, rho: float, events: float) -> float:
    """Return a bound on the sum of min(1, beta / t^rho), the expected number of events that are not approximated."""
    if beta == 0.0:
        return 0.0
    few = int(min(events, FEW))
    total = sum(min(1.0, beta / t**rho) for t in range(1, few + 1))
    if events > few:
        tail = math.log(events / few) if rho == 1.0 else (events ** (1.0 - rho) - few ** (1.0 - rho)) / (1.0 - rho)
        total += min(events - few, beta * tail)
    return total


def inverse_sum(first: float, last: float) -> float:
    """Return a bound on the sum of 1 / t over first .. last."""
    return 1.0 / first + math.log(last / first)


def constants(run: Run) -> tuple[float, float]:
    """Return H and W of Lemmas 21 and 22: bounds on E ||h_t||^2 and E ||w_t - w*||^2."""
    norm = min(run.norm, (1.0 + run.distance) * run.slope / run.lam)
    H = (run.lam * norm + (1.0 + run.distance) * run.slope) ** 2
    root = run.slope * run.distance
    return H, ((root + math.sqrt(root**2 + 2.0 * H)) / (2.0 * run.lam)) ** 2


def mean_regret(run: Run) -> float | None:
    """Return the bound on the mean excess of the models that are averaged: Theorem 5 if these are all, otherwise Theorem 9."""
    if not (run.is_covered and run.is_published and run.terms and math.isfinite(run.slope)):
        return None
    H, W = constants(run)
    first = run.events - run.terms + 1.0
    early = max(0.0, 4.0 - max(first, 2.0))  # of the models w_2 and w_3, which are in the mean
    approximated = run.terms + (math.sqrt(2.0) - 1.0) * min(early, run.terms)
    if run.beta > 0.0 and first == 1.0:
        approximated -= min(approximated, _surely_kept(run.beta, run.rho, run.events))
    past = run.lam * (first - 1.0) / 2.0 * W
    noise = H / (2.0 * run.lam) * inverse_sum(first, run.events)
    return (past + noise + approximated * run.distance * run.slope * math.sqrt(W)) / run.terms


def _surely_kept(beta: float, rho: float, events: float) -> float:
    """Return a lower bound on the expected number of events that are not approximated, the first ones left out."""
    return sum(min(1.0, beta / t**rho) for t in range(4, int(min(events, FEW)) + 1))


def random_regret(run: Run, confidence: float) -> float | None:
    """Return the bound of Theorems 8, 10 and 13 on the excess of a model drawn from those that are averaged."""
    mean = mean_regret(run)
    if mean is None:
        return None
    apart = 2.0 * min(run.norm, run.slope / run.lam)
    largest = min((run.lam * run.norm + run.slope) * apart, (run.lam + run.smoothness) / 2.0 * apart**2)
    return mean + largest * math.sqrt(0.5 * math.log(1.0 / (1.0 - confidence)))


# ---------------------------------------------------------------------- of a model


def run_of(params: Any, state: Any, problem: Any) -> Run:
    """Return what the theorems need to know of a run; targets of l2 are at most the largest one seen."""
    o, stats, events = problem.options, state.stats.tolist(), float(state.model.clock[EVENTS])
    weight, projected = stats[LARGEST_WEIGHT], stats[PROJECTED] + (stats[OVERFLOWS] if params.replace else 0.0)
    slope = norm = math.inf
    if params.loss.kind != losses.L2:
        slope = weight * losses.lipschitz(o["loss"], params.loss.width, problem.outputs)
        norm = slope / params.lam
    elif params.project:
        norm = (params.y_max or stats[LARGEST_Y]) / math.sqrt(params.lam)
    elif weight < params.lam:
        norm = weight * stats[LARGEST_Y] / (params.lam - weight)
    if params.loss.kind == losses.L2:
        slope = weight * (norm + stats[LARGEST_Y])
    half = params.coverage.radius * (1.0 if o["coverage"] == "sphere" else math.sqrt(problem.d))
    is_published = are_alike(problem) and params.delay == 0.0 and math.isinf(params.horizon) and not stats[MERGES]
    share = averaged_share(state.model, KINDS[o["output"]], o["suffix"]) if o["output"] in ("average", "suffix") else 0.0
    return Run(
        events=events,
        lam=params.lam,
        slope=slope,
        norm=norm if params.project or not projected else math.inf,
        smoothness=weight * losses.smoothness(o["loss"], params.loss.width, problem.outputs),
        distance=feature_distance(problem.kernel, max(half, math.sqrt(stats[FARTHEST]))),
        terms=round(share * events),
        is_covered=not (projected or stats[OVERFLOWS]),
        is_published=is_published and (not params.project or params.y_max >= stats[LARGEST_Y]),
        beta=params.beta if o["approximate"] == "bernoulli" else 0.0,
        rho=params.rho,
    )


def certificate(params: Any, state: Any, problem: Any) -> dict[str, float]:
    """Return the guarantees of a run."""
    stats, one, o = state.stats.tolist(), run_of(params, state, problem), problem.options
    found: dict[str, float] = {"cells": int(stats[CELLS]), "replaced": int(stats[OVERFLOWS])}
    if one.is_covered:
        found |= {"delta_phi": one.distance, "farthest": math.sqrt(stats[FARTHEST])}
    if math.isfinite(one.norm):
        found["norm_bound"] = one.norm
    if o["approximate"] == "bernoulli":
        found["expected_points"] = min(one.events, kept_events(one.beta, one.rho, one.events) + stats[CELLS])
    regret = mean_regret(one)
    return found if regret is None else {**found, "regret_bound": regret}


def assumed(params: Any, state: Any, problem: Any, *, confidence: float = 0.0, diameter: float = 0.0) -> dict[str, float]:
    """Return the guarantees with a confidence, and those for rows within a set of this diameter."""
    found: dict[str, float] = {}
    if confidence:
        regret = random_regret(run_of(params, state, problem), confidence)
        found |= {} if regret is None else {"random_regret_bound": regret}
    if diameter and params.coverage.radius:
        sides = 2.0 if problem.options["coverage"] == "sphere" else 1.0  # cores are a radius apart, in a box in one column
        found["cells_bound"] = (1.0 + sides * diameter / params.coverage.radius) ** problem.d
    return found
