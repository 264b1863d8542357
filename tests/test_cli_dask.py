"""kernling run --dask: files learned on a cluster from the command line."""

import numpy as np
import pytest
from typer.testing import CliRunner

pytest.importorskip("distributed")

import kernling
from kernling.cli import app
from kernling.streams import synthetic

pytestmark = pytest.mark.xdist_group("scale")
ROWS = 1500
SETTINGS = ("--set", "gamma=4", "--set", "delta=0.3", "--target", "label")


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    X, y = synthetic("checkerboard", 2 * ROWS).load()
    for part in range(2):
        rows = slice(part * ROWS, (part + 1) * ROWS)
        np.savetxt(f"{part}.csv", np.c_[X[rows], y[rows]], delimiter=",", header="a,b,label", comments="")
    return ["0.csv", "1.csv"]


def call(*arguments, code=0):
    result = CliRunner(env={"COLUMNS": "200"}).invoke(app, [str(one) for one in arguments])
    assert result.exit_code == code, (result.output, result.exception)
    return result.output


def test_a_run_on_a_local_cluster(files):
    """A good run, then one with a damaged file, with and without --skip-bad."""
    output = call("run", *files, *SETTINGS, "--dask", "local:2", "--rounds", 2, "--save", "m.kern")
    assert f"{4 * ROWS:,}" in output
    model = kernling.load("m.kern")
    assert model.t_ == 4 * ROWS
    call("predict", "m.kern", "0.csv", "--output", "said.txt")
    with open("1.csv", "a") as file:
        file.write("1,2,3,4,5\n")
    output = call("run", *files, *SETTINGS, "--dask", "local:1", "--save", "some.kern", code=1)
    assert "1.csv: row 1501 has 5 columns, not 3" in output
    assert "--skip-bad goes on without" in output
    assert kernling.load("some.kern").t_ == ROWS  # nothing trained is lost
    output = call("run", *files, *SETTINGS, "--dask", "local:1", "--skip-bad", "--save", "rest.kern")
    assert "1.csv cannot be read and was left out" in output
    assert kernling.load("rest.kern").t_ == ROWS


def test_wrong_arguments(files):
    assert "--dask local:2" in call("run", *files, *SETTINGS, code=2)
    assert "leave it out with --dask" in call("run", *files, *SETTINGS, "--dask", "local:1", "--scale", "standard", code=2)
    assert "must name a number of processes" in call("run", *files, *SETTINGS, "--dask", "local:x", code=1)
