"""DualSVRG's theorems: T. Le, K. Nguyen, D. Phung, Machine Learning 111 (2022).

Theorem 1 is that of A. Rahimi and B. Recht (2007), which counts frequencies: with a cosine and a sine for each, there are half
as many as the dimension D in the paper.  sigma is the root of E[w'w], 2 gamma d for the Gaussian kernel.
"""

from __future__ import annotations

import math
from typing import Any

from ..components.stats import HEAVIEST_EVENT, POINTS_PROJECTED
from ..core import losses
from ..core.expansion import EVENTS

MEANINGS = {
    "coefficient_bound": "3 L / lam: the absolute coefficients of all events, stored or not, sum to at most this (for "
    "each output, L being the slope of the loss), so scores differ from those of the same coefficients on kernels alone "
    "by at most as many times the error of the random features. Absent after a merge that projected points.",
    "rate": "Theorem 2: the factor rho by which the expected excess of the objective shrinks from one period to the "
    "next, up to the gap.",
    "rate_applies": "Whether the conditions of Theorem 2 hold: 1 if they do, for long periods or a large lam, else 0.",
    "gap": "Theorem 2: 2 (6 L^2 + 12 M) eta / (m (1 - rho)), which remains of the excess after many periods, if random "
    "features err by less than 1 / m; absent unless the rate applies.",
    "failure_probability": "Theorem 1: with at most this probability some score differs by error or more from that of "
    "the same coefficients on kernels alone, for rows within a set of this diameter; 1 says nothing. Gaussian kernel "
    "only. Needs error=... and diameter=...",
}


def constants(state: Any, problem: Any) -> tuple[float, float]:
    """Return the Lipschitz constants of the loss and of its gradient."""
    o, weight = problem.options, float(state.stats[HEAVIEST_EVENT]) or 1.0
    return (
        weight * losses.lipschitz(o["loss"], o["tau"], problem.outputs),
        weight * losses.smoothness(o["loss"], o["tau"], problem.outputs),
    )


def certificate(params: Any, state: Any, problem: Any) -> dict[str, float]:
    """Return the guarantees of a run."""
    o, eta, lam = problem.options, params.eta, params.lam
    L, M = constants(state, problem)
    steps, length = math.inf, math.inf  # contributions of the steps and of the length of a period to the rate
    if 12.0 * eta * M < 1.0:
        steps = 13.0 * M * eta / (1.0 - 12.0 * eta * M)
        length = 1.0 / (params.period * lam * eta * (1.0 - 12.0 * eta * M))
    conditions = params.period >= 13 and o["memory"] >= 2 and math.isfinite(L) and o["forget"] is None
    applies = steps + length < 1.0 and conditions and not state.stats[POINTS_PROJECTED]
    rate = steps / (eta * lam + 1.0) + length
    found = {
        "points": state.model.stored,
        "points_bound": float(min(state.model.clock[EVENTS], params.budget)),
        "rate": rate,
        "rate_applies": float(applies),
    }
    if applies:
        found["gap"] = 2.0 * (6.0 * L**2 + 12.0 * M) * eta / (o["memory"] * (1.0 - rate))
    if math.isfinite(L) and not state.stats[POINTS_PROJECTED]:
        found["coefficient_bound"] = 3.0 * L / lam
    return found


def assumed(params: Any, state: Any, problem: Any, *, error: float, diameter: float) -> dict[str, float]:
    """Return the probability that random features change scores by this much."""
    o, d = problem.options, problem.d
    L, _ = constants(state, problem)
    if o["kernel"] != "rbf" or o["features"] != "fourier" or not math.isfinite(L) or state.stats[POINTS_PROJECTED]:
        return {}
    each = params.lam * error / (3.0 * L)  # how much the kernel of two rows may differ
    spread = math.sqrt(2.0 * o["gamma"] * d)
    frequencies = len(state.linear.frequencies)
    log = math.log(2.0**8) + 2.0 * math.log(spread * diameter / each) - frequencies * each**2 / (4.0 * (d + 2.0))
    return {"failure_probability": math.exp(min(0.0, log))}
