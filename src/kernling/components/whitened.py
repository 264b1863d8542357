"""Kernel values against stored points, whitened: z(x) = L^-1 k(x) with L the Cholesky factor of the points' kernel matrix.

Inner products <z(x), z(x')> are those of the projections on the span of the points, and r = k(x, x) - |z(x)|^2 is the squared
distance from it: how novel x is.  An event with r above a fraction of k(x, x) is stored as a point while there is room, which
appends the row [z, sqrt(r)] to L and leaves all other features unchanged.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from ..compiler import jit
from ..core import kernels
from ..core.blas import blas, lapack
from ..core.expansion import Expansion, padded
from ..core.matrices import kernel_matrix, kernel_values, point_matrix
from ..core.shapes import declared
from .gram import DEPENDENT, DEPENDENT_32

if TYPE_CHECKING:
    from ..merging.rules import Merging


@declared(factor="numbers: stored*stored", most="settings: 1")
class Whitening(NamedTuple):
    factor: np.ndarray  # L, row by row in the first points^2 numbers
    most: np.ndarray  # maximum number of points

    def check(self, dimensions: Mapping[str, int]) -> None:
        """Raise unless the factor is one."""
        n = dimensions["stored"]
        if not (self.factor[:: n + 1] > 0.0).all():
            raise ValueError("the factor of the kernel matrix has a diagonal that is not positive")

    def grown(self, capacity: int) -> Whitening:
        """Return a copy with room for more points."""
        n = min(capacity, int(self.most[0]))
        return self if n * n <= len(self.factor) else self._replace(factor=padded(self.factor, 0, n * n))

    def trimmed(self, size: int) -> Whitening:
        """Return a copy without spare room."""
        return self._replace(factor=self.factor[: size * size].copy())

    def merged(self, other: Whitening, start: Whitening | None, merging: Merging) -> Whitening:
        """Return the factor for the points of the merged model."""
        return self._replace(factor=point_factor(merging.kernel, merging.model).ravel())


def new_whitening(most: int) -> Whitening:
    """Return a whitening without points."""
    return Whitening(np.zeros(0), np.array([most]))


def point_factor(kernel: kernels.Kernel, model: Expansion) -> np.ndarray:
    """Return L of a model's points."""
    matrix = point_matrix(kernel, model)
    for lift in (0.0, 1e-12, 1e-9, 1e-6, 1e-3):
        lower, failed = lapack.dpotrf(matrix + lift * np.diag(matrix.diagonal()), lower=1)
        if not failed:
            break
    return np.ascontiguousarray(lower)


def least_novelty(novelty: float, dtype: DTypeLike) -> float:
    """Return the fraction of k(x, x) that must be new: at least the size of rounding errors."""
    return max(novelty, DEPENDENT_32 if np.dtype(dtype) == np.float32 else DEPENDENT)


def whiten(
    whitening: Whitening, kernel: kernels.Kernel, model: Expansion, X: np.ndarray, norms: np.ndarray, Z: np.ndarray
) -> np.ndarray:
    """Write the features of rows into Z, (points or more, rows); return the novelty of each row, k(x, x) - |z|^2."""
    n = model.stored
    values = Z[:n]
    if n:
        if X.dtype == np.float64:
            kernel_values(kernel, model.points[:n], model.norms[:n], X, norms, values)
        else:
            values[:] = kernel_matrix(kernel, model.points[:n], model.norms[:n], X, norms)
        solve(whitening.factor, values)
    new = np.empty(len(norms))
    _new_parts(kernel, norms, values, new)
    return new


def solve(factor: np.ndarray, values: np.ndarray) -> None:
    """values <- L^-1 values, for C-ordered values (points, rows)."""
    n = len(values)
    L = factor[: n * n].reshape(n, n).T
    if values.shape[1] == 1:
        values[:, 0] = blas.dtrsv(L, values[:, 0], trans=1)
    else:
        blas.dtrsm(1.0, L, values.T, side=1, overwrite_b=1)


def coefficients(factor: np.ndarray, W: np.ndarray) -> np.ndarray:
    """Return the coefficients L^-T w of the points, (outputs, points), for weights (outputs, points) of their features."""
    n = W.shape[1]
    L = factor[: n * n].reshape(n, n).T
    if not n:
        return W
    return blas.dtrsv(L, W[0])[np.newaxis] if len(W) == 1 else blas.dtrsm(1.0, L, W.T).T


def admit(
    whitening: Whitening,
    kernel: kernels.Kernel,
    model: Expansion,
    X: np.ndarray,
    norms: np.ndarray,
    weights: np.ndarray,
    new: np.ndarray,
    novelty: float,
    Z: np.ndarray,
) -> int:
    """Store the novel rows of a block, in order; write their features into Z, 0 for the rows before them.

    Returns the new number of points.
    """
    size, room = model.stored, min(int(whitening.most[0]), len(Z))
    if size == room:
        return size
    own = np.empty(len(norms))
    _own_values(kernel, norms, own)
    if not ((weights > 0.0) & (new > novelty * own)).any():
        return size
    chosen = np.empty(room - size, np.int64)
    among = kernel_matrix(kernel, X, norms, X, norms)
    n = size + _admit(among, own, new, weights, novelty, size, Z, chosen)
    chosen = chosen[: n - size]
    model.points[size:n] = X[chosen]
    model.norms[size:n] = norms[chosen]
    model.coef[:, :, size:n] = 0.0
    model.size[0] = n
    factor = np.zeros((n, n))
    factor[:size, :size] = whitening.factor[: size * size].reshape(size, size)
    factor[size:] = np.tril(Z[:n, chosen].T, size)
    whitening.factor[: n * n] = factor.ravel()
    return n


@jit
def _admit(among, own, new, weights, novelty, size, Z, chosen):
    count = 0
    b = new.size
    for j in range(b):
        if count == chosen.size:
            break
        if weights[j] > 0.0 and new[j] > novelty * own[j]:
            root = math.sqrt(new[j])
            k = size + count
            z = Z[k]
            for i in range(j):
                z[i] = 0.0
            z[j] = root
            for i in range(j + 1, b):
                z[i] = among[j, i]
            for p in range(k):
                share = Z[p, j]
                for i in range(j + 1, b):
                    z[i] -= share * Z[p, i]
            for i in range(j + 1, b):
                z[i] /= root
                new[i] -= z[i] * z[i]
            chosen[count] = j
            count += 1
    return count


@jit
def _own_values(kernel, norms, out):
    """Write k(x, x) of each row."""
    for j in range(out.size):
        out[j] = kernels.self_value(kernel, np.float64(norms[j]))


@jit
def _new_parts(kernel, norms, Z, out):
    _own_values(kernel, norms, out)
    for k in range(Z.shape[0]):
        for j in range(out.size):
            out[j] -= Z[k, j] * Z[k, j]
