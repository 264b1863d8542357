"""The arena: what its contestants may know, how results are judged, and that printed ones are converted correctly."""

import json

import numpy as np
import pandas as pd
import pytest
from threadpoolctl import threadpool_limits

pytest.importorskip("river")

from benchmarks import arena_contestants, arena_report, arena_results
from benchmarks.arena_streams import STREAMS, ArenaStream
from benchmarks.peer_contestants import Answers, Run, run
from benchmarks.peer_streams import Events
from kernling.papers.datasets import data_folders


def events_of(rows=400, classes=3, text=False):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, 2))
    y = rng.integers(0, classes, rows) if classes else 10.0 * X[:, 0]
    frame = pd.DataFrame({"number": X[:, 0], "word": np.where(X[:, 1] > 0, "up", "down")}) if text else X
    return Events(frame, y, np.zeros(rows), np.ones(rows), y)


@pytest.mark.parametrize(("classes", "text"), [(2, True), pytest.param(3, False, marks=pytest.mark.long), (0, True)])
def test_contestants_answer_before_they_learn(classes, text, monkeypatch):
    """With the targets after a row exchanged, what was answered up to that row is the same."""
    monkeypatch.setattr(arena_contestants, "TIMES", 4)
    first = events_of(classes=classes, text=text)
    other = first._replace(y=np.concatenate([first.y[:200], first.y[200:][::-1]]))
    for one in arena_contestants.contestants():
        if one.name in ("constant", "no-change", "river-linear", "hgb-refitted", "auto"):
            with threadpool_limits(1):
                answers = [one.run(events, classes, 0, 60.0).answers for events in (first, other)]
            np.testing.assert_allclose(answers[0].predicted[:201], answers[1].predicted[:201], rtol=1e-9, err_msg=one.name)
            if answers[0].shares is not None:
                assert answers[0].shares.shape == (400, classes)


def test_boosted_trees_are_refitted_at_every_twentieth(monkeypatch):
    sizes = []
    trees = arena_contestants.HistGradientBoostingRegressor
    monkeypatch.setattr(trees, "fit", lambda self, X, y: sizes.append(len(y)) or self)
    monkeypatch.setattr(trees, "predict", lambda self, X: np.zeros(len(X)))
    run(arena_contestants.Refitted, events_of(classes=0), 0, 0, 60.0)
    assert sizes == list(range(20, 401, 20))


def test_labels_are_judged():
    y = np.array([0, 1, 1, 0])
    shares = np.array([[0.8, 0.2], [0.4, 0.6], [0.5, 0.5], [0.1, 0.9]])
    events = events_of(4, 2)._replace(y=y)
    judged = arena_results.labels_judged(Run(Answers(shares.argmax(axis=1), shares[:, 1], shares), 1.0, None), events)
    assert judged["error"] == 0.5  # the third row is a tie, which goes to the first label
    assert judged["log_loss"] == pytest.approx(-np.log([0.8, 0.6, 0.5, 0.1]).mean())
    assert judged["auc"] == 0.5


def test_curve_is_of_the_whole_stream_however_far_a_contestant_came():
    assert arena_results.curve(np.arange(100.0), 100) == [0.5 + 2 * i for i in range(50)]
    assert arena_results.curve(np.arange(30.0), 100) == [0.5 + 2 * i for i in range(15)]


def test_accuracy_follows_from_printed_kappa():
    """StreamArena prints 31.793 for a forest on electricity, where repeating the last label is right on 85.33 %."""
    found = arena_report.printed({("electricity", "no-change"): {"error": 0.1467}}, "electricity")
    assert 100.0 * (1.0 - found["ARF"]["error"]) == pytest.approx(89.99, abs=0.01)
    assert arena_report.best_printed({("electricity", "no-change"): {"error": 0.1467}}, "electricity") == "89.99, 0.252 ARF"
    assert arena_report.best_printed({}, "fried") == "2.02 SOKNL"


def test_runs_that_were_ended_stand_beside_auto_on_the_same_rows():
    curve = [0.5, 0.25] + [0.1] * 48
    results = {
        ("weather", "auto"): {"error": 0.12, "curve": curve, "rows": 18_159},
        ("weather", "no-change"): {"error": 0.3, "log_loss": 1.0, "rows": 544, "of": 18_159},
        ("weather", "constant"): {"error": 0.3, "rows": 18_159},
        ("powersupply", "auto"): {"error": 0.12, "curve": curve, "rows": 29_927},
        ("powersupply", "no-change"): {"error": 0.3, "rows": 400},  # less than the first part of the curve
        ("bike", "auto"): {"rmse": 9.0, "curve": [3.0, 4.0] + [9.0] * 48, "rows": 17_379},
        ("bike", "no-change"): {"rmse": 100.0, "rows": 694},
    }
    chosen = [one for one in arena_contestants.contestants() if one.name in ("constant", "no-change")]
    _, *lines = arena_report.unfinished(results, chosen)
    assert lines == [
        ["weather", "last label", "544", "3", "70.00", "58.32"],  # 1 - (0.5 + 0.25 / 2) / 1.5, but for half a row
        ["powersupply", "last label", "400", "1.3", "70.00", ""],
        ["bike", "last label", "694", "4", "100", "3.54"],  # the root of (9 + 16) / 2
    ]


def test_text_becomes_nominal_columns_of_weka(tmp_path):
    arena_contestants.write_arff(tmp_path / "stream.arff", events_of(3, 2, text=True), 2)
    lines = (tmp_path / "stream.arff").read_text().splitlines()
    assert lines[1:5] == ["@attribute number numeric", "@attribute word {down,up}", "@attribute y {0,1}", "@data"]
    assert len(lines) == 8


def test_rows_resume_and_tables_show_them(tmp_path, monkeypatch):
    monkeypatch.setattr(ArenaStream, "read", lambda self, name, rows=None: events_of())
    path = tmp_path / "results.jsonl"
    stream = {"weather": ArenaStream(400, 2, 3)}
    chosen = [one for one in arena_contestants.contestants() if one.name in ("constant", "no-change")]
    arena_results.measure(path, stream, chosen[:1], None, 0, 10.0)
    arena_results.measure(path, stream, chosen, None, 0, 10.0)
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    assert [row["contestant"] for row in rows] == ["constant", "no-change"]
    results = {(row["stream"], row["contestant"]): row for row in rows}
    arena_report.write_page(results, chosen, tmp_path / "page.md")
    assert f"| weather | {arena_report.cell(rows[0])} | {arena_report.cell(rows[1])} |" in (tmp_path / "page.md").read_text()
    arena_report.draw(results, chosen, tmp_path)
    assert (tmp_path / "arena.png").stat().st_size > 10_000


@pytest.mark.parametrize("name", ["powersupply", "bike"])
def test_streams_have_their_declared_shape(name):
    if not any((folder / "streams").is_dir() for folder in data_folders()):
        pytest.skip("the streams are not in KERNLING_DATA")
    stream = STREAMS[name]
    events = stream.read(name)
    assert events.X.shape == (stream.rows, stream.columns)
    assert len(np.unique(events.y)) == stream.classes or not stream.classes
