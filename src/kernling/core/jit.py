"""The one decorator for compiled code, and the disk cache behind it.

Compiled functions are plain module-level functions on arrays, numbers and NamedTuples of them.  ``@jit`` compiles them
without the interpreter lock and with those floating-point freedoms that are safe here: sums may be reordered
(``reassoc``, which is what lets a reduction use vector instructions) and products fused (``contract``), but NaN and
infinity keep their meaning.  ``@jit_exact`` forbids reordering as well, for code whose rounding is part of the
algorithm.

Numba's own cache does not notice an edit in another file, and two processes that save at once can mix up its entries.
This one is addressed by content: the name of an entry is a hash of every source that can have gone into it (all of
core/ and the function's own module), of the signature, of the processor and of the library versions.  So an entry is
either right or not found, and writers never meet.  With ``NUMBA_DISABLE_JIT=1`` the decorators do nothing.
"""

from __future__ import annotations

import hashlib
import inspect
import os
import pickle
import shutil
import sys
import tempfile
import time
import types
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import llvmlite
import numba
import numpy as np

COMPILED = not numba.config.DISABLE_JIT
KEEP = 30 * 24 * 3600.0  # seconds
_EXACT = {"contract"}
_FREEDOMS = {"reassoc", "contract", "nsz", "arcp"}
ENTRY, UNIT, FRAGMENT = "entry", "unit", "fragment"
_INNER = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True, "_nrt": False}


def jit(function: Callable) -> Callable:
    """Compile a function; sums may be reordered and products fused."""
    return _compile(function, _FREEDOMS, function, no_cfunc_wrapper=True)


def inner(function: Callable) -> Callable:
    """Compile a function that only compiled code calls; it counts no references, and so can make and return no arrays.

    Counting the references of the thirty arrays that a step sees would cost more than the step.
    It is compiled once and called by its symbol, where Numba would optimise it again in everything that calls it.
    """
    return _compile(function, _FREEDOMS, function, kind=UNIT, **_INNER)


def inline(function: Callable) -> Callable:
    """Like ``inner``, and always inlined: for what happens at every event."""
    return _compile(function, _FREEDOMS, function, kind=FRAGMENT, **_INNER, forceinline=True)


def pluggable(function: Callable) -> Callable:
    """Compile a function that records hold (see struct.py): compiled code calls it by its address."""
    return _compile(function, _FREEDOMS, function, **(_INNER | {"no_cfunc_wrapper": False}))


def jit_exact(function: Callable) -> Callable:
    """Compile a function whose operations keep their order (products may still be fused)."""
    return _compile(function, _EXACT, function, no_cfunc_wrapper=True)


def inline_exact(function: Callable) -> Callable:
    """Like ``inline``, for a function whose operations keep their order."""
    return _compile(function, _EXACT, function, kind=FRAGMENT, **_INNER, forceinline=True)


def bind(template: Callable, *, kind: str = ENTRY, **names: Callable) -> Callable:
    """Compile a copy of a plain function in which the given global names mean the given compiled functions.

    This is how a driver's loop reaches a learner's step: the copy is a function of its own, so its machine code is
    cached like any other, which a function passed as an argument would not be.
    """
    copy = types.FunctionType(template.__code__, {**template.__globals__, **names}, template.__name__)
    bound = next(iter(names.values()))
    owner = getattr(bound, "owner", getattr(bound, "py_func", bound))
    compiled = _compile(copy, _FREEDOMS, owner, kind, **(_INNER if kind == UNIT else {"no_cfunc_wrapper": True}))
    compiled.owner = owner
    return compiled


def entry_point(compiled: Callable, *arguments: Any) -> Callable:
    """The machine code for arguments of these types, to be called with exactly such arguments again.

    Looking at the types of thirty arrays takes longer than learning an event, so single events skip it.
    """
    if not COMPILED:
        return compiled
    try:
        from numba import typeof

        signature = tuple(typeof(argument) for argument in arguments)
        compiled.compile(signature)  # type: ignore[attr-defined]
        return compiled.overloads[signature].entry_point  # type: ignore[attr-defined]
    except (AttributeError, ImportError, KeyError):  # Numba has moved things
        return compiled


def _compile(function: Callable, freedoms: set[str], owner: Callable, kind: str = ENTRY, **options: bool) -> Callable:
    if not COMPILED:
        return function
    options = {"_nrt": True, **options}  # said outright, since Numba would let a callee inherit it from its caller
    try:
        from . import lean

        options["pipeline_class"] = lean.FragmentCompiler if kind == FRAGMENT else lean.UnitCompiler
    except ImportError:
        pass
    dispatcher: Any = numba.njit(nogil=True, fastmath=freedoms, error_model="numpy", **options)(function)
    try:
        dispatcher._cache = _DiskCache(function, owner, kind)
    except (AttributeError, ImportError, OSError):  # private to Numba, or nowhere to write: compile in each process
        pass
    return dispatcher


def cache_folder() -> Path:
    """Where compiled code is kept: ``KERNLING_CACHE``, or the user's cache folder."""
    given = os.environ.get("KERNLING_CACHE")
    if given:
        return Path(given)
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local"))
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    return base / "kernling"


@cache
def _core_hash() -> str:
    """A hash of all of core/ and of the versions that turn it into machine code."""
    text = hashlib.sha256()
    for version in (numba.__version__, llvmlite.__version__, np.__version__, sys.version):
        text.update(version.encode())
    for path in sorted(Path(__file__).parent.glob("*.py")):
        text.update(path.read_bytes())
    return text.hexdigest()[:16]


@cache
def _file_hash(path: str) -> str:
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


def _forget_old(folder: Path) -> None:
    """Delete machine code of other versions that nobody has added to for a month."""
    for old in folder.iterdir():
        if time.time() - old.stat().st_mtime > KEEP:
            shutil.rmtree(old, ignore_errors=True)


def _classes(types: Any) -> list[str]:
    """The modules of all NamedTuples in a signature: those of two learners may have the same name and the same fields."""
    found = []
    for kind in types:
        owner = getattr(kind, "instance_class", None)
        if owner is not None:
            found += [owner.__module__, *_classes(kind.types)]
    return found


_units: dict[str, Path] = {}  # symbols of functions that are called where they are, and the files with their code
_alive: list[Any] = []


def _set_apart(result: Any, path: Path) -> None:
    """Have callers link nothing of a function's code: they find it by its symbol."""
    from llvmlite import binding

    result.library._shared_module = binding.parse_assembly("")
    _units[result.fndesc.mangled_name] = path


def _load(path: Path, target: Any, is_unit: bool) -> Any:
    """The function in a file, with all that it calls; None unless all of it is there."""
    from numba.core.compiler import CompileResult

    try:
        callees, payload = pickle.loads(path.read_bytes())
        for symbol, name in callees.items():
            if symbol not in _units:
                _alive.append(_load(path.with_name(name), target, True))
            if symbol not in _units:
                return None
        result = CompileResult._rebuild(target, *payload)
    except (OSError, EOFError, TypeError, ValueError, pickle.UnpicklingError):
        return None
    if is_unit:
        _set_apart(result, path)
    return result


class _DiskCache:
    """Numba's cache interface (load_overload, save_overload) over files named by content."""

    def __init__(self, function: Callable, owner: Callable, kind: str):
        from numba.core.caching import CompileResultCacheImpl  # private: the caller goes without a cache if it moves

        self.kind = kind
        self.folder = cache_folder() / "compiled" / _core_hash()
        self.name = f"{owner.__module__}.{owner.__name__}.{function.__name__}"
        self.stamp = _file_hash(inspect.getfile(owner)) + hashlib.sha256(function.__code__.co_code).hexdigest()
        self._check = CompileResultCacheImpl.check_cachable
        self._rebuild = CompileResultCacheImpl.rebuild
        self._reduce = CompileResultCacheImpl.reduce
        self.cache_path = str(self.folder)

    def _path(self, signature: Any, codegen: Any) -> Path:
        key = f"{self.name}|{self.stamp}|{signature!r}|{_classes(signature)}|{codegen.magic_tuple()!r}"
        return self.folder / f"{self.name}-{hashlib.sha256(key.encode()).hexdigest()[:24]}.bin"

    def load_overload(self, signature: Any, target: Any) -> Any:
        target.refresh()
        if self.kind == FRAGMENT:
            return None
        return _load(self._path(signature, target.codegen()), target, self.kind == UNIT)

    def save_overload(self, signature: Any, result: Any) -> None:
        """Called once, when a function has been compiled."""
        if self.kind == FRAGMENT or result.library.has_dynamic_globals or any(not part.can_cache for part in result.lifted):
            return
        path = self._path(signature, result.codegen)
        if self.kind == UNIT:
            _set_apart(result, path)
        self._write(path, result)

    def _write(self, path: Path, result: Any) -> None:
        from numba.core.serialize import dumps

        declared = {function.name for function in result.library._final_module.functions if function.is_declaration}
        callees = {name: _units[name].name for name in declared & _units.keys()}
        try:
            if not self.folder.exists():
                self.folder.mkdir(parents=True, exist_ok=True)
                _forget_old(self.folder.parent)
            payload = dumps((callees, self._reduce(self, result)))  # type: ignore[arg-type]
            handle, temporary = tempfile.mkstemp(dir=self.folder)
            with os.fdopen(handle, "wb") as file:
                file.write(payload)
            os.replace(temporary, path)
        except OSError:  # a full or read-only disk costs time, never the result
            return

    def flush(self) -> None:
        for path in self.folder.glob(f"{self.name}-*.bin"):
            path.unlink(missing_ok=True)
