"""Importing and using kernling leaves other libraries and the process's settings as they were, and imports little."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from kernling import registry

# what a user may import besides
USUAL = (
    "numba scipy.stats scipy.linalg sklearn.datasets sklearn.preprocessing sklearn.utils.validation threadpoolctl pandas joblib"
)
IMPORT = "import kernling; kernling.AutoClassifier, kernling.StreamPipeline, kernling.load, kernling.merge"
MAIN = sorted(name for name, entry in registry.METHODS.items() if entry.is_main)
FIT = """
import numpy as np
from kernling import registry
X = np.random.default_rng(0).normal(size=(300, 4))
for name in {names}:
    for model in registry.METHODS[name].classes():
        if model.task in ("classification", "regression"):
            y = X[:, 0] * X[:, 1] > 0 if model.task == "classification" else X[:, 0] * X[:, 1]
            model().fit(X, y).predict(X)
"""
NUMBA_ALONE = """
import numba
import numpy as np

@numba.njit
def total(values):
    return values.sum()

total(np.ones(3))
"""
SCRIPT = Path(__file__).with_name("footprint.py")


class Process(NamedTuple):
    """What a process can see: the modules of other libraries, and a description of their attributes and of its settings."""

    modules: list[str]
    found: dict[str, object]


def process(program: str, modules: str = USUAL, **environment: str) -> Process:
    """Run a program, then import modules, in a process of its own."""
    done = subprocess.run(
        [sys.executable, str(SCRIPT), program],
        input=modules,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "2", "PYTHONHASHSEED": "0", **environment},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return Process(**json.loads(done.stdout))


def differences(program: str, other: str = "", **environment: str) -> dict[str, tuple[object, object]]:
    """Compare a process that runs a program before it imports other libraries with two that run one without kernling."""
    modules, found = process(program, **environment)
    others = [process(other, " ".join([USUAL, *modules]), **environment) for _ in range(2)]
    plain, again = (one.found for one in others)
    varies = {name for name in plain if plain[name] != again.get(name)}  # such as a time, or the name of a temporary file
    assert len(varies) < 10
    only_there = set(others[0].modules) - set(modules)  # imported by the other program
    apart = {name for name in plain if {name.partition(":")[0], name.replace(":", ".")} & only_there}
    names = (plain.keys() | found.keys()) - varies - apart
    return {name: (plain.get(name), found.get(name)) for name in sorted(names) if plain.get(name) != found.get(name)}


@pytest.mark.parametrize("program", [IMPORT, pytest.param("import kernling.serve.app", marks=pytest.mark.long)])
def test_importing_changes_nothing(program):
    assert differences(program) == {}


@pytest.mark.long
@pytest.mark.parametrize("names", [["auto"], MAIN], ids=" ".join)
def test_fitting_and_predicting_change_nothing(names, run_python):
    program = FIT.format(names=names)
    run_python(program)  # compiles
    assert differences(program) == {}


@pytest.mark.long
@pytest.mark.parametrize("names", [["perceptron"], MAIN], ids=" ".join)
def test_compiling_changes_what_numba_changes_when_it_compiles_alone(names, tmp_path):
    """Numba initialises itself at the first function, whoever compiles it."""
    assert differences(FIT.format(names=names), NUMBA_ALONE, KERNLING_CACHE=str(tmp_path)) == {}
    assert list(tmp_path.rglob("*.bin")), "something has been compiled"


def test_importing_the_package_imports_no_library(run_python):
    loaded = run_python("import sys; import kernling; print(*sys.modules)").split()
    assert not {"numpy", "scipy", "sklearn", "numba", "llvmlite", "typer", "rich"} & set(loaded)


@pytest.mark.parametrize("name", ["auto", *(pytest.param(name, marks=pytest.mark.long) for name in MAIN if name != "auto")])
def test_fitting_imports_little_besides_what_scikit_learn_imports(name, run_python):
    """Above all not Numba, and nothing of SciPy and NumPy."""
    program = FIT.format(names=[name])
    run_python(program)  # compiles
    loaded = set(run_python(f"{program}\nimport sys; print(*sys.modules)").split())
    floor = set(run_python("import sys, sklearn.base; print(*sys.modules)").split())
    packages = {module.partition(".")[0] for module in loaded - floor} - set(sys.stdlib_module_names)
    assert packages <= {"kernling", "llvmlite", "sklearn"}
    ours = {module for module in loaded - floor if module.startswith("sklearn.")}
    assert ours <= {"sklearn.utils._unique", "sklearn.utils.metaestimators", "sklearn.utils.multiclass"}
