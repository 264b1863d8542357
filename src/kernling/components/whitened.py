"""Kernel values against stored points, whitened: z(x) = L^-1 k(x) with L the Cholesky factor of the points' kernel matrix.

Inner products <z(x), z(x')> are those of the projections on the span of the points, and r = k(x, x) - |z(x)|^2 is the squared
distance from it: how novel x is.  An event with r above a fraction of k(x, x) is stored as a point while there is room, which
appends the row [z, sqrt(r)] to L and leaves all other features unchanged.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from ..compiler import jit_exact
from ..core import kernels
from ..core.blas import lapack
from ..core.expansion import Expansion
from ..core.matrices import point_matrix, values_in_order
from ..core.shapes import declared
from ..core.state import padded
from ..core.triangles import solve, solve_back
from .gram import DEPENDENT, DEPENDENT_32

if TYPE_CHECKING:
    from ..merging.rules import Merging


@declared()
class Whitening(NamedTuple):
    factor: Annotated[np.ndarray, "triangle: stored stored"]  # L by columns, as in core/triangles.py
    most: Annotated[np.ndarray, "settings: 1"]  # maximum number of points

    def check(self, dimensions: Mapping[str, int]) -> None:
        """Raise if there are too many points, or the factor is none."""
        if dimensions["stored"] > self.most[0]:
            raise ValueError(f"there are {dimensions['stored']} points, but at most {self.most[0]}")
        if not (self.factor.diagonal() > 0.0).all():
            raise ValueError("the factor of the kernel matrix has a diagonal that is not positive")

    def grown(self, capacity: int) -> Whitening:
        """Return a copy with room for more points."""
        n = min(capacity, int(self.most[0]))
        return self if n <= len(self.factor) else self._replace(factor=padded(padded(self.factor, 0, n), 1, n))

    def trimmed(self, size: int) -> Whitening:
        """Return a copy without spare room."""
        return self._replace(factor=self.factor[:size, :size].copy())

    def merged(self, other: Whitening, start: Whitening | None, merging: Merging) -> Whitening:
        """Return the factor for the points of the merged model."""
        return self._replace(factor=point_factor(merging.kernel, merging.model))


def new_whitening(most: int) -> Whitening:
    """Return a whitening without points."""
    return Whitening(np.zeros((0, 0)), np.array([most]))


def point_factor(kernel: kernels.Kernel, model: Expansion) -> np.ndarray:
    """Return L of a model's points, by columns."""
    matrix = point_matrix(kernel, model)
    for lift in (0.0, 1e-12, 1e-9, 1e-6, 1e-3):
        lower, failed = lapack.dpotrf(matrix + lift * np.diag(matrix.diagonal()), lower=1)
        if not failed:
            break
    return np.ascontiguousarray(lower.T)


def least_novelty(novelty: float, dtype: DTypeLike) -> float:
    """Return the fraction of k(x, x) that must be new: at least the size of rounding errors."""
    return max(novelty, DEPENDENT_32 if np.dtype(dtype) == np.float32 else DEPENDENT)


def coefficients(factor: np.ndarray, W: np.ndarray) -> np.ndarray:
    """Return the coefficients L^-T w of the points, (outputs, points), for weights (outputs, points) of their features."""
    found = np.array(W, order="C")
    _solve_back_rows(factor, found)
    return found


@jit_exact
def _solve_back_rows(factor, W):
    for o in range(W.shape[0]):
        solve_back(factor, W[o], W.shape[1])


@jit_exact
def whiten(whitening, kernel, model, X, norms, Z, new):
    """Write the features of rows into Z, (points or more, rows), and the novelty of each row, k(x, x) - |z|^2."""
    n = model.size[0]
    values_in_order(kernel, model.points[:n], model.norms[:n], X, norms, Z)
    solve(whitening.factor, Z, n)
    for j in range(new.size):
        new[j] = kernels.self_value(kernel, np.float64(norms[j]))
    for k in range(n):
        z = Z[k]
        for j in range(new.size):
            new[j] -= z[j] * z[j]


@jit_exact
def admit(whitening, kernel, model, X, norms, weights, new, novelty, Z):
    """Store the novel rows of a block, in order; write their features into Z, 0 for the rows before them.

    Returns the new number of points.
    """
    b, factor = new.size, whitening.factor
    among = np.empty((1, b))
    n, room = model.size[0], min(whitening.most[0], Z.shape[0])
    for j in range(b):
        if n < room and weights[j] > 0.0 and new[j] > novelty * kernels.self_value(kernel, np.float64(norms[j])):
            root, z = math.sqrt(new[j]), Z[n]
            values_in_order(kernel, X[j : j + 1], norms[j : j + 1], X, norms, among)
            for i in range(b):
                z[i] = among[0, i] if i > j else 0.0
            for p in range(n):
                share, known = Z[p, j], Z[p]
                factor[p, n] = share
                for i in range(j + 1, b):
                    z[i] -= share * known[i]
            for i in range(j + 1, b):
                z[i] /= root
                new[i] -= z[i] * z[i]
            z[j] = factor[n, n] = root
            for c in range(X.shape[1]):
                model.points[n, c] = X[j, c]
            model.norms[n] = norms[j]
            for g in range(model.coef.shape[0]):
                for o in range(model.coef.shape[1]):
                    model.coef[g, o, n] = 0.0
            n += 1
    model.size[0] = n
    return n
