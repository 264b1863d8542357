"""Comparing, tuning and reproducing from the command line."""

from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import kernling
from kernling.cli import app
from kernling.evaluate import read_rows, test_then_train
from kernling.streams import synthetic, write


def call(*arguments, code=0, stdin=None):
    result = CliRunner(env={"COLUMNS": "200"}).invoke(app, [str(one) for one in arguments], input=stdin)
    assert result.exit_code == code, (result.output, result.exception)
    return result


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_compare_is_each_method_alone():
    options = ("--rows", 1500, "--set", "gamma=4", "--set", "avm.delta=0.3", "--results", "r.csv", "--report", "p.html")
    output = call("compare", "checkerboard", "--learners", "avm,spa,unknown", *options).output
    assert "unknown cannot run" in output
    rows = {row["method"]: row for row in read_rows("r.csv")}
    alone = test_then_train(kernling.AVMClassifier(gamma=4, delta=0.3), synthetic("checkerboard", 1500))[-1]
    assert rows["AVMClassifier"]["mistakes"] == alone["mistakes"]
    assert f"{100 * rows['SPAClassifier']['mistakes']:.2f} %" in output
    assert Path("p.html").read_text().count("<svg") == 4


def test_compare_over_permutations_gives_means():
    call("compare", "checkerboard", "--learners", "avm", "--rows", 500, "--permutations", 3, "--results", "r.csv")
    rates = [row["mistakes"] for row in read_rows("r.csv")]
    assert len(rates) == 3
    assert len(set(rates)) > 1
    assert "--permutations" in call("compare", "-", "--permutations", 2, code=2).stderr


def test_compare_refuses_parameters_of_nobody():
    assert "does not take part" in call("compare", "checkerboard", "--learners", "avm", "--set", "spa.eta=1", code=2).stderr
    assert "cannot run" in call("compare", "checkerboard", "--learners", "avm", "--set", "avm.eta=1", code=1).stderr


def test_tune_gives_a_model_and_the_options_for_it():
    write(synthetic("spirals", 1500), "spirals.csv", ("x1", "x2"))
    data = ("spirals.csv", "--target", "target")
    searched = ("--range", "gamma=0.0001:50", "--range", "loss=hinge,logistic", "--candidates", 9, "--first", 200)
    output = call("tune", *data, "--set", "delta=0.1", *searched, "--scale", "standard", "--save", "m.kern").stdout
    model = kernling.load("m.kern")
    assert model.t_ == 1500
    assert output.splitlines()[-1] == f"--set gamma={model.gamma!r} --set loss={model.loss}"
    call("run", *data, "--set", "delta=0.1", *output.splitlines()[-1].split(), "--scale", "standard", "--save", "again.kern")
    assert np.array_equal(kernling.load("again.kern").dual_coef_, model.dual_coef_)


@pytest.mark.parametrize("text", ["gamma=1:x", "gamma=0:1", "gamma"])
def test_tune_refuses_wrong_ranges(text):
    assert "--range" in call("tune", "checkerboard", "--range", text, code=2).stderr
