"""AOGD for a metric.

H. AlQuabeh, W. de Vazelhes, B. Gu: Limited Memory Online Gradient Descent for Kernelized Pairwise Learning with Dynamic
Averaging.  AAAI Conference on Artificial Intelligence (2024).

A pair (x, x') has the features r(x) - r(x'), whose inner products are the pairwise kernel of equation 10,
k((x, x'), (z, z')) = G(x, z) + G(x', z') - G(x, z') - G(x', z), if r are random Fourier features of G; or r are the columns.
With a weight w_k >= 0 for each of them, the squared distance is D(x, x') = sum of w_k (r_k(x) - r_k(x'))^2; if all weights are
1 it is k((x, x'), (x, x')) = 2 - 2 G(x, x').  Pairs of the same class should be nearer than 1 and others farther: the margin
is m = s (1 - D), s = +1 for the same class and -1 otherwise.  Event t is paired with the mean r' of each class with step size
eta, in the order of the labels, then with each class's example with step size second_eta:

    w_k <- w_k - eta (lam w_k - s l'(m) (r_k(x_t) - r'_k)^2),

and then negative weights become 0.  Finally, it updates the mean and example of its class as in aogd.py.

The paper specifies neither the loss nor the distance of a metric.  For different classes the loss is not convex in r', so a
step against a mean does not minimise a bound on the mean loss; it is a heuristic here.  By default the metric is on the
columns, and the mean of all weights is used.  A sample weight multiplies the gradients of the loss.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.base import OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from ..compiler import inline, inner
from ..components.pairwise import pair_loss, pair_slope
from ..components.sides import pooled_examples, pooled_means
from ..core import losses
from ..core.fourier import Linear, feature_table
from ..core.rows import as_rows
from ..core.shapes import declared
from ..driver import loops, scoring
from ..estimators.checking import canonical, checked
from ..estimators.learner import FeatureLearner, Needs, Problem, empty_linear
from ..estimators.options import MeanAndExample, MeanOrLast, PairLoss, RandomFeatures
from ..estimators.parameters import parameter
from ..estimators.published import Published
from ..estimators.resolve import feature_gamma
from ..estimators.tasks import OnlineWithClasses
from ..estimators.turns import predicting
from ..merging.rules import Merging


class Params(NamedTuple):
    loss: losses.Loss
    eta: float
    second_eta: float
    refresh: float
    lam: float


@declared()
class Classes(NamedTuple):
    """Number of events, mean and example of each class, in the order of the labels."""

    counts: Annotated[np.ndarray, "counts: classes"]
    means: Annotated[np.ndarray, "coefficients: classes features"]
    examples: Annotated[np.ndarray, "coefficients: classes features"]

    def with_class(self, place: int) -> Classes:
        """Return arrays with room for one more class."""
        return Classes(*(np.insert(array, place, 0.0, axis=0) for array in self))

    def merged(self, other: Classes, start: Classes | None, merging: Merging) -> Classes:
        """Return the exact counts and means of all events."""
        return Classes(*pooled_means(self, other, start), pooled_examples(self, other))


class State(NamedTuple):
    model: Linear
    classes: Classes

    def check(self, dimensions: Mapping[str, int]) -> None:
        """Raise unless the weights of the columns can be those of a metric."""
        if (self.model.coef < 0.0).any():
            raise ValueError("state.model.coef has numbers below 0, which are no weights")


@inner
def descend(params, w, z, partner, s, eta, weight):
    distance = 0.0
    for k in range(w.size):
        distance += w[k] * (np.float64(z[k]) - partner[k]) ** 2
    slope = -s * weight * pair_slope(params.loss, s * (1.0 - distance))
    for k in range(w.size):
        w[k] -= eta * (slope * (np.float64(z[k]) - partner[k]) ** 2 + params.lam * w[k])


@inline
def step(params, state, features, j, f, y, weight, u):
    w, z, own = state.model.coef[0, 0], features.Z[j], int(y)
    counts, means, examples = state.classes.counts, state.classes.means, state.classes.examples
    for c in range(counts.size):
        if counts[c] > 0.0:
            descend(params, w, z, means[c], 1.0 if c == own else -1.0, params.eta, weight)
    for c in range(counts.size):
        if counts[c] > 0.0:
            descend(params, w, z, examples[c], 1.0 if c == own else -1.0, params.second_eta, weight)
    for k in range(w.size):
        w[k] = max(0.0, w[k])
    counts[own] += 1.0
    for k in range(w.size):
        means[own, k] += (np.float64(z[k]) - means[own, k]) / counts[own]
        if counts[own] == 1.0 or u[0] < params.refresh:
            examples[own, k] = z[k]


def configure(problem: Problem) -> tuple[Params, Needs]:
    o = problem.options
    params = Params(pair_loss(o["loss"]), o["eta"], o["second_eta"], o["refresh"], o["lam"])
    return params, Needs(output=o["output"], uniforms=1)


def start(params: Params, needs: Needs, problem: Problem, rng: np.random.Generator) -> State:
    model = empty_linear(needs, problem, rng)
    none = np.zeros((0, model.coef.shape[2]))
    return State(model, Classes(np.zeros(0), none, none))


LEARNER = FeatureLearner(__name__, loops.feature_loop(step), configure, start)


class AOGDMetric(
    PairLoss, MeanAndExample, MeanOrLast, RandomFeatures, OneToOneFeatureMixin, TransformerMixin, OnlineWithClasses
):
    """Metric learning: a transformer that scales each column or feature by how much it helps to separate the classes.

    ``transform`` multiplies each column, or with ``features="fourier"`` each random feature of a kernel, by the root of its
    weight, so that Euclidean distances of its output are the learned ones: pairs of the same class tend to be nearer than 1,
    others farther.  No points are stored, only a mean and an example of each class.

    Examples
    --------
    >>> import numpy as np, kernling as kl
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(2, size=1000)
    >>> X = rng.normal(size=(1000, 3))
    >>> X[:, 0] += 3 * y
    >>> print(np.argmax(kl.AOGDMetric(random_state=0).fit(X, y).weights_))
    0
    """

    learner = LEARNER
    published_settings = Published(
        required=("gamma", "eta", "second_eta", "refresh", "n_components"),
        choices={"loss": ("hinge", "squared", "logistic")},
        values={"kernel": "rbf", "degree": 3, "lam": 0.0},
        off={"output": "last", "features": "fourier", "coef0": 0.0},
    )
    loss: str = parameter(
        default="hinge",
        doc="Loss of the margin s (1 - D): D is the squared distance, s = +1 for the same class and -1 otherwise.",
    )
    eta: float = parameter(default=0.01, doc="Size of the steps against the means of the classes.")
    second_eta: float = parameter(default=0.01, doc="Size of the steps against the examples of the classes.")
    refresh: float = parameter(default=0.1, doc="Probability with which an event becomes the example of its class.")
    lam: float = parameter(default=0.0, doc="Weight of the regulariser in all steps.")
    output: str = parameter(default="average", doc="Weights to use: the mean of all so far, or the last ones.")
    gamma: float | str = parameter(default="scale", resolve=feature_gamma)
    features: str = parameter(default="linear", doc="The columns themselves, or random features of the kernel.")
    task = "metric"
    class_weight = n_jobs = None

    def fit(self, X, y, sample_weight=None):
        """Fit the metric to the rows, discarding earlier state."""
        return self._fit(X, y, sample_weight)

    def partial_fit(self, X, y, classes=None, sample_weight=None):
        """Update the metric with the rows.  New classes are added when they appear, or may be given in the first call."""
        self._stream(X, y, sample_weight, classes)
        return self

    @predicting
    def transform(self, X):
        """Multiply each column, or each random feature, by the square root of its weight."""
        check_is_fitted(self)
        X = checked(self, X, largest=self._largest, dtype=self._problem.dtype, reset=False)
        roots = np.sqrt(self.weights_).astype(self._problem.dtype)
        if self.features != "linear":
            X = feature_table(self._state.model, as_rows(canonical(X)), 0, X.shape[0]).T.astype(self._problem.dtype)
        return (X @ sparse.diags_array(roots)).tocsr() if sparse.issparse(X) else X * roots

    def get_feature_names_out(self, input_features=None):
        """Return the names of the columns, or aogdmetric0, aogdmetric1, ... for random features."""
        names = super().get_feature_names_out(input_features)
        if self.features == "linear":
            return names
        return np.array([f"aogdmetric{i}" for i in range(len(self.weights_))], dtype=object)

    @property
    def weights_(self) -> np.ndarray:
        """Weight of each column or feature in the squared distance."""
        self._fitted()
        return scoring.frozen_parts(self._setup, self._state)[0].coef[0, 0].copy()

    @property
    def score_one(self):
        """Not available: a metric has no scores."""
        raise AttributeError("an AOGDMetric has transform, and no scores")

    predict_then_learn_one = score_one

    def _settle_on(self, X):
        if self.features != "linear":  # columns are scaled by learning
            super()._settle_on(X)

    def _begin(self, options, d, outputs):
        super()._begin(options, d, outputs)
        for place in range(len(getattr(self, "classes_", ()))):
            self._widen(place, None)

    def _widen(self, place, change):
        self._state = self._state._replace(classes=self._state.classes.with_class(place))

    def _output_count(self):
        return 1

    def _targets(self, y, weights):
        return np.searchsorted(self.classes_, y).astype(np.float64)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags
