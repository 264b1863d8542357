"""All methods by name: the command line, the tests, the documentation and the benchmarks find them here and nowhere else."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from .learners.base import Learner


class Entry(NamedTuple):
    module: str  # of the learner, below kernling
    estimators: tuple[str, ...]  # "module:Class", below kernling

    @property
    def is_main(self) -> bool:
        """Whether it is one of the five methods; the others are what these are compared with."""
        return self.module.startswith("learners.")

    def learner(self) -> Learner:
        """The method itself."""
        return import_module(f"kernling.{self.module}").LEARNER

    def classes(self) -> list[type]:
        """Its estimator classes."""
        pairs = (path.split(":") for path in self.estimators)
        return [getattr(import_module(f"kernling.{module}"), name) for module, name in pairs]


METHODS = {
    "avm": Entry("learners.avm", ("estimators.avm:AVMClassifier", "estimators.avm:AVMRegressor")),
    "polk": Entry("learners.polk", ("estimators.polk:POLKClassifier", "estimators.polk:POLKRegressor")),
    "spa": Entry("learners.spa", ("estimators.spa:SPAClassifier", "estimators.spa:SPARegressor", "estimators.spa:SPAOneClass")),
    "dualsvrg": Entry("learners.dualsvrg", ("estimators.dualsvrg:DualSVRGClassifier", "estimators.dualsvrg:DualSVRGRegressor")),
    "aogd": Entry("learners.aogd", ("estimators.aogd:AOGDClassifier",)),
    "aogd_rank": Entry("learners.aogd_rank", ("estimators.aogd:AOGDRanker",)),
    "aogd_metric": Entry("learners.aogd_metric", ("estimators.aogd:AOGDMetric",)),
    "passive_aggressive": Entry(
        "baselines.passive_aggressive",
        (
            "baselines.passive_aggressive:PassiveAggressiveClassifier",
            "baselines.passive_aggressive:PassiveAggressiveRegressor",
            "baselines.passive_aggressive:PassiveAggressiveOneClass",
        ),
    ),
    "oskl": Entry("baselines.oskl", ("baselines.oskl:OSKLClassifier", "baselines.oskl:OSKLRegressor")),
    "perceptron": Entry(
        "baselines.perceptron", ("baselines.perceptron:PerceptronClassifier", "baselines.perceptron:PerceptronRegressor")
    ),
    "ogd": Entry("baselines.ogd", ("baselines.ogd:OGDClassifier", "baselines.ogd:OGDRegressor")),
    "norma": Entry("baselines.norma", ("baselines.norma:NORMAClassifier", "baselines.norma:NORMARegressor")),
    "pegasos": Entry("baselines.pegasos", ("baselines.pegasos:PegasosClassifier", "baselines.pegasos:PegasosRegressor")),
    "rbp": Entry("baselines.rbp", ("baselines.rbp:RBPClassifier",)),
    "forgetron": Entry("baselines.forgetron", ("baselines.forgetron:ForgetronClassifier",)),
    "nogd": Entry("baselines.nogd", ("baselines.nogd:NOGDClassifier", "baselines.nogd:NOGDRegressor")),
    "dualsgd": Entry("baselines.dualsgd", ("baselines.dualsgd:DualSGDClassifier", "baselines.dualsgd:DualSGDRegressor")),
    "budget_perceptron": Entry("baselines.budget_perceptron", ("baselines.budget_perceptron:BudgetPerceptronClassifier",)),
    "projectron": Entry(
        "baselines.projectron", ("baselines.projectron:ProjectronClassifier", "baselines.projectron:ProjectronRegressor")
    ),
    "projectron_plus_plus": Entry(
        "baselines.projectron_plus_plus", ("baselines.projectron_plus_plus:ProjectronPlusPlusClassifier",)
    ),
    "bpas": Entry("baselines.bpas", ("baselines.bpas:BPASClassifier", "baselines.bpas:BPASRegressor")),
    "bpann": Entry("baselines.bpann", ("baselines.bpann:BPANNClassifier", "baselines.bpann:BPANNRegressor")),
    "bogd": Entry("baselines.bogd", ("baselines.bogd:BOGDClassifier", "baselines.bogd:BOGDRegressor")),
    "bsgd": Entry("baselines.bsgd", ("baselines.bsgd:BSGDClassifier", "baselines.bsgd:BSGDRegressor")),
    "npbsgd": Entry("baselines.npbsgd", ("baselines.npbsgd:NPBSGDClassifier", "baselines.npbsgd:NPBSGDRegressor")),
    "fogd": Entry("baselines.fogd", ("baselines.fogd:FOGDClassifier", "baselines.fogd:FOGDRegressor")),
    "last_point_ogd": Entry("baselines.last_point_ogd", ("baselines.last_point_ogd:LastPointOGDClassifier",)),
    "buffered_ogd": Entry("baselines.buffered_ogd", ("baselines.buffered_ogd:BufferedOGDClassifier",)),
    "oam": Entry("baselines.oam", ("baselines.oam:OAMClassifier",)),
    "spamnet": Entry("baselines.spamnet", ("baselines.spamnet:SPAMNetClassifier",)),
    "solam": Entry("baselines.solam", ("baselines.solam:SOLAMClassifier",)),
    "opauc": Entry("baselines.opauc", ("baselines.opauc:OPAUCClassifier",)),
    "koil": Entry("baselines.koil", ("baselines.koil:KOILClassifier",)),
}


# Estimators around others, which a model file or a result may name, too.
AROUND = {"StreamPipeline": "pipeline"}


def estimator(learner: str, name: str) -> type:
    """The estimator class of this name, of this learner or around it."""
    if name in AROUND:
        return getattr(import_module(f"kernling.{AROUND[name]}"), name)
    return {cls.__name__: cls for cls in find(learner).classes()}[name]


def find(name: str) -> Entry:
    """The entry of this name."""
    try:
        return METHODS[name]
    except KeyError:
        raise ValueError(f"no learner is called {name!r}; there are {', '.join(METHODS)}") from None


def estimator_for(name: str, task: str) -> type:
    """The estimator class of a method for a task."""
    for cls in find(name).classes():
        if cls.task == task:  # type: ignore[attr-defined]
            return cls
    raise ValueError(f"{name} has no estimator for {task}")
