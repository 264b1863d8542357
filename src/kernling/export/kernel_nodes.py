"""Kernel values in ONNX.

Matrix products use Gemm, not MatMul: onnxruntime fuses MatMul with a multiplication by a scalar, which it rounds to single
precision whatever the type.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.kernels import FAR
from .description import KernelFunction, KernelValues

if TYPE_CHECKING:
    from .graph import Graph


def centred(graph: Graph, X: str, centre: np.ndarray) -> str:
    """Return rows minus a centre."""
    return graph.add("Sub", X, centre) if centre.any() else X


def kernel_values(graph: Graph, held: KernelValues, X: str) -> str:
    """Return the kernel values of points and rows, which are centred, and stretched if the points are."""
    kernel, points = held.function, held.points.astype(np.float64)
    if kernel.is_laplacian:
        return graph.add("Exp", _city_distances(graph, held.points, X, -kernel.gamma))
    if not kernel.is_isotropic:
        return of_products(graph, kernel, graph.add("Gemm", X, points, transB=1))
    squares = graph.add("ReduceSumSquare", X, np.array([1]), keepdims=1)
    rows = graph.add("Concat", X, squares, axis=1)
    norms = np.einsum("ij,ij->i", points, points)

    def distances(factor: float) -> str:
        """Return squared distances times a factor, from one matrix product, clipped so that rounding never changes the sign."""
        columns = np.vstack([-2.0 * factor * points.T, np.full(len(points), factor)])
        values = graph.add("Gemm", rows, columns, factor * norms)
        return graph.add("Max" if factor > 0.0 else "Min", values, 0.0)

    return _OF_DISTANCES[kernel.name](graph, kernel, distances)


def _city_distances(graph: Graph, points: np.ndarray, X: str, factor: float) -> str:
    """Return city-block distances of rows and points times a factor: by a product where points have two values."""
    low, high = points.min(axis=0), points.max(axis=0)
    two = ((points == low) | (points == high)).all(axis=0)
    found = []
    if two.any():
        found += _distances_of_two(graph, graph.columns(X, two), low[two], high[two], points[:, two] == high[two], factor)
    if not two.all():
        found += _distances_by_row(graph, points[:, ~two].astype(np.float64), graph.columns(X, ~two), factor)
    return graph.total(found)


def _distances_of_two(graph: Graph, X: str, low: np.ndarray, high: np.ndarray, is_high: np.ndarray, factor: float) -> list[str]:
    """Return the terms of the sums of |x - low| or |x - high|: the first for all, the difference where a point is high."""
    to_low = graph.add("Abs", graph.add("Sub", X, low))
    more = graph.add("Sub", graph.add("Abs", graph.add("Sub", X, high)), to_low)
    return [graph.add("Gemm", more, factor * is_high.T), _row_sums(graph, to_low, factor)]


def _distances_by_row(graph: Graph, points: np.ndarray, X: str, factor: float) -> list[str]:
    """Return the terms of the sums of |x - p| = 2 max(x, p) - p - x, computed row by row, since a cache can hold a row's."""
    n, d = points.shape

    def without_row(inner: Graph, column: str) -> str:
        larger = inner.add("Max", points.T, column)  # points in a row, since long rows vectorise
        return inner.add("Gemm", np.full((1, d), 2.0 * factor), larger, -factor * points.sum(axis=1))

    return [graph.each_row(X, d, n, without_row), _row_sums(graph, X, -factor)]


def _row_sums(graph: Graph, values: str, factor: float) -> str:
    """Return the sums of rows times a factor, as a column."""
    return graph.add("Mul", graph.add("ReduceSum", values, np.array([1]), keepdims=1), factor)


def of_products(graph: Graph, kernel: KernelFunction, products: str) -> str:
    """Return the values of a kernel of inner products."""
    if kernel.name == "linear":
        return products
    values = graph.add("Mul", products, kernel.gamma)
    if kernel.coef0:
        values = graph.add("Add", values, kernel.coef0)
    return power(graph, values, kernel.degree)


def power(graph: Graph, base: str, degree: int) -> str:
    """Return an integer power by repeated squaring, which is faster than Pow."""
    if degree == 1:
        return base
    root = power(graph, base, degree // 2)
    square = graph.add("Mul", root, root)
    return graph.add("Mul", square, base) if degree % 2 else square


def _rbf(graph: Graph, kernel: KernelFunction, distances: Any) -> str:
    return graph.add("Exp", distances(-kernel.gamma))


def _exponential(graph: Graph, kernel: KernelFunction, distances: Any) -> str:
    return graph.add("Exp", graph.add("Mul", graph.add("Sqrt", distances(1.0)), -kernel.gamma))


def _matern(graph: Graph, kernel: KernelFunction, distances: Any) -> str:
    freedom = {"matern32": 3.0, "matern52": 5.0}[kernel.name]
    s = graph.add("Mul", graph.add("Sqrt", distances(1.0)), np.sqrt(freedom) * kernel.gamma)
    s = graph.add("Min", s, FAR)
    series = graph.add("Add", s, 1.0)
    if kernel.name == "matern52":
        series = graph.add("Add", series, graph.add("Mul", graph.add("Mul", s, s), 1.0 / 3.0))
    return graph.add("Mul", series, graph.add("Exp", graph.add("Neg", s)))


def _rational(graph: Graph, kernel: KernelFunction, distances: Any) -> str:
    degree = 1 if kernel.name == "cauchy" else kernel.degree
    base = graph.add("Add", distances(kernel.gamma / degree), 1.0)
    return graph.add("Reciprocal", power(graph, base, degree))


_OF_DISTANCES: dict[str, Any] = {
    "rbf": _rbf,
    "exponential": _exponential,
    "matern32": _matern,
    "matern52": _matern,
    "rational_quadratic": _rational,
    "cauchy": _rational,
}
