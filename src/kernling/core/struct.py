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

import numba
import numpy as np

from .jit import COMPILED

TESTED = "0.68"  # version of Numba


def by_address(record: Any) -> Any:
    """Copy a record to memory for compiled code; its arrays must be contiguous, and are kept alive with it."""
    return Handle(record) if COMPILED else record


def address(record: Any) -> Any:
    """Return what compiled code takes for the result of ``by_address`` in the least time; it is valid as long as that."""
    return record.address if COMPILED else record


def strided(array: np.ndarray) -> np.ndarray:
    """Return a vector of the same type for ``entry_point``, if arguments may be views with gaps."""
    return np.empty((2, 2), array.dtype)[:, 0]


class Plug:
    """A field that contains a function: only the one in use is compiled, for arguments of these types.

    A record among the arguments is passed by address; it may be the one that contains the function.
    """

    def __init__(self, function: Any, *arguments: Any):
        self.function, self.arguments = function, arguments
        self.convention = tuple("address" if _is_record(a) else typeof(a) for a in arguments) if COMPILED else ()

    def __call__(self, *arguments: Any) -> Any:
        return self.function(*arguments)

    def address(self) -> int:
        """Return the address of its machine code, compiling it if needed."""
        kinds = tuple(_struct(_shape_of(a)) if _is_record(a) else typeof(a) for a in self.arguments)
        return self.function.address(kinds)


def _is_record(value: Any) -> bool:
    return not isinstance(value, (np.ndarray, bool, int, float))


def _fields(record: Any) -> list[tuple[str, Any]]:
    names = getattr(record, "_fields", None)
    return list(vars(record).items()) if names is None else list(zip(names, record, strict=True))


def _shape_of(record: Any) -> tuple:
    """Return a key of all types in a record."""
    found: list[Any] = [type(record)]
    for name, value in _fields(record):
        if isinstance(value, np.ndarray):
            found.append((name, value.dtype.char, value.ndim, value.flags.writeable))
        elif isinstance(value, (bool, int, float)):
            found.append((name, type(value)))
        elif isinstance(value, Plug):
            found.append((name, value.convention))
        else:
            found.append((name, _shape_of(value)))
    return tuple(found)


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
        elif isinstance(value, Plug):
            words.append(value.address())
        else:
            _words(value, words, floats)


class Handle:
    """The address of a record, which keeps its memory alive."""

    __slots__ = ("_memory", "_numba_type_", "_record", "address")

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
        self._numba_type_ = _struct(_shape_of(record))

    def __index__(self) -> int:
        """Return the address, which compiled code takes as well, without looking it up."""
        return self.address


if COMPILED:
    from functools import cache

    from llvmlite import ir
    from numba import typeof
    from numba.core import types

    try:
        from numba.core import cgutils
        from numba.core.typeconv import Conversion
        from numba.core.typing.templates import AttributeTemplate
        from numba.extending import (
            NativeValue,
            infer_getattr,
            intrinsic,
            lower_cast,
            lower_getattr_generic,
            lower_setattr_generic,
            models,
            register_model,
            unbox,
        )
        from numba.np.numpy_support import from_dtype
    except ImportError as error:
        raise ImportError(
            f"Numba {numba.__version__} lacks some of the internals that kernling needs: "
            f"install a version it has been tested with, pip install 'numba=={TESTED}.*'"
        ) from error

    WORD = ir.IntType(64)
    NUMBERS = {bool: types.boolean, int: types.int64, float: types.float64}

    class Struct(types.Type):
        """The type of a record in memory, by the class of the record and the types of its fields."""

        def __init__(self, owner: type, fields: dict[str, Any]):
            self.owner, self.fields = owner, fields
            self.assigned = getattr(owner, "ASSIGNED", ())
            self.places: dict[str, int] = {}
            self.words = 0
            for name, kind in fields.items():
                self.places[name] = self.words
                self.words += kind.words if isinstance(kind, Struct) else 1 + getattr(kind, "ndim", 0)
            inside = ", ".join(f"{name}: {getattr(kind, 'sig', kind)}" for name, kind in fields.items())
            super().__init__(f"Struct({owner.__module__}.{owner.__qualname__}, {self.assigned}, {inside})")

        def can_convert_to(self, typingctx, other):
            return Conversion.safe if other == types.voidptr else None

        @property
        def mangling_args(self):
            return self.owner.__name__, ()

    def _field(kind: Any) -> Any:
        if isinstance(kind, type):
            return NUMBERS[kind]
        return _struct(kind) if isinstance(kind[0], type) else _function(kind)

    @cache
    def _function(convention: tuple) -> Any:
        """Return the type of a function pointer without return value."""
        kinds = [types.voidptr if kind == "address" else kind for kind in convention]
        return types.ExternalFunctionPointer(types.void(*kinds), get_pointer=None)  # type: ignore[arg-type]  # never pickled

    @cache
    def _struct(shape: tuple) -> Struct:
        fields = {}
        for name, *kind in shape[1:]:
            if len(kind) > 1:
                code, ndim, writeable = kind
                fields[name] = types.Array(from_dtype(np.dtype(code)), ndim, "C", readonly=not writeable)
            else:
                fields[name] = _field(kind[0])
        return Struct(shape[0], fields)

    @lower_cast(Struct, types.voidptr)
    def _as_address(context, builder, fromty, toty, value):
        return value

    @register_model(Struct)
    class _Address(models.OpaqueModel):
        pass

    @unbox(Struct)
    def _unbox(kind, obj, c):
        address = c.pyapi.long_as_longlong(obj)
        return NativeValue(c.builder.inttoptr(address, c.context.get_value_type(kind)), is_error=c.pyapi.c_api_error())

    @infer_getattr
    class _Fields(AttributeTemplate):
        key = Struct

        def generic_resolve(self, struct, name):  # type: ignore[override]  # how Numba is extended
            return struct.fields.get(name)

    def _load(builder, word, lasting):
        """The value there; one that lasts need not be loaded again after something else has been written."""
        value = builder.load(word)
        if lasting:
            value.set_metadata("invariant.load", builder.module.add_metadata([]))
        return value

    def _word(builder, pointer, place):
        words = builder.bitcast(pointer, WORD.as_pointer())
        return builder.gep(words, [ir.Constant(WORD, place)], inbounds=True)

    @lower_getattr_generic(Struct)
    def _read(context, builder, struct, pointer, name):
        kind = struct.fields[name]
        value = read_field(context, builder, struct, pointer, name)
        return _make_array(context, builder, kind, *value) if isinstance(kind, types.Array) else value

    def read_field(context, builder, struct, pointer, name):
        """Return a field: of an array, its address and shape; of a record, its address."""
        kind = struct.fields[name]
        word = _word(builder, pointer, struct.places[name])
        lasting = name not in struct.assigned
        if isinstance(kind, Struct):
            return builder.bitcast(word, context.get_value_type(kind))
        if isinstance(kind, types.Array):
            data = builder.inttoptr(_load(builder, word, lasting), context.get_data_type(kind.dtype).as_pointer())
            return data, [_load(builder, _word(builder, word, 1 + i), lasting) for i in range(kind.ndim)]
        if kind is types.boolean:
            return builder.trunc(_load(builder, word, lasting), ir.IntType(1))
        if isinstance(kind, types.ExternalFunctionPointer):
            return builder.inttoptr(_load(builder, word, lasting), context.get_value_type(kind))
        return _load(builder, builder.bitcast(word, context.get_value_type(kind).as_pointer()), lasting)

    def _make_array(context, builder, kind, data, shape):
        from numba.np.arrayobj import populate_array  # only compiling needs it, and it is slow to import

        array = context.make_array(kind)(context, builder)
        itemsize = context.get_abi_sizeof(context.get_data_type(kind.dtype))
        strides = [ir.Constant(WORD, itemsize)]
        for length in reversed(shape[1:]):
            strides.insert(0, builder.mul(strides[0], length, flags=["nsw"]))
        populate_array(array, data=data, shape=shape, strides=strides, itemsize=itemsize, meminfo=None)
        return array._getvalue()

    @intrinsic
    def _shaped(typingctx, values, shape):
        """Return the first numbers of a flat array as an array of this shape, without checks."""
        kind = types.Array(values.dtype, len(shape), "C")

        def generate(context, builder, signature, arguments):
            data = context.make_array(values)(context, builder, arguments[0]).data
            lengths = cgutils.unpack_tuple(builder, arguments[1], len(shape))
            return _make_array(context, builder, kind, data, lengths)

        return kind(values, shape), generate

    shaped: Any = _shaped  # callers pass no typing context

    @intrinsic
    def _number_of(typingctx, function, argument):
        """Call a C function by its address: ``double function(void *argument)``."""

        def generate(context, builder, signature, arguments):
            kind = ir.FunctionType(ir.DoubleType(), [WORD])  # an address is passed like a number
            return builder.call(builder.inttoptr(arguments[0], kind.as_pointer()), [arguments[1]])

        return types.float64(types.int64, types.int64), generate

    number_of: Any = _number_of

    @lower_setattr_generic(Struct)
    def _write(context, builder, signature, arguments, name):
        struct = signature.args[0]
        pointer, value = arguments
        kind = struct.fields[name]
        parts = [value]
        if isinstance(kind, types.Array):
            array = context.make_array(kind)(context, builder, value)
            parts = [array.data, *cgutils.unpack_tuple(builder, array.shape, kind.ndim)]
        write_field(builder, struct, pointer, name, parts)

    def write_field(builder, struct, pointer, name, parts):
        """Assign to a field: a number, or the address and the shape of an array."""
        if name not in struct.assigned:
            raise TypeError(f"{struct.owner.__name__}.{name} is assigned to, but is not among its ASSIGNED")
        word = _word(builder, pointer, struct.places[name])
        if isinstance(struct.fields[name], types.Array):
            for i, part in enumerate((builder.ptrtoint(parts[0], WORD), *parts[1:])):
                builder.store(part, _word(builder, word, i))
        elif struct.fields[name] is types.boolean:
            builder.store(builder.zext(parts[0], WORD), word)
        else:
            builder.store(parts[0], builder.bitcast(word, parts[0].type.as_pointer()))
else:

    def _plain_shaped(values, shape):
        """Return the first numbers of a flat array as an array of this shape."""
        return values[: np.prod(shape, dtype=int)].reshape(shape)

    shaped = _plain_shaped

    def number_of(function, argument):
        """Not called: without compiled code, random numbers are drawn by NumPy."""
        raise NotImplementedError("there are no addresses without compiled code")
