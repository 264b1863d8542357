"""Projectron++.

F. Orabona, J. Keshet, B. Caputo: Bounded Kernel-Based Online Learning.  Journal of Machine Learning Research 10 (2009).

A Projectron that also learns from correct labels with a small margin, 0 < y f(x_t) < 1. With l = 1 - y f(x_t), P the
projection of Phi(x_t) on the span of the points, delta its distance and l >= delta / threshold,

    f <- f + tau y P,    tau = min(l / ||P||^2, 2 (l - delta / threshold) / ||P||^2, 1),

which never stores a point.

Departures from the paper, each with its reason:

- A budget, as in projectron.py.
- Several classes: the step goes to two columns, so ||P||^2 counts twice.
- A sample weight multiplies the steps of mistakes, and tau.
"""

from __future__ import annotations

import math
from dataclasses import replace

from ..compiler import inline
from ..components.eviction import columns_changed, event_value
from ..components.projection import add_or_project, add_projection, project_event
from ..core import losses
from ..core.expansion import EVENTS
from ..driver import loops
from ..estimators.constraints import POSITIVE
from ..estimators.examples import Example
from ..estimators.parameters import parameter
from ..estimators.tasks import OnlineClassifier
from .projectron import LEARNER as PROJECTRON
from .projectron import _Projectron


@inline
def step(params, state, block, j, f, y, weight, u):
    model = state.model
    if not losses.gradient(params.loss, f, y, block.g):
        return
    gap = project_event(state.gram, model, block, j)
    loss = losses.value(params.loss, f, y)
    if loss >= 1.0:
        projects = model.size[0] >= params.budget or gap <= params.threshold**2
        add_or_project(state.gram, model, block, j, gap, projects, model.clock[EVENTS], -weight, block.g)
        return
    norm = columns_changed(f) * (event_value(block, j) - gap)
    excess = loss - math.sqrt(gap) / params.threshold
    if excess >= 0.0 and norm > 0.0:
        add_projection(model, block, j, -weight * min(loss / norm, 2.0 * excess / norm, 1.0), block.g)


LEARNER = replace(PROJECTRON, module=__name__, loop=loops.kernel_loop(step))


class ProjectronPlusPlusClassifier(_Projectron, OnlineClassifier):
    """Projectron++: a Projectron that also learns from small margins."""

    learner = LEARNER
    example = Example("0.92", random_state=0)
    threshold: float = parameter(default=0.1, allowed=POSITIVE)
