"""Hashes of the sources of compiled code, which are part of the names of entries in the compile cache."""

from __future__ import annotations

import hashlib
import re
import sys
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import llvmlite
import numpy as np

MARKS = {"jit", "inner", "inline", "pluggable", "jit_exact", "inline_exact", "template"}  # decorators of compiled functions
_UNSEEN = ('"""', "#", "LEARNER", "from __future__", "from ..estimators", "from ..merging")


@cache
def shared_hash() -> str:
    """Return a hash of the code that any compiled function may call, and of the versions that turn it into machine code."""
    text = hashlib.sha256()
    for version in (numba_version(), llvmlite.__version__, np.__version__, sys.version):
        text.update(version.encode())
    package = Path(__file__).parents[1]
    for path in sorted(package.glob("compiler/**/*.py")):
        text.update(path.read_bytes())
    for path in sorted([*package.glob("core/*.py"), *package.glob("components/*.py")]):
        text.update(file_hash(str(path)).encode())
    return text.hexdigest()[:16]


def numba_version() -> str:
    """Return what says which version of Numba is installed, without importing it."""
    found = find_spec("numba")
    try:
        text = Path(found.origin).with_name("_version.py").read_text("utf-8")  # type: ignore[union-attr, arg-type]
    except (AttributeError, OSError, TypeError):
        text = ""
    if "full-revisionid" not in text:  # Numba has changed where it says so
        import numba

        return numba.__version__
    return text


@cache
def file_hash(path: str) -> str:
    """Return a hash of what is visible to compiled code in a file."""
    return hashlib.sha256(visible_source(Path(path).read_text("utf-8")).encode()).hexdigest()


def visible_source(source: str) -> str:
    """Return the part of a module that is visible to compiled code: constants, fields, and functions marked for compilation.

    Plain functions, methods, docstrings, comments and merge rules are omitted.  Statements begin where a
    line is not indented; a decorator and what it decorates are two of them.
    """
    kept, decorator = [], ""
    for statement in re.split(r"\n(?=[^\s)\]}])", source):
        if statement.startswith("@"):
            decorator = statement.strip()[1:]
            continue
        if statement.startswith("class "):
            kept += re.findall(r"^(?:class .*|    \w+: [^=\n]*)$", statement, re.MULTILINE)
        elif statement.startswith("def "):
            kept += [f"@{decorator}\n{statement}"] if decorator in MARKS else []
        elif not statement.startswith(_UNSEEN):
            kept.append(statement)
        decorator = ""
    return "\n".join(kept)
