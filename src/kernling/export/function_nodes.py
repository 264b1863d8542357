"""Functions of rows in ONNX.

Kernel values and waves have the precision of the model, as in kernling; all that is computed from them is in double precision.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .description import Average, Blend, FourierSum, KernelSum, KernelValues, LinearSum, Nearest, Running, Stacks, StepSum, Sum
from .kernel_nodes import centred, kernel_values, power

if TYPE_CHECKING:
    from .graph import Graph

TINY = 1e-300  # instead of 0, where there is a division or a logarithm


class Rows(NamedTuple):
    """Rows in both precisions, and their kernel values."""

    unscaled: str  # in double precision, as the next one
    X: str
    own: str  # in the precision of the model
    dtype: np.dtype  # of the model
    kernels: list[str]  # in double precision


def seen(graph: Graph, X: str, scale: Running | None, kernels: tuple[KernelValues, ...]) -> Rows:
    """Return rows as functions need them; from here on, the graph is in double precision."""
    dtype, own = graph.dtype, X
    graph.dtype = np.dtype(np.float64)
    X = unscaled = graph.cast(X, given=dtype)
    if scale is not None:
        X = _standardised(graph, X, scale)
        own = graph.cast(X, dtype, given=np.float64)
    graph.dtype = dtype
    values = [kernel_values(graph, each, _for_kernel(graph, each, X, own)) for each in kernels]
    graph.dtype = np.dtype(np.float64)
    return Rows(unscaled, X, own, dtype, [graph.cast(each, given=dtype) for each in values])


def _for_kernel(graph: Graph, held: KernelValues, X: str, own: str) -> str:
    """Return centred rows; those that are stretched are rounded to the precision of the model only then, as in kernling."""
    if held.stretch is None:
        return centred(graph, own, held.centre)
    dtype, graph.dtype = graph.dtype, np.dtype(np.float64)
    stretched = graph.add("Mul", centred(graph, X, held.centre), held.stretch)
    graph.dtype = dtype
    return graph.cast(stretched, given=np.float64)


def value_of(graph: Graph, function: Any, rows: Rows) -> str:
    """Return the value of a function for each row, (rows, outputs)."""
    return _VALUES[type(function)](graph, function, rows)


def _standardised(graph: Graph, X: str, scale: Running) -> str:
    z = graph.add("Sub", X, scale.mean)
    squares = graph.add("Add", graph.add("Mul", graph.add("Mul", z, z), 1.0 - scale.share), scale.variance)
    scaled = graph.add("Div", graph.add("Mul", z, np.sqrt(scale.share)), graph.add("Sqrt", graph.add("Max", squares, TINY)))
    scaled = _clipped(graph, scaled, scale.reach)
    if (scale.level > 0).all():
        varied: str | np.ndarray = np.array([True])
    else:
        other = graph.add("Not", graph.add("Or", graph.add("Equal", X, 0.0), graph.add("Equal", X, 1.0)))
        varied = graph.add("Or", other, scale.level > 0)
    if scale.level.max() < 2:
        outside = graph.add("Or", graph.add("Less", X, 0.0), graph.add("Greater", X, 1.0))
        beyond = graph.add("ReduceMax", graph.cast(outside), np.array([1]), keepdims=1)
        varied = graph.add("And", graph.add("Greater", beyond, 0.0), varied)
    return scaled if isinstance(varied, np.ndarray) else graph.add("Where", varied, scaled, X)


# ---------------------------------------------------------------------- sums


def _sum(graph: Graph, function: Sum, rows: Rows) -> str:
    value = graph.total([_PARTS[type(part)](graph, part, rows) for part in function.parts])
    return graph.add("Add", value, function.offset) if function.offset.any() else value


def _kernel_sum(graph: Graph, part: KernelSum, rows: Rows) -> str:
    return graph.add("Gemm", power(graph, rows.kernels[part.kernel], part.power), part.coefficients.T)


def _fourier_sum(graph: Graph, part: FourierSum, rows: Rows) -> str:
    graph.dtype = rows.dtype
    angles = graph.add("Gemm", centred(graph, rows.own, part.centre), part.frequencies, part.phase, transB=1)
    waves = [(wave(angles), coef) for wave, coef in ((graph.cosine, part.cosines), (graph.sine, part.sines)) if coef.any()]
    graph.dtype = np.dtype(np.float64)
    return graph.total([graph.add("Gemm", graph.cast(wave, given=rows.dtype), coef.T) for wave, coef in waves])


def _step_sum(graph: Graph, part: StepSum, rows: Rows) -> str:
    above = graph.add("Greater", graph.add("Gather", rows.unscaled, part.columns, axis=1), part.edges)
    return graph.add("Gemm", graph.cast(above), part.coefficients.T)


def _linear_sum(graph: Graph, part: LinearSum, rows: Rows) -> str:
    return graph.add("Gemm", rows.X, part.coefficients.T)


_PARTS: dict[type, Any] = {KernelSum: _kernel_sum, FourierSum: _fourier_sum, StepSum: _step_sum, LinearSum: _linear_sum}


# ---------------------------------------------------------------------- neighbours


def _average(graph: Graph, function: Average, rows: Rows) -> str:
    columns = np.column_stack([function.sums, function.weights])
    both = graph.add("Gemm", power(graph, rows.kernels[function.kernel], function.power), columns)
    total, weight = (graph.add("Gather", both, np.array([place]), axis=1) for place in range(2))
    return graph.add("Div", total, graph.add("Add", weight, function.little))


def _nearest(graph: Graph, function: Nearest, rows: Rows) -> str:
    """Return the mean of the nearest points, in two steps: TopK prefers the first ones only if values are exactly equal."""
    count = np.array([function.neighbours])
    values = graph.add("Max", rows.kernels[function.kernel], function.far)
    last = graph.add("ReduceMin", graph.top(values, count)[0], np.array([1]), keepdims=1)
    ratio = graph.add("Sub", graph.add("Div", values, last), 1.0)
    beyond = graph.add("Mul", ratio, 0.5 / function.tie)  # above 1/2 if nearer than the last one, below -1/2 if farther
    rank = graph.add("Round", _clipped(graph, beyond, 1.0))
    chosen = graph.top(rank, count)[1]
    logarithms = graph.add("Log", graph.add("GatherElements", values, chosen, axis=1))
    squares = graph.add("Add", graph.add("Mul", logarithms, logarithms), function.near**2)
    shares = (graph.add("Div", graph.add("Gather", each, chosen), squares) for each in (function.sums, function.weights))
    return graph.add("Div", *(graph.add("ReduceSum", share, np.array([1]), keepdims=1) for share in shares))


# ---------------------------------------------------------------------- mixtures


def _clipped(graph: Graph, values: str, reach: float) -> str:
    return graph.add("Min", graph.add("Max", values, -reach), reach)


def _blend(graph: Graph, function: Blend, rows: Rows) -> str:
    predictions = _clipped(graph, graph.beside([value_of(graph, each, rows) for each in function.experts]), function.reach)
    value = _clipped(graph, graph.add("Gemm", predictions, function.weights[:, np.newaxis]), function.reach)
    return graph.add("Add", graph.add("Mul", value, function.width), function.shift)


def _stacks(graph: Graph, function: Stacks, rows: Rows) -> str:
    """Return log probabilities, or log odds: the steps of ``Stacks``, with arrays of (rows, stacks, classes)."""
    logits = graph.add("Add", graph.add("MatMul", function.pull, _expert_scores(graph, function, rows)), function.bias)
    shares = graph.add("Mul", graph.add("Softmax", logits, axis=2), function.trust[:, np.newaxis])
    mixed = graph.add("Log", graph.add("Add", graph.add("ReduceSum", shares, np.array([1]), keepdims=0), function.floor))
    output = mixed if len(function.shift) > 1 else graph.add("Gemm", mixed, np.array([[-1.0], [1.0]]))
    return graph.add("Add", output, function.shift) if function.shift.any() else output


def _expert_scores(graph: Graph, function: Stacks, rows: Rows) -> str:
    """Return the scores of all experts, centred, scaled and compressed, (rows, experts, classes)."""
    scores = []
    for expert, mean in zip(function.experts, function.mean, strict=True):
        away = graph.add("Sub", value_of(graph, expert, rows), mean)
        if len(mean) == 1:
            away = graph.beside([graph.add("Neg", away), away])
        scores.append(graph.add("Unsqueeze", away, np.array([1])))
    away = graph.beside(scores)
    centre = graph.add("ReduceMean", away, np.array([2]), keepdims=1)
    scaled = graph.add("Div", graph.add("Sub", away, centre), function.scale[:, np.newaxis])
    curbed = graph.add("Mul", graph.add("Abs", scaled), function.curb[:, np.newaxis])
    return graph.add("Div", scaled, graph.add("Sqrt", graph.add("Add", curbed, 1.0)))


_VALUES: dict[type, Any] = {Sum: _sum, Average: _average, Nearest: _nearest, Stacks: _stacks, Blend: _blend}
