"""What several tests need: the folder of real data, and Python processes of their own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """Where LIBSVM files are, said by the environment variable KERNLING_DATA."""
    folder = os.environ.get("KERNLING_DATA")
    if not folder:
        pytest.skip("set KERNLING_DATA to a folder with a9a.xz, a9a.t.xz, ijcnn1.xz and ijcnn1.t.xz")
    return Path(folder)


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
    """Let one process run all tests of a method, so that it is compiled once."""
    for item in items:
        values = getattr(getattr(item, "callspec", None), "params", {}).values()
        for value in values:
            learner = getattr(value, "learner", None)
            if isinstance(learner, str):
                item.add_marker(pytest.mark.xdist_group(learner))
                break
        else:
            if item.path.parent.name == "learners":
                item.add_marker(pytest.mark.xdist_group(item.path.stem.removeprefix("test_")))
