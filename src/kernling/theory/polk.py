"""POLK's theorems: A. Koppel, G. Warnell, E. Stump, A. Ribeiro, JMLR 20 (2019)."""

from __future__ import annotations

import math
from typing import Any

from ..components.stats import EPS, HEAVIEST_ROW, LARGEST_ERROR, LARGEST_ORDER, LARGEST_SELF, LARGEST_SHARE, STEPS
from ..core import losses
from .draws import are_alike

ROUNDING = 1e-6  # of errors relative to eps

MEANINGS = {
    "eps": "Radius of the ball within which the last step was pruned.",
    "largest_error": "Largest distance from its unpruned function over all steps.",
    "largest_share": "Largest ratio of this distance to eps. Every step stayed within its ball if it is at most 1; "
    "max_points may require more, and so may points in the span of others up to rounding, which are never stored.",
    "order": "Number of points.",
    "largest_order": "Largest number of points after a step.",
    "norm_bound": "Proposition 7, C X / lam: the norm of the model, and that of the function that minimises the "
    "regularised risk, are at most this, for losses with slope at most C and kernels with K(x, x) <= X^2 on all rows. "
    "Absent without a regulariser or with l2 and squared_hinge, whose slopes are not bounded.",
    "neighbourhood": "Theorem 3, (sqrt(eta) / lam) (K + sqrt(K^2 + lam sigma^2)): if rows are drawn independently, the "
    "models of an endless stream come within this distance of the function that minimises the regularised risk, almost "
    "surely. sigma, Assumption 4's bound on a step divided by eta, is 2 C X + eps / eta by Proposition 7. Only for "
    "constant steps without forgetting that stayed within eps.",
}


def certificate(params: Any, state: Any, problem: Any) -> dict[str, float]:
    """Return the guarantees of a run."""
    stats, o = state.stats, problem.options
    found = {
        "eps": float(stats[EPS]),
        "largest_error": float(stats[LARGEST_ERROR]),
        "largest_share": float(stats[LARGEST_SHARE]),
        "order": int(state.model.size[0]),
        "largest_order": int(stats[LARGEST_ORDER]),
    }
    slope = losses.lipschitz(o["loss"], 0.0, problem.outputs)
    if not (params.lam > 0.0 and stats[STEPS] and math.isfinite(slope)):
        return found
    slope *= stats[HEAVIEST_ROW] * math.sqrt(stats[LARGEST_SELF])
    found["norm_bound"] = float(slope / params.lam)
    if are_alike(problem) and not params.diminishing and params.decay == 1.0 and stats[LARGEST_SHARE] <= 1.0 + ROUNDING:
        found["neighbourhood"] = float(neighbourhood(params.eta, params.lam, params.parsimony, slope))
    return found


def neighbourhood(eta: float, lam: float, parsimony: float, slope: float) -> float:
    """Return the radius of Theorem 3 for gradients of norm at most ``slope``."""
    sigma = 2.0 * slope + parsimony * math.sqrt(eta)
    return math.sqrt(eta) / lam * (parsimony + math.sqrt(parsimony**2 + lam * sigma**2))
