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


CONSTANT = ("frequencies", "phase", "centre")  # arrays that learning does not change


def copied(state: Any) -> Any:
    """A copy that learning does not touch."""
    if isinstance(state, np.ndarray):
        return state.copy()
    parts = zip(state._fields, state, strict=True)
    return type(state)(*(part if name in CONSTANT else copied(part) for name, part in parts))


def restore(state: Any, before: Any) -> None:
    """Put back what a copy has kept; both have room for the same number of points."""
    if isinstance(state, np.ndarray):
        state[...] = before
        return
    for part, kept in zip(state, before, strict=True):
        if part is not kept:
            restore(part, kept)


def is_finite(state: Any) -> bool:
    """Whether no number that learning computes is NaN or infinite."""
    if isinstance(state, np.ndarray):
        return state.dtype.kind != "f" or bool(np.isfinite(state).all())
    return all(is_finite(part) for name, part in zip(state._fields, state, strict=True) if name not in (*CONSTANT, "points"))


def check_contents(state: Any, d: int, outputs: int) -> None:
    """Raise unless the arrays of a state that comes from outside, without spare room, fit each other.

    Compiled code does not look: a wrong length or a number that serves as an index would have it read and write anywhere.
    """
    if not _all_finite(state):
        raise ValueError("the arrays of the model hold NaN or infinity")
    for part in state:
        if hasattr(part, "check"):
            part.check(state.model.stored, d, outputs)


def _all_finite(part: Any) -> bool:
    if isinstance(part, np.ndarray):
        return part.dtype.kind != "f" or bool(np.isfinite(part).all())
    return all(map(_all_finite, part))


def are_targets(targets: np.ndarray, outputs: int) -> bool:
    """Whether numbers can be targets of a model with so many outputs: of several, they are indices."""
    return outputs == 1 or bool(((targets >= 0) & (targets < outputs) & (targets == np.floor(targets))).all())


def added(own: Any, other: Any, start: Any, value: Any) -> np.ndarray:
    """What adds up when two parts become one: their values, less that of the part from which both went on."""
    return value(own) + value(other) - (0.0 if start is None else value(start))


def recoded(targets: np.ndarray, change: np.ndarray) -> np.ndarray:
    """Targets as they are called once the outputs are ``change @ outputs``: classes may have got other indices."""
    if change.shape == (1, 1):  # a second class has come
        return targets * change[0, 0]
    columns = np.argmax(np.abs(change), axis=0)
    if change.shape[1] == 1:  # -1 and +1 become the indices of -f/2 and +f/2
        return np.where(targets > 0.0, np.argmax(change[:, 0]), np.argmin(change[:, 0])).astype(np.float64)
    return columns[targets.astype(np.intp)].astype(np.float64)
