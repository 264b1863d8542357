"""SPA for classification, regression and one-class learning."""

from __future__ import annotations

from .averaged import OUTPUT, Averaged
from .parameters import CLASS_WEIGHT, NOTHING, POSITIVE, OneOf, Real, Rule, Whole
from .ranges import GAMMA, Log, Range
from .tasks import OnlineClassifier, OnlineOneClass, OnlineRegressor

_RULES: dict[str, tuple[Rule, ...]] = {
    "eta": (POSITIVE,),
    "alpha": (POSITIVE,),
    "beta": (NOTHING, POSITIVE),
    "budget": (NOTHING, Whole(1)),
    "horizon": (NOTHING, Whole(1)),
}
_SEARCH: dict[str, Range] = {"gamma": GAMMA, "eta": Log(1e-2, 10.0), "beta": Log(1.0, 50.0)}


class SPAClassifier(Averaged, OnlineClassifier):
    """Sparse Passive-Aggressive classification: a step is taken with a probability that grows with the loss.

    Parameters
    ----------
    eta : float
        Aggressiveness: the cap of a step that was certain to be taken.
    alpha, beta : float
        A step is taken with probability min(alpha, loss) / beta; beta is at least alpha, and equal to it if not given.  The
        expected number of points after T events is at most alpha T / beta.
    budget, horizon : int, optional
        Together: so many points, in expectation, after ``horizon`` events; instead of beta, which becomes
        alpha * horizon / budget.
    output : {"average", "suffix", "last"}
        Which model predicts: the mean of all, the mean of the latest, or the current one.
    suffix : float
        Share of the models in the suffix mean.
    kernel, gamma, degree, coef0, class_weight, random_state, dtype, block_size, passes, shuffle, n_jobs, verbose
        As in :class:`AVMClassifier`; the kernels "poly" and "linear" work too.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> import kernling as kl
    >>> X, y = load_digits(return_X_y=True)
    >>> model = kl.SPAClassifier(gamma=0.1, beta=4.0, random_state=0)
    >>> labels = model.predict_then_learn(X / 16.0, y)
    >>> print(f"{(labels != y).mean():.2f} mistakes, {model.n_support_} points")
    0.19 mistakes, 223 points
    """

    learner = "spa"
    search = _SEARCH
    rules = {**_RULES, **OUTPUT, "class_weight": CLASS_WEIGHT}
    loss = "hinge"

    def __init__(
        self, eta=1.0, *, alpha=1.0, beta=None, budget=None, horizon=None, output="average", suffix=0.5, kernel="rbf",
        gamma="scale", degree=3, coef0=0.0, class_weight=None, random_state=None, dtype="float64", block_size=128, passes=1,
        shuffle=False, n_jobs=None, verbose=False,
    ):  # fmt: skip
        self._remember(locals())


class SPARegressor(Averaged, OnlineRegressor):
    """Sparse Passive-Aggressive regression with the epsilon-insensitive loss.

    Parameters
    ----------
    epsilon : float
        Half the width of the tube without loss.
    eta, alpha, beta, budget, horizon, output, suffix, kernel, gamma, degree, coef0, random_state, dtype, block_size, passes,\
    shuffle, n_jobs, verbose
        As in :class:`SPAClassifier`.

    Examples
    --------
    >>> import numpy as np, kernling as kl
    >>> X = np.random.default_rng(0).uniform(-3, 3, size=(2000, 1))
    >>> model = kl.SPARegressor(gamma=1.0, beta=4.0, random_state=1).fit(X, np.sin(X[:, 0]))
    >>> print(f"{model.score(X, np.sin(X[:, 0])):.2f}")
    0.99
    """

    learner = "spa"
    search = _SEARCH
    rules = {**_RULES, **OUTPUT, "epsilon": (Real(0.0),)}

    def __init__(
        self, eta=1.0, *, epsilon=0.1, alpha=1.0, beta=None, budget=None, horizon=None, output="average", suffix=0.5,
        kernel="rbf", gamma="scale", degree=3, coef0=0.0, random_state=None, dtype="float64", block_size=128, passes=1,
        shuffle=False, n_jobs=None, verbose=False,
    ):  # fmt: skip
        self._remember(locals())


class SPAOneClass(OnlineOneClass):
    """Sparse Passive-Aggressive one-class learning: what do normal events look like?

    Parameters
    ----------
    mode : {"ball", "halfspace"}
        A ball around normal events in feature space, or a half-space that holds them.
    radius : float
        Of the ball; less than 1 for kernels of the distance.
    output : {"average", "last"}
        Which model predicts: the mean of all, or the current one.
    eta, alpha, beta, budget, horizon, kernel, gamma, degree, coef0, random_state, dtype, block_size, passes, shuffle,\
    n_jobs, verbose
        As in :class:`SPAClassifier`.

    Examples
    --------
    >>> import numpy as np, kernling as kl
    >>> X = np.random.default_rng(0).normal(size=(1000, 2))
    >>> model = kl.SPAOneClass(gamma=0.1, radius=0.7, random_state=0).fit(X)
    >>> print(model.predict([[0.0, 0.0], [9.0, 9.0]]))
    [ 1 -1]
    """

    learner = "spa"
    search = _SEARCH
    rules = {
        **_RULES,
        "output": (OneOf(("average", "last")),),  # a ball needs the norm of its centre, which is kept for these two
        "mode": (OneOf(("ball", "halfspace")),),
        "radius": (POSITIVE,),
    }

    def __init__(
        self, mode="ball", *, radius=0.9, eta=1.0, alpha=1.0, beta=None, budget=None, horizon=None, output="average",
        kernel="rbf", gamma="scale", degree=3, coef0=0.0, random_state=None, dtype="float64", block_size=128, passes=1,
        shuffle=False, n_jobs=None, verbose=False,
    ):  # fmt: skip
        self._remember(locals())
