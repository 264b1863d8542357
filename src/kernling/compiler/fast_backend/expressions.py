"""Expressions of Python as values in LLVM."""

from __future__ import annotations

import ast
from typing import Any

from .arithmetic import OPERATIONS
from .calls import Calls
from .values import (
    Bounds,
    Group,
    Number,
    Record,
    Static,
    Unsupported,
    View,
    constant,
    is_number,
    item_size,
    split,
    types,
    whole,
)


class Expressions(Calls):
    """Translates expressions; ``ast_to_llvm.py`` keeps the variables in them."""

    _named: Any  # returns what a name stands for
    _static: Any  # returns a value that is known while compiling
    _kept: Any  # stores a value
    _loaded: Any  # loads it again

    def _value(self, node: Any) -> Any:
        emit = getattr(self, f"_of_{type(node).__name__}", None)
        if emit is None:
            raise Unsupported(type(node).__name__)
        return emit(node)

    def _of_Constant(self, node: ast.Constant) -> Any:
        return constant(node.value)

    def _of_Name(self, node: ast.Name) -> Any:
        return self._named(node.id)

    def _of_Tuple(self, node: ast.Tuple) -> Any:
        items = [self._value(one) for one in node.elts]
        if any(isinstance(item, Static) for item in items):
            raise Unsupported("a tuple of functions or types")
        return Group(types.BaseTuple.from_types([item.kind for item in items]), items)

    def _of_BinOp(self, node: ast.BinOp) -> Any:
        return self.compute(OPERATIONS[type(node.op)], self._value(node.left), self._value(node.right))

    def _of_UnaryOp(self, node: ast.UnaryOp) -> Any:
        value = self._value(node.operand)
        if isinstance(node.op, ast.Not):
            return Number(types.boolean, self.builder.not_(self.truth(value)))
        if isinstance(node.op, ast.USub) and isinstance(value, Number):
            return self.negative(value)
        raise Unsupported(type(node.op).__name__)

    def _choice(self, node: Any, what: str, condition: Any, then: Any, other: Any) -> Any:
        """Return one of two values, which are computed only if needed."""
        key = (*self.scope.path, node.lineno, node.col_offset, node.end_lineno, node.end_col_offset), what
        blocks = [self.builder.append_basic_block(name) for name in ("then", "else", "chosen")]
        self.builder.cbranch(condition, blocks[0], blocks[1])
        kept = None
        for block, compute in zip(blocks, (then, other), strict=False):
            self.builder.position_at_end(block)
            kept = self._kept(kept, key, compute())
            self.builder.branch(blocks[2])
        self.builder.position_at_end(blocks[2])
        return self._loaded(kept)

    def _of_IfExp(self, node: ast.IfExp) -> Any:
        return self._choice(
            node, "if", self.truth(self._value(node.test)), lambda: self._value(node.body), lambda: self._value(node.orelse)
        )

    def _of_BoolOp(self, node: ast.BoolOp) -> Any:
        return self._chain(node, node.values, isinstance(node.op, ast.And))

    def _chain(self, node: Any, parts: list, every: bool) -> Number:
        """Return whether all of some truth values are true, or any."""
        first = self._value(parts[0])
        if first.kind != types.boolean:
            raise Unsupported("and, or of other than truth values")
        if len(parts) == 1:
            return first
        rest = lambda: self._chain(parts[1], parts[1:], every)  # noqa: E731 - as short as what it stands for
        same = lambda: first  # noqa: E731
        return self._choice(node, "chain", first.value, *((rest, same) if every else (same, rest)))

    def _of_Compare(self, node: ast.Compare) -> Any:
        left = self._value(node.left)
        found: Any = None
        for i, (sign, right) in enumerate(zip(node.ops, node.comparators, strict=True)):
            if type(sign) not in OPERATIONS:
                raise Unsupported(type(sign).__name__)
            value = self._value(right)
            one = self.compute(OPERATIONS[type(sign)], left, value)
            found = one if i == 0 else Number(types.boolean, self.builder.and_(found.value, one.value))
            left = value
        return found

    def _of_Attribute(self, node: ast.Attribute) -> Any:
        owner, name = self._value(node.value), node.attr
        if isinstance(owner, Static):
            return (
                self._type_of_dtype(owner, name)
                if isinstance(owner.value, types.Type)
                else self._static(getattr(owner.value, name))
            )
        if isinstance(owner, Record):
            return self._field(owner, name)
        if isinstance(owner, Group) and isinstance(owner.kind, types.NamedTuple):
            return owner.items[owner.kind.fields.index(name)]
        if isinstance(owner, View):
            return self._property(owner, name)
        raise Unsupported(f".{name}")

    @staticmethod
    def _type_of_dtype(owner: Static, name: str) -> Static:
        if name != "type":
            raise Unsupported(f"dtype.{name}")
        return owner

    def _property(self, view: View, name: str) -> Any:
        if name == "size":
            return self.size(view)
        if name == "shape":
            return Group(
                types.UniTuple(types.int64, len(view.shape)), [whole(length, non_negative=True) for length in view.shape]
            )
        if name == "dtype":
            return Static(view.kind.dtype)
        if name == "itemsize":
            return constant(item_size(view))
        if name == "T":
            return self.transposed(view)
        raise Unsupported(f"array.{name}")

    def _of_Subscript(self, node: ast.Subscript) -> Any:
        owner = self._value(node.value)
        if isinstance(owner, Group):
            return self._member(owner, node.slice)
        if not isinstance(owner, View):
            raise Unsupported("an index of what is not an array")
        found = self.item(owner, self._indices(node.slice))
        return found if isinstance(found, View) else self.load(owner.kind.dtype, found)

    def _member(self, group: Group, index: Any) -> Any:
        if isinstance(index, ast.Slice) and index.lower is None and isinstance(index.upper, ast.Constant):
            last: Any = index.upper.value
            items = group.items[:last]
            return Group(types.BaseTuple.from_types([item.kind for item in items]), items)
        place = self._value(index).constant
        if place is None:
            raise Unsupported("an index of a tuple that is not constant")
        return group.items[place]

    def _indices(self, node: Any) -> list:
        nodes = node.elts if isinstance(node, ast.Tuple) else [node]
        return [self._bounds(one) if isinstance(one, ast.Slice) else self._value(one) for one in nodes]

    def _bounds(self, node: ast.Slice) -> Bounds:
        if node.step is not None:
            raise Unsupported("a slice with a step")
        return Bounds(*(None if bound is None else self._value(bound) for bound in (node.lower, node.upper)))

    def _element(self, node: ast.Subscript) -> tuple:
        view = self._value(node.value)
        if not isinstance(view, View) or not view.kind.mutable:
            raise Unsupported("assignment to elements of what is not an array")
        address = self.item(view, self._indices(node.slice))
        if isinstance(address, View):
            raise Unsupported("assignment to a slice")
        return view, address

    # records

    def _field(self, record: Record, name: str) -> Any:
        from ..numba_records import read_field

        kind = record.kind.fields[name]
        if hasattr(kind, "places"):
            return Record(kind, read_field(self.context, self.builder, record.kind, record.pointer, name))
        if not isinstance(kind, types.Array):
            value = read_field(self.context, self.builder, record.kind, record.pointer, name)
            return Number(kind, value) if is_number(kind) else Static((kind, value))
        parts = read_field(self.context, self.builder, record.kind, record.pointer, name)
        return View(kind, parts[0], parts[1], None)

    def _set_field(self, record: Any, name: str, value: Any) -> None:
        from ..numba_records import write_field

        if not isinstance(record, Record):
            raise Unsupported("assignment to a field of what is not a record")
        kind = record.kind.fields[name]
        parts = split(self.cast(value, kind))
        write_field(self.builder, record.kind, record.pointer, name, parts)
