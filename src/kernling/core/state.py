"""What can be done with any state: a NamedTuple of arrays, and of parts that know how to grow, widen and check themselves."""

from __future__ import annotations

from typing import Any

import numpy as np


def _each(state: Any, action: str, *arguments: Any) -> Any:
    """The state with every part replaced that has such a method."""
    parts = zip(state._fields, state, strict=True)
    return state._replace(**{name: getattr(part, action)(*arguments) for name, part in parts if hasattr(part, action)})


def grown(state: Any, capacity: int) -> Any:
    """With room for this many points."""
    return _each(state, "grown", capacity)


def trimmed(state: Any) -> Any:
    """Without spare room."""
    return _each(state, "trimmed", state.model.stored)


def widened(state: Any, change: np.ndarray) -> Any:
    """With outputs ``change @ outputs``."""
    return _each(state, "widened", change)


def set_centre(state: Any, row: np.ndarray) -> None:
    """Measure rows from this one."""
    for part in state:
        if hasattr(part, "set_centre"):
            part.set_centre(row)


def check_shapes(state: Any, d: int, outputs: int) -> None:
    """Raise unless the arrays of a state that comes from outside fit each other: compiled code does not look."""
    for part in state:
        if hasattr(part, "check"):
            part.check(state.model.stored, d, outputs)


def recoded(targets: np.ndarray, change: np.ndarray) -> np.ndarray:
    """Targets as they are called once the outputs are ``change @ outputs``: classes may have got other indices."""
    if change.shape == (1, 1):  # a second class has come
        return targets * change[0, 0]
    columns = np.argmax(np.abs(change), axis=0)
    if change.shape[1] == 1:  # -1 and +1 become the indices of -f/2 and +f/2
        return np.where(targets > 0.0, np.argmax(change[:, 0]), np.argmin(change[:, 0])).astype(np.float64)
    return columns[targets.astype(np.intp)].astype(np.float64)
