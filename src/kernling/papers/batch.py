"""Batch methods for comparison, based on scikit-learn."""

from __future__ import annotations

from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.svm import SVC, LinearSVC


def libsvm(gamma: float, C: float = 1.0) -> SVC:
    """LIBSVM: the support vector machine in its dual, by sequential minimal optimisation.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from kernling.papers.batch import libsvm
    >>> X, y = load_digits(return_X_y=True)
    >>> print(f"{libsvm(gamma=0.1).fit(X[:1000] / 16.0, y[:1000]).score(X[1000:] / 16.0, y[1000:]):.2f}")
    0.96
    """
    return SVC(C=C, gamma=gamma)


def llsvm(gamma: float, budget: int, C: float = 1.0, random_state=None) -> Pipeline:
    """LLSVM, a linear support vector machine on Nystroem features; landmarks are drawn at random rather than by k-means.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from kernling.papers.batch import llsvm
    >>> X, y = load_digits(return_X_y=True)
    >>> model = llsvm(gamma=0.1, budget=100, random_state=0).fit(X[:1000] / 16.0, y[:1000])
    >>> print(f"{model.score(X[1000:] / 16.0, y[1000:]):.2f}")
    0.94
    """
    features = Nystroem(gamma=gamma, n_components=budget, random_state=random_state)
    return make_pipeline(features, LinearSVC(C=C, random_state=random_state))


def fourier(gamma: float, n_components: int, C: float = 1.0, random_state=None) -> Pipeline:
    """A linear support vector machine on random Fourier features.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from kernling.papers.batch import fourier
    >>> X, y = load_digits(return_X_y=True)
    >>> model = fourier(gamma=0.1, n_components=400, random_state=0).fit(X[:1000] / 16.0, y[:1000])
    >>> print(f"{model.score(X[1000:] / 16.0, y[1000:]):.2f}")
    0.95
    """
    features = RBFSampler(gamma=gamma, n_components=n_components, random_state=random_state)
    return make_pipeline(features, LinearSVC(C=C, random_state=random_state))


def kernel_logistic(gamma: float, lam: float, rows: int) -> Pipeline:
    """Kernel logistic regression by L-BFGS: lam/2 ||f||^2 + the mean logistic loss (softmax for several classes).

    With as many landmarks as rows, Nystroem features are exact; this needs rows^2 memory.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from kernling.papers.batch import kernel_logistic
    >>> X, y = load_digits(return_X_y=True)
    >>> model = kernel_logistic(gamma=0.1, lam=1e-4, rows=500).fit(X[:500] / 16.0, y[:500])
    >>> print(f"{model.score(X[500:] / 16.0, y[500:]):.2f}")
    0.92
    """
    features = Nystroem(gamma=gamma, n_components=rows)
    return make_pipeline(features, LogisticRegression(C=1.0 / (lam * rows), fit_intercept=False, tol=1e-8, max_iter=10_000))
