"""Alarms of errors and of columns, whatever the chunks; files, copies, merged models, pipelines and callbacks."""

import copy
import pickle

import numpy as np
import pytest
import safetensors.numpy
from river.drift import ADWIN
from scipy import sparse
from scipy.stats import f

import kernling as kl
from commands import call
from forgery import forged, refuse_change
from kernling.components.adwin import BUCKETS, ROWS
from kernling.components.alarms import (
    COLUMNS,
    CONSTANT,
    ERROR,
    HELD,
    SPAN,
    SUSPECT,
    WEIGHT,
    WINDOWS,
    Alarm,
    changes,
    compare,
    compare_labels,
    confirm,
    new_losses,
    new_watch,
    watch_events,
)
from kernling.components.alarms import VARIANCE as SPAN_VARIANCE
from kernling.components.columns import LENGTH, WIDEST, Moved, _chances, new_columns, watch_rows
from kernling.tables import Standardise
from oracles.alarms import AgainstConstant, ColumnWatch, Rises

RNG = np.random.default_rng(5)
EVENTS, CHANGE = 6400, 4400
X = RNG.normal(size=(EVENTS, 3))
X[CHANGE:, 1] = 2.0 * X[CHANGE:, 1] + 1.5
Y = np.where(np.arange(EVENTS) < CHANGE, X[:, 0] + X[:, 1], 3.0 - 2.0 * X[:, 2] * X[:, 1]) + 0.1 * RNG.normal(size=EVENTS)
LABELS = np.digitize(Y, [-0.6, 0.6])
WEIGHTS = (RNG.random(EVENTS) > 0.05).astype(float)
MODELS = [
    kl.AVMRegressor(gamma=0.5, delta=0.7, watch=True),
    kl.POLKRegressor(gamma=0.5, max_points=20, standardise_target=False, watch=True),
    kl.AVMClassifier(gamma=0.5, delta=0.7, watch=True),
    kl.DualSVRGClassifier(gamma=0.5, theta=1.5, random_state=0, watch=True),
]


def named(model):
    return type(model).__name__


def new(model, **changes):
    return type(model)(**model.get_params() | changes)


def targets(model):
    return Y if model.task == "regression" else LABELS


def same(a, b):
    assert [(one.event, one.what) for one in a] == [(one.event, one.what) for one in b]
    for own, other in zip(a, b, strict=True):
        np.testing.assert_allclose(own[2:5], other[2:5], rtol=1e-6)
        assert own.columns == pytest.approx(other.columns)


def in_parts(model, y):
    """Learn by all ways in."""
    model.partial_fit(X[:3], y[:3], sample_weight=WEIGHTS[:3])
    for t in range(3, 30):
        model.learn_one(X[t], y[t], WEIGHTS[t])
    for t in range(30, 60):
        model.predict_then_learn_one(X[t], y[t], sample_weight=WEIGHTS[t])
    for first, last in ((60, 92), (92, 1777), (1777, 4510), (4510, EVENTS)):
        model.partial_fit(X[first:last], y[first:last], sample_weight=WEIGHTS[first:last])
    return model


@pytest.mark.parametrize("model", MODELS, ids=named)
def test_alarms_are_those_of_the_definition_whatever_the_chunks(model):
    y, of_values = targets(model), model.task == "regression"
    whole = new(model)
    said = whole.predict_then_learn(X, y, sample_weight=WEIGHTS)
    same(whole.alarms_, in_parts(new(model), y).alarms_)
    rises, versus = Rises(of_values), AgainstConstant(of_values)
    met = set()
    for t in np.flatnonzero(WEIGHTS):
        error = y[t] - said[t] if of_values else float(said[t] != y[t] or bool(met and y[t] not in met))
        rises.learn(error)
        versus.learn(y[t], error, first_class=y[t])
        met.add(y[t])
    found = whole.alarms_
    assert [row[:3] for row in map(tuple_of, found) if row[3] == "error"] == [pytest.approx(one) for one in rises.alarms]
    assert [one.event for one in found if one.what == "constant"] == [one[0] for one in versus.alarms]
    assert {"error", "columns"} <= {one.what for one in found}
    columns = new_columns(3)
    moved = [
        (place + 1, {one.column: one.share for one in all_moved}) for place, all_moved in watch_rows(columns, X[WEIGHTS > 0.0])
    ]
    assert [(one.event, one.columns) for one in found if one.what == "columns"] == moved


def tuple_of(alarm):
    return alarm.event, alarm.before, alarm.after, alarm.what


def test_alarms_of_errors_are_rises_that_river_finds():
    model, river, met, since, rises = new(MODELS[2]), ADWIN(), set(), [], []
    for t, (said, label) in enumerate(zip(model.predict_then_learn(X, LABELS), LABELS, strict=True)):
        since.append(float(said != label or bool(met and label not in met)))
        met.add(label)
        river.update(since[-1])
        if river.drift_detected:
            rises += [t + 1] if np.mean(since[-32:]) > np.mean(since) else []  # a fall is no alarm
            since = []
    found = [one.event for one in model.alarms_ if one.what == "error"]
    assert found
    assert all(any(event - 600 < rise <= event for rise in rises) for event in found)


KINDS = {
    "numbers": lambda rng, n: rng.standard_cauchy(n),
    "codes": lambda rng, n: rng.choice(15, p=rng.dirichlet(np.ones(15)), size=n).astype(float),
    "rare": lambda rng, n: (rng.random(n) < 0.002).astype(float),
    "gaps": lambda rng, n: np.where(rng.random(n) < 0.3, np.nan, rng.integers(0, 4, n)),
    "constant": lambda rng, n: np.zeros(n),
    "alike": lambda rng, n: np.repeat(rng.normal(size=n // 200), 200),
    "rising": lambda rng, n: np.arange(float(n)),
}
CHANGES = {"none": lambda x: x, "moved": lambda x: x + 3.0, "gaps": lambda x: np.where(np.arange(len(x)) % 2, np.nan, x)}


@pytest.mark.parametrize("change", CHANGES)
def test_columns_move_as_the_slow_version_says(change):
    rng = np.random.default_rng(11)
    rows = np.column_stack([make(rng, 8000) for make in KINDS.values()])
    for column in rows.T:
        column[4000:] = CHANGES[change](column[4000:])
    fast, slow = new_columns(rows.shape[1]), [ColumnWatch(rows.shape[1]) for _ in KINDS]
    found = {}
    for first, last in ((0, 1), (1, 399), (399, 1300), (1300, 8000)):
        for place, moved in watch_rows(fast, rows[first:last]):
            found |= {(first + place + 1, one.column): one.share for one in moved}
            assert [one.share for one in moved] == sorted((one.share for one in moved), reverse=True)
    for column, values in zip(slow, rows.T, strict=True):
        for value in values.tolist():
            column.learn(value)
    expected = {(event, place): share for place, one in enumerate(slow) for event, share in one.alarms}
    assert found == pytest.approx(expected)
    seen = {place for event, place in found if event > 4000}
    if change == "none":
        assert not found
    elif change == "moved":
        assert {0, 1, 2, 3, 4} <= seen
    else:
        assert {0, 1, 4} <= seen


def test_no_better_than_the_constant_is_said_once():
    rng = np.random.default_rng(0)
    rows, noise = rng.normal(size=(9000, 2)), rng.random(9000) < 0.3
    y = np.where(np.arange(9000) % 6000 < 3000, rows[:, 0] > 0.5, noise)
    model = kl.AVMClassifier(gamma=0.5, delta=0.5, watch=True)
    model.partial_fit(rows, y)
    found = [one for one in model.alarms_ if one.what == "constant"]
    assert [one.event for one in found] == [4000]
    assert found[0].after >= found[0].before > 0.2


AUTO = kl.AutoClassifier(points=30, window=50, memory=0, watch=True)


@pytest.mark.parametrize("model", [MODELS[0], MODELS[2], AUTO], ids=named)
def test_saved_pickled_and_copied_models_go_on(model, folder):
    y = targets(model)
    whole = new(model).partial_fit(X[:4200], y[:4200])
    kl.save(whole, "m.kern")
    twins = [kl.load("m.kern"), pickle.loads(pickle.dumps(whole)), copy.deepcopy(whole)]
    whole.partial_fit(X[4200:], y[4200:])
    assert {"error", "columns"} <= {one.what for one in whole.alarms_}
    for twin in twins:
        same(twin.partial_fit(X[4200:], y[4200:]).alarms_, whole.alarms_)
    kl.save(whole, "m.kern")
    assert kl.load("m.kern").alarms_ == whole.alarms_


def test_a_merged_model_has_the_alarms_of_the_one_that_has_seen_more():
    first, last = new(MODELS[2]).partial_fit(X[:5400], LABELS[:5400]), new(MODELS[2]).partial_fit(X[5400:], LABELS[5400:])
    merged = kl.merge([last, first])
    assert merged.alarms_ == first.alarms_ != []
    merged.partial_fit(X, LABELS)


@pytest.mark.parametrize(
    ("name", "change", "told"),
    [
        ("watch.alarms", lambda array: array + 7.5, "no known kind"),
        ("watch.moved", lambda array: array + 7.0, "no known column"),
        ("watch.columns.edges", lambda array: -array, "not in order"),
        ("watch.columns.size", lambda array: array + 1.0, "shape"),
        ("watch.columns.latest", lambda array: array * np.nan, "watch.columns.latest"),
        ("watch.columns.usual", lambda array: array + 1e300, "watch.columns.usual"),
        ("watch.losses.counts", lambda array: array[:1], "watch.losses.counts"),
        ("watch.losses.spans", lambda array: np.where(np.isin(array, 0.0), 0.5, array), "not whole"),  # places of windows held
        ("watch.losses.spans", lambda array: array + 1e300, "watch.losses.spans"),
        ("watch.losses.record", lambda array: array - 1e300, "watch.losses.record"),
        ("watch.losses.record", lambda array: None, "is missing"),
    ],
)
def test_files_with_other_contents_are_refused(folder, name, change, told):
    refuse_change(new(MODELS[2]).partial_fit(X, LABELS), name, change, told, folder / "m.kern")


def test_a_detector_that_is_full_is_refused(folder):
    """One more number would be written behind the last row of buckets."""
    kl.save(new(MODELS[2]).partial_fit(X[:50], LABELS[:50]), "m.kern")

    def fill(header, arrays):
        counts = np.full_like(arrays["watch.losses.adwin.counts"], BUCKETS)
        arrays["watch.losses.adwin.counts"] = counts
        arrays["watch.losses.adwin.record"] = np.array([counts @ 2.0 ** np.arange(ROWS), 0.0, 0.0, 0.0])

    (folder / "m.kern").write_bytes(forged((folder / "m.kern").read_bytes(), fill))
    with pytest.raises(ValueError, match=r"watch\.losses\.adwin\.record"):
        kl.load("m.kern")


@pytest.mark.parametrize("model", [new(MODELS[2]), kl.StreamPipeline([("scale", Standardise()), ("model", new(MODELS[2]))])])
def test_columns_of_a_wider_model_are_refused(folder, model):
    kl.save(new(MODELS[2]).partial_fit(np.hstack([X, X])[:500], LABELS[:500]), "wide.kern")
    kl.save(model.partial_fit(X[:500], LABELS[:500]), "m.kern")
    theirs = safetensors.numpy.load((folder / "wide.kern").read_bytes())

    def swap(header, arrays):
        for name in arrays:
            if "watch.columns." in name:
                arrays[name] = theirs[name[name.index("watch.") :]]

    (folder / "m.kern").write_bytes(forged((folder / "m.kern").read_bytes(), swap))
    with pytest.raises(ValueError, match="6 columns are watched, but 3 of the rows"):
        kl.load("m.kern")


def test_a_call_that_fails_changes_nothing():
    model = new(MODELS[0]).partial_fit(X[:1000], Y[:1000])
    before = copy.deepcopy(model._watch)
    with pytest.raises(ValueError, match="NaN"):
        model.partial_fit(np.full((5, 3), np.nan), Y[:5])
    for own, other in zip(model._watch.columns, before.columns, strict=True):
        np.testing.assert_array_equal(own, other)


def test_alarms_have_to_be_asked_for():
    plain = kl.AVMRegressor(gamma=0.5).partial_fit(X[:50], Y[:50])
    assert not hasattr(plain, "alarms_")
    with pytest.raises(AttributeError, match="watch=True"):
        _ = plain.alarms_
    assert not hasattr(kl.AVMRegressor(watch=True), "alarms_")
    assert plain.nbytes_ < new(MODELS[0]).partial_fit(X[:50], Y[:50]).nbytes_


def test_callbacks_are_called_after_each_call():
    model, seen = new(MODELS[2]), []
    model.on_alarm = lambda alarm: seen.append((alarm, model.t_))
    for first in range(0, EVENTS, 100):
        model.partial_fit(X[first : first + 100], LABELS[first : first + 100])
    assert [alarm for alarm, _ in seen] == model.alarms_ != []
    assert all(alarm.event <= t < alarm.event + 100 for alarm, t in seen)
    assert copy.deepcopy(model).on_alarm is None
    single = new(MODELS[2]).partial_fit(X[:4299], LABELS[:4299])
    told = []
    single.on_alarm = told.append
    for x, y in zip(X[4299:5000], LABELS[4299:5000], strict=True):
        single.learn_one(x, y)
    same(told, [alarm for alarm in model.alarms_ if 4299 < alarm.event <= 5000])


def test_sparse_rows_are_watched_and_very_wide_ones_are_not():
    model = new(MODELS[2]).partial_fit(sparse.csr_matrix(X), LABELS)
    same(model.alarms_, new(MODELS[2]).partial_fit(X, LABELS).alarms_)
    wide = sparse.random(50, WIDEST + 1, density=0.01, random_state=0, format="csr")
    model = new(MODELS[2]).partial_fit(wide, LABELS[:50])
    assert model._watch.columns.number == 0


def rows_of(X, cities):
    return [
        {"a": a, "b": b, "when": f"2026-{1 + t // 1000:02d}-0{1 + t % 7}", "c": c, "city": city}
        for t, ((a, b, c), city) in enumerate(zip(X.tolist(), cities, strict=True))
    ]


def test_pipelines_name_the_columns_that_they_are_given(folder):
    rng = np.random.default_rng(1)
    cities = rng.choice(["Oslo", "Rome", "Bonn", "Nice"], EVENTS, p=[0.6, 0.2, 0.1, 0.1])
    cities[CHANGE:] = rng.choice(["Oslo", "Rome", "Bonn", "Lund"], EVENTS - CHANGE, p=[0.1, 0.2, 0.3, 0.4])
    rows = rows_of(X, cities)
    model = kl.StreamPipeline.auto(kl.AVMRegressor(gamma=0.5, delta=0.7, watch=True))
    told = []
    model.on_alarm = told.append
    model.partial_fit(rows[:4000], Y[:4000])
    for row, y in zip(rows[4000:4020], Y[4000:4020], strict=True):
        model.learn_one(row, y)
    model.predict_then_learn(rows[4020:], Y[4020:])
    assert told == model.alarms_
    moved = [set(one.columns) for one in model.alarms_ if one.what == "columns"]
    assert moved[0] == {"b", "city"}
    assert model.alarm_count_ == len(told)
    kl.save(model, "pipeline.kern")
    assert kl.load("pipeline.kern").alarms_ == told


def test_pipelines_of_plain_numbers_watch_them_as_they_are():
    rows = [dict(zip("abc", row, strict=True)) for row in X.tolist()]
    models = [kl.StreamPipeline.auto(kl.AVMRegressor(gamma=0.5, delta=0.7, watch=True)) for _ in range(2)]
    models[0].partial_fit(rows, Y)
    models[1].partial_fit(rows[:4290], Y[:4290])
    for row, y in zip(rows[4290:4600], Y[4290:4600], strict=True):
        models[1].learn_one(row, y)
    models[1].partial_fit(rows[4600:], Y[4600:])
    same(models[1].alarms_, models[0].alarms_)
    arrays = kl.StreamPipeline([("scale", Standardise()), ("model", kl.AVMRegressor(gamma=0.5, delta=0.7, watch=True))])
    arrays.partial_fit(X, Y)
    own, other = ([one for one in model.alarms_ if one.what == "columns"] for model in (models[0], arrays))
    assert [one.event for one in own] == [one.event for one in other]
    assert [list(one.columns) for one in own] == [["b"]]
    assert [list(one.columns) for one in other] == [[1]]
    assert np.array_equal(arrays.model_._watch.columns.latest[:100], X[6000:6100])


def test_alarms_of_one_call_are_in_the_order_of_their_events():
    found = [(5, ERROR, 0.1, 0.2, 0.0), (2, CONSTANT, 0.1, 0.2, 0.0), (2, ERROR, 0.1, 0.3, 0.0)]
    alarms = watch_events(new_watch(2), found, np.zeros((6, 1))).latest()
    assert [(one.event, one.what) for one in alarms] == [(2, "error"), (2, "constant"), (5, "error")]


def test_an_alarm_in_the_place_of_another_has_only_its_own_columns():
    watch = new_watch(2)
    for event in range(16):
        watch.note((event, COLUMNS, 0.1, 0.2, 0.0), [Moved(0, 0.2, 0.1, 0.0), Moved(1, 0.3, 0.1, 0.0)])
    watch.note((16, ERROR, 0.1, 0.2, 0.0))
    *others, last = watch.latest()
    assert [alarm.event for alarm in others] == list(range(1, 16))
    assert {tuple(alarm.columns) for alarm in others} == {(0, 1)}
    assert last.columns == {}


def test_events_of_each_class_are_still_its_own_after_a_late_class():
    watch = new_watch(3)
    watch.losses.counts[:] = [4.0, 5.0, 6.0]
    assert watch.with_class(1).losses.counts.tolist() == [4.0, 0.0, 5.0, 6.0]


def test_no_more_windows_are_held_than_there_is_room_for():
    """A further rise, found while two windows wait for one to confirm the last, lets no more than three wait."""
    losses, found = new_losses(0), np.empty(3)
    losses.spans[WINDOWS], losses.spans[WEIGHT], losses.spans[SUSPECT], losses.spans[HELD] = 9.0, 7.0, 3.0, 2.0
    assert confirm(losses, np.zeros(int(SPAN)), 0, found) == -1
    assert losses.spans[SUSPECT] == 2.0
    assert (losses.spans[HELD], losses.spans[WINDOWS]) == (0.0, 12.0)


def test_the_constant_answer_is_the_first_of_the_most_frequent_classes():
    usual = np.empty(4)
    compare_labels(np.zeros(2), np.array([1, 0, 1, 1]), usual)
    np.testing.assert_array_equal(usual, [1, 1, 1, 0])


def burst(shares: np.ndarray, first: int, events: int) -> np.ndarray:
    """Return mistakes of which more than half come within some events."""
    return np.where((np.arange(len(shares)) >= first) & (np.arange(len(shares)) < first + events), shares < 0.7, shares < 0.1)


def alike(rng: np.random.Generator, n: int) -> np.ndarray:
    """Return numbers from 0 to 1 that are often those before."""
    latest = np.maximum.accumulate(np.where(rng.random(n) < 0.6, np.arange(n), 0))
    return rng.random(n)[latest]


ERRORS = {  # mistakes, and after which events alarms of them are due
    "a rise": (lambda rng: burst(rng.random(12_000), 8000, 4000), [8200]),
    "a short rise": (lambda rng: burst(rng.random(12_000), 8000, 150), [8200]),
    "a rise of errors that are alike": (lambda rng: burst(alike(rng, 12_000), 8000, 4000), [8400, 8600]),
    "a short rise of errors that are alike": (lambda rng: burst(alike(rng, 12_000), 8000, 150), []),
    "two rises": (lambda rng: burst(rng.random(12_000), 8000, 500) | burst(rng.random(12_000), 9500, 2500), [8200, 9600, 9800]),
}


@pytest.mark.parametrize("name", ERRORS)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_rises_must_last_where_errors_are_alike_and_others_may_follow_soon(name, seed):
    made, due = ERRORS[name]
    shares = made(np.random.default_rng(seed)).astype(float)
    slow, losses, found, events, first = Rises(False), new_losses(2), np.empty(3), [], 0
    while (place := confirm(losses, shares, first, found)) >= 0:
        first = place + 1
        events.append(first)
    for share in shares:
        slow.learn(share)
    assert [alarm[0] for alarm in slow.alarms] == events
    assert set(events) <= set(due)
    assert len(events) == len({event // 1000 for event in due})


def test_columns_whose_neighbours_are_very_much_alike_are_compared_over_longer_windows():
    """At each event one in twenty of the values is new: windows of 400 hold few of them, which looks like changes."""
    rng, n = np.random.default_rng(4), 60_000
    latest = np.maximum.accumulate(np.where(rng.random((n, 4)) < 0.05, np.arange(n)[:, np.newaxis], 0), axis=0)
    rows = np.take_along_axis(rng.normal(size=(n, 4)), latest, axis=0)
    columns = new_columns(4)
    assert not watch_rows(columns, rows)
    assert (columns.usual[:, LENGTH] > 2.0).all()
    rows[40_000:, 1:] += 5.0
    moved = [(place, one.column) for place, found in watch_rows(new_columns(4), rows) for one in found]
    assert len({column for _, column in moved} & {1, 2, 3}) >= 2
    assert all(column > 0 and 40_000 < place < 44_000 for place, column in moved)


@pytest.mark.parametrize(("mistakes", "told"), [(3, False), (5, True)])
def test_after_windows_without_a_mistake_a_rise_is_more_than_a_few(mistakes, told):
    """Such windows do not differ, but the mean of one is not known better than to a mistake or so: FAR times that is chance."""
    losses, found, shares = new_losses(0), np.empty(3), np.zeros(int(20 * SPAN))
    assert confirm(losses, shares, 0, found) == -1
    assert losses.spans[WINDOWS] == 20
    assert losses.spans[SPAN_VARIANCE] == 0.0
    losses.spans[SUSPECT] = 1.0  # ADWIN has found something
    shares = np.arange(SPAN) < mistakes
    assert confirm(losses, shares.astype(float), 0, found) == (SPAN - 1 if told else -1)


def test_nobody_fails_where_nobody_is_ever_wrong():
    none = np.zeros(3000)
    assert compare(new_losses(2).record, none, none, 0, np.empty(3)) == -1
    assert compare(new_losses(2).record, none + 0.5, none + 0.5, 0, np.empty(3)) == 1999  # after the first window


def test_a_column_that_has_moved_begins_anew():
    """Soon after, too little is known for another alarm."""
    rows = np.random.default_rng(0).normal(size=(8000, 1))
    rows[4000:] += 2.0
    rows[5600:] += 2.0
    assert [place for place, _ in watch_rows(new_columns(1), rows)] == [4399]


def test_the_chance_of_a_column_is_the_tail_of_an_f_distribution():
    usual = np.array([[10.0, 20.0, 50.0, 3.0, 1.0]])  # ten windows with the mean 2 and the variance 1: 2 * 4 / 1 degrees
    assert _chances(np.array([6.0]), usual) == pytest.approx(f.sf(3.0, 8.0, 80.0))


def test_a_change_lasts_a_thousand_events_from_its_first_alarm():
    alarms = [Alarm(event, "error", 0.1, 0.2, 0.99) for event in (100, 900, 1100, 1101, 2101)]
    assert [line.split(":")[0] for line in changes(alarms, of_values=False)] == [
        "changed at event 100",
        "changed at event 1,101",
    ]


def test_a_run_tells_what_has_changed(folder):
    lines = "a,b,c,y\n" + "".join(f"{a},{b},{c},{t}\n" for (a, b, c), t in zip(X, Y, strict=True))
    (folder / "t.csv").write_text(lines)
    shown = call("run", "t.csv", "--target", "y", "--learner", "avm", "--save", "m.kern", "--report", "r.html").output
    model = kl.load("m.kern")
    error = next(one for one in model.alarms_ if one.what == "error")
    line = next(line for line in shown.splitlines() if line.startswith(f"changed at event {error.event:,}"))
    assert f"error {error.before:.3g} to " in line
    assert "b moved" in line
    written = (folder / "r.html").read_text()
    assert "<h2>Alarms</h2>" in written
    assert line in written
    shown = call("run", "t.csv", "--target", "y", "--learner", "avm", "--set", "watch=false", "--save", "m.kern").output
    assert "changed at" not in shown
    assert not hasattr(kl.load("m.kern"), "alarms_")
