"""QKLMS, quantised kernel least mean squares.

B. Chen, S. Zhao, P. Zhu, J. C. Principe: Quantized Kernel Least Mean Square Algorithm.
IEEE Transactions on Neural Networks and Learning Systems 23 (2012).

With e = y_t - f(x_t) and c the nearest stored point if it is within delta / 2, else x_t itself, which is then stored,

    f <- f + eta e K(c, .).

Departures from the paper, each with its reason:

- An event exactly delta / 2 away opens a cell, as everywhere in this library.
- delta is a diameter, twice the quantisation size of the paper, so that "auto" has the same meaning as for AVM.
"""

from __future__ import annotations

from typing import NamedTuple

from kernling.compiler import inline
from kernling.components.coverage import Coverage, feature_distance, find_cell
from kernling.core import losses
from kernling.core.updates import add, insert
from kernling.driver import loops
from kernling.estimators.constraints import OneOf, Real
from kernling.estimators.examples import Example
from kernling.estimators.learner import Learner, Needs, PointState, Problem
from kernling.estimators.options import IsotropicKernel, StepSize
from kernling.estimators.parameters import parameter
from kernling.estimators.ranges import Log, Times
from kernling.estimators.resolve import auto_delta
from kernling.estimators.tasks import OnlineRegressor
from kernling.merging.reduction import Reduction
from kernling.merging.rules import Merge


class Params(NamedTuple):
    loss: losses.Loss
    eta: float
    coverage: Coverage


@inline
def step(params, state, block, j, f, y, weight, u):
    losses.gradient(params.loss, f, y, block.g)  # f - y
    c = find_cell(params.coverage, state.model, block, j)
    if c < 0:
        c = insert(state.model, block, j, 0.0)
    add(state.model, block, j, c, -weight * params.eta, block.g)


def configure(problem: Problem) -> tuple[Params, Needs]:
    o = problem.options
    coverage = Coverage.of("sphere", o["delta"], problem.d, problem.dtype)
    loss = losses.Loss(losses.KINDS["l2"], 0.0, 0.0)
    return Params(loss, o["eta"], coverage), Needs(tolerance=coverage.tolerance)


def certificate(params: Params, state: PointState, problem: Problem) -> dict[str, float]:
    """Return delta_phi, a bound on ||Phi(x) - Phi(c)|| for all events so far."""
    return {"delta_phi": feature_distance(problem.kernel, params.coverage.radius), "points": state.model.stored}


def apart(params: Params, a: PointState, b: PointState) -> Reduction:
    """Keep the points of merged models as far apart as those of a single one."""
    return Reduction(coverage=params.coverage)


LEARNER = Learner(__name__, loops.kernel_loop(step), configure, certificate=certificate, merge=Merge(points=apart))


class QKLMSRegressor(StepSize, IsotropicKernel, OnlineRegressor):
    """Quantised kernel least mean squares: constant steps, taken at the nearest stored point."""

    learner = LEARNER
    example = Example("1.00", gamma=1.0, delta=0.2)
    eta: float = parameter(default=0.5, search=Log(0.01, 1.9), doc="Step size; below 2 / K(x, x) steps are stable.")
    delta: str | float = parameter(
        default="auto",
        allowed=(OneOf(("auto",)), Real(0.0, extreme=1e100)),
        search=Times(0.5, 2.0),
        resolve=auto_delta,
        doc="Diameter of a cell.",
    )
