"""Comparing, tuning and reproducing from the command line."""

import json
import tomllib
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import kernling
from kernling.cli import app
from kernling.evaluate import papers, read_rows, test_then_train
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


# ---------------------------------------------------------------------- papers

TABLE = """
title = "A table"
paper = "Somebody, 2020"
protocol = "online"
metric = "mistakes"
scale = 100.0

[data.diabetes]
dataset = "diabetes"
part = "train"
size = 12
params = { gamma = 1.0, delta = 1.0 }

[data.poker]
dataset = "poker"
part = "train"
params = { gamma = 1.0 }

[[methods]]
name = "AVM-Hinge"
learner = "avm"
[methods.printed]
diabetes = [30.0, 0.5, 7.0]
poker = [50.0, 0.1]

[[methods]]
name = "Other"
[methods.printed]
diabetes = [40.0]
"""


@pytest.fixture
def table(folder, monkeypatch):
    (folder / "papers" / "one").mkdir(parents=True)
    (folder / "papers" / "one" / "table1.toml").write_text(TABLE)
    (folder / "data").mkdir()
    rng = np.random.default_rng(0)
    lines = [
        f"{1 if row[0] > 0 else -1} " + " ".join(f"{j + 1}:{v:.4f}" for j, v in enumerate(row))
        for row in rng.uniform(-1, 1, (768, 8))
    ]
    (folder / "data" / "diabetes_scale").write_text("\n".join(lines) + "\n")
    monkeypatch.setattr(papers, "folder", lambda: folder / "papers")
    monkeypatch.setenv("KERNLING_DATA", "")
    monkeypatch.setattr("kernling.streams.datasets.TIMEOUT", 0.001)
    return folder


def test_reproduce_puts_ours_beside_theirs_and_says_why_not(table):
    output = call("reproduce", "one/table1", "--data", "data", "--permutations", 2, "--record").output
    rows = {(row["data"], row["method"]): row for row in json.loads((table / "papers/one/table1.json").read_text())}
    ran = rows["diabetes", "AVM-Hinge"]
    assert 0 < ran["ours"] < ran["always_commonest"]
    assert f"{ran['ours']:.2f} ± {ran['ours_std']:.2f}" in output
    assert "30.00 ± 0.50" in output
    assert rows["diabetes", "Other"]["why"] == "printed only"
    assert "poker" in rows["poker", "AVM-Hinge"]["why"]
    page = (table / "papers/RESULTS.md").read_text()
    assert f"{ran['ours']:.2f}" in page
    call("reproduce", "one/table1", "--data", "data", "--permutations", 1, "--only", "diabetes", "--record")
    again = {(row["data"], row["method"]): row for row in json.loads((table / "papers/one/table1.json").read_text())}
    assert again["diabetes", "AVM-Hinge"]["permutations"] == 1
    assert again["poker", "AVM-Hinge"] == rows["poker", "AVM-Hinge"]


def test_unknown_tables_and_data_sets_are_refused(table):
    assert "one/table1" in call("reproduce", "two/table1", code=1).stderr
    assert "'iris'" in call("reproduce", "one/table1", "--only", "iris", code=1).stderr


def test_tables_of_the_project_are_complete():
    found = papers.tables()
    assert {"avm/table3", "avm/table4", "avm/table5"} <= {one.name for one in found}
    for one in found:
        for method in one.facts["methods"]:
            assert set(method["printed"]) <= set(one.facts["data"])
        tomllib.loads(one.path.read_text())
    output = call("papers").output
    assert all(one.name in output for one in found)
