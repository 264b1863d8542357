"""The JSON of a model is enough to predict: by a reader that knows its documentation only, in JavaScript and in C."""

import json
import math
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import kernling as kl
from benchmarks.onnx_runs import table_inputs
from checks import EVENTS, PROBES, estimators, scores
from export import json_reader
from export.tables import AGES, TASKS, exported_cases, mixture, mixture_rows, table
from kernling.baselines import FOGDClassifier
from kernling.export import to_json
from kernling.tables import MinMax, Standardise
from oracles import stream

GUIDE = Path(__file__).parents[2] / "docs" / "guide"
ROWS = np.random.default_rng(0).normal(3.0, 2.0, size=(300, 3))
LABELS = np.where((ROWS[:, 0] - 3.0) * (ROWS[:, 1] - 3.0) > 0.0, "b", "a")
SAME = dict(rtol=1e-9, atol=1e-9)


def exported(model, folder) -> dict:
    to_json(model, folder / "model.json")
    return json.loads((folder / "model.json").read_text())


def plain_rows(model, frame: pd.DataFrame) -> list[dict]:
    """The rows of a table as exported models take them."""
    columns = {name: values.tolist() for name, values in table_inputs(model.steps_[0][1], frame).items()}
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


@pytest.mark.parametrize("cls", estimators())
def test_every_estimator(cls, tmp_path):
    for case in exported_cases(cls):
        X, y = stream(case.stream, EVENTS)
        model = cls(**case.params).fit(X, y)
        held = exported(model, tmp_path)
        found = json_reader.scores(held, PROBES)
        expected = scores(model, PROBES)
        np.testing.assert_allclose(found[:, 0] if expected.ndim == 1 else found, expected, **SAME)
        if held["output"] is not None and held["output"]["kind"] != "value":
            assert json_reader.labels(held, found) == model.predict(PROBES).tolist()
        if hasattr(model, "predict_proba"):
            np.testing.assert_allclose(json_reader.probabilities(held, found), model.predict_proba(PROBES), **SAME)


def test_a_metric_on_random_features_says_that_it_is_not_exported(tmp_path):
    X, y = stream("binary", 50)
    with pytest.raises(TypeError, match=r"AOGDMetric\(features='fourier'\) cannot be exported: use features='linear'"):
        exported(kl.AOGDMetric(features="fourier").fit(X, y), tmp_path)


@pytest.mark.parametrize("events", AGES)
@pytest.mark.parametrize("task", TASKS)
def test_mixtures_of_every_age(task, events, tmp_path):
    model, X = mixture(task, events), mixture_rows()
    found, expected = json_reader.scores(exported(model, tmp_path), X), scores(model, X)
    np.testing.assert_allclose(found[:, 0] if expected.ndim == 1 else found, expected, **SAME)


@pytest.mark.parametrize("limit", [2, 64])
def test_tables(limit, tmp_path):
    """Hashed categories, too, which ONNX cannot have."""
    X, y = table(300)
    model = kl.StreamPipeline.auto(kl.AVMClassifier(delta=1.0), limit=limit).partial_fit(X, y)
    held = exported(model, tmp_path)
    assert held["columns"][0]["others"] == (16 if limit == 2 else 1)
    found = json_reader.scores(held, plain_rows(model, X))
    np.testing.assert_allclose(found[:, 0], model.decision_function(X), **SAME)


def test_single_precision_is_exact(tmp_path):
    model = kl.AVMClassifier(delta=0.5, dtype="float32").fit(ROWS, LABELS)
    points = np.array(exported(model, tmp_path)["kernels"][0]["points"])
    np.testing.assert_array_equal(points.astype(np.float32), points)


# ---------------------------------------------------------------------- other languages

MODELS = {
    "two classes": lambda: kl.AVMClassifier(delta=0.5).fit(ROWS, LABELS),
    "scaled": lambda: kl.StreamPipeline([("a", Standardise()), ("b", kl.AVMClassifier(delta=0.5))]).fit(ROWS, LABELS),
    "several classes": lambda: kl.StreamPipeline([("a", MinMax(-1.0, 1.0)), ("b", kl.AVMClassifier(delta=0.1))]).fit(
        ROWS, np.arange(300) % 3
    ),
    "values": lambda: kl.StreamPipeline([("a", MinMax()), ("b", kl.AVMRegressor(delta=0.1))]).fit(ROWS, 100.0 + ROWS[:, 0]),
}
MORE = {  # what JavaScript does besides
    "fourier": lambda: FOGDClassifier(random_state=0).fit(ROWS, np.arange(300) % 3),
    "parts": lambda: kl.KRLSRegressor(points=20).fit(ROWS, ROWS[:, 0]),
    "stacks": lambda: kl.AutoClassifier(memory=0, points=20, window=30).fit(ROWS, LABELS),
    "stacks of several classes": lambda: kl.AutoClassifier(memory=0, points=20, window=30).fit(ROWS, np.arange(300) % 3),
    "stacks with class weights": lambda: kl.AutoClassifier(memory=0, points=20, window=30, class_weight="balanced").fit(
        ROWS, ROWS[:, 0] > 0.8
    ),
    "blend": lambda: kl.AutoRegressor(memory=0, points=20, window=30).fit(ROWS, 100.0 + ROWS[:, 0] * ROWS[:, 1]),
    "clipped": lambda: kl.StreamPipeline([("a", Standardise(clip=1.0)), ("b", kl.AVMClassifier(delta=0.5))]).fit(ROWS, LABELS),
}


def said_by(model, X) -> np.ndarray:
    found = model.decision_function(X) if hasattr(model, "decision_function") else model.predict(X)
    return found.reshape(len(X), -1)


@pytest.fixture(scope="module")
def node():
    if shutil.which("node") is None:
        pytest.skip("node is not installed")

    def run(folder: Path, rows) -> list[dict]:
        # JSON has no NaN: what is missing is null
        text = json.dumps([_without_nan(row) for row in rows])
        (folder / "rows.json").write_text(text)
        command = ["node", str(GUIDE / "predict.js"), "model.json", "rows.json"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
        return [json.loads(line) for line in done.stdout.splitlines()]

    return run


def _without_nan(row):
    if isinstance(row, dict):
        return {name: None if isinstance(value, float) and not math.isfinite(value) else value for name, value in row.items()}
    return row


@pytest.mark.parametrize("name", [*MODELS, *MORE])
def test_in_javascript(name, node, tmp_path):
    model = (MODELS | MORE)[name]()
    exported(model, tmp_path)
    found = node(tmp_path, ROWS.tolist())
    np.testing.assert_allclose([each["score"] for each in found], said_by(model, ROWS), **SAME)
    if hasattr(model, "classes_"):
        assert [each["said"] for each in found] == model.predict(ROWS).tolist()


def test_tables_in_javascript(node, tmp_path):
    X, y = table(300)
    X = X.drop(columns=["when", "day"])
    model = kl.StreamPipeline.auto().partial_fit(X, y)
    exported(model, tmp_path)
    found = node(tmp_path, plain_rows(model, X))
    assert [each["said"] for each in found] == model.predict(X).tolist()


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("there is no C compiler")
    program = tmp_path_factory.mktemp("c") / "predict"
    options = ["-O2", "-std=c99", "-Wall", "-Wextra", "-Werror"]
    subprocess.run([compiler, *options, "-o", str(program), str(GUIDE / "predict.c"), "-lm"], check=True)
    return program


@pytest.mark.parametrize("name", MODELS)
def test_in_c(name, compiled, tmp_path):
    model = MODELS[name]()
    exported(model, tmp_path)
    rows = "\n".join(" ".join(map(repr, row)) for row in ROWS.tolist())
    done = subprocess.run([compiled, "model.json"], cwd=tmp_path, input=rows, capture_output=True, text=True, check=True)
    found = [list(map(float, line.split())) for line in done.stdout.splitlines()]
    np.testing.assert_allclose(found, said_by(model, ROWS), **SAME)


@pytest.mark.parametrize("name", ["predict.js", "mixture.js", "predict.c"])
def test_programs_of_the_guide_are_short(name):
    assert len((GUIDE / name).read_text().splitlines()) <= 30
