"""Any table on the command line: nothing but its target has to be named."""

import json
from pathlib import Path

import numpy as np
import pandas
import pytest

import kernling
from commands import call
from kernling.evaluate import ConstantAnswer
from kernling.tables import Encode

N = 2001
RNG = np.random.default_rng(3)
FRAME = pandas.DataFrame(
    {
        "at": (np.datetime64("2026-03-01T00:00:00") + 3600 * np.arange(N)).astype(str),
        "town": RNG.choice(["Bergen", "Oslo", "Rome"], N, p=[0.01, 0.5, 0.49]),
        "km": RNG.normal(5e4, 2e4, N),
        "rain": RNG.random(N) < 0.5,
        "ticket": [f"T{i}" for i in range(N)],
    }
)
LATE = np.where((FRAME["km"] > 5e4) == (FRAME["town"] == "Oslo"), "late", "on time")
TABLE = FRAME.astype({"rain": object}).assign(late=LATE)
for _name in ("km", "town", "rain", "at"):
    TABLE.loc[RNG.random(N) < 0.05, _name] = None


@pytest.fixture(autouse=True)
def _rows_csv(folder):
    TABLE.to_csv("rows.csv", index=False)


def test_a_table_needs_its_target_and_nothing_else():
    output = call("run", "rows.csv", "--target", "late", "--save", "m.kern").output
    model = kernling.load("m.kern")
    before = kernling.StreamPipeline.auto().predict_then_learn(TABLE.drop(columns="late"), LATE)
    assert f"{100 * np.mean(before != LATE):.2f} %" in output  # Python's answer
    assert np.mean(before != LATE) < 0.12
    assert np.mean(model.predict(TABLE.drop(columns="late")) == LATE) > 0.8
    gaps = TABLE[["km", "rain", "at"]].isna().any(axis=1).sum()
    assert f"rows: 0 dropped, {gaps} imputed, 0 clipped" in output
    names = model.steps_[0][1].get_feature_names_out().tolist()
    rows = model.passed(TABLE.drop(columns="late"))
    towns = rows[:, [names.index(f"town={town}") for town in ("Bergen", "Oslo", "Rome")]]
    assert set(np.unique(towns)) == {0.0, 1.0}  # a rare category is not blown up


def test_a_line_for_every_row():
    call("run", "rows.csv", "--target", "late", "--save", "m.kern")
    assert len(call("predict", "m.kern", "rows.csv").stdout.splitlines()) == N
    TABLE.assign(late=TABLE["late"].where(TABLE.index > 4)).to_csv("some.csv", index=False)
    result = call("predict", "m.kern", "some.csv")  # the model knows its target
    assert len(result.stdout.splitlines()) == N
    constant = ConstantAnswer("classification").predict_then_learn(None, TABLE["late"][5:].to_numpy())
    mistakes = (constant != TABLE["late"][5:]).mean()
    assert f"{N - 5:,} rows, mistakes" in result.stderr
    assert f"constant answer {100 * mistakes:.2f} %" in result.stderr
    for name in ("without.csv", "without.jsonl"):
        rows = TABLE.drop(columns="late")
        rows.to_csv(name, index=False) if name.endswith("csv") else rows.to_json(name, orient="records", lines=True)
        result = call("predict", "m.kern", name)
        assert (len(result.stdout.splitlines()), result.stderr) == (N, "")
    assert "no column 'late'" in call("predict", "m.kern", "without.csv", "--target", "late", code=1).stderr
    for missing in ("drop", "error"):
        TABLE.dropna().to_csv("whole.csv", index=False)
        call("run", "whole.csv", "--target", "late", "--missing", missing, "--save", "m.kern")
        lines = call("predict", "m.kern", "rows.csv").stdout.splitlines()
        assert [bool(line) for line in lines] == TABLE.notna().all(axis=1).tolist()


@pytest.mark.parametrize("missing", ["impute", "drop"])
def test_what_was_said_before_learning_has_a_line_for_every_row(missing):
    """10,001 rows with gaps in, 10,001 lines out; rows without a target are answered, too, and not learned."""
    many = 10_001  # more than a chunk
    table = pandas.concat([TABLE] * (many // N + 1)).iloc[:many].reset_index(drop=True)
    unlabelled = np.isin(np.arange(many), [0, 5, 6, 300, 9000, many - 1])
    table["late"] = table["late"].where(~unlabelled)
    table.to_csv("many.csv", index=False)
    options = ("--target", "late", "--missing", missing, "--save", "m.kern", "--learner", "avm")
    output = call("run", "many.csv", *options, "--predictions", "said.txt").output
    lines = Path("said.txt").read_text().split("\n")[:-1]
    assert len(lines) == many
    if missing == "drop":
        whole = table.notna().all(axis=1)
        assert [bool(line) for line in lines] == whole.tolist()
    else:
        whole = ~unlabelled
        assert lines[0] == ""  # before anything was learned
        assert set(lines[1:]) == {"late", "on time"}
    wrong = np.mean(np.array(lines)[whole] != table["late"][whole])
    assert f"{100 * wrong:.2f} %" in output
    assert kernling.load("m.kern").t_ == whole.sum()
    said = call("run", "many.csv", *options, "--skip", 9000, "--predictions", "-").stdout
    assert len(said.splitlines()) >= 1001  # and then the summary


def test_rows_without_a_target_are_answered_with_what_was_learned_before():
    table = TABLE.assign(late=TABLE["late"].where(TABLE.index < N - 100))
    table.to_csv("rows.csv", index=False)
    call("run", "rows.csv", "--target", "late", "--predictions", "said.txt", "--save", "m.kern")
    table[N - 100 :].drop(columns="late").to_csv("new.csv", index=False)
    said = Path("said.txt").read_text().splitlines()
    assert said[N - 100 :] == call("predict", "m.kern", "new.csv").stdout.splitlines()
    assert {*said} == {"late", "on time"}


def test_dropped_and_clipped_rows_are_counted():
    table = TABLE.assign(late=TABLE["late"].where(TABLE.index > 4))
    table.loc[1000, "km"] = 1e12
    table.to_csv("rows.csv", index=False)
    assert "rows: 5 dropped" in call("run", "rows.csv", "--target", "late").output
    assert " 1 clipped" in call("run", "rows.csv", "--target", "late").output
    own = call("run", "rows.csv", "--target", "late", "--scale", "none").output  # then Auto scales, and clips, by itself
    assert " 0 clipped" not in own
    assert " clipped" in own
    gaps = table.isna().any(axis=1).sum()
    assert f"rows: {gaps} dropped, 0 imputed" in call("run", "rows.csv", "--target", "late", "--missing", "drop").output


def test_treatments_are_shown_before_and_after_learning(folder):
    shown = call("run", "rows.csv", "--target", "late", "--dry-run", "--save", "m.kern").output.splitlines()
    assert shown[0] == "classification of rows.csv"
    treatments = {line.split()[0]: " ".join(line.split()[1:]) for line in shown[1:]}
    assert treatments == {
        "at": "date with time of day, gaps marked 8 columns",
        "town": "category (3 values), gaps marked 5 columns",
        "km": "number, gaps marked 2 columns",
        "rain": "boolean, gaps marked 2 columns",
        "ticket": "ignored: text that is different in most rows 0 columns",
    }
    assert not (folder / "m.kern").exists()
    call("run", "rows.csv", "--target", "late", "--save", "m.kern")
    output = call("info", "m.kern").output
    assert "category (3 values), gaps marked: 5 columns" in output
    chosen = ("--ignore", "at,town", "--numeric", "rain", "--categorical", "ticket", "--task", "classification")
    other = call("run", "rows.csv", "--target", "late", *chosen, "--dry-run").output
    assert "others hashed into 16" in other
    assert other.count("ignored: as asked") == 2
    assert "boolean" not in other
    assert call("run", "checkerboard", "--dry-run").output.splitlines()[1] == "2 columns of numbers"
    refused = call("run", "rows.csv", "--target", "late", "--ignore", "miles", code=1).stderr
    assert "ignore: there is no column 'miles'; the columns are" in refused


def test_the_task_is_found_and_large_targets_are_learned():
    target = 1e6 + 3.0 * FRAME["km"]
    pandas.DataFrame({"x": FRAME["km"], "y": target}).to_csv("values.csv", index=False)
    output = call("run", "values.csv", "--target", "y", "--save", "m.kern", "--results", "r.csv").output
    assert kernling.load("m.kern").task == "regression"
    last = pandas.read_csv("r.csv").iloc[-1]
    assert last["rmse"] < 0.5 * last["rmse_constant"]
    assert last["rmse"] < 1.01 * last["rmse_linear"]  # the best there is: these targets are linear
    assert last["rmse_window"] < 0.05 * last["rmse_window_constant"]
    assert "RMSE, constant answer" in output
    assert "RMSE, linear model" in output
    counts = pandas.DataFrame({"x": FRAME["km"], "y": np.arange(N) % 30})
    assert "regression" in call("run", "-", "--target", "y", "--dry-run", stdin=counts.to_csv(index=False)).output
    told = call("run", "-", "--target", "y", "--task", "classification", "--dry-run", stdin=counts.to_csv(index=False))
    assert "classification" in told.output


@pytest.mark.parametrize("mark", [",", ";", "\t"])
def test_csv_on_standard_input_is_recognised(mark):
    text = TABLE.to_csv(index=False, sep=mark)
    assert "events" in call("run", "-", "--target", "late", stdin=text).output


@pytest.mark.parametrize(
    "options", [[], ["--learner", "avm"], ["--metrics", "auc,mistakes"], ["--predictions", "out.txt"]], ids=" ".join
)
def test_each_row_is_encoded_once(options, monkeypatch):
    rows = 9000  # more than a chunk
    table = pandas.concat([TABLE] * 5, ignore_index=True)[:rows]
    table.to_csv("rows.csv", index=False)
    counted = []
    for name in ("_learn", "transform"):
        usual = getattr(Encode, name)
        monkeypatch.setattr(Encode, name, lambda self, X, *rest, usual=usual: counted.append(len(X)) or usual(self, X, *rest))
    call("run", "rows.csv", "--target", "late", "--learner", "perceptron", *options)
    assert sum(counted) == rows


def test_the_summary_says_what_is_ignored_and_what_is_suspicious():
    rng = np.random.default_rng(0)
    n = 1500
    fraud = rng.random(n) < 0.2
    frame = pandas.DataFrame(
        {
            "order": np.arange(n) + 1000,
            "amount": [f"{value:.2f} €" for value in rng.normal(50.0, 9.0, n)],
            "chargeback_at": np.where(fraud, "2025-01-03", ""),
            "fraud": fraud.astype(int),
        }
    )
    frame.loc[7, "amount"] = "much"
    frame.to_csv("rows.csv", index=False)
    output = call("run", "rows.csv", "--target", "fraud", "--save", "m.kern", "--report", "r.html").output
    assert "ignored: 'order' (an identifier: a different whole number in each row)" in output
    assert "'chargeback_at' alone predicts the target: is it known in time?" in output
    assert "not understood, and taken as missing: 1 value of 'amount'" in output
    assert "recall precision" in output
    assert "mistakes over time: " in output
    shown = call("info", "m.kern").output
    assert "an identifier" in shown
    assert "1,234.5" in shown
    assert call("run", "rows.csv", "--target", "fraud", "--metrics", "recall,roc_auc").output.count("AUC") >= 1


def test_a_file_from_windows_and_its_decimal_commas():
    rows = [f"{place % 7},5;{'Straße' if place % 2 else 'Weg'};{place % 7},25" for place in range(300)]
    Path("w.csv").write_bytes("\n".join(["x;ö;y", *rows]).encode("cp1252"))
    guessed = call("run", "w.csv", "--target", "y")
    named = call("run", "w.csv", "--target", "y", "--encoding", "cp1252", "--decimal", ",")
    assert "is not UTF-8: the file is read as cp1252" in guessed.stderr
    assert "UTF-8" not in named.stderr
    assert "RMSE" in named.output
    point = call("run", "w.csv", "--target", "y", "--dry-run", "--month-first")
    assert "x  number" in point.output


def test_targets_of_rows_before_are_columns_of_streams_in_time():
    """Hours of a day with a shape of its own, and days of a level of their own: yesterday's value is hard to beat."""
    rng = np.random.default_rng(0)
    n = 24 * 100
    hours = np.arange(n)
    shape, level = rng.normal(size=24).cumsum(), np.repeat(np.cumsum(rng.normal(0.0, 0.3, n // 24)), 24)
    value = shape[hours % 24] + level + rng.normal(0.0, 0.1, n)
    when = np.datetime64("2025-01-01T00:00", "s") + 3600 * hours
    frame = pandas.DataFrame({"when": when.astype(str), "value": value.round(4)})
    frame.to_csv("hours.csv", index=False)
    call("run", "hours.csv", "--target", "value", "--lags", "1,24", "--results", "r.csv", "--save", "m.kern", "--rows", "1800")
    yesterday = np.sqrt(np.mean((value[24:1800] - value[:1776]) ** 2))
    assert pandas.read_csv("r.csv")["rmse"].iloc[-1] < 1.1 * yesterday
    resumed = call("run", "hours.csv", "--target", "value", "--resume", "m.kern", "--predictions", "p.txt").output
    assert "RMSE" in resumed
    assert len(Path("p.txt").read_text().splitlines()) == n - 1800
    refused = call("run", "hours.csv", "--target", "value", "--lags", "day", code=2).stderr
    assert "whole numbers" in refused


def test_columns_and_means_of_rows_before_and_rows_out_of_order():
    rng = np.random.default_rng(0)
    x = rng.normal(size=600)
    y = np.r_[0.0, 0.0, x[:-2]] + rng.normal(0.0, 0.05, 600)
    when = np.datetime64("2025-01-01T00:00", "s") + 3600 * np.r_[np.arange(300), 310, np.arange(300, 310), np.arange(311, 600)]
    pandas.DataFrame({"when": when.astype(str), "x": x, "y": y}).to_csv("late.csv", index=False)
    told = call("run", "late.csv", "--target", "y", "--lags", "x:2", "--windows", "3,x:2", "--results", "r.csv")
    assert pandas.read_csv("r.csv")["rmse"].iloc[-1] < 0.5
    assert "not in order of time: 10 rows with an earlier time than a row before" in told.output
    shown = call("run", "late.csv", "--target", "y", "--lags", "x:2", "--windows", "3", "--time", "when", "--dry-run").output
    assert "x 2 before" in shown
    assert "target mean of 3 before" in shown


def test_many_columns_have_no_linear_model_beside_them_and_that_is_said():
    rng = np.random.default_rng(0)
    X = pandas.DataFrame(rng.normal(size=(120, 301)), columns=[f"x{place}" for place in range(301)])
    X.assign(y=np.where(X["x0"] > 0.0, "a", "b")).to_csv("wide.csv", index=False)
    told = call("run", "wide.csv", "--target", "y", "--learner", "avm").output
    assert "there is no linear model to compare with: it needs at most 300 columns, and there are 301" in " ".join(told.split())


def test_rows_are_explained_by_their_columns():
    call("run", "rows.csv", "--target", "late", "--rows", 600, "--save", "m.kern")
    shown = call("explain", "m.kern", "rows.csv", "--rows", 2, "--skip", 7).stdout
    assert "row 8: " in shown
    assert "row 9: " in shown
    assert "score of 'on time'" in shown
    assert "█" in shown
    lines = [json.loads(line) for line in call("explain", "m.kern", "rows.csv", "--json").stdout.splitlines()]
    assert [line["row"] for line in lines] == [1, 2, 3, 4, 5]
    said = call("predict", "m.kern", "rows.csv", "--rows", 5).stdout.split("\n")
    for line, label in zip(lines, said, strict=False):
        assert line["prediction"] == label
        assert line["contributions"].keys() == {"at", "town", "km", "rain"}
        assert line["base"] + sum(line["contributions"].values()) == pytest.approx(line["score"], rel=1e-9)
    assert lines[0]["values"]["town"] == TABLE["town"][0]
    (other,) = call("explain", "m.kern", "rows.csv", "--json", "--rows", 1, "--background", "rows.csv").stdout.splitlines()
    assert json.loads(other)["base"] != lines[0]["base"]
