"""The fuzzers, short by default; with ``-m long``, a million calls, 20,000 damaged files and 40,000 forged ones."""

import os
import subprocess
import sys

import numpy as np
import pytest

import kernling
from checks import estimators
from forgery import refuse_damaged
from fuzz import calls, files, swaps
from kernling import registry
from kernling.tables import Standardise

MAIN = [cls for cls in estimators() if registry.METHODS[cls.learner.name].is_main]
CALLS, FILES, SWAPS = 1_000_000, 20_000, 40_000
PLAIN = {"NUMBA_DISABLE_JIT": "1"}  # as plain Python, which checks indices
CHECKED = {"KERNLING_COMPILER": "numba", "NUMBA_BOUNDSCHECK": "1"}  # compiled code that checks them: only Numba's own can


def test_some_calls():
    assert calls.run(0, MAIN, 500) == 500


@pytest.mark.long
@pytest.mark.parametrize("cls", estimators(), ids=lambda cls: cls.__name__)
def test_a_million_calls(cls):
    share = CALLS // len(estimators()) + 1
    assert calls.run(1, [cls], share) >= share


def test_some_data_files(tmp_path):
    assert files.damage_data(tmp_path, 0, 200) == 200


@pytest.mark.long
@pytest.mark.parametrize("seed", range(1, 5))
def test_many_data_files(tmp_path, seed):
    assert files.damage_data(tmp_path, seed, FILES // 4) == FILES // 4


def test_some_entries_of_the_compile_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("KERNLING_CACHE", str(tmp_path / "cache"))
    assert files.damage_cache(0, 200) == 200


@pytest.mark.long
def test_many_entries_of_the_compile_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("KERNLING_CACHE", str(tmp_path / "cache"))
    assert files.damage_cache(1, FILES) == FILES


def whole_model(path):
    """The file of a run that stopped inside of a chunk, with an earlier model in it."""
    X = np.random.default_rng(0).normal(size=(40, 3))
    model = kernling.StreamPipeline([("scale", Standardise()), ("model", kernling.AVMClassifier(gamma=1.0, delta=1.0))])
    model.partial_fit(X, X[:, 0] > 0.0)
    kernling.models.save(model, path, {"target": "y"}, {"row": 40}, model)
    return path.read_bytes()


def test_some_model_files(tmp_path):
    path = tmp_path / "model.kern"
    refuse_damaged(whole_model(path), path, 100)


@pytest.mark.long
def test_many_model_files(tmp_path):
    path = tmp_path / "model.kern"
    refuse_damaged(whole_model(path), path, FILES)


READS = """
import numpy as np
from kernling.compiler import jit_exact
@jit_exact
def read(array, place):
    return array[place]
try:
    read(np.arange(4.0), 4)
except IndexError:
    print("refused")
"""


@pytest.mark.parametrize("how", [PLAIN, CHECKED], ids=["plain", "checked"])
def test_indices_are_checked(how, tmp_path):
    (tmp_path / "reads.py").write_text(READS)
    environment = {**os.environ, **how, "PYTHONPATH": os.pathsep.join(sys.path), "KERNLING_CACHE": str(tmp_path)}
    child = subprocess.run([sys.executable, tmp_path / "reads.py"], env=environment, capture_output=True, text=True, check=True)
    assert child.stdout == "refused\n"


def check_swaps(chosen, seed, forgeries, environment):
    outcome = swaps.run(chosen, seed, forgeries, **environment)
    assert not outcome.bad, "\n".join(outcome.bad)
    assert outcome.counts.total() == forgeries
    assert outcome.counts["refused"] > 0
    assert outcome.counts["used"] > 0


def test_some_swaps():
    check_swaps(["KRLSRegressor", "AVMClassifier", "AutoRegressor", "DualSVRGClassifier", "table"], 0, 40, {})


def test_some_swaps_in_plain_python():
    check_swaps(["KRLSClassifier", "POLKRegressor"], 0, 20, PLAIN)


@pytest.mark.long
@pytest.mark.parametrize("name", swaps.names())
@pytest.mark.parametrize(("share", "how"), [(0.9, {}), (0.05, PLAIN), (0.05, CHECKED)], ids=["compiled", "plain", "checked"])
def test_many_swaps(name, share, how, tmp_path_factory):
    if how is CHECKED:  # Numba's code that checks is not kept apart from that which does not
        how = how | {"KERNLING_CACHE": str(tmp_path_factory.getbasetemp() / "checked")}
    check_swaps([name], 1000, int(share * SWAPS / len(swaps.names())) + 1, how)
