"""Types of the arguments of compiled functions, without Numba, whose import takes longer than a short program.

A kind is the class of a number, ``(dtype, dimensions, flags)`` of an array, or one of the classes below.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

BY_ROWS, BY_COLUMNS, ALIGNED, WRITEABLE = 0x1, 0x2, 0x100, 0x400  # flags of NumPy's arrays
_FLAGS = BY_ROWS | BY_COLUMNS | ALIGNED | WRITEABLE


class Values(NamedTuple):
    """The kind of a tuple or NamedTuple, passed by value."""

    owner: type
    items: tuple


class Fields(NamedTuple):
    """The kind of a record, passed by address: see records.py."""

    owner: type
    fields: tuple[tuple[str, Any], ...]


class Function(NamedTuple):
    """The kind of a field that contains a function."""

    arguments: tuple  # kinds, or None for records


class HasKind:
    """What has a kind of its own."""

    __slots__ = ("kind",)
    kind: Any


def kind_of(value: Any) -> Any:
    """Return the kind of an argument."""
    if isinstance(value, np.ndarray):
        flags = value.flags.num & _FLAGS
        return value.dtype, value.ndim, flags & ~BY_COLUMNS if flags & BY_ROWS else flags
    if isinstance(value, tuple):
        return Values(type(value), tuple(map(kind_of, value)))
    return value.kind if isinstance(value, HasKind) else type(value)


def accepts(compiled: Any, given: Any) -> bool:
    """Return whether code for one kind of argument accepts another: a writable array instead of a read-only one."""
    if type(compiled) is type(given) is tuple:
        compiled = (*compiled[:2], compiled[2] | (given[2] & WRITEABLE))
    return compiled == given


def text_of(kind: Any) -> str:
    """Return a text that is the same in all processes, and another one for every other kind."""
    if isinstance(kind, type):
        return f"{kind.__module__}.{kind.__qualname__}"
    if isinstance(kind, Values):
        fields = getattr(kind.owner, "_fields", ())
        return f"{text_of(kind.owner)}{fields}({', '.join(map(text_of, kind.items))})"
    if isinstance(kind, Fields):
        inside = ", ".join(f"{name}: {text_of(field)}" for name, field in kind.fields)
        return f"{text_of(kind.owner)}{getattr(kind.owner, 'ASSIGNED', ())}{{{inside}}}"
    if isinstance(kind, Function):
        return f"function{tuple(None if one is None else text_of(one) for one in kind.arguments)}"
    dtype, ndim, flags = kind
    return f"{dtype.str}[{ndim}, {flags}]"
