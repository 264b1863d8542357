"""Registry of all methods, used by the command line, tests, documentation and benchmarks.

A method is a file in methods/ or baselines/ and a line below: the public names of ``kernling`` and ``kernling.baselines``
follow from it.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .estimators.learner import Learner


@dataclass(frozen=True, init=False)
class Method:
    """A method: its name, which is also that of its file, and its estimator classes."""

    name: str
    estimators: tuple[str, ...]
    is_main: bool  # in methods/, and public in kernling itself; the others are in kernling.baselines

    def __init__(self, name: str, *estimators: str, main: bool = False):
        self.__dict__.update(name=name, estimators=estimators, is_main=main)

    @property
    def place(self) -> str:
        """Name of the method's module, relative to kernling."""
        return f"{'methods' if self.is_main else 'baselines'}.{self.name}"

    @property
    def module(self) -> Any:
        """Import the method's module."""
        return import_module(f"kernling.{self.place}")

    def learner(self) -> Learner:
        """Return the method itself."""
        return self.module.LEARNER

    def classes(self) -> list[Any]:
        """Return its estimator classes."""
        return [getattr(self.module, name) for name in self.estimators]


_ENTRIES = (
    Method("auto", "AutoClassifier", "AutoRegressor", main=True),
    Method("avm", "AVMClassifier", "AVMRegressor", main=True),
    Method("polk", "POLKClassifier", "POLKRegressor", main=True),
    Method("spa", "SPAClassifier", "SPARegressor", "SPAOneClass", main=True),
    Method("dualsvrg", "DualSVRGClassifier", "DualSVRGRegressor", main=True),
    Method("aogd", "AOGDClassifier", main=True),
    Method("aogd_rank", "AOGDRanker", main=True),
    Method("aogd_metric", "AOGDMetric", main=True),
    Method("krls", "KRLSClassifier", "KRLSRegressor", main=True),
    Method("passive_aggressive", "PassiveAggressiveClassifier", "PassiveAggressiveRegressor", "PassiveAggressiveOneClass"),
    Method("oskl", "OSKLClassifier", "OSKLRegressor"),
    Method("perceptron", "PerceptronClassifier", "PerceptronRegressor"),
    Method("ogd", "OGDClassifier", "OGDRegressor"),
    Method("norma", "NORMAClassifier", "NORMARegressor"),
    Method("pegasos", "PegasosClassifier", "PegasosRegressor"),
    Method("rbp", "RBPClassifier", "RBPRegressor"),
    Method("forgetron", "ForgetronClassifier", "ForgetronRegressor"),
    Method("nogd", "NOGDClassifier", "NOGDRegressor"),
    Method("dualsgd", "DualSGDClassifier", "DualSGDRegressor"),
    Method("budget_perceptron", "BudgetPerceptronClassifier"),
    Method("projectron", "ProjectronClassifier", "ProjectronRegressor"),
    Method("projectron_plus_plus", "ProjectronPlusPlusClassifier"),
    Method("bpas", "BPASClassifier", "BPASRegressor"),
    Method("bpann", "BPANNClassifier", "BPANNRegressor"),
    Method("bogd", "BOGDClassifier", "BOGDRegressor"),
    Method("bsgd", "BSGDClassifier", "BSGDRegressor"),
    Method("npbsgd", "NPBSGDClassifier", "NPBSGDRegressor"),
    Method("fogd", "FOGDClassifier", "FOGDRegressor"),
    Method("last_point_ogd", "LastPointOGDClassifier"),
    Method("buffered_ogd", "BufferedOGDClassifier"),
    Method("oam", "OAMClassifier"),
    Method("spamnet", "SPAMNetClassifier"),
    Method("solam", "SOLAMClassifier"),
    Method("opauc", "OPAUCClassifier"),
    Method("koil", "KOILClassifier"),
)
METHODS = {entry.name: entry for entry in _ENTRIES}
DEFAULT = "auto"  # the method where none is asked for

# Estimators that wrap others and may be named in model files and results.
AROUND = {"StreamPipeline": "pipeline"}


def find(name: str) -> Method:
    """Return the entry of this name."""
    try:
        return METHODS[name]
    except KeyError:
        raise ValueError(f"there is no method {name!r}; the methods are {', '.join(METHODS)}") from None


def estimator(learner: str, name: str) -> Any:
    """Return the estimator class of this name, which belongs to this method or wraps it."""
    if name in AROUND:
        return getattr(import_module(f"kernling.{AROUND[name]}"), name)
    found = {cls.__name__: cls for cls in find(learner).classes()}
    if name not in found:
        raise ValueError(f"{learner} has no estimator {name}")
    return found[name]


def estimator_for(name: str, task: str) -> Any:
    """Return the estimator class of a method for a task."""
    for cls in find(name).classes():
        if cls.task == task:
            return cls
    raise ValueError(f"{name} has no estimator for {task}")


def public_names(*, main: bool) -> dict[str, str]:
    """Return the module of each estimator of the main methods, or of the others."""
    return {name: entry.place for entry in METHODS.values() if entry.is_main == main for name in entry.estimators}
