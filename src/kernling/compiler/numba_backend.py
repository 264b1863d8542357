"""Numba's part: functions that are not found in the compile cache, and those that need Numba whenever they are called."""

from __future__ import annotations

import hashlib
import pickle
from functools import cache
from typing import Any

import numba
from numba.core.compiler import Compiler
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import cpu_target

from . import loader
from .backends import FAST, NUMBA, fast_backend
from .cache import cache_folder, write_entry
from .decorators import ENTRY, FRAGMENT, UNIT, Compiled
from .keys import shared_hash
from .loader import Entry
from .numba_records import declare_variants, numba_type
from .progress import compiling

# beginnings of the names of what any process has; whatever else there may be, Numba has loaded
KNOWN = ("Py", "llvm.", "kernling_", "calloc", "cos", "exp", "fmod", "free", "log", "malloc", "mem", "pow", "sin", "sqrt")


class _Counted(Compiler):
    """Numba's own compiler."""

    def compile_extra(self, func: Any) -> Any:
        with compiling.function():
            return super().compile_extra(func)


# not in the functions: what measures a model by all it refers to does not arrive at Numba
_dispatchers: dict[tuple[Compiled, Any], Any] = {}


@global_compiler_lock  # two threads must not make two of them; Numba's lock, since Numba asks for dispatchers while it has it
def dispatcher_of(function: Compiled, compilers: Any) -> Any:
    """Return Numba's object for a function, compiled by the fast backend's compilers, or if that is None by Numba's own."""
    if (function, compilers) not in _dispatchers:
        _dispatchers[function, compilers] = _new_dispatcher(function, compilers)
    return _dispatchers[function, compilers]


def _new_dispatcher(function: Compiled, compilers: Any) -> Any:
    declare_variants()
    kind = ENTRY if compilers is None else function.kind  # Numba compiles every function on its own, and again in its callers
    pipeline = _Counted if compilers is None else compilers.COMPILERS[kind]
    options = function.options | ({"_nrt": True} if compilers is None else {})  # without it, Numba allocates no array
    dispatcher: Any = numba.njit(**options, pipeline_class=pipeline)(function.py_func)
    _hide_from_python(dispatcher)
    try:
        dispatcher._cache = _DiskCache(function, kind, compilers)
        function.py_func.symbol_number = dispatcher._cache.symbol_number  # type: ignore[attr-defined]
    except (AttributeError, ImportError, OSError):  # private to Numba, or nowhere to write: compile in each process
        pass
    return dispatcher


def _hide_from_python(dispatcher: Any) -> None:
    """Make calls from Python an error: without a wrapper of its own, Numba would jump to address 0."""

    def refuse(*_arguments: Any, **_more: Any) -> None:
        raise TypeError(f"{dispatcher.__name__} can be called only by compiled code")

    dispatcher._compile_for_args = refuse
    dispatcher.add_overload = lambda result: dispatcher.overloads.__setitem__(tuple(result.signature.args), result)


@global_compiler_lock
def compiled(function: Compiled, kinds: tuple) -> tuple[Any, str]:
    """Return what is called from Python, or the address of what is called by that, and the entry that has it without Numba."""
    signature = tuple(map(numba_type, kinds))
    result = function.overload(signature)
    symbol, by_address = result.fndesc.mangled_name, function.options.get("no_cpython_wrapper")
    if symbol not in loader.wrappers:  # Numba has made the wrapper
        if by_address:
            return result.library.get_pointer_to_function(result.fndesc.llvm_cfunc_wrapper_name), ""
        return result.entry_point, ""
    saved = getattr(function.dispatcher, "_cache", None)
    name = saved.entry_name(signature) if isinstance(saved, _DiskCache) else ""
    if by_address:
        return _address(result.library, loader.wrappers[symbol]), name
    wrapper, library = loader.wrappers[symbol], fast_backend().wrapper_library(result)
    if name:
        name = f"{name}.python"
        _save(name, wrapper, wrapper, library, library.serialize_using_object_code())
    return loader.python_function(function.py_func.__name__, _address(library, wrapper)), name


def _address(library: Any, symbol: str) -> int:
    """Return the address of a function that is certainly there; Numba itself does not know of all in the cache."""
    library._ensure_finalized()
    return library.codegen._engine.get_function_address(symbol)


def _save(name: str, symbol: str, wrapper: str, library: Any, code: Any, description: bytes = b"") -> None:
    """Write an entry of the cache."""
    from numba.core.serialize import dumps

    declared = {function.name for function in library._final_module.functions if function.is_declaration}
    callees = {one: loader.units[one] for one in declared & loader.units.keys()}
    entry = Entry(
        symbol=symbol,
        wrapper=wrapper,
        callees=callees,
        needs_numba=not all(one in callees or one.startswith(KNOWN) for one in declared),
        cannot_fail=symbol in loader.cannot_fail,
        code=code,
        description=description,
    )
    write_entry(shared_hash(), name, dumps(tuple(entry)))


@cache
def start_runtime() -> None:
    """Let machine code find Numba's runtime; refreshing the rest of Numba's target would take longer than loading."""
    from numba.core.runtime import rtsys

    rtsys.initialize(cpu_target.target_context)


def _set_apart(result: Any, name: str) -> None:
    """Prevent callers from linking and optimising a function's code again: they find it by its symbol."""
    from llvmlite import binding

    symbol = result.fndesc.mangled_name
    result.library._shared_module = binding.parse_assembly("")
    loader.define(symbol, name, _address(result.library, symbol))


def _classes(types: Any) -> list[str]:
    """Return the modules and fields of all NamedTuples in a signature, which Numba's text of it does not contain."""
    found = []
    for kind in types:
        owner = getattr(kind, "instance_class", None)
        if owner is not None:
            found += [owner.__module__, *owner._fields, *_classes(kind.types)]
    return found


def _load(name: str, target: Any) -> Any:
    """Return Numba's result for the function in an entry, with all that it calls; None if any of it is missing or invalid."""
    from numba.core.compiler import CompileResult

    try:
        entry = loader.read(name)
        if entry is None or not loader.load_callees(entry):
            return None
        if entry.needs_numba:
            start_runtime()
        return CompileResult._rebuild(target, entry.code, *pickle.loads(entry.description))
    except Exception:  # any invalid entry is recompiled and replaced
        return None


class _DiskCache:
    """Numba's cache interface (load_overload, save_overload) over files named by content."""

    def __init__(self, function: Compiled, kind: str, compilers: Any):
        from numba.core.caching import CompileResultCacheImpl  # private: the caller works without a cache if it moves

        self.kind, self.compilers, self.name, self.stamp = kind, compilers, function.full_name, function.stamp
        self._reduce = CompileResultCacheImpl.reduce
        self.cache_path = str(cache_folder())

    def entry_name(self, signature: Any) -> str:
        backend = NUMBA if self.compilers is None else FAST
        key = f"{backend}|{self.name}|{self.stamp}|{signature!r}|{_classes(signature)}|{loader.processor()}"
        return f"{self.name}-{hashlib.sha256(key.encode()).hexdigest()[:24]}.bin"

    def symbol_number(self, signature: Any) -> int:
        """Return a number for the symbol of the function, the same in all processes, whose entries call each other."""
        key = self.entry_name(signature)[len(self.name) + 1 :]
        return int(key[:12], 16)

    def _is_fragment(self, signature: Any) -> bool:
        return self.kind == FRAGMENT or (self.kind == UNIT and self.compilers.takes_arrays_by_value(signature))

    def _stands_alone(self, result: Any) -> bool:
        """Return whether callers find a function by its symbol; one whose wrapper is Numba's is linked into them."""
        return self.kind == UNIT or result.fndesc.mangled_name in loader.wrappers

    def load_overload(self, signature: Any, target: Any) -> Any:
        if self._is_fragment(signature):
            return None
        name = self.entry_name(signature)
        result = _load(name, target)
        if result is not None and self._stands_alone(result):
            _set_apart(result, name)
        return result

    def save_overload(self, signature: Any, result: Any) -> None:
        """Save a function; called once, when it has been compiled."""
        if (
            self._is_fragment(signature)
            or result.library.has_dynamic_globals
            or any(not part.can_cache for part in result.lifted)
        ):
            return
        name = self.entry_name(signature)
        if self._stands_alone(result):
            _set_apart(result, name)
        self._write(name, result)

    def _write(self, name: str, result: Any) -> None:
        from numba.core.serialize import dumps

        code, *description, environments = self._reduce(self, result)  # type: ignore[arg-type]
        used = tuple(one for one in environments if one.consts)  # the others would only import the modules of Numba's functions
        symbol = result.fndesc.mangled_name
        _save(name, symbol, loader.wrappers.get(symbol, ""), result.library, code, dumps((*description, used)))

    def flush(self) -> None:
        """Do nothing: Numba calls it when a function is recompiled, but entries are named by content."""
