"""Models as ONNX graphs of standard operators (ai.onnx), for prediction with onnxruntime and other runtimes.

Matrix products use Gemm, not MatMul: onnxruntime fuses MatMul with a multiplication by a scalar, which it rounds to single
precision whatever the type.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import __version__
from ..atomic import replaced
from ..core.kernels import FAR
from .description import Ball, Description, FourierSum, Inside, KernelFunction, KernelSum, Labels, LinearSum, Value, describe
from .table import scaled, table_rows

if TYPE_CHECKING:
    from .graph import Graph


def to_onnx(model: Any, path: str | os.PathLike) -> None:
    """Write a fitted model or pipeline as an ONNX file, which makes the same predictions.

    A pipeline that encodes tables has one input for each column, with its name: float64 for numbers (NaN is missing), bool for
    booleans, text for categories ("" is missing), int64 seconds since 1970 for dates.  Other models have one input, ``rows``.
    Outputs are ``label`` or ``value``, ``score``, and ``probability`` if the model has probabilities.

    Examples
    --------
    >>> import numpy as np, kernling as kl
    >>> model = kl.AVMClassifier(gamma=1.0, delta=1.0).fit(np.eye(4), [0, 1, 0, 1])
    >>> kl.to_onnx(model, "model.onnx")
    >>> from onnxruntime import InferenceSession
    >>> label, score = InferenceSession("model.onnx").run(None, {"rows": np.eye(4)})
    >>> print(label)
    [0 1 0 1]
    """
    try:
        from .graph import Graph
    except ImportError as error:
        raise ImportError("ONNX files need the package onnx: pip install 'kernling[onnx]'") from error
    description = describe(model)
    graph = Graph(description.input_dtype)
    write(graph, description)
    data = graph.model(description.estimator, "kernling", __version__).SerializeToString()
    with replaced(path) as temporary:
        temporary.write_bytes(data)


def write(graph: Graph, description: Description) -> None:
    """Add the nodes of a description to a graph."""
    if description.columns is None:
        X = graph.input("rows", "n", description.width)
    else:
        X = table_rows(graph, description.columns)
    for step in description.steps:
        X = scaled(graph, X, step)
    if description.output is None:
        graph.output("transformed", X, "n", description.width)
        return
    if description.input_dtype != description.dtype:
        graph.dtype = np.dtype(description.dtype)
        X = graph.cast(X)
    score = graph.total([_ADD[type(part)](graph, part, X) for part in description.parts])
    if description.offset.any():
        score = graph.add("Add", score, description.offset)
    _OUTPUTS[type(description.output)](graph, description.output, X, score)


# ---------------------------------------------------------------------- functions of rows


def _centred(graph: Graph, X: str, centre: np.ndarray) -> str:
    return graph.add("Sub", X, centre) if centre.any() else X


def _kernel_sum(graph: Graph, part: KernelSum, X: str) -> str:
    values = _kernel_values(graph, part, _centred(graph, X, part.centre))
    return graph.add("Gemm", values, part.coefficients.T)


def _fourier_sum(graph: Graph, part: FourierSum, X: str) -> str:
    angles = graph.add("Gemm", _centred(graph, X, part.centre), part.frequencies, part.phase, transB=1)
    waves = [(graph.cosine, part.cosines), (graph.sine, part.sines)]
    return graph.total([graph.add("Gemm", wave(angles), coef.T) for wave, coef in waves if coef.any()])


def _linear_sum(graph: Graph, part: LinearSum, X: str) -> str:
    return graph.add("Gemm", X, part.coefficients.T)


_ADD: dict[type, Any] = {KernelSum: _kernel_sum, FourierSum: _fourier_sum, LinearSum: _linear_sum}


def _kernel_values(graph: Graph, part: KernelSum, X: str) -> str:
    """Return the kernel values of rows and points."""
    kernel, points = part.kernel, part.points.astype(np.float64)
    if not kernel.is_isotropic:
        return _of_products(graph, kernel, graph.add("Gemm", X, points, transB=1))
    squares = graph.add("ReduceSumSquare", X, np.array([1]), keepdims=1)
    rows = graph.add("Concat", X, squares, axis=1)
    norms = np.einsum("ij,ij->i", points, points)

    def distances(factor: float) -> str:
        """Return squared distances times a factor, from one matrix product, clipped so that rounding never changes the sign."""
        columns = np.vstack([-2.0 * factor * points.T, np.full(len(points), factor)])
        values = graph.add("Gemm", rows, columns, factor * norms)
        return graph.add("Max" if factor > 0.0 else "Min", values, 0.0)

    return _OF_DISTANCES[kernel.name](graph, kernel, distances)


def _of_products(graph: Graph, kernel: KernelFunction, products: str) -> str:
    """Return the values of a kernel of inner products."""
    if kernel.name == "linear":
        return products
    values = graph.add("Mul", products, kernel.gamma)
    if kernel.coef0:
        values = graph.add("Add", values, kernel.coef0)
    return _power(graph, values, kernel.degree)


def _power(graph: Graph, base: str, degree: int) -> str:
    """Return an integer power by repeated squaring, which is faster than Pow."""
    if degree == 1:
        return base
    root = _power(graph, base, degree // 2)
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
    return graph.add("Reciprocal", _power(graph, base, degree))


_OF_DISTANCES: dict[str, Any] = {
    "rbf": _rbf,
    "exponential": _exponential,
    "matern32": _matern,
    "matern52": _matern,
    "rational_quadratic": _rational,
    "cauchy": _rational,
}


# ---------------------------------------------------------------------- interpretation of scores


def _flat(graph: Graph, score: str) -> str:
    return graph.add("Squeeze", score, np.array([1]))


def _labels(graph: Graph, output: Labels, X: str, score: str) -> None:
    classes = output.classes.astype(object) if output.classes.dtype.kind in "OU" else output.classes
    two = len(classes) == 2
    if two:
        place = graph.cast(graph.add("GreaterOrEqual", _flat(graph, score), 0.0), np.int64)
    else:
        place = graph.add("ArgMax", score, axis=1, keepdims=0)
    graph.output("label", graph.add("Gather", classes, place), "n", dtype=classes.dtype)
    if len(classes) > 2:
        graph.output("score", score, "n", len(classes))
    else:
        graph.output("score", _flat(graph, score), "n")
    if output.probability is None:
        return
    if two:
        second = graph.add("Sigmoid", score)
        probability = graph.beside([graph.add("Sub", 1.0, second), second])
    else:
        probability = graph.add("Softmax", score, axis=1)
    graph.output("probability", probability, "n", len(classes))


def _value(graph: Graph, output: Value, X: str, score: str) -> None:
    graph.output("value", _flat(graph, score), "n")


def _inside(graph: Graph, output: Inside, X: str, score: str) -> None:
    if output.ball is not None:
        score = _depth(graph, output.ball, X, score)
    score = _flat(graph, score)
    inside = graph.add("GreaterOrEqual", score, 0.0)
    graph.output("label", graph.add("Where", inside, np.array(1), np.array(-1)), "n", dtype=np.int64)
    graph.output("score", score, "n")


def _depth(graph: Graph, ball: Ball, X: str, score: str) -> str:
    """Return the depth of rows inside a ball."""
    own: str | float = 1.0
    if not ball.kernel.is_isotropic:
        own = _of_products(graph, ball.kernel, graph.add("ReduceSumSquare", X, np.array([1]), keepdims=1))
    squared = graph.add("Add", graph.add("Add", graph.add("Mul", score, -2.0), own), ball.squared_norm)
    return graph.add("Sub", ball.radius, graph.add("Sqrt", graph.add("Max", squared, 0.0)))


_OUTPUTS: dict[type, Any] = {Labels: _labels, Value: _value, Inside: _inside}
