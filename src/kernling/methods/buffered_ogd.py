"""Online gradient descent on pairs with buffers, RS-x.

P. Kar, B. K. Sriperumbudur, P. Jain, H. C. Karnick: On the Generalization Ability of Online Learning Algorithms for Pairwise
Loss Functions.  International Conference on Machine Learning (2013).

Event t with label y and features r meets all events e of the other class that a buffer holds:

    w <- w - eta / sqrt(t) (mean of l'(w.d) d + lam w),   d = y (r - e),

projected on ||w|| <= radius.

A buffer is filled, and from then on an event takes each of its places with probability 1 / n, each place with a coin of its
own, n the events of that class so far: the buffer holds independent draws of the past, and one event may hold several places.

Departures: a buffer per class, so that none is without partners; lam; any features, where the paper has the columns; labels by
a threshold on recent scores; several classes each against the rest.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..components.pairwise import (
    LOSSES,
    Buffers,
    Recent,
    buffer_row,
    buffered,
    keep_in_ball,
    keep_scores,
    new_buffers,
    new_recent,
    note,
    pair_slope,
    side_of,
)
from ..core import loop, losses
from ..core.expansion import EVENTS
from ..core.fourier import Linear
from ..core.jit import inline, jit
from ..estimators.constraints import POSITIVE, OneOf, Real, Whole
from ..estimators.learner import Learner, Needs, Problem, empty_linear, feature_count, no_points
from ..estimators.options import MeanOrLast, RandomFeatures
from ..estimators.pairwise import PairwiseClassifier
from ..estimators.parameters import parameter
from ..estimators.ranges import Log


class Params(NamedTuple):
    loss: losses.Loss
    eta: float
    lam: float
    radius: float
    averaged: bool


class State(NamedTuple):
    model: Linear
    buffers: Buffers
    recent: Recent


@jit
def descend(loss, w, z, rows, eta, lam, sign, weight):
    """One step on the mean over the pairs of z with all rows."""
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
    keep_scores(state.recent, model, features, j, y, params.averaged)
    eta = params.eta / np.sqrt(model.clock[EVENTS])
    for o in range(f.size):
        own = side_of(y, o, f.size)
        held = buffered(buffers, o, 1 - own)
        if held > 0:
            rows = buffers.rows[o, 1 - own, :held]
            descend(params.loss, model.coef[0, o], z, rows, eta, params.lam, 2.0 * own - 1.0, weight)
            keep_in_ball(model.coef[0, o], params.radius)
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
    loss = losses.Loss(LOSSES[o["loss"]], 0.0, 0.0)
    params = Params(loss, o["eta"], o["lam"], o["radius"], o["output"] == "average")
    return params, Needs(output=o["output"], uniforms=o["buffer_size"], notes=problem.outputs)


def start(params: Params, needs: Needs, problem: Problem, rng: np.random.Generator) -> State:
    model = empty_linear(needs, problem, rng)
    return State(model, new_buffers(model, needs.uniforms), new_recent(problem.outputs))


LEARNER = Learner(
    name="buffered_ogd",
    title="Online gradient descent on pairs with buffers",
    citation="P. Kar, B. K. Sriperumbudur, P. Jain, H. C. Karnick: On the Generalization Ability of Online Learning Algorithms "
    "for Pairwise Loss Functions, ICML, 2013",
    loop=loop.feature_loop(step, note),
    configure=configure,
    start=start,
    bound=no_points,
    certificate=feature_count,
)


class BufferedOGDClassifier(MeanOrLast, RandomFeatures, PairwiseClassifier):
    """Gradient descent on the pairs of each event with a random sample of the other class.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.metrics import roc_auc_score
    >>> from sklearn.preprocessing import scale
    >>> from kernling.baselines import BufferedOGDClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = BufferedOGDClassifier(eta=0.2, random_state=0).fit(scale(X), y)
    >>> print(f"{roc_auc_score(y, model.rank_scores(scale(X))):.1f}")
    1.0
    """

    learner = LEARNER
    loss: str = parameter(
        default="squared",
        allowed=OneOf(("squared", "hinge", "logistic")),
        doc="Of the margin f(x) - f(x') between an event of the positive class and one of the negative class.",
    )
    eta: float = parameter(
        default=0.5,
        allowed=POSITIVE,
        search=Log(0.01, 10.0),
        doc="Step size; it falls with the square root of the events.",
    )
    lam: float = parameter(
        default=0.0,
        allowed=Real(0.0),
        search=Log(1e-08, 0.01),
        doc="Weight of the squared norm of the model.",
    )
    radius: float = parameter(
        default=1000.0,
        allowed=POSITIVE,
        doc="The largest norm of the model. The default leaves rows of norm about 1 alone, and keeps others from diverging.",
    )
    buffer_size: int = parameter(default=50, allowed=Whole(1), doc="Events kept of each class.")
    features: str = parameter(default="linear", doc="The columns themselves, as published, or random features of a kernel.")
