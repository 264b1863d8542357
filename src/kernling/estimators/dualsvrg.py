"""DualSVRG for classification and regression."""

from __future__ import annotations

from .parameters import CLASS_WEIGHT, FEATURES, FORGET, NOTHING, POSITIVE, OneOf, Real, Rule, Whole
from .ranges import GAMMA, Log, Range, Times
from .tasks import OnlineClassifier, OnlineRegressor

_RULES: dict[str, tuple[Rule, ...]] = {
    "forget": FORGET,
    **FEATURES,
    "lam": (POSITIVE,),
    "eta": (NOTHING, POSITIVE),
    "oracle": (OneOf(("coverage", "budget", "always")),),
    "theta": (OneOf(("auto",)), Real(0.0, strict=True, extreme=1e100)),
    "budget": (Whole(1),),
    "memory": (Whole(1),),
    "period": (Whole(1),),
    "tau": (POSITIVE,),
}
_SEARCH: dict[str, Range] = {"gamma": GAMMA, "lam": Log(1e-7, 1e-2), "theta": Times(0.5, 2.0)}


class DualSVRGClassifier(OnlineClassifier):
    """Variance-reduced gradient descent on a model that is part kernel expansion, part linear in random features.

    Parameters
    ----------
    loss : {"smooth_hinge", "logistic", "softmax"}
        For more than two classes the first two act on the margin f_y - f_z over the best wrong class.
    lam : float
        Weight of the regulariser, which is handled implicitly.
    eta : float, optional
        Step size; 1 / (76 M) by default, M the smoothness of the loss.  The theory asks for it; short streams want more.
    oracle : {"coverage", "budget", "always"}
        Which events are stored as points: those farther than theta from all stored ones; the first ``budget``; none.
    theta : float or "auto"
        Of the coverage; "auto": half the diameter at which the first 1,000 rows open at most 100 cells.
    budget : int
        Of the budget oracle.
    n_components : int
        Number of random features: a cosine and a sine for each frequency, so an odd number is one more.
    features : {"fourier", "orthogonal", "linear"}
        Random frequencies, orthogonal ones, or the columns themselves.
    memory : int
        Events whose gradients at the snapshot make up the mean gradient; does not change the cost of a step.
    period : int
        Events between snapshots.
    tau : float
        Width of the smooth hinge.
    forget, kernel, gamma, degree, coef0, class_weight, random_state, dtype, block_size, passes, shuffle, n_jobs, verbose
        As in :class:`AVMClassifier`.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> import kernling as kl
    >>> X, y = load_digits(return_X_y=True)
    >>> model = kl.DualSVRGClassifier(gamma=0.1, eta=0.5, random_state=0).fit(X / 16.0, y)
    >>> print(f"{model.score(X / 16.0, y):.2f} with {model.n_support_} points")
    0.92 with 134 points
    """

    learner = "dualsvrg"
    search = _SEARCH
    rules = {**_RULES, "loss": (OneOf(("smooth_hinge", "logistic", "softmax")),), "class_weight": CLASS_WEIGHT}

    def __init__(
        self, loss="smooth_hinge", *, lam=1e-4, eta=None, oracle="coverage", theta="auto", budget=100, n_components=200,
        features="fourier", memory=100, period=100, tau=0.5, forget=None, kernel="rbf", gamma="scale", degree=3, coef0=0.0,
        class_weight=None, random_state=None, dtype="float64", block_size=128, passes=1, shuffle=False, n_jobs=None,
        verbose=False,
    ):  # fmt: skip
        self._remember(locals())

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = self.eta is None  # the theory's steps are small, for long streams
        return tags


class DualSVRGRegressor(OnlineRegressor):
    """Variance-reduced regression on a model that is part kernel expansion, part linear in random features.

    Parameters
    ----------
    loss : {"l2", "huber", "smooth_epsilon"}
        Of the residual.
    tau : float
        Knee of Huber's loss; width of the rounded corner of smooth_epsilon.
    epsilon : float
        Half the width of smooth_epsilon's tube without loss.
    lam, eta, oracle, theta, budget, n_components, features, memory, period, forget, kernel, gamma, degree, coef0,\
    random_state, dtype, block_size, passes, shuffle, n_jobs, verbose
        As in :class:`DualSVRGClassifier`.

    Examples
    --------
    >>> import numpy as np, kernling as kl
    >>> X = np.random.default_rng(0).uniform(-3, 3, size=(2000, 1))
    >>> model = kl.DualSVRGRegressor(gamma=1.0, eta=0.2, random_state=0).fit(X, np.sin(X[:, 0]))
    >>> print(f"{model.score(X, np.sin(X[:, 0])):.2f} with {model.n_support_} points")
    1.00 with 103 points
    """

    learner = "dualsvrg"
    search = _SEARCH
    rules = {**_RULES, "loss": (OneOf(("l2", "huber", "smooth_epsilon")),), "epsilon": (Real(0.0),)}

    def __init__(
        self, loss="l2", *, lam=1e-4, eta=None, epsilon=0.1, oracle="coverage", theta="auto", budget=100, n_components=200,
        features="fourier", memory=100, period=100, tau=0.5, forget=None, kernel="rbf", gamma="scale", degree=3, coef0=0.0,
        random_state=None, dtype="float64", block_size=128, passes=1, shuffle=False, n_jobs=None, verbose=False,
    ):  # fmt: skip
        self._remember(locals())

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = self.eta is None
        return tags
