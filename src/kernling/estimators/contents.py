"""Estimators as plain data, for model files."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..core.expansion import EVENTS
from ..core.limits import LARGEST

SIMPLE = (bool, int, float, str, type(None))


class Contents(NamedTuple):
    header: dict[str, Any]  # JSON
    arrays: dict[str, np.ndarray]


def flatten(state: Any, prefix: str = "state") -> dict[str, np.ndarray]:
    """Return the arrays of a nested NamedTuple by dotted name."""
    if isinstance(state, np.ndarray):
        return {prefix: state}
    found: dict[str, np.ndarray] = {}
    for name, part in zip(state._fields, state, strict=True):
        found |= flatten(part, f"{prefix}.{name}")
    return found


def fill(like: Any, arrays: dict[str, np.ndarray], prefix: str = "state") -> Any:
    """Return a nested NamedTuple like this one, which is of a model without points, with arrays by dotted name.

    Raises unless each array has the right type, and the right length wherever the model without points has one, since compiled
    code does not check.
    """
    if isinstance(like, np.ndarray):
        array = arrays[prefix]
        fits = array.ndim == like.ndim and all(own in (0, n) for own, n in zip(like.shape, array.shape, strict=True))
        if array.dtype != like.dtype or not fits:
            raise ValueError(f"{prefix} is {array.dtype} of shape {array.shape}, not {like.dtype} of shape {like.shape}")
        return np.array(array, order="C")
    return type(like)(*(fill(part, arrays, f"{prefix}.{name}") for name, part in zip(like._fields, like, strict=True)))


def check_numbers(state: Any) -> None:
    """Raise if a loaded state contains numbers that learning cannot produce.

    Rows that are too large would make distances infinite, and steps divide by the number of events.
    """
    events = state.model.clock[EVENTS]
    if events < 0.0 or events != np.floor(events):
        raise ValueError(f"{events:g} is not a valid number of learned events")
    for name, array in flatten(state).items():
        if name.endswith((".points", ".centre", ".X")) and np.abs(array).max(initial=0.0) > 4.0 * LARGEST[array.dtype.name]:
            raise ValueError(f"{name} contains numbers above {LARGEST[array.dtype.name]:g}")


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
    return {unplain(key): unplain(entry) for key, entry in value["dict"]} if isinstance(value, dict) else value
