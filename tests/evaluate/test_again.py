"""Rows of the command line, and of streams in their own order, run again: every measurement comes out the same."""

import json

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
from typer.testing import CliRunner

import kernling as kl
from kernling.cli.commands import app
from kernling.evaluate import held_out, read_rows, search, test_then_train
from kernling.io import stream, synthetic, write
from kernling.papers import run_again

NOT_THE_SAME = ("seconds", "nbytes")  # memory is taken ahead of need, chunk by chunk


def call(*arguments, code=0, stdin=None):
    result = CliRunner(env={"COLUMNS": "200"}).invoke(app, [str(one) for one in arguments], input=stdin)
    assert result.exit_code == code, (result.output, result.exception)
    return result


def assert_again(rows, data=None):
    for row in rows:
        again = run_again(row, data)[-1]
        said = {name: value for name, value in row.items() if value is not None and name not in NOT_THE_SAME}
        assert {name: again[name] for name in said} == said


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Rows of numbers and names, some of them with holes, as CSV, Parquet and LIBSVM."""
    monkeypatch.chdir(tmp_path)
    X, y = synthetic("checkerboard", 1500).load()
    kinds = np.array(["x", "y", "z"])[np.arange(1500) % 3]
    holes = [None if i % 100 == 7 else float(value) for i, value in enumerate(X[:, 0])]
    table = {"kind": kinds.tolist(), "a": holes, "b": (1000.0 * X[:, 1]).tolist(), "class": y.tolist()}
    pyarrow.parquet.write_table(pyarrow.table(table), "board.parquet")
    lines = zip(*table.values(), strict=True)
    text = [",".join("" if value is None else str(value) for value in line) for line in lines]
    (tmp_path / "board.csv").write_text("\n".join(["kind,a,b,class", *text]) + "\n")
    write(stream(X[:900], y[:900]), "one.libsvm")
    write(stream(X[900:], y[900:]), "two.libsvm")
    return tmp_path


TABLE = "--target class --categorical kind --missing drop"


@pytest.mark.parametrize(
    "command",
    [
        "run spirals --rows 1200 --every 500 --window 300",
        pytest.param("run spirals --rows 900 --skip 350 --shuffle 4 --scale minmax", marks=pytest.mark.long),
        f"run board.csv {TABLE} --scale standard --skip 100 --rows 1000 --metrics auc,f1",
        pytest.param(
            f"run board.parquet {TABLE} --features kind,b --shuffle 3 --every 70 --learner spa", marks=pytest.mark.long
        ),
        pytest.param("run board.csv --target class --features b --delimiter , --learner polk --seed 3", marks=pytest.mark.long),
        pytest.param("run one.libsvm two.libsvm --n-features 3 --dense", marks=pytest.mark.long),
        "compare spirals --rows 900 --seed 7 --permutations 2 --learners avm,dualsvrg",
        pytest.param("compare spirals --rows 900 --shuffle 5 --skip 500 --learners avm,dualsvrg", marks=pytest.mark.long),
        "tune spirals --rows 900 --candidates 4 --first 300 --learner dualsvrg --set eta=0.1",  # large steps amplify rounding
    ],
)
def test_rows_of_the_command_line_run_again(command):
    call(*command.split(), "--results", "r.csv")
    rows = read_rows("r.csv")
    assert rows[0]["events"] > 0
    assert_again(rows)


def test_damaged_files_run_again_up_to_the_damage(folder):
    (folder / "bad.libsvm").write_text((folder / "one.libsvm").read_text() + "1 x:1\n")
    call("run", "bad.libsvm", "--n-features", 2, "--results", "r.csv", code=1)
    row = read_rows("r.csv")[-1]
    assert row["events"] == 900
    assert_again([row])


def test_what_cannot_be_read_again_is_said(folder):
    text = (folder / "one.libsvm").read_text()
    call("run", "-", "--format", "libsvm", "--n-features", 2, "--results", "r.csv", "--save", "m.kern", stdin=text)
    row = read_rows("r.csv")[-1]
    with pytest.raises(ValueError, match="standard input, which cannot be read again"):
        run_again(row)
    assert run_again(row, stream("one.libsvm", n_features=2))[-1]["mistakes"] == row["mistakes"]
    call("run", "two.libsvm", "--resume", "m.kern", "--results", "r.csv")
    with pytest.raises(ValueError, match="continued after 900 events"):
        run_again(read_rows("r.csv")[-1])
    X, y = synthetic("spirals", 300).load()
    with pytest.raises(ValueError, match="not of 'held'"):
        run_again(held_out(kl.AVMClassifier(), (X, y), (X, y))[-1])


def test_streams_in_their_own_order_run_again():
    rows = synthetic("multidist", 1000, seed=2).take(700)
    assert_again(test_then_train(kl.AVMClassifier(), rows, every=200, window=150, metrics=["mistakes", "auc"]))
    assert_again(search(kl.POLKClassifier(), rows, candidates=3, first=100).rows)
    X, y = rows.load()
    alone = test_then_train(kl.AVMClassifier(), stream(X, y), every=200)
    assert_again(alone[1:3], stream(X, y))
    assert json.loads(alone[0]["data_info"])["source"] == "ndarray"
