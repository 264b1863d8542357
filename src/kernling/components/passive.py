"""Parts of passive-aggressive methods: the loss of the current model, and the step that lowers it.

A step of size tau is f <- f - tau l'(f): for the hinge and the epsilon-insensitive loss it adds K(x, .) to one column of
coefficients, or to those of the class and of the best wrong class; for a ball, l = max(0, ||f - Phi(x)|| - radius), it moves
the centre towards Phi(x).  Such a step lowers the loss by tau times the squared norm of l', until the loss is 0.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from ..compiler import inline
from ..core import losses
from ..core.expansion import EVENTS
from ..core.kernels import ISOTROPIC, KINDS
from ..core.updates import add, insert
from .ball import centre_distance, count_centre, move_centre, output_before, output_norm
from .recent_scores import keep_score

if TYPE_CHECKING:
    from ..estimators.learner import Problem


class Task(NamedTuple):
    loss: losses.Loss
    radius: float  # of the ball; 0 for all other tasks

    @classmethod
    def of(cls, problem: Problem) -> Task:
        """Return the task of an estimator: its kind, and the parameters epsilon, or mode and radius."""
        o = problem.options
        radius = o["radius"] if o.get("mode") == "ball" else 0.0
        if radius >= 1.0 and problem.kernel.kind in [KINDS[name] for name in ISOTROPIC]:
            raise ValueError(
                f"radius must be less than 1 for the kernel {o['kernel']!r}, not {radius:g}: "
                "in its feature space all points are within 1 of the origin, where the centre starts"
            )
        loss = "epsilon_insensitive" if problem.task == "regression" else "hinge"
        return cls(losses.Loss(losses.KINDS[loss], o.get("epsilon", 0.0), 0.0), radius)


@inline
def note_score(task, state, block, j, k_xx):
    """A one-class model keeps how much an event looked like the ones before it; called before anything else."""
    if state.recent.ring.size > 0:
        score = output_before(state.model, block, j)
        if task.radius > 0.0:
            score = -math.sqrt(max(0.0, output_norm(state.ball, state.model) - 2.0 * score + k_xx))
        keep_score(state.recent, score)


@inline
def event_loss(task, state, f, y, k_xx):
    """Return the loss of the current model at an event; to be called first at every event."""
    if task.radius > 0.0:
        count_centre(state.ball, state.model)
        return max(0.0, centre_distance(state.ball, f[0], k_xx) - task.radius)
    if k_xx <= 0.0:  # nothing can change the score of this row
        return 0.0
    return losses.value(task.loss, f, y)


@inline
def steepness(task, f, k_xx):
    """Return the squared norm of the gradient of the loss in feature space."""
    if task.radius > 0.0:
        return 1.0
    return k_xx if f.size == 1 else 2.0 * k_xx


@inline
def step_against_loss(task, state, block, j, f, y, k_xx, tau):
    """f <- f - tau l'(f) at event j, which is stored."""
    if task.radius > 0.0:
        move_centre(state.ball, state.model, block, j, f[0], k_xx, tau / centre_distance(state.ball, f[0], k_xx))
    else:
        losses.gradient(task.loss, f, y, block.g)
        k = insert(state.model, block, j, state.model.clock[EVENTS])
        add(state.model, block, j, k, -tau, block.g)


@inline
def note_norm(params, state, row):
    """Record the squared norm of the output with the score of each event, for the distances of a ball."""
    row[1] = output_norm(state.ball, state.model)
