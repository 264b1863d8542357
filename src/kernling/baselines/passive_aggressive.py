"""PA, passive-aggressive learning with kernels.

K. Crammer, O. Dekel, J. Keshet, S. Shalev-Shwartz, Y. Singer: Online Passive-Aggressive Algorithms.
Journal of Machine Learning Research 7 (2006).

At event t, with loss l of the current model f_t and S the squared norm of its gradient (K(x_t, x_t) for one output),
f <- f - tau l'(f_t) with

    PA: tau = l / S,    PA-I: tau = min(C, l / S),    PA-II: tau = l / (S + 1 / (2 C)).

Every event with a loss is stored and never removed.

Departures from the paper, each with its reason:

- Several classes: the margin f_y - f_z over the best wrong class z, as in the paper's section on multiclass problems, with
  S = 2 K(x_t, x_t) since the step goes to both columns.
- One-class learning: a ball of fixed radius in feature space; or a half-space, the hinge loss with y = 1.
- A sample weight multiplies C; PA has no C, so nonzero weights have no effect.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np

from ..compiler import inline
from ..components.ball import merged_ball, new_ball
from ..components.passive import Task, event_loss, note_norm, note_score, steepness, step_against_loss
from ..components.recent_scores import RecentScores, new_scores
from ..core.expansion import Expansion
from ..core.kernels import self_value
from ..core.shapes import declared
from ..driver import loops
from ..estimators.constraints import OneOf
from ..estimators.examples import Example
from ..estimators.learner import Learner, Needs, Problem, empty_expansion
from ..estimators.one_class import OnlineOneClass
from ..estimators.options import Aggressive, TubeRegressor
from ..estimators.parameters import parameter
from ..estimators.tasks import OnlineClassifier
from ..merging.rules import Merge

PA, PA_I, PA_II = range(3)
VARIANTS = {"PA": PA, "PA-I": PA_I, "PA-II": PA_II}


class Params(NamedTuple):
    task: Task
    variant: int
    C: float


@declared()
class State(NamedTuple):
    model: Expansion
    ball: Annotated[np.ndarray, "coefficients: 3"]
    recent: RecentScores  # of one-class models


@inline
def step(params, state, block, j, f, y, weight, u):
    k_xx = self_value(block.kernel, np.float64(block.norms[j]))
    note_score(params.task, state, block, j, k_xx)
    loss = event_loss(params.task, state, f, y, k_xx)
    if loss > 0.0:
        steep = steepness(params.task, f, k_xx)
        C = weight * params.C
        if params.variant == PA_I:
            tau = min(C, loss / steep)
        else:
            tau = loss / (steep + (0.5 / C if params.variant == PA_II else 0.0))
        step_against_loss(params.task, state, block, j, f, y, k_xx, tau)


def configure(problem: Problem) -> tuple[Params, Needs]:
    o = problem.options
    task = Task.of(problem)
    return Params(task, VARIANTS[o["variant"]], o["C"]), Needs(notes=int(task.radius > 0.0))


def start(params: Params, needs: Needs, problem: Problem, rng: np.random.Generator) -> State:
    return State(empty_expansion(needs, problem), new_ball(), new_scores(problem.task == "oneclass"))


LEARNER = Learner(__name__, loops.kernel_loop(step, note_norm), configure, start, merge=Merge(arrays={"ball": merged_ball}))


class _PassiveAggressive(Aggressive):
    """Parameters shared by all tasks."""

    learner = LEARNER
    C: float = parameter(
        default=1.0, doc='Aggressiveness: the largest step ("PA-I"), or the inverse of its softening ("PA-II").'
    )
    variant: str = parameter(
        default="PA-I", allowed=OneOf(("PA", "PA-I", "PA-II")), doc="Whether steps are plain, capped or softened."
    )


class PassiveAggressiveClassifier(_PassiveAggressive, OnlineClassifier):
    """Passive-aggressive classification with kernels: the smallest step that leaves no loss, possibly capped.

    It grows with the stream, as published.
    """

    example = Example("0.98")


class PassiveAggressiveRegressor(_PassiveAggressive, TubeRegressor):
    """Passive-aggressive regression with kernels and the epsilon-insensitive loss.

    It grows with the stream, as published.
    """

    example = Example("1.00", gamma=1.0)


class PassiveAggressiveOneClass(_PassiveAggressive, OnlineOneClass):
    """Passive-aggressive one-class learning with kernels for anomaly detection.

    It grows with the stream, as published.  From a C of about 0.3 a step fits its row so well that no learned row is flagged
    afterwards; the expected share of new ones is.
    """

    example = Example("0.98", C=0.01)
