"""Decorators for compiled code, and their disk cache.

Compiled functions are plain module-level functions on arrays, numbers and NamedTuples of them.  ``@jit`` compiles them
without the interpreter lock and with those floating-point freedoms that are safe here: sums may be reordered
(``reassoc``, which is what lets a reduction use vector instructions) and products fused (``contract``), but NaN and
infinity keep their meaning.  ``@jit_exact`` forbids reordering as well, for code whose rounding is part of the
algorithm.

Numba's own cache does not notice an edit in another file, and two processes that save at the same time can corrupt its entries.
This one is addressed by content: the name of an entry is a hash of everything that affects it (the compiled functions,
constants and fields of core/, components/ and the function's own module), of the signature, of the processor and of the
library versions.  So an entry is either correct or not found, and writers never conflict; plain Python next to compiled code,
such as a merge rule, can change without recompilation.  With ``NUMBA_DISABLE_JIT=1`` the decorators do nothing.
"""

from __future__ import annotations

import hashlib
import inspect
import pickle
import re
import sys
import types
from collections.abc import Callable
from functools import cache, cached_property, update_wrapper
from pathlib import Path
from typing import Any, NamedTuple

import llvmlite
import numba
import numpy as np

from .cache_files import cache_folder, read_entry, write_entry

lean: Any
try:
    from . import lean
except ImportError:  # Numba has changed: compiling takes longer, and gives the same
    lean = None
COMPILED = not numba.config.DISABLE_JIT  # type: ignore[attr-defined]  # set when Numba is imported


class _Flags(set):
    """Flags whose text is the same in all processes: Numba makes it part of symbols."""

    def __repr__(self) -> str:
        return str(sorted(self))

    def copy(self) -> _Flags:
        return _Flags(self)


_EXACT = _Flags({"contract"})
_FREEDOMS = _Flags({"reassoc", "contract", "nsz", "arcp"})
_MARKS = {"jit", "inner", "inline", "pluggable", "jit_exact", "inline_exact", "template"}  # decorators of compiled functions
_UNSEEN = ('"""', "#", "LEARNER", "from __future__", "from ..estimators", "from ..merging")
COMPILER = ("calls.py", "front.py", "lean.py", "struct.py", "values.py")
ENTRY, UNIT, FRAGMENT = "entry", "unit", "fragment"
_INNER: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True, "_nrt": False}


def jit(function: Callable) -> Callable:
    """Compile a function; sums may be reordered and products fused."""
    return _compile(function, _FREEDOMS, function, no_cfunc_wrapper=True)


def inner(function: Callable) -> Callable:
    """Compile a function that only compiled code calls; without reference counting, so it cannot create or return arrays.

    Counting the references of the thirty arrays of a step would cost more than the step.
    It is compiled once and called by its symbol, where Numba would optimise it again in everything that calls it.
    """
    return _compile(function, _FREEDOMS, function, kind=UNIT, **_INNER)


def inline(function: Callable) -> Callable:
    """Like ``inner``, but always inlined: for what is executed at every event."""
    return _compile(function, _FREEDOMS, function, kind=FRAGMENT, **_INNER, forceinline=True)


def pluggable(function: Callable) -> Callable:
    """Compile a function that is a field of a record (see struct.py): compiled code calls it by its address."""
    return _compile(function, _FREEDOMS, function, **(_INNER | {"no_cfunc_wrapper": False}))


def jit_exact(function: Callable) -> Callable:
    """Compile a function whose operations keep their order (products may still be fused)."""
    return _compile(function, _EXACT, function, no_cfunc_wrapper=True)


def inline_exact(function: Callable) -> Callable:
    """Like ``inline``, for a function whose operations keep their order."""
    return _compile(function, _EXACT, function, kind=FRAGMENT, **_INNER, forceinline=True)


def template(function: Callable) -> Callable:
    """Mark a plain function that ``bind`` compiles copies of."""
    return function


def bind(template: Callable, *, kind: str = ENTRY, **names: Callable) -> Callable:
    """Compile a copy of a plain function in which the given global names refer to the given compiled functions.

    This is how a driver's loop reaches a learner's step: the copy is a function of its own, so its machine code is
    cached like any other, which a function passed as an argument would not be.
    """
    copy = types.FunctionType(template.__code__, {**template.__globals__, **names}, template.__name__)
    bound = next(iter(names.values()))
    owner = getattr(bound, "owner", bound)
    return _compile(copy, _FREEDOMS, owner, kind, **(_INNER if kind == UNIT else {"no_cfunc_wrapper": True}))


def entry_point(compiled: Callable, *arguments: Any) -> Callable:
    """Return the machine code for arguments of these types, to be called only with arguments of the same types.

    Determining the types of thirty arrays takes longer than learning an event, so single events skip it.
    """
    if not COMPILED:
        return compiled
    try:
        from numba import typeof

        signature = tuple(typeof(argument) for argument in arguments)
        return compiled.overload(signature).entry_point  # type: ignore[attr-defined]
    except (AttributeError, ImportError, KeyError):  # private parts of Numba have moved
        return compiled


def _compile(function: Callable, freedoms: set[str], owner: Callable, kind: str = ENTRY, **options: Any) -> Callable:
    options = {"_nrt": True, "fastmath": freedoms, **options}  # explicit, since a callee would inherit _nrt from its caller
    return Compiled(function, owner, kind, options) if COMPILED else function


class Compiled:
    """A function for Numba to compile.

    Its dispatcher is created at its first use, since most functions of a warm start are found in the cache as parts of others.
    """

    def __init__(self, function: Callable, owner: Callable, kind: str, options: dict[str, Any]):
        update_wrapper(self, function)
        self.py_func, self.owner, self.kind, self._options = function, owner, kind, options
        self.freedoms, self.counts_references = options["fastmath"], options["_nrt"]
        self._addresses: dict[tuple, int] = {}

    @cached_property
    def dispatcher(self) -> Any:
        """Numba's object for the function."""
        options, kind = self._options, self.kind
        if lean is None:  # as Numba compiles by itself: every function on its own, and again in each that calls it
            kind = ENTRY
        else:
            compilers = {ENTRY: lean.UnitCompiler, UNIT: lean.InnerCompiler, FRAGMENT: lean.FragmentCompiler}
            options = {**options, "pipeline_class": compilers[kind]}
        dispatcher: Any = numba.njit(nogil=True, error_model="numpy", **options)(self.py_func)
        if options.get("no_cpython_wrapper"):
            _hide_from_python(dispatcher)
        try:
            dispatcher._cache = _DiskCache(self.py_func, self.owner, kind)
            self.py_func.symbol_number = dispatcher._cache.symbol_number  # type: ignore[attr-defined]
        except (AttributeError, ImportError, OSError):  # private to Numba, or nowhere to write: compile in each process
            pass
        return dispatcher

    @property
    def _numba_type_(self) -> Any:
        """Numba's type of the function, when compiled code refers to it."""
        return self.dispatcher._numba_type_

    def __call__(self, *arguments: Any) -> Any:
        return self.dispatcher(*arguments)

    def overload(self, signature: tuple) -> Any:
        """Return Numba's result of compiling the function for arguments of these types."""
        overloads = self.dispatcher.overloads
        if signature not in overloads:
            self.dispatcher.compile(signature)
        return overloads[signature]

    def address(self, signature: tuple) -> int:
        """Return the address of the machine code for arguments of these types."""
        if signature not in self._addresses:
            result = self.overload(signature)
            self._addresses[signature] = result.library.get_pointer_to_function(result.fndesc.llvm_cfunc_wrapper_name)
        return self._addresses[signature]


def _hide_from_python(dispatcher: Any) -> None:
    """Make calls from Python an error: without a wrapper, Numba would jump to address 0."""

    def refuse(*_arguments: Any, **_more: Any) -> None:
        raise TypeError(f"{dispatcher.__name__} can be called only by compiled code")

    dispatcher._compile_for_args = refuse
    dispatcher.add_overload = lambda result: dispatcher.overloads.__setitem__(tuple(result.signature.args), result)


@cache
def _shared_hash() -> str:
    """Return a hash of the code that any compiled function may call, and of the versions that turn it into machine code."""
    text = hashlib.sha256()
    for version in (numba.__version__, llvmlite.__version__, np.__version__, sys.version, str(lean is None)):
        text.update(version.encode())
    package = Path(__file__).parents[1]
    for name in COMPILER:
        text.update((package / "core" / name).read_bytes())
    for path in sorted([*package.glob("core/*.py"), *package.glob("components/*.py")]):
        text.update(_file_hash(str(path)).encode())
    return text.hexdigest()[:16]


@cache
def _file_hash(path: str) -> str:
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
            kept += [f"@{decorator}\n{statement}"] if decorator in _MARKS else []
        elif not statement.startswith(_UNSEEN):
            kept.append(statement)
        decorator = ""
    return "\n".join(kept)


def _classes(types: Any) -> list[str]:
    """Return the modules of all NamedTuples in a signature, since two learners' may have the same name and fields."""
    found = []
    for kind in types:
        owner = getattr(kind, "instance_class", None)
        if owner is not None:
            found += [owner.__module__, *_classes(kind.types)]
    return found


_units: dict[str, str] = {}  # symbols of functions that are called by symbol, and the entries with their code
_alive: list[Any] = []


def _set_apart(library: Any, symbol: str, name: str) -> None:
    """Prevent callers from linking a function's code: they find it by its symbol."""
    from llvmlite import binding

    library._shared_module = binding.parse_assembly("")
    _units[symbol] = name


class _Entry(NamedTuple):
    """The content of a file of the cache."""

    symbol: str  # of the function
    callees: dict[str, str]  # symbols of the functions that it calls, and their entries
    counts_references: bool  # whether the code needs Numba's runtime
    code: Any
    description: bytes  # what Numba needs to know of a function that is called from Python or linked into others


def _load(name: str, target: Any) -> Any:
    """Return the function in an entry, with all that it calls; None if any of it is missing or invalid."""
    from numba.core.compiler import CompileResult

    try:
        entry = _read(name, target)
        return None if entry is None else CompileResult._rebuild(target, entry.code, *pickle.loads(entry.description))
    except Exception:  # any invalid entry is recompiled and replaced
        return None


def _read(name: str, target: Any) -> _Entry | None:
    """Return an entry, after loading the machine code of all that it calls; None if any of that is missing."""
    from numba.core.runtime import rtsys

    content = read_entry(_shared_hash(), name)
    if content is None:
        return None
    entry = _Entry(*pickle.loads(content))
    if entry.counts_references:  # all that machine code needs of Numba's target; refreshing the rest takes longer than loading
        rtsys.initialize(target)
    for symbol, callee in entry.callees.items():
        if symbol in _units:
            continue
        found = _read(callee, target)
        if found is None or found.symbol != symbol:  # not the one that the caller was compiled for
            return None
        library = target.codegen().unserialize_library(found.code)
        _set_apart(library, symbol, callee)
        _alive.append(library)
    return entry


class _DiskCache:
    """Numba's cache interface (load_overload, save_overload) over files named by content."""

    def __init__(self, function: Callable, owner: Callable, kind: str):
        from numba.core.caching import CompileResultCacheImpl  # private: the caller works without a cache if it moves

        self.kind = kind
        self.name = f"{owner.__module__}.{owner.__name__}.{function.__name__}"
        self.stamp = _file_hash(inspect.getfile(owner)) + hashlib.sha256(function.__code__.co_code).hexdigest()
        self._check = CompileResultCacheImpl.check_cachable
        self._rebuild = CompileResultCacheImpl.rebuild
        self._reduce = CompileResultCacheImpl.reduce
        self.cache_path = str(cache_folder())

    def _name(self, signature: Any, codegen: Any) -> str:
        key = f"{self.name}|{self.stamp}|{signature!r}|{_classes(signature)}|{codegen.magic_tuple()!r}"
        return f"{self.name}-{hashlib.sha256(key.encode()).hexdigest()[:24]}.bin"

    def symbol_number(self, signature: Any, codegen: Any) -> int:
        """Return a number for the symbol of the function, the same in all processes, whose entries call each other."""
        key = self._name(signature, codegen)[len(self.name) + 1 :]
        return int(key[:12], 16)

    def _is_fragment(self, signature: Any) -> bool:
        return self.kind == FRAGMENT or (self.kind == UNIT and lean.takes_arrays_by_value(signature))

    def load_overload(self, signature: Any, target: Any) -> Any:
        if self._is_fragment(signature):
            return None
        name = self._name(signature, target.codegen())
        result = _load(name, target)
        if result is not None and self.kind == UNIT:
            _set_apart(result.library, result.fndesc.mangled_name, name)
        return result

    def save_overload(self, signature: Any, result: Any) -> None:
        """Save a function; called once, when it has been compiled."""
        if (
            self._is_fragment(signature)
            or result.library.has_dynamic_globals
            or any(not part.can_cache for part in result.lifted)
        ):
            return
        name = self._name(signature, result.codegen)
        if self.kind == UNIT:
            _set_apart(result.library, result.fndesc.mangled_name, name)
        self._write(name, result)

    def _write(self, name: str, result: Any) -> None:
        from numba.core.serialize import dumps

        declared = {function.name for function in result.library._final_module.functions if function.is_declaration}
        callees = {symbol: _units[symbol] for symbol in declared & _units.keys()}
        counts_references = any(symbol.startswith("NRT_") for symbol in declared)
        code, *description, environments = self._reduce(self, result)  # type: ignore[arg-type]
        used = tuple(one for one in environments if one.consts)  # the others would only import the modules of Numba's functions
        entry = _Entry(result.fndesc.mangled_name, callees, counts_references, code, dumps((*description, used)))
        write_entry(_shared_hash(), name, dumps(tuple(entry)))

    def flush(self) -> None:
        """Do nothing: Numba calls it when a function is recompiled, but entries are named by content."""
