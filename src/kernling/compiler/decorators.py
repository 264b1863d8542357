"""Decorators for compiled code, and their disk cache.

Compiled functions are plain module-level functions on arrays, numbers and NamedTuples of them.  ``@jit`` compiles them
without the interpreter lock and with those floating-point freedoms that are safe here: sums may be reordered
(``reassoc``, which is what lets a reduction use vector instructions) and products fused (``contract``), but NaN and
infinity keep their meaning.  ``@jit_exact`` forbids reordering as well, for code whose rounding is part of the
algorithm.

Numba's own cache does not notice an edit in another file, and two processes that save at the same time can corrupt its entries.
This one is addressed by content: the name of an entry is a hash of everything that affects it (the compiled functions,
constants and fields of all functions that are compiled in), of the signature, of the processor and of the
library versions.  So an entry is either correct or not found, and writers never conflict; plain Python next to compiled code,
such as a merge rule, can change without recompilation.  With ``NUMBA_DISABLE_JIT=1`` the decorators do nothing.

While everything is found there, Numba is not imported: further files name the entries by the kinds of their arguments.
"""

from __future__ import annotations

import hashlib
import os
import sys
import types
from collections.abc import Callable
from functools import cached_property, update_wrapper
from typing import Any

from . import loader
from .backends import asked_for, fast_backend
from .cache import read_entry, write_entry
from .keys import Content, content_of, key_of, shared_hash
from .kinds import accepts, kind_of, text_of
from .versions import check_versions, cure


def _is_disabled() -> bool:
    if "numba" in sys.modules:
        return bool(sys.modules["numba"].config.DISABLE_JIT)
    return os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0")


COMPILED = not _is_disabled()
asked_for()  # an unknown backend is an error now, not when the first function is compiled


class _Flags(set):
    """Flags whose text is the same in all processes: Numba makes it part of symbols."""

    def __repr__(self) -> str:
        return str(sorted(self))

    def copy(self) -> _Flags:
        return _Flags(self)


_EXACT = _Flags({"contract"})
_FREEDOMS = _Flags({"reassoc", "contract", "nsz", "arcp"})
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


def inner_exact(function: Callable) -> Callable:
    """Like ``inner``, for a function whose operations keep their order."""
    return _compile(function, _EXACT, function, kind=UNIT, **_INNER)


def inline(function: Callable) -> Callable:
    """Like ``inner``, but always inlined: for what is executed at every event."""
    return _compile(function, _FREEDOMS, function, kind=FRAGMENT, **_INNER, forceinline=True)


def pluggable(function: Callable) -> Callable:
    """Compile a function that is a field of a record (see records.py): compiled code calls it by its address."""
    return _compile(function, _FREEDOMS, function, **(_INNER | {"no_cfunc_wrapper": False}))


def jit_exact(function: Callable) -> Callable:
    """Compile a function whose operations keep their order (products may still be fused)."""
    return _compile(function, _EXACT, function, no_cfunc_wrapper=True)


def inline_exact(function: Callable) -> Callable:
    """Like ``inline``, for a function whose operations keep their order."""
    return _compile(function, _EXACT, function, kind=FRAGMENT, **_INNER, forceinline=True)


def bind(template: Callable, *, kind: str = ENTRY, exact: bool = False, **names: Callable) -> Callable:
    """Compile a copy of a plain function in which the given global names refer to the given compiled functions.

    This is how a driver's loop reaches a learner's step: the copy is a function of its own, so its machine code is
    cached like any other, which a function passed as an argument would not be.  If ``exact``, operations keep their order.
    """
    copy = types.FunctionType(template.__code__, {**template.__globals__, **names}, template.__name__)
    bound = next(iter(names.values()))
    owner = getattr(bound, "owner", bound)
    freedoms = _EXACT if exact else _FREEDOMS
    return _compile(copy, freedoms, owner, kind, **(_INNER if kind == UNIT else {"no_cfunc_wrapper": True}))


def entry_point(compiled: Callable, *arguments: Any) -> Callable:
    """Return the machine code for arguments of these types, to be called only with arguments of the same types.

    Determining the types of thirty arrays takes longer than learning an event, so single events skip it.
    """
    return compiled.entry(tuple(map(kind_of, arguments))) if isinstance(compiled, Compiled) else compiled


def _compile(function: Callable, freedoms: set[str], owner: Callable, kind: str = ENTRY, **options: Any) -> Callable:
    return Compiled(function, owner, kind, _options(freedoms, **options)) if COMPILED else function


def _options(freedoms: set[str], **options: Any) -> dict[str, Any]:
    """Return all that machine code depends on; Numba would let a callee inherit ``_nrt`` from its caller."""
    return {"_nrt": True, "fastmath": freedoms, "nogil": True, "error_model": "numpy", **options}


def _numba_backend() -> Any:
    """Return the module that compiles, if it knows the version of Numba that is installed."""
    check_versions()
    try:
        from . import numba_backend
    except ImportError as error:
        raise ImportError(f"Numba lacks a part that kernling needs ({error}): {cure('numba')}") from error
    return numba_backend


class Compiled:
    """A compiled function.

    Its machine code is loaded at the first call with arguments of given kinds, or compiled by Numba, which is imported then.
    """

    def __init__(self, function: Callable, owner: Callable, kind: str, options: dict[str, Any]):
        update_wrapper(self, function)
        self.py_func, self.owner, self.kind, self.options = function, owner, kind, options
        self.freedoms, self.counts_references = options["fastmath"], options["_nrt"]
        self.full_name = f"{owner.__module__}.{owner.__name__}.{function.__name__}"
        self._count = function.__code__.co_argcount
        self.known_key: str | None = None  # see keys.py
        self._entries: dict[tuple, Callable] = {}
        self._addresses: dict[tuple, int] = {}

    @cached_property
    def content(self) -> Content:
        """What the function consists of."""
        return content_of(f"{self.full_name} {self.kind}", self.py_func, self.options)

    @cached_property
    def stamp(self) -> str:
        """A hash of all that is compiled into the function."""
        return key_of(self)

    @property
    def dispatcher(self) -> Any:
        """Numba's object for the function."""
        return _numba_backend().dispatcher_of(self, fast_backend())

    @property
    def _numba_type_(self) -> Any:
        """Numba's type of the function, when compiled code refers to it."""
        return self.dispatcher._numba_type_

    def __call__(self, *arguments: Any) -> Any:
        if len(arguments) < self._count:
            arguments += (self.py_func.__defaults__ or ())[len(arguments) - self._count :]
        return self.entry(tuple(map(kind_of, arguments)))(*arguments)

    def entry(self, kinds: tuple) -> Callable:
        """Return the function for arguments of these kinds."""
        entry = self._entries.get(kinds)
        if entry is None:
            if self.options.get("no_cpython_wrapper"):
                raise TypeError(f"{self.__name__} can be called only by compiled code")  # type: ignore[attr-defined]
            entry = self._entries[kinds] = self._accepting(kinds) or self._new_entry(kinds)
        return entry

    def _new_entry(self, kinds: tuple) -> Callable:
        address = self._found(kinds)
        return self._compiled(kinds) if address is None else loader.python_function(self.py_func.__name__, address)

    def _accepting(self, kinds: tuple) -> Callable | None:
        """Return the function for the same arguments of which some are read-only: it writes to none of these."""
        known = list(self._entries.items())  # other threads may add some
        return next((entry for one, entry in known if all(map(accepts, one, kinds))), None)

    def address(self, kinds: tuple) -> int:
        """Return the address of the machine code for arguments of these kinds."""
        if kinds not in self._addresses:
            address = self._found(kinds)
            self._addresses[kinds] = self._compiled(kinds) if address is None else address
        return self._addresses[kinds]

    def _found(self, kinds: tuple) -> int | None:
        """Return the address of what is called from Python or by address, if the cache has it, and Numba is not needed."""
        try:
            name = read_entry(shared_hash(), self._key(kinds))
            entry = None if name is None else loader.load(name.decode())
            return loader.address_of(entry.wrapper) if entry is not None and entry.wrapper else None
        except Exception:  # llvmlite has changed: Numba knows how to load code, or compiles
            return None

    def _key(self, kinds: tuple) -> str:
        text = "|".join([self.full_name, self.stamp, loader.processor(), asked_for(), *map(text_of, kinds)])
        return f"{self.full_name}-{hashlib.sha256(text.encode()).hexdigest()[:24]}.name"

    def _compiled(self, kinds: tuple) -> Any:
        """Return the function, or its address, from Numba, and remember where it has been saved."""
        found, name = _numba_backend().compiled(self, kinds)
        if name:
            write_entry(shared_hash(), self._key(kinds), name.encode())
        return found

    def overload(self, signature: tuple) -> Any:
        """Return Numba's result of compiling the function for arguments of these types."""
        overloads = self.dispatcher.overloads
        if signature not in overloads:
            self.dispatcher.compile(signature)
        return overloads[signature]
