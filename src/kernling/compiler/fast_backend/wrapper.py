"""The function that Python calls instead of a compiled one: it reads the arguments, and returns the result as an object.

Numba's own needs Numba's runtime, and so its import.  This one reads numbers by Python's C interface, and arrays from the
object, whose beginning is the same in all versions of NumPy.  The kinds of the arguments have been looked up by the caller.
"""

from __future__ import annotations

import ctypes
import sys
from functools import cache
from typing import Any

import numpy as np
from llvmlite import ir

from ..loader import link_runtime
from .values import ADDRESS, BYTE, FLOATS, NOTHING, WORD, is_number, stored_type, types, word

HEAD = object.__basicsize__  # of an object in memory; the last part is the address of its type
DATA, NDIM, SHAPE, STRIDES = HEAD, HEAD + 8, HEAD + 16, HEAD + 24  # places in an array
INT = ir.IntType(32)


@cache
def can_read_arrays() -> bool:
    """Return whether arrays are in memory as assumed."""
    array = np.empty((5, 3), np.float32)[::2]
    words = [ctypes.c_int64.from_address(id(array) + place).value for place in (DATA, SHAPE, STRIDES)]
    shape, strides = ([ctypes.c_int64.from_address(place + 8 * i).value for i in range(2)] for place in words[1:])
    return (
        ctypes.c_int64.from_address(id(array) + HEAD - 8).value == id(np.ndarray)
        and ctypes.c_int.from_address(id(array) + NDIM).value == array.ndim
        and (words[0], tuple(shape), tuple(strides)) == (array.__array_interface__["data"][0], array.shape, array.strides)
    )


def can_wrap(description: Any) -> bool:
    """Return whether a function can be called from Python without Numba."""
    if sys.platform == "win32" or not can_read_arrays():  # where objects outside of the code are referred to differently
        return False
    return all(map(_can_read, description.argtypes)) and _can_write(description.restype)


def _can_read(kind: Any) -> bool:
    if isinstance(kind, types.BaseTuple):
        return all(map(_can_read, kind))
    return hasattr(kind, "places") or isinstance(kind, (types.Array, types.Boolean)) or kind in FLOATS or kind == types.int64


def _can_write(kind: Any) -> bool:
    if isinstance(kind, types.BaseTuple) and not isinstance(kind, types.NamedTuple):
        return all(map(is_number, kind)) and all(map(_can_write, kind))
    return kind == NOTHING or kind in FLOATS or isinstance(kind, types.Boolean) or getattr(kind, "signed", False)


def name_of(description: Any) -> str:
    """Return the symbol of the function that Python calls instead of one."""
    return f"kernling_python.{description.mangled_name}"


class Wrapper:
    """Writes the function that Python calls."""

    def __init__(self, context: Any, description: Any):
        link_runtime()
        self.module = context.create_module("python_wrapper")
        kind = context.call_conv.get_function_type(description.restype, description.argtypes)
        self.callee = ir.Function(self.module, kind, description.llvm_func_name)
        kind = ir.FunctionType(ADDRESS, [ADDRESS, ADDRESS.as_pointer(), WORD])
        function = ir.Function(self.module, kind, name_of(description))
        self.builder = ir.IRBuilder(function.append_basic_block("entry"))
        self.failed = function.append_basic_block("failed")
        self._check_count(function.args[2], len(description.argtypes), description.qualname)
        leaves: list[Any] = []
        for i, one in enumerate(description.argtypes):
            leaves += self._leaves(one, self.builder.load(self.builder.gep(function.args[1], [word(i)])))
        slots = [self.builder.alloca(argument.type.pointee) for argument in self.callee.args[:2]]
        state = self._call("PyEval_SaveThread", ADDRESS)
        self.builder.call(self.callee, [*slots, *leaves], attrs=("noinline",))
        self._call("PyEval_RestoreThread", ir.VoidType(), state)
        self.builder.ret(self._result(description.restype, slots[0]))
        self.builder.position_at_end(self.failed)
        self.builder.ret(ir.Constant(ADDRESS, None))

    # calls and errors

    def _call(self, name: str, result: Any, *arguments: Any) -> Any:
        kind = ir.FunctionType(result, [argument.type for argument in arguments])
        return self.builder.call(self.module.globals.get(name) or ir.Function(self.module, kind, name), arguments)

    def _object(self, name: str) -> Any:
        """Return the address of one of ``loader.OBJECTS``."""
        symbol = f"kernling_{name}"
        return self.module.globals.get(symbol) or ir.GlobalVariable(self.module, BYTE, symbol)

    def _fail_if(self, wrong: Any) -> None:
        """Return without a result, since an error has been set."""
        after = self.builder.append_basic_block("right")
        self.builder.cbranch(wrong, self.failed, after)
        self.builder.position_at_end(after)

    def _raise_if(self, wrong: Any, message: str) -> None:
        refused, after = (self.builder.append_basic_block(name) for name in ("refused", "accepted"))
        self.builder.cbranch(wrong, refused, after)
        self.builder.position_at_end(refused)
        text = ir.Constant(ir.ArrayType(BYTE, len(message.encode()) + 1), bytearray(message.encode() + b"\0"))
        constant = ir.GlobalVariable(self.module, text.type, self.module.get_unique_name("message"))
        constant.initializer, constant.linkage, constant.global_constant = text, "internal", True
        self._call("PyErr_SetString", ir.VoidType(), self._object("TypeError"), self.builder.bitcast(constant, ADDRESS))
        self.builder.branch(self.failed)
        self.builder.position_at_end(after)

    def _check_count(self, count: Any, wanted: int, name: str) -> None:
        self._raise_if(self.builder.icmp_signed("!=", count, word(wanted)), f"{name} takes {wanted} arguments")

    def _fail_if_set(self, suspicious: Any) -> None:
        """Fail if a result that may stand for an error does."""
        doubtful, after = (self.builder.append_basic_block(name) for name in ("doubtful", "read"))
        self.builder.cbranch(suspicious, doubtful, after)
        self.builder.position_at_end(doubtful)
        error = self._call("PyErr_Occurred", ADDRESS)
        self.builder.cbranch(self.builder.icmp_unsigned("==", error, ir.Constant(ADDRESS, None)), after, self.failed)
        self.builder.position_at_end(after)

    # arguments

    def _leaves(self, kind: Any, given: Any) -> list:
        """Return an argument as Numba passes it."""
        if isinstance(kind, types.Array):
            return self._array(kind, given)
        if isinstance(kind, types.BaseTuple):
            return [leaf for i, one in enumerate(kind) for leaf in self._leaves(one, self._member(given, i))]
        if hasattr(kind, "places"):
            return [self.builder.inttoptr(self._whole(given), ADDRESS)]
        if kind in FLOATS:
            number = self._call("PyFloat_AsDouble", ir.DoubleType(), given)
            self._fail_if_set(self.builder.fcmp_ordered("==", number, ir.Constant(ir.DoubleType(), -1.0)))
            return [number if kind == types.float64 else self.builder.fptrunc(number, FLOATS[kind])]
        if isinstance(kind, types.Boolean):
            truth = self._call("PyObject_IsTrue", INT, given)
            self._fail_if(self.builder.icmp_signed("<", truth, ir.Constant(INT, 0)))
            return [self.builder.trunc(truth, BYTE)]
        return [self._whole(given)]

    def _whole(self, given: Any) -> Any:
        number = self._call("PyLong_AsLongLong", WORD, given)
        self._fail_if_set(self.builder.icmp_signed("==", number, word(-1)))
        return number

    def _member(self, given: Any, place: int) -> Any:
        member = self._call("PyTuple_GetItem", ADDRESS, given, word(place))
        self._fail_if(self.builder.icmp_unsigned("==", member, ir.Constant(ADDRESS, None)))
        return member

    def _place(self, given: Any, place: int, kind: Any) -> Any:
        """Return what is in memory at a place of an object."""
        return self.builder.load(self.builder.bitcast(self.builder.gep(given, [word(place)]), kind.as_pointer()))

    def _array(self, kind: Any, given: Any) -> list:
        self._raise_if(self._is_other(kind, given), f"an array of {kind.ndim} dimensions is required")
        lengths, strides = (
            [
                self.builder.load(self.builder.gep(self._place(given, place, WORD.as_pointer()), [word(i)]))
                for i in range(kind.ndim)
            ]
            for place in (SHAPE, STRIDES)
        )
        items = word(1)
        for length in lengths:
            items = self.builder.mul(items, length)
        data = self._place(given, DATA, stored_type(kind.dtype).as_pointer())
        size = kind.dtype.bitwidth // 8 if not isinstance(kind.dtype, types.Boolean) else 1
        nothing = ir.Constant(ADDRESS, None)
        return [nothing, nothing, items, word(size), data, *lengths, *strides]

    def _is_other(self, kind: Any, given: Any) -> Any:
        """Return whether this is not an array with that many dimensions."""
        array = self._object("ndarray")
        owner = self._place(given, HEAD - 8, ADDRESS)
        exact = self.builder.icmp_unsigned("==", owner, array)
        asked, read, after = (self.builder.append_basic_block(name) for name in ("class", "array", "known"))
        self.builder.cbranch(exact, read, asked)
        self.builder.position_at_end(asked)
        derived = self._call("PyType_IsSubtype", INT, owner, array)
        self.builder.cbranch(self.builder.icmp_signed("!=", derived, ir.Constant(INT, 0)), read, after)
        self.builder.position_at_end(read)
        other = self.builder.icmp_signed("!=", self._place(given, NDIM, INT), ir.Constant(INT, kind.ndim))
        self.builder.branch(after)
        self.builder.position_at_end(after)
        found = self.builder.phi(ir.IntType(1))
        found.add_incoming(ir.Constant(ir.IntType(1), 1), asked)
        found.add_incoming(other, read)
        return found

    # the result

    def _result(self, kind: Any, slot: Any) -> Any:
        if kind == NOTHING:
            return self._kept(self._object("None"))
        if is_number(kind):
            return self._as_object(kind, self.builder.load(slot))
        group = self._call("PyTuple_New", ADDRESS, word(len(kind)))
        self._fail_if(self.builder.icmp_unsigned("==", group, ir.Constant(ADDRESS, None)))
        for i, one in enumerate(kind):
            place = self.builder.gep(slot, [ir.Constant(INT, 0), ir.Constant(INT, i)])
            self._call("PyTuple_SetItem", INT, group, word(i), self._as_object(one, self.builder.load(place)))
        return group

    def _kept(self, value: Any) -> Any:
        self._call("Py_IncRef", ir.VoidType(), value)
        return value

    def _as_object(self, kind: Any, value: Any) -> Any:
        if kind in FLOATS:
            number = value if kind == types.float64 else self.builder.fpext(value, ir.DoubleType())
            return self._call("PyFloat_FromDouble", ADDRESS, number)
        if isinstance(kind, types.Boolean):
            is_true = self.builder.icmp_unsigned("!=", value, ir.Constant(value.type, 0))
            return self._kept(self.builder.select(is_true, self._object("True"), self._object("False")))
        return self._call("PyLong_FromLongLong", ADDRESS, value if kind.bitwidth == 64 else self.builder.sext(value, WORD))
