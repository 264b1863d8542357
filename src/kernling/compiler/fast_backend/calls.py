"""Calls in compiled code: of other compiled functions, of functions in records, and of builtin ones."""

from __future__ import annotations

import ast
import math
import operator
from typing import Any

import numpy as np
from llvmlite import ir

from ..intrinsics import add_product, number_of, only_numba, shaped, variants
from ..loader import cannot_fail, link_runtime
from .arithmetic import Arithmetic
from .values import (
    ADDRESS,
    BYTE,
    FLOATS,
    NOTHING,
    WORD,
    Group,
    Number,
    Record,
    Static,
    Unsupported,
    View,
    constant,
    is_number,
    item_size,
    joined,
    number_type,
    parts_of,
    split,
    stored_type,
    types,
    word,
)

INTRINSICS = {
    np.sqrt: "llvm.sqrt",
    math.sqrt: "llvm.sqrt",
    np.exp: "llvm.exp",
    math.exp: "llvm.exp",
    np.log: "llvm.log",
    math.log: "llvm.log",
    np.ceil: "llvm.ceil",
    np.floor: "llvm.floor",
}
TYPES = {
    np.float64: types.float64,
    np.float32: types.float32,
    np.int64: types.int64,
    np.int32: types.int32,
    float: types.float64,
}
LINE = 64  # bytes of a line of the cache, where arrays begin: a vector that crosses two lines is read in twice the time


class Calls(Arithmetic):
    """Emits calls; ``ast_to_llvm.py`` translates their arguments."""

    context: Any  # Numba's target
    should_inline: Any  # whether a function becomes part of those that call it
    scope: Any
    libraries: list
    allocated: list  # variables that hold the addresses of arrays created here
    depth: int  # of loops
    may_fail: bool  # whether the function may report an error
    slots_of_entry: Any  # where variables are created
    _value: Any  # translates an expression
    _run: Any  # translates a function
    _slot: Any  # creates a variable

    def _of_Call(self, node: ast.Call) -> Any:
        if node.keywords or any(isinstance(one, ast.Starred) for one in node.args):
            raise Unsupported("other than positional arguments")
        if isinstance(node.func, ast.Attribute) and node.func.attr == "view":
            return self._reinterpreted(self._value(node.func.value), self._value(node.args[0]))
        callee = self._value(node.func)
        arguments = [self._value(one) for one in node.args]
        if not isinstance(callee, Static):
            raise Unsupported("a call of what is not a function")
        called: Any = callee.value
        if isinstance(called, tuple):
            pointer_kind, pointer = called
            self._call_pointer(pointer_kind, pointer, arguments)
            return None
        called = self._by_type(called, arguments)
        if hasattr(called, "py_func"):
            return self._call_compiled(node, called, arguments)
        return self._builtin(called, arguments)

    @staticmethod
    def _by_type(called: Any, arguments: list) -> Any:
        try:
            return variants[called][str(arguments[0].kind)] if called in variants and called not in only_numba else called
        except TypeError:  # not hashable
            return called

    def _call_compiled(self, node: ast.Call, called: Any, arguments: list) -> Any:
        if any(isinstance(argument, Static) for argument in arguments):
            raise Unsupported("a function or type as an argument")
        kinds = tuple(argument.kind for argument in arguments)
        if self.should_inline(called, kinds):
            path = (*self.scope.path, (called.py_func.__name__, node.lineno, node.col_offset))
            return self._run(called.py_func, path, tuple(sorted(called.freedoms)), arguments)
        result = called.overload(kinds)
        self.libraries.append(result.library)
        kind = result.signature.return_type
        function = self.context.declare_function(self.builder.module, result.fndesc)
        slot = self._slot(function.args[0].type.pointee)
        failure = self._slot(function.args[1].type.pointee)
        leaves = [leaf for argument in arguments for leaf in self._leaves(argument)]
        code = self.builder.call(function, [slot, failure, *leaves])
        if called.counts_references and result.fndesc.mangled_name not in cannot_fail:
            self._pass_on(code, failure)
        if kind == NOTHING:
            return None
        return self._fetched(kind, slot)

    def _members(self, kind: Any, pointer: Any) -> list:
        """Return the addresses of the numbers in a tuple in memory."""
        if not isinstance(kind, types.BaseTuple) or not all(one in FLOATS or isinstance(one, types.Integer) for one in kind):
            raise Unsupported(f"a function that returns {kind}")
        places = (ir.Constant(ir.IntType(32), i) for i in range(len(kind)))
        return [self.builder.gep(pointer, [ir.Constant(ir.IntType(32), 0), place]) for place in places]

    def _save(self, value: Any, pointer: Any) -> None:
        """Write what a function returns."""
        if isinstance(value, Number):
            self.store(value, value.kind, pointer)
            return
        for item, place in zip(
            value.items if isinstance(value, Group) else (), self._members(value.kind, pointer), strict=True
        ):
            self.store(item, item.kind, place)

    def _fetched(self, kind: Any, pointer: Any) -> Any:
        """Read what a function has returned."""
        if is_number(kind):
            return self.load(kind, pointer)
        places = self._members(kind, pointer)
        return Group(kind, [self.load(one, place) for one, place in zip(kind, places, strict=True)])

    def _pass_on(self, code: Any, failure: Any) -> None:
        """Return if a function of Numba's has failed, so that the caller raises the error."""
        self.may_fail = True
        function = self.builder.function
        failed = self.builder.append_basic_block("failed")
        after = self.builder.append_basic_block("called")
        self.builder.cbranch(self.builder.icmp_signed("==", code, ir.Constant(code.type, 0)), after, failed)
        self.builder.position_at_end(failed)
        self.builder.store(self.builder.load(failure), function.args[1])
        self._free()
        self.builder.ret(code)
        self.builder.position_at_end(after)

    def _leaves(self, value: Any) -> list:
        """Return a value as arguments of a call, as Numba passes them."""
        if isinstance(value, View):
            nothing = ir.Constant(ADDRESS, None)
            itemsize = word(item_size(value))
            return [nothing, nothing, self.size(value).value, itemsize, value.data, *value.shape, *self.strides(value)]
        if isinstance(value, Group):
            return [leaf for one in value.items for leaf in self._leaves(one)]
        if isinstance(value, Number) and isinstance(value.kind, types.Boolean):
            return [self.builder.zext(value.value, BYTE)]
        return split(value)

    def _from_leaves(self, kind: Any, leaves: Any) -> Any:
        if isinstance(kind, types.Array):
            parts = [next(leaves) for _ in range(5 + 2 * kind.ndim)]
            strides = None if kind.layout == "C" else parts[5 + kind.ndim :]
            return View(kind, parts[4], parts[5 : 5 + kind.ndim], strides)
        if isinstance(kind, types.BaseTuple):
            return Group(kind, [self._from_leaves(one, leaves) for one in kind])
        if isinstance(kind, types.Boolean):
            return Number(kind, self.builder.trunc(next(leaves), ir.IntType(1)))
        parts_of(kind)
        return joined(kind, leaves)

    def _call_pointer(self, kind: Any, pointer: Any, arguments: list) -> None:
        values = []
        for argument, wanted in zip(arguments, kind.sig.args, strict=True):
            if isinstance(argument, Record):
                values.append(argument.pointer)
                continue
            argument = self.cast(argument, wanted)
            values.append(self._aggregate(argument) if isinstance(argument, View) else argument.value)
        self.builder.call(pointer, values)

    def _aggregate(self, view: View) -> Any:
        """Return an array as Numba represents it."""
        leaves = self._leaves(view)
        total = ir.Constant(self.context.get_value_type(view.kind), ir.Undefined)
        for i, leaf in enumerate(leaves[:5]):
            total = self.builder.insert_value(total, leaf, i)
        for i, leaf in enumerate(leaves[5:]):
            total = self.builder.insert_value(total, leaf, [5 + i // view.kind.ndim, i % view.kind.ndim])
        return total

    def _reinterpreted(self, value: Any, target: Any) -> Number:
        kind = TYPES.get(target.value) if isinstance(target, Static) else None
        if not isinstance(value, Number) or kind is None or number_type(kind) == number_type(value.kind):
            raise Unsupported("view")
        return Number(kind, self.builder.bitcast(value.value, number_type(kind)))

    def _builtin(self, called: Any, arguments: list) -> Any:
        if called is shaped:
            view, shape = arguments
            kind = types.Array(view.kind.dtype, len(shape.items), "C")
            return View(kind, view.data, [self.cast(one, types.int64).value for one in shape.items], None)
        if called is number_of:
            function, argument = (one.value for one in arguments)
            kind = ir.FunctionType(ir.DoubleType(), [WORD])
            return Number(types.float64, self.builder.call(self.builder.inttoptr(function, kind.as_pointer()), [argument]))
        if called in (np.empty, np.zeros):
            return self._new_array(called, *arguments)
        if called is np.dot and len(arguments) == 3:
            return self._product(*arguments)
        if called is add_product:
            return self._add_product(*arguments)
        if not arguments or not all(isinstance(argument, Number) for argument in arguments):
            raise Unsupported(f"{called} of these arguments")
        if called in (max, min):
            return self.extreme(operator.gt if called is max else operator.lt, arguments)
        if len(arguments) > 1:
            raise Unsupported(str(called))
        return self._of_one(called, arguments[0])

    def _of_one(self, called: Any, number: Number) -> Number:
        if called is abs:
            return self.absolute(number)
        if called is int:
            return number if isinstance(number.kind, types.Integer) else self.cast(number, types.int64)
        kind = called if isinstance(called, types.Type) else TYPES.get(called)
        if kind is not None:
            return self.cast(number, kind)
        if called in INTRINSICS:
            return self.intrinsic(INTRINSICS[called], number if number.kind in FLOATS else self.cast(number, types.float64))
        if called is np.log1p and number.kind == types.float64:
            return Number(number.kind, self._external("log1p", FLOATS[number.kind], [number.value]))
        if called is np.sign and number.kind in FLOATS:
            return self._sign(number)
        raise Unsupported(str(called))

    def _external(self, name: str, result: Any, values: list) -> Any:
        """Call a function of C's library, or one of Numba's."""
        module = self.builder.module
        kind = ir.FunctionType(result, [value.type for value in values])
        return self.builder.call(module.globals.get(name) or ir.Function(module, kind, name), values)

    def _new_array(self, called: Any, shape: Any, dtype: Any = Static(types.float64)) -> View:  # noqa: B008 - immutable
        """Create an array that lasts until the function returns."""
        if self.depth:
            raise Unsupported("an array that is created in a loop")
        kind = dtype.value if isinstance(dtype.value, types.Type) else TYPES.get(dtype.value)
        lengths = [self.cast(one, types.int64).value for one in (shape.items if isinstance(shape, Group) else [shape])]
        data = stored_type(kind).as_pointer()
        view = View(types.Array(kind, len(lengths), "C"), ir.Constant(data, None), lengths, None)
        size = self.builder.mul(self.size(view).value, word(item_size(view)))
        size = self.builder.add(size, word(LINE))
        if called is np.zeros:
            memory = self._external("calloc", ADDRESS, [size, word(1)])
        else:
            memory = self._external("malloc", ADDRESS, [size])
        slot = self._slot(ADDRESS)
        self.slots_of_entry.store(ir.Constant(ADDRESS, None), slot)
        self.builder.store(memory, slot)
        self.allocated.append(slot)
        skipped = self.builder.and_(self.builder.neg(self.builder.ptrtoint(memory, WORD)), word(LINE - 1))
        return view._replace(data=self.builder.bitcast(self.builder.gep(memory, [skipped]), data))

    def _free(self) -> None:
        for slot in self.allocated:
            self._external("free", ir.VoidType(), [self.builder.load(slot)])

    def _product(self, a: Any, b: Any, out: Any) -> None:
        """Compute a matrix product, all of one type, by BLAS."""
        views = (a, b, out)
        if not all(
            isinstance(view, View) and view.kind.ndim == 2 and view.kind.dtype == a.kind.dtype in FLOATS for view in views
        ):
            raise Unsupported("a product of other than two matrices")
        if not all(view.kind.layout in "CF" for view in (a, b)) or out.kind.layout != "C" or not out.kind.mutable:
            raise Unsupported("a product of matrices that are not contiguous, or into one that is read-only")
        number = FLOATS[a.kind.dtype]
        turned = ["n" if view.kind.layout == "C" else "t" for view in (b, a)]  # BLAS counts by columns
        widths = [view.shape[1 if view.kind.layout == "C" else 0] for view in (b, a)]
        factors = ir.Constant(number, 1.0), ir.Constant(number, 0.0)
        self._call_gemm(a, b, out, turned, (b.shape[1], *a.shape), (*widths, out.shape[1]), factors)

    def _add_product(self, a: Any, b: Any, factor: Any, out: Any) -> None:
        """Add a factor times a'b by BLAS."""
        views = (b, a, out)
        if not all(isinstance(view, View) and view.kind.ndim == 2 and view.kind.dtype == types.float64 for view in views):
            raise Unsupported("a product of other than two matrices of doubles")
        if not out.kind.mutable:
            raise Unsupported("a product that is added to a read-only matrix")
        widths = [self.builder.sdiv(self.strides(view)[0], word(item_size(view))) for view in views]
        factors = self.cast(factor, types.float64).value, ir.Constant(ir.DoubleType(), 1.0)
        self._call_gemm(a, b, out, ["n", "t"], (*out.shape[::-1], a.shape[0]), widths, factors)

    def _call_gemm(self, a: Any, b: Any, out: Any, turned: list, lengths: Any, widths: Any, factors: Any) -> None:
        link_runtime()
        letters = [ir.Constant(BYTE, ord(letter)) for letter in turned]
        sizes = [self.builder.trunc(length, ir.IntType(32)) for length in (*lengths, *widths)]
        values = [*letters, *sizes[:3], factors[0], b.data, sizes[3], a.data, sizes[4], factors[1], out.data, sizes[5]]
        name = "kernling_dgemm" if a.kind.dtype == types.float64 else "kernling_sgemm"
        self._external(name, ir.VoidType(), [self._in_memory(value) for value in values])

    def _in_memory(self, value: Any) -> Any:
        """Return the address of a number, as Fortran takes it; addresses are what they are."""
        if isinstance(value.type, ir.PointerType):
            return value
        slot = self._slot(value.type)
        self.builder.store(value, slot)
        return slot

    def _sign(self, number: Number) -> Number:
        zero = self.cast(constant(0.0), number.kind)
        above, below = self.compute(operator.gt, number, zero), self.compute(operator.lt, number, zero)
        one, minus = self.cast(constant(1.0), number.kind), self.cast(constant(-1.0), number.kind)
        found = self.builder.select(below.value, minus.value, number.value)  # 0 and NaN are their own signs
        return Number(number.kind, self.builder.select(above.value, one.value, found))
