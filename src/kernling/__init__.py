"""kernling: nonlinear models that learn from a stream, one event at a time, in fixed memory."""

from importlib import import_module as _import_module
from typing import Any as _Any

from . import registry as _registry

__version__ = "0.2.0"

_OTHERS = {
    "StreamPipeline": "pipeline",
    "kernel": "core.kernels",
    "load": "models",
    "merge": "merging.models",
    "save": "models",
    "to_onnx": "export",
}


def _names() -> dict[str, str]:
    return {**_registry.public_names(main=True), **_OTHERS}


__all__ = sorted(_names())


def __getattr__(name: str) -> _Any:
    """Import a public name on first access, so that the command line starts quickly."""
    names = _names()
    if name not in names:
        raise AttributeError(f"module 'kernling' has no attribute {name!r}")
    value = getattr(_import_module(f"kernling.{names[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*_names(), "__version__"]
