"""What learners of a linear model on features share: they store no points."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.fourier import Linear, new_linear
from .base import Needs, Problem


def empty_linear(needs: Needs, problem: Problem, rng: np.random.Generator) -> Linear:
    """An empty model on the features asked for, that can give the output asked for."""
    o = problem.options
    return new_linear(problem, o["features"], o["n_components"], rng, groups=2 if needs.output == "average" else 1)


def no_points(params: Any, t: int) -> float:
    """No points are stored."""
    return 0


def feature_count(params: Any, state: Any, problem: Problem) -> dict[str, float]:
    """The number of features."""
    return {"features": state.model.coef.shape[2]}
