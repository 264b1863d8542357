"""OSKL, online sparse kernel learning.

L. Zhang, J. Yi, R. Jin, M. Lin, X. He: Online Kernel Learning with a Near Optimal Sparsity Bound.
International Conference on Machine Learning (2013).

At event t, with slope l' of a smooth loss at the score f_t(x_t) and |l'| <= G, a step is taken with probability |l'| / G:

    f <- f - eta G sgn(l') K(x_t, .).

So a step is in expectation one of gradient descent, events that are predicted confidently are rarely stored, and a larger G
means fewer points.  No point is ever removed, and the average of all models uses the same points.

Departures from the paper, each with its reason:

- No projection on a ball: J. Lu, P. Zhao, S. C. H. Hoi (Online Sparse Passive Aggressive Learning with Kernels, 2016), whose
  comparison this is for, have none, and the radius would be another parameter to tune.
- Several classes and regression (not in the paper): the slope is that of the margin f_y - f_z, the step goes to both columns;
  or that of a smooth loss of the residual.
- A sample weight multiplies the step, not the probability.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np

from ..compiler import inline
from ..core import losses
from ..core.expansion import EVENTS, Expansion
from ..core.shapes import declared
from ..core.updates import add, insert
from ..driver import loops
from ..estimators.constraints import POSITIVE, OneOf, Real
from ..estimators.examples import Example
from ..estimators.learner import Learner, Needs, Problem, empty_expansion
from ..estimators.options import Averaged, StepSize, TubeRegressor
from ..estimators.parameters import parameter
from ..estimators.tasks import OnlineClassifier
from ..merging.rules import Merge, each

CHANCES = 0  # in stats


class Params(NamedTuple):
    loss: losses.Loss
    eta: float
    G: float


@declared()
class State(NamedTuple):
    model: Expansion
    stats: Annotated[np.ndarray, "not negative"]  # the sum of the probabilities


@inline
def step(params, state, block, j, f, y, weight, u):
    slope = block.g
    losses.gradient(params.loss, f, y, slope)
    size = abs(slope[0]) if f.size == 1 else -slope[int(y)]
    chance = size / params.G
    state.stats[CHANCES] += chance
    if u[0] < chance:
        k = insert(state.model, block, j, 0.0)
        add(state.model, block, j, k, -weight * params.eta * params.G / size, slope)


def configure(problem: Problem) -> tuple[Params, Needs]:
    o = problem.options
    name = "smooth_epsilon" if problem.task == "regression" else o["loss"]
    loss = losses.Loss(losses.KINDS[name], o["tau"], o.get("epsilon", 0.0))
    return Params(loss, o["eta"], o["G"]), Needs(output=o["output"], suffix=o["suffix"], uniforms=1)


def start(params: Params, needs: Needs, problem: Problem, rng: np.random.Generator) -> State:
    return State(empty_expansion(needs, problem), np.zeros(1))


def bound(params: Params, t: int) -> float:
    """Return a bound on the expected number of points, since all slopes are at most 1."""
    return t / params.G


def certificate(params: Params, state: State, problem: Problem) -> dict[str, float]:
    """Return the number of points."""
    return {
        "expected_bound": float(bound(params, state.model.clock[EVENTS])),
        "expected_points": float(state.stats[CHANCES]),
        "points": state.model.stored,
    }


LEARNER = Learner(
    __name__,
    loops.kernel_loop(step),
    configure,
    start,
    bound,
    certificate,
    expected_bound=lambda params: True,
    merge=Merge(arrays={"stats": each("total")}),
)


class _OSKL(StepSize, Averaged):
    """Parameters shared by all tasks."""

    learner = LEARNER
    output: str = parameter(default="average")
    eta: float = parameter(default=1.0, doc="Step size of the gradient descent that is simulated.")
    G: float = parameter(
        default=1.0,
        allowed=Real(1.0),
        doc="A step is taken with probability abs(slope of the loss) / G, and is G times as large; at least 1.",
    )
    tau: float = parameter(default=0.5, allowed=POSITIVE, doc="Width of the curved part of the smooth hinge loss.")


class OSKLClassifier(_OSKL, OnlineClassifier):
    """Online sparse kernel learning: gradient steps at random events, most likely where the loss is steep.

    It grows with the stream, as published.
    """

    example = Example("0.95", random_state=0)
    loss: str = parameter(
        default="logistic",
        allowed=OneOf(("logistic", "smooth_hinge")),
        doc="Loss of the margin; with more than two classes, of the margin over the best wrong class.",
    )


class OSKLRegressor(_OSKL, TubeRegressor):
    """Online sparse kernel learning for regression, with the smooth epsilon-insensitive loss.

    It grows with the stream, as published.
    """

    example = Example("1.00", gamma=1.0, random_state=1)
    tau: float = parameter(
        default=0.5,
        doc="Width of the curved part of the loss next to the tube; with epsilon = 0, this is Huber's loss divided by tau.",
    )
