"""Published methods that the main methods are compared with, with the same interface."""

from importlib import import_module as _import_module
from typing import Any as _Any

from .. import registry as _registry

__all__ = sorted(_registry.public_names(main=False))


def __getattr__(name: str) -> _Any:
    names = _registry.public_names(main=False)
    if name not in names:
        raise AttributeError(f"module 'kernling.baselines' has no attribute {name!r}")
    return getattr(_import_module(f"kernling.{names[name]}"), name)


def __dir__() -> list[str]:
    return list(_registry.public_names(main=False))
