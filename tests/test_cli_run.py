"""Learning and predicting from the command line, as a new user would try it."""

import fcntl
import gzip
import os
import re
import resource
import signal
import subprocess
import sys
import termios
import time
from pathlib import Path

import numpy as np
import pandas
import pyarrow
import pyarrow.parquet
import pytest

import kernling
from commands import call
from kernling import models
from kernling.evaluate import read_rows
from kernling.io import synthetic

pytestmark = pytest.mark.usefixtures("folder")

STRICT = ("--target", "colour", "--missing", "error")
SETTINGS = ("--learner", "avm", "--set", "gamma=4", "--set", "delta=0.3")
ROWS = 3000
X, y = synthetic("checkerboard", ROWS).load()


def libsvm(rows=slice(None)):
    lines = zip(X[rows].tolist(), y[rows].tolist(), strict=True)
    return "".join(f"{label:+d} 1:{a!r} 2:{b!r}\n" for (a, b), label in lines)


def csv(rows=slice(None)):
    lines = zip(X[rows].tolist(), y[rows].tolist(), strict=True)
    return "a,b,colour\n" + "".join(f"{a!r},{b!r},{'black' if label > 0 else 'white'}\n" for (a, b), label in lines)


def reference(rows=ROWS):
    return kernling.AVMClassifier(gamma=4, delta=0.3, random_state=0).partial_fit(X[:rows], y[:rows])


def same(path, model):
    loaded = kernling.load(path)
    assert loaded.t_ == model.t_
    assert np.allclose(loaded.decision_function(X), model.decision_function(X), atol=1e-9)


def test_libsvm_file(folder):
    (folder / "board.libsvm").write_text(libsvm())
    output = call("run", "board.libsvm", *SETTINGS, "--dense", "--save", "m.kern", "--results", "r.csv", "--every", 1000).output
    same("m.kern", reference())
    rows = read_rows("r.csv")
    assert [row["events"] for row in rows] == [1000, 2000, 3000]
    assert f"{100 * rows[-1]['mistakes']:.2f} %" in output
    assert f"{100 * rows[-1]['mistakes_window']:.2f} %" in output


def test_csv_from_standard_input():
    call("run", "-", "--target", "colour", "--scale", "none", *SETTINGS, "--save", "m.kern", stdin=csv())
    loaded = kernling.load("m.kern")
    assert loaded.classes_.tolist() == ["black", "white"]
    assert np.allclose(-loaded.decision_function(X), reference().decision_function(X), atol=1e-9)


def test_parquet_file():
    pyarrow.parquet.write_table(pyarrow.table({"a": X[:, 0], "late": y, "b": X[:, 1]}), "board.parquet")
    call("run", "board.parquet", "--target", "late", "--scale", "none", *SETTINGS, "--save", "m.kern")
    same("m.kern", reference())


def test_model_brings_its_columns_and_scales(folder):
    kinds = np.array(["x", "y", "z"])[np.arange(ROWS) % 3]
    table = pyarrow.table({"kind": kinds, "a": 1000.0 * X[:, 0], "b": X[:, 1], "late": y})
    pyarrow.parquet.write_table(table, "train.parquet")
    call(
        "run",
        "train.parquet",
        "--target",
        "late",
        "--categorical",
        "kind",
        "--scale",
        "standard",
        *SETTINGS,
        "--save",
        "m.kern",
    )
    pyarrow.parquet.write_table(table.select(["b", "a", "kind"]), "new.parquet")  # another order, and no target
    said = call("predict", "m.kern", "new.parquet").stdout.splitlines()
    with_target = call("predict", "m.kern", "train.parquet", "--target", "late")
    assert said == with_target.stdout.splitlines()
    wrong = np.mean([float(one) != label for one, label in zip(said, y, strict=True)])
    assert f"{100 * wrong:.2f} %" in with_target.stderr
    assert wrong < 0.3
    output = call("info", "m.kern").output
    assert "Standardise" in output
    assert "kind" in output


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        (
            libsvm(slice(2000)) + "1 1:abc\n" + libsvm(slice(2000, None)),
            ("--format", "libsvm", "--n-features", "2"),
            "line 2001",
        ),
        (libsvm(slice(2000)) + "1 1:nan\n" + libsvm(slice(2000, None)), ("--format", "libsvm", "--n-features", "2"), "2001"),
        (csv(slice(2000)) + "1,abc,white\n", ("--format", "csv", *STRICT), "row 2001: 'abc' in column 'b'"),
        (csv(slice(2000)) + "1,2\n", ("--format", "csv", "--target", "colour"), "row 2001 has 2 columns"),
        (csv(slice(2000)) + "1,,white\n", ("--format", "csv", *STRICT), "row 2001 has no value in column 'b'"),
    ],
)
def test_damaged_line_is_named_and_leaves_a_model_to_go_on_with(text, options, message):
    result = call("run", "-", *options, *SETTINGS, "--save", "m.kern", "--scale", "standard", "--dense", code=1, stdin=text)
    assert message in result.stderr
    assert result.stderr.count("error: ") == 1
    assert kernling.load("m.kern").t_ == 2000
    assert "--resume m.kern and the rows that follow" in result.stderr
    rest = {"csv": csv, "libsvm": libsvm}[options[1]](slice(2000, None))
    call("run", "-", "--format", options[1], "--resume", "m.kern", "--save", "m.kern", stdin=rest)
    whole = {"csv": csv, "libsvm": libsvm}[options[1]]()
    call("run", "-", *options, *SETTINGS, "--save", "w.kern", "--scale", "standard", "--dense", stdin=whole)
    resumed, uninterrupted = models.read("m.kern"), models.read("w.kern")
    assert resumed.reading == uninterrupted.reading
    assert resumed.model.steps_[0][1].to_state() == uninterrupted.model.steps_[0][1].to_state()
    assert np.allclose(resumed.model.decision_function(X), uninterrupted.model.decision_function(X), atol=1e-9)


MIXED = ("--target", "late", "--categorical", "kind,floor", "--missing", "drop", "--scale", "standard", *SETTINGS)


@pytest.fixture
def mixed():
    """Numbers in large units, categories of two types, gaps, and a label, as a frame and as mixed.csv."""
    rng = np.random.default_rng(0)
    frame = pandas.DataFrame({"a": 1000.0 * X[:, 0], "kind": rng.choice(["x", "y", "z"], ROWS), "b": X[:, 1]})
    frame["floor"] = rng.integers(0, 4, ROWS)
    frame["late"] = np.where(y > 0, "yes", "no")
    for name in ("a", "kind", "late"):
        frame.loc[rng.random(ROWS) < 0.02, name] = None
    frame.to_csv("mixed.csv", index=False)
    return frame


@pytest.mark.parametrize("option", [(), ("--scores",)], ids=str)
def test_python_predicts_raw_rows_as_the_command_line_does_to_the_last_digit(mixed, option):
    call("run", "mixed.csv", *MIXED, "--save", "m.kern")
    said = call("predict", "m.kern", "mixed.csv", *option).stdout.splitlines()
    model = kernling.load("m.kern")
    whole = mixed.dropna(subset=["a", "kind"])
    assert len(said) == ROWS
    assert [bool(line) for line in said] == mixed[["a", "kind"]].notna().all(axis=1).tolist()  # a line for every row
    said = [line for line in said if line]
    method = model.decision_function if option else model.predict
    assert said == [str(one) for one in method(whole).tolist()]
    assert said == [str(one) for one in method(whole[["floor", "b", "kind", "a"]]).tolist()]
    assert said == [str(one) for one in method(whole.drop(columns="late").to_numpy()).tolist()]
    assert said[:50] == [str(one) for one in method(whole[:50].to_dict("records")).tolist()]
    if not option:
        assert said[:50] == [model.predict_one(row) for row in whole[:50].to_dict("records")]
    with pytest.raises(ValueError, match="has no value in column 'a'"):
        model.predict(mixed)
    assert model.model_.t_ == len(whole.dropna())


def test_scaling_leaves_categories_at_0_and_1(mixed):
    call("run", "mixed.csv", *MIXED, "--save", "m.kern")
    pipeline = kernling.load("m.kern")
    names = pipeline.steps_[0][1].get_feature_names_out().tolist()
    rows = pipeline.passed(mixed.dropna())
    assert names == ["a", "kind=x", "kind=y", "kind=z", "kind=?", "b", *(f"floor={i}" for i in (0, 1, 2, 3, "?"))]
    numeric = [names.index("a"), names.index("b")]
    assert np.allclose(rows[:, numeric].mean(axis=0), 0.0, atol=1e-9)
    assert np.allclose(rows[:, numeric].std(axis=0), 1.0)
    assert set(np.unique(np.delete(rows, numeric, axis=1))) == {0.0, 1.0}


def test_resuming_is_the_uncut_run_bit_for_bit(mixed):
    common = (*MIXED, "--checkpoint-every", 250)
    call("run", "mixed.csv", *common, "--save", "whole.kern")
    call("run", "mixed.csv", *common, "--rows", 1000, "--save", "m.kern")
    call("run", "mixed.csv", "--resume", "m.kern", "--checkpoint-every", 250, "--save", "m.kern")
    whole, resumed = models.read("whole.kern"), models.read("m.kern")
    assert resumed.reading == whole.reading
    contents, other = whole.model.to_contents(), resumed.model.to_contents()
    assert contents.header == other.header
    assert contents.arrays.keys() == other.arrays.keys()
    for name, array in contents.arrays.items():
        np.testing.assert_array_equal(array, other.arrays[name])


def test_resume_skips_what_was_learned(folder):
    (folder / "board.libsvm.gz").write_bytes(gzip.compress(libsvm().encode()))
    call("run", "board.libsvm.gz", "--dense", *SETTINGS, "--rows", 1234, "--save", "m.kern")
    call("run", "board.libsvm.gz", "--resume", "m.kern", "--save", "m.kern")
    same("m.kern", reference())


def reading_a_pipe(*options):
    command = [sys.executable, "-m", "kernling", "run", "-", "--format", "csv", "--target", "colour", *options]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_save_what_was_promised(folder, number):
    options = [*SETTINGS, "--save", "m.kern", "--checkpoint-every", "1000"]
    process = reading_a_pipe(*options)
    header, _, body = csv().partition("\n")
    repeats = (2 << 20) // len(body) + 1  # more than one block of the reader, which then waits for more
    process.stdin.write(f"{header}\n{body * repeats}".encode())
    process.stdin.flush()
    deadline = time.monotonic() + 60
    while not (folder / "m.kern").exists():
        assert process.poll() is None, process.stderr.read().decode()
        assert time.monotonic() < deadline
        time.sleep(0.05)
    process.send_signal(number)
    process.wait(60)
    told = process.stderr.read().decode()
    process.stdin.close()
    assert process.returncode == 128 + number, told
    learned = kernling.load("m.kern").t_
    assert learned >= 1000
    assert "with --resume m.kern and the rows that follow" in told


def test_checkpoints_are_whole_models(folder, monkeypatch):
    (folder / "board.libsvm").write_text(libsvm())
    kept = []
    monkeypatch.setattr(models, "save", lambda model, path, *_: kept.append(model.t_))
    call("run", "board.libsvm", *SETTINGS, "--save", "m.kern", "--checkpoint-every", 800)
    assert kept == [800, 1600, 2400, 3000]


@pytest.mark.parametrize("option", [("--every", 100), ("--checkpoint-every", 100)])
def test_how_often_is_measured_or_saved_changes_nothing(folder, option):
    kinds = np.array(["x", "y", "z"])[np.arange(ROWS) // (ROWS // 3)]  # the first 100 rows know one of them
    table = pyarrow.table({"kind": kinds, "a": 1000.0 * X[:, 0], "b": X[:, 1], "late": y})
    pyarrow.parquet.write_table(table, "rows.parquet")
    common = ("rows.parquet", "--learner", "avm", "--target", "late", "--categorical", "kind", "--scale", "standard", "--save")
    call("run", *common, "whole.kern")
    call("run", *common, "often.kern", *option)
    whole, often = models.read("whole.kern"), models.read("often.kern")
    assert whole.model.model_.gamma_ == often.model.model_.gamma_
    assert whole.model.model_.delta_ == often.model.model_.delta_
    assert whole.model.steps_[0][1].to_state() == often.model.steps_[0][1].to_state()
    assert np.array_equal(whole.model.model_.support_vectors_, often.model.model_.support_vectors_)


def test_a_model_that_goes_on_keeps_what_it_is(folder):
    (folder / "rows.csv").write_text(csv())
    (folder / "holes.csv").write_text(csv(slice(10)) + "1,,white\n")
    call("run", "rows.csv", "--target", "colour", "--scale", "standard", *SETTINGS, "--save", "m.kern")
    for option, value in (("--scale", "minmax"), ("--features", "a"), ("--learner", "polk"), ("--categorical", "a")):
        told = call("run", "rows.csv", "--resume", "m.kern", option, value, code=2).stderr
        assert option in told
        assert "leave this option out" in told
    assert "row 11" in call("predict", "m.kern", "holes.csv", "--missing", "error", code=1).stderr
    assert call("predict", "m.kern", "holes.csv").stdout.splitlines()[10] in ("black", "white")  # imputed


def test_rows_at_hand_are_learned_before_ctrl_c_ends_it(folder):
    process = reading_a_pipe(*SETTINGS, "--save", "m.kern")
    process.stdin.write(csv().encode())
    process.stdin.flush()
    while fcntl.ioctl(process.stdin, termios.FIONREAD, bytes(4)) != bytes(4):  # not all is read
        time.sleep(0.05)
    time.sleep(2.0)  # for what was read to become rows, which then wait for more
    process.send_signal(signal.SIGINT)
    process.wait(60)
    process.stdin.close()
    assert process.returncode == 130, process.stderr.read().decode()
    assert kernling.load("m.kern").t_ > ROWS - 100  # the last lines may be part of an unfinished block of bytes


def test_run_and_info_count_points_and_bytes_alike():
    ran = call("run", "checkerboard", "--rows", 1000, *SETTINGS, "--save", "m.kern").output
    model = kernling.load("m.kern")
    for output in (ran, call("info", "m.kern").output):
        assert re.search(rf"points stored +│ +{model.n_stored_:,} ", output)
        assert re.search(rf"(bytes +│ +{model.nbytes_:,} )|({model.nbytes_:,} bytes)", output)
    assert " points " not in call("info", "m.kern").output.replace("points stored", "")  # said once


def test_regression_is_seen_from_the_target(folder):
    call("run", "-", "--format", "csv", "--target", "-1", "--save", "m.kern", stdin="x,y\n" + "1,0.5\n2,1\n" * 50)
    assert type(kernling.load("m.kern").model_).__name__ == "AutoRegressor"
    call("run", "-", "--format", "csv", "--target", "y", "--save", "m.kern", stdin="x,y\n" + "1,0\n2,1\n" * 50)
    assert type(kernling.load("m.kern").model_).__name__ == "AutoClassifier"


def test_scores_and_probabilities():
    call("run", "checkerboard", "--rows", ROWS, "--set", "loss=logistic", *SETTINGS, "--save", "m.kern")
    call("convert", "checkerboard", "rows.csv", "--rows", 5)
    model = kernling.load("m.kern")
    scores = [float(one) for one in call("predict", "m.kern", "checkerboard", "--rows", 5, "--scores").stdout.split()]
    assert np.allclose(scores, model.decision_function(X[:5]))
    call("predict", "m.kern", "checkerboard", "--rows", 5, "--probabilities", "--output", "p.csv")
    header, *lines = Path("p.csv").read_text().splitlines()
    assert header == ",".join(map(str, model.classes_))
    assert np.allclose([list(map(float, line.split(","))) for line in lines], model.predict_proba(X[:5]))
    call("run", "checkerboard", "--rows", 100, *SETTINGS, "--save", "m.kern")
    assert "--set loss=logistic" in call("predict", "m.kern", "checkerboard", "--probabilities", code=1).stderr


def test_a_report_is_a_page_of_html():
    refused = call("run", "checkerboard", "--rows", 100, "--report", "page.pdf", code=2).stderr
    assert "must end in .html" in refused


def test_a_warning_comes_once():
    text = "a,b,y\n" + "".join(f"{1e6 * i},{i % 3},{i % 2}\n" for i in range(50))
    told = call("run", "-", "--target", "y", "--learner", "avm", "--scale", "none", stdin=text).stderr
    assert told.count("ranges differ") == 1
    assert told.count("warning") == 1


@pytest.mark.parametrize("name", ["board.csv", "board.libsvm", "board.jsonl.gz", "board.parquet"])
def test_convert_keeps_every_digit(name):
    call("convert", "checkerboard", name, "--rows", 500)
    call(
        "run",
        name,
        *(() if "libsvm" in name else ("--target", "target", "--scale", "none")),
        "--dense",
        *SETTINGS,
        "--save",
        "m.kern",
    )
    same("m.kern", reference(500))


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("run", "nothing.csv"), 1, "there is no file 'nothing.csv'"),
        (("run", "checkerboard", "--set", "gama=1"), 1, "no parameter 'gama'"),
        (("run", "checkerboard", "--set", "gamma=-1"), 1, "gamma must be"),
        (("run", "checkerboard", "--set", "gamma"), 2, "name=value"),
        (("run", "checkerboard", "--learner", "none"), 2, "there is no method 'none'"),
        (("run", "checkerboard", "--task", "ranking"), 2, "ranking"),
        (("run", "checkerboard", "--missing", "fill"), 2, "fill"),
        (("run", "checkerboard", "--format", "xml"), 2, "xml"),
        (("run", "checkerboard", "--metrics", "mistakes,loss"), 2, "there is no metric 'loss'"),
        (("run", "checkerboard", "--save", "."), 1, "'.' is a folder"),
        (("run", "no_format.txt"), 1, "--format"),
        (("run", "checkerboard", "--checkpoint-every", "10"), 2, "needs --save"),
        (("run", "checkerboard", "--save", "no/such/m.kern"), 1, "there is no folder"),
        (("run", "checkerboard", "--results", "rows.txt"), 2, ".parquet"),
        (("run", "checkerboard", "--scale", "log"), 2, "log"),
        (("run", "checkerboard", "--metrics", "rmse"), 1, "not defined for classification"),
        (("info", "nothing.kern"), 2, "nothing.kern"),
        (("convert", "checkerboard", "rows.txt"), 1, "not to 'rows.txt'"),
    ],
)
def test_errors_are_one_line_and_a_code(arguments, code, message, folder):
    (folder / "no_format.txt").write_text("?")
    told = call(*arguments, code=code).stderr
    assert message in told
    assert "Traceback" not in told


def test_cures_are_written_as_options():
    text = "a,b,y\n" + "".join(f"{1000 * a!r},{b!r},{label}\n" for (a, b), label in zip(X.tolist(), y.tolist(), strict=True))
    options = ("--format", "csv", "--target", "y", *SETTINGS)
    assert "scale them (--scale standard)" in call("run", "-", *options, "--scale", "none", stdin=text).stderr
    assert "warning" not in call("run", "-", *options, stdin=text).stderr
    refused = call("run", "-", *options, "--missing", "error", stdin=text + "1,,1\n", code=1).stderr
    assert "use --missing drop to drop such rows" in refused


def test_rows_without_a_target_are_refused():
    assert "--target" in call("run", "-", "--format", "csv", code=1, stdin="a,b\n1,2\n").stderr


def test_damaged_model_is_refused(folder):
    (folder / "m.kern").write_bytes(b"nonsense")
    assert "not a kernling model" in call("info", "m.kern", code=1).stderr


def _limited(limit):
    return lambda: resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))


@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="RLIMIT_DATA is Linux's")
def test_stream_ten_times_larger_than_memory(folder):
    """RLIMIT_DATA is what ulimit -d sets: heap and private mappings."""
    limit = 512 << 20
    lines = libsvm().encode()
    command = [sys.executable, "-m", "kernling", "run", "-", "--n-features", "2", "--dense"]
    process = subprocess.Popen(
        [*command, "--format", "libsvm", *SETTINGS, "--save", "m.kern"],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=_limited(limit),
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
    )
    repeats = 10 * limit // len(lines) + 1
    for _ in range(repeats):
        process.stdin.write(lines)
    _, told = process.communicate()
    assert process.returncode == 0, told.decode()
    assert kernling.load("m.kern").t_ == repeats * ROWS
