"""Machine code of the compile cache, as functions that Python can call, without Numba, which takes longer to import.

Code is loaded by LLVM, into one place of the process.  What a function calls is found by its symbol, whoever has loaded it.
"""

from __future__ import annotations

import ctypes
import os
import pickle
import threading
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from .cache import read_entry
from .intrinsics import product_addresses
from .keys import shared_hash

OBJECTS = {"ndarray": np.ndarray, "TypeError": TypeError, "None": None, "True": True, "False": False}
_FASTCALL = 0x80  # Python passes arguments as an array
_lock = threading.RLock()
_loaded: set[str] = set()  # symbols of functions whose code is in the engine below
units: dict[str, str] = {}  # symbols of functions that are called by symbol, and the entries with their code
cannot_fail: set[str] = set()  # symbols of functions that never report an error
wrappers: dict[str, str] = {}  # symbols of functions, and of those that are called from Python or by address instead


class Entry(NamedTuple):
    """The content of a file of the cache."""

    symbol: str  # of the function
    wrapper: str  # symbol of what is called by address, or from Python (an entry of its own); empty if only Numba can make one
    callees: dict[str, str]  # symbols of the functions that it calls, and their entries
    needs_numba: bool  # whether the code calls Numba's runtime
    cannot_fail: bool
    code: Any  # as Numba stores it
    description: bytes  # what Numba needs to know of a function that is called from Python or linked into others


def read(name: str) -> Entry | None:
    """Return an entry; None if it is missing or invalid."""
    content = read_entry(shared_hash(), name)
    if content is None:
        return None
    try:
        entry = Entry(*pickle.loads(content))
    except Exception:  # whatever is invalid is compiled and written again
        return None
    if entry.cannot_fail:
        cannot_fail.add(entry.symbol)
    if entry.wrapper:
        wrappers[entry.symbol] = entry.wrapper
    return entry


def load(name: str) -> Entry | None:
    """Load the machine code of an entry and of all that it calls; return None if any of it is missing, or needs Numba."""
    entry = read(name)
    if entry is None or entry.needs_numba or not load_callees(entry):
        return None
    with _lock:
        _add(entry)
    return entry


def load_callees(entry: Entry) -> bool:
    """Load what an entry calls; return False if any of it is missing."""
    missing: dict[str, Entry] = {}
    if not _collect(entry, missing):
        return False
    if any(found.needs_numba for found in missing.values()):
        from .numba_backend import start_runtime

        start_runtime()  # without the lock below: a thread that has Numba's own, which this takes, may wait for it
    with _lock:
        link_runtime()
        for name, found in missing.items():
            if found.symbol not in units:
                _add(found)
                define(found.symbol, name, address_of(found.symbol))
    return True


def _collect(entry: Entry, missing: dict[str, Entry]) -> bool:
    """Read what has to be loaded for an entry, callees first; return False if any of it is not to be had."""
    for symbol, name in entry.callees.items():
        if symbol in units or name in missing:
            continue
        found = read(name)
        if found is None or found.symbol != symbol:  # not the one that the caller was compiled for
            return False
        if not _collect(found, missing):
            return False
        missing[name] = found
    return True


def define(symbol: str, entry: str, address: int) -> None:
    """Let all code that is loaded later find a function by its symbol."""
    from llvmlite import binding

    binding.add_symbol(symbol, address)
    units[symbol] = entry


@cache
def _engine() -> Any:
    from llvmlite import binding

    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    target = binding.Target.from_triple(binding.get_process_triple()).create_target_machine(jit=True)
    return binding.create_mcjit_compiler(binding.parse_assembly(""), target)


def _add(entry: Entry) -> None:
    """Load an entry's machine code, once: a function may be called both from Python and by others."""
    from llvmlite import binding

    if entry.symbol in _loaded:
        return
    _, form, (content, _) = entry.code
    if form != "object":
        raise ValueError("an entry without machine code")
    _engine().add_object_file(binding.ObjectFileRef.from_data(content))
    _loaded.add(entry.symbol)


def address_of(symbol: str) -> int:
    """Return the address of a function that has been loaded."""
    engine = _engine()
    engine.finalize_object()
    return engine.get_function_address(symbol)


@cache
def link_runtime() -> None:
    """Define what machine code refers to besides functions of C and Python: some objects, and matrix products."""
    from llvmlite import binding

    for name, value in OBJECTS.items():
        binding.add_symbol(f"kernling_{name}", id(value))
    for letter, address in product_addresses().items():
        binding.add_symbol(f"kernling_{letter}gemm", address)


@cache
def processor() -> str:
    """Return what machine code depends on besides its source."""
    from llvmlite import binding

    settings = sorted(f"{name}={value}" for name, value in os.environ.items() if name.startswith("NUMBA_"))
    features = binding.get_host_cpu_features().flatten()
    return "|".join([binding.get_process_triple(), binding.get_host_cpu_name(), features, *settings])


# a prototype of our own: the attributes of ctypes.pythonapi are everybody's
_create = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)(
    ("PyCFunction_NewEx", ctypes.pythonapi)
)

_keep_for_ever = ctypes.PYFUNCTYPE(None, ctypes.py_object)(("Py_IncRef", ctypes.pythonapi))


class _Method(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("code", ctypes.c_void_p), ("flags", ctypes.c_int), ("doc", ctypes.c_char_p)]


def python_function(name: str, address: int) -> Callable:
    """Return the Python function whose code is there: see wrapper.py."""
    method = _Method(name.encode(), address, _FASTCALL, None)
    _keep_for_ever(method)  # Python reads it when the function ends, which may be after all modules at its exit
    return _create(ctypes.addressof(method), None, None)
