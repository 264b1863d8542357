"""Published methods that the five main ones are compared with, in the same shape."""

from importlib import import_module

_NAMES = {
    "BOGDClassifier": "bogd",
    "BOGDRegressor": "bogd",
    "BPANNClassifier": "bpann",
    "BPANNRegressor": "bpann",
    "BPASClassifier": "bpas",
    "BPASRegressor": "bpas",
    "BSGDClassifier": "bsgd",
    "BSGDRegressor": "bsgd",
    "BudgetPerceptronClassifier": "budget_perceptron",
    "BufferedOGDClassifier": "buffered_ogd",
    "DualSGDClassifier": "dualsgd",
    "DualSGDRegressor": "dualsgd",
    "FOGDClassifier": "fogd",
    "FOGDRegressor": "fogd",
    "ForgetronClassifier": "forgetron",
    "KOILClassifier": "koil",
    "LastPointOGDClassifier": "last_point_ogd",
    "NOGDClassifier": "nogd",
    "NOGDRegressor": "nogd",
    "NORMAClassifier": "norma",
    "NORMARegressor": "norma",
    "NPBSGDClassifier": "npbsgd",
    "NPBSGDRegressor": "npbsgd",
    "OAMClassifier": "oam",
    "OGDClassifier": "ogd",
    "OGDRegressor": "ogd",
    "OPAUCClassifier": "opauc",
    "OSKLClassifier": "oskl",
    "OSKLRegressor": "oskl",
    "PassiveAggressiveClassifier": "passive_aggressive",
    "PassiveAggressiveOneClass": "passive_aggressive",
    "PassiveAggressiveRegressor": "passive_aggressive",
    "PegasosClassifier": "pegasos",
    "PegasosRegressor": "pegasos",
    "PerceptronClassifier": "perceptron",
    "PerceptronRegressor": "perceptron",
    "ProjectronClassifier": "projectron",
    "ProjectronPlusPlusClassifier": "projectron_plus_plus",
    "ProjectronRegressor": "projectron",
    "RBPClassifier": "rbp",
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
