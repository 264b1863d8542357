"""OPAUC, one-pass AUC optimisation.

W. Gao, R. Jin, S. Zhu, Z.-H. Zhou: One-Pass AUC Optimization.  International Conference on Machine Learning (2013).

The squared pairwise loss of an event with all events of the other class so far depends on their mean m and covariance S only:

    w <- w - eta ((w.d - y) d + S w + lam w),   d = r - m,

which is the exact gradient, with memory that grows with the square of the number of features.

Departures: any features, where the paper uses the columns; labels by a threshold on recent scores; several classes one against
the rest.  A sample weight multiplies the gradient of the loss.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np

from ..compiler import inline, inner, jit
from ..components.pairwise import inherited, side_of
from ..components.sides import pooled_means
from ..components.threshold import Recent, keep_scores, new_recent, note
from ..core.averages import KINDS
from ..core.expansion import check_room
from ..core.fourier import Linear
from ..core.shapes import declared
from ..core.state import Widening, added
from ..driver import loops
from ..estimators.examples import Example
from ..estimators.learner import FeatureLearner, Needs, Problem, empty_linear
from ..estimators.options import RegularisedSteps
from ..estimators.pairwise import LinearPairwiseClassifier
from ..estimators.parameters import parameter
from ..merging.rules import Merging


class Params(NamedTuple):
    eta: float
    lam: float
    output: int


def outer(means: np.ndarray) -> np.ndarray:
    """Return m m' for each mean m."""
    return means[..., :, np.newaxis] * means[..., np.newaxis, :]


@declared()
class Moments(NamedTuple):
    """Number of events, mean and covariance of their features, for each side of each output."""

    counts: Annotated[np.ndarray, "counts: outputs 2"]
    means: Annotated[np.ndarray, "coefficients: outputs 2 features"]
    covariances: Annotated[np.ndarray, "coefficients: outputs 2 features features"]

    def widened(self, change: Widening) -> Moments:
        """Convert to the outputs of ``change``; all earlier events are negative examples of a new class."""
        outputs = [
            self._everything() if old is None else tuple(array[old[0], :: old[1]] for array in self)
            for old in inherited(change)
        ]
        return Moments(*(np.stack(parts) for parts in zip(*outputs, strict=True)))

    def _everything(self) -> tuple[np.ndarray, ...]:
        counts, means, covariances = (np.zeros_like(array[0]) for array in self)
        counts[0] = self.counts[0].sum()
        share = self.counts[0] / max(1.0, counts[0])
        means[0] = share @ self.means[0]
        apart = self.means[0] - means[0]
        covariances[0] = np.tensordot(share, self.covariances[0], (0, 0)) + (share * apart.T) @ apart
        return counts, means, covariances

    def merged(self, other: Moments, start: Moments | None, merging: Merging) -> Moments:
        """Return the exact counts, means and covariances of all events."""
        counts, means = pooled_means(self, other, start)
        squares = added(self, other, start, lambda part: part.counts[..., None, None] * (part.covariances + outer(part.means)))
        return Moments(counts, means, squares / np.maximum(counts, 1.0)[..., None, None] - outer(means))


class State(NamedTuple):
    model: Linear
    moments: Moments
    recent: Recent


@jit
def descend(w, z, f, mean, covariance, sign, eta, lam, weight):
    """Take one step on the mean loss over the pairs of z with all events of the other side."""
    product = f
    for i in range(w.size):
        product -= w[i] * mean[i]
    old = w.copy()
    for i in range(w.size):
        drift = 0.0
        for k in range(w.size):
            drift += covariance[i, k] * old[k]
        w[i] -= eta * (weight * ((product - sign) * (np.float64(z[i]) - mean[i]) + drift) + lam * old[i])


@inner
def join(mean, covariance, z, n):
    """Update the covariance with event n, then the mean."""
    for i in range(mean.size):
        apart = np.float64(z[i]) - mean[i]
        for k in range(mean.size):
            spread = (n - 1.0) / n * apart * (np.float64(z[k]) - mean[k])
            covariance[i, k] += (spread - covariance[i, k]) / n
    for i in range(mean.size):
        mean[i] += (np.float64(z[i]) - mean[i]) / n


@inline
def step(params, state, features, j, f, y, weight, u):
    model, moments, z = state.model, state.moments, features.Z[j]
    keep_scores(state.recent, model, features, j, y, params.output)
    for o in range(f.size):
        own = side_of(y, o, f.size)
        other = 1 - own
        if moments.counts[o, other] > 0.0:
            mean, covariance = moments.means[o, other], moments.covariances[o, other]
            descend(model.coef[0, model.places[o]], z, f[o], mean, covariance, 2.0 * own - 1.0, params.eta, params.lam, weight)
        moments.counts[o, own] += 1.0
        join(moments.means[o, own], moments.covariances[o, own], z, moments.counts[o, own])


def configure(problem: Problem) -> tuple[Params, Needs]:
    o = problem.options
    return Params(o["eta"], o["lam"], KINDS[o["output"]]), Needs(output=o["output"], notes=problem.outputs)


def start(params: Params, needs: Needs, problem: Problem, rng: np.random.Generator) -> State:
    model = empty_linear(needs, problem, rng)
    outputs, width = model.outputs, model.coef.shape[2]
    check_room(2 * outputs * width, width, "covariances")
    moments = Moments(np.zeros((outputs, 2)), np.zeros((outputs, 2, width)), np.zeros((outputs, 2, width, width)))
    return State(model, moments, new_recent(outputs))


LEARNER = FeatureLearner(__name__, loops.feature_loop(step, note), configure, start)


class OPAUCClassifier(RegularisedSteps, LinearPairwiseClassifier):
    """One-pass AUC optimisation by class means and covariances."""

    learner = LEARNER
    example = Example("0.94", eta=0.02)
    eta: float = parameter(default=0.1)
