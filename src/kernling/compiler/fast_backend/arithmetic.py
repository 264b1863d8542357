"""Arithmetic, and the elements and parts of arrays, as instructions of LLVM."""

from __future__ import annotations

import ast
import operator
from typing import Any

from llvmlite import ir

from .values import (
    ADDRESS,
    BYTE,
    FLOATS,
    Bounds,
    Number,
    Static,
    Unsupported,
    View,
    constant,
    item_size,
    number_type,
    rule,
    types,
    unified,
    whole,
    word,
)

COMPARISONS = {
    operator.lt: "<",
    operator.le: "<=",
    operator.gt: ">",
    operator.ge: ">=",
    operator.eq: "==",
    operator.ne: "!=",
}
FLOAT_OPERATIONS = {operator.add: "fadd", operator.sub: "fsub", operator.mul: "fmul", operator.truediv: "fdiv"}
INTEGER_OPERATIONS = {
    operator.add: "add",
    operator.sub: "sub",
    operator.mul: "mul",
    operator.and_: "and_",
    operator.or_: "or_",
    operator.xor: "xor",
}
SHIFTS = (operator.lshift, operator.rshift)
OPERATIONS = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}


class Arithmetic:
    """Emits instructions for numbers and arrays; ``flags`` are the freedoms of floating-point operations."""

    builder: Any
    flags: tuple

    # numbers

    def cast(self, value: Any, kind: Any) -> Any:
        """Convert to another type."""
        if isinstance(value, Static):
            raise Unsupported("a function or type as a value")
        if value.kind == kind:
            return value
        if isinstance(value, View):
            if kind != unified(value.kind, kind):
                raise Unsupported(f"{value.kind} as {kind}")
            return View(kind, value.data, value.shape, self.strides(value) if kind.layout == "A" else value.strides)
        if not isinstance(value, Number):
            raise Unsupported(f"{value.kind} as {kind}")
        return Number(kind, self._converted(value, kind), value.non_negative)

    def _converted(self, number: Number, kind: Any) -> Any:
        build, value, source, target = self.builder, number.value, number.kind, number_type(kind)
        if isinstance(kind, types.Boolean):
            return self.truth(number)
        if source in FLOATS:
            if kind in FLOATS:
                return build.fptrunc(value, target) if kind == types.float32 else build.fpext(value, target)
            return build.fptosi(value, target) if kind.signed else build.fptoui(value, target)
        signed = getattr(source, "signed", False)
        if kind in FLOATS:
            return build.sitofp(value, target) if signed else build.uitofp(value, target)
        if target.width < value.type.width:
            return build.trunc(value, target)
        if target.width == value.type.width:
            return value
        return build.sext(value, target) if signed else build.zext(value, target)

    def truth(self, value: Any) -> Any:
        """Return a value as one bit."""
        if not isinstance(value, Number):
            raise Unsupported("a truth value of what is not a number")
        if isinstance(value.kind, types.Boolean):
            return value.value
        zero = ir.Constant(value.value.type, 0)
        if value.kind in FLOATS:
            return self.builder.fcmp_unordered("!=", value.value, zero, flags=self.flags)
        return self.builder.icmp_signed("!=", value.value, zero)

    def compute(self, operation: Any, a: Any, b: Any) -> Number:
        """Return the result of an operation on two numbers."""
        if not isinstance(a, Number) or not isinstance(b, Number):
            raise Unsupported("arithmetic of what is not a number")
        if operation is operator.pow:
            return self._power(a, b)
        kinds, result = rule(operation, (a.kind, b.kind))
        x, y = self.cast(a, kinds[0]), self.cast(b, kinds[1])
        if operation in COMPARISONS:
            return Number(types.boolean, self._compared(COMPARISONS[operation], x, y))
        if result in FLOATS:
            x, y = self.cast(x, result), self.cast(y, result)
            if operation is operator.mod:
                return self._remainder(x, y)
            if operation not in FLOAT_OPERATIONS:
                raise Unsupported(operation.__name__)
            return Number(result, getattr(self.builder, FLOAT_OPERATIONS[operation])(x.value, y.value, flags=self.flags))
        non_negative = (
            a.non_negative and b.non_negative and operation in (operator.add, operator.mul, operator.floordiv, operator.mod)
        )
        return Number(result, self._whole(operation, self.cast(x, result), self.cast(y, result)), non_negative)

    def _compared(self, sign: str, x: Number, y: Number) -> Any:
        if x.kind in FLOATS:
            compare = self.builder.fcmp_unordered if sign == "!=" else self.builder.fcmp_ordered
            return compare(sign, x.value, y.value, flags=self.flags)
        signed = getattr(x.kind, "signed", False)
        return (self.builder.icmp_signed if signed else self.builder.icmp_unsigned)(sign, x.value, y.value)

    def _whole(self, operation: Any, x: Number, y: Number) -> Any:
        build, a, b = self.builder, x.value, y.value
        if operation in (operator.floordiv, operator.mod):
            return self._divided(operation, x, y)
        if operation in SHIFTS:
            return build.shl(a, b) if operation is operator.lshift else build.ashr(a, b) if x.kind.signed else build.lshr(a, b)
        if operation not in INTEGER_OPERATIONS:
            raise Unsupported(operation.__name__)
        return getattr(build, INTEGER_OPERATIONS[operation])(a, b)

    def _divided(self, operation: Any, x: Number, y: Number) -> Any:
        """Round towards minus infinity; 0 if the divisor is 0."""
        if not getattr(x.kind, "signed", False):
            raise Unsupported("division of unsigned integers")
        build, zero = self.builder, ir.Constant(x.value.type, 0)
        nothing = build.icmp_signed("==", y.value, zero)
        divisor = build.select(nothing, ir.Constant(x.value.type, 1), y.value)
        quotient, rest = build.sdiv(x.value, divisor), build.srem(x.value, divisor)
        apart = build.icmp_signed("<", build.xor(rest, divisor), zero)
        below = build.and_(apart, build.icmp_signed("!=", rest, zero))
        if operation is operator.mod:
            found = build.select(below, build.add(rest, divisor), rest)
        else:
            found = build.select(below, build.sub(quotient, ir.Constant(x.value.type, 1)), quotient)
        return build.select(nothing, zero, found)

    def _remainder(self, x: Number, y: Number) -> Number:
        """Return x modulo y, with the sign of y."""
        zero = self.cast(constant(0.0), x.kind)
        rest = Number(x.kind, self.builder.frem(x.value, y.value, flags=self.flags))
        apart = self.builder.xor(self.compute(operator.lt, rest, zero).value, self.compute(operator.lt, y, zero).value)
        wrong = self.builder.and_(apart, self.compute(operator.ne, rest, zero).value)
        return Number(x.kind, self.builder.select(wrong, self.compute(operator.add, rest, y).value, rest.value))

    def _power(self, a: Number, b: Number) -> Number:
        if b.constant is not None and 0 <= b.constant <= 64:
            left, result = b.constant, self.cast(constant(1), a.kind)
            while left:
                result = self.compute(operator.mul, result, a) if left & 1 else result
                left >>= 1
                a = self.compute(operator.mul, a, a) if left else a
            return result
        if b.kind not in FLOATS:
            raise Unsupported("powers with integer exponents that are not constant")
        result = rule(operator.pow, (a.kind, b.kind))[1]
        return self.intrinsic("llvm.pow", self.cast(a, result), self.cast(b, result))

    def negative(self, value: Number) -> Number:
        if value.kind in FLOATS:
            return Number(value.kind, self.builder.fneg(value.value, flags=self.flags))
        if value.constant is not None:
            return constant(-value.constant)
        value = self.cast(value, types.int64)
        return whole(self.builder.neg(value.value))

    def intrinsic(self, name: str, *numbers: Number) -> Number:
        kind = numbers[0].kind
        function = self.builder.module.declare_intrinsic(name, [FLOATS[kind]], self._type_of(kind, len(numbers)))
        return Number(kind, self.builder.call(function, [n.value for n in numbers], fastmath=self.flags))

    @staticmethod
    def _type_of(kind: Any, arguments: int) -> Any:
        return ir.FunctionType(FLOATS[kind], [FLOATS[kind]] * arguments)

    def absolute(self, value: Number) -> Number:
        if value.kind in FLOATS:
            return self.intrinsic("llvm.fabs", value)
        below = self.builder.icmp_signed("<", value.value, ir.Constant(value.value.type, 0))
        return Number(value.kind, self.builder.select(below, self.builder.neg(value.value), value.value), non_negative=True)

    def extreme(self, operation: Any, numbers: list) -> Number:
        """Return the largest or smallest of some numbers; of NaN and a number, the first."""
        best = numbers[0]
        for number in numbers[1:]:
            kind = unified(best.kind, number.kind)
            best, number = self.cast(best, kind), self.cast(number, kind)
            better = self.compute(operation, number, best).value
            non_negative = (best.non_negative and number.non_negative) or (
                operation is operator.gt and (best.non_negative or number.non_negative)
            )
            best = Number(kind, self.builder.select(better, number.value, best.value), non_negative)
        return best

    # arrays

    def strides(self, view: View) -> list:
        if view.strides is not None:
            return view.strides
        strides = [word(item_size(view))]
        for length in reversed(view.shape[1:]):
            strides.insert(0, self.builder.mul(strides[0], length, flags=("nsw",)))
        return strides

    def transposed(self, view: View) -> View:
        layout = {"C": "F", "F": "C"}.get(view.kind.layout, "A")
        kind = types.Array(view.kind.dtype, view.kind.ndim, layout, readonly=not view.kind.mutable)
        return View(kind, view.data, view.shape[::-1], None if layout == "C" else self.strides(view)[::-1])

    def size(self, view: View) -> Number:
        total = view.shape[0]
        for length in view.shape[1:]:
            total = self.builder.mul(total, length, flags=("nsw",))
        return whole(total, non_negative=True)

    def _place(self, index: Any, length: Any) -> Any:
        """Return an index in LLVM; negative ones count from the end."""
        if not isinstance(index, Number) or index.kind in FLOATS:
            raise Unsupported("an index that is not an integer")
        value = self.cast(index, types.int64).value
        if index.non_negative:
            return value
        if index.constant is not None:
            return self.builder.add(length, value)
        return self.builder.select(self.builder.icmp_signed("<", value, word(0)), self.builder.add(value, length), value)

    def _moved(self, view: View, axis: int, index: Any) -> Any:
        """Return the offset of an index along an axis: in numbers where rows are contiguous, else in bytes."""
        if view.strides is not None:
            return self.builder.mul(index, view.strides[axis])
        for length in view.shape[axis + 1 :]:
            index = self.builder.mul(index, length)
        return index

    def item(self, view: View, indices: list) -> Any:
        """Return an element's address if there is an index for each axis, else a view."""
        if len(indices) > len(view.shape):
            raise Unsupported("more indices than axes")
        offset, shape, kept = None, [], []
        for axis, index in enumerate(indices):
            if isinstance(index, Bounds):
                first, length = self._stretch(index, view.shape[axis])
                shape.append(length)
                kept.append(axis)
            else:
                first = self._place(index, view.shape[axis])
            if first is not None:
                step = self._moved(view, axis, first)
                offset = step if offset is None else self.builder.add(offset, step)
        data = view.data if offset is None else self._advanced(view, offset)
        kept += range(len(indices), len(view.shape))
        if not kept:
            return data
        shape += view.shape[len(indices) :]
        contiguous = view.strides is None and not any(isinstance(index, Bounds) for index in indices[:-1])
        layout = "C" if contiguous else "A"
        kind = types.Array(view.kind.dtype, len(kept), layout, readonly=not view.kind.mutable)
        all_strides = None if contiguous else self.strides(view)
        return View(kind, data, shape, None if all_strides is None else [all_strides[axis] for axis in kept])

    def _advanced(self, view: View, offset: Any) -> Any:
        if view.strides is None:
            return self.builder.gep(view.data, [offset])
        moved = self.builder.gep(self.builder.bitcast(view.data, ADDRESS), [offset])
        return self.builder.bitcast(moved, view.data.type)

    def _stretch(self, bounds: Bounds, length: Any) -> tuple:
        """Return the start (None: 0) and the length of a slice, within the axis."""
        low, high = (None if bound is None else self._clipped(bound, length) for bound in bounds)
        if low is None:
            return None, (length if high is None else high)
        rest = self.builder.sub(length if high is None else high, low)
        return low, self.builder.select(self.builder.icmp_signed("<", rest, word(0)), word(0), rest)

    def _clipped(self, bound: Any, length: Any) -> Any:
        value = self._place(bound, length)
        if not bound.non_negative:
            value = self.builder.select(self.builder.icmp_signed("<", value, word(0)), word(0), value)
        return self.builder.select(self.builder.icmp_signed(">", value, length), length, value)

    def load(self, kind: Any, address: Any) -> Number:
        value = self.builder.load(address)
        if isinstance(kind, types.Boolean):
            value = self.builder.icmp_unsigned("!=", value, ir.Constant(BYTE, 0))
        return Number(kind, value)

    def store(self, number: Any, kind: Any, address: Any) -> None:
        value = self.cast(number, kind).value
        self.builder.store(self.builder.zext(value, BYTE) if isinstance(kind, types.Boolean) else value, address)
