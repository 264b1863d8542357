"""From Python's syntax tree to LLVM: a small compiler for the functions that are executed at every event.

Numba takes about 0.1 s for each function, nearly all of it for what these functions do not contain.  Their language is small:
numbers, arrays, records by address, tuples, loops over ranges and conditions, ``if``, and calls.  It is translated in one pass.
Functions marked ``inline`` are translated where they are called; others are called by their symbol, by the same convention
as Numba's, so functions of both kinds can call each other.  Whatever is not part of the language raises ``Unsupported``,
and Numba compiles the function.

A variable has one type, that which holds all values assigned to it.  If a type turns out to be too narrow, or an index that was
taken for non-negative may be negative, the pass is repeated with what has been learned.
"""

from __future__ import annotations

import ast
import builtins
from typing import Any

import numpy as np
from llvmlite import ir

from .arithmetic import OPERATIONS
from .expressions import Expressions
from .sources import syntax_of
from .values import (
    ADDRESS,
    NOTHING,
    WORD,
    Group,
    Number,
    Static,
    Unsupported,
    constant,
    joined,
    parts_of,
    split,
    types,
    unified,
    whole,
    word,
)


class _Scope:
    """A function that is being translated."""

    def __init__(self, function: Any, assigned_once: frozenset, path: tuple):
        self.globals, self.assigned_once, self.path = function.__globals__, assigned_once, path
        self.fixed: dict[str, Any] = {}  # variables that are assigned once: their values
        self.slots: dict[str, Any] = {}  # others: type and addresses
        self.statics: dict[str, Static] = {}
        self.returns: set[bool] = set()  # whether the ends of the function return a value
        self.loops: list[tuple] = []  # blocks for continue and break
        self.end: Any = None  # block after the function
        self.result: Any = None


class Front(Expressions):
    """Translates one function for arguments of given types."""

    def __init__(self, function: Any, kinds: tuple, flags: set, context: Any, should_inline: Any):
        self.function, self.kinds, self.context, self.should_inline = function, kinds, context, should_inline
        self.freedoms = tuple(sorted(flags))
        self.facts: dict[tuple, Any] = {}
        self.libraries: list[Any] = []
        self.scope: Any = None
        self.flags = ()

    @property
    def result(self) -> Any:
        """The type of what the function returns."""
        return self.facts.get(((), "return"), NOTHING)

    def emit(self, target: ir.Function) -> bool:
        """Write the body of a function; return False if types were wrong, and it must be repeated."""
        self.stale, self.depth, self.allocated, self.may_fail = False, 0, [], False
        self.entry = target.append_basic_block("entry")
        self.builder = ir.IRBuilder(target.append_basic_block("begin"))
        self.slots_of_entry = ir.IRBuilder(self.entry)
        leaves = iter(target.args[2:])
        arguments = [self._from_leaves(kind, leaves) for kind in self.kinds]
        value = self._run(self.function, (), self.freedoms, arguments)
        pointer = self.builder.bitcast(target.args[0], self.context.call_conv.get_return_type(self.result))
        if value is None:
            self.builder.store(ir.Constant(ADDRESS, None), pointer)
        else:
            self._save(value, pointer)
        self._free()
        self.builder.ret(ir.Constant(ir.IntType(32), 0))
        self.slots_of_entry.branch(target.blocks[1])
        return not self.stale

    def _run(self, function: Any, path: tuple, flags: tuple, arguments: list) -> Any:
        """Translate a function here; return what it returns, or None."""
        node, assigned_once = syntax_of(function)
        scope = _Scope(function, assigned_once, path)
        names = [argument.arg for argument in node.args.args]
        if len(names) != len(arguments) or node.args.vararg or node.args.kwonlyargs or node.args.kwarg:
            raise Unsupported("other than positional arguments")
        outer = self.scope, self.flags
        self.scope, self.flags = scope, flags
        scope.end = self.builder.append_basic_block("end")
        for name, argument in zip(names, arguments, strict=True):
            self._assign(name, argument)
        self._block(node.body)
        if not self.builder.block.is_terminated:
            self._leave(None)
        self.builder.position_at_end(scope.end)
        self.scope, self.flags = outer
        return None if scope.result is None else self._loaded(scope.result)

    # variables

    def _slot(self, kind: Any) -> Any:
        return self.slots_of_entry.alloca(kind)

    def _merged(self, key: tuple, value: Any) -> Any:
        """Return the type of a variable that is also assigned this value."""
        if isinstance(value, Static):
            raise Unsupported("a function or type that depends on values")
        known = self.facts.get(key)
        kind = value.kind if known is None else unified(known, value.kind)
        non_negative = getattr(value, "non_negative", False) and self.facts.get((*key, "non_negative"), True)
        if (known is not None and kind != known) or non_negative != self.facts.get((*key, "non_negative"), non_negative):
            self.stale = True
        self.facts[key] = kind
        self.facts[(*key, "non_negative")] = non_negative
        return kind

    def _kept(self, kept: Any, key: tuple, value: Any) -> Any:
        """Store a value in slots, which are created for the first one."""
        kind = self._merged(key, value)
        if kept is None or kept[0] != kind:
            kept = kind, [self._slot(part) for part in parts_of(kind)], key
        for part, slot in zip(split(self.cast(value, kind)), kept[1], strict=True):
            self.builder.store(part, slot)
        return kept

    def _loaded(self, kept: Any) -> Any:
        kind, slots, key = kept
        return joined(kind, iter([self.builder.load(slot) for slot in slots]), self.facts[(*key, "non_negative")])

    def _assign(self, name: str, value: Any) -> None:
        scope = self.scope
        if isinstance(value, Static):
            if name in scope.slots or name in scope.fixed or scope.statics.setdefault(name, value) != value:
                raise Unsupported(f"{name} with several meanings")
            return
        if name in scope.statics:
            raise Unsupported(f"{name} with several meanings")
        if name in scope.assigned_once:
            scope.fixed[name] = value._replace(constant=None) if isinstance(value, Number) else value
            return
        scope.slots[name] = self._kept(scope.slots.get(name), (scope.path, name), value)

    def _named(self, name: str) -> Any:
        scope = self.scope
        if name in scope.fixed:
            return scope.fixed[name]
        if name in scope.slots:
            return self._loaded(scope.slots[name])
        if name in scope.statics:
            return scope.statics[name]
        for known in (scope.globals, vars(builtins)):
            if name in known:
                return self._static(known[name])
        raise Unsupported(f"{name} without a value")

    @staticmethod
    def _static(value: Any) -> Any:
        return constant(value) if isinstance(value, (int, float, np.generic)) else Static(value)

    # statements

    def _block(self, statements: list) -> None:
        for statement in statements:
            if self.builder.block.is_terminated:
                return
            emit = getattr(self, f"_do_{type(statement).__name__}", None)
            if emit is None:
                raise Unsupported(type(statement).__name__)
            emit(statement)

    def _do_Pass(self, node: ast.Pass) -> None:
        pass

    def _do_Expr(self, node: ast.Expr) -> None:
        if not isinstance(node.value, ast.Constant):
            self._value(node.value)

    def _do_Assign(self, node: ast.Assign) -> None:
        value = self._value(node.value)
        for target in node.targets:
            self._put(target, value)

    def _do_AugAssign(self, node: ast.AugAssign) -> None:
        target: Any = node.target
        if isinstance(target, ast.Subscript):
            view, address = self._element(target)
            before = self.load(view.kind.dtype, address)
            self.store(self.compute(OPERATIONS[type(node.op)], before, self._value(node.value)), view.kind.dtype, address)
            return
        reading = type(target)(**{**vars(target), "ctx": ast.Load()})
        self._put(target, self.compute(OPERATIONS[type(node.op)], self._value(reading), self._value(node.value)))

    def _put(self, target: Any, value: Any) -> None:
        if isinstance(target, ast.Name):
            self._assign(target.id, value)
        elif isinstance(target, ast.Tuple):
            if not isinstance(value, Group) or len(value.items) != len(target.elts):
                raise Unsupported("unpacking")
            for one, item in zip(target.elts, value.items, strict=True):
                self._put(one, item)
        elif isinstance(target, ast.Subscript):
            view, address = self._element(target)
            self.store(value, view.kind.dtype, address)
        elif isinstance(target, ast.Attribute):
            self._set_field(self._value(target.value), target.attr, value)
        else:
            raise Unsupported("assignment")

    def _do_Return(self, node: ast.Return) -> None:
        self._leave(node.value)

    def _leave(self, node: ast.expr | None) -> None:
        """Leave the function, with the value of an expression."""
        scope = self.scope
        scope.returns.add(node is not None)
        if len(scope.returns) > 1:
            raise Unsupported("a function that may or may not return a value")
        if node is not None:
            scope.result = self._kept(scope.result, (scope.path, "return"), self._value(node))
        self.builder.branch(scope.end)

    def _do_If(self, node: ast.If) -> None:
        then, other, after = (self.builder.append_basic_block(name) for name in ("then", "else", "after"))
        self.builder.cbranch(self.truth(self._value(node.test)), then, other)
        goes_on = False
        for block, body in ((then, node.body), (other, node.orelse)):
            self.builder.position_at_end(block)
            self._block(body)
            if not self.builder.block.is_terminated:
                self.builder.branch(after)
                goes_on = True
        self.builder.position_at_end(after)
        if not goes_on:
            self.builder.unreachable()

    def _do_While(self, node: ast.While) -> None:
        if node.orelse:
            raise Unsupported("else after a loop")
        head, body, after = (self.builder.append_basic_block(name) for name in ("while", "body", "done"))
        self.builder.branch(head)
        self.builder.position_at_end(head)
        endless = isinstance(node.test, ast.Constant) and node.test.value is True
        if endless:
            self.builder.branch(body)
        else:
            self.builder.cbranch(self.truth(self._value(node.test)), body, after)
        self._loop_body(node.body, body, head, after)
        self.builder.position_at_end(after)
        if endless and not any(isinstance(inside, ast.Break) for inside in ast.walk(node)):
            self.builder.unreachable()

    def _loop_body(self, statements: list, body: Any, again: Any, after: Any) -> None:
        self.depth += 1
        self.scope.loops.append((again, after))
        self.builder.position_at_end(body)
        self._block(statements)
        if not self.builder.block.is_terminated:
            self.builder.branch(again)
        self.scope.loops.pop()
        self.depth -= 1

    def _do_For(self, node: ast.For) -> None:
        call: Any = node.iter
        if node.orelse or not isinstance(call, ast.Call) or self._value(call.func) != Static(range):
            raise Unsupported("a loop over something else than a range")
        bounds = [self.cast(self._value(one), types.int64) for one in call.args]
        start, stop = (constant(0), bounds[0]) if len(bounds) == 1 else bounds[:2]
        step = bounds[2] if len(bounds) == 3 else constant(1)
        counter = self._slot(WORD)
        self.builder.store(start.value, counter)
        head, body, again, after = (self.builder.append_basic_block(name) for name in ("for", "body", "next", "done"))
        self.builder.branch(head)
        self.builder.position_at_end(head)
        i = self.builder.load(counter)
        self.builder.cbranch(self._goes_on(i, stop.value, step), body, after)
        self.builder.position_at_end(body)
        self._put(node.target, whole(i, non_negative=start.non_negative and step.non_negative))
        self._loop_body(node.body, body, again, after)
        self.builder.position_at_end(again)
        self.builder.store(self.builder.add(self.builder.load(counter), step.value, flags=("nsw",)), counter)
        self.builder.branch(head)
        self.builder.position_at_end(after)

    def _goes_on(self, i: Any, stop: Any, step: Number) -> Any:
        up = self.builder.icmp_signed("<", i, stop)
        if step.non_negative:
            return up
        down = self.builder.icmp_signed(">", i, stop)
        return self.builder.select(self.builder.icmp_signed("<", step.value, word(0)), down, up)

    def _do_Continue(self, node: ast.Continue) -> None:
        self.builder.branch(self.scope.loops[-1][0])

    def _do_Break(self, node: ast.Break) -> None:
        self.builder.branch(self.scope.loops[-1][1])
