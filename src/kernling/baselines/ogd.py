"""OGD, online gradient descent with kernels.

J. Kivinen, A. J. Smola, R. C. Williamson: Online Learning with Kernels.  IEEE Transactions on Signal Processing 52 (2004),
without its regulariser, as in J. Lu, S. C. H. Hoi, J. Wang, P. Zhao, Z.-Y. Liu: Large Scale Online Kernel Learning.
Journal of Machine Learning Research 17 (2016).

f <- f - eta l'(f(x_t)) K(x_t, .) with a constant step.  No point is ever removed.  A margin of exactly 1 causes no loss.
"""

from __future__ import annotations

from typing import NamedTuple

from ..compiler import inline
from ..core import losses
from ..core.expansion import EVENTS
from ..core.updates import add, insert
from ..driver import loops
from ..estimators.examples import Example
from ..estimators.learner import Learner, Needs, Problem, loss_of
from ..estimators.options import LossClassifier, StepLossRegressor, StepSize


class Params(NamedTuple):
    loss: losses.Loss
    eta: float


@inline
def step(params, state, block, j, f, y, weight, u):
    model = state.model
    if losses.gradient(params.loss, f, y, block.g):
        k = insert(model, block, j, model.clock[EVENTS])
        add(model, block, j, k, -weight * params.eta, block.g)


def configure(problem: Problem) -> tuple[Params, Needs]:
    return Params(loss_of(problem), problem.options["eta"]), Needs()


LEARNER = Learner(__name__, loops.kernel_loop(step), configure)


class OGDClassifier(StepSize, LossClassifier):
    """Online gradient descent with kernels: every event with a loss is stored.

    It grows with the stream, as published.
    """

    learner = LEARNER
    example = Example("0.98", random_state=0)


class OGDRegressor(StepLossRegressor):
    """Online gradient descent with kernels for regression.

    It grows with the stream, as published.
    """

    learner = LEARNER
    example = Example("1.00", gamma=1.0, random_state=0)
