"""Published methods that the five main ones are compared with, in the same shape."""

from importlib import import_module

_NAMES = {
    "BufferedOGDClassifier": "buffered_ogd",
    "DualSGDClassifier": "dualsgd",
    "DualSGDRegressor": "dualsgd",
    "FOGDClassifier": "fogd",
    "FOGDRegressor": "fogd",
    "LastPointOGDClassifier": "last_point_ogd",
    "NOGDClassifier": "nogd",
    "NOGDRegressor": "nogd",
    "OAMClassifier": "oam",
    "OPAUCClassifier": "opauc",
    "OSKLClassifier": "oskl",
    "OSKLRegressor": "oskl",
    "PassiveAggressiveClassifier": "passive_aggressive",
    "PassiveAggressiveOneClass": "passive_aggressive",
    "PassiveAggressiveRegressor": "passive_aggressive",
    "SOLAMClassifier": "solam",
    "SPAMNetClassifier": "spamnet",
}
__all__ = sorted(_NAMES)


def __getattr__(name: str):
    if name not in _NAMES:
        raise AttributeError(f"module 'kernling.baselines' has no attribute {name!r}")
    return getattr(import_module(f"kernling.baselines.{_NAMES[name]}"), name)


def __dir__() -> list[str]:
    return list(__all__)
