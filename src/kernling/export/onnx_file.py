"""Models as ONNX graphs of standard operators (ai.onnx), for prediction with onnxruntime and other runtimes."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import __version__
from ..atomic import replaced
from .description import Ball, Description, Inside, Labels, Value
from .from_model import describe
from .function_nodes import seen, value_of
from .kernel_nodes import of_products
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
        X = table_rows(graph, description.columns, description.width)
    for step in description.steps:
        X = scaled(graph, X, step)
    if description.function is None:
        graph.output("transformed", X, "n", description.width)
        return
    X = graph.cast(X, description.dtype, given=description.input_dtype)
    graph.dtype = np.dtype(description.dtype)
    rows = seen(graph, X, description.scale, description.kernels)
    score = value_of(graph, description.function, rows)
    _OUTPUTS[type(description.output)](graph, description.output, rows.X, score, rows.dtype)


# ---------------------------------------------------------------------- interpretation of scores


def _flat(graph: Graph, score: str) -> str:
    return graph.add("Squeeze", score, np.array([1]))


def _labels(graph: Graph, output: Labels, X: str, score: str, dtype: Any) -> None:
    classes = output.classes.astype(object) if output.classes.dtype.kind in "OU" else output.classes
    two = len(classes) == 2
    if two:
        place = graph.cast(graph.add("GreaterOrEqual", _flat(graph, score), 0.0), np.int64)
    else:
        place = graph.add("ArgMax", score, axis=1, keepdims=0)
    graph.output("label", graph.add("Gather", classes, place), "n", dtype=classes.dtype)
    if len(classes) > 2:
        graph.output("score", score, "n", len(classes), dtype=dtype)
    else:
        graph.output("score", _flat(graph, score), "n", dtype=dtype)
    if output.probability is None:
        return
    if two:
        second = graph.add("Sigmoid", score)
        probability = graph.beside([graph.add("Sub", 1.0, second), second])
    else:
        probability = graph.add("Softmax", score, axis=1)
    graph.output("probability", probability, "n", len(classes), dtype=dtype)


def _value(graph: Graph, output: Value, X: str, score: str, dtype: Any) -> None:
    graph.output("value", _flat(graph, score), "n", dtype=dtype)


def _inside(graph: Graph, output: Inside, X: str, score: str, dtype: Any) -> None:
    if output.ball is not None:
        score = _depth(graph, output.ball, X, score)
    score = _flat(graph, score)
    inside = graph.add("GreaterOrEqual", score, 0.0)
    graph.output("label", graph.add("Where", inside, np.array(1), np.array(-1)), "n", dtype=np.int64)
    graph.output("score", score, "n", dtype=dtype)


def _depth(graph: Graph, ball: Ball, X: str, score: str) -> str:
    """Return the depth of rows inside a ball."""
    own: str | float = 1.0
    if not ball.kernel.is_isotropic:
        own = of_products(graph, ball.kernel, graph.add("ReduceSumSquare", X, np.array([1]), keepdims=1))
    squared = graph.add("Add", graph.add("Add", graph.add("Mul", score, -2.0), own), ball.squared_norm)
    return graph.add("Sub", ball.radius, graph.add("Sqrt", graph.add("Max", squared, 0.0)))


_OUTPUTS: dict[type, Any] = {Labels: _labels, Value: _value, Inside: _inside}
