"""What several tests need: the folder of real data, and Python processes of their own."""

import gc
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy is imported: one thread for each of the processes

import contract
import scheduling

SOURCES = Path(__file__).parents[1] / "src"
# children import the code under test, whatever is installed
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (str(SOURCES), os.environ.get("PYTHONPATH"))))

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as shells do for what runs in the background, and children inherit it
    signal.signal(signal.SIGINT, signal.default_int_handler)


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


@pytest.fixture(scope="session")
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


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    return scheduling.ByMethod(config, log)


def pytest_collection_modifyitems(items):
    """Put tests in the order in which processes should begin with them; say what each has to do with the contract."""
    items.sort(key=lambda item: scheduling.turn_of(item.nodeid))
    for item in items:
        check = contract.check_of(item)
        if check:
            item.user_properties.append(("contract", (contract.estimator_of(item), check)))
        if check == "scikit_learn":
            for mark in item.iter_markers("xfail"):
                mark.kwargs["run"] = False  # to see two checks fail would take as long as all the others


def pytest_collection_finish():
    """Keep the garbage collector away from thousands of tests, which took a twelfth of the time of running them."""
    gc.collect()
    gc.freeze()
