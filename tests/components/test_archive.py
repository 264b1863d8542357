"""The memory of past events: its cells, bounds, files and merges; tests/oracles/auto.py has its slow version."""

import numpy as np
import pytest

import kernling as kl
from kernling.components import archive as archives
from kernling.components.archive import CELLS, CLOCK, HELD, MOST, ROOM, VIEWS, Archive, new_archive
from kernling.core.limits import LARGEST
from kernling.core.shapes import verify
from kernling.core.state import Widening, nbytes

ONES = np.ones(3)


def learn(archive: Archive, X: np.ndarray, targets: np.ndarray, weights: np.ndarray, outputs: int) -> np.ndarray:
    """Store events; return their scores before."""
    out = np.empty((VIEWS, max(1, outputs), len(X)))
    archives.learn(archive, X, targets, weights, outputs, out)
    return out


def scores_of(archive: Archive, X: np.ndarray, outputs: int) -> np.ndarray:
    return learn(archive, X, np.zeros(len(X)), np.zeros(len(X)), outputs)


def as_stored(X: np.ndarray, stretch: np.ndarray) -> np.ndarray:
    return np.clip(X, -LARGEST["float32"], LARGEST["float32"]).astype(np.float32) * stretch.astype(np.float32)


def filled(n: int, budget: int = 4000, seed: int = 0, outputs: int = 1) -> Archive:
    """A memory that has learned two classes, or values if there are no outputs, of random rows."""
    rng = np.random.default_rng(seed)
    archive = new_archive(3, budget).grown(0)
    X = rng.normal(size=(n, 3))
    learn(archive, as_stored(X, ONES), np.where(X[:, 0] > 0.0, 1.0, -1.0) if outputs else X[:, 0], np.ones(n), outputs)
    return archive


def rows(n: int = 50) -> np.ndarray:
    return as_stored(np.random.default_rng(9).normal(size=(n, 3)), ONES)


@pytest.mark.parametrize("budget", [0, 100, 1000, 50_000])
def test_all_arrays_stay_within_the_budget(budget):
    archive = filled(2000, budget, outputs=0)
    assert nbytes(archive) - archive.size.nbytes <= budget
    assert archive.stored <= archive.size[MOST] * archive.size[ROOM]
    if budget >= 1000:
        assert archive.stored > 0.6 * archive.size[MOST] * archive.size[ROOM]
    verify(archive.trimmed(0), new_archive(3, budget), {"columns": 3, "outputs": 1, "stored": 0, "classes": 0})


def test_every_event_is_in_a_cell_and_only_the_oldest_of_a_cell_go():
    archive = filled(3000, 20_000, outputs=0).trimmed(0)
    assert archive.count.sum() == archive.stored == archive.size[HELD]
    assert archive.size[CELLS] == archive.size[MOST] > 5
    assert archive.size[CLOCK] == 3000
    assert len(set(archive.times.tolist())) == archive.stored
    cells = np.split(archive.times, archive.first[1:])
    ends = [cell.max() for cell in cells if len(cell) == archive.size[ROOM]]
    assert min(ends) > 1500  # a full cell has received newer events


def test_blocks_do_not_matter():
    X, y = rows(400), np.arange(400) % 3.0
    whole, cut = new_archive(3, 5000).grown(0), new_archive(3, 5000).grown(0)
    said = learn(whole, X, y, np.ones(400), 3)
    parts = [learn(cut, X[part], y[part], np.ones(len(part)), 3) for part in np.split(np.arange(400), [1, 2, 7, 300])]
    np.testing.assert_array_equal(np.concatenate(parts, axis=2), said)
    for own, other in zip(whole, cut, strict=True):
        np.testing.assert_array_equal(own, other)


def test_a_trimmed_memory_says_the_same_and_goes_on_alike():
    archive = filled(500)
    trimmed = archive.trimmed(0)
    assert len(trimmed.points) == archive.stored < len(archive.points)
    np.testing.assert_array_equal(scores_of(trimmed, rows(), 1), scores_of(archive, rows(), 1))
    again = trimmed.grown(0)
    labels = np.where(rows()[:, 0] > 0.0, 1.0, -1.0)
    for part in (archive, again):
        learn(part, rows(), labels, np.ones(50), 1)
    np.testing.assert_array_equal(scores_of(again, rows(), 1), scores_of(archive, rows(), 1))


def test_events_in_the_midst_of_their_class_are_not_stored():
    X = rows(2000)
    archive = new_archive(3, 200_000).grown(0)
    learn(archive, X, np.where(X[:, 0] > 0.0, 1.0, -1.0), np.ones(2000), 1)
    places = archive._places(archive.first)
    assert archive.stored < 1000
    assert np.abs(archive.points[places, 0]).mean() < 0.6 * np.abs(X[:, 0]).mean()


def test_events_of_weight_zero_leave_no_trace():
    archive = filled(100)
    before = [part.copy() for part in archive]
    learn(archive, rows(), np.ones(50), np.zeros(50), 1)
    for part, kept in zip(archive, before, strict=True):
        np.testing.assert_array_equal(part, kept)


def test_equal_rows_need_no_second_cell():
    archive = new_archive(3, 5000).grown(0)
    learn(archive, np.zeros((200, 3), np.float32), np.arange(200.0), np.ones(200), 0)
    assert archive.size[CELLS] == 1
    np.testing.assert_array_equal(np.sort(archive.times[: archive.stored]), np.arange(200 - archive.size[ROOM], 200))


def test_the_second_view_follows_a_change_sooner():
    X = rows(3000)
    y = np.where((X[:, 0] > 0.0) ^ (np.arange(3000) >= 2500), 1.0, -1.0)
    said = learn(new_archive(3, 10**6).grown(0), X, y, np.ones(3000), 1)[:, 0, 2600:]
    wrong = (np.sign(said) != y[2600:]).mean(axis=1)
    assert wrong[1] < 0.7 * wrong[0]


def test_huge_numbers_are_clipped():
    X = np.array([[1e100, -1e200, 0.0], [1.0, 2.0, 3.0], [-1e150, 0.0, 0.0]])
    archive = new_archive(3, 5000).grown(0)
    learn(archive, as_stored(X, np.full(3, 8.0)), np.ones(3), np.ones(3), 0)
    assert np.isfinite(scores_of(archive, as_stored(X, np.full(3, 8.0)), 0)).all()


def test_classes_that_come_late_keep_the_targets_of_others():
    archive = filled(300)
    wider = archive.widened(Widening(np.array([0, -1, 0]), np.array([-0.5, 0.0, 0.5])))
    places = archive._places(archive.first)
    np.testing.assert_array_equal(wider.targets[places], np.where(archive.targets[places] > 0.0, 2.0, 0.0))
    assert (scores_of(wider, rows(), 3)[:, 1] == np.log(0.02)).all()


def test_merged_memories_hold_the_latest_events_of_both_once():
    X = np.random.default_rng(0).normal(size=(700, 2))
    y = X[:, 0] + X[:, 1]
    given = {"points": 10, "window": 6, "standardise": False, "gamma": 1.0, "memory": 60_000}
    start = kl.AutoRegressor(**given).fit(X[:100], y[:100])
    parts = [kl.merge([start]).partial_fit(X[part], y[part]) for part in (slice(100, 350), slice(350, 700))]
    state = kl.merge(parts, start=start).state_
    found = state.archive.trimmed(0)
    held = found.points / state.early.stretch
    places = np.abs(X[:, np.newaxis] - held).sum(axis=2).argmin(axis=0)
    assert sorted(places) == list(range(700))
    assert found.size[CLOCK] == 700
    ages = found.size[CLOCK] - found.times
    np.testing.assert_array_equal(ages[places >= 350], 700 - places[places >= 350])
    np.testing.assert_array_equal(ages[(places >= 100) & (places < 350)], 350 - places[(places >= 100) & (places < 350)])


def test_merged_memories_keep_to_the_budget():
    X = np.random.default_rng(0).normal(size=(1200, 2))
    y = (X[:, 0] * X[:, 1] > 0.0).astype(int)
    start = kl.AutoClassifier(points=10, window=6, memory=4000).fit(X[:1100], y[:1100])
    parts = [kl.merge([start]).partial_fit(X[part], y[part]) for part in (slice(1100, 1150), slice(1150, 1200))]
    merged = kl.merge(parts, start=start)
    assert nbytes(merged.state_.archive.grown(0)) < 4100
    assert (merged.predict(X) == y).mean() > 0.9


@pytest.mark.parametrize("given", ["64 XB", -1, 1.5, None, "", "MB"])
def test_the_memory_is_a_number_of_bytes(given):
    with pytest.raises((TypeError, ValueError), match='memory must be a number of bytes of at least 0, or text such as "64MB"'):
        kl.AutoClassifier(memory=given).fit(np.eye(2), [0, 1])


@pytest.mark.parametrize("given", ["4kB", "4 kB", "4000", 4000])
def test_bytes_may_be_given_as_text(given):
    model = kl.AutoClassifier(memory=given).fit(np.eye(2), [0, 1])
    assert model.state_.archive.size.tolist() == [2, 1, 2, *new_archive(2, 4000).size[MOST:]]
