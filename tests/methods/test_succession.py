"""Auto after a change: alarms, a successor, and who takes whose place; tests/oracles/auto.py has its slow version."""

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

import kernling as kl
from forgery import refuse_change
from kernling.compiler import jit_exact
from kernling.components import early, succession
from kernling.components.succession import ERROR, PENDING, RANK, Rise, Succession, new_succession, watch_losses
from kernling.estimators.contents import flatten
from oracles.auto import AutoClasses, AutoValues, Succeeding

SMALL = {"points": 30, "window": 50, "memory": 20_000, "block_size": 16}


@pytest.fixture
def soon(monkeypatch):
    """Everything happens within a few hundred events."""
    for name, value in {"DELAY": 16, "DECIDE": 32, "YOUNG": 128, "LIFE": 384}.items():
        monkeypatch.setattr(succession, name, value)
    monkeypatch.setattr(early, "SETTLE", (16, 64, 128))


def changing(n: int, change: int, seed: int = 0, values: bool = False, least: float = 0.3) -> tuple[np.ndarray, np.ndarray]:
    """Rows, and targets by a rule that becomes another one."""
    X = np.random.default_rng(seed).normal(size=(n, 3))
    new = np.arange(n) >= change
    if values:
        return X, np.where(new, 3.0 * X[:, 2] ** 2, X[:, 0] + 0.3 * X[:, 1])
    return X, np.where(new, X[:, 1] * X[:, 2] > least - 0.3, X[:, 0] > least).astype(int)


@pytest.mark.parametrize(
    ("cls", "n", "change", "least"),
    [
        (kl.AutoClassifier, 600, 330, 0.3),
        pytest.param(kl.AutoClassifier, 1000, 530, 1.0, marks=pytest.mark.long),
        pytest.param(kl.AutoRegressor, 600, 330, 0.3, marks=pytest.mark.long),
    ],
)
def test_a_succession_is_that_of_the_slow_version(cls, n, change, least, soon, monkeypatch):
    monkeypatch.setattr("oracles.auto.SETTLE", early.SETTLE)
    values = cls is kl.AutoRegressor
    X, y = changing(n, change, values=values, least=least)
    model = cls(points=15, window=40, memory=3000, block_size=16, gamma=0.4)
    oracle = Succeeding(
        lambda: (AutoValues if values else AutoClasses)(model.get_params(), 3, 1),
        *(getattr(succession, name) for name in ("DELAY", "DECIDE", "YOUNG", "LIFE")),
        values,
    )
    targets = y if values else np.where(y > 0, 1.0, -1.0)
    expected = []
    for x, target in zip(X, targets, strict=True):
        expected.append(oracle.scores(x)[0])
        oracle.learn(x, target, 1.0, None)
    known = {} if values else {"classes": [0, 1]}
    model.partial_fit(X[:1], y[:1], **known)
    said = [model._scores(X[:1])[0, 0]]
    for x, target in zip(X[1:], y[1:], strict=True):
        said.append(model.score_one(x))
        model.learn_one(x, target)
    np.testing.assert_allclose(said[1:], expected[1:], rtol=1e-5, atol=1e-5)
    found = [(alarm.event, alarm.before, alarm.after, alarm.replaced) for alarm in model.rises_]
    assert [row[0] for row in found] == [row[0] for row in oracle.alarms]
    assert [row[3] for row in found] == [row[3] for row in oracle.alarms]
    assert any(row[3] for row in found)


@pytest.mark.parametrize("cls", [kl.AutoClassifier, kl.AutoRegressor])
def test_blocks_chunks_and_single_events_lead_to_the_same_succession(cls, soon):
    X, y = changing(800, 350, values=cls is kl.AutoRegressor)
    whole, chunks, single = cls(**SMALL), cls(**SMALL), cls(**SMALL | {"block_size": 5})
    said = whole.predict_then_learn(X, y)
    parts = [chunks.predict_then_learn(X[part], y[part]) for part in np.split(np.arange(800), [3, 200, 351, 403, 600])]
    for x, target in zip(X, y, strict=True):
        single.learn_one(x, target)
    assert any(alarm.replaced for alarm in whole.rises_)
    for other in (chunks, single):
        assert [alarm[0::4] for alarm in other.rises_] == [alarm[0::4] for alarm in whole.rises_]
        np.testing.assert_allclose(other._scores(X[:50]), whole._scores(X[:50]), rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(np.concatenate(parts).astype(float), said.astype(float), rtol=1e-6, atol=1e-6)


def rare(n: int, change: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows, of which three in a hundred are of the second class, by a rule that becomes another one."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    f = 1.5 * np.where(np.arange(n) < change, X[:, 0] - X[:, 1], X[:, 2] + X[:, 3])
    return X, (rng.random(n) < 1.0 / (1.0 + np.exp(5.0 - f))).astype(int)


def test_a_change_of_a_rare_class_is_met():
    """Mistakes say nothing of it: the answer is nearly always the other class."""
    X, y = rare(16_000, 6000, 0)
    model, fresh = kl.AutoClassifier(**SMALL), kl.AutoClassifier(**SMALL)
    said = model.predict_then_learn(X, y, method="predict_proba")[12_000:, 1]
    other = fresh.predict_then_learn(X[6000:], y[6000:], method="predict_proba")[6000:, 1]
    assert [rise.what for rise in model.rises_] == ["rank"]
    rise = model.rises_[0]
    assert 6000 < rise.event < 8000
    assert rise.before < 0.2 < 0.3 < rise.after  # one minus the area under the ROC curve
    assert roc_auc_score(y[12_000:], said) > roc_auc_score(y[12_000:], other) - 0.02


def test_blocks_and_single_events_find_the_same_change_of_a_rare_class():
    X, y = rare(7000, 4500, 1)
    whole, single = kl.AutoClassifier(**SMALL), kl.AutoClassifier(**SMALL)
    whole.fit(X, y)
    single.partial_fit(X[:5], y[:5], classes=[0, 1])
    for first, last in ((5, 4000), (4000, 4003)):
        single.partial_fit(X[first:last], y[first:last])
    for x, target in zip(X[4003:], y[4003:], strict=True):
        single.learn_one(x, target)
    assert [rise.what for rise in whole.rises_] == ["rank"]
    assert single.rises_ == whole.rises_


def test_a_rare_class_whose_rule_stays_raises_no_alarm():
    X, y = rare(16_000, 16_000, 2)
    assert kl.AutoClassifier(**SMALL).fit(X, y).rises_ == []


def test_a_model_saved_in_the_middle_goes_on_bit_for_bit(soon, tmp_path):
    X, y = changing(1100, 500)
    whole, cut = kl.AutoClassifier(dtype="float32", **SMALL), kl.AutoClassifier(dtype="float32", **SMALL)
    weights = np.random.default_rng(1).choice([0.0, 0.5, 2.0], 1100)
    for part in np.split(np.arange(1100), [400, 560, 620, 700]):
        whole.partial_fit(X[part], y[part], classes=[0, 1], sample_weight=weights[part])
        cut.partial_fit(X[part], y[part], classes=[0, 1], sample_weight=weights[part])
        kl.save(cut, tmp_path / "cut.kern")
        cut = kl.load(tmp_path / "cut.kern")
    assert whole.rises_
    own, other = flatten(kl.merge([whole]).state_), flatten(cut.state_)
    np.testing.assert_array_equal(cut.predict_proba(X), whole.predict_proba(X))
    assert own.keys() == other.keys()
    assert cut.rises_ == whole.rises_


def test_alarms_of_an_unknown_kind_are_refused(tmp_path):
    """Their words could not be found."""
    X, y = changing(100, 100)
    model = kl.AutoClassifier(**SMALL).fit(X, y)
    for kind in (-1.0, 0.5, 2.0, 1e300):
        told = "no known kind" if kind > 0.0 else "not negative"
        refuse_change(
            model, "state.succession.alarms", lambda rows, kind=kind: rows + kind * np.eye(6)[5], told, tmp_path / "m.kern"
        )


def test_memory_for_a_successor_is_there_only_while_there_is_one(soon):
    X, y = changing(1800, 400)
    model = kl.AutoClassifier(**SMALL).partial_fit(X[:300], y[:300])

    def allocated() -> int:
        return sum(array.nbytes for array in flatten(model.state_).values())

    first, most = allocated(), 0
    for part in np.array_split(np.arange(300, 1800), 30):
        model.partial_fit(X[part], y[part])
        most = max(most, allocated())
    assert model.rises_
    assert 1.5 * first < most < 2.1 * first
    assert allocated() == first


def test_without_a_change_nothing_happens():
    X, y = changing(4000, 4000)
    model = kl.AutoClassifier(points=30, window=50, memory=20_000).fit(X, y)
    assert model.rises_ == []
    assert not model.has_succeeded


def test_a_class_that_comes_while_there_is_a_successor_is_learned(soon):
    X, y = changing(1500, 500)
    y[800:][X[800:, 0] > 1.0] = 2
    model = kl.AutoClassifier(**SMALL)
    model.predict_then_learn(X[:620], y[:620])
    assert model.state_.successor.has_begun
    said = model.predict_then_learn(X[620:], y[620:])
    assert (said != y[620:])[-300:].mean() < 0.25


def test_a_successor_that_came_after_a_late_class_takes_over(soon):
    """There is room for outputs to come; a successor that was dropped, and began anew, has as much."""
    rng, event = np.random.default_rng(0), np.arange(3000)
    X = rng.normal(size=(3000, 3))
    y = (X[:, 0] > 0.0) + 2 * (X[:, 1] > 0.0)
    y[event < 100] = np.minimum(y[event < 100], 2)
    noise = (event >= 300) & (event < 1000) & (rng.random(3000) < 0.5)  # at which no successor is better
    y = np.where(noise, rng.integers(0, 4, 3000), y)
    y = np.where(event >= 2000, 3 - y, y)
    model, begun = kl.AutoClassifier(**SMALL), []
    for start in range(0, 3000, 100):
        model.partial_fit(X[start : start + 100], y[start : start + 100])
        begun.append(model.state_.successor.has_begun)
    assert model.state_.model.coef.shape[1] > 4  # room for outputs
    assert not all(begun[begun.index(True) : 20])  # the first successor was dropped
    assert model.rises_[-1].replaced is not None


def test_models_are_merged_by_what_answers(soon):
    X, y = changing(1400, 500)
    start = kl.AutoClassifier(**SMALL).fit(X[:480], y[:480])
    parts = [kl.merge([start]).partial_fit(X[part], y[part]) for part in np.array_split(np.arange(480, 1400), 2)]
    assert any(part.has_succeeded for part in parts)
    merged = kl.merge(parts, start=start)
    assert merged.t_ == 1400
    assert not merged.state_.successor.has_begun
    events = {alarm.event for part in parts for alarm in part.rises_}
    assert {alarm.event for alarm in merged.rises_} == events
    errors = [(model.predict(X[1000:]) != y[1000:]).mean() for model in (merged, *parts, start)]
    assert errors[0] < 0.7 * errors[-1]
    merged.partial_fit(X, y)
    assert np.isfinite(merged._scores(X)).all()


def test_models_with_gammas_of_their_own_can_be_merged(soon):
    """Columns from 0 to 1 are not scaled, so gamma depends on the rows of the successor."""
    rng = np.random.default_rng(0)
    X = rng.random((1400, 3))
    X[500:] *= 0.5
    y = np.where(np.arange(1400) < 500, X[:, 0] > 0.6, X[:, 1] > X[:, 2]).astype(int)
    start = kl.AutoClassifier(**SMALL).fit(X[:450], y[:450])
    parts = [kl.merge([start]).partial_fit(X[part], y[part]) for part in (slice(450, 500), slice(450, 1400))]
    assert parts[0].gamma_ != parts[1].gamma_
    for pair in (parts, parts[::-1]):
        merged = kl.merge(pair, start=start)
        assert merged.gamma_ == pair[0].gamma_
        assert (merged.predict(X[1000:]) != y[1000:]).mean() < 0.35


# ---------------------------------------------------------------------- the record of a succession


def rises(*events: int, kind: int = ERROR, noted: int = 0) -> Succession:
    """A record with alarms at these events, the first of which had this number."""
    held = new_succession(2)
    held.noted[0] = noted
    for event in events:
        held.note((event, 0.99, 0.1, 0.2, 0.0, kind))
    return held


@jit_exact
def watched(held, losses, units, shares, events, began, times, found):
    watch_losses(held, losses, units, shares, events, began, times, found)


def watch_a_rise(held: Succession, began: float) -> None:
    """Take in losses that rise, found at event 1544 of 2000."""
    losses = np.repeat([0.1, 0.5], 500)
    watched(held, losses, np.zeros(1000), np.full(1000, -1.0), 2000.0, began, succession.times(), np.empty(3))


def test_the_latest_alarms_take_the_place_of_the_oldest():
    held = rises(*range(1, 17), kind=RANK)
    held.replaced(90)
    for _ in range(15):
        held.note((91, 0.99, 0.1, 0.2, 92.0, RANK))
    watch_a_rise(held, -2000.0)
    assert held.latest()[-1] == Rise(
        1544, pytest.approx(1.0, abs=1e-4), pytest.approx(0.1), pytest.approx(0.47, abs=0.01), None, "error"
    )
    assert len(held.latest()) == 16
    held.replaced(2000)
    held.replaced(2100)
    assert held.latest()[-1].replaced == 2000  # the first successor after it


@pytest.mark.parametrize(
    ("began", "pending"),
    [(-2000.0, 1544 + succession.DELAY), (1544.0 - succession.YOUNG, 1544 + succession.DELAY), (1545.0 - succession.YOUNG, 0)],
)
def test_a_successor_begins_after_an_alarm_unless_the_last_is_young(began, pending):
    held = rises()
    watch_a_rise(held, began)
    assert held.noted[0] == 1
    assert held.contest[PENDING] == pending


def test_merged_records_have_the_latest_alarms_of_both_in_order():
    start = rises(5)
    own, other = rises(5, *range(10, 30, 2)), rises(5, *range(11, 31, 2))
    merged = own.merged(other, start, None)
    assert [rise.event for rise in merged.latest()] == list(range(14, 30))
    assert merged.noted[0] == 21
    one = own.merged(own, own, None)  # a model and itself
    assert one.latest() == own.latest()
    assert one.noted[0] == 11


def test_a_successor_that_waits_begins_after_the_clock_was_set():
    held = rises()
    assert held.retimed(0.5).contest[PENDING] == 0.0
    held.contest[PENDING] = 101.0
    assert held.retimed(0.5).contest[PENDING] == 51.0  # later than event 50, at which it may be set
    assert held.contest[PENDING] == 101.0


def test_a_successor_is_tried_for_longer_where_classes_are_uneven():
    held = new_succession(2)
    for seen, times in (([500.0, 500.0], 1.0), ([1850.0, 150.0], 1.802), ([9900.0, 100.0], 4.0)):
        held.ranks.seen[:] = seen
        assert succession.life(held) == pytest.approx(times * succession.LIFE, rel=1e-3)
