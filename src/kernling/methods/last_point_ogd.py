"""Online gradient descent on pairs with the last point only.

Z. Yang, Y. Lei, P. Wang, T. Yang, Y. Ying: Simple Stochastic and Online Gradient Descent Algorithms for Pairwise Learning.
Advances in Neural Information Processing Systems 34 (2021).

Event t with label y and features r meets the last event of the other class, with features e:

    w <- w - eta (l'(w.d) d + lam w),   d = y (r - e).

Departures: any features, where the paper has the columns; labels by a threshold on recent scores; several classes each against
the rest.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..components.pairwise import (
    LOSSES,
    Recent,
    Sides,
    keep_example,
    keep_scores,
    new_recent,
    new_sides,
    note,
    pair_move,
    pair_product,
    pair_slope,
    side_of,
)
from ..core import loop, losses
from ..core.fourier import Linear
from ..core.jit import inline
from ..estimators.constraints import POSITIVE, OneOf, Real
from ..estimators.learner import Learner, Needs, Problem, empty_linear, feature_count, no_points
from ..estimators.options import MeanOrLast, RandomFeatures
from ..estimators.pairwise import PairwiseClassifier
from ..estimators.parameters import parameter
from ..estimators.ranges import Log


class Params(NamedTuple):
    loss: losses.Loss
    eta: float
    lam: float
    averaged: bool


class State(NamedTuple):
    model: Linear
    sides: Sides
    recent: Recent


@inline
def step(params, state, features, j, f, y, weight, u):
    sides, z = state.sides, features.Z[j]
    keep_scores(state.recent, state.model, features, j, y, params.averaged)
    for o in range(f.size):
        own = side_of(y, o, f.size)
        if sides.counts[o, 1 - own] > 0.0:
            w, partner, sign = state.model.coef[0, o], sides.examples[o, 1 - own], 2.0 * own - 1.0
            slope = pair_slope(params.loss, sign * pair_product(w, z, partner))
            pair_move(w, z, partner, 1.0 - params.eta * params.lam, -params.eta * weight * sign * slope)
        keep_example(sides, z, o, own)
        sides.counts[o, own] += 1.0


def configure(problem: Problem) -> tuple[Params, Needs]:
    o = problem.options
    params = Params(losses.Loss(LOSSES[o["loss"]], 0.0, 0.0), o["eta"], o["lam"], o["output"] == "average")
    return params, Needs(output=o["output"], notes=problem.outputs)


def start(params: Params, needs: Needs, problem: Problem, rng: np.random.Generator) -> State:
    model = empty_linear(needs, problem, rng)
    return State(model, new_sides(model, means=False), new_recent(problem.outputs))


LEARNER = Learner(
    name="last_point_ogd",
    title="Online gradient descent on pairs with the last point",
    citation="Z. Yang, Y. Lei, P. Wang, T. Yang, Y. Ying: Simple Stochastic and Online Gradient Descent Algorithms for "
    "Pairwise Learning, NeurIPS, 2021",
    loop=loop.feature_loop(step, note),
    configure=configure,
    start=start,
    bound=no_points,
    certificate=feature_count,
)


class LastPointOGDClassifier(MeanOrLast, RandomFeatures, PairwiseClassifier):
    """Gradient descent on the pair of each event and the last one of the other class.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.metrics import roc_auc_score
    >>> from sklearn.preprocessing import scale
    >>> from kernling.baselines import LastPointOGDClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = LastPointOGDClassifier(eta=0.002).fit(scale(X), y)
    >>> print(f"{roc_auc_score(y, model.rank_scores(scale(X))):.1f}")
    1.0
    """

    learner = LEARNER
    loss: str = parameter(
        default="squared",
        allowed=OneOf(("squared", "hinge", "logistic")),
        doc="Of the margin f(x) - f(x') between an event of the positive class and one of the negative class.",
    )
    eta: float = parameter(default=0.1, allowed=POSITIVE, search=Log(0.01, 10.0), doc="Step size.")
    lam: float = parameter(
        default=0.0,
        allowed=Real(0.0),
        search=Log(1e-08, 0.01),
        doc="Weight of the squared norm of the model.",
    )
    features: str = parameter(default="linear", doc="The columns themselves, as published, or random features of a kernel.")
