"""Pegasos, the primal estimated sub-gradient solver, with kernels and on a stream.

S. Shalev-Shwartz, Y. Singer, N. Srebro, A. Cotter: Pegasos: Primal Estimated sub-GrAdient SOlver for SVM.
Mathematical Programming 127 (2011).

w <- (1 - 1/t) w - l'(f(x_t)) / (lam t) K(x_t, .) for lam/2 ||w||^2 + the mean of the hinge loss.

Departures from the paper, each with its reason:

- Events are learned in the order of the stream instead of drawn with replacement; ``passes`` and ``shuffle`` give epochs.
- Without the projection on the ball ||w|| <= 1 / sqrt(lam), which is optional in the paper.
- A margin of exactly 1 causes no loss, as in the paper.
- Several classes by the margin f_y - f_z; regression by the epsilon-insensitive loss.
"""

from __future__ import annotations

from typing import NamedTuple

from ..compiler import inline
from ..core import losses
from ..core.expansion import EVENTS
from ..core.updates import add, anneal, insert
from ..driver import loops
from ..estimators.examples import Example
from ..estimators.learner import Learner, Needs, Problem, horizon, loss_of
from ..estimators.options import HarmonicRegressor, HarmonicSteps
from ..estimators.tasks import OnlineClassifier
from ..merging.rules import Merge


class Params(NamedTuple):
    loss: losses.Loss
    lam: float
    horizon: float


@inline
def step(params, state, block, j, f, y, weight, u):
    model = state.model
    t = anneal(model, block, j, 0.0, params.horizon)
    if losses.gradient(params.loss, f, y, block.g):
        k = insert(model, block, j, model.clock[EVENTS])
        add(model, block, j, k, -weight / (params.lam * t), block.g)


def configure(problem: Problem) -> tuple[Params, Needs]:
    return Params(loss_of(problem), problem.options["lam"], horizon(problem)), Needs()


LEARNER = Learner(__name__, loops.kernel_loop(step), configure, merge=Merge(harmonic=True))


class PegasosClassifier(HarmonicSteps, OnlineClassifier):
    """Stochastic sub-gradient descent on the SVM objective: every event with a margin below 1 is stored.

    It grows with the stream, as published.
    """

    learner = LEARNER
    example = Example("0.96", random_state=0)


class PegasosRegressor(HarmonicRegressor):
    """Stochastic sub-gradient descent on the support vector regression objective.

    It grows with the stream, as published.
    """

    learner = LEARNER
    example = Example("0.99", gamma=1.0, random_state=0)
