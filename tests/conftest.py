"""What several tests need: the folder of real data, and Python processes of their own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import contract
from kernling.estimators.learner import Learner


def pytest_addoption(parser):
    parser.addoption("--contract", action="store_true", help="write what the tests found into docs/contract.md")


def pytest_configure(config):
    if config.getoption("--contract") and not hasattr(config, "workerinput"):
        config.pluginmanager.register(contract.Recorder())


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """Where LIBSVM files are, said by the environment variable KERNLING_DATA."""
    folder = os.environ.get("KERNLING_DATA")
    if not folder:
        pytest.skip("set KERNLING_DATA to a folder with a9a.xz, a9a.t.xz, ijcnn1.xz and ijcnn1.t.xz")
    return Path(folder)


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    """An empty folder, in which the test runs."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def run_python():
    """Run a program in a fresh interpreter, with further environment variables; returns what it printed."""

    def run(program: str, *arguments: str, **environment: str) -> str:
        done = subprocess.run(
            [sys.executable, "-c", program, *arguments],
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


def pytest_collection_modifyitems(items):
    """Let one process run all tests of a method, so that it is compiled once; say what each has to do with the contract."""
    for item in items:
        check = contract.check_of(item)
        if check:
            item.user_properties.append(("contract", (contract.estimator_of(item), check)))
        if check == "scikit_learn":
            for mark in item.iter_markers("xfail"):
                mark.kwargs["run"] = False  # to see two checks fail would take as long as all the others
        values = getattr(getattr(item, "callspec", None), "params", {}).values()
        for value in values:
            learner = getattr(value, "learner", None)
            if isinstance(learner, Learner):
                item.add_marker(pytest.mark.xdist_group(learner.name))
                break
        else:
            if item.path.parent.name == "methods":
                item.add_marker(pytest.mark.xdist_group(item.path.stem.removeprefix("test_")))
