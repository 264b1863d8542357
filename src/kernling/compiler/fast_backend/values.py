"""Values that compiled code computes with, as LLVM sees them: numbers, views of arrays, records, tuples.

They are what ``expressions.py`` makes of expressions.  Types are Numba's, and so are the rules of arithmetic: which type the
sum of an int64 and a float32 has is asked once for each pair.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

from llvmlite import ir
from numba.core import types as numba_types
from numba.core.registry import cpu_target

types: Any = numba_types  # declared as more or less than they are
WORD, BIT, BYTE, ADDRESS = ir.IntType(64), ir.IntType(1), ir.IntType(8), ir.IntType(8).as_pointer()
FLOATS = {types.float32: ir.FloatType(), types.float64: ir.DoubleType()}
NOTHING = types.none


class Unsupported(Exception):
    """Raised for what is not part of the language of ``ast_to_llvm.py``; Numba compiles the function instead."""


class Number(NamedTuple):
    kind: Any
    value: Any  # in LLVM
    non_negative: bool = False  # known not to be negative
    constant: int | None = None  # its value, if it is an integer literal


class View(NamedTuple):
    """An array; without strides, its rows are contiguous."""

    kind: Any
    data: Any
    shape: list
    strides: list | None  # in bytes


class Record(NamedTuple):
    """A record in memory, see records.py."""

    kind: Any
    pointer: Any


class Group(NamedTuple):
    """A tuple or a NamedTuple."""

    kind: Any
    items: list


class Static(NamedTuple):
    """What is known while compiling: a module, a function, a type."""

    value: Any


class Bounds(NamedTuple):
    """A slice among the indices of an array."""

    low: Number | None
    high: Number | None


def is_number(kind: Any) -> bool:
    return kind in FLOATS or isinstance(kind, (types.Integer, types.Boolean))


def number_type(kind: Any) -> Any:
    """Return LLVM's type of a number in a register."""
    if kind in FLOATS:
        return FLOATS[kind]
    if isinstance(kind, types.Boolean):
        return BIT
    if isinstance(kind, types.Integer):
        return ir.IntType(kind.bitwidth)
    raise Unsupported(f"numbers of type {kind}")


def stored_type(kind: Any) -> Any:
    """Return LLVM's type of a number in memory."""
    return BYTE if isinstance(kind, types.Boolean) else number_type(kind)


def item_size(view: Any) -> int:
    """Return the size of an element in bytes."""
    return stored_type(view.kind.dtype).width // 8 if view.kind.dtype not in FLOATS else view.kind.dtype.bitwidth // 8


def word(number: int) -> Any:
    return ir.Constant(WORD, number)


def whole(value: Any, *, non_negative: bool = False, constant: int | None = None) -> Number:
    return Number(types.int64, value, non_negative, constant)


def constant(value: Any) -> Number:
    """Return a Python or NumPy number."""
    from numba import typeof

    if isinstance(value, bool):
        return Number(types.boolean, ir.Constant(BIT, int(value)))
    if isinstance(value, int):
        return whole(word(value), non_negative=value >= 0, constant=value)
    kind = types.float64 if isinstance(value, float) else typeof(value)
    if kind in FLOATS:
        return Number(kind, ir.Constant(FLOATS[kind], float(value)))
    if isinstance(kind, types.Integer):
        return Number(kind, ir.Constant(number_type(kind), int(value)), int(value) >= 0)
    raise Unsupported(f"constant {value!r}")


@cache
def rule(operation: Any, kinds: tuple) -> tuple:
    """Return the types to which operands are converted, and that of the result, as in Numba."""
    signature = cpu_target.typing_context.resolve_function_type(operation, kinds, {})
    if signature is None or not all(map(is_number, (*signature.args, signature.return_type))):
        raise Unsupported(f"{operation.__name__} of {kinds}")
    return signature.args, signature.return_type


@cache
def unified(a: Any, b: Any) -> Any:
    """Return the type that holds values of both."""
    if a == b:
        return a
    if isinstance(a, types.Array) and isinstance(b, types.Array) and (a.dtype, a.ndim) == (b.dtype, b.ndim):
        return types.Array(a.dtype, a.ndim, a.layout if a.layout == b.layout else "A", readonly=not (a.mutable and b.mutable))
    found = cpu_target.typing_context.unify_types(a, b) if is_number(a) and is_number(b) else None
    if found is None or not is_number(found):
        raise Unsupported(f"a value that is {a} or {b}")
    return found


def parts_of(kind: Any) -> list:
    """Return LLVM's types of the parts of a value."""
    if is_number(kind):
        return [number_type(kind)]
    if isinstance(kind, types.Array):
        lengths = kind.ndim * (1 if kind.layout == "C" else 2)
        return [stored_type(kind.dtype).as_pointer(), *[WORD] * lengths]
    if hasattr(kind, "places"):
        return [ADDRESS]
    if isinstance(kind, types.BaseTuple):
        return [part for one in kind for part in parts_of(one)]
    raise Unsupported(f"a value of type {kind}")


def split(value: Any) -> list:
    """Return the parts of a value."""
    if isinstance(value, Number):
        return [value.value]
    if isinstance(value, View):
        return [value.data, *value.shape, *(value.strides or ())]
    if isinstance(value, Record):
        return [value.pointer]
    return [part for one in value.items for part in split(one)]


def joined(kind: Any, parts: Any, non_negative: bool = False) -> Any:
    """Return the value of a type made of parts; the inverse of ``split``."""
    if is_number(kind):
        return Number(kind, next(parts), non_negative)
    if isinstance(kind, types.Array):
        data = next(parts)
        shape = [next(parts) for _ in range(kind.ndim)]
        return View(kind, data, shape, None if kind.layout == "C" else [next(parts) for _ in range(kind.ndim)])
    if hasattr(kind, "places"):
        return Record(kind, next(parts))
    return Group(kind, [joined(one, parts) for one in kind])
