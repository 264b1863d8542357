"""What Numba has to know to compile our functions: records by address, and functions that have their own code.

It is imported when something has to be compiled.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.core.typeconv import Conversion
from numba.core.typing.templates import AttributeTemplate
from numba.extending import (
    NativeValue,
    infer_getattr,
    lower_builtin,
    lower_cast,
    lower_getattr_generic,
    lower_setattr_generic,
    models,
    overload,
    register_model,
    type_callable,
    unbox,
)
from numba.np.numpy_support import from_dtype

from .intrinsics import add_product, number_of, shaped, variants
from .kinds import ALIGNED, BY_COLUMNS, BY_ROWS, WRITEABLE, Fields, Function, Values

WORD = ir.IntType(64)
NUMBERS = {type(None): types.none, bool: types.boolean, int: types.int64, float: types.float64}


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


def numba_type(kind: Any) -> Any:
    """Return Numba's type of arguments of a kind."""
    if isinstance(kind, type):
        return NUMBERS.get(kind) or from_dtype(np.dtype(kind))
    if isinstance(kind, Fields):
        return _struct(kind)
    if isinstance(kind, Function):
        return _function(kind)
    if isinstance(kind, Values):
        items = [numba_type(one) for one in kind.items]
        return types.BaseTuple.from_types(items, kind.owner if kind.owner is not tuple else None)
    dtype, ndim, flags = kind
    layout: Any = "C" if flags & BY_ROWS else "F" if flags & BY_COLUMNS else "A"
    return types.Array(from_dtype(dtype), ndim, layout, readonly=not flags & WRITEABLE, aligned=bool(flags & ALIGNED))


@cache
def _function(kind: Function) -> Any:
    """Return the type of a function pointer without return value."""
    kinds = [types.voidptr if one is None else numba_type(one) for one in kind.arguments]
    return types.ExternalFunctionPointer(types.void(*kinds), get_pointer=None)  # type: ignore[arg-type]  # never pickled


@cache
def _struct(kind: Fields) -> Struct:
    return Struct(kind.owner, {name: numba_type(field) for name, field in kind.fields})


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


@type_callable(shaped)
def _type_of_shaped(context):
    return lambda values, shape: types.Array(values.dtype, len(shape), "C")


@lower_builtin(shaped, types.Array, types.BaseTuple)
def _shaped(context, builder, signature, arguments):
    values, shape = signature.args
    data = context.make_array(values)(context, builder, arguments[0]).data
    lengths = cgutils.unpack_tuple(builder, arguments[1], len(shape))
    return _make_array(context, builder, signature.return_type, data, lengths)


@type_callable(number_of)
def _type_of_number(context):
    return lambda function, argument: types.float64


@lower_builtin(number_of, types.int64, types.int64)
def _number_of(context, builder, signature, arguments):
    kind = ir.FunctionType(ir.DoubleType(), [WORD])  # an address is passed like a number
    return builder.call(builder.inttoptr(arguments[0], kind.as_pointer()), [arguments[1]])


@overload(add_product)
def _add_product(a, b, factor, out):
    def add(a, b, factor, out):
        for k in range(a.shape[0]):
            for i in range(a.shape[1]):
                for j in range(b.shape[1]):
                    out[i, j] += factor * a[k, i] * b[k, j]

    return add


@cache
def _declare(function: Any) -> None:
    """Tell Numba which functions stand for a plain one."""
    by_type = variants[function]

    @overload(function)
    def _chosen(x):
        chosen = by_type["float32" if x == types.float32 else "float64"]
        return lambda x: chosen(x)


def declare_variants() -> None:
    """Tell Numba of the functions that ``by_type`` has been given so far."""
    for function in variants:
        _declare(function)


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
