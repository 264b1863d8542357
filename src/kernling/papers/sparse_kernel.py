"""Sparse Kernel, a kernel RankSVM on few points, which are chosen greedily.

V. Kakkar, S. Shevade, S. Sundararajan, D. Garg: A Sparse Nonlinear Classifier Design Using AUC Optimization.
SIAM International Conference on Data Mining (2017).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.utils import check_random_state


class Pairs:
    """The pairs of a positive and a negative row with f(x+) - f(x-) < 1, by sorting: their sums cost n log n.

    The scores of positive rows are lowered by 1; then a pair has a loss if that of the negative row is the higher one.
    """

    def __init__(self, f: np.ndarray, positive: np.ndarray):
        self.positive = positive
        self.shifted = np.where(positive, f - 1.0, f)
        self.order = np.argsort(self.shifted, kind="stable")
        self.number = float(positive.sum() * (~positive).sum())

    def partners(self, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return how many partners each row has in pairs with a loss, and the sum of their values."""
        value, side = values[self.order], self.positive[self.order]
        count, total = np.empty(len(side)), np.empty_like(value)
        below = np.cumsum(side), np.cumsum(np.where(_column(side, value), value, 0.0), axis=0)
        above = [np.sum(~side) - np.cumsum(~side), np.sum(value[~side], axis=0)]
        above[1] = above[1] - np.cumsum(np.where(_column(side, value), 0.0, value), axis=0)
        count[self.order] = np.where(side, above[0], below[0])
        total[self.order] = np.where(_column(side, value), above[1], below[1])
        return count, total

    def loss(self) -> tuple[float, np.ndarray]:
        """Return the mean over pairs of max(0, 1 - f(x+) + f(x-))^2 / 2, and its gradient with respect to f."""
        count, total = self.partners(self.shifted)
        gradient = (count * self.shifted - total) / self.number
        count, total = count[self.positive], total[self.positive]
        _, squares = self.partners(self.shifted**2)
        s = self.shifted[self.positive]
        value = np.sum(count * s**2 - 2.0 * s * total + squares[self.positive])
        return 0.5 * float(value) / self.number, gradient

    def hessian(self, columns: np.ndarray) -> np.ndarray:
        """Return the second derivatives of the loss with respect to the coefficients of the columns."""
        count, total = self.partners(columns)
        cross = columns[self.positive].T @ total[self.positive]
        return (columns.T @ (count[:, np.newaxis] * columns) - cross - cross.T) / self.number

    def curvature(self, columns: np.ndarray) -> np.ndarray:
        """Return the second derivative of the loss along f + a k for each column k."""
        count, total = self.partners(columns)
        _, squares = self.partners(columns**2)
        k = columns[self.positive]
        each = count[self.positive][:, np.newaxis] * k**2 - 2.0 * k * total[self.positive] + squares[self.positive]
        return each.sum(axis=0) / self.number


def _column(side: np.ndarray, value: np.ndarray) -> np.ndarray:
    return side if value.ndim == 1 else side[:, np.newaxis]


class SparseKernel(ClassifierMixin, BaseEstimator):
    """A ranking of two classes by lam / 2 ||f||^2 + mean over pairs of max(0, 1 - f(x+) + f(x-))^2 / 2 on few points.

    Each point is the best of 59 random rows, by a Newton step of its coefficient; all coefficients are optimised whenever the
    number of points has doubled, and at the end.  The paper was not at hand in full: the number of candidates and when
    to optimise are those of S. S. Keerthi, O. Chapelle, D. DeCoste, JMLR 7 (2006), whose selection it adopts.

    Examples
    --------
    >>> from kernling.papers.batch import SparseKernel
    >>> from kernling.io import synthetic
    >>> X, y = synthetic("spirals", 2000).load()
    >>> model = SparseKernel(gamma=30.0, lam=1e-6, budget=50, random_state=0).fit(X[:1000], y[:1000])
    >>> print(len(model.support_), model.score(X[1000:], y[1000:]) > 0.8)
    50 True
    """

    def __init__(
        self, gamma: float = 1.0, lam: float = 1e-4, budget: int = 100, candidates: int = 59, random_state: Any = None
    ):
        self.gamma = gamma
        self.lam = lam
        self.budget = budget
        self.candidates = candidates
        self.random_state = random_state

    def fit(self, X: Any, y: np.ndarray) -> SparseKernel:
        """Add points and optimise their coefficients."""
        rng = check_random_state(self.random_state)
        self.classes_ = np.unique(y)
        positive = y == self.classes_[-1]
        chosen, optimised = np.empty(0, np.int64), 0
        self._columns, self.coef_ = np.empty((len(y), 0)), np.empty(0)
        while len(chosen) < min(self.budget, len(y)):
            best, step = self._best(X, rng.permutation(np.setdiff1d(np.arange(len(y)), chosen))[: self.candidates], positive)
            chosen, self.coef_ = np.append(chosen, best), np.append(self.coef_, step)
            self._columns = np.column_stack([self._columns, rbf_kernel(X, X[best : best + 1], gamma=self.gamma)])
            if len(chosen) >= 2 * optimised or len(chosen) == min(self.budget, len(y)):
                self._optimise(chosen, positive)
                optimised = len(chosen)
        self.support_, self.points_ = chosen, X[chosen]
        f = self._columns @ self.coef_
        self.threshold_ = 0.5 * (f[positive].mean() + f[~positive].mean())
        del self._columns
        return self

    def _best(self, X: Any, rows: np.ndarray, positive: np.ndarray) -> tuple[int, float]:
        """Return the candidate that reduces the objective most, and the Newton step of its coefficient."""
        columns = rbf_kernel(X, X[rows], gamma=self.gamma)
        f = self._columns @ self.coef_
        pairs = Pairs(f, positive)
        slope = columns.T @ pairs.loss()[1] + self.lam * f[rows]
        curve = pairs.curvature(columns) + self.lam * columns[rows, np.arange(len(rows))]
        best = int(np.argmax(slope**2 / curve))
        return int(rows[best]), float(-slope[best] / curve[best])

    def _optimise(self, chosen: np.ndarray, positive: np.ndarray) -> None:
        """Optimise all coefficients by Newton's method: the objective is quadratic between kinks of its slope."""
        C, K = self._columns, self._columns[chosen]

        def objective(a: np.ndarray) -> float:
            return Pairs(C @ a, positive).loss()[0] + 0.5 * self.lam * float(a @ K @ a)

        for _ in range(50):
            pairs = Pairs(C @ self.coef_, positive)
            value, gradient = pairs.loss()
            value += 0.5 * self.lam * float(self.coef_ @ K @ self.coef_)
            slope = C.T @ gradient + self.lam * (K @ self.coef_)
            step = np.linalg.lstsq(pairs.hessian(C) + self.lam * K, slope, rcond=1e-12)[0]
            if slope @ step < 1e-9 * value:
                return
            while objective(self.coef_ - step) > value:
                step *= 0.5
            self.coef_ = self.coef_ - step

    def decision_function(self, X: Any) -> np.ndarray:
        """Return the score by which rows are ranked."""
        return rbf_kernel(X, self.points_, gamma=self.gamma) @ self.coef_

    def predict(self, X: Any) -> np.ndarray:
        """Return the second class where the score is above the middle between the classes' means on the training rows."""
        return self.classes_[(self.decision_function(X) > self.threshold_).astype(np.int64)]
