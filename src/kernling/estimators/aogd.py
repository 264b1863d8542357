"""AOGD for classes."""

from __future__ import annotations

from .pairwise import PairwiseClassifier
from .parameters import FEATURES, OneOf, Real, Rule

_RULES: dict[str, tuple[Rule, ...]] = {
    "eta": (Real(0.0),),
    "second_eta": (Real(0.0),),
    "refresh": (Real(0.0, 1.0),),
    "lam": (Real(0.0),),
    "output": (OneOf(("average", "last")),),
}


class AOGDClassifier(PairwiseClassifier):
    """Averaged online gradient descent on pairs: maximises the area under the ROC curve, which no imbalance of classes changes.

    ``rank_scores`` ranks; ``decision_function`` is the same less a threshold kept online, the one with the largest balanced
    accuracy on the last 128 scores of each class.  More than two classes: each against the rest.

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
        Number of features, even.
    features : {"fourier", "orthogonal", "linear"}
        Random frequencies, orthogonal ones, or the columns themselves.
    kernel, gamma, degree, coef0, random_state, dtype, block_size, passes, shuffle, n_jobs, verbose
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
    rules = {**FEATURES, **_RULES, "loss": (OneOf(("squared", "hinge", "logistic")),)}

    def __init__(
        self, loss="squared", *, eta=0.25, second_eta=0.0625, refresh=0.1, lam=0.0, output="average", n_components=200,
        features="fourier", kernel="rbf", gamma="scale", degree=3, coef0=0.0, random_state=None,
        dtype="float64", block_size=128, passes=1, shuffle=False, n_jobs=None, verbose=False,
    ):  # fmt: skip
        self._remember(locals())
