"""AOGD for classes, for ranking and for a metric."""

from __future__ import annotations

import numpy as np
from scipy import sparse
from scipy.stats import rankdata
from sklearn.base import OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from ..core import scoring
from ..core.pairs import LOSSES
from .checking import checked
from .pairwise import PAIRWISE, PairwiseClassifier
from .parameters import FORGET, OneOf, Real, Rule
from .ranges import GAMMA, Log, Range
from .tasks import OnlineRegressor, OnlineWithClasses

_RULES: dict[str, tuple[Rule, ...]] = {
    "forget": FORGET,
    **PAIRWISE,
    "eta": (Real(0.0),),
    "second_eta": (Real(0.0),),
    "refresh": (Real(0.0, 1.0),),
    "lam": (Real(0.0),),
}
_SEARCH: dict[str, Range] = {"gamma": GAMMA, "eta": Log(1e-2, 2.0), "second_eta": Log(1e-3, 1.0)}


class AOGDClassifier(PairwiseClassifier):
    """Averaged online gradient descent on pairs: maximises the area under the ROC curve, which no imbalance of classes changes.

    ``rank_scores`` ranks; ``decision_function`` is the same less a threshold kept online, the one with the largest balanced
    accuracy on 128 recent scores of each class.  More than two classes: each against the rest.

    Parameters
    ----------
    loss : {"squared", "hinge", "logistic"}
        Of the margin f(x) - f(x') between an event of the positive class and one of the negative class.
    eta : float
        Size of the step against the mean of the other class.
    second_eta : float
        Size of the step against the example that was kept of the other class.
    refresh : float
        The probability with which an event becomes the example of its class; the last example of each class for 1.
    lam : float
        Weight of the squared norm of the model in both steps.
    output : {"average", "last"}
        The mean of all models so far, or the last one.
    n_components : int
        Number of features, rounded up to an even one.
    features : {"fourier", "orthogonal", "linear"}
        Random frequencies, orthogonal ones, or the columns themselves.
    forget, kernel, gamma, degree, coef0, random_state, dtype, block_size, passes, shuffle, n_jobs, verbose
        As in :class:`AVMClassifier`.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.metrics import roc_auc_score
    >>> from sklearn.preprocessing import scale
    >>> import kernling as kl
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = kl.AOGDClassifier(random_state=0).fit(scale(X), y)
    >>> print(f"{roc_auc_score(y, model.rank_scores(scale(X))):.2f}")
    1.00
    """

    learner = "aogd"
    search = _SEARCH
    rules = {**_RULES, "loss": (OneOf(tuple(LOSSES)),)}

    def __init__(
        self, loss="squared", *, eta=0.25, second_eta=0.0625, refresh=0.1, lam=0.0, output="average", n_components=200,
        features="fourier", forget=None, kernel="rbf", gamma="scale", degree=3, coef0=0.0, random_state=None, dtype="float64",
        block_size=128, passes=1, shuffle=False, n_jobs=None, verbose=False,
    ):  # fmt: skip
        self._remember(locals())


class AOGDRanker(OnlineRegressor):
    """Averaged online gradient descent on pairs for ranking: differences of scores follow differences of values.

    ``predict`` gives scores whose order matters and whose zero does not; ``score`` is their rank correlation with the values.

    Parameters
    ----------
    eta : float
        Size of the step against the mean of all events.
    second_eta : float
        Size of the step against the event that was kept.
    refresh : float
        The probability with which an event is kept in place of the one before.
    lam, output, n_components, features, forget, kernel, gamma, degree, coef0, random_state, dtype, block_size, passes,\
    shuffle, n_jobs, verbose
        As in :class:`AOGDClassifier`.

    Examples
    --------
    >>> import numpy as np, kernling as kl
    >>> X = np.random.default_rng(0).uniform(-3, 3, size=(2000, 1))
    >>> model = kl.AOGDRanker(gamma=1.0, random_state=0).fit(X, np.sin(X[:, 0]))
    >>> print(f"{model.score(X, np.sin(X[:, 0])):.2f}")
    1.00
    """

    learner = "aogd_rank"
    search = _SEARCH
    rules = _RULES

    def __init__(
        self, *, eta=0.25, second_eta=0.0625, refresh=0.1, lam=0.0, output="average", n_components=200, features="fourier",
        forget=None, kernel="rbf", gamma="scale", degree=3, coef0=0.0, random_state=None, dtype="float64", block_size=128,
        passes=1, shuffle=False, n_jobs=None, verbose=False,
    ):  # fmt: skip
        self._remember(locals())

    def score(self, X, y, sample_weight=None):
        """Spearman's rank correlation of ``predict(X)`` and y; 0 where one of them is constant."""
        weights = np.ones(len(y)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        (a, both), (_, b) = np.cov(rankdata(self.predict(X)), rankdata(y), aweights=weights, ddof=0)
        return float(both / np.sqrt(a * b)) if a * b > 0.0 else 0.0


class AOGDMetric(OneToOneFeatureMixin, TransformerMixin, OnlineWithClasses):
    """Learns how much each column matters for telling classes apart: a transformer that stretches columns.

    ``transform`` multiplies each column by the root of its weight, so that Euclidean distances of its output are the learned
    ones: about 1 separates pairs of one class from pairs of two.

    Parameters
    ----------
    loss : {"hinge", "squared", "logistic"}
        Of the margin s (1 - D): D the squared distance of two events, s = +1 for one class and -1 for two.
    eta : float
        Size of the steps against the means of the classes.
    second_eta : float
        Size of the steps against the examples that were kept of the classes.
    refresh : float
        The probability with which an event becomes the example of its class.
    lam : float
        Weight of half the sum of squared weights in all steps.
    output : {"average", "last"}
        The mean of all weights so far, or the last ones.
    random_state, dtype, block_size, passes, shuffle, verbose
        As in :class:`AVMClassifier`.

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

    learner = "aogd_metric"
    search = _SEARCH
    task = "metric"
    rules = {name: _RULES[name] for name in ("eta", "second_eta", "refresh", "lam", "output")} | {
        "loss": (OneOf(tuple(LOSSES)),)
    }

    def __init__(
        self, loss="hinge", *, eta=0.01, second_eta=0.01, refresh=0.1, lam=0.0, output="average", random_state=None,
        dtype="float64", block_size=128, passes=1, shuffle=False, verbose=False,
    ):  # fmt: skip
        self._remember(locals())

    kernel, gamma, degree, coef0 = "linear", 1.0, 1, 0.0  # columns are taken as they are
    class_weight = n_jobs = None

    def fit(self, X, y, sample_weight=None):
        """Forget everything and learn the rows."""
        return self._fit(X, y, sample_weight)

    def partial_fit(self, X, y, classes=None, sample_weight=None):
        """Go on learning.  Classes may be given at the first call; without them, new ones join as they appear."""
        self._stream(X, y, sample_weight, classes)
        return self

    def transform(self, X):
        """The rows with each column times the root of its weight."""
        check_is_fitted(self)
        X = checked(self, X, largest=self._largest, dtype=self._problem.dtype, reset=False)
        roots = np.sqrt(self.weights_).astype(self._problem.dtype)
        return (X @ sparse.diags_array(roots)).tocsr() if sparse.issparse(X) else X * roots

    @property
    def weights_(self) -> np.ndarray:
        """How much each column counts in the squared distance."""
        self._fitted()
        return scoring.frozen_parts(self._setup, self._state)[0].coef[0, 0].copy()

    @property
    def score_one(self):
        """A metric scores no events."""
        raise AttributeError("an AOGDMetric has transform, and no scores")

    @classmethod
    def _rules(cls):
        own = cls._get_param_names()
        return {name: rules for name, rules in super()._rules().items() if name in own}

    def _begin(self, options, d, outputs):
        super()._begin({"gamma": self.gamma, **options}, d, outputs)
        for place in range(len(getattr(self, "classes_", ()))):
            self._widen(place, np.eye(1))

    def _widen(self, place, change):
        self._state = self._state._replace(classes=self._state.classes.with_class(place))

    def _output_count(self):
        return 1

    def _targets(self, y):
        return np.searchsorted(self.classes_, y).astype(np.float64)

    def _target_of(self, y):
        return self._place[y]

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags
