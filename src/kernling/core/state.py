"""What can be done with any state: a NamedTuple of arrays, and of parts that are NamedTuples of arrays themselves.

The first part is the model, an ``Expansion`` or a ``Linear``.  A part has the methods of those protocols below that concern it,
and every part has ``check``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

import numpy as np


@runtime_checkable
class Part(Protocol):
    """A part of a state."""

    def check(self, size: int, d: int, outputs: int) -> None:
        """Raise unless the part, which comes from a file, fits a model with this many points, columns and outputs.

        Whatever the part holds, compiled code must be able to run on it: shapes agree, and indices are in range.
        """


@runtime_checkable
class PerPoint(Protocol):
    """A part with an entry for each stored point, in the order of the points."""

    def grown(self, capacity: int) -> Any:
        """Return the part with room for this many points; called before a compiled call that may store more than fit.

        The entries there are stay as they are, and spare ones are zero.
        """

    def trimmed(self, size: int) -> Any:
        """Return a copy with the entries of the first ``size`` points only; called before models are saved or merged."""


@runtime_checkable
class PerOutput(Protocol):
    """A part that depends on the outputs, or on targets, which say which output is meant."""

    def widened(self, change: np.ndarray) -> Any:
        """Return the part for outputs ``change @ outputs``; called when a class appears for the first time.

        A second class may turn the sign of the one output there is; a third makes an output for each class.
        """


@runtime_checkable
class Mergeable(Protocol):
    """A part that knows how two of it become one; the model itself is merged by ``merging/rules.py``."""

    def merged(self, other: Any, start: Any, merging: Any) -> Any:
        """Return what this part and the other one become, both trimmed.

        ``start`` is the part from which both went on, or None: what is counted since then counts once.  ``merging`` has the
        states, their shares and the merged model, which the result must fit.
        """


@runtime_checkable
class Centred(Protocol):
    """A part that holds rows minus a centre, or what was computed from such rows."""

    def set_centre(self, row: np.ndarray) -> None:
        """Measure rows from this one; called once, on the first dense row, before anything is learned."""


@runtime_checkable
class Timed(Protocol):
    """A part that holds times, counted in events."""

    def retimed(self, factor: float) -> Any:
        """Return the part with all times multiplied by this; called when a merged model takes over another's clock."""


def _replaced(state: Any, kind: type, change: Callable[[Any], Any]) -> Any:
    """The state with every part of this kind replaced."""
    parts = zip(state._fields, state, strict=True)
    return state._replace(**{name: change(part) for name, part in parts if isinstance(part, kind)})


def grown(state: Any, capacity: int) -> Any:
    """With room for this many points."""
    return _replaced(state, PerPoint, lambda part: part.grown(capacity))


def trimmed(state: Any) -> Any:
    """Without spare room."""
    return _replaced(state, PerPoint, lambda part: part.trimmed(state.model.stored))


def widened(state: Any, change: np.ndarray) -> Any:
    """With outputs ``change @ outputs``."""
    return _replaced(state, PerOutput, lambda part: part.widened(change))


def set_centre(state: Any, row: np.ndarray) -> None:
    """Measure rows from this one."""
    for part in state:
        if isinstance(part, Centred):
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


def packed(state: Any) -> tuple[Any, np.ndarray, int]:
    """A copy whose arrays, but for those that learning does not change, lie side by side; that memory, and how much is floats.

    Then one move keeps all of it, and one look tells whether it is finite.
    """
    arrays: list[np.ndarray] = []
    _gather(state, arrays)
    arrays.sort(key=lambda array: array.dtype.kind != "f")
    memory = np.zeros(sum(array.size for array in arrays))
    places, end = {}, 0
    for array in arrays:
        if array.itemsize != memory.itemsize:
            raise TypeError(f"a state that is packed holds numbers of {memory.itemsize} bytes, not {array.dtype}")
        view = memory[end : end + array.size].view(array.dtype).reshape(array.shape)
        view[...] = array
        places[id(array)] = view
        end += array.size
    floats = sum(array.size for array in arrays if array.dtype.kind == "f")
    return _placed(state, places), memory, floats


def _gather(part: Any, arrays: list[np.ndarray]) -> None:
    for name, value in zip(part._fields, part, strict=True):
        if isinstance(value, np.ndarray):
            if name not in CONSTANT:
                arrays.append(value)
        else:
            _gather(value, arrays)


def _placed(part: Any, places: dict[int, np.ndarray]) -> Any:
    values = (places.get(id(value), value) if isinstance(value, np.ndarray) else _placed(value, places) for value in part)
    return type(part)(*values)


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
        if isinstance(part, Part):
            part.check(state.model.stored, d, outputs)


def _all_finite(part: Any) -> bool:
    if isinstance(part, np.ndarray):
        return part.dtype.kind != "f" or bool(np.isfinite(part).all())
    return all(map(_all_finite, part))


def are_targets(targets: np.ndarray, outputs: int) -> bool:
    """Whether numbers can be targets of a model with this many outputs: of several, they are indices."""
    return outputs == 1 or bool(((targets >= 0) & (targets < outputs) & (targets == np.floor(targets))).all())


def added(own: Any, other: Any, start: Any, value: Any) -> np.ndarray:
    """What adds up when two parts become one: their values, minus that of the part from which both went on."""
    return value(own) + value(other) - (0.0 if start is None else value(start))


def recoded(targets: np.ndarray, change: np.ndarray) -> np.ndarray:
    """Targets as they are called once the outputs are ``change @ outputs``: classes may have got other indices."""
    if change.shape == (1, 1):  # a second class has come
        return targets * change[0, 0]
    columns = np.argmax(np.abs(change), axis=0)
    if change.shape[1] == 1:  # -1 and +1 become the indices of -f/2 and +f/2
        return np.where(targets > 0.0, np.argmax(change[:, 0]), np.argmin(change[:, 0])).astype(np.float64)
    return columns[targets.astype(np.intp)].astype(np.float64)
