"""Predicts from the JSON of a model by the words of docs/guide/export.md, and by nothing of kernling."""

from __future__ import annotations

import math
import zlib
from datetime import UTC, datetime
from typing import Any, NamedTuple

import numpy as np

NO_DATE = -(2**63)


def scores(held: dict[str, Any], rows: list[Any]) -> np.ndarray:
    """Scores (rows, outputs), or rows after the last step."""
    return np.array([_scores(held, row) for row in rows])


def labels(held: dict[str, Any], scored: np.ndarray) -> list[Any]:
    """What the scores mean."""
    output = held["output"]
    if output["kind"] == "inside":
        return [1 if score >= 0.0 else -1 for (score,) in scored]
    classes = output["classes"]
    places = (scored[:, 0] >= 0.0).astype(int) if len(classes) == 2 else scored.argmax(axis=1)
    return [classes[place] for place in places]


def probabilities(held: dict[str, Any], scored: np.ndarray) -> np.ndarray:
    """The probability of each class."""
    if held["output"]["probability"] == "sigmoid":
        second = 1.0 / (1.0 + np.exp(-scored))
        return np.hstack([1.0 - second, second])
    powers = np.exp(scored - scored.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def _scores(held: dict[str, Any], row: Any) -> np.ndarray:
    x = row
    if held["columns"] is not None:
        x = [number for column in held["columns"] for number in _encoded(column, row[column["name"]])]
        x += [0.0] * (held["width"] - len(x))
    x = np.asarray(x, dtype=np.float64)
    assert len(x) == held["width"]
    for step in held["steps"]:
        x = _scaled(step, x)
    unscaled = x
    if held["scale"] is not None:
        x = _standardised(held["scale"], x)
    if held["output"] is None:
        return x
    kernels = [
        _kernel(each["function"], (x - each["centre"]) * (each["stretch"] or 1.0), np.array(each["points"]))
        for each in held["kernels"]
    ]
    score = _value(held["function"], Row(unscaled, x, kernels))
    ball = held["output"].get("ball")
    if ball is None:
        return score
    own = 1.0 if ball["kernel"]["name"] not in ("poly", "linear") else _kernel(ball["kernel"], x, x[np.newaxis])
    return ball["radius"] - np.sqrt(np.maximum(0.0, ball["squared_norm"] - 2.0 * score + own))


def _scaled(step: dict[str, Any], x: Any) -> Any:
    x = step["low"] + np.array(step["factor"]) * (x - np.array(step["shift"]))
    return x if step["reach"] is None else np.clip(x, -step["reach"], step["reach"])


def _standardised(scale: dict[str, Any], x: np.ndarray) -> np.ndarray:
    z, share, variance = x - np.array(scale["mean"]), scale["share"], np.array(scale["variance"])
    below = variance + (1.0 - share) * z**2
    scaled = np.where(below > 0.0, z * math.sqrt(share) / np.sqrt(np.where(below > 0.0, below, 1.0)), 0.0)
    own = np.where((x == 0.0) | (x == 1.0), 0, np.where((x > 0.0) & (x < 1.0), 1, 2))
    level = np.maximum(own, scale["level"])
    return np.where((level > 0) & (level.max() == 2), np.clip(scaled, -scale["reach"], scale["reach"]), x)


def _encoded(column: dict[str, Any], value: Any) -> list[float]:
    if column["treatment"] == "category":
        return _category(column, value)
    if column["treatment"] == "date":
        missing = value == NO_DATE
        number = column["fill"] if missing else (value - column["origin"]) / 86_400
        rest = [0.0] * (6 if column["clock"] else 4) if missing else _angles(value, column["clock"])
    else:
        missing = value is None or not math.isfinite(value)
        number, rest = column["fill"] if missing else float(value), []
    number = number if column["scale"] is None else float(_scaled(column["scale"], number))
    return [number, *rest, *([float(missing)] if column["gaps"] else [])]


def _category(column: dict[str, Any], value: str) -> list[float]:
    known, others = column["categories"], column["others"]
    row = [0.0] * (len(known) + others + column["gaps"])
    if column["gaps"] and value == "":
        row[-1] = 1.0
    else:
        row[known.index(value) if value in known else len(known) + zlib.crc32(value.encode()) % others] = 1.0
    return row


def _angles(seconds: int, clock: bool) -> list[float]:
    date = datetime.fromtimestamp(seconds, UTC)
    turns = [(date.month - 1) / 12, date.weekday() / 7, *([seconds % 86_400 / 86_400] if clock else [])]
    return [round(f(2.0 * math.pi * turn), 9) for turn in turns for f in (math.sin, math.cos)]


# ---------------------------------------------------------------------- functions


class Row(NamedTuple):
    unscaled: np.ndarray  # before ``scale``
    x: np.ndarray
    kernels: list[np.ndarray]  # the values of each


def _value(function: dict[str, Any], row: Row) -> np.ndarray:
    return FUNCTIONS[function["kind"]](function, row)


def _sum(function: dict[str, Any], row: Row) -> np.ndarray:
    return sum((_value(part, row) for part in function["parts"]), np.array(function["offset"], dtype=np.float64))


def _kernel_part(part: dict[str, Any], row: Row) -> np.ndarray:
    return np.array(part["coefficients"]) @ row.kernels[part["kernel"]] ** part["power"]


def _fourier_part(part: dict[str, Any], row: Row) -> np.ndarray:
    angles = np.array(part["frequencies"]) @ (row.x - np.array(part["centre"])) + np.array(part["phase"])
    return np.array(part["cosines"]) @ np.cos(angles) + np.array(part["sines"]) @ np.sin(angles)


def _step_part(part: dict[str, Any], row: Row) -> np.ndarray:
    return np.array(part["coefficients"]) @ (row.unscaled[part["columns"]] > part["edges"])


def _linear_part(part: dict[str, Any], row: Row) -> np.ndarray:
    return np.array(part["coefficients"]) @ row.x


def _average(function: dict[str, Any], row: Row) -> np.ndarray:
    k = row.kernels[function["kernel"]] ** function["power"]
    return np.array([k @ function["sums"] / (function["little"] + k @ function["weights"])])


def _nearest(function: dict[str, Any], row: Row) -> np.ndarray:
    k, count, tie = np.maximum(row.kernels[function["kernel"]], function["far"]), function["neighbours"], 1.0 + function["tie"]
    last = np.sort(k)[-count]
    nearer, equal = np.flatnonzero(k > last * tie), np.flatnonzero((k <= last * tie) & (k >= last / tie))
    chosen = [*nearer, *equal[: count - len(nearer)]]
    shares = 1.0 / (np.log(k[chosen]) ** 2 + function["near"] ** 2)
    return np.array([shares @ np.array(function["sums"])[chosen] / (shares @ np.array(function["weights"])[chosen])])


def _blend(function: dict[str, Any], row: Row) -> np.ndarray:
    reach = function["reach"]
    said = np.concatenate([_value(expert, row) for expert in function["experts"]])
    mixed = np.clip(function["weights"] @ np.clip(said, -reach, reach), -reach, reach)
    return np.array([function["shift"] + function["width"] * mixed])


def _stacks(function: dict[str, Any], row: Row) -> np.ndarray:
    away = np.array([_value(expert, row) for expert in function["experts"]]) - np.array(function["mean"])
    two = away.shape[1] == 1
    away = np.hstack([-away, away]) if two else away - away.mean(axis=1, keepdims=True)
    z = away / np.c_[function["scale"]]
    logits = np.array(function["bias"]) + np.array(function["pull"]) @ (z / np.sqrt(1.0 + np.c_[function["curb"]] * np.abs(z)))
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    said = np.log(function["floor"] + function["trust"] @ (powers / powers.sum(axis=1, keepdims=True)))
    return (np.array([said[1] - said[0]]) if two else said) + function["shift"]


FUNCTIONS = {
    "sum": _sum,
    "kernel": _kernel_part,
    "fourier": _fourier_part,
    "step": _step_part,
    "linear": _linear_part,
    "average": _average,
    "nearest": _nearest,
    "stacks": _stacks,
    "blend": _blend,
}


def _kernel(kernel: dict[str, Any], x: np.ndarray, points: np.ndarray) -> np.ndarray:
    name, gamma, degree = kernel["name"], kernel["gamma"], kernel["degree"]
    q = ((points - x) ** 2).sum(axis=1)
    r = np.sqrt(q)
    s = {"matern32": math.sqrt(3.0), "matern52": math.sqrt(5.0)}.get(name, 0.0) * gamma * r
    return {
        "rbf": lambda: np.exp(-gamma * q),
        "exponential": lambda: np.exp(-gamma * r),
        "matern32": lambda: (1.0 + s) * np.exp(-s),
        "matern52": lambda: (1.0 + s + s**2 / 3.0) * np.exp(-s),
        "rational_quadratic": lambda: (1.0 + gamma * q / degree) ** -degree,
        "cauchy": lambda: 1.0 / (1.0 + gamma * q),
        "laplacian": lambda: np.exp(-gamma * np.abs(points - x).sum(axis=1)),
        "poly": lambda: (gamma * (points @ x) + kernel["coef0"]) ** degree,
        "linear": lambda: points @ x,
    }[name]()
