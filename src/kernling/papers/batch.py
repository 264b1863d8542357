"""Batch methods that the papers compare with: plain and slow, for their tables only.

Examples
--------
>>> from sklearn.datasets import load_digits
>>> from kernling.papers.batch import KernelMachine, OneVsAll, fourier, libsvm, nystrom
>>> X, y = load_digits(return_X_y=True)
>>> X = X / 16.0
>>> def accuracy(model):
...     return f"{model.fit(X[:1000], y[:1000]).score(X[1000:], y[1000:]):.2f}"
>>> print(accuracy(libsvm(gamma=0.1)), accuracy(OneVsAll(gamma=0.1)))
0.96 0.95
>>> print(accuracy(nystrom(gamma=0.1, budget=100, random_state=0)))
0.95
>>> print(accuracy(fourier(gamma=0.1, n_components=400, random_state=0)))
0.95
>>> print(accuracy(KernelMachine(gamma=0.1, lam=1e-4, max_iter=100)))
0.95
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import eigh
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin
from sklearn.cluster import MiniBatchKMeans
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import LogisticRegression
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.svm import SVC, LinearSVC

from .kernel_machines import IVM, KernelMachine
from .sparse_kernel import SparseKernel

__all__ = ["IVM", "KernelMachine", "OneVsAll", "SparseKernel", "fourier", "libsvm", "nystrom"]


def libsvm(gamma: float, C: float = 1.0, one_vs_all: bool = False) -> Any:
    """LIBSVM: the support vector machine in its dual; several classes by a vote over pairs, its own way, or one-vs-all."""
    return OneVsAll(gamma, C) if one_vs_all else SVC(C=C, gamma=gamma)


class OneVsAll(ClassifierMixin, BaseEstimator):
    """A support vector machine per class against the rest; the largest score wins."""

    def __init__(self, gamma: float = 1.0, C: float = 1.0):
        self.gamma = gamma
        self.C = C

    def fit(self, X: Any, y: np.ndarray) -> OneVsAll:
        """Fit a machine per class; ``support_`` are the rows that at least one of them stores."""
        self.classes_ = np.unique(y)
        self.machines_ = [SVC(C=self.C, gamma=self.gamma).fit(X, y == label) for label in self.classes_]
        self.support_ = np.unique(np.concatenate([machine.support_ for machine in self.machines_]))
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Return the class whose machine has the largest score."""
        scores = np.column_stack([machine.decision_function(X) for machine in self.machines_])
        return self.classes_[scores.argmax(axis=1)]


class KMeansNystroem(TransformerMixin, BaseEstimator):
    """Nystroem features K(x, L) K_LL^-1/2 with the landmarks L of k-means (Zhang, Tsang, Kwok, ICML 2008).

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.metrics.pairwise import rbf_kernel
    >>> from kernling.papers.batch import KMeansNystroem
    >>> X = np.random.default_rng(0).standard_normal((500, 2))
    >>> features = KMeansNystroem(gamma=0.1, n_components=50, random_state=0).fit_transform(X)
    >>> print(float(abs(features @ features.T - rbf_kernel(X, gamma=0.1)).max()) < 1e-3)
    True
    """

    def __init__(self, gamma: float = 1.0, n_components: int = 100, random_state: Any = None):
        self.gamma = gamma
        self.n_components = n_components
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> KMeansNystroem:
        """Choose the landmarks."""
        clusters = MiniBatchKMeans(self.n_components, random_state=self.random_state, n_init=1, batch_size=4096)
        self.landmarks_ = clusters.fit(X).cluster_centers_
        values, vectors = eigh(rbf_kernel(self.landmarks_, gamma=self.gamma))
        self.root_ = vectors / np.sqrt(np.maximum(values, 1e-12)) @ vectors.T
        return self

    def transform(self, X: Any) -> np.ndarray:
        """Return the features of rows."""
        return rbf_kernel(X, self.landmarks_, gamma=self.gamma) @ self.root_


def _linear(loss: str, C: float, random_state: Any) -> Any:
    """Return a linear support vector machine, or softmax regression."""
    return LinearSVC(C=C, random_state=random_state) if loss == "hinge" else LogisticRegression(C=C, max_iter=1000)


def nystrom(gamma: float, budget: int, C: float = 1.0, loss: str = "hinge", random_state: Any = None) -> Pipeline:
    """LLSVM: a linear support vector machine, or softmax regression, on Nystroem features with landmarks of k-means."""
    return make_pipeline(KMeansNystroem(gamma, budget, random_state), _linear(loss, C, random_state))


def fourier(gamma: float, n_components: int, C: float = 1.0, loss: str = "hinge", random_state: Any = None) -> Pipeline:
    """A linear support vector machine, or softmax regression, on random Fourier features."""
    features = RBFSampler(gamma=gamma, n_components=n_components, random_state=random_state)
    return make_pipeline(features, _linear(loss, C, random_state))
