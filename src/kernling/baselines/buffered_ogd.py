"""Online gradient descent on pairs with buffers, RS-x.

P. Kar, B. K. Sriperumbudur, P. Jain, H. C. Karnick: On the Generalization Ability of Online Learning Algorithms for Pairwise
Loss Functions.  International Conference on Machine Learning (2013).

Event t with label y and features r is paired with all buffered events e of the other class:

    w <- w - eta / sqrt(t) (mean of l'(w.d) d + lam w),   d = y (r - e),

projected on ||w|| <= radius.

Once a buffer is full, an event replaces each of its entries independently with probability 1 / n, where n is the number of
events of that class so far: the buffer contains independent draws of the past, and one event may have several entries.

Departures: a buffer per class, so that both always have events; lam; any features, where the paper uses the columns; labels by
a threshold on recent scores; several classes one against the rest.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..compiler import inline, jit
from ..components.buffers import Buffers, buffer_row, buffered, new_buffers
from ..components.pairwise import keep_in_ball, pair_loss, pair_slope, side_of
from ..components.threshold import Recent, keep_scores, new_recent, note
from ..core import losses
from ..core.averages import KINDS
from ..core.expansion import EVENTS
from ..core.fourier import Linear
from ..driver import loops
from ..estimators.constraints import POSITIVE
from ..estimators.examples import Example
from ..estimators.learner import FeatureLearner, Needs, Problem, empty_linear
from ..estimators.options import Buffer, PairLoss, RegularisedSteps
from ..estimators.pairwise import LinearPairwiseClassifier
from ..estimators.parameters import parameter


class Params(NamedTuple):
    loss: losses.Loss
    eta: float
    lam: float
    radius: float
    output: int


class State(NamedTuple):
    model: Linear
    buffers: Buffers
    recent: Recent


@jit
def descend(loss, w, z, rows, eta, lam, sign, weight):
    """Take one step on the mean loss over the pairs of z with all rows."""
    slopes = np.empty(rows.shape[0])
    total = 0.0
    for k in range(rows.shape[0]):
        product = 0.0
        for i in range(w.size):
            product += w[i] * (np.float64(z[i]) - rows[k, i])
        slopes[k] = sign * weight * pair_slope(loss, sign * product) / rows.shape[0]
        total += slopes[k]
    for i in range(w.size):
        w[i] -= eta * (total * np.float64(z[i]) + lam * w[i])
    for k in range(rows.shape[0]):
        for i in range(w.size):
            w[i] += eta * slopes[k] * rows[k, i]


@inline
def step(params, state, features, j, f, y, weight, u):
    model, buffers, z = state.model, state.buffers, features.Z[j]
    keep_scores(state.recent, model, features, j, y, params.output)
    eta = params.eta / np.sqrt(model.clock[EVENTS])
    for o in range(f.size):
        own = side_of(y, o, f.size)
        held = buffered(buffers, o, 1 - own)
        if held > 0:
            rows = buffers.rows[o, 1 - own, :held]
            descend(params.loss, model.coef[0, model.places[o]], z, rows, eta, params.lam, 2.0 * own - 1.0, weight)
            keep_in_ball(model.coef[0, model.places[o]], params.radius)
        buffers.counts[o, own] += 1.0
        n = buffers.counts[o, own]
        if n <= u.size:
            buffer_row(buffers, o, own, int(n) - 1, z)
        else:
            for k in range(u.size):
                if u[k] < 1.0 / n:
                    buffer_row(buffers, o, own, k, z)


def configure(problem: Problem) -> tuple[Params, Needs]:
    o = problem.options
    params = Params(pair_loss(o["loss"]), o["eta"], o["lam"], o["radius"], KINDS[o["output"]])
    return params, Needs(output=o["output"], uniforms=o["buffer_size"], notes=problem.outputs)


def start(params: Params, needs: Needs, problem: Problem, rng: np.random.Generator) -> State:
    model = empty_linear(needs, problem, rng)
    return State(model, new_buffers(model, needs.uniforms), new_recent(problem.outputs))


LEARNER = FeatureLearner(__name__, loops.feature_loop(step, note), configure, start)


class BufferedOGDClassifier(PairLoss, RegularisedSteps, Buffer, LinearPairwiseClassifier):
    """Gradient descent on the pairs of each event with a random sample of the other class."""

    learner = LEARNER
    example = Example("0.92", eta=0.2, random_state=0)
    eta: float = parameter(default=0.5, doc="Step size; it is divided by the square root of the number of events.")
    radius: float = parameter(
        default=1000.0,
        allowed=POSITIVE,
        doc="Maximum norm of the model. The default has no effect on rows of norm about 1, and keeps others from diverging.",
    )
