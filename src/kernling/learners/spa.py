"""SPA, sparse passive-aggressive learning.

J. Lu, P. Zhao, S. C. H. Hoi: Online Sparse Passive Aggressive Learning with Kernels.
SIAM International Conference on Data Mining (2016).

At event t, with loss l of the current model f_t, a coin falls with probability rho = min(alpha, l) / beta, and if it does

    f <- f + tau sgn K(x_t, .),    tau = min(eta / rho, l / K(x_t, x_t)).

For one-class learning f is a half-space (the hinge loss with y = 1), or the centre of a ball with the loss
l = max(0, ||f - Phi(x)|| - radius), and the step goes towards Phi(x): f <- (1 - r) f + r Phi(x_t), r = tau / ||f - Phi(x_t)||,
tau = min(eta / rho, l).

No point is ever removed: the expected number of points after T events is at most alpha T / beta, and the average of all
models lives on the same points.

Departures from the paper, each with its reason:

- Several classes (not in the paper): the hinge loss of the margin f_y - f_z; the step goes to both columns, so its cap is
  l / (2 K(x_t, x_t)).
- Where the loss is 0 no coin is tossed in effect: rho is 0 and nothing is divided by it.
- The mean that predicts after T events is that of f_1 ... f_T, f_1 = 0 included, before event T + 1 as well as at the end; the
  paper's online runs count f_{T+1} too.
- A weight multiplies eta, the cap of the step.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ..core import drive, losses
from ..core.ball import CENTRE, MEAN, centre_distance, count_centre, move_centre, new_ball
from ..core.expansion import EVENTS, Expansion, add, insert
from ..core.jit import inline
from ..core.kernels import self_value
from .base import Learner, Needs, Problem, empty_expansion

CHANCES = 0  # in stats


class Params(NamedTuple):
    loss: losses.Loss
    radius: float  # of the ball; 0 for all other tasks
    eta: float
    alpha: float
    beta: float
    averaged: bool


class State(NamedTuple):
    model: Expansion
    ball: np.ndarray
    stats: np.ndarray  # the sum of the coins' chances


@inline
def step(params, state, block, j, f, y, weight, u):
    k_xx = self_value(block.kernel, np.float64(block.norms[j]))
    if params.radius > 0.0:
        count_centre(state.ball, state.model.clock[EVENTS])
        distance = centre_distance(state.ball, f[0], k_xx)
        loss = max(0.0, distance - params.radius)
    else:
        loss = losses.value(params.loss, f, y)
    rho = min(params.alpha, loss) / params.beta
    state.stats[CHANCES] += rho
    if u[0] < rho:
        cap = weight * params.eta / rho
        if params.radius > 0.0:
            move_centre(state.ball, state.model, block, j, f[0], k_xx, min(cap, loss) / distance)
        else:
            direction = block.g
            losses.gradient(params.loss, f, y, direction)
            columns = 1.0 if f.size == 1 else 2.0
            k = insert(state.model, block, j, 0.0)
            add(state.model, block, j, k, -min(cap, loss / (columns * k_xx)), direction)


@inline
def note(params, state, row):
    """The squared norm of the output, beside the score of each event that is recorded: a ball's distances need it."""
    row[1] = state.ball[MEAN if params.averaged else CENTRE]


def configure(problem: Problem) -> tuple[Params, Needs]:
    o = problem.options
    if (o["budget"] is None) != (o["horizon"] is None):
        raise ValueError(f"budget and horizon go together, but budget={o['budget']} and horizon={o['horizon']}")
    ball = o.get("mode") == "ball"
    loss = "epsilon_insensitive" if problem.task == "regression" else "hinge"
    params = Params(
        loss=losses.Loss(losses.KINDS[loss], o.get("epsilon", 0.0), 0.0),
        radius=o["radius"] if ball else 0.0,
        eta=o["eta"],
        alpha=o["alpha"],
        beta=o["alpha"] * o["horizon"] / o["budget"] if o["budget"] else o["beta"],
        averaged=o["output"] == "average",
    )
    if params.beta < params.alpha:
        raise ValueError(f"beta must be at least alpha, but beta={params.beta:g} and alpha={params.alpha:g}")
    return params, Needs(output=o["output"], uniforms=1, notes=int(ball))


def start(params: Params, needs: Needs, problem: Problem, rng: np.random.Generator) -> State:
    return State(empty_expansion(needs, problem), new_ball(), np.zeros(1))


def bound(params: Params, t: int) -> float:
    """Of the expected number of points: alpha T / beta."""
    return params.alpha * t / params.beta


def certificate(params: Params, state: State, problem: Problem) -> dict[str, float]:
    """Theorem 3.1, for K(x, x) = 1: the expected regret against any f is below regret_per_norm ||f||^2 + regret_constant."""
    t = state.model.clock[EVENTS]
    return {
        "expected_bound": bound(params, t),
        "expected_points": float(state.stats[CHANCES]),
        "points": int(state.model.size[0]),
        "regret_per_norm": 1.0 / (2.0 * params.eta),
        "regret_constant": params.eta * params.beta * t / min(params.alpha, math.sqrt(params.beta * params.eta)),
    }


LEARNER = Learner(
    name="spa",
    title="Sparse Passive-Aggressive learning",
    citation="J. Lu, P. Zhao, S. C. H. Hoi: Online Sparse Passive Aggressive Learning with Kernels, SDM, 2016",
    loop=drive.kernel_loop(step, note),
    configure=configure,
    start=start,
    bound=bound,
    expected_bound=True,
    certificate=certificate,
)
