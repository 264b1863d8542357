"""Projectron++.

F. Orabona, J. Keshet, B. Caputo: Bounded Kernel-Based Online Learning.  Journal of Machine Learning Research 10 (2009).

A Projectron that also learns from right labels with a small margin, 0 < y f(x_t) < 1. With l = 1 - y f(x_t), P the
projection of Phi(x_t) on the span of the points, delta its distance and l >= delta / threshold,

    f <- f + tau y P,    tau = min(l / ||P||^2, 2 (l - delta / threshold) / ||P||^2, 1),

which never stores a point.

Departures from the paper, each with its reason:

- A budget, as in projectron.py.
- Several classes: the step goes to two columns, so ||P||^2 counts twice.
- A weight multiplies mistakes' steps, and tau.
"""

from __future__ import annotations

import math

from ..core import drive, losses
from ..core.budget import columns_changed, event_value
from ..core.expansion import EVENTS
from ..core.jit import inline
from ..core.span import add_or_project, add_projection, project_event
from ..estimators.parameters import CLASS_WEIGHT, POSITIVE
from ..estimators.tasks import OnlineClassifier
from ..learners.base import Learner
from .projectron import MERGE, RULES, certificate, configure, start
from .shared import budgeted


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


LEARNER = Learner(
    name="projectron_plus_plus",
    title="Projectron++",
    citation="F. Orabona, J. Keshet, B. Caputo: Bounded Kernel-Based Online Learning, JMLR 10, 2009",
    loop=drive.kernel_loop(step),
    configure=configure,
    start=start,
    bound=budgeted,
    certificate=certificate,
    merge=MERGE,
)


class ProjectronPlusPlusClassifier(OnlineClassifier):
    """Projectron++: a Projectron that also learns from small margins.

    Parameters
    ----------
    threshold : float
        The distance from the span of the points within which a mistake is projected.
    budget : int, optional
        The largest number of points; once they are there, all mistakes are projected.
    kernel, gamma, degree, coef0, class_weight, random_state, dtype, block_size, passes, shuffle, n_jobs, verbose
        As in :class:`kernling.AVMClassifier`; the kernels "poly" and "linear" work too.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from kernling.baselines import ProjectronPlusPlusClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> model = ProjectronPlusPlusClassifier(gamma=0.1, random_state=0)
    >>> labels = model.predict_then_learn(X / 16.0, y)
    >>> print(f"{(labels != y).mean():.2f} mistakes, {model.n_support_} points")
    0.10 mistakes, 186 points
    """

    learner = "projectron_plus_plus"
    rules = {**RULES, "threshold": (POSITIVE,), "class_weight": CLASS_WEIGHT}
    loss = "hinge"

    def __init__(
        self, threshold=0.1, *, budget=None, kernel="rbf", gamma="scale", degree=3, coef0=0.0, class_weight=None,
        random_state=None, dtype="float64", block_size=128, passes=1, shuffle=False, n_jobs=None, verbose=False,
    ):  # fmt: skip
        self._remember(locals())
