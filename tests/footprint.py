"""What a process can see of other libraries and of its own settings, as text; tests/test_footprint.py compares processes.

    python footprint.py PROGRAM < MODULES

runs the program, imports the modules named in the standard input, and prints a JSON object: the modules of other libraries that
are there, and a description, the same in every process, of each of their attributes and of the process's settings.
"""

import builtins
import ctypes
import enum
import functools
import gc
import importlib
import json
import logging
import multiprocessing
import os
import random
import signal
import sys
import threading
import types
import warnings
from contextlib import suppress

OTHERS = ("numpy", "scipy", "sklearn", "numba", "llvmlite", "threadpoolctl", "joblib", "pandas")
PLAIN = (bool, int, float, complex, str, bytes, type(None), type(...), enum.Enum)
FUNCTIONS = (types.FunctionType, types.BuiltinFunctionType, types.MethodType, functools.partial)
COLLECTIONS = (list, tuple, set, frozenset)
# too long, or kept by the interpreter for itself
UNSTABLE = {"__builtins__", "__doc__", "__slotnames__", "__warningregistry__", "_abc_impl"}
LEFT_OVER = {"scipy.sparse._data:name"}  # a loop's variable, which depends on addresses


def describe(value: object) -> str:
    """Return a text that tells a value from another one in its place."""
    if isinstance(value, types.ModuleType):
        return f"module {value.__name__} {sys.modules.get(value.__name__) is value} {type(value).__qualname__}"
    if isinstance(value, type):
        return f"class {value.__module__}.{value.__qualname__}"
    if isinstance(value, PLAIN):
        return repr(value)
    if isinstance(value, COLLECTIONS) and all(isinstance(one, PLAIN) for one in value):
        return f"{type(value).__name__} {sorted(map(repr, value))}"
    if isinstance(value, FUNCTIONS):
        code = getattr(value, "__code__", None)
        place = (code.co_filename, code.co_firstlineno) if code else ""
        return f"{type(value).__name__} {getattr(value, '__module__', '')}.{getattr(value, '__qualname__', '')} {place}"
    return f"object of {type(value).__module__}.{type(value).__qualname__}"


def of_module(module: types.ModuleType) -> dict[str, str]:
    """Describe a module's attributes, and those of its classes."""
    found = {}
    for name, value in list(vars(module).items()):
        if name in UNSTABLE or f"{module.__name__}:{name}" in LEFT_OVER:
            continue
        found[f"{module.__name__}:{name}"] = describe(value)
        if isinstance(value, type) and value.__module__ == module.__name__:
            found |= {
                f"{module.__name__}:{name}.{attribute}": describe(one)
                for attribute, one in list(vars(value).items())
                if attribute not in UNSTABLE
            }
    return found


def settings() -> dict[str, object]:
    """Describe what the whole process shares."""
    import numpy as np
    import sklearn
    import threadpoolctl

    known = logging.Logger.manager.loggerDict.items()
    loggers = {name: one for name, one in known if isinstance(one, logging.Logger) and not name.startswith("kernling")}
    functions = {name: one for name, one in vars(ctypes.pythonapi).items() if hasattr(one, "restype")}
    return {
        "sys.meta_path": list(map(describe, sys.meta_path)),
        "sys.path_hooks": list(map(describe, sys.path_hooks)),
        "sys.path": sys.path,
        "excepthooks": [describe(sys.excepthook), describe(threading.excepthook), describe(sys.displayhook)],
        "builtins": sorted(vars(builtins)),
        "limits": [sys.getswitchinterval(), sys.getrecursionlimit(), gc.isenabled(), gc.get_threshold(), gc.get_freeze_count()],
        "signals": {str(one): describe(signal.getsignal(one)) for one in signal.valid_signals()},
        "environment": dict(os.environ),
        "warnings": list(map(str, warnings.filters)),
        "showwarning": describe(warnings.showwarning),
        "logging": {name: [one.level, len(one.handlers), one.disabled] for name, one in loggers.items()},
        "root logger": [logging.root.level, len(logging.root.handlers)],
        "multiprocessing": multiprocessing.get_start_method(allow_none=True),
        "random": hash(random.getstate()),
        "numpy": [str(np.geterr()), str(np.get_printoptions()), str(np.random.get_state()[2:])],
        "scikit-learn": sklearn.get_config(),
        "ctypes": {name: [str(one.restype), str(one.argtypes)] for name, one in functions.items()},
        "thread pools": sorted(threadpoolctl.threadpool_info(), key=lambda library: library["filepath"]),
        "threads": threading.active_count(),
    }


if __name__ == "__main__":
    random.seed(0)
    exec(sys.argv[1], {})
    for name in sys.stdin.read().split():
        with suppress(ImportError):  # a module that a library has created by itself
            importlib.import_module(name)
    found: dict[str, object] = settings()
    modules = {name: one for name, one in sys.modules.items() if name.partition(".")[0] in OTHERS}
    for module in list(modules.values()):
        found |= of_module(module)
    print(json.dumps({"modules": list(modules), "found": found}, default=str))
