"""Kernels, chosen by integer: functions of the squared Euclidean distance, or of the inner product.

With q = ||x - z||^2, r = sqrt(q):

====================  ============================================================
rbf                   exp(-gamma q)
exponential           exp(-gamma r)
matern32              (1 + s) exp(-s), s = sqrt(3) gamma r
matern52              (1 + s + s^2 / 3) exp(-s), s = sqrt(5) gamma r
rational_quadratic    (1 + gamma q / degree)^-degree
cauchy                1 / (1 + gamma q)
poly                  (gamma <x, z> + coef0)^degree
linear                <x, z>
====================  ============================================================
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..compiler import inline, inner, jit, pluggable
from .vector import exp

FAR = 1e4  # distance at which exp is already 0; larger ones are clipped so that no power makes it NaN
RBF, EXPONENTIAL, MATERN32, MATERN52, RATIONAL_QUADRATIC, CAUCHY, POLY, LINEAR = range(8)
KINDS = {
    "rbf": RBF,
    "exponential": EXPONENTIAL,
    "matern32": MATERN32,
    "matern52": MATERN52,
    "rational_quadratic": RATIONAL_QUADRATIC,
    "cauchy": CAUCHY,
    "poly": POLY,
    "linear": LINEAR,
}
ISOTROPIC = tuple(name for name, kind in KINDS.items() if kind < POLY)


class Kernel(NamedTuple):
    kind: int
    gamma: float
    degree: int
    coef0: float


@inline
def is_isotropic(kernel):
    """Return whether the kernel is a function of the distance."""
    return kernel.kind < POLY


@inline
def power(base, degree):
    result = base
    for _ in range(degree - 1):
        result = result * base
    return result


@inner
def transform(kernel, values):
    """Convert squared distances (or inner products, depending on the kernel) to kernel values, in place.

    One flat loop per kernel, so that each becomes a loop of vector instructions with its constants in registers.
    """
    number = values.dtype.type
    one, far = number(1.0), number(FAR)
    kind = kernel.kind
    gamma = number(kernel.gamma)
    if kind == RBF:
        for i in range(values.size):
            values[i] = exp(-gamma * values[i])
    elif kind == EXPONENTIAL:
        for i in range(values.size):
            values[i] = exp(-gamma * np.sqrt(values[i]))
    elif kind == MATERN32:
        rate = number(np.sqrt(3.0)) * gamma
        for i in range(values.size):
            s = min(far, rate * np.sqrt(values[i]))
            values[i] = (one + s) * exp(-s)
    elif kind == MATERN52:
        rate = number(np.sqrt(5.0)) * gamma
        third = number(1.0 / 3.0)
        for i in range(values.size):
            s = min(far, rate * np.sqrt(values[i]))
            values[i] = (one + s + s * s * third) * exp(-s)
    elif kind == RATIONAL_QUADRATIC:
        rate = number(kernel.gamma / kernel.degree)
        for i in range(values.size):
            values[i] = one / power(one + rate * values[i], kernel.degree)
    elif kind == CAUCHY:
        for i in range(values.size):
            values[i] = one / (one + gamma * values[i])
    elif kind == POLY:
        shift = number(kernel.coef0)
        for i in range(values.size):
            values[i] = power(gamma * values[i] + shift, kernel.degree)


@pluggable
def rbf(kernel, values):
    gamma = values.dtype.type(kernel.gamma)
    for i in range(values.size):
        values[i] = exp(-gamma * values[i])


@pluggable
def any_kernel(kernel, values):
    """Same as ``transform``, as a function that records can hold."""
    transform(kernel, values)


TRANSFORMS = {RBF: rbf}


@jit
def transform_values(kernel, values):
    """Same as ``transform``, for calls from Python."""
    transform(kernel, values)


@jit
def self_value(kernel, squared_norm):
    """Return k(x, x) of a point with this squared norm."""
    if kernel.kind == POLY:
        return power(kernel.gamma * squared_norm + kernel.coef0, kernel.degree)
    if kernel.kind == LINEAR:
        return squared_norm
    return 1.0


def kernel(name: str, gamma: float = 1.0, degree: int = 3, coef0: float = 0.0) -> Callable[..., np.ndarray]:
    """Return a kernel as a function of two arrays: (n, d) and (m, d) give (n, m).

    Examples
    --------
    >>> import numpy as np, kernling
    >>> rbf = kernling.kernel("rbf", gamma=0.5)
    >>> print(rbf(np.zeros((1, 2)), np.array([[1.0, 1.0]])).round(4))
    [[0.3679]]
    """
    if name not in KINDS:
        raise ValueError(f"there is no kernel {name!r}; the kernels are {', '.join(KINDS)}")
    from scipy.spatial.distance import cdist  # half as long to import as all the rest

    chosen = Kernel(KINDS[name], float(gamma), int(degree), float(coef0))

    def values(X: ArrayLike, Z: ArrayLike) -> np.ndarray:
        X, Z = np.atleast_2d(np.asarray(X, np.float64)), np.atleast_2d(np.asarray(Z, np.float64))
        if name in ISOTROPIC:
            flat = cdist(X, Z, "sqeuclidean").ravel()
        else:
            flat = np.ascontiguousarray(X @ Z.T).ravel()
        transform_values(chosen, flat)
        return flat.reshape(len(X), len(Z))

    return values
