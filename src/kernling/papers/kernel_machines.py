"""Kernel machines fitted on all rows at once: by L-BFGS, and the import vector machine.

Both minimise the mean loss plus lam / 2 sum_c ||f_c||^2, with a function f_c per class, without intercepts.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from scipy.linalg import cholesky, solve_triangular
from scipy.optimize import minimize
from scipy.special import logsumexp, softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics.pairwise import rbf_kernel

SMOOTH = 0.05  # half the width in which L-BFGS sees the kinks of the hinge rounded
JITTER = 1e-8  # added to the diagonal of a kernel matrix, which may be singular up to rounding


def softmax_loss(F: np.ndarray, place: np.ndarray) -> tuple[float, np.ndarray]:
    """Return the mean of log sum exp f - f_y and its gradient with respect to the scores."""
    rows = np.arange(len(F))
    value = float(np.mean(logsumexp(F, axis=1) - F[rows, place]))
    gradient = softmax(F, axis=1)
    gradient[rows, place] -= 1.0
    return value, gradient / len(F)


def hinge_loss(F: np.ndarray, place: np.ndarray, smooth: float = 0.0) -> tuple[float, np.ndarray]:
    """Return the mean of max(0, 1 - m), m the margin over the best wrong class, and its gradient; its kinks can be rounded.

    The maximum of the wrong classes' scores is rounded as well: where all scores are the same, as at the start, no choice of
    one rival for each row need be a direction of descent.
    """
    rows = np.arange(len(F))
    wrong = F.copy()
    wrong[rows, place] = -np.inf
    best = smooth * logsumexp(wrong / smooth, axis=1) if smooth else wrong.max(axis=1)
    rivals = np.exp((wrong - best[:, np.newaxis]) / smooth) if smooth else np.eye(F.shape[1])[wrong.argmax(axis=1)]
    gap = 1.0 - F[rows, place] + best
    slope = np.clip((gap + smooth) / (2.0 * smooth), 0.0, 1.0) if smooth else (gap > 0.0).astype(float)
    near = np.abs(gap) < smooth
    value = np.where(near, (gap + smooth) ** 2 / (4.0 * smooth) if smooth else 0.0, np.maximum(gap, 0.0))
    gradient = slope[:, np.newaxis] * rivals
    gradient[rows, place] = -slope
    return float(value.mean()), gradient / len(F)


class _Machine(ClassifierMixin, BaseEstimator):
    """f_c = sum_i coef_ic K(points_i, .)."""

    points_: np.ndarray
    coef_: np.ndarray
    gamma: float
    lam: float
    loss = "softmax"

    def fit(self, X: np.ndarray, y: np.ndarray) -> Self:
        """Minimise the regularised risk on the rows."""
        self.classes_, place = np.unique(y, return_inverse=True)
        self.support_, self.coef_ = self._fitted(rbf_kernel(X, gamma=self.gamma), place)
        self.points_ = X[self.support_]
        return self

    def _fitted(self, K: np.ndarray, place: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the rows that are points, and their coefficients for each class; K may be overwritten."""
        raise NotImplementedError

    def decision_function(self, X: Any) -> np.ndarray:
        """Return a score per class."""
        return rbf_kernel(X, self.points_, gamma=self.gamma) @ self.coef_

    def predict(self, X: Any) -> np.ndarray:
        """Return the class with the largest score."""
        return self.classes_[self.decision_function(X).argmax(axis=1)]

    def regularised_risk(self, X: Any, y: np.ndarray) -> float:
        """Return the mean loss on rows plus lam / 2 sum_c ||f_c||^2."""
        loss = hinge_loss if self.loss == "hinge" else softmax_loss
        square = float(np.sum(self.coef_ * (rbf_kernel(self.points_, gamma=self.gamma) @ self.coef_)))
        return loss(self.decision_function(X), np.searchsorted(self.classes_, y))[0] + 0.5 * self.lam * square


class KernelMachine(_Machine):
    """A kernel support vector machine (loss="hinge") or kernel logistic regression ("softmax") by L-BFGS (Nocedal 1980).

    The variables are w with f = L w on the rows, L L' = K, so that ||f|| = ||w||: memory for rows^2 numbers.  L-BFGS needs
    gradients, so the kinks of the hinge are rounded: at a margin of 1 over 0.1, and between rivals whose scores differ by less.
    """

    def __init__(self, gamma: float = 1.0, lam: float = 1e-4, loss: str = "softmax", max_iter: int = 2000):
        self.gamma = gamma
        self.lam = lam
        self.loss = loss
        self.max_iter = max_iter

    def _fitted(self, K: np.ndarray, place: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        K[np.diag_indices_from(K)] += JITTER
        L = cholesky(K, lower=True, overwrite_a=True, check_finite=False)
        shape = len(K), len(self.classes_)

        def objective(flat: np.ndarray) -> tuple[float, np.ndarray]:
            w = flat.reshape(shape)
            value, gradient = hinge_loss(L @ w, place, SMOOTH) if self.loss == "hinge" else softmax_loss(L @ w, place)
            return value + 0.5 * self.lam * float(np.sum(w * w)), (L.T @ gradient + self.lam * w).ravel()

        options = {"maxiter": self.max_iter, "maxfun": 2 * self.max_iter, "gtol": 1e-7, "ftol": 1e-11}
        found = minimize(objective, np.zeros(shape[0] * shape[1]), jac=True, method="L-BFGS-B", options=options)
        coef = solve_triangular(L, found.x.reshape(shape), lower=True, trans=1, check_finite=False)
        return np.arange(len(K)), coef


class IVM(_Machine):
    """The import vector machine: kernel logistic regression on few points, which are added one by one.

    J. Zhu, T. Hastie: Kernel Logistic Regression and the Import Vector Machine, Journal of Computational and Graphical
    Statistics 14 (2005).  The point is added that reduces the regularised risk most, until the relative reduction is below
    ``tol``, 0.001 in the paper, or there are ``budget`` points.

    Candidates are compared by a Newton step of their own coefficients, one per class; the paper's step changes those of the
    other points too.  Then all coefficients are optimised; the paper takes single Newton steps.  Memory for rows^2 numbers.

    Examples
    --------
    >>> from kernling.papers.batch import IVM
    >>> from kernling.io import synthetic
    >>> X, y = synthetic("multidist", 1000, 16).load()
    >>> model = IVM(gamma=1.4, lam=1e-6, budget=16).fit(X[:500], y[:500])
    >>> print(len(model.support_), model.score(X[500:], y[500:]) > 0.9)
    16 True
    """

    def __init__(self, gamma: float = 1.0, lam: float = 1e-4, budget: int | None = None, tol: float = 0.001):
        self.gamma = gamma
        self.lam = lam
        self.budget = budget
        self.tol = tol

    def _fitted(self, K: np.ndarray, place: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        chosen: list[int] = []
        coef = np.zeros((0, len(self.classes_)))
        risk = np.log(len(self.classes_))
        while len(chosen) < min(self.budget or len(K), len(K)):
            gains = self.gains(K, K[:, chosen] @ coef, place)
            gains[chosen] = -np.inf
            chosen.append(int(gains.argmax()))
            coef, lower = self._refit(K[:, chosen], K[np.ix_(chosen, chosen)], place, np.vstack([coef, 0.0 * coef.sum(axis=0)]))
            reduction, risk = risk - lower, lower
            if reduction < self.tol * abs(risk):
                break
        return np.array(chosen), coef

    def gains(self, K: np.ndarray, F: np.ndarray, place: np.ndarray) -> np.ndarray:
        """Return by how much a Newton step of the coefficients of each row would reduce the risk of a model with scores F."""
        n, classes = F.shape
        P = softmax(F, axis=1)
        slope = K.T @ softmax_loss(F, place)[1] + self.lam * F
        spread = np.einsum("ic,cd->icd", P, np.eye(classes)) - np.einsum("ic,id->icd", P, P)
        curve = ((K * K).T @ spread.reshape(n, -1) / n).reshape(n, classes, classes)
        curve += self.lam * K.diagonal()[:, np.newaxis, np.newaxis] * np.eye(classes)
        return 0.5 * np.einsum("ic,ic->i", slope, np.linalg.solve(curve, slope[:, :, np.newaxis])[:, :, 0])

    def _refit(self, columns: np.ndarray, K: np.ndarray, place: np.ndarray, coef: np.ndarray) -> tuple[np.ndarray, float]:
        """Return the best coefficients of the points and the risk."""

        def objective(flat: np.ndarray) -> tuple[float, np.ndarray]:
            a = flat.reshape(coef.shape)
            value, gradient = softmax_loss(columns @ a, place)
            return value + 0.5 * self.lam * float(np.sum(a * (K @ a))), (columns.T @ gradient + self.lam * (K @ a)).ravel()

        options = {"maxiter": 1000, "gtol": 1e-7, "ftol": 1e-11}
        found = minimize(objective, coef.ravel(), jac=True, method="L-BFGS-B", options=options)
        return found.x.reshape(coef.shape), float(found.fun)
