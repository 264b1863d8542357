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
class Entry:
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
    Entry("auto", "AutoClassifier", "AutoRegressor", main=True),
    Entry("avm", "AVMClassifier", "AVMRegressor", main=True),
    Entry("polk", "POLKClassifier", "POLKRegressor", main=True),
    Entry("spa", "SPAClassifier", "SPARegressor", "SPAOneClass", main=True),
    Entry("dualsvrg", "DualSVRGClassifier", "DualSVRGRegressor", main=True),
    Entry("aogd", "AOGDClassifier", main=True),
    Entry("aogd_rank", "AOGDRanker", main=True),
    Entry("aogd_metric", "AOGDMetric", main=True),
    Entry("krls", "KRLSClassifier", "KRLSRegressor", main=True),
    Entry("passive_aggressive", "PassiveAggressiveClassifier", "PassiveAggressiveRegressor", "PassiveAggressiveOneClass"),
    Entry("oskl", "OSKLClassifier", "OSKLRegressor"),
    Entry("perceptron", "PerceptronClassifier", "PerceptronRegressor"),
    Entry("ogd", "OGDClassifier", "OGDRegressor"),
    Entry("norma", "NORMAClassifier", "NORMARegressor"),
    Entry("pegasos", "PegasosClassifier", "PegasosRegressor"),
    Entry("rbp", "RBPClassifier", "RBPRegressor"),
    Entry("forgetron", "ForgetronClassifier", "ForgetronRegressor"),
    Entry("nogd", "NOGDClassifier", "NOGDRegressor"),
    Entry("dualsgd", "DualSGDClassifier", "DualSGDRegressor"),
    Entry("budget_perceptron", "BudgetPerceptronClassifier"),
    Entry("projectron", "ProjectronClassifier", "ProjectronRegressor"),
    Entry("projectron_plus_plus", "ProjectronPlusPlusClassifier"),
    Entry("bpas", "BPASClassifier", "BPASRegressor"),
    Entry("bpann", "BPANNClassifier", "BPANNRegressor"),
    Entry("bogd", "BOGDClassifier", "BOGDRegressor"),
    Entry("bsgd", "BSGDClassifier", "BSGDRegressor"),
    Entry("npbsgd", "NPBSGDClassifier", "NPBSGDRegressor"),
    Entry("fogd", "FOGDClassifier", "FOGDRegressor"),
    Entry("last_point_ogd", "LastPointOGDClassifier"),
    Entry("buffered_ogd", "BufferedOGDClassifier"),
    Entry("oam", "OAMClassifier"),
    Entry("spamnet", "SPAMNetClassifier"),
    Entry("solam", "SOLAMClassifier"),
    Entry("opauc", "OPAUCClassifier"),
    Entry("koil", "KOILClassifier"),
)
METHODS = {entry.name: entry for entry in _ENTRIES}
DEFAULT = "auto"  # the method where none is asked for

# Estimators that wrap others and may be named in model files and results.
AROUND = {"StreamPipeline": "pipeline"}


def find(name: str) -> Entry:
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
