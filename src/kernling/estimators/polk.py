"""POLK for classification and regression."""

from __future__ import annotations

from .parameters import CLASS_WEIGHT, FORGET, POSITIVE, OneOf, Real, Rule, Whole
from .ranges import GAMMA, Log, Range
from .tasks import OnlineClassifier, OnlineRegressor

_RULES: dict[str, tuple[Rule, ...]] = {
    "forget": FORGET,
    "eta": (POSITIVE,),
    "lam": (Real(0.0),),
    "parsimony": (Real(0.0),),
    "step": (OneOf(("constant", "diminishing")),),
    "batch_size": (Whole(1),),
    "prune": (OneOf(("komp", "random")),),
}
_SEARCH: dict[str, Range] = {"gamma": GAMMA, "eta": Log(0.1, 30.0), "parsimony": Log(1e-4, 0.3)}


class POLKClassifier(OnlineClassifier):
    """Parsimonious online learning with kernels: gradient steps in function space, then pruning within an error ball.

    Parameters
    ----------
    loss : {"hinge", "logistic", "softmax"}
        For more than two classes hinge and logistic act on the margin f_y - f_z over the best wrong class.
    eta : float
        Step size.
    lam : float
        Weight of the regulariser; less than 1 / eta.
    parsimony : float
        K in eps = K eta^1.5, the radius of the ball within which points are pruned; more means a smaller model.
    step : {"constant", "diminishing"}
        eta, or eta / (t + 1) with eps = K eta_t^2.
    batch_size : int
        Rows per step; rows that do not fill a batch wait for the next call of ``partial_fit``.
    prune : {"komp", "random"}
        The cheapest removal first, or removals in random order until one does not fit.
    forget, kernel, gamma, degree, coef0, class_weight, random_state, dtype, block_size, passes, shuffle, n_jobs, verbose
        As in :class:`AVMClassifier`; the kernels "poly" and "linear" work too.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> import kernling as kl
    >>> X, y = load_digits(return_X_y=True)
    >>> model = kl.POLKClassifier("softmax", gamma=0.1, eta=20.0).fit(X / 16.0, y)
    >>> print(f"{model.score(X / 16.0, y):.2f} of {model.t_} rows; fewer than 100 points: {model.n_support_ < 100}")
    0.95 of 1797 rows; fewer than 100 points: True
    """

    learner = "polk"
    search = _SEARCH
    rules = {**_RULES, "loss": (OneOf(("hinge", "logistic", "softmax")),), "class_weight": CLASS_WEIGHT}
    n_waiting_ = property(lambda self: int(self._fitted().waiting.count[0]), doc="Rows that wait for a batch to fill.")

    def __init__(
        self, loss="hinge", *, eta=10.0, lam=1e-6, parsimony=0.01, step="constant", batch_size=32, prune="komp", forget=None,
        kernel="rbf", gamma="scale", degree=3, coef0=0.0, class_weight=None, random_state=None, dtype="float64", block_size=128,
        passes=1, shuffle=False, n_jobs=None, verbose=False,
    ):  # fmt: skip
        self._remember(locals())


class POLKRegressor(OnlineRegressor):
    """Parsimonious online regression with kernels.

    Parameters
    ----------
    loss : {"l2", "epsilon_insensitive", "l1"}
        Of the residual.
    epsilon : float
        Half the width of the tube without loss.
    eta : float
        Step size; with the loss "l2" and a kernel of at most 1, steps below 2 are stable.
    lam, parsimony, step, batch_size, prune, forget, kernel, gamma, degree, coef0, random_state, dtype, block_size, passes,\
    shuffle, n_jobs, verbose
        As in :class:`POLKClassifier`.

    Examples
    --------
    >>> import numpy as np, kernling as kl
    >>> X = np.random.default_rng(0).uniform(-3, 3, size=(2000, 1))
    >>> model = kl.POLKRegressor(gamma=1.0).fit(X, np.sin(X[:, 0]))
    >>> print(f"{model.score(X, np.sin(X[:, 0])):.2f} with fewer than 10 points: {model.n_support_ < 10}")
    1.00 with fewer than 10 points: True
    """

    learner = "polk"
    search = {**_SEARCH, "eta": Log(0.03, 1.9)}  # the squared loss is stable below 2
    rules = {**_RULES, "loss": (OneOf(("l2", "epsilon_insensitive", "l1")),), "epsilon": (Real(0.0),)}
    n_waiting_ = POLKClassifier.n_waiting_

    def __init__(
        self, loss="l2", *, eta=1.0, lam=1e-6, parsimony=0.01, epsilon=0.1, step="constant", batch_size=8, prune="komp",
        forget=None, kernel="rbf", gamma="scale", degree=3, coef0=0.0, random_state=None, dtype="float64", block_size=128,
        passes=1, shuffle=False, n_jobs=None, verbose=False,
    ):  # fmt: skip
        self._remember(locals())
