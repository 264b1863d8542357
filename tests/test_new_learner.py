"""The learner that the documentation adds: registered for the time of a test, it passes what every learner must pass."""

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import numpy as np
import pytest

import checks
import kernling
from kernling import registry

FOLDER = Path(__file__).parents[1] / "docs" / "new_learner"


def load(name, path):
    spec = spec_from_file_location(name, path)
    module = sys.modules[name] = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


METHOD = load("kernling.methods.qklms", FOLDER / "qklms.py")  # as if it lay there
SLOW = load("oracles.slow_qklms", FOLDER / "slow_qklms.py")


@pytest.fixture(autouse=True)
def _registered(monkeypatch):
    monkeypatch.setitem(registry.METHODS, "qklms", registry.Entry("qklms", "QKLMSRegressor"))


@pytest.mark.parametrize("case", SLOW.CASES["QKLMSRegressor"], ids=lambda case: case.params.get("kernel", "rbf"))
@pytest.mark.parametrize("check", [*checks.CHECKS, *checks.SAMPLED], ids=lambda check: check.__name__.removeprefix("check_"))
def test_checks(check, case):
    check(METHOD.QKLMSRegressor, case)


def test_it_learns():
    X = np.random.default_rng(0).uniform(-3, 3, size=(2000, 1))
    model = METHOD.QKLMSRegressor(gamma=1.0, delta=0.2).fit(X, np.sin(X[:, 0]))
    assert model.score(X, np.sin(X[:, 0])) > 0.99
    assert model.n_stored_ < 60


def test_it_merges():
    X = np.random.default_rng(0).uniform(-3, 3, size=(2000, 1))
    parts = [METHOD.QKLMSRegressor(gamma=1.0, delta=0.2).fit(X[i::2], np.sin(X[i::2, 0])) for i in range(2)]
    model = kernling.merge(parts)
    points = np.sort(model.support_vectors_[:, 0])
    assert np.diff(points).min() >= 0.1 - 1e-9
    assert model.score(X, np.sin(X[:, 0])) > 0.98
