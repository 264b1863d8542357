"""Comparing, tuning and reproducing from the command line."""

import io
import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
import typer
from pyarrow import csv

import kernling
from commands import call
from kernling.cli import Early, main
from kernling.cli.interrupts import Interrupts
from kernling.cli.status import RunProgress, fitted
from kernling.evaluate import ProgressiveRun, read_rows, test_then_train
from kernling.io import stream, synthetic, write

pytestmark = pytest.mark.usefixtures("folder")


def test_compare_is_each_method_alone():
    options = ("--rows", 1500, "--set", "gamma=4", "--set", "avm.delta=0.3", "--results", "r.csv", "--report", "p.html")
    output = call("compare", "checkerboard", "--learners", "avm,spa,koil", "--set", "koil.eta=5", *options).output
    assert "koil cannot run: KOILClassifier: eta must be" in output
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


def test_tune_gives_a_model_and_the_options_for_it():
    write(synthetic("spirals", 1500), "spirals.csv", ("x1", "x2"))
    data = ("spirals.csv", "--target", "target")
    searched = ("--range", "gamma=0.0001:50", "--range", "loss=hinge,logistic", "--candidates", 9, "--first", 200)
    output = call(
        "tune", *data, "--learner", "avm", "--set", "delta=0.1", *searched, "--scale", "standard", "--save", "m.kern"
    ).stdout
    model = kernling.load("m.kern")
    assert model.t_ == 1500
    assert output.splitlines()[-1] == f"--set gamma={model.model_.gamma!r} --set loss={model.model_.loss}"
    call(
        "run",
        *data,
        "--learner",
        "avm",
        "--set",
        "delta=0.1",
        *output.splitlines()[-1].split(),
        "--scale",
        "standard",
        "--save",
        "again.kern",
    )
    assert np.array_equal(kernling.load("again.kern").model_.dual_coef_, model.model_.dual_coef_)


@pytest.mark.parametrize("text", ["gamma=1:x", "gamma=0:1", "gamma"])
def test_tune_refuses_wrong_ranges(text):
    assert "--range" in call("tune", "checkerboard", "--range", text, code=2).stderr


def tried(path="r.csv"):
    return [json.loads(row["params"]) for row in read_rows(path)]


def test_what_is_set_is_not_searched():
    options = ("--rows", 400, "--candidates", 4, "--first", 100, "--results", "r.csv")
    output = call("tune", "spirals", "--learner", "avm", "--set", "gamma=5", *options).stdout
    assert {one["gamma"] for one in tried()} == {5}
    assert len({one["lam"] for one in tried()}) == 5  # four candidates, and the default
    assert "gamma" not in output.splitlines()[-1]
    everything = [word for one in ("gamma=5", "lam=0.1", "delta=1", "eta=1", "output=last") for word in ("--set", one)]
    assert "no parameter is left to search" in call("tune", "spirals", "--learner", "avm", *everything, code=2).stderr
    assert "fixed by --set" in call("tune", "spirals", "--set", "gamma=5", "--range", "gamma=1:9", code=2).stderr


def test_tune_keeps_whole_numbers_whole_and_says_what_failed():
    options = ("--rows", 400, "--candidates", 4, "--first", 100, "--results", "r.csv")
    call("tune", "spirals", "--learner", "bogd", "--range", "budget=10:100", *options)
    assert all(isinstance(one["budget"], int) for one in tried())
    output = call("tune", "spirals", "--learner", "koil", "--range", "eta=0.1,5", "--grid", *options).output
    assert "1 of 3 candidates failed, such as: KOILClassifier: eta must be" in " ".join(output.split())
    assert ["at most 0.999" in (row["failed"] or "") for row in read_rows("r.csv")] == [False, False, True]


def damaged(folder, rows=1500):
    write(synthetic("spirals", rows), "bad.libsvm")
    with open(folder / "bad.libsvm", "a") as file:
        file.write("1 x:1\n1 1:1\n")
    return "bad.libsvm"


def test_tune_saves_the_best_before_the_damage(folder):
    options = ("--candidates", 3, "--first", 200, "--save", "m.kern", "--results", "r.csv", "--scale", "standard", "--dense")
    told = call("tune", damaged(folder), "--learner", "avm", *options, "--n-features", 2, code=1)
    assert "line 1501" in told.stderr
    assert "with --resume m.kern\n" in told.stderr
    assert kernling.load("m.kern").t_ == 1500
    assert [row["events"] for row in read_rows("r.csv")] == [1500, 600, 200, 200]
    assert "--set gamma=" in told.stdout
    assert kernling.load("m.kern").steps_[0][1].count_ == 1500


def test_compare_shows_and_writes_what_came_before_the_damage(folder):
    told = call("compare", damaged(folder), "--learners", "avm,spa", "--n-features", 2, "--results", "r.csv", code=1)
    assert "line 1501" in told.stderr
    assert "1,500 events" in told.stdout
    assert [(row["method"], row["events"]) for row in read_rows("r.csv")] == [("AVMClassifier", 1500), ("SPAClassifier", 1500)]


@pytest.mark.parametrize("command", [pytest.param("tune", marks=pytest.mark.long), "compare"])
def test_ctrl_c_keeps_what_was_learned(folder, command):
    own = (
        ["--learner", "avm", "--save", "m.kern", "--first", "300"]
        if command == "tune"
        else ["--learners", "avm,spa", "--every", "1000"]
    )
    arguments = [command, "-", "--format", "csv", "--target", "target", "--results", "r.csv", *own]
    program = [sys.executable, "-m", "kernling", *arguments]
    process = subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    write(synthetic("spirals", 60_000), "rows.csv", ("x1", "x2"))
    process.stdin.write((folder / "rows.csv").read_bytes())  # done when the third block is read, and so two have been learned
    process.stdin.flush()
    process.send_signal(signal.SIGINT)
    process.wait(60)
    told = process.stderr.read().decode()
    process.stdin.close()
    assert process.returncode == 130, told
    learned = max(row["events"] for row in read_rows("r.csv"))
    assert learned > 1000
    if command == "tune":
        assert kernling.load("m.kern").t_ == learned
        assert "with --resume m.kern and the rows that follow" in told


def test_ctrl_c_that_an_import_has_swallowed_still_ends_the_command():
    before = signal.signal(signal.SIGINT, Early())
    try:
        with suppress(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
        with pytest.raises(KeyboardInterrupt), Interrupts():
            pytest.fail("the command goes on")
        assert isinstance(signal.getsignal(signal.SIGINT), Early)
    finally:
        signal.signal(signal.SIGINT, before)


def test_ctrl_c_before_anything_was_learned_is_told(capsys):
    interrupts = Interrupts()
    with interrupts, interrupts.held_back():
        os.kill(os.getpid(), signal.SIGTERM)
    with pytest.raises(typer.Exit) as ended:
        interrupts.let_go()
    assert ended.value.exit_code == 128 + signal.SIGTERM
    assert capsys.readouterr().err == "interrupted\n"


def test_ctrl_c_ends_the_start_without_a_traceback(monkeypatch, capsys):
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # it may be ignored, as in the background of a script
    monkeypatch.setattr("kernling.cli.commands.app", lambda: os.kill(os.getpid(), signal.SIGINT))
    try:
        with pytest.raises(SystemExit) as ended:
            main()
    finally:
        signal.signal(signal.SIGINT, before)
    assert (ended.value.code, capsys.readouterr().err) == (130, "interrupted\n")


def test_signals_reach_the_command_line_while_pyarrow_reads():
    seen = []

    def bad_row(_):
        os.kill(os.getpid(), signal.SIGINT)
        seen.append(interrupts.received)
        return "skip"

    with suppress(KeyboardInterrupt), Interrupts() as interrupts, interrupts.deferred():
        parsing = csv.ParseOptions(invalid_row_handler=bad_row)
        csv.read_csv(io.BytesIO(b"a,b\n1,2\n1\n"), csv.ReadOptions(use_threads=False), parsing)
    assert seen == [signal.SIGINT]


@pytest.mark.parametrize("scale", [(), ("--scale", "standard")])
def test_tune_compares_on_the_rows_of_another_file(scale):
    X, y = synthetic("spirals", 900, seed=1).load()
    write(synthetic("spirals", 900), "train.csv", ("x1", "x2"))
    write(stream(X, y), "held.csv", ("x1", "x2"))
    write(stream(X, -y), "upside_down.csv", ("x1", "x2"))
    options = ("--target", "target", "--set", "delta=0.1", "--range", "gamma=30,0.0001", "--grid", "--first", 400, *scale)
    best = {}
    for name in ("held.csv", "upside_down.csv"):
        output = call(
            "tune", "train.csv", "--learner", "avm", *options, "--validation", name, "--save", "m.kern", "--results", "r.csv"
        ).stdout
        best[name] = kernling.load("m.kern").model_.gamma
        wrong = read_rows("r.csv")[0]["mistakes_validation"]
        assert f"{100 * wrong:.2f} %" in output
        assert f"mistakes {100 * wrong:.2f} %" in call("predict", "m.kern", name, "--target", "target").stderr
    assert best == {"held.csv": 30, "upside_down.csv": 0.0001}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--learners", "avm,nosuch"), "there is no method 'nosuch'"),
        (("--learners", "avm,spa", "--set", "foo=1"), "none of the compared methods has a parameter 'foo'"),
        (("--learners", "avm,spa", "--set", "spa.foo=1"), "spa has no parameter 'foo'"),
        (("--learners", "avm", "--set", "spa.eta=1"), "is not being compared"),
    ],
)
def test_compare_refuses_names_of_nobody(options, message):
    told = call("compare", "checkerboard", *options, code=2).stderr
    assert message in " ".join(told.replace("│", " ").split())


def test_progress_has_a_line_for_each_method_that_fits_the_terminal():
    runs = {name: ProgressiveRun(kernling.AVMClassifier(), {}, every=500) for name in ("one", "two")}
    assert str(RunProgress(runs)).splitlines() == ["one: compiling", "two: compiling"]
    X, y = synthetic("spirals", 300).load()
    runs["two"].learn(X, y)
    line = str(RunProgress(runs)).splitlines()[1]
    assert line.startswith("two: 300 events, mistakes ")
    assert "points" in line
    late = runs["two"]
    late.events, late.seconds = 12_345_678, 123.4
    alone, named = (str(RunProgress({name: late})) for name in ("", "dualsvrg"))
    wrong = 100 * late.value("mistakes")
    facts = f"12,345,678 events, mistakes {wrong:.2f} % (window {wrong:.2f} %)"
    assert fitted(alone, 80) == f"{facts}, 100,046 per second"
    assert fitted(named, 76) == f"dualsvrg: {facts}"  # whole facts only
