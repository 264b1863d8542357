"""Search: the better candidates survive, in one pass, and the winner has learned everything."""

import json

import numpy as np
import pytest

import kernling
from kernling.baselines import BOGDClassifier, KOILClassifier, OPAUCClassifier
from kernling.core.limits import Diverged
from kernling.estimators.ranges import Among, Log, Rounded, Times, fitting, ranges_of
from kernling.evaluate import Search, search, test_then_train
from kernling.io import Stream, stream, synthetic
from kernling.papers import run_again
from kernling.tables import Standardise

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
    assert rungs == [(200, 4), (600, 2), (1800, 1)]
    assert [row["events"] for row in found.rows] == [3000, 1800, 600, 600, *[200] * 6]
    assert 0 in [row["candidate"] for row in found.rows[:2]]
    early = [row["mistakes"] for row in found.rows[4:]]
    assert early == sorted(early)


def test_the_model_as_given_wins_unless_another_is_better_by_more_than_noise():
    clear = search(
        kernling.AVMClassifier(delta=0.1, gamma=1e-4),
        synthetic("spirals", 1000),
        ranges={"gamma": Among((30.0,))},
        candidates=1,
    )
    assert clear.improved
    assert clear.params == {"gamma": 30.0}
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(1000, 3)), rng.integers(2, size=1000)  # nothing to learn: somebody is always a little better
    for seed in range(5):
        found = search(kernling.AVMClassifier(), stream(X, y), candidates=3, seed=seed)
        assert not found.improved
        assert found.params == {name: kernling.AVMClassifier().get_params()[name] for name in found.params}
        assert found.rows[0]["candidate"] == 0
        assert min(row["mistakes"] for row in found.rows) < found.rows[0]["mistakes"]


def test_a_gain_in_the_first_half_only_is_none():
    """Large steps may help at first, and harm later."""
    running = Search(kernling.AVMClassifier(), {}, candidates=1, first=200)
    running.begin(*synthetic("spirals", 200).load())
    given, other = running._candidates
    given.blocks = [10.0, 11.0] * 10
    for first, second, better in ((5.0, 0.0, False), (5.0, 5.0, True), (0.0, 5.0, True), (5.0, -5.0, False)):
        other.blocks = [10.5 - first] * 10 + [10.5 - second] * 10
        assert running._is_better(other, given) == better


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
    right = search(kernling.AVMClassifier(delta=0.1, gamma=1e-5), synthetic("spirals", 800), validation=(X, y), **options)
    assert right.params["gamma"] == 30.0
    model = kernling.AVMClassifier(delta=0.1, gamma=20.0)
    upside_down = search(model, synthetic("spirals", 800), validation=(X, -y), **options)
    assert upside_down.params["gamma"] == 1e-4
    assert upside_down.rows[0]["mistakes_validation"] == np.mean(upside_down.model.predict(X) != -y)


def test_a_candidate_that_fails_drops_out_and_its_row_says_why():
    ranges = {"eta": Among((5.0, 0.01, 0.1, 7.0))}
    found = search(KOILClassifier(random_state=0), synthetic("gaussian", 900), ranges=ranges, grid=True, first=300)
    assert found.params["eta"] in (0.01, 0.1)
    assert found.model.t_ == 900
    assert [(row["events"], "failed" in row) for row in found.rows] == [
        (900, False),
        (900, False),
        (300, False),
        (0, True),
        (0, True),
    ]
    assert "at most 0.999, not 5.0" in found.rows[3]["failed"]
    with pytest.raises(ValueError, match=r"nothing to run again: .* not 5\.0"):
        run_again(found.rows[3])
    with pytest.raises(ValueError, match=r"not 5\.0"):
        search(KOILClassifier(eta=5.0), synthetic("gaussian", 900), ranges={"eta": Among((6.0, 7.0))}, grid=True)


def test_a_candidate_that_diverges_on_the_way_keeps_what_it_learned():
    X = np.vstack([np.full((500, 1), 0.1), np.full((500, 1), 1e3)])
    y = np.tile([1.0, -1.0], 500)
    ranges = {"eta": Among((1.0, 1e-9))}
    found = search(OPAUCClassifier(), stream(X, y, chunk=100), ranges=ranges, grid=True, first=800)
    assert found.params["eta"] == 1e-9
    assert found.rows[1]["failed"] == str(Diverged())
    assert found.rows[1]["events"] == 500


def test_what_decides_auto_is_the_first_chunk_not_the_first_rung():
    ranges = {"lam": Among((1e-4, 1e-3))}
    found = search(kernling.AVMClassifier(), synthetic("spirals", ROWS), ranges=ranges, grid=True, first=100)
    alone = kernling.AVMClassifier(lam=found.params["lam"])
    test_then_train(alone, synthetic("spirals", ROWS))
    assert found.model.delta_ == alone.delta_
    assert found.model.gamma_ == alone.gamma_


def test_whole_numbers_stay_whole():
    found = search(BOGDClassifier(), synthetic("spirals", 300), ranges={"budget": Log(10, 100)}, candidates=4, seed=3)
    tried = [json.loads(row["params"])["budget"] for row in found.rows]
    assert all(isinstance(one, int) and 10 <= one <= 100 for one in tried)
    assert len(set(tried)) > 1
    assert Rounded(Log(1.0, 4.0)).grid(9, 1.0) == [1, 2, 3, 4]
    piped = kernling.StreamPipeline([("scale", Standardise()), ("model", BOGDClassifier())])
    ranges = {"model__budget": Log(1.0, 4.0), "model__gamma": Log(1.0, 4.0)}
    assert fitting(ranges, piped) == {"model__budget": Rounded(Log(1.0, 4.0)), "model__gamma": Log(1.0, 4.0)}


def test_models_that_are_too_large_come_last():
    options = {"ranges": {"delta": Among((0.02, 0.5))}, "grid": True, "first": 500}
    model = kernling.AVMClassifier(gamma=30.0, delta=2.0)
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
    assert declared == {name: one.search for name, one in cls.parameters.items() if one.search is not None}
    assert set(declared) <= set(cls().get_params())
    assert 3 <= len(declared) <= 5
    assert "eta" in declared or "lam" in declared


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
    assert len(tried) == 19
    assert len({(one["gamma"], one["lam"], one["loss"]) for one in tried}) == 19


def test_wrong_searches_are_refused():
    rows = synthetic("spirals", 100)
    with pytest.raises(ValueError, match="no parameter 'sigma'"):
        search(kernling.AVMClassifier(), rows, ranges={"sigma": Log(1.0, 2.0)})
    with pytest.raises(ValueError, match="no parameter is left to search"):
        search(kernling.AVMClassifier(), rows, ranges={})
    with pytest.raises(ValueError, match="metric"):
        search(kernling.AVMClassifier(), rows, metric="speed")
    with pytest.raises(ValueError, match="no rows"):
        search(kernling.AVMClassifier(), synthetic("spirals", 0))
