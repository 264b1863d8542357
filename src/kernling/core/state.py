"""Operations on states: NamedTuples of arrays, and of parts that are NamedTuples of arrays themselves.

The first part is the model, an ``Expansion`` or a ``Linear``.  A part declares its arrays (shapes.py), implements those of the
protocols below that apply to it, and may have ``check`` for what no declaration can say.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol, TypeVar, runtime_checkable

import numpy as np

Value = TypeVar("Value", float, np.ndarray)


class Widening(NamedTuple):
    """The outputs after a class has appeared for the first time: each is an old output times a factor, or new."""

    old: np.ndarray  # (outputs,) index of the old output, -1 for a new class
    factors: np.ndarray  # (outputs,) its factor, 0 for a new class

    @property
    def outputs(self) -> int:
        """Number of outputs."""
        return len(self.old)

    def of(self, values: np.ndarray, axis: int = 0) -> np.ndarray:
        """Convert values, which have one entry per old output along an axis; those of a new class are 0."""
        wider = np.moveaxis(values.take(self.old, axis), axis, -1)
        wider *= self.factors
        wider[..., self.old < 0] = 0.0
        return np.moveaxis(wider, -1, axis)

    def columns(self, values: np.ndarray, places: np.ndarray, axis: int = 1) -> np.ndarray:
        """Convert values, which have one entry per column along an axis, given the column of each old output.

        A class that joins several others gets the next spare column, and nothing moves; where there is none, there will be
        half as many more.  With the old places, one still sees the old outputs.
        """
        n = len(places)
        if n == 1:
            return self.of(values, axis)
        values = padded(values, axis, room_for_outputs(n)) if n == values.shape[axis] else values
        values[(slice(None),) * axis + (n,)] = 0.0  # an event that failed may have left something
        return values

    def places(self, places: np.ndarray) -> np.ndarray:
        """Return the column of each output, given that of each old one."""
        n = len(places)
        return np.arange(self.outputs) if n == 1 else np.where(self.old < 0, n, places[self.old])

    @property
    def signs(self) -> Widening:
        """The same without halving an output that becomes two."""
        return self._replace(factors=np.sign(self.factors))


def room_for_outputs(outputs: int) -> int:
    """Return for how many outputs room is made when a class joins this many; a single output becomes three without any."""
    return outputs + outputs // 2 + 1 if outputs > 1 else 1


def padded(array: np.ndarray, axis: int, length: int) -> np.ndarray:
    """Return a copy that is padded with zeros along one axis."""
    shape = list(array.shape)
    shape[axis] = length
    out = np.zeros(shape, array.dtype)
    out[tuple(slice(n) for n in array.shape)] = array
    return out


@runtime_checkable
class Checked(Protocol):
    """A part of which more must be true than it declares."""

    def check(self, dimensions: Mapping[str, int]) -> None:
        """Raise unless compiled code can run on the part, which was loaded from a file and is as declared.

        ``dimensions`` has the lengths of ``stored``, ``columns``, ``outputs``, ``classes`` and the part's own dimensions.
        """


@runtime_checkable
class Roomy(Protocol):
    """A part that may have room for more points."""

    def trimmed(self, size: int) -> Any:
        """Return a copy with the entries of the first ``size`` points only; called before models are saved or merged."""


@runtime_checkable
class Ordered(Protocol):
    """A part that may have room for more outputs, and has them in the order in which the classes appeared."""

    def ordered(self) -> Any:
        """Return a copy in the order of the labels, without such room; called before models are saved or merged."""


@runtime_checkable
class PerPoint(Roomy, Protocol):
    """A part with an entry for each stored point, in the order of the points."""

    def grown(self, capacity: int) -> Any:
        """Return the part with room for this many points; called before a compiled call that may store more points than fit.

        Existing entries are unchanged, and spare ones are zero.
        """


@runtime_checkable
class PerOutput(Protocol):
    """A part that depends on the outputs, or on targets, which refer to outputs."""

    def widened(self, change: Widening) -> Any:
        """Return the part for the outputs of ``change``; called when a class appears for the first time.

        A second class may change the sign of the only output; a third adds an output for each class.
        """


@runtime_checkable
class Centred(Protocol):
    """A part with rows minus a centre, or with values computed from such rows."""

    def set_centre(self, row: np.ndarray) -> None:
        """Store rows relative to this one; called once, with the first dense row, before anything is learned."""


@runtime_checkable
class Timed(Protocol):
    """A part with times, counted in events."""

    def retimed(self, factor: float) -> Any:
        """Return the part with all times multiplied by this; called when the clock of a merged model is set."""


def _replaced(state: Any, kind: type, change: Callable[[Any], Any]) -> Any:
    """Return the state with every part of this kind replaced."""
    parts = zip(state._fields, state, strict=True)
    # issubclass remembers its answers for a protocol, isinstance takes 20 microseconds each time
    return state._replace(**{name: change(part) for name, part in parts if issubclass(type(part), kind)})


def grown(state: Any, capacity: int) -> Any:
    """Return the state with room for this many points."""
    return _replaced(state, PerPoint, lambda part: part.grown(capacity))


def trimmed(state: Any) -> Any:
    """Return the state without spare room, its outputs in the order of the labels."""
    return ordered(without_points(state))


def without_points(state: Any) -> Any:
    """Return the state without room for more points."""
    return _replaced(state, Roomy, lambda part: part.trimmed(state.model.stored))


def ordered(state: Any) -> Any:
    """Return the state without room for more outputs, these in the order of the labels."""
    return _replaced(state, Ordered, lambda part: part.ordered())


def widened(state: Any, change: Widening) -> Any:
    """Return the state for the outputs of ``change``."""
    return _replaced(state, PerOutput, lambda part: part.widened(change))


def set_centre(state: Any, row: np.ndarray) -> None:
    """Store rows relative to this one."""
    for part in state:
        if isinstance(part, Centred):
            part.set_centre(row)


APART = 64  # numbers between arrays that share memory: compiled loops treat arrays that are close to each other differently
CONSTANT = ("frequencies", "phase", "centre")  # arrays that learning does not change
GIVEN = ("points", "X", "Z")  # rows and their features, which are finite however the model diverges


def copied(state: Any) -> Any:
    """Return a copy that learning does not modify."""
    if isinstance(state, np.ndarray):
        return state.copy()
    if hasattr(state, "copied"):  # it knows better what has to be copied
        return state.copied()
    parts = zip(state._fields, state, strict=True)
    return type(state)(*(part if name in CONSTANT else copied(part) for name, part in parts))


def writable(state: Any) -> Any:
    """Return the state with copies of its read-only arrays, which come from shared memory."""
    if isinstance(state, np.ndarray):
        return state if state.flags.writeable else state.copy()
    return type(state)(*map(writable, state))


def viewed(state: Any) -> Any:
    """Return the state with read-only views of its arrays."""
    if isinstance(state, np.ndarray):
        view = state.view()
        view.flags.writeable = False
        return view
    return type(state)(*map(viewed, state))


def nbytes(state: Any) -> int:
    """Return the size of all arrays."""
    return state.nbytes if isinstance(state, np.ndarray) else sum(map(nbytes, state))


def restore(state: Any, before: Any) -> None:
    """Restore a state from a copy; both have room for the same number of points."""
    if isinstance(state, np.ndarray):
        state[...] = before
        return
    for part, kept in zip(state, before, strict=True):
        if part is not kept:
            restore(part, kept)


def packed(state: Any) -> tuple[Any, np.ndarray, int]:
    """Return a copy whose arrays share one block of memory, except those that learning never changes; the block; and a number.

    So the state can be saved by one copy, and checked at once: so many numbers of the block may not be finite after an event.
    """
    arrays: list[tuple[bool, np.ndarray]] = []  # and whether they need no check
    _gather(state, arrays)
    arrays.sort(key=lambda entry: entry[0])
    memory = np.zeros(sum(_room_of(array) for _, array in arrays))
    places, end = {}, 0
    for _, array in arrays:
        view = memory[end : end + _room_of(array)].view(array.dtype)[: array.size].reshape(array.shape)
        view[...] = array
        places[id(array)] = view
        end += _room_of(array)
    checked = sum(_room_of(array) for is_sound, array in arrays if not is_sound)
    return _placed(state, places), memory, checked


def _room_of(array: np.ndarray) -> int:
    return -(-array.nbytes // 8) + APART


def _gather(part: Any, arrays: list[tuple[bool, np.ndarray]]) -> None:
    for name, value in zip(part._fields, part, strict=True):
        if isinstance(value, np.ndarray):
            if name not in CONSTANT:
                arrays.append((name in GIVEN or value.dtype != np.float64, value))
        else:
            _gather(value, arrays)


def _placed(part: Any, places: dict[int, np.ndarray]) -> Any:
    values = (places.get(id(value), value) if isinstance(value, np.ndarray) else _placed(value, places) for value in part)
    return type(part)(*values)


def is_finite(state: Any) -> bool:
    """Return whether all numbers that learning computes are finite."""
    if isinstance(state, np.ndarray):
        return state.dtype.kind != "f" or bool(np.isfinite(state).all())
    return all(is_finite(part) for name, part in zip(state._fields, state, strict=True) if name not in (*CONSTANT, "points"))


def added(own: Any, other: Any, start: Any, value: Callable[[Any], Value]) -> Value:
    """Return the sum of a value of two merged parts, minus that of their common start."""
    return value(own) + value(other) - (0.0 if start is None else value(start))


def recoded(targets: np.ndarray, change: Widening) -> np.ndarray:
    """Recode targets for the outputs of ``change``, in which classes may have other indices."""
    if change.outputs == 1:  # a second class was added
        return targets * change.factors[0]
    if change.old.max() == 0:  # -1 and +1 become the indices of -f/2 and +f/2
        return np.where(targets > 0.0, np.argmax(change.factors), np.argmin(change.factors)).astype(np.float64)
    return np.flatnonzero(change.old >= 0)[targets.astype(np.intp)].astype(np.float64)
