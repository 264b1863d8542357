"""What budgeted baselines share: the state that is an expansion and nothing else, and how its size is bounded."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..components.eviction import UNBOUNDED
from ..core.expansion import Expansion
from ..core.losses import KINDS, Loss
from .learner import Needs, Problem, empty_expansion


class Points(NamedTuple):
    model: Expansion  # tags: the event that brought the point


def no_points(params: Any, needs: Needs, problem: Problem, rng: np.random.Generator) -> Points:
    """The state before the first event."""
    return Points(empty_expansion(needs, problem, tags=1))


def loss_of(problem: Problem) -> Loss:
    """The loss asked for; where there is no choice, hinge or epsilon-insensitive."""
    usual = "epsilon_insensitive" if problem.task == "regression" else "hinge"
    return Loss(KINDS[problem.options.get("loss", usual)], problem.options.get("epsilon", 0.0), 0.0)


def budget_of(problem: Problem) -> int:
    """The largest number of points."""
    return problem.options["budget"] or UNBOUNDED


def unbounded(params: Any, t: int) -> float:
    """Every event may be stored."""
    return t


def budgeted(params: Any, t: int) -> float:
    """The budget, from the first event on."""
    return min(t, params.budget)


def point_count(params: Any, state: Any, problem: Problem) -> dict[str, float]:
    """The number of points, and the budget where there is one."""
    found = {"points": state.model.stored}
    budget = problem.options.get("budget")
    return {**found, "budget": budget} if budget else found
