"""Estimators as plain data, for model files."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ..core.shapes import is_triangle

SIMPLE = (bool, int, float, str, type(None))


class Contents(NamedTuple):
    header: dict[str, Any]  # JSON
    arrays: dict[str, np.ndarray]


def flatten(state: Any, prefix: str = "state", packed: bool = False) -> dict[str, np.ndarray]:
    """Return the arrays of a nested NamedTuple by dotted name; if ``packed``, only the part of triangles that is not 0."""
    if isinstance(state, np.ndarray):
        return {prefix: state}
    found: dict[str, np.ndarray] = {}
    for name, part in zip(state._fields, state, strict=True):
        is_packed = packed and is_triangle(state, name)
        found |= flatten(_packed(part) if is_packed else part, f"{prefix}.{name}", packed)
    return found


def fill(like: Any, arrays: dict[str, np.ndarray], prefix: str = "state") -> Any:
    """Return a nested NamedTuple like this one, which is of a model without points, with packed arrays by dotted name.

    Raises unless each array has the right type and number of dimensions; ``core.shapes.verify`` checks the rest.
    """
    parts = {}
    for name, part in zip(like._fields, like, strict=True):
        full = f"{prefix}.{name}"
        if not isinstance(part, np.ndarray):
            parts[name] = fill(part, arrays, full)
        elif is_triangle(like, name):
            parts[name] = _unpacked(_array(part.reshape(-1), arrays, full), part.ndim, full)
        else:
            parts[name] = np.array(_array(part, arrays, full), order="C")
    return type(like)(**parts)


def _array(like: np.ndarray, arrays: dict[str, np.ndarray], name: str) -> np.ndarray:
    array = arrays.get(name)
    if array is None:
        raise ValueError(f"{name} is missing")
    if array.dtype != like.dtype or array.ndim != like.ndim:
        own, other = (f"{one.dtype} of {one.ndim} dimensions" for one in (array, like))
        raise ValueError(f"{name} is {own}, but {other} is expected")
    return array


def _packed(triangle: np.ndarray) -> np.ndarray:
    """Return the upper triangle of a square matrix, whose rows may follow each other, row by row."""
    n = math.isqrt(triangle.size)
    return triangle.reshape(n, n)[np.triu_indices(n)]


def _unpacked(numbers: np.ndarray, dimensions: int, name: str) -> np.ndarray:
    n = (math.isqrt(8 * len(numbers) + 1) - 1) // 2
    if n * (n + 1) // 2 != len(numbers):
        raise ValueError(f"{name} has {len(numbers)} numbers, which are no triangle")
    square = np.zeros((n, n), numbers.dtype)
    square[np.triu_indices(n)] = numbers
    return square if dimensions == 2 else square.reshape(-1)


def plain(value: Any, name: str) -> Any:
    """Convert a parameter to JSON-compatible data."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, dict):
        return {"dict": [[plain(key, name), plain(entry, name)] for key, entry in value.items()]}
    if isinstance(value, (np.dtype, type)):
        return np.dtype(value).name
    if not isinstance(value, SIMPLE):
        raise TypeError(f"{name}={value!r} cannot be saved; use a number, a string or None")
    return value


def unplain(value: Any) -> Any:
    """Restore a parameter from JSON."""
    if not isinstance(value, dict):
        return value
    pairs = entry(value, "dict", list)
    if not all(isinstance(pair, list) and len(pair) == 2 and isinstance(pair[0], SIMPLE) for pair in pairs):
        raise ValueError(f"{value!r:.60} is not a dictionary of a model file")
    return {key: unplain(held) for key, held in pairs}


def entry(held: dict[str, Any], name: str, kind: type) -> Any:
    """Return an entry of the header of a model file, of this type."""
    if name not in held:
        raise ValueError(f"there is no entry {name!r}")
    if type(held[name]) is not kind:
        raise ValueError(f"the entry {name!r} is {held[name]!r:.60}, but must be of type {kind.__name__}")
    return held[name]
