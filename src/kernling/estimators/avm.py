"""AVM for classification and regression."""

from __future__ import annotations

from ..learners.avm import CELLS, DROPPED
from .averaged import OUTPUT, Averaged
from .parameters import CLASS_WEIGHT, FORGET, ISOTROPIC_KERNEL, NOTHING, POSITIVE, SWITCH, OneOf, Real, Rule, Whole
from .ranges import GAMMA, Log, Range, Times
from .tasks import OnlineClassifier, OnlineRegressor

_RULES: dict[str, tuple[Rule, ...]] = {
    "kernel": ISOTROPIC_KERNEL,
    "lam": (POSITIVE,),
    "delta": (OneOf(("auto",)), Real(0.0, extreme=1e100)),
    "coverage": (OneOf(("sphere", "box")),),
    "approximate": (OneOf(("always", "bernoulli", "margin")),),
    "beta": (Real(0.0),),
    "rho": (POSITIVE,),
    **OUTPUT,
    "max_cells": (NOTHING, Whole(1)),
    "zero_cells": (SWITCH,),
    "forget": FORGET,
}
_SEARCH: dict[str, Range] = {"gamma": GAMMA, "lam": Log(1e-7, 1e-2), "delta": Times(0.5, 2.0)}


class AVMClassifier(Averaged, OnlineClassifier):
    """Approximation Vector Machine: every event is represented by the core point of its cell.

    Parameters
    ----------
    loss : {"hinge", "smooth_hinge", "logistic"}
        For more than two classes, of the margin f_y - f_z over the best wrong class.
    lam : float
        Weight of the regulariser; the step at event t is 1 / (lam t).
    delta : float or "auto"
        Diameter of a cell.  "auto": the smallest at which the first 1,000 rows open at most 100 cells.
    coverage : {"sphere", "box"}
        Shape of a cell.
    approximate : {"always", "bernoulli", "margin"}
        When an event is replaced by its core point: always; with probability 1 - beta / t**rho; when its margin is at
        least 1 (which, with the hinge loss, never bounds the model).
    beta, rho : float
        Of the Bernoulli rule.
    output : {"last", "average", "suffix"}
        Which model predicts: the current one, the mean of all, or the mean of the last ones.
    suffix : float
        Share of the models in the suffix mean.
    max_cells : int, optional
        Once so many cells are open, events outside of them are dropped.  Not in the paper.
    zero_cells : bool
        Whether events without loss open cells, as in the paper.
    tau : float
        Width of the smooth hinge.
    forget : float, optional
        Half-life in events, for streams that drift: after so many, what was learned counts half.  The step stops getting
        smaller at the t where 1 - 1 / t forgets that fast.  The mean of all models still remembers: use ``output="last"``.
    kernel : {"rbf", "exponential", "matern32", "matern52", "rational_quadratic", "cauchy"}
        A function of the Euclidean distance.
    gamma : float or "scale"
        Of the kernel; "scale" is 1 / (columns * variance of the first rows).
    degree, coef0 : int, float
        ``degree`` is the exponent of the rational quadratic kernel; ``coef0`` is not used by these kernels.
    class_weight : dict or "balanced", optional
        Multiplies the gradient of each class; "balanced" comes from the counts seen so far.
    random_state : int, Generator or RandomState, optional
        For the Bernoulli rule and for ``shuffle``.
    dtype : {"float64", "float32"}
        Of points and kernel values.
    block_size : int
        Events whose kernel values are computed at once; changes speed only.
    passes : int
        How often ``fit`` goes over the rows.
    shuffle : bool
        Whether ``fit`` takes the rows in a random order.
    n_jobs : int, optional
        Threads for predicting; -1 is all cores.
    verbose : bool
        Whether learning shows its progress.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> import kernling as kl
    >>> X, y = load_digits(return_X_y=True)
    >>> model = kl.AVMClassifier(delta=2.0, lam=1e-4, gamma=0.1)
    >>> labels = model.predict_then_learn(X / 16.0, y)
    >>> print(f"{(labels != y).mean():.3f} mistakes, {model.n_support_} points")
    0.102 mistakes, 219 points
    """

    learner = "avm"
    search = _SEARCH
    rules = {
        **_RULES,
        "loss": (OneOf(("hinge", "smooth_hinge", "logistic")),),
        "tau": (POSITIVE,),
        "class_weight": CLASS_WEIGHT,
    }
    n_cells_ = property(lambda self: int(self._fitted().stats[CELLS]), doc="Cells opened.")
    n_dropped_ = property(
        lambda self: int(self._fitted().stats[DROPPED]), doc="Events outside all cells once max_cells was reached."
    )

    def __init__(
        self, loss="hinge", *, lam=1e-4, delta="auto", coverage="sphere", approximate="always", beta=0.0, rho=1.0,
        output="last", suffix=0.5, max_cells=None, zero_cells=True, tau=0.5, forget=None, kernel="rbf", gamma="scale", degree=3,
        coef0=0.0, class_weight=None, random_state=None, dtype="float64", block_size=128, passes=1, shuffle=False, n_jobs=None,
        verbose=False,
    ):  # fmt: skip
        self._remember(locals())


class AVMRegressor(Averaged, OnlineRegressor):
    """Approximation Vector Machine for regression: every event is represented by the core point of its cell.

    Parameters
    ----------
    loss : {"epsilon_insensitive", "l1", "l2"}
        With l2 and lam <= 1 the model is projected on a ball of radius y_max / sqrt(lam) after every event, which keeps a
        matrix of all cells; ``max_cells`` is then 2,000 unless given.  Its first steps are as large as 1 / lam: small lam
        and l2 do not go together.
    epsilon : float
        Half the width of the tube without loss.
    y_max : float, optional
        Largest absolute target, for the ball; the largest seen so far unless given.
    lam, delta, coverage, approximate, beta, rho, output, suffix, max_cells, zero_cells, forget, kernel, gamma, degree, coef0,\
    random_state, dtype, block_size, passes, shuffle, n_jobs, verbose
        As in :class:`AVMClassifier`; the margin rule approximates events within epsilon.

    Examples
    --------
    >>> import numpy as np, kernling as kl
    >>> X = np.random.default_rng(0).uniform(-3, 3, size=(2000, 1))
    >>> model = kl.AVMRegressor(delta=0.2, gamma=1.0).fit(X, np.sin(X[:, 0]))
    >>> print(f"{model.score(X, np.sin(X[:, 0])):.2f} with {model.n_support_} points")
    0.99 with 36 points
    """

    learner = "avm"
    search = _SEARCH
    rules = {
        **_RULES,
        "loss": (OneOf(("epsilon_insensitive", "l1", "l2")),),
        "epsilon": (Real(0.0),),
        "y_max": (NOTHING, Real(0.0, strict=True, extreme=1e100)),
    }
    n_cells_ = AVMClassifier.n_cells_
    n_dropped_ = AVMClassifier.n_dropped_

    def __init__(
        self, loss="epsilon_insensitive", *, lam=0.01, epsilon=0.1, y_max=None, delta="auto", coverage="sphere",
        approximate="always", beta=0.0, rho=1.0, output="last", suffix=0.5, max_cells=None, zero_cells=True, forget=None,
        kernel="rbf", gamma="scale", degree=3, coef0=0.0, random_state=None, dtype="float64", block_size=128, passes=1,
        shuffle=False, n_jobs=None, verbose=False,
    ):  # fmt: skip
        self._remember(locals())
