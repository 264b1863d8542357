"""Online gradient descent on pairs with the last point only.

Z. Yang, Y. Lei, P. Wang, T. Yang, Y. Ying: Simple Stochastic and Online Gradient Descent Algorithms for Pairwise Learning.
Advances in Neural Information Processing Systems 34 (2021).

Event t with label y and features r is paired with the last event of the other class, with features e:

    w <- w - eta (l'(w.d) d + lam w),   d = y (r - e).

Departures: any features, where the paper uses the columns; labels by a threshold on recent scores; several classes one against
the rest.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..compiler import inline
from ..components.pairwise import pair_loss, pair_move, pair_product, pair_slope, side_of
from ..components.sides import Sides, keep_example, new_sides
from ..components.threshold import Recent, keep_scores, new_recent, note
from ..core import losses
from ..core.averages import KINDS
from ..core.fourier import Linear
from ..driver import loops
from ..estimators.examples import Example
from ..estimators.learner import FeatureLearner, Needs, Problem, empty_linear
from ..estimators.options import PairLoss, RegularisedSteps
from ..estimators.pairwise import LinearPairwiseClassifier
from ..estimators.parameters import parameter


class Params(NamedTuple):
    loss: losses.Loss
    eta: float
    lam: float
    output: int


class State(NamedTuple):
    model: Linear
    sides: Sides
    recent: Recent


@inline
def step(params, state, features, j, f, y, weight, u):
    sides, z = state.sides, features.Z[j]
    keep_scores(state.recent, state.model, features, j, y, params.output)
    for o in range(f.size):
        own = side_of(y, o, f.size)
        if sides.counts[o, 1 - own] > 0.0:
            w, partner, sign = state.model.coef[0, state.model.places[o]], sides.examples[o, 1 - own], 2.0 * own - 1.0
            slope = pair_slope(params.loss, sign * pair_product(w, z, partner))
            pair_move(w, z, partner, 1.0 - params.eta * params.lam, -params.eta * weight * sign * slope)
        keep_example(sides, z, o, own)
        sides.counts[o, own] += 1.0


def configure(problem: Problem) -> tuple[Params, Needs]:
    o = problem.options
    params = Params(pair_loss(o["loss"]), o["eta"], o["lam"], KINDS[o["output"]])
    return params, Needs(output=o["output"], notes=problem.outputs)


def start(params: Params, needs: Needs, problem: Problem, rng: np.random.Generator) -> State:
    model = empty_linear(needs, problem, rng)
    return State(model, new_sides(model, means=False), new_recent(problem.outputs))


LEARNER = FeatureLearner(__name__, loops.feature_loop(step, note), configure, start)


class LastPointOGDClassifier(PairLoss, RegularisedSteps, LinearPairwiseClassifier):
    """Gradient descent on the pair of each event and the last one of the other class."""

    learner = LEARNER
    example = Example("0.91", eta=0.002)
    eta: float = parameter(default=0.1)
