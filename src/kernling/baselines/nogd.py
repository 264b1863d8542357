"""NOGD, Nystrom online gradient descent.

J. Lu, S. C. H. Hoi, J. Wang, P. Zhao, Z.-Y. Liu: Large Scale Online Kernel Learning.
Journal of Machine Learning Research 17 (2016).

The first B events with a loss are stored, with gradient steps on the kernel expansion.  Then the kernel matrix of these
landmarks is decomposed, K = V diag(s) V', its k largest eigenvalues make features

    z(x) = M k(x),  M = diag(s_k)^-1/2 V_k',  k(x) the kernel of x with the landmarks,

the model becomes w = alpha pinv(M), and continues with gradient steps w <- w - eta l'(f) z(x_t).

The coefficients of the landmarks, alpha = M' w, are stored: the same function, so a model predicts like any other expansion.

Departures from the authors' code, each with its reason:

- Eigenvalues below the root of the rounding error, relative to the largest, count as zero, and their features are omitted:
  repeated landmarks would divide by zero.
"""

from __future__ import annotations

import math
from typing import Annotated, NamedTuple

import numpy as np

from ..compiler import inline
from ..components.nystrom import compress, feature_step, landmark_features
from ..core import losses
from ..core.expansion import Expansion, check_room
from ..core.matrices import point_matrix
from ..core.shapes import declared
from ..core.updates import add, insert
from ..driver import loops
from ..estimators.constraints import NOTHING, Whole
from ..estimators.examples import Example
from ..estimators.learner import Learner, Needs, Problem, budget_of, empty_expansion, loss_of
from ..estimators.options import Budget, LossClassifier, SquaredLossRegressor, StepSize
from ..estimators.parameters import parameter
from ..merging.rules import Merge, Merging


class Params(NamedTuple):
    loss: losses.Loss
    eta: float
    budget: int
    cutoff: float


@declared()
class State(NamedTuple):
    model: Expansion
    M: Annotated[np.ndarray, "coefficients: rank budget"]  # zero until there are B landmarks


@inline
def step(params, state, block, j, f, y, weight, u):
    model, g = state.model, block.g
    if losses.gradient(params.loss, f, y, g):
        if model.size[0] < params.budget:
            add(model, block, j, insert(model, block, j, 0.0), -params.eta * weight, g)
            if model.size[0] == params.budget:
                compress(model, block.kernel, block.K, block.scores, j, params.cutoff, state.M)
        else:
            for o in range(g.size):
                g[o] *= -params.eta * weight
            feature_step(state.M, model, block.K, block.scores, j, g)


def configure(problem: Problem) -> tuple[Params, Needs]:
    cutoff = math.sqrt(np.finfo(problem.dtype).eps)
    return Params(loss_of(problem), problem.options["eta"], budget_of(problem), cutoff), Needs()


def start(params: Params, needs: Needs, problem: Problem, rng: np.random.Generator) -> State:
    rank = min(params.budget, problem.options["rank"] or max(1, params.budget // 5))
    check_room(rank, params.budget, "features")
    return State(empty_expansion(needs, problem), np.zeros((rank, params.budget)))


def certificate(params: Params, state: State, problem: Problem) -> dict[str, float]:
    """Return the number of points and of features, which is 0 until there are enough landmarks."""
    return {
        "points": state.model.stored,
        "points_bound": params.budget,
        "features": int(np.count_nonzero(state.M.any(axis=1))),
    }


def merged_features(merging: Merging, name: str) -> np.ndarray:
    """Return the features of the merged landmarks, once there are enough; their coefficients are those of the mean."""
    M = np.zeros_like(merging.a.M)
    if merging.model.stored == merging.params.budget:
        landmark_features(point_matrix(merging.kernel, merging.model), merging.params.cutoff, M, np.zeros_like(M))
    return M


LEARNER = Learner(
    __name__,
    loops.kernel_loop(step, blas=True),
    configure,
    start,
    certificate=certificate,
    merge=Merge(arrays={"M": merged_features}),
)


class _NOGD(StepSize, Budget):
    """Parameters shared by all tasks."""

    learner = LEARNER
    budget: int = parameter(default=100, doc="Number of landmarks, the first events with a loss.")
    rank: int | None = parameter(
        default=None, allowed=(NOTHING, Whole(1)), doc="Number of features, at most the budget; by default a fifth of it."
    )


class NOGDClassifier(_NOGD, LossClassifier):
    """Nystrom online gradient descent for classification."""

    example = Example("0.93", rank=50)


class NOGDRegressor(_NOGD, SquaredLossRegressor):
    """Nystrom online gradient descent for regression."""

    example = Example("1.00", gamma=1.0)
