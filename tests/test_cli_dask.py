"""kernling run --dask: files learned on a cluster from the command line."""

import os
import signal
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("distributed")

import psutil  # comes with it

import checks
import kernling
from commands import call
from kernling.cli.status import Status
from kernling.io import synthetic

ROWS = 1500
SETTINGS = ("--learner", "avm", "--set", "gamma=4", "--set", "delta=0.3", "--target", "label")


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    X, y = synthetic("checkerboard", 2 * ROWS).load()
    for part in range(2):
        rows = slice(part * ROWS, (part + 1) * ROWS)
        np.savetxt(f"{part}.csv", np.c_[X[rows], y[rows]], delimiter=",", header="a,b,label", comments="")
    return ["0.csv", "1.csv"]


@pytest.fixture(scope="module")
def address():
    from distributed import LocalCluster

    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        yield cluster.scheduler_address


def test_a_run_on_a_cluster(files, address):
    """A good run, then one with a damaged file, with and without --skip-bad."""
    output = call("run", *files, *SETTINGS, "--dask", address, "--rounds", 2, "--save", "m.kern").output
    assert f"{4 * ROWS:,}" in output
    model = kernling.load("m.kern")
    assert model.t_ == 4 * ROWS
    call("predict", "m.kern", "0.csv", "--output", "said.txt")
    with open("1.csv", "a") as file:
        file.write("1,2,3,4,5\n")
    output = call("run", *files, *SETTINGS, "--dask", address, "--save", "some.kern", code=1).output
    assert "1.csv: row 1501 has 5 columns, not 3" in output
    assert "use --skip-bad to skip such files" in output
    assert kernling.load("some.kern").t_ == ROWS  # nothing trained is lost
    output = call("run", *files, *SETTINGS, "--dask", address, "--skip-bad", "--save", "rest.kern").output
    assert "1.csv cannot be read and was skipped" in output
    assert kernling.load("rest.kern").t_ == ROWS


@pytest.mark.long
def test_ctrl_c_saves_what_is_merged_so_far(files, monkeypatch):
    """On a cluster of this machine, a terminal sends it to the workers as well."""
    sent, before = [], psutil.Process().children(recursive=True)

    def ctrl_c(line, progress):
        if progress.round == 2 and not sent:
            sent.append(progress)
            for process in set(psutil.Process().children(recursive=True)) - set(before):
                process.send_signal(signal.SIGINT)
            os.kill(os.getpid(), signal.SIGINT)

    with monkeypatch.context() as patched:
        patched.setattr(Status, "show", ctrl_c)
        output = call(
            "run", *files, *SETTINGS, "--dask", "local:2", "--rounds", 50, "--save", "m.kern", code=128 + signal.SIGINT
        ).output
    assert "before it stopped; the model is in m.kern: continue with --resume m.kern" in output
    assert kernling.load("m.kern").t_ >= 2 * ROWS
    assert kernling.load("m.kern").t_ < 100 * ROWS
    call("predict", "m.kern", "0.csv", "--output", "said.txt")


def test_several_files_without_a_cluster_follow_one_another(files):
    call("run", *files, *SETTINGS, "--save", "both.kern")
    whole = kernling.load("both.kern")
    first, second = (Path(path).read_text() for path in files)
    Path("all.csv").write_text(first + second.split("\n", 1)[1])
    call("run", "all.csv", *SETTINGS, "--save", "all.kern")
    checks.assert_identical(whole.model_, kernling.load("all.kern").model_)
    with open("1.csv", "a") as file:
        file.write("1,2,3,4,5\n")
    output = call("run", *files, *SETTINGS, "--save", "some.kern", code=1).output
    assert "1.csv: row 1501 has 5 columns, not 3" in output
    assert kernling.load("some.kern").t_ == 2 * ROWS
    assert "there is no file '2.csv'" in call("run", *files, "2.csv", *SETTINGS, code=1).output


def test_wrong_arguments(files):
    for option in (("--rounds", 2), ("--merge-every", 1), ("--parts", 2), ("--skip-bad",)):
        assert "needs --dask, such as --dask local:2" in call("run", *files, *SETTINGS, *option, code=2).output
    assert (
        "cannot be combined with --dask"
        in call("run", *files, *SETTINGS, "--dask", "local:1", "--scale", "standard", code=2).output
    )
    assert "must name a number of processes" in call("run", *files, *SETTINGS, "--dask", "local:x", code=1).output
