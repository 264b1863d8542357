"""The learner that the documentation adds: its file and one line of the registry are all that it takes."""

import sys
from doctest import DocTestParser, DocTestRunner
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import checks
import kernling
from kernling import baselines, registry
from kernling.cli.commands import app
from kernling.evaluate import search
from kernling.io import stream

FOLDER = Path(__file__).parents[1] / "docs" / "new_learner"
X = np.random.default_rng(0).uniform(-3, 3, size=(2000, 1))
Y = np.sin(X[:, 0])


def load(name, path):
    spec = spec_from_file_location(name, path)
    module = sys.modules[name] = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


METHOD = load("kernling.baselines.qklms", FOLDER / "qklms.py")  # as if it lay there
SLOW = load("oracles.slow_qklms", FOLDER / "slow_qklms.py")


@pytest.fixture(autouse=True)
def _registered(monkeypatch):
    monkeypatch.setitem(registry.METHODS, "qklms", registry.Method("qklms", "QKLMSRegressor"))


@pytest.fixture
def model():
    return METHOD.QKLMSRegressor(gamma=1.0, delta=0.2).fit(X, Y)


@pytest.mark.parametrize("case", SLOW.CASES["QKLMSRegressor"], ids=lambda case: case.params.get("kernel", "rbf"))
@pytest.mark.parametrize(
    "check", [checks.check_oracle, *checks.CHECKS, *checks.SAMPLED], ids=lambda check: check.__name__.removeprefix("check_")
)
def test_checks(check, case):
    check(METHOD.QKLMSRegressor, case)


def test_its_name_is_public():
    assert baselines.QKLMSRegressor is METHOD.QKLMSRegressor
    assert "QKLMSRegressor" in dir(baselines)


def test_it_is_listed_with_its_paper():
    output = CliRunner(env={"COLUMNS": "400"}).invoke(app, ["learners"]).output
    line = next(line for line in output.splitlines() if "QKLMSRegressor" in line)
    assert "QKLMS, quantised kernel least mean squares" in line
    assert "B. Chen, S. Zhao, P. Zhu, J. C. Principe: Quantized Kernel Least Mean Square Algorithm." in line


def test_its_parameters_are_documented():
    assert "delta : \"auto\" or float, default='auto'" in METHOD.QKLMSRegressor.__doc__
    assert "from kernling.baselines import QKLMSRegressor" in METHOD.QKLMSRegressor.__doc__


def test_its_example_prints_what_it_says():
    example = DocTestParser().get_doctest(METHOD.QKLMSRegressor.__doc__, {}, "QKLMSRegressor", None, None)
    assert example.examples[-1].want == "1.00\n"
    assert DocTestRunner().run(example).failed == 0


def test_it_learns(model):
    assert model.score(X, Y) > 0.99
    assert model.n_stored_ < 60


def test_it_is_saved_and_loaded(model, tmp_path):
    kernling.save(model, tmp_path / "model.kern")
    loaded = kernling.load(tmp_path / "model.kern")
    assert type(loaded) is METHOD.QKLMSRegressor
    checks.assert_identical(loaded.partial_fit(X[:100], Y[:100]), model.partial_fit(X[:100], Y[:100]))


def test_it_is_searched():
    found = search(METHOD.QKLMSRegressor(), stream(X, Y), candidates=9, first=200)
    assert set(found.params) == {"delta", "eta", "gamma"}
    assert found.model.t_ == len(X)
    assert found.model.score(X, Y) > 0.9


def test_it_merges():
    parts = [METHOD.QKLMSRegressor(gamma=1.0, delta=0.2).fit(X[i::2], Y[i::2]) for i in range(2)]
    model = kernling.merge(parts)
    points = np.sort(model.support_vectors_[:, 0])
    assert np.diff(points).min() >= 0.1 - 1e-9
    assert model.score(X, Y) > 0.98
