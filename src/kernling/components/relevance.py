"""How much columns matter to kernels: each is multiplied by a factor, larger where predictions change more along it.

A. Radhakrishnan, D. Beaglehole, P. Pandit and M. Belkin: Mechanism for feature learning in neural networks and
backpropagation-free machine learning models.  Science 383 (2024).

There the squared distances of a kernel are weighted by the mean outer product of the gradients of what was learned with it, and
both are computed in turns.  Here the weight of a column is the root mean square of the partial derivative, which differs less
between columns: the first events say little, and the stream may change.
"""

from __future__ import annotations

import numpy as np

from ..core.kernels import CAUCHY, EXPONENTIAL, MATERN32, MATERN52, RATIONAL_QUADRATIC, RBF, Kernel
from ..core.matrices import squared_norms

ROWS = 256  # gradients of so many rows at most
FLAT = 1e-12  # mean squared change along all columns that is none
MOST = 8.0  # the largest factor, and the reciprocal of the smallest one


def column_factors(
    kernel: Kernel, stretch: np.ndarray, X: np.ndarray, points: np.ndarray, coef: np.ndarray, slopes: np.ndarray
) -> np.ndarray:
    """Return factors for the columns by a function of rows that are already multiplied by ``stretch``, as are the points.

    The function is the sum of ``coef`` (outputs, points) times kernel values, and has besides ``slopes`` (outputs, columns)
    along the columns before they are multiplied.  Distances keep their size in the mean.  The factor of a column that is
    constant so far is 1, and so are all if the function is.
    """
    varies = X.max(axis=0) > X.min(axis=0)
    variance = np.where(varies, np.square(X.std(axis=0) / stretch), 0.0)
    change = np.sqrt(_mean_squared_gradient(kernel, stretch, X[:: -(-len(X) // ROWS)], points, coef, slopes))
    if not np.square(change) @ variance > FLAT:
        return np.ones_like(stretch)
    factors = np.sqrt(change * variance.sum() / (change @ variance))
    return np.where(varies, np.clip(factors, 1.0 / MOST, MOST), 1.0)


def _mean_squared_gradient(
    kernel: Kernel, stretch: np.ndarray, X: np.ndarray, points: np.ndarray, coef: np.ndarray, slopes: np.ndarray
) -> np.ndarray:
    """Return the sum over outputs, for each column."""
    derivative = _derivative(kernel, X, points)
    total = np.zeros(X.shape[1])
    for own, slope in zip(coef, slopes, strict=True):
        pull = 2.0 * derivative * own
        gradient = stretch * (pull.sum(axis=1, keepdims=True) * X - pull @ points) + slope
        total += np.square(gradient).mean(axis=0)
    return total


def _derivative(kernel: Kernel, X: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Return the derivatives of a kernel by the squared distance, (rows, points)."""
    q = np.maximum(squared_norms(X)[:, np.newaxis] + squared_norms(points) - 2.0 * X @ points.T, 0.0)
    return -kernel.gamma * _SLOPES[kernel.kind](kernel.gamma, kernel.degree, q)


def _exponential(gamma: float, degree: int, q: np.ndarray) -> np.ndarray:
    r = np.sqrt(q)
    return np.exp(-gamma * r) / np.where(r > 0.0, 2.0 * r, np.inf)  # 0 at its kink


def _matern32(gamma: float, degree: int, q: np.ndarray) -> np.ndarray:
    return 1.5 * gamma * np.exp(-gamma * np.sqrt(3.0 * q))


def _matern52(gamma: float, degree: int, q: np.ndarray) -> np.ndarray:
    s = gamma * np.sqrt(5.0 * q)
    return 5.0 / 6.0 * gamma * (1.0 + s) * np.exp(-s)


_SLOPES = {  # of kernels by q, over -gamma
    RBF: lambda gamma, degree, q: np.exp(-gamma * q),
    EXPONENTIAL: _exponential,
    MATERN32: _matern32,
    MATERN52: _matern52,
    RATIONAL_QUADRATIC: lambda gamma, degree, q: (1.0 + gamma * q / degree) ** -(degree + 1.0),
    CAUCHY: lambda gamma, degree, q: (1.0 + gamma * q) ** -2.0,
}
