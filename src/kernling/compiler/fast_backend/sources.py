"""The syntax trees of functions, as they were when Python imported them."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from functools import cache
from itertools import count
from pathlib import Path
from types import CodeType
from typing import Any

from .values import Unsupported


@cache
def _functions(path: str) -> dict[tuple[str, int], tuple[ast.FunctionDef, CodeType]]:
    """Return the functions of a file, and their code, by name and the line at which they begin."""
    try:
        tree = ast.parse(Path(path).read_text("utf-8"))
        codes = _codes(compile(tree, path, "exec", dont_inherit=True))
    except (OSError, SyntaxError, ValueError) as error:
        raise Unsupported(str(error)) from error
    nodes = _definitions(tree.body)
    places = {(node.name, min([node.lineno, *(mark.lineno for mark in node.decorator_list)])): node for node in nodes}
    return {place: (node, codes[place]) for place, node in places.items() if place in codes}


def _definitions(statements: list) -> Iterator[ast.FunctionDef]:
    """Yield the functions among statements and inside of them; looking in expressions takes 20 times as long."""
    for statement in statements:
        if isinstance(statement, ast.FunctionDef):
            yield statement
        yield from _definitions(getattr(statement, "body", []))


def _codes(code: CodeType) -> dict[tuple[str, int], CodeType]:
    found = {(code.co_name, code.co_firstlineno): code}
    for one in code.co_consts:
        if isinstance(one, CodeType):
            found |= _codes(one)
    return found


def syntax_of(function: Any) -> tuple[ast.FunctionDef, frozenset[str]]:
    """Return the source of a function, and the variables that are assigned once.

    Keys are those of its code, so a file that has been edited since is of no use.
    """
    code = function.__code__
    node, now = _functions(code.co_filename).get((code.co_name, code.co_firstlineno), (None, None))
    if node is None or now != code or code.co_freevars:
        raise Unsupported(f"the source of {function.__name__}")
    return node, _assigned_once(node)


@cache
def _assigned_once(function: ast.FunctionDef) -> frozenset[str]:
    """Return the variables that are assigned once, before all that reads them, so that they need no memory."""
    places = count()
    reads: dict[str, list[int]] = {}
    spans = {argument.arg: [range(sys.maxsize)] for argument in function.args.args}  # from assignment to end of block

    def follow(statements: list, assigned: Any = ()) -> None:
        begins = [(name, next(places)) for name in assigned]
        for statement in statements:
            heads = (one for one in ast.iter_child_nodes(statement) if not isinstance(one, ast.stmt))
            names = [one for head in heads for one in ast.walk(head) if isinstance(one, ast.Name)]
            for one in names:
                if isinstance(one.ctx, ast.Load):
                    reads.setdefault(one.id, []).append(next(places))
            stored = [one.id for one in names if isinstance(one.ctx, ast.Store)]
            is_loop = isinstance(statement, ast.For)
            for part in ("body", "orelse"):
                follow(getattr(statement, part, []), stored if is_loop else ())
            begins += [] if is_loop else [(name, next(places)) for name in stored]
        for name, begin in begins:
            spans.setdefault(name, []).append(range(begin, next(places)))

    follow(function.body)
    return frozenset(
        name for name, (span, *more) in spans.items() if not more and all(place in span for place in reads.get(name, ()))
    )
