"""Matrices of kernel values between rows of tables, and inner products of functions."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..compiler import inner_exact, jit, jit_exact, shaped
from . import kernels
from .block import as_distances, products
from .expansion import Expansion
from .kernels import Kernel
from .tiles import add_products

STRIP = 1024  # points whose kernel values are computed at once


@jit
def kernel_values(kernel, A, a_norms, B, b_norms, out):
    """Write the kernel values of two tables of rows minus the same centre, with known squared norms."""
    if out.size > 0:
        products(A, B, out)
        if kernels.is_isotropic(kernel):
            as_distances(out, a_norms, b_norms)
        kernels.transform(kernel, shaped(out, (out.size,)))


def kernel_matrix(kernel: Kernel, A: np.ndarray, a_norms: np.ndarray, B: np.ndarray, b_norms: np.ndarray) -> np.ndarray:
    """Return the kernel values of two tables."""
    out = np.empty((len(A), len(B)), A.dtype)
    kernel_values(kernel, A, a_norms, B, b_norms, out)
    return out


@jit_exact
def values_in_order(kernel, A, a_norms, B, b_norms, out):
    """Write the kernel values of two tables as doubles; each is the same for one row of B and for many.

    Sums run in the order of the columns, and vector instructions along the rows of B.
    """
    n, b = A.shape[0], B.shape[0]
    if n == 0 or b == 0:
        return
    values = shaped(out, (n * b,))
    for i in range(values.size):
        values[i] = 0.0
    if b == 1:
        _write_values_of_one(kernel, A, a_norms, B[0], np.float64(b_norms[0]), values)
        return
    columns = np.empty((B.shape[1], b))
    for j in range(b):
        for c in range(B.shape[1]):
            columns[c, j] = B[j, c]
    add_products(A.T, columns, out[:n])
    if kernels.is_isotropic(kernel):
        for k in range(n):
            own = out[k]
            for j in range(b):
                own[j] = max((np.float64(a_norms[k]) + np.float64(b_norms[j])) - 2.0 * own[j], 0.0)
    kernels.transform(kernel, values)


@inner_exact
def _write_values_of_one(kernel, A, norms, x, norm, out):
    """Do the same for one row of B: four rows of A at once, since each sum waits for itself."""
    done = A.shape[0] // 4 * 4
    for k in range(0, done, 4):
        p0, p1, p2, p3 = A[k], A[k + 1], A[k + 2], A[k + 3]
        t0 = t1 = t2 = t3 = 0.0
        for c in range(x.size):
            value = np.float64(x[c])
            t0, t1, t2, t3 = t0 + p0[c] * value, t1 + p1[c] * value, t2 + p2[c] * value, t3 + p3[c] * value
        out[k], out[k + 1], out[k + 2], out[k + 3] = t0, t1, t2, t3
    for k in range(done, A.shape[0]):
        for c in range(x.size):
            out[k] += np.float64(A[k, c]) * np.float64(x[c])
    if kernels.is_isotropic(kernel):
        for k in range(A.shape[0]):
            out[k] = max((np.float64(norms[k]) + norm) - 2.0 * out[k], 0.0)
    kernels.transform(kernel, out)


def squared_norms(X: np.ndarray) -> np.ndarray:
    """Return the squared norms of the rows of a table; each is the same whatever other rows there are."""
    norms = np.empty(len(X), X.dtype)
    write_norms(X, norms)
    return norms


@jit_exact
def write_norms(X, norms):
    """Write the squared norms of rows."""
    for j in range(X.shape[0]):
        total = 0.0
        for c in range(X.shape[1]):
            total += np.float64(X[j, c]) * np.float64(X[j, c])
        norms[j] = total


def own_matrix(kernel: Kernel, X: np.ndarray, norms: np.ndarray) -> np.ndarray:
    """Return the kernel values between all rows of a table: exactly symmetric, as their computed products need not be."""
    values = kernel_matrix(kernel, X, norms, X, norms).astype(np.float64, copy=False)
    return 0.5 * (values + values.T)


def point_matrix(kernel: Kernel, model: Expansion) -> np.ndarray:
    """Return the kernel values between all points of a model."""
    n = int(model.size[0])
    return own_matrix(kernel, model.points[:n], model.norms[:n])


def function_products(kernel: Any, points: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return <f_o, g_o> for functions with coefficients a and b (outputs, points), one number per output."""
    used = np.flatnonzero(a.any(axis=0) | b.any(axis=0))
    points, a, b = np.ascontiguousarray(points[used]), a[:, used], b[:, used]
    norms = squared_norms(points)
    total = np.zeros(len(a))
    for first in range(0, len(points), STRIP):
        strip = slice(first, first + STRIP)
        values = kernel_matrix(kernel, points[strip], norms[strip], points, norms).astype(np.float64, copy=False)
        total += np.einsum("oi,oi->o", a[:, strip], b @ values.T)
    return total
