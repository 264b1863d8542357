"""Keys of the compile cache: hashes of everything that machine code is made from.

The key of a function follows what is compiled into it: its bytecode and constants, the options of its decorator, the values of
the global names that it reads, and the keys of the compiled functions among them.  They are taken from the functions
themselves, so no source is read.  Bytecode does not tell attributes from globals: a global whose name is also that of an
attribute counts as read.  For a value of a kind that is not known here, the whole file of the function becomes part of the key.
"""

from __future__ import annotations

import hashlib
import sys
import types
from collections.abc import Iterable
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import llvmlite
import numpy as np

from .intrinsics import variants

_PLAIN = (type(None), bool, int, float, complex, str, bytes, type(Ellipsis))
_BUILTIN = (types.BuiltinFunctionType, types.FunctionType, types.MethodDescriptorType, np.ufunc)
_WITH_PYTHON = {*sys.stdlib_module_names, "numpy", "numba"}  # whose versions are part of every key


@cache
def shared_hash() -> str:
    """Return a hash of the compiler, and of the versions that turn functions into machine code."""
    text = hashlib.sha256()
    kernling = sys.modules["kernling"].__version__  # not imported: this is the lowest package, and has been imported by it
    for version in (kernling, numba_version(), llvmlite.__version__, np.__version__, sys.version):
        text.update(version.encode())
    for path in sorted(Path(__file__).parent.glob("**/*.py")):
        text.update(path.read_bytes())
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


class _Recursive(Exception):
    """A function calls one that calls it."""


def key_of(compiled: Any) -> str:
    """Return a hash of a compiled function and of all that is compiled into it."""
    try:
        return _key(compiled, ())
    except _Recursive:
        return _hash([compiled.content.text, *sorted(one.content.text for one in reached(compiled))])


def _key(compiled: Any, callers: tuple) -> str:
    if compiled.known_key is None:
        if compiled in callers:
            raise _Recursive
        below = (*callers, compiled)
        compiled.known_key = _hash([compiled.content.text, *(_key(one, below) for one in compiled.content.callees)])
    return compiled.known_key


def reached(compiled: Any) -> list:
    """Return a compiled function and all that are compiled into it or called by it."""
    found, waiting = {}, [compiled]
    while waiting:
        one = waiting.pop()
        if id(one) not in found:
            found[id(one)] = one
            waiting += one.content.callees
    return list(found.values())


def _hash(texts: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()


class Content(NamedTuple):
    """What a function consists of."""

    text: str
    callees: list  # compiled functions, in the order in which the text refers to them


def content_of(name: str, function: Any, options: dict[str, Any]) -> Content:
    """Return what a function consists of: its code, its options, and the global names that it reads."""
    return _Walk(name, function, options).content()


class _Walk:
    """Collects what the code of one function refers to."""

    def __init__(self, name: str, function: Any, options: dict[str, Any]):
        self.function = function
        self.names: set[str] = set()
        self.parts = [name, *(f"{option}={options[option]}" for option in sorted(options))]
        self.callees: list[Any] = []

    def content(self) -> Content:
        function = self.function
        self._code(function.__code__, function.__doc__)
        self._value("defaults", function.__defaults__)
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
            self._value(name, cell.cell_contents)
        for name in sorted(self.names & function.__globals__.keys()):
            self._value(name, function.__globals__[name])
        return Content("\n".join(self.parts), self.callees)

    def _code(self, code: types.CodeType, documentation: str | None) -> None:
        self.names.update(code.co_names)
        inside = code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars, code.co_argcount, code.co_flags
        self.parts.append(f"{code.co_code.hex()} {inside}")
        for place, constant in enumerate(code.co_consts):
            if place or constant != documentation:
                self._value("constant", constant)

    def _value(self, name: str, value: Any) -> None:
        """Add what a name stands for."""
        if isinstance(value, _PLAIN):
            text = f"{type(value).__name__} {value!r}"
        elif hasattr(value, "known_key"):
            text = value.full_name
            self.callees.append(value)
        elif isinstance(value, types.CodeType):
            text = "code"
            self._code(value, None)
        elif isinstance(value, (tuple, frozenset)):
            text = type(value).__name__
            for one in value if isinstance(value, tuple) else sorted(value, key=repr):
                self._value("item", one)
        elif isinstance(value, (np.generic, np.ndarray, np.dtype)):
            text = _array_text(value)
        else:
            text = self._reference(value)
        self.parts.append(f"{name}: {text}")

    def _reference(self, value: Any) -> str:
        """Return the text of a function, class or module; of anything else, the function's own file."""
        if isinstance(value, types.ModuleType):
            if value.__name__.partition(".")[0] not in _WITH_PYTHON:
                self._attributes(value)
            return value.__name__
        if isinstance(value, type):
            fields = getattr(value, "_fields", ()), getattr(value, "ASSIGNED", ())
            if value.__module__.partition(".")[0] not in _WITH_PYTHON:
                self._attributes(value)
            return f"{value.__module__}.{value.__qualname__} {fields}"
        if isinstance(value, _BUILTIN):
            for kind, one in sorted(variants.get(value, {}).items()):
                self._value(kind, one)
            return f"{value.__class__.__name__} {value.__module__}.{value.__name__}"
        return _file_hash(self.function.__code__.co_filename)

    def _attributes(self, owner: Any) -> None:
        """Add the attributes of a module or class whose names occur; methods are not compiled."""
        for name in sorted(self.names & vars(owner).keys()):
            value = vars(owner)[name]
            if isinstance(owner, types.ModuleType) or isinstance(value, (*_PLAIN, tuple, np.generic, np.ndarray)):
                self._value(f"{owner.__name__}.{name}", value)


def _array_text(value: Any) -> str:
    if isinstance(value, np.dtype):
        return value.str
    return f"{value.dtype.str} {value.shape} {np.ascontiguousarray(value).tobytes().hex()}"


@cache
def _file_hash(path: str) -> str:
    try:
        return hashlib.sha256(Path(path).read_bytes()).hexdigest()
    except OSError as error:
        raise ValueError(f"{path}, the source of a compiled function, cannot be read") from error
