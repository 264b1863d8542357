"""kernling: nonlinear models that learn from a stream, one event at a time, in fixed memory."""

from importlib import import_module
from typing import TYPE_CHECKING

__version__ = "0.1.0"

if TYPE_CHECKING:
    from .core.kernels import kernel
    from .estimators.avm import AVMClassifier, AVMRegressor
    from .estimators.dualsvrg import DualSVRGClassifier, DualSVRGRegressor
    from .estimators.polk import POLKClassifier, POLKRegressor
    from .estimators.resolve import suggest_delta
    from .estimators.spa import SPAClassifier, SPAOneClass, SPARegressor
    from .models import load, save

# Loaded when first asked for, so that the command line answers at once.
_NAMES = {
    "AVMClassifier": "estimators.avm",
    "AVMRegressor": "estimators.avm",
    "DualSVRGClassifier": "estimators.dualsvrg",
    "DualSVRGRegressor": "estimators.dualsvrg",
    "POLKClassifier": "estimators.polk",
    "POLKRegressor": "estimators.polk",
    "SPAClassifier": "estimators.spa",
    "SPAOneClass": "estimators.spa",
    "SPARegressor": "estimators.spa",
    "kernel": "core.kernels",
    "load": "models",
    "save": "models",
    "suggest_delta": "estimators.resolve",
}
__all__ = sorted(_NAMES)


def __getattr__(name: str):
    if name not in _NAMES:
        raise AttributeError(f"module 'kernling' has no attribute {name!r}")
    value = getattr(import_module(f"kernling.{_NAMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
