"""The syntax trees of functions, as they were when Python imported them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
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


def syntax_of(function: Any) -> ast.FunctionDef:
    """Return the source of a function; keys are those of its code, so a file that has been edited since is of no use."""
    code = function.__code__
    node, now = _functions(code.co_filename).get((code.co_name, code.co_firstlineno), (None, None))
    if node is None or now != code or code.co_freevars:
        raise Unsupported(f"the source of {function.__name__}")
    return node
