"""Deferred import of modules that scikit-learn imports but rarely uses.

``import sklearn.base`` runs ``sklearn.utils.fixes``, which imports pandas and SciPy's statistics for functions that few calls
need.  They take twice as long as everything else.  While that module runs, they are replaced by placeholders, unless they have
been imported already; a placeholder imports the module when one of its attributes is used.  All other imports get the modules.
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

HASTY = "sklearn.utils.fixes"
DEFERRED = ("pandas", "scipy.stats")


class _Placeholder(ModuleType):
    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # attributes that the import statement itself reads
            raise AttributeError(name)
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
        return getattr(import_module(self.__name__), name)


@contextmanager
def _deferred(*names: str) -> Iterator[None]:
    absent = [name for name in names if name not in sys.modules]
    for name in absent:
        sys.modules[name] = _Placeholder(name)
    try:
        yield
    finally:
        for name in absent:
            if isinstance(sys.modules.get(name), _Placeholder):
                del sys.modules[name]


class _DeferringLoader(Loader):
    """Loads a module with its own loader, while the imports of some modules are deferred."""

    def __init__(self, loader: Any):
        self.loader = loader

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self.loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        with _deferred(*DEFERRED):
            self.loader.exec_module(module)


class _Finder(MetaPathFinder):
    def find_spec(self, fullname: str, path: Any, target: Any = None) -> ModuleSpec | None:
        if fullname != HASTY:
            return None
        sys.meta_path.remove(self)
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = _DeferringLoader(spec.loader)
        return spec


def install() -> None:
    """Defer the imports when scikit-learn is imported, unless it has been imported already."""
    if HASTY not in sys.modules and not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())
