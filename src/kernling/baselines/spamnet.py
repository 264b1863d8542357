"""SPAM-NET, stochastic proximal AUC maximisation with an elastic net.

M. Natole, Y. Ying, S. Lyu: Stochastic Proximal Algorithms for AUC Maximization.  International Conference on Machine Learning
(2018).

With p the fraction of positive events, m+ and m- the class means, a = w.m+, b = w.m- and al = b - a, the squared pairwise loss
has the gradient g, for an event with features r, of

    y = +1:  2 (1 - p) (w.r - a - 1 - al) r,
    y = -1:  2 p (w.r - b + 1 + al) r,

and then w <- prox(w - eta_t g), eta_t = eta / sqrt(t): the soft threshold eta_t l1, then a division by 1 + eta_t l2.

Departures: p and the means are those of the events so far, this one included, where the paper computes them from all data; any
features; labels by a threshold on recent scores; several classes one against the rest.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..compiler import inline, inner
from ..components.pairwise import side_of
from ..components.sides import Sides, join_mean, new_sides
from ..components.threshold import Recent, keep_scores, new_recent, note
from ..core.averages import KINDS
from ..core.expansion import EVENTS
from ..core.fourier import Linear
from ..driver import loops
from ..estimators.constraints import Real
from ..estimators.examples import Example
from ..estimators.learner import FeatureLearner, Needs, Problem, empty_linear
from ..estimators.options import StepSize
from ..estimators.pairwise import LinearPairwiseClassifier
from ..estimators.parameters import parameter


class Params(NamedTuple):
    eta: float
    l1: float
    l2: float
    output: int


class State(NamedTuple):
    model: Linear
    sides: Sides
    recent: Recent


@inner
def descend(params, w, z, f, negative, positive, p, own, eta, weight):
    a = b = 0.0
    for i in range(w.size):
        a += w[i] * positive[i]
        b += w[i] * negative[i]
    gap = 1.0 + b - a
    change = eta * weight * (2.0 * (1.0 - p) * (f - a - gap) if own == 1 else 2.0 * p * (f - b + gap))
    for i in range(w.size):
        moved = w[i] - change * np.float64(z[i])
        shrunk = max(0.0, abs(moved) - eta * params.l1) / (1.0 + eta * params.l2)
        w[i] = shrunk if moved > 0.0 else -shrunk


@inline
def step(params, state, features, j, f, y, weight, u):
    model, sides, z = state.model, state.sides, features.Z[j]
    keep_scores(state.recent, model, features, j, y, params.output)
    eta = params.eta / np.sqrt(model.clock[EVENTS])
    for o in range(f.size):
        own = side_of(y, o, f.size)
        sides.counts[o, own] += 1.0
        join_mean(sides.means[o, own], z, 1.0 / sides.counts[o, own])
        if sides.counts[o, 1 - own] > 0.0:
            p = sides.counts[o, 1] / (sides.counts[o, 0] + sides.counts[o, 1])
            descend(params, model.coef[0, model.places[o]], z, f[o], sides.means[o, 0], sides.means[o, 1], p, own, eta, weight)


def configure(problem: Problem) -> tuple[Params, Needs]:
    o = problem.options
    return Params(o["eta"], o["l1"], o["l2"], KINDS[o["output"]]), Needs(output=o["output"], notes=problem.outputs)


def start(params: Params, needs: Needs, problem: Problem, rng: np.random.Generator) -> State:
    model = empty_linear(needs, problem, rng)
    return State(model, new_sides(model, examples=False), new_recent(problem.outputs))


LEARNER = FeatureLearner(__name__, loops.feature_loop(step, note), configure, start)


class SPAMNetClassifier(StepSize, LinearPairwiseClassifier):
    """Stochastic proximal AUC maximisation with an elastic net."""

    learner = LEARNER
    example = Example("0.83")
    eta: float = parameter(default=0.1, doc="Step size; it is divided by the square root of the number of events.")
    l1: float = parameter(default=0.0, allowed=Real(0.0), doc="Weight of the sum of absolute coefficients.")
    l2: float = parameter(default=0.0, allowed=Real(0.0), doc="Weight of half the squared norm.")
