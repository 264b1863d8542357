"""SOLAM, stochastic online AUC maximisation.

Y. Ying, L. Wen, S. Lyu: Stochastic Online AUC Maximization.  Advances in Neural Information Processing Systems 29 (2016).

The squared pairwise loss is the saddle point, smallest in w, a, b and largest in al, of the mean over events of

    (1 - p) (w.r - a)^2 [y = +1] + p (w.r - b)^2 [y = -1] + 2 (1 + al) (p w.r [y = -1] - (1 - p) w.r [y = +1]) - p (1 - p) al^2,

p the fraction of positive events so far.  Each event takes a gradient step of size eta / sqrt(t) in all four, down and up, and
projects on ||w|| <= radius, |a|, |b| <= radius, |al| <= 2 radius (for features of norm 1).

Departures: the average of all models has equal weights, where the paper weights by step sizes; any features; labels by a
threshold on recent scores; several classes one against the rest.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np

from ..compiler import inline, inner
from ..components.pairwise import keep_in_ball, side_of
from ..components.sides import Sides, new_sides
from ..components.threshold import Recent, keep_scores, new_recent, note
from ..core.averages import KINDS
from ..core.expansion import EVENTS
from ..core.fourier import Linear
from ..core.shapes import declared
from ..core.state import Widening
from ..driver import loops
from ..estimators.constraints import POSITIVE
from ..estimators.examples import Example
from ..estimators.learner import FeatureLearner, Needs, Problem, empty_linear
from ..estimators.options import StepSize
from ..estimators.pairwise import LinearPairwiseClassifier
from ..estimators.parameters import parameter
from ..merging.rules import Merging


class Params(NamedTuple):
    eta: float
    radius: float
    output: int


@declared()
class Saddle(NamedTuple):
    """The variables a, b and al of each output: the scores of both classes' means, and their difference."""

    values: Annotated[np.ndarray, "coefficients: outputs 3"]

    def widened(self, change: Widening) -> Saddle:
        """Convert to the outputs of ``change``: where the sign turns, a and b change places, and al keeps its sign."""
        a, b, al = change.of(self.values).T
        swapped = change.factors < 0.0
        al = np.where(swapped, -al, al)
        return Saddle(np.column_stack([np.where(swapped, b, a), np.where(swapped, a, b), al]))

    def merged(self, other: Saddle, start: Saddle | None, merging: Merging) -> Saddle:
        """Return the weighted mean, as for the model."""
        return Saddle(merging.shares[0] * self.values + merging.shares[1] * other.values)


class State(NamedTuple):
    model: Linear
    sides: Sides
    saddle: Saddle
    recent: Recent


@inner
def descend(w, z, f, saddle, p, own, eta, radius):
    a, b, al = saddle[0], saddle[1], saddle[2]
    share = 1.0 - p if own == 1 else p
    sign = 2.0 * own - 1.0
    residual = f - (a if own == 1 else b)
    saddle[own ^ 1] += 2.0 * eta * share * residual  # a, of the positive side, comes first
    saddle[2] -= 2.0 * eta * (sign * share * f + p * (1.0 - p) * al)
    for i in range(w.size):
        w[i] -= 2.0 * eta * share * (residual - sign * (1.0 + al)) * np.float64(z[i])
    keep_in_ball(w, radius)
    for k in range(3):
        limit = radius if k < 2 else 2.0 * radius
        saddle[k] = min(limit, max(-limit, saddle[k]))


@inline
def step(params, state, features, j, f, y, weight, u):
    model, counts, z = state.model, state.sides.counts, features.Z[j]
    keep_scores(state.recent, model, features, j, y, params.output)
    eta = weight * params.eta / np.sqrt(model.clock[EVENTS])
    for o in range(f.size):
        own = side_of(y, o, f.size)
        counts[o, own] += 1.0
        if counts[o, 1 - own] > 0.0:
            p = counts[o, 1] / (counts[o, 0] + counts[o, 1])
            descend(model.coef[0, model.places[o]], z, f[o], state.saddle.values[o], p, own, eta, params.radius)


def configure(problem: Problem) -> tuple[Params, Needs]:
    o = problem.options
    return Params(o["eta"], o["radius"], KINDS[o["output"]]), Needs(output=o["output"], notes=problem.outputs)


def start(params: Params, needs: Needs, problem: Problem, rng: np.random.Generator) -> State:
    model = empty_linear(needs, problem, rng)
    sides = new_sides(model, means=False, examples=False)
    return State(model, sides, Saddle(np.zeros((problem.outputs, 3))), new_recent(problem.outputs))


LEARNER = FeatureLearner(__name__, loops.feature_loop(step, note), configure, start)


class SOLAMClassifier(StepSize, LinearPairwiseClassifier):
    """Stochastic online AUC maximisation as a saddle point."""

    learner = LEARNER
    example = Example("0.89")
    eta: float = parameter(default=0.1, doc="Step size; it is divided by the square root of the number of events.")
    radius: float = parameter(default=100.0, allowed=POSITIVE, doc="Maximum norm of the model.")
