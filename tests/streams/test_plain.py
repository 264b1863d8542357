"""Single events of plain numbers, which compiled code reads, against the same events in tables."""

import copy
import pickle

import numpy as np
import pytest

import kernling

NAMES = ["a", "b", "c"]


def dictionaries(n, seed=0):
    X = np.random.default_rng(seed).normal(3.0, 5.0, size=(n, len(NAMES)))
    return [dict(zip(NAMES, row, strict=True)) for row in X.tolist()], (X[:, 0] > X[:, 1]).astype(int).tolist()


def begun(rows, y):
    return kernling.StreamPipeline.auto(kernling.AVMClassifier(gamma=0.2, random_state=0)).partial_fit(rows, y)


def state(pipeline):
    encode, model = (step for _, step in pipeline.steps_)
    return encode.to_state(), model.decision_function(np.eye(len(NAMES))).tolist(), model.t_


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


def test_a_refused_event_changes_nothing():
    rows, y = dictionaries(100)
    pipeline = begun(rows, y)
    before = state(pipeline)
    with pytest.raises(ValueError, match="there is no column 'c'"):
        pipeline.learn_one({"a": 1.0, "b": 2.0}, 1)
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
