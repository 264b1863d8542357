"""Search: the better candidates survive, in one pass, and the winner has learned everything."""

import json

import numpy as np
import pytest

import kernling
from kernling.estimators.ranges import Among, Log, Times, ranges_of
from kernling.evaluate import search, test_then_train
from kernling.streams import Stream, synthetic

ROWS = 3000


def counted(rows):
    """A stream that can be read once only, and the rows that were taken from it."""
    taken = []

    def pieces(_):
        for X, y in rows:
            taken.append(len(y))
            yield X, y

    return Stream(pieces, chunk=rows.chunk, once=True), taken


def test_winner_is_the_best_and_has_learned_all_rows_in_one_pass():
    rows, taken = counted(synthetic("spirals", ROWS, chunk=700))
    gammas = (1e-6, 30.0, 1e-5, 1e-4)
    found = search(kernling.AVMClassifier(delta=0.1), rows, ranges={"gamma": Among(gammas)}, candidates=4, grid=True, first=300)
    assert found.params == {"gamma": 30.0}
    assert sum(taken) == found.model.t_ == ROWS
    alone = test_then_train(kernling.AVMClassifier(delta=0.1, gamma=30.0), synthetic("spirals", ROWS))[-1]
    assert found.rows[0]["mistakes"] == alone["mistakes"]


def test_candidates_drop_out_by_thirds():
    rungs = []
    found = search(
        kernling.AVMClassifier(),
        synthetic("spirals", ROWS),
        candidates=9,
        first=200,
        on_rung=lambda events, left: rungs.append((events, left)),
    )
    assert rungs == [(200, 3), (600, 1)]
    assert [row["events"] for row in found.rows] == [3000, 600, 600, *[200] * 6]
    early = [row["mistakes"] for row in found.rows[3:]]
    assert early == sorted(early)


def test_same_seed_same_candidates():
    params = [
        [row["params"] for row in search(kernling.AVMClassifier(), synthetic("spirals", 600), candidates=3, seed=s).rows]
        for s in (1, 1, 2)
    ]
    assert params[0] == params[1] != params[2]


def test_validation_rows_decide():
    X, y = synthetic("spirals", 500, seed=1).load()
    ranges = {"gamma": Among((30.0, 1e-4))}
    options = {"ranges": ranges, "grid": True, "first": 400}
    assert (
        search(kernling.AVMClassifier(delta=0.1), synthetic("spirals", 800), validation=(X, y), **options).params["gamma"]
        == 30.0
    )
    upside_down = search(kernling.AVMClassifier(delta=0.1), synthetic("spirals", 800), validation=(X, -y), **options)
    assert upside_down.params["gamma"] == 1e-4


def test_models_that_are_too_large_come_last():
    options = {"ranges": {"delta": Among((0.02, 0.5))}, "grid": True, "first": 500}
    model = kernling.AVMClassifier(gamma=30.0)
    assert search(model, synthetic("spirals", 1000), **options).params["delta"] == 0.02
    small = search(model, synthetic("spirals", 1000), max_points=100, **options)
    assert small.params["delta"] == 0.5
    assert small.model.n_stored_ <= 100


@pytest.mark.parametrize(
    "cls",
    [
        kernling.AVMClassifier,
        kernling.POLKClassifier,
        kernling.SPAClassifier,
        kernling.DualSVRGClassifier,
        kernling.AOGDClassifier,
    ],
)
def test_methods_declare_what_they_have(cls):
    declared = ranges_of(cls())
    assert declared == cls.search
    assert set(declared) <= set(cls().get_params())
    assert len(declared) == 3


def test_ranges():
    assert Log(0.01, 100.0).grid(3, 7.0) == pytest.approx([0.01, 1.0, 100.0])
    assert Times(0.5, 2.0).grid(3, 7.0) == pytest.approx([3.5, 7.0, 14.0])
    assert Among(("a", "b")).grid(9, 1.0) == ["a", "b"]
    assert [Among(("a", "b")).at(share, 1.0) for share in (0.0, 0.49, 0.5, 0.999)] == ["a", "a", "b", "b"]
    drawn = [Log(1e-3, 1e3).at(u, 1.0) for u in np.linspace(0, 0.999, 100)]
    assert np.mean(np.array(drawn) < 1.0) == pytest.approx(0.5, abs=0.02)


def test_grid_has_no_more_points_than_asked_for():
    ranges = {"gamma": Log(1.0, 100.0), "lam": Log(1e-6, 1e-3), "loss": Among(("hinge", "logistic"))}
    found = search(kernling.AVMClassifier(delta=0.3), synthetic("spirals", 400), ranges=ranges, grid=True, candidates=20)
    tried = [json.loads(row["params"]) for row in found.rows]
    assert len(tried) == 18
    assert len({(one["gamma"], one["lam"], one["loss"]) for one in tried}) == 18


def test_wrong_searches_are_refused():
    rows = synthetic("spirals", 100)
    with pytest.raises(ValueError, match="no parameter 'sigma'"):
        search(kernling.AVMClassifier(), rows, ranges={"sigma": Log(1.0, 2.0)})
    with pytest.raises(ValueError, match="metric"):
        search(kernling.AVMClassifier(), rows, metric="speed")
    with pytest.raises(ValueError, match="no rows"):
        search(kernling.AVMClassifier(), synthetic("spirals", 0))
