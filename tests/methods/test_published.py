"""``published()``: exactly the algorithm of the paper, checked event by event against the slow references.

The references take the settings that the estimator has: so these are listed here once more, as the papers have them.
"""

import inspect
from typing import Any, NamedTuple

import numpy as np
import pytest

import checks
import kernling
from kernling import baselines
from kernling.estimators.published import RUNNING
from oracles import CASES, Case, stream
from oracles.dualsvrg import DualSVRG

KERNEL = {"kernel": "rbf", "degree": 3}
AVM = {
    "eta": None,
    "max_cells": None,
    "zero_cells": True,
    "forget": None,
    "coverage": "sphere",
    "approximate": "always",
} | KERNEL
POLK = {"max_points": None, "forget": None, "step": "constant", "prune": "komp", "batch_size": 1} | KERNEL
SPA = {"max_points": None, "budget": None, "output": "average", "alpha": 1.0} | KERNEL
AOGD = {"output": "last", "features": "fourier", "forget": None, "lam": 0.0} | KERNEL
SVRG = {"max_points": None, "features": "fourier", "forget": None, "eta": None, "memory": 100, "period": 100} | KERNEL
PAIRS = {"gamma": 1.0, "eta": 0.5, "second_eta": 0.2, "refresh": 0.1, "n_components": 40}


class Paper(NamedTuple):
    cls: type
    stream: str
    given: dict[str, Any]
    expected: dict[str, Any]

    def __repr__(self) -> str:
        return "-".join([self.cls.__name__, self.stream, *(str(v) for v in self.given.values() if isinstance(v, str))])


def avm(kind, loss, **given):
    off = {"standardise_target": False} if kind == "regression" else {"class_weight": None}
    cls = kernling.AVMRegressor if kind == "regression" else kernling.AVMClassifier
    return Paper(cls, kind, {"gamma": 1.0, "lam": 0.05, "delta": 0.6, "loss": loss, **given}, AVM | {"output": "last"} | off)


def polk(kind, loss, **given):
    off = {"standardise_target": False} if kind == "regression" else {"class_weight": None}
    cls = kernling.POLKRegressor if kind == "regression" else kernling.POLKClassifier
    return Paper(cls, kind, {"gamma": 2.0, "eta": 0.5, "lam": 1e-3, "parsimony": 0.4, "loss": loss, **given}, POLK | off)


def spa(cls, kind, off, **given):
    return Paper(cls, kind, {"gamma": 1.0, "eta": 0.3, "beta": 3.0, **given}, SPA | off)


def svrg(kind, loss, oracle, **given):
    settings = {"gamma": 1.0, "lam": 0.01, "loss": loss, "oracle": oracle, **given}
    expected = SVRG | {"tau": 0.5, "n_components": 200, "budget": 100, "class_weight": None}
    return Paper(kernling.DualSVRGClassifier, kind, settings, expected)


PAPERS = [
    avm("binary", "hinge"),
    avm("binary", "logistic", coverage="printed_box", delta=0.8),
    avm("binary", "smooth_hinge", tau=0.5, output="average"),
    avm("binary", "logistic", approximate="margin"),
    avm("multiclass", "hinge", approximate="bernoulli", beta=3.0, rho=0.7),
    avm("multiclass", "logistic", output="suffix", suffix=0.3),
    avm("regression", "epsilon_insensitive", epsilon=0.1),
    avm("regression", "l1"),
    avm("regression", "l2", y_max=1.5, lam=0.3),
    polk("multiclass", "hinge"),
    polk("multiclass", "softmax", eta=4.0, batch_size=16, parsimony=0.05),
    polk("binary", "squared_hinge", eta=0.7, parsimony=0.1),
    polk("binary", "hinge", step="diminishing", eta=3.0, batch_size=8),
    polk("binary", "softmax", prune="random", eta=4.0, batch_size=8, parsimony=0.03),
    polk("regression", "l2", parsimony=0.1),
    spa(kernling.SPAClassifier, "binary", {"class_weight": None}),
    spa(kernling.SPAClassifier, "binary", {}, output="last", alpha=0.5),
    spa(kernling.SPARegressor, "regression", {"standardise_target": False}, epsilon=0.05, eta=0.2),
    spa(kernling.SPAOneClass, "oneclass", {"contamination": None}, mode="ball", radius=0.6),
    spa(kernling.SPAOneClass, "oneclass", {"contamination": None}, mode="halfspace"),
    Paper(kernling.AOGDClassifier, "binary", PAIRS, AOGD | {"means": "single", "mean_events": None, "loss": "squared"}),
    Paper(kernling.AOGDClassifier, "binary", PAIRS | {"means": "class"}, AOGD | {"mean_events": None, "loss": "squared"}),
    Paper(kernling.AOGDRanker, "regression", PAIRS, AOGD),
    Paper(kernling.AOGDMetric, "multiclass", PAIRS, {"output": "last", "features": "fourier", "lam": 0.0, "loss": "hinge"}),
    svrg("binary", "smooth_hinge", "coverage", theta=0.7),
    svrg("binary", "logistic", "budget"),
    svrg("binary", "smooth_hinge", "always", n_components=60),
]
CLASSES = {paper.cls for paper in PAPERS}


@pytest.mark.parametrize("paper", PAPERS, ids=repr)
def test_it_is_the_published_algorithm(paper):
    model = paper.cls.published(random_state=4, **paper.given)
    settings = model.get_params(deep=False)
    expected = paper.expected | paper.given
    assert {name: settings[name] for name in expected} == expected
    case = Case(CASES[paper.cls.__name__][0].oracle, paper.stream, {**settings, **expected})
    checks.check_oracle(paper.cls, case)


def test_every_method_of_the_papers_is_here():
    main = {cls for cls in checks.estimators() if cls.__name__ in kernling.__all__}
    ours = {kernling.AutoClassifier, kernling.AutoRegressor, kernling.KRLSClassifier, kernling.KRLSRegressor}
    assert {cls for cls in checks.estimators() if hasattr(cls, "published")} == CLASSES
    assert main - CLASSES == ours | {kernling.DualSVRGRegressor}  # whose paper has no regression


@pytest.mark.parametrize("cls", sorted(CLASSES, key=lambda cls: cls.__name__), ids=lambda cls: cls.__name__)
def test_no_parameter_is_left_to_a_default_of_ours(cls):
    paper = cls.published_settings
    declared = {*paper.required, *paper.required_with, *paper.values, *paper.choices, *paper.off}
    assert declared | {name for name in RUNNING if name in cls.parameters} == set(cls.parameters)
    signature = inspect.signature(cls.published)
    assert all(parameter.kind is parameter.KEYWORD_ONLY for parameter in signature.parameters.values())
    needed = {name for name, parameter in signature.parameters.items() if parameter.default is parameter.empty}
    assert needed == set(paper.required)
    assert cls.learner.citation in cls.published.__doc__


def test_what_the_paper_does_not_say_must_be_given():
    with pytest.raises(TypeError, match=r"requires lam and delta, for which the paper has no value"):
        kernling.AVMClassifier.published(gamma=1.0)
    with pytest.raises(TypeError, match="requires gamma, lam and delta, for"):
        kernling.AVMClassifier.published()
    with pytest.raises(TypeError, match="requires theta"):
        kernling.DualSVRGClassifier.published(gamma=1.0, lam=0.1, oracle="coverage")
    assert kernling.DualSVRGClassifier.published(gamma=1.0, lam=0.1, oracle="always").oracle == "always"


def test_what_is_not_in_the_paper_is_refused():
    settings = {"gamma": 1.0, "lam": 0.1, "delta": 0.5}
    with pytest.raises(TypeError, match=r"max_cells, which it sets to None .* set_params\(max_cells=500\)"):
        kernling.AVMClassifier.published(**settings, max_cells=500)
    with pytest.raises(ValueError, match=r"loss = 'hinge', 'smooth_hinge', 'logistic', which are in the paper, but not 'l2'"):
        kernling.AVMClassifier.published(**settings, loss="l2")
    with pytest.raises(TypeError, match="has no parameter 'gama'; it has gamma, lam"):
        kernling.AVMClassifier.published(**settings, gama=1.0)
    with pytest.raises(AttributeError, match="DualSVRGRegressor has no published settings"):
        kernling.DualSVRGRegressor.published  # noqa: B018


def test_an_instance_gives_a_new_estimator():
    model = kernling.POLKClassifier(eta=1.0)
    other = model.published(gamma=1.0, eta=2.0, lam=0.0, parsimony=0.1)
    assert (type(other), model.eta, other.eta) == (kernling.POLKClassifier, 1.0, 2.0)


# ---------------------------------------------------------------------- sentences of the documentation


def test_without_cells_avm_is_kernel_pegasos():
    X, y = stream("binary", 400, seed=1)
    avm = kernling.AVMClassifier.published(gamma=1.5, lam=0.02, delta=0.0)
    pegasos = baselines.PegasosClassifier(gamma=1.5, lam=0.02)
    method = {"method": "decision_function", "classes": [0, 1]}
    np.testing.assert_allclose(avm.predict_then_learn(X, y, **method), pegasos.predict_then_learn(X, y, **method), atol=1e-10)
    assert avm.n_support_ == pegasos.n_support_


def test_with_steps_always_taken_spa_is_passive_aggressive():
    X, y = stream("binary", 400, seed=2)
    spa = kernling.SPAClassifier.published(gamma=1.5, eta=0.3, alpha=1e-9, beta=1e-9, output="last")
    pa = baselines.PassiveAggressiveClassifier(gamma=1.5, C=0.3)
    method = {"method": "decision_function", "classes": [0, 1]}
    np.testing.assert_allclose(spa.predict_then_learn(X, y, **method), pa.predict_then_learn(X, y, **method), atol=1e-10)


@pytest.mark.parametrize("loss", ["hinge", "softmax", "squared_hinge"])
def test_without_an_error_ball_polk_is_functional_gradient_descent(loss):
    X, y = stream("binary", 200, seed=3)
    polk = kernling.POLKClassifier.published(gamma=4.0, eta=0.5, lam=0.01, parsimony=0.0, loss=loss)
    scores = polk.predict_then_learn(X, y, method="decision_function", classes=[0, 1])
    K, a, signs = np.exp(-4.0 * ((X[:, None] - X[None]) ** 2).sum(axis=2)), np.zeros(200), 2.0 * y - 1.0
    slopes = {
        "hinge": lambda m: -1.0 if m < 1.0 else 0.0,
        "softmax": lambda m: -1.0 / (1.0 + np.exp(m)),
        "squared_hinge": lambda m: -max(0.0, 1.0 - m),
    }
    for t in range(200):
        f = K[t] @ a
        assert scores[t] == pytest.approx(f, abs=1e-6)
        a *= 1.0 - 0.5 * 0.01
        a[t] -= 0.5 * signs[t] * slopes[loss](signs[t] * f)


def test_with_random_features_in_place_of_the_kernel_all_oracles_of_dualsvrg_agree():
    """The reference with features for both parts: the kernel part is the same function of the same events."""
    X, y = stream("binary", 250, seed=4)
    params = kernling.DualSVRGClassifier.published(gamma=1.0, lam=0.01, oracle="budget", random_state=0).get_params()

    class InFeatures(DualSVRG):
        def kernel(self, points, x):
            return np.array([self.z(p) @ self.z(x) for p in points])

    runs = []
    for oracle in ("budget", "always"):
        model = InFeatures({**params, "oracle": oracle}, 3, 1)
        for x, target in zip(X, 2.0 * y - 1.0, strict=True):
            model.learn(x, target, 1.0, 0.0)
        runs.append([model.scores(x)[0] for x in X])
    np.testing.assert_allclose(runs[0], runs[1], atol=1e-12)
