"""Modules that scikit-learn imports only to have them at hand, put off until somebody uses them.

``import sklearn.base`` runs ``sklearn.utils.fixes``, which imports pandas and SciPy's statistics for functions that few calls
need.  They take twice as long as all the rest.  While that one module runs, and unless they are there already, others stand
in their place, which load them when one of their names is asked for.  Whoever else imports them gets the real ones.
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
PUT_OFF = ("pandas", "scipy.stats")


class _StandIn(ModuleType):
    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # what the import statement itself looks at
            raise AttributeError(name)
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
        return getattr(import_module(self.__name__), name)


@contextmanager
def _put_off(*names: str) -> Iterator[None]:
    absent = [name for name in names if name not in sys.modules]
    for name in absent:
        sys.modules[name] = _StandIn(name)
    try:
        yield
    finally:
        for name in absent:
            if isinstance(sys.modules.get(name), _StandIn):
                del sys.modules[name]


class _Unhurried(Loader):
    """Loads a module as its own loader does, meanwhile putting off what it imports."""

    def __init__(self, loader: Any):
        self.loader = loader

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self.loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        with _put_off(*PUT_OFF):
            self.loader.exec_module(module)


class _Finder(MetaPathFinder):
    def find_spec(self, fullname: str, path: Any, target: Any = None) -> ModuleSpec | None:
        if fullname != HASTY:
            return None
        sys.meta_path.remove(self)
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = _Unhurried(spec.loader)
        return spec


def install() -> None:
    """Wait for scikit-learn, unless it has been imported."""
    if HASTY not in sys.modules and not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())
