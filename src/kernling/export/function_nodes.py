"""Functions of rows in ONNX.

Kernel values and waves have the precision of the model, as in kernling; all that is computed from them is in double precision.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .description import Average, Blend, FourierSum, KernelSum, KernelValues, LinearSum, Nearest, Running, StepSum, Sum, Vote
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


def _vote(graph: Graph, function: Vote, rows: Rows) -> str:
    """Return log probabilities, or log odds: the steps of ``Vote``, with arrays of (rows, experts, classes)."""
    scores = _expert_scores(graph, function, rows)
    combined = _best(graph, _weighted(graph, scores, function.blend), function)
    logits = graph.add("Add", _weighted(graph, scores, function.pull), function.bias)
    stacked = _best(graph, logits, function)
    votes = [
        _weighted(graph, graph.cast(_best(graph, scores, function)), function.votes[:-2]),
        graph.add("Mul", graph.cast(combined), function.votes[-2]),
        graph.add("Mul", graph.cast(stacked), function.votes[-1] + function.ahead),
    ]
    winner = _best(graph, graph.total(votes), function)
    top, other = (_at(graph, logits, place) for place in (stacked, winner))
    swapped = graph.add("Where", winner, top, graph.add("Where", stacked, other, logits))
    calibrated = graph.add("Where", winner, graph.add("Add", top, _growth(graph, function, swapped, top, winner)), swapped)
    return calibrated if len(function.experts[0].offset) > 1 else graph.add("Gemm", calibrated, np.array([[1.0], [-1.0]]))


def _expert_scores(graph: Graph, function: Vote, rows: Rows) -> str:
    """Return the scores of all experts, centred, scaled and clipped, (rows, experts, classes)."""
    scores = []
    for expert in function.experts:
        score = value_of(graph, expert, rows)
        if len(expert.offset) == 1:
            score = graph.beside([score, graph.add("Neg", score)])
        scores.append(graph.add("Unsqueeze", score, np.array([1])))
    all_scores = graph.beside(scores)
    centre = graph.add("ReduceMean", all_scores, np.array([2]), keepdims=1)
    return _clipped(
        graph, graph.add("Div", graph.add("Sub", all_scores, centre), function.scale[:, np.newaxis]), function.reach
    )


def _weighted(graph: Graph, scores: str, weights: np.ndarray) -> str:
    """Return the weighted sum over experts, (rows, classes)."""
    return graph.add("ReduceSum", graph.add("Mul", scores, weights[:, np.newaxis]), np.array([1]), keepdims=0)


def _best(graph: Graph, values: str, function: Vote) -> str:
    """Return a mask of the first class within a tie of the largest value."""
    classes = len(function.bias)
    least = graph.add("Sub", graph.add("ReduceMax", values, np.array([-1]), keepdims=1), function.tie)
    place = graph.add("ArgMax", graph.cast(graph.add("GreaterOrEqual", values, least), np.int32), axis=-1, keepdims=1)
    return graph.add("Equal", place, np.arange(classes))


def _at(graph: Graph, values: str, mask: str) -> str:
    """Return the value at a mask, (rows, 1)."""
    return graph.add("ReduceSum", graph.add("Where", mask, values, 0.0), np.array([1]), keepdims=1)


def _growth(graph: Graph, function: Vote, logits: str, top: str, winner: str) -> str:
    """Return by how much calibration changes the winner's logit, (rows, 1)."""
    bins = len(function.right)
    shares = graph.add("Where", winner, 0.0, graph.add("Exp", graph.add("Sub", logits, top)))
    rest = graph.add("Max", graph.add("ReduceSum", shares, np.array([1]), keepdims=1), TINY)
    second = graph.add("ReduceMax", shares, np.array([1]), keepdims=1)
    place = graph.add("Sub", graph.add("Div", float(bins), graph.add("Add", rest, 1.0)), 0.5)
    place = graph.add("Min", graph.add("Max", place, 0.0), bins - 1.0)
    low = graph.add("Min", graph.add("Floor", place), bins - 2.0)
    index = graph.cast(low, np.int64)
    rise = graph.add("Mul", graph.add("Sub", place, low), graph.add("Gather", np.diff(function.right), index))
    right = graph.add("Add", graph.add("Gather", function.right, index), rise)
    least = graph.add("Add", graph.add("Div", second, graph.add("Add", rest, second)), function.barely)
    right = graph.add("Min", graph.add("Max", right, least), 1.0 - function.barely)
    odds = graph.add("Div", right, graph.add("Sub", 1.0, right))
    return graph.add("Add", graph.add("Log", odds), graph.add("Log", rest))


_VALUES: dict[type, Any] = {Sum: _sum, Average: _average, Nearest: _nearest, Vote: _vote, Blend: _blend}
