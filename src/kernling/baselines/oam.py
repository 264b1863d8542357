"""OAM, online AUC maximisation.

P. Zhao, S. C. H. Hoi, R. Jin, T. Yang: Online AUC Maximization.  International Conference on Machine Learning (2011).

Event t with label y and features r is paired with all events e of the other class in a buffer of size B, a uniform sample of
the n events so far (reservoir sampling), with the hinge loss l = max(0, 1 - w.d), d = y (r - e), and C_t = C max(1, n / B).
"seq" takes one passive-aggressive step after the other, "gra" one gradient step:

    seq:  w <- w + min(C_t, l / ||d||^2) d   for each e in turn,
    gra:  w <- w + C_t / 2 (sum of the d with l > 0).

Departures: any features, where the paper uses the columns; labels by a threshold on recent scores; several classes one against
the rest.  A sample weight multiplies C_t.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..compiler import inline, inner, jit
from ..components.buffers import Buffers, buffer_row, buffered, new_buffers
from ..components.pairwise import pair_move, pair_product, side_of
from ..components.threshold import Recent, keep_scores, new_recent, note
from ..core.averages import KINDS
from ..core.fourier import Linear
from ..driver import loops
from ..estimators.constraints import OneOf
from ..estimators.examples import Example
from ..estimators.learner import FeatureLearner, Needs, Problem, empty_linear
from ..estimators.options import Aggressive, Buffer
from ..estimators.pairwise import LinearPairwiseClassifier
from ..estimators.parameters import parameter


class Params(NamedTuple):
    C: float
    sequential: bool
    output: int


class State(NamedTuple):
    model: Linear
    buffers: Buffers
    recent: Recent


@inner
def one_by_one(w, z, rows, cap, sign):
    for k in range(rows.shape[0]):
        loss = max(0.0, 1.0 - sign * pair_product(w, z, rows[k]))
        norm = 0.0
        for i in range(w.size):
            norm += (np.float64(z[i]) - rows[k, i]) ** 2
        if loss > 0.0 and norm > 0.0:
            pair_move(w, z, rows[k], 1.0, sign * min(cap, loss / norm))


@jit
def all_at_once(w, z, rows, cap, sign):
    violates = np.empty(rows.shape[0], np.bool_)
    for k in range(rows.shape[0]):
        violates[k] = sign * pair_product(w, z, rows[k]) < 1.0
    for k in range(rows.shape[0]):
        if violates[k]:
            pair_move(w, z, rows[k], 1.0, 0.5 * sign * cap)


@inline
def step(params, state, features, j, f, y, weight, u):
    model, buffers, z = state.model, state.buffers, features.Z[j]
    keep_scores(state.recent, model, features, j, y, params.output)
    for o in range(f.size):
        own = side_of(y, o, f.size)
        other = 1 - own
        held = buffered(buffers, o, other)
        if held > 0:
            cap = weight * params.C * max(1.0, buffers.counts[o, other] / buffers.rows.shape[2])
            rows = buffers.rows[o, other, :held]
            if params.sequential:
                one_by_one(model.coef[0, model.places[o]], z, rows, cap, 2.0 * own - 1.0)
            else:
                all_at_once(model.coef[0, model.places[o]], z, rows, cap, 2.0 * own - 1.0)
        buffers.counts[o, own] += 1.0
        n = buffers.counts[o, own]
        k = int(n) - 1 if n <= buffers.rows.shape[2] else int(u[0] * n)
        if k < buffers.rows.shape[2]:
            buffer_row(buffers, o, own, k, z)


def configure(problem: Problem) -> tuple[Params, Needs]:
    o = problem.options
    params = Params(o["C"], o["mode"] == "seq", KINDS[o["output"]])
    return params, Needs(output=o["output"], uniforms=1, notes=problem.outputs)


def start(params: Params, needs: Needs, problem: Problem, rng: np.random.Generator) -> State:
    model = empty_linear(needs, problem, rng)
    return State(model, new_buffers(model, problem.options["buffer_size"]), new_recent(problem.outputs))


LEARNER = FeatureLearner(__name__, loops.feature_loop(step, note), configure, start)


class OAMClassifier(Aggressive, Buffer, LinearPairwiseClassifier):
    """Online AUC maximisation with a uniform sample of each class."""

    learner = LEARNER
    example = Example("0.92", random_state=0)
    mode: str = parameter(
        default="seq",
        allowed=OneOf(("seq", "gra")),
        doc="A passive-aggressive step for each event of the sample in turn, or one gradient step on all of them.",
    )
    C: float = parameter(default=0.001)
