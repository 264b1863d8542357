"""A run that was cut anywhere and goes on with --resume is the uncut run, bit for bit; a model file knows where to go on."""

import re

import numpy as np
import pandas
import pytest

import kernling
from commands import call
from kernling import models, registry
from kernling.evaluate import test_then_train as measured
from kernling.io import stream, synthetic

pytestmark = pytest.mark.usefixtures("folder")

METHODS = [(name, cls.task) for name, entry in registry.METHODS.items() for cls in entry.classes() if cls.task != "oneclass"]
METHODS = [(name, task) for name, task in METHODS if hasattr(registry.estimator_for(name, task), "predict_then_learn")]
CUTS = (1, 127, 129, 201)


def assert_same_model(one, other):
    """All but the rows of the file it was read from."""
    first, second = (models.read(path).model.to_contents() for path in (one, other))
    assert first.header == second.header
    assert first.arrays.keys() == second.arrays.keys()
    for name, array in first.arrays.items():
        assert array.tobytes() == second.arrays[name].tobytes(), name


def rows_for(name, task, n):
    """Two informative columns in a CSV file, whose second class or third comes late; values for a regression."""
    X, y = synthetic("checkerboard", n).load()
    cls = registry.estimator_for(name, task)
    y = X[:, 0] * X[:, 1] + 0.1 * y if task == "regression" else np.where(np.arange(n) < n // 5, np.abs(y), y)
    if task == "classification" and not cls.pairwise:
        y[n // 2 :: 7] = 2
    pandas.DataFrame({"a": 100.0 * X[:, 0], "b": X[:, 1], "y": y}).to_csv("rows.csv", index=False)
    return ("rows.csv", "--target", "y", "--learner", name, "--task", task)


def assert_resuming_is_uncut(options, cuts, *more):
    call("run", *options, *more, "--save", "whole.kern")
    for cut in cuts:
        call("run", *options, *more, "--rows", cut, "--save", "cut.kern")
        place = models.read("cut.kern").place
        assert (place["row"], place["data"]) == (cut, [options[0]])
        told = call("run", options[0], *more, "--resume", "cut.kern", "--save", "cut.kern").stderr
        assert f"continuing after row {cut:,} of {options[0]}" in told
        assert_same_model("cut.kern", "whole.kern")


def long_unless_main(name, task):
    return pytest.param(name, task, marks=[] if registry.METHODS[name].is_main else pytest.mark.long)


@pytest.mark.parametrize(("name", "task"), [long_unless_main(*one) for one in dict(METHODS).items()])
def test_resuming_is_the_uncut_run_whatever_the_method_and_the_cut(name, task):
    cut = CUTS[METHODS.index((name, task)) % len(CUTS)]
    assert_resuming_is_uncut(rows_for(name, task, 260), [cut])


@pytest.mark.long
@pytest.mark.parametrize(("name", "task"), METHODS)
def test_resuming_is_the_uncut_run_at_every_odd_place(name, task):
    options = rows_for(name, task, 8500)
    assert_resuming_is_uncut(options, (1, 127, 129, 1001, 8191, 8193))
    assert_resuming_is_uncut(options, (1001, 2000), "--every", 300, "--checkpoint-every", 1000)


def test_polk_goes_on_after_the_rows_that_wait_for_a_batch():
    options = (*rows_for("polk", "classification", 260), "--set", "batch_size=16")
    call("run", *options, "--rows", 101, "--save", "m.kern")
    model = kernling.load("m.kern")
    assert (model.t_, model.n_waiting_) == (96, 5)
    shown = call("info", "m.kern").output
    assert "101 of rows.csv" in shown
    assert "96, and 5 more wait for a batch" in shown
    call("run", "rows.csv", "--resume", "m.kern", "--save", "m.kern")
    call("run", *options, "--save", "whole.kern")
    assert_same_model("m.kern", "whole.kern")


def test_a_pipe_goes_on_with_what_comes_and_no_skip_is_advised(folder):
    options = rows_for("avm", "classification", 400)
    header, *lines = (folder / "rows.csv").read_text().splitlines(keepends=True)
    said = call("run", "-", *options[1:], "--save", "m.kern", code=1, stdin="".join([header, *lines[:114], "1,2\n"])).stderr
    assert "--resume m.kern and the rows that follow" in said
    assert "--skip" not in said
    call("run", "-", "--resume", "m.kern", "--save", "m.kern", stdin="".join([header, *lines[114:]]))
    assert kernling.load("m.kern").t_ == 400


def test_damage_that_was_mended_and_rows_that_were_added(folder):
    options = (*rows_for("avm", "classification", 1200), "--set", "gamma=1", "--set", "delta=0.5")  # not from rows to come
    call("run", *options, "--save", "whole.kern")
    text = (folder / "rows.csv").read_text()
    lines = text.splitlines(keepends=True)
    (folder / "rows.csv").write_text("".join([*lines[:1001], "1,2\n", *lines[1001:]]))
    said = call("run", *options, "--save", "m.kern", code=1).stderr
    assert "learned 1,000 events" in said
    assert "with --resume m.kern\n" in said
    (folder / "rows.csv").write_text("".join(lines[:1101]))
    call("run", "rows.csv", "--resume", "m.kern", "--save", "m.kern")
    (folder / "rows.csv").write_text(text)
    call("run", "rows.csv", "--resume", "m.kern", "--save", "m.kern")
    assert_same_model("m.kern", "whole.kern")


def test_dropped_rows_are_neither_learned_nor_answered_again(folder):
    """Rows of the data and events differ: the rest of the answers follows what the cut run has written."""
    options = (*rows_for("avm", "classification", 260), "--missing", "drop")
    frame = pandas.read_csv("rows.csv")
    frame.loc[[3, 100, 128, 130, 145, 146, 200], "a"] = np.nan
    frame.to_csv("rows.csv", index=False)
    call("run", *options, "--save", "whole.kern", "--predictions", "whole.csv")
    call("run", *options, "--rows", 151, "--save", "cut.kern", "--predictions", "first.csv")
    assert models.read("cut.kern").place["row"] == 151
    more = ("--missing", "drop", "--save", "cut.kern", "--predictions", "rest.csv")
    shown = call("run", "rows.csv", "--resume", "cut.kern", *more).stdout
    assert re.search(r"│ events +│ +108 │", shown)  # 109 rows, without one
    assert_same_model("cut.kern", "whole.kern")
    assert kernling.load("cut.kern").t_ == 253
    whole, first, rest = ((folder / f"{name}.csv").read_text().splitlines() for name in ("whole", "first", "rest"))
    assert whole == first + rest


def test_a_file_that_is_added_to_the_list_is_learned_after_the_others(folder):
    options = (*rows_for("avm", "classification", 300), "--set", "gamma=1", "--set", "delta=0.5")  # not from rows to come
    header, *lines = (folder / "rows.csv").read_text().splitlines(keepends=True)
    (folder / "first.csv").write_text("".join([header, *lines[:200]]))
    (folder / "second.csv").write_text("".join([header, *lines[200:]]))
    call("run", "first.csv", *options[1:], "--save", "m.kern")
    told = call("run", "first.csv", "second.csv", "--resume", "m.kern", "--save", "m.kern").stderr
    assert "continuing after row 200" in told
    assert kernling.load("m.kern").t_ == 300
    assert models.read("m.kern").place["data"] == ["first.csv", "second.csv"]
    call("run", "first.csv", "second.csv", *options[1:], "--save", "whole.kern")
    assert_same_model("m.kern", "whole.kern")


def test_other_data_are_learned_from_their_first_row_and_doubt_is_told(folder):
    options = rows_for("avm", "classification", 300)
    call("run", *options, "--save", "m.kern")
    text = (folder / "rows.csv").read_text()
    header, *lines = text.splitlines(keepends=True)
    (folder / "friday.csv").write_text("".join([header, *reversed(lines)]))
    call("run", "friday.csv", "--resume", "m.kern", "--save", "two.kern")
    assert kernling.load("two.kern").t_ == 600
    (folder / "copy.csv").write_text(text)
    assert (
        "use --skip 300 to continue after them, or --skip 0 to learn all rows"
        in call("run", "copy.csv", "--resume", "m.kern", code=1).stderr
    )
    (folder / "rows.csv").write_text("".join([header, *reversed(lines)]))
    assert "--skip 300" in call("run", "rows.csv", "--resume", "m.kern", code=1).stderr
    assert "--skip 300" in call("run", "rows.csv", "--shuffle", 1, "--resume", "m.kern", code=1).stderr
    call("run", "rows.csv", "--resume", "m.kern", "--skip", 0, "--save", "two.kern")
    assert kernling.load("two.kern").t_ == 600


@pytest.mark.parametrize("method", ["avm", "polk", "krls"])
def test_what_the_first_rows_settle_depends_on_neither_rows_nor_chunks(method):
    options = rows_for(method, "classification", 9000)
    call("run", *options, "--rows", 60, "--save", "few.kern")
    call("run", *options, "--rows", 60, "--skip", 8190, "--save", "late.kern")
    call("run", *options, "--save", "all.kern")
    few, late, whole = (kernling.load(path).model_ for path in ("few.kern", "late.kern", "all.kern"))
    resolved = [name for name, declared in whole.parameters.items() if declared.resolve]
    assert "gamma" in resolved
    for name in resolved:
        assert getattr(few, f"{name}_") == getattr(whole, f"{name}_")
        assert getattr(late, f"{name}_") != pytest.approx(1.0 / 2)  # of two rows
    X, y = synthetic("checkerboard", 3000).load()
    seen = set()
    for chunk in (70, 1000, 8192):
        model = registry.estimator_for(method, "classification")()
        measured(model, stream(5.0 * X, y, chunk=chunk))
        seen.add(tuple(getattr(model, f"{name}_") for name in resolved))
    assert len(seen) == 1


def test_a_forged_place_is_told():
    options = rows_for("avm", "classification", 300)
    call("run", *options, "--rows", 200, "--save", "m.kern")
    saved = models.read("m.kern")
    good = saved.place
    forged = [
        {},
        [],
        "1",
        good | {"row": -1},
        good | {"exact": 201},
        good | {"head": 3},
        good | {"data": []},
        good | {"row": "1"},
    ]
    for place in forged:
        models.save(saved.model, "m.kern", saved.reading, place, models.unpacked(saved.before, "").model)
        if place:
            told = call("run", "rows.csv", "--resume", "m.kern", code=1).stderr
            assert ("use --skip" if isinstance(place, dict) else "the entry 'place' is") in told


@pytest.mark.parametrize(("rows", "again"), [(200, 0), (230, 30)])
def test_an_earlier_model_is_only_kept_where_an_uncut_run_would_not_stop(rows, again):
    """After a multiple of --checkpoint-every, the model itself is exact."""
    options = rows_for("avm", "classification", 260)
    call("run", *options, "--checkpoint-every", 100, "--rows", rows, "--save", "cut.kern")
    saved = models.read("cut.kern")
    assert (saved.before is None, saved.place["again"]) == (not again, again)
