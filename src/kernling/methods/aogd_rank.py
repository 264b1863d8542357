"""AOGD for ranking by real values.

H. AlQuabeh, W. de Vazelhes, B. Gu: Limited Memory Online Gradient Descent for Kernelized Pairwise Learning with Dynamic
Averaging.  AAAI Conference on Artificial Intelligence (2024).

A linear model on random features r(x).  The loss of two events is ((y - y') - w.(r - r'))^2 / 2.  Event t is paired with the
mean (r', y') of all events before it with step size eta, then with one stored event with step size second_eta:

    w <- w - eta (e d + lam w),   d = r(x_t) - r',   e = w.d - (y_t - y').

Then it updates the mean and, with probability p, replaces the stored event.

The paper does not specify the loss; this one makes differences of scores follow differences of values.  A sample weight
multiplies both gradients of the loss.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np

from ..compiler import inline
from ..components.pairwise import pair_move, pair_product
from ..core.expansion import EVENTS
from ..core.fourier import Linear
from ..core.shapes import declared
from ..driver import loops
from ..estimators.examples import Example
from ..estimators.learner import FeatureLearner, Needs, Problem, decay_of, empty_linear
from ..estimators.options import Forgets, MeanAndExample, MeanOrLast, RandomFeatures
from ..estimators.published import Published
from ..estimators.tasks import BaseOnlineRegressor
from ..merging.rules import Merge, Merging, events_of


class Params(NamedTuple):
    eta: float
    second_eta: float
    refresh: float
    lam: float


@declared()
class State(NamedTuple):
    model: Linear
    mean: Annotated[np.ndarray, "coefficients: features"]
    example: Annotated[np.ndarray, "coefficients: features"]
    values: Annotated[np.ndarray, "coefficients: 2"]  # of the mean and of the example


@inline
def descend(w, z, partner, gap, eta, lam, weight):
    error = pair_product(w, z, partner) - gap
    pair_move(w, z, partner, 1.0 - eta * lam, -eta * weight * error)


@inline
def step(params, state, features, j, f, y, weight, u):
    w, mean, example, values, z = state.model.coef[0, 0], state.mean, state.example, state.values, features.Z[j]
    t = state.model.clock[EVENTS]
    if t > 1.0:
        descend(w, z, mean, y - values[0], params.eta, params.lam, weight)
        descend(w, z, example, y - values[1], params.second_eta, params.lam, weight)
    values[0] += (y - values[0]) / t
    for i in range(w.size):
        mean[i] += (np.float64(z[i]) - mean[i]) / t
    if t == 1.0 or u[0] < params.refresh:
        values[1] = y
        for i in range(w.size):
            example[i] = z[i]


def configure(problem: Problem) -> tuple[Params, Needs]:
    o = problem.options
    params = Params(o["eta"], o["second_eta"], o["refresh"], o["lam"])
    return params, Needs(output=o["output"], uniforms=1, decay=decay_of(problem))


def start(params: Params, needs: Needs, problem: Problem, rng: np.random.Generator) -> State:
    model = empty_linear(needs, problem, rng)
    width = model.coef.shape[2]
    return State(model, np.zeros(width), np.zeros(width), np.zeros(2))


def of_all_events(merging: Merging, name: str) -> np.ndarray:
    """Return the mean over all events."""
    return merging.total(lambda state: events_of(state) * getattr(state, name)) / max(1.0, merging.total(events_of))


def of_the_larger(merging: Merging, name: str) -> np.ndarray:
    """Return the array of the state that has learned more events."""
    return getattr(merging.b if events_of(merging.b) > events_of(merging.a) else merging.a, name)


def merged_values(merging: Merging, name: str) -> np.ndarray:
    return np.array([of_all_events(merging, name)[0], of_the_larger(merging, name)[1]])


LEARNER = FeatureLearner(
    __name__,
    loops.feature_loop(step),
    configure,
    start,
    merge=Merge(arrays={"mean": of_all_events, "values": merged_values, "example": of_the_larger}),
)


class AOGDRanker(MeanAndExample, MeanOrLast, Forgets, RandomFeatures, BaseOnlineRegressor):
    """Averaged online gradient descent on pairs for ranking: differences of scores follow differences of values.

    ``predict`` returns scores of which only the order is meaningful; ``score`` is their rank correlation with the values.
    No points are stored: the model has ``n_components`` weights, 200 by default.
    """

    learner = LEARNER
    published_settings = Published(
        required=("gamma", "eta", "second_eta", "refresh", "n_components"),
        values={"kernel": "rbf", "degree": 3, "lam": 0.0},
        off={"output": "last", "features": "fourier", "coef0": 0.0, "forget": None},
    )
    example = Example("1.00", gamma=1.0, random_state=0)

    def score(self, X, y, sample_weight=None):
        """Return Spearman's rank correlation of ``predict(X)`` and y; 0 if one of them is constant."""
        weights = np.ones(len(y)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        from scipy.stats import rankdata  # takes a second to import

        (a, both), (_, b) = np.cov(rankdata(self.predict(X)), rankdata(y), aweights=weights, ddof=0)
        return float(both / np.sqrt(a * b)) if a * b > 0.0 else 0.0
