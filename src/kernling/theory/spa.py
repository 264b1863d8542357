"""SPA's theorems: J. Lu, P. Zhao, S. C. H. Hoi, SIAM International Conference on Data Mining (2016).

They are given for any kernel and for several classes: where the gradient of the loss has squared norm at most S, which is 1 in
the paper, the term eta beta T / min(alpha, sqrt(beta eta)) is T max(S eta beta / alpha, sqrt(S eta beta)).
"""

from __future__ import annotations

import math
from typing import Any

from ..components.stats import CHANCES, STEEPEST, TERMS_PROJECTED, UNPROVEN
from ..core.expansion import EVENTS

MEANINGS = {
    "expected_bound": "Theorem 3.2, first bound: the expected number of points is at most alpha T / beta, or max_points.",
    "expected_points": "The sum of the probabilities of the steps of this run, of which the number of points is a draw, "
    "or max_points.",
    "projections": "Terms projected because of max_points; nothing about the regret is proven from the first one on.",
    "regret_per_norm": "Theorem 3.1: the expected sum of the losses of the models before each event exceeds that of any "
    "function f by less than regret_per_norm ||f||^2 + regret_constant. Absent after projections, for merged models and "
    "for sample weights other than 1.",
    "regret_constant": "See regret_per_norm.",
    "regret_bound": "Theorem 3.1 against a function of this norm: regret_per_norm best_norm^2 + regret_constant. Needs "
    "best_norm=...",
    "expected_bound_by_loss": "Theorem 3.2, second bound: the expected number of points is at most 1 / beta times the "
    "sum of the losses of a function of this norm, plus the regret against it. Needs best_norm=... and best_loss=..., "
    "the sum of its losses.",
    "best_eta": "Theorem 3.1: the eta best_norm sqrt(alpha / (2 beta T)), which minimises the bound for a function of "
    "this norm and as many events as there were, if alpha^3 <= beta best_norm^2 / (2 T); absent otherwise. Needs "
    "best_norm=...",
}


def regret_constant(params: Any, events: float, steepest: float) -> float:
    """Return the term of Theorem 3.1 that does not depend on the function."""
    drop = steepest * params.eta * params.beta
    return events * max(drop / params.alpha, math.sqrt(drop))


def certificate(params: Any, state: Any, problem: Any) -> dict[str, float]:
    """Return the guarantees of a run."""
    events, stats = float(state.model.clock[EVENTS]), state.stats
    found: dict[str, float] = {
        "expected_bound": min(params.budget, params.alpha * events / params.beta),
        "expected_points": min(params.budget, float(stats[CHANCES])),
        "points": state.model.stored,
        "projections": int(stats[TERMS_PROJECTED]),
    }
    if stats[TERMS_PROJECTED] or stats[UNPROVEN]:
        return found
    constant = float(regret_constant(params, events, stats[STEEPEST]))
    return {**found, "regret_per_norm": 1.0 / (2.0 * params.eta), "regret_constant": constant}


def assumed(params: Any, state: Any, problem: Any, *, best_norm: float, best_loss: float | None = None) -> dict[str, float]:
    """Return the guarantees against a function of this norm, and this sum of losses."""
    found: dict[str, float] = {}
    events, steepest = float(state.model.clock[EVENTS]), float(state.stats[STEEPEST])
    known = certificate(params, state, problem)
    if "regret_constant" in known:
        found["regret_bound"] = known["regret_per_norm"] * best_norm**2 + known["regret_constant"]
        if best_loss is not None:
            found["expected_bound_by_loss"] = (best_loss + found["regret_bound"]) / params.beta
    if events and steepest and params.alpha**3 <= steepest * params.beta * best_norm**2 / (2.0 * events):
        found["best_eta"] = best_norm * math.sqrt(params.alpha / (2.0 * steepest * params.beta * events))
    return found
