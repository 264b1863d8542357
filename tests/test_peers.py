"""The comparison with other libraries: its streams, that a run goes on where it stopped, and how results are compared."""

import json

import numpy as np
import pytest

pytest.importorskip("river")

from benchmarks import peer_contestants, peer_moa, peer_report, peer_results
from benchmarks.peer_streams import STREAMS, PeerStream, standardise_running

SMALL = PeerStream(lambda: (np.random.default_rng(0).normal(3.0, 5.0, (300, 2)), np.arange(300) % 3), 300, 2, 3)


def test_standardisation_uses_no_later_rows():
    X = np.random.default_rng(0).normal(100.0, 3.0, (40, 3))
    X[:, 1] = 7.0
    X[:20, 2] = 1.0
    found = standardise_running(X)
    for t in range(len(X)):
        upto = X[: t + 1]
        spread = upto.std(axis=0)
        expected = np.where(spread > 0.0, (X[t] - upto.mean(axis=0)) / np.where(spread > 0.0, spread, 1.0), 0.0)
        np.testing.assert_allclose(found.scaled[t], expected, atol=1e-12)
        if t:
            np.testing.assert_allclose(found.shift[t], X[:t].mean(axis=0))
            np.testing.assert_allclose(found.width[t], X[:t].std(axis=0), atol=1e-12)


def test_there_are_the_streams_of_both_tasks():
    tasks = [stream.task for stream in STREAMS.values()]
    assert (tasks.count("classification"), tasks.count("regression")) == (19, 6)


@pytest.mark.parametrize("name", [name for name, stream in STREAMS.items() if not stream.files and stream.rows < 20_000])
def test_streams_have_their_declared_shape(name):
    stream = STREAMS[name]
    events = stream.read()
    assert events.X.shape == (stream.rows, stream.columns)
    assert np.isfinite(events.X).all()
    if stream.classes:
        assert np.unique(events.y).tolist() == list(range(stream.classes))


def test_answers_of_regression_become_values_by_what_was_known_before():
    events = STREAMS["chick-weights"].read()
    run = peer_contestants.run(peer_contestants.Constant, events, 0, 0, 10.0)
    judged = peer_results.values_judged(run, events)
    means = np.cumsum(events.values)[:-1] / np.arange(1, len(events.values))
    squares = (means - events.values[1:]) ** 2 / events.values.var()
    assert judged["error"] == pytest.approx(np.sqrt(squares.mean()))


def test_neighbours_are_those_of_the_window(monkeypatch):
    monkeypatch.setattr(peer_contestants.Neighbours, "window", 30)
    events = SMALL.read(100)
    said = peer_contestants.run(peer_contestants.Neighbours, events, 3, 0, 10.0).answers
    for t in range(1, 100):
        begin = max(0, t - 30)
        distances = np.linalg.norm(events.X[begin:t] - events.X[t], axis=1)
        near = np.argsort(distances)[:5]
        votes = np.bincount(events.y[begin:t][near], 1.0 / distances[near], minlength=3) / (1.0 / distances[near]).sum()
        assert said.predicted[t] == votes.argmax()
        np.testing.assert_allclose(said.shares[t], votes)


def test_what_is_there_is_not_measured_again(tmp_path, capsys):
    path = tmp_path / "results.jsonl"
    chosen = [one for one in peer_contestants.contestants() if one.name in ("constant", "sklearn-sgd", "river-linear")]
    peer_results.measure(path, {"small": SMALL}, chosen[:2], rows=100, seed=0, limit=10.0)
    before = path.read_text()
    assert len(before.splitlines()) == 2
    peer_results.measure(path, {"small": SMALL}, chosen, rows=100, seed=0, limit=10.0)
    after = path.read_text()
    assert after.startswith(before)
    assert json.loads(after.splitlines()[-1])["contestant"] == chosen[2].name
    assert len(after.splitlines()) == 3


def test_a_contestant_that_is_out_of_time_stops_and_is_compared_on_common_rows():
    events = SMALL.read()
    chosen = {one.name: one for one in peer_contestants.contestants()}
    slow = peer_results.measured(chosen["river-linear"], SMALL, events, 0, limit=0.0)
    whole = peer_results.measured(chosen["constant"], SMALL, events, 0, limit=10.0)
    assert (slow["rows"], whole["rows"]) == (peer_contestants.PATIENCE, 300)
    losses = peer_results.losses(whole)
    assert losses.mean() == pytest.approx(whole["error"])
    comparison = peer_results.compare(slow, whole)
    assert comparison.ratio == pytest.approx(slow["error"] / losses[: slow["rows"]].mean())


def test_a_contestant_that_fails_says_why():
    def fail(*_):
        raise ValueError("no such thing")

    contestant = peer_contestants.Contestant("x", "X", "ours", ("classification",), "1", fail)
    assert peer_results.measured(contestant, SMALL, SMALL.read(), 0, 1.0) == {"failure": "ValueError: no such thing"}


def test_calibration_error_of_the_top_label():
    confidence = np.array([0.9, 0.9, 0.9, 0.9, 0.5, 0.5])
    right = np.array([True, True, True, False, True, False])
    assert peer_results.calibration_error(right, confidence) == pytest.approx(4 / 6 * 0.15)


def test_paired_standard_error():
    wrong = np.zeros((2, 400), dtype=bool)
    wrong[0, :40] = wrong[1, 20:50] = True
    answers = [peer_contestants.Run(peer_contestants.Answers(side.astype(int)), 1.0, None) for side in wrong]
    events = SMALL.read()._replace(y=np.zeros(400, dtype=int))
    rows = [peer_results.labels_judged(run, events) | {"rows": 400} for run in answers]
    comparison = peer_results.compare(*rows)
    difference = wrong[0].astype(float) - wrong[1]
    assert comparison.ratio == pytest.approx(40 / 30)
    assert comparison.error == pytest.approx(difference.std(ddof=1) / np.sqrt(400))


def test_moa_is_left_out_with_a_reason(monkeypatch, capsys):
    monkeypatch.setenv("MOA_JAR", "/nowhere/moa.jar")
    monkeypatch.setattr(peer_moa.shutil, "which", lambda name: "java")
    assert peer_moa.moa() == []
    assert "/nowhere/moa.jar" in capsys.readouterr().out


def test_moa_predictions_are_read(tmp_path):
    path = tmp_path / "said.csv"
    path.write_text("null,0.0\nOut 0: -0.333 ,1.0\n")
    assert peer_moa.read_predictions(path, 0).tolist() == [0.0, -0.333]
    path.write_text("2,1\n0,0\n")
    assert peer_moa.read_predictions(path, 3).tolist() == [2, 0]


def row_of(stream, name, wrong):
    """A row of results with these mistakes."""
    run = peer_contestants.Run(peer_contestants.Answers(wrong.astype(int)), 1.0, None)
    judged = peer_results.labels_judged(run, SMALL.read()._replace(y=np.zeros(len(wrong), dtype=int)))
    return {(stream, name): judged | {"rows": len(wrong), "of": 1_000, "microseconds": 1.0}}


def test_summary_counts_streams_where_auto_is_near_the_best():
    wrong = np.arange(1_000) % 10 == 0  # a tenth, spread evenly
    worse = wrong | (np.arange(1_000) % 4 == 1)
    base = row_of("sea", "avm", worse) | row_of("digits", "avm", wrong)
    results = base | row_of("sea", "auto", wrong) | row_of("sea", "krls", np.zeros(1_000, dtype=bool))
    results |= row_of("digits", "auto", worse)
    lines = "\n".join(peer_report.summary(results, base))
    assert "classification, best or near it on 1 of 2 streams" in lines
    assert "over the best of the others, on digits: 3.5 (goal: at most 1.15, missed)" in lines
    assert "auto, classification, relative to base AVM: 1 (" in lines  # 0.1 / 0.35 on one stream, 0.35 / 0.1 on the other


def test_summary_compares_on_common_rows():
    late = np.arange(1_000) >= 500  # all of its mistakes come late
    base = row_of("sea", "avm", late)
    results = base | row_of("sea", "auto", late) | row_of("sea", "river-arf", np.arange(500) == 0)
    lines = "\n".join(peer_report.summary(results, base))
    assert "classification, best or near it on 1 of 1 streams" in lines
