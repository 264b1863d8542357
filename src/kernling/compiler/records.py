"""Records passed to compiled code by address: one word per call instead of hundreds for thirty arrays.

Compiled code sees a NamedTuple by value: all fields of all its arrays are arguments of every function that takes it, and
most of the time of compiling goes into moving them around.  ``by_address`` writes the same fields into one block of memory,
a word per number and an address and a shape per array, and compiled code reads ``state.model.coef`` from there, where it is
used.  The code does not change: it reads the same names, whatever it is given.  The compiler knows that fields never change.

An object can be given, too.  Its class names the fields in ``ASSIGNED`` to which compiled code assigns; that lasts as long as
the memory, and is not seen by Python.  A loop should read those from local variables: inside of it, they would be loaded again
after every number written.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .decorators import COMPILED
from .kinds import ALIGNED, BY_ROWS, WRITEABLE, Fields, Function, HasKind, kind_of


def by_address(record: Any) -> Any:
    """Copy a record to memory for compiled code; its arrays must be contiguous, and are kept alive with it."""
    return Handle(record) if COMPILED else record


def address(record: Any) -> Any:
    """Return what compiled code takes for the result of ``by_address`` in the least time; it is valid as long as that."""
    return record.address if COMPILED else record


def strided(array: np.ndarray) -> np.ndarray:
    """Return a vector of the same type for ``entry_point``, if arguments may be views with gaps."""
    return np.empty((2, 2), array.dtype)[:, 0]


OWNER = object()  # among the arguments of a function: the record that contains it, which would otherwise hold itself


class FunctionField(HasKind):
    """A field that contains a function: only the one in use is compiled, for arguments of these types.

    A record among the arguments is passed by address; ``OWNER`` is the one that contains the function.
    """

    def __init__(self, function: Any, *arguments: Any):
        self.function, self.arguments = function, arguments
        self.kind = Function(tuple(None if _is_record(a) else kind_of(a) for a in arguments))

    def __call__(self, *arguments: Any) -> Any:
        return self.function(*arguments)

    def address(self, owner: Any, known: dict[int, Fields]) -> int:
        """Return the address of its machine code, compiling it if needed; ``known`` as for ``_write``."""
        given = (owner if one is OWNER else one for one in self.arguments)
        kinds = (known.get(id(a)) or _write(a, [], [], known) if _is_record(a) else kind_of(a) for a in given)
        return self.function.address(tuple(kinds))


def _is_record(value: Any) -> bool:
    return not isinstance(value, (np.ndarray, bool, int, float))


def _write(record: Any, words: list[int], later: list[tuple[int, Any, Any]], known: dict[int, Fields]) -> Fields:
    """Append the words of a record, and return its kind; ``known`` gets those of all records in it, by their id.

    Numbers with a point, and functions, whose kinds depend on those of records, are left for ``later``, with their record.
    """
    names = getattr(record, "_fields", None)
    fields: list[tuple[str, Any]] = []
    for name, value in vars(record).items() if names is None else zip(names, record, strict=True):
        if isinstance(value, np.ndarray):
            flags = value.flags.num
            if not flags & BY_ROWS:
                raise ValueError("compiled code requires contiguous arrays")
            words.append(value.__array_interface__["data"][0])
            words.extend(value.shape)
            fields.append((name, (value.dtype, value.ndim, ALIGNED | BY_ROWS | flags & WRITEABLE)))
        elif isinstance(value, (float, FunctionField)):
            later.append((len(words), value, record))
            words.append(0)
            fields.append((name, kind_of(value)))
        elif isinstance(value, int):
            words.append(value)
            fields.append((name, kind_of(value)))
        else:
            fields.append((name, _write(value, words, later, known)))
    found = known[id(record)] = Fields(type(record), tuple(fields))
    return found


class Handle(HasKind):
    """The address of a record, which keeps its memory alive."""

    __slots__ = ("_memory", "_record", "address")

    def __init__(self, record: Any):
        words: list[int] = []
        later: list[tuple[int, Any, Any]] = []
        known: dict[int, Fields] = {}
        self.kind = _write(record, words, later, known)
        memory = np.array(words, np.int64)
        numbers = memory.view(np.float64)
        for place, value, owner in later:
            if isinstance(value, FunctionField):
                memory[place] = value.address(owner, known)
            else:
                numbers[place] = value
        self._memory, self._record = memory, record
        self.address = memory.__array_interface__["data"][0]

    def __index__(self) -> int:
        """Return the address, which compiled code takes as well, without looking it up."""
        return self.address
