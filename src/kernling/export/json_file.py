"""Models as plain JSON, for programs without Python and ONNX.  docs/guide/export.md documents the schema."""

from __future__ import annotations

import json
import os
from typing import Any

import numpy as np

from ..atomic import replaced
from .description import Average, Blend, FourierSum, Inside, KernelSum, Labels, LinearSum, Nearest, Stacks, StepSum, Sum, Value
from .from_model import describe

VERSION = 1  # of the schema
KINDS: dict[type, str] = {
    KernelSum: "kernel",
    FourierSum: "fourier",
    StepSum: "step",
    LinearSum: "linear",
    Sum: "sum",
    Average: "average",
    Nearest: "nearest",
    Stacks: "stacks",
    Blend: "blend",
    Labels: "labels",
    Value: "value",
    Inside: "inside",
}


def to_json(model: Any, path: str | os.PathLike) -> None:
    """Write everything that prediction with a fitted model or pipeline needs as JSON; the guide documents the schema.

    Examples
    --------
    >>> import json, numpy as np, kernling as kl
    >>> from kernling.export import to_json
    >>> to_json(kl.AVMClassifier(gamma=1.0, delta=1.0).fit(np.eye(2), ["a", "b"]), "model.json")
    >>> held = json.load(open("model.json"))
    >>> held["output"]["classes"], held["kernels"][0]["points"]
    (['a', 'b'], [[0.0, 0.0], [-1.0, 1.0]])
    """
    held = {"format": "kernling", "version": VERSION, **plain(describe(model))}
    with replaced(path) as temporary:
        temporary.write_text(json.dumps(held, allow_nan=False) + "\n", encoding="utf-8")


def plain(value: Any) -> Any:
    """Convert a part of a description to JSON-compatible data; ``kind`` is added where several kinds are possible."""
    if hasattr(value, "_asdict"):
        kind = {"kind": KINDS[type(value)]} if type(value) in KINDS else {}
        return kind | {name: plain(part) for name, part in value._asdict().items()}
    if isinstance(value, tuple):
        return [plain(part) for part in value]
    return value.tolist() if isinstance(value, (np.ndarray, np.generic)) else value
