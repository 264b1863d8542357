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


class FunctionField(HasKind):
    """A field that contains a function: only the one in use is compiled, for arguments of these types.

    A record among the arguments is passed by address; it may be the one that contains the function.
    """

    def __init__(self, function: Any, *arguments: Any):
        self.function, self.arguments = function, arguments
        self.kind = Function(tuple(None if _is_record(a) else kind_of(a) for a in arguments))

    def __call__(self, *arguments: Any) -> Any:
        return self.function(*arguments)

    def address(self) -> int:
        """Return the address of its machine code, compiling it if needed."""
        return self.function.address(tuple(_fields_of(a) if _is_record(a) else kind_of(a) for a in self.arguments))


def _is_record(value: Any) -> bool:
    return not isinstance(value, (np.ndarray, bool, int, float))


def _fields(record: Any) -> list[tuple[str, Any]]:
    names = getattr(record, "_fields", None)
    return list(vars(record).items()) if names is None else list(zip(names, record, strict=True))


def _fields_of(record: Any) -> Fields:
    """Return the kind of a record by address."""
    return Fields(type(record), tuple((name, _field_of(value)) for name, value in _fields(record)))


def _field_of(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.dtype, value.ndim, ALIGNED | BY_ROWS | (WRITEABLE if value.flags.writeable else 0)
    return kind_of(value) if isinstance(value, (bool, int, float, FunctionField)) else _fields_of(value)


def _words(record: Any, words: list, floats: list) -> None:
    for _, value in _fields(record):
        if isinstance(value, np.ndarray):
            if not value.flags.c_contiguous:
                raise ValueError("compiled code requires contiguous arrays")
            words.append(value.__array_interface__["data"][0])
            words.extend(value.shape)
        elif isinstance(value, float):
            floats.append((len(words), value))
            words.append(0)
        elif isinstance(value, int):
            words.append(value)
        elif isinstance(value, FunctionField):
            words.append(value.address())
        else:
            _words(value, words, floats)


class Handle(HasKind):
    """The address of a record, which keeps its memory alive."""

    __slots__ = ("_memory", "_record", "address")

    def __init__(self, record: Any):
        words: list[int] = []
        floats: list[tuple[int, float]] = []
        _words(record, words, floats)
        memory = np.array(words, np.int64)
        numbers = memory.view(np.float64)
        for place, value in floats:
            numbers[place] = value
        self._memory, self._record = memory, record
        self.address = memory.__array_interface__["data"][0]
        self.kind = _fields_of(record)

    def __index__(self) -> int:
        """Return the address, which compiled code takes as well, without looking it up."""
        return self.address
