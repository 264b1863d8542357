"""Deferred import of modules that scikit-learn, SciPy and Numba import but rarely use.

``import sklearn`` imports pandas, narwhals, joblib and SciPy's statistics, special functions and linear algebra, and
``import scipy.sparse`` NumPy's masked arrays, polynomials and tools for tests and Fortran, for functions that few calls need.
They take longer than all the rest.  While such a hasty module runs, they are replaced by placeholders, unless they have been
imported already; a placeholder imports the module when one of its attributes is used.  Some functions and classes are imported
by name; they have placeholders, too, which import the module when they are used.  All other imports get the modules.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

_PARTS = ("numpy.ctypeslib", "numpy.f2py", "numpy.ma", "numpy.polynomial", "numpy.testing")
HASTY = {
    "sklearn": (
        *("pandas", "narwhals", "narwhals.stable", "narwhals.stable.v2", "joblib"),
        *("scipy.linalg", "scipy.special", "scipy.stats", "scipy.sparse.linalg", "scipy.sparse.csgraph", *_PARTS),
    ),
    "sklearn.utils.fixes": ("sklearn.utils.parallel",),  # which needs joblib at once
    "sklearn.preprocessing._data": ("scipy.stats", "scipy.special"),
    "sklearn.preprocessing._polynomial": ("scipy.interpolate", "scipy.special"),
    "sklearn.externals._numpydoc.docscrape": ("pydoc",),
    "sklearn.datasets": ("joblib", "scipy.io", "scipy.linalg"),
    "scipy._lib._docscrape": ("pydoc",),
    "scipy._lib._testutils": ("subprocess",),
    "scipy._lib.array_api_compat.numpy": _PARTS,  # copies all names of NumPy
    "numba": ("yaml",),
}
NAMES = {
    "joblib": {"Memory", "cpu_count"},
    "scipy.interpolate": {"BSpline"},
    "scipy.io": {"loadmat"},
    "scipy.sparse.csgraph": {"laplacian"},
    "scipy.sparse.linalg": {"cg", "LinearOperator"},
    "scipy.special": {"boxcox", "comb", "inv_boxcox"},
    "sklearn.utils.parallel": {"_get_threadpool_controller"},
}
_KEPT = "_kernling_imported"  # where a placeholder keeps the module


class _Placeholder(ModuleType):
    def __getattr__(self, name: str) -> Any:
        deferred = sys.modules.get(self.__name__) is self
        if deferred and name == "__path__":
            return _Path(self)
        if name.startswith("__") and name != "__path__":  # attributes that the import statement itself reads
            raise AttributeError(name)
        if deferred and name in NAMES.get(self.__name__, ()):
            return _Named(self, name)
        return getattr(_imported(self), name)


class _Path(list):
    """Where the modules of a package are; the package is imported when one of them is searched for."""

    def __init__(self, placeholder: ModuleType):
        super().__init__()
        self.placeholder = placeholder

    def __iter__(self) -> Iterator[str]:
        return iter(_imported(self.placeholder).__path__)


class _Named:
    """A function or class of a module, under the name that the hasty module gives it."""

    def __init__(self, placeholder: ModuleType, name: str):
        self._placeholder, self._name = placeholder, name

    def __call__(self, *arguments: Any, **more: Any) -> Any:
        return getattr(_imported(self._placeholder), self._name)(*arguments, **more)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(getattr(_imported(self._placeholder), self._name), name)


def _imported(placeholder: ModuleType) -> ModuleType:
    """Return the module itself."""
    if _KEPT not in vars(placeholder):
        _remove(placeholder)
        vars(placeholder)[_KEPT] = import_module(placeholder.__name__)
    return vars(placeholder)[_KEPT]


def _remove(placeholder: ModuleType, *, stays: bool = False) -> None:
    """Remove a placeholder from the imported modules and from its parent, if it is still there.

    It may stay in a parent that does not import its modules by itself: after the hasty import, they would have been there.
    """
    name = placeholder.__name__
    if sys.modules.get(name) is placeholder:
        del sys.modules[name]
    parent, _, child = name.rpartition(".")
    names = vars(sys.modules.get(parent, placeholder))
    if names.get(child) is placeholder and not (stays and "__getattr__" not in names):
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
        for placeholder in reversed(placeholders.values()):
            _remove(placeholder, stays=True)


class _DeferringLoader:
    """Loads a module with its own loader, while the imports of some modules are deferred."""

    def __init__(self, loader: Any):
        self.loader = loader

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self.loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        spec: Any = module.__spec__
        spec.loader = module.__loader__ = self.loader
        with _deferred(*HASTY[module.__name__]):
            self.loader.exec_module(module)


class _Finder:
    def find_spec(self, fullname: str, path: Any, target: Any = None) -> ModuleSpec | None:
        if fullname not in HASTY:
            return None
        spec: Any = PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = _DeferringLoader(spec.loader)
        return spec


def install() -> None:
    """Defer the imports when a hasty module is imported, unless it has been imported already."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())
