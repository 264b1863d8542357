"""Deferred import of modules that scikit-learn, SciPy and Numba import but rarely use.

``import sklearn`` imports pandas, narwhals and SciPy's statistics and special functions, and ``import scipy.sparse`` NumPy's
tools for tests and Fortran, for functions that few calls need.  They take longer than everything else.  While such a hasty
module runs, they are replaced by placeholders, unless they have been imported already; a placeholder imports the module when
one of its attributes is used.  All other imports get the modules.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

_TOOLS = ("numpy.f2py", "numpy.testing")
HASTY = {
    "sklearn": ("pandas", "narwhals", "narwhals.stable", "narwhals.stable.v2", "scipy.special", "scipy.stats", *_TOOLS),
    "scipy._lib.array_api_compat.numpy": _TOOLS,  # copies all names of NumPy
    "numba": ("yaml",),
}


class _Placeholder(ModuleType):
    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name != "__path__":  # attributes that the import statement itself reads
            raise AttributeError(name)
        _remove(self.__name__, self)
        return getattr(import_module(self.__name__), name)


def _remove(name: str, placeholder: ModuleType) -> None:
    """Remove a placeholder from the imported modules and from its parent, if it is still there."""
    if sys.modules.get(name) is placeholder:
        del sys.modules[name]
    parent, _, child = name.rpartition(".")
    if vars(sys.modules.get(parent, placeholder)).get(child) is placeholder:
        delattr(sys.modules[parent], child)


def _is_installed(name: str) -> bool:
    top = name.partition(".")[0]
    return top in sys.modules or PathFinder.find_spec(top) is not None


@contextmanager
def _deferred(*names: str) -> Iterator[None]:
    placeholders = {name: _Placeholder(name) for name in names if name not in sys.modules and _is_installed(name)}
    for name, placeholder in placeholders.items():
        sys.modules[name] = placeholder
        parent, _, child = name.rpartition(".")
        if parent:
            setattr(import_module(parent), child, placeholder)
    try:
        yield
    finally:
        for name, placeholder in reversed(placeholders.items()):
            _remove(name, placeholder)


class _DeferringLoader(Loader):
    """Loads a module with its own loader, while the imports of some modules are deferred."""

    def __init__(self, loader: Any):
        self.loader = loader

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self.loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        with _deferred(*HASTY[module.__name__]):
            self.loader.exec_module(module)


class _Finder(MetaPathFinder):
    def find_spec(self, fullname: str, path: Any, target: Any = None) -> ModuleSpec | None:
        if fullname not in HASTY:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = _DeferringLoader(spec.loader)
        return spec


def install() -> None:
    """Defer the imports when a hasty module is imported, unless it has been imported already."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())
