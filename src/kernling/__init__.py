"""kernling: nonlinear models that learn from a stream, one event at a time, in fixed memory."""

from importlib import import_module
from typing import TYPE_CHECKING

__version__ = "0.1.0"

if TYPE_CHECKING:
    from .core.kernels import kernel as kernel
    from .estimators.aogd import AOGDClassifier as AOGDClassifier
    from .estimators.aogd import AOGDMetric as AOGDMetric
    from .estimators.aogd import AOGDRanker as AOGDRanker
    from .estimators.avm import AVMClassifier as AVMClassifier
    from .estimators.avm import AVMRegressor as AVMRegressor
    from .estimators.dualsvrg import DualSVRGClassifier as DualSVRGClassifier
    from .estimators.dualsvrg import DualSVRGRegressor as DualSVRGRegressor
    from .estimators.merging import merge as merge
    from .estimators.polk import POLKClassifier as POLKClassifier
    from .estimators.polk import POLKRegressor as POLKRegressor
    from .estimators.resolve import suggest_delta as suggest_delta
    from .estimators.spa import SPAClassifier as SPAClassifier
    from .estimators.spa import SPAOneClass as SPAOneClass
    from .estimators.spa import SPARegressor as SPARegressor
    from .models import load as load
    from .models import save as save
    from .pipeline import StreamPipeline as StreamPipeline

# Loaded when first asked for, so that the command line answers at once.
_NAMES = {
    "AOGDClassifier": "estimators.aogd",
    "AOGDMetric": "estimators.aogd",
    "AOGDRanker": "estimators.aogd",
    "AVMClassifier": "estimators.avm",
    "AVMRegressor": "estimators.avm",
    "DualSVRGClassifier": "estimators.dualsvrg",
    "DualSVRGRegressor": "estimators.dualsvrg",
    "POLKClassifier": "estimators.polk",
    "POLKRegressor": "estimators.polk",
    "SPAClassifier": "estimators.spa",
    "SPAOneClass": "estimators.spa",
    "SPARegressor": "estimators.spa",
    "StreamPipeline": "pipeline",
    "kernel": "core.kernels",
    "load": "models",
    "merge": "estimators.merging",
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
