"""Single events of plain numbers, which compiled code reads, against the same events in tables."""

import copy
import pickle
from decimal import Decimal

import numpy as np
import pytest

import kernling
from kernling.tables import Standardise
from kernling.tables.plain import PlainRows

NAMES = ["a", "b", "c"]


def dictionaries(n, seed=0):
    X = np.random.default_rng(seed).normal(3.0, 5.0, size=(n, len(NAMES)))
    return [dict(zip(NAMES, row, strict=True)) for row in X.tolist()], (X[:, 0] > X[:, 1]).astype(int).tolist()


def begun(rows, y, **columns):
    return kernling.StreamPipeline.auto(kernling.AVMClassifier(gamma=0.2, random_state=0), **columns).partial_fit(rows, y)


def state(pipeline):
    encode, model = (step for _, step in pipeline.steps_)
    return encode.to_state(), model.decision_function(np.eye(len(NAMES), encode.columns_out)).tolist(), model.t_


def test_events_are_learned_and_predicted_as_in_tables():
    rows, y = dictionaries(300)
    rows[250]["b"] = 1e6  # is clipped
    rows[251] = {name: round(value) for name, value in rows[251].items()}  # integers, in another order
    rows[252] = dict(reversed(rows[252].items()))
    single, table = begun(rows[:100], y[:100]), begun(rows[:100], y[:100])
    assert single.steps_[0][1]._plain_rows is not None
    single = pickle.loads(pickle.dumps(copy.deepcopy(single)))
    for row, label in zip(rows[100:], y[100:], strict=True):
        assert single.predict_one(row) == table.predict([row])[0]
        assert single.score_one(row) == pytest.approx(table.decision_function([row])[0], rel=1e-9)
        single.learn_one(row, label)
        table.partial_fit([row], [label])
    assert state(single) == state(table)
    assert table.steps_[0][1].scale_.clipped_ > 0


@pytest.mark.filterwarnings("ignore:.*(counts as missing|is new)")
def test_texts_gaps_and_dates_of_events_are_encoded_as_in_tables():
    rows, y = dictionaries(240)
    for place, row in enumerate(rows):
        row["town"] = ("Oslo", "Rome", "Bern")[place % 3]
        row["when"] = f"{1960 + place}-{1 + place % 12:02}-{1 + place % 28:02} {place % 24:02}:30"
        for name in ("b", "town", "when")[: place % 7 - 3]:
            row[name] = None
    odd = [{"town": "Rome"}, {**rows[200], "when": "soon"}, {**rows[201], "c": None}, {**rows[202], "town": "Vaduz"}]
    odd += [{name: rows[203][name] for name in ("a", "c", "when")} | {"late": 1.0, "later": 2.0}, {"a": 1.0, "b": np.nan}]
    single, table = begun(rows[:100], y[:100]), begun(rows[:100], y[:100])
    single, usual = pickle.loads(pickle.dumps(copy.deepcopy(single.learn_one(rows[0], 1)))), 0
    table.partial_fit(rows[:1], [1])
    encode = single.steps_[0][1]
    assert encode._has_table
    for row, label in zip([*rows[100:], *odd, *rows[:20]], y, strict=False):
        usual += encode._plain_row(row) is not None
        with pytest.raises(ValueError, match="sample_weight"):
            single.learn_one(row, label, sample_weight=-1.0)  # known to be wrong when the row has been encoded
        np.testing.assert_array_equal(encode.transform_one(row), table.passed([row])[0])
        single.learn_one(row, label)
        table.partial_fit([row], [label])
        assert single.score_one(row) == pytest.approx(table.decision_function([row])[0], rel=1e-9)
    assert state(single) == state(table)
    assert usual > 140
    with pytest.raises(ValueError, match="no columns"):
        single.learn_one({"nothing": 1.0}, 1)


@pytest.mark.parametrize("last", [0.0, 7.0], ids=["all in [0, 1]", "not all"])
def test_units_are_kept_as_in_tables(last):
    X = np.random.default_rng(0).dirichlet(np.ones(3), size=60)
    X[:, 2] = X[:, 2] > 0.3
    X[50, 1] += last
    rows, y = [dict(zip(NAMES, row, strict=True)) for row in X.tolist()], (X[:, 0] > X[:, 1]).astype(int).tolist()
    single, table = (begun(rows[:40], y[:40], scale=Standardise(5.0, keep_units=True)) for _ in range(2))
    for row, label in zip(rows[40:], y[40:], strict=True):
        assert single.score_one(row) == pytest.approx(table.decision_function([row])[0], rel=1e-9)
        single.learn_one(row, label)
        table.partial_fit([row], [label])
    assert state(single) == state(table)
    encoded = single.passed(rows)
    assert np.array_equal(encoded[:, :3], X) == (last == 0.0)
    assert np.array_equal(encoded[:, 2], X[:, 2])


@pytest.mark.filterwarnings("ignore:.*counts as missing")
@pytest.mark.parametrize("value", [None, np.nan, "", "text", np.inf, 1e71, 10**400], ids=lambda value: repr(value)[:5])
def test_unusual_values_are_imputed_as_in_tables(value):
    rows, y = dictionaries(100)
    odd = {**rows[0], "b": value}
    single, table = begun(rows, y), begun(rows, y)
    single.learn_one(odd, 1)
    table.partial_fit([odd], [1])
    assert state(single) == state(table)
    assert single.predict_one(odd) == table.predict([odd])[0]


ODD = [None, np.nan, "2.5", "text", 1e71, True, Decimal("1.5"), np.float32(2.5), np.array(0.5)]


@pytest.mark.filterwarnings("ignore:.*counts as missing")
@pytest.mark.parametrize("odd", [3.5, *ODD], ids=lambda value: f"{type(value).__name__} {value}")
def test_a_few_rows_of_plain_numbers_are_encoded_as_any_others(odd, monkeypatch):
    rows, y = dictionaries(160)
    rows[110] = {**rows[110], "b": odd}
    rows[111] = dict(reversed(rows[111].items()))
    quick, table = begun(rows[:100], y[:100]), begun(rows[:100], y[:100])

    def told(model):
        found = []
        for first in range(100, 160, 20):
            part = rows[first : first + 20]
            found.append(model.passed(part).tolist())
            model.partial_fit(part, y[first : first + 20])  # a list of targets
            numbers = np.array([list(row.values()) for row in rows[:9]])
            found += [model.predict(numbers).tolist(), model.passed(numbers.astype(np.float32)).tolist()]
        return found, state(model)

    said = told(quick)
    monkeypatch.setattr(PlainRows, "table", lambda self, X: None)
    assert told(table) == said


@pytest.mark.parametrize("odd", ODD[5:], ids=lambda value: f"{type(value).__name__} {value}")
def test_numbers_of_any_type_are_read_as_in_tables(odd):
    rows, y = dictionaries(100)
    single, table = begun(rows, y), begun(rows, y)
    event = {**rows[0], "b": odd}
    assert single.steps_[0][1].scaled_numbers(event) is not None
    single.learn_one(event, 1)
    table.partial_fit([event], [1])
    assert state(single) == state(table)


def test_a_refused_event_changes_nothing():
    rows, y = dictionaries(100)
    pipeline = begun(rows, y)
    before = state(pipeline)
    with pytest.raises(ValueError, match="there are no columns 'a', 'b', 'c'; the columns are 'd'"):
        pipeline.learn_one({"d": 1.0}, 1)
    with pytest.raises(ValueError, match="sample_weight"):
        pipeline.learn_one(rows[0], 1, sample_weight=-1.0)
    assert state(pipeline) == before


def test_the_first_event_after_begin():
    rows, y = dictionaries(100)
    new = kernling.StreamPipeline.auto(kernling.AVMClassifier(gamma=0.2, delta=1.0, random_state=0))
    single, table = copy.deepcopy(new).begin(rows), new.begin(rows)
    for row, label in zip(rows[:5], y[:5], strict=True):
        single.learn_one(row, label)
        table.partial_fit([row], [label])
    assert state(single) == state(table)
