"""Streams in time: targets and columns of the rows before, and nothing from the future."""

import json

import numpy as np
import pandas
import pytest

import kernling as kl
from kernling.tables import Encode, Table, part_from_state
from kernling.tables.past import Past, wanted_of

HOUR = np.timedelta64(3600, "s")


def hours(n, seed=0):
    """Hourly values with a shape of the day, and a column that tells the next value."""
    rng = np.random.default_rng(seed)
    shape = rng.normal(size=24).cumsum()
    value = shape[np.arange(n) % 24] + np.repeat(np.cumsum(rng.normal(0.0, 0.3, -(-n // 24))), 24)[:n] + rng.normal(0.0, 0.1, n)
    when = np.datetime64("2025-01-01T00:00", "s") + np.arange(n) * HOUR
    return pandas.DataFrame({"when": when, "sensor": rng.normal(size=n).round(3)}), value


def oracle(values, rows, is_mean):
    """The value so many rows before each row, or the mean of so many rows before it."""
    if is_mean:
        return [np.mean(values[max(place - rows, 0) : place]) if place else None for place in range(len(values))]
    return [values[place - rows] if place >= rows else None for place in range(len(values))]


@pytest.mark.parametrize("chunk", [1, 7, 100])
def test_the_past_of_each_row(chunk):
    X, y = hours(60)
    past, found = Past(wanted_of([1, 24, ("sensor", 2)], [3, ("sensor", 5)])), []
    for first in range(0, 60, chunk):
        table = Table({name: X[name][first : first + chunk].to_numpy() for name in X})
        past, table = past.learned(table, y[first : first + chunk])
        found.append(table)
    sensor = X["sensor"].to_numpy()
    for name, values, rows, is_mean in (
        ("target 1 before", y, 1, False),
        ("target 24 before", y, 24, False),
        ("sensor 2 before", sensor, 2, False),
        ("target mean of 3 before", y, 3, True),
        ("sensor mean of 5 before", sensor, 5, True),
    ):
        got = np.array([value for table in found for value in table.columns[name].tolist()], dtype=float)
        np.testing.assert_allclose(got, np.array(oracle(values, rows, is_mean), dtype=float), rtol=1e-13)


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_single_events_and_blocks_saved_and_resumed(task, tmp_path):
    X, values = hours(200)
    y = values if task == "regression" else np.where(values > np.median(values), "high", "low")
    model = kl.AVMRegressor(gamma=0.1) if task == "regression" else kl.AVMClassifier(gamma=0.1)
    options = {"lags": [1, 24, ("sensor", 1)], "windows": [("sensor", 4)]}
    blocks = kl.StreamPipeline.auto(model, **options).partial_fit(X[:120], y[:120])
    kl.save(blocks, tmp_path / "model.kern")
    again = kl.load(tmp_path / "model.kern")
    for place in range(120, 200):
        blocks.partial_fit(X[place : place + 1], y[place : place + 1])
        again.learn_one(X.iloc[place].to_dict(), y[place])
    np.testing.assert_array_equal(blocks.passed(X[:5]), again.passed(X[:5]))
    whole = kl.StreamPipeline.auto(model, **options)
    whole.begin(X[:120], y[:120])
    whole.partial_fit(X, y)
    np.testing.assert_array_equal(whole.passed(X[:5]), again.passed(X[:5]))
    assert again.n_features_in_ == 2
    assert again.feature_names_in_.tolist() == ["when", "sensor"]


def test_nothing_of_the_row_itself_or_later_ones_is_used():
    X, y = hours(100)
    encode = Encode(lags=[1], windows=[3], missing="impute").begin(X, "regression", y)
    other = y.copy()
    other[50:] += 100.0
    rows = [Encode(lags=[1], windows=[3], missing="impute").learn_transform(X, targets) for targets in (y, other)]
    assert encode.columns_out == rows[0].shape[1]
    np.testing.assert_array_equal(rows[0][:51], rows[1][:51])
    assert (rows[0][51:] != rows[1][51:]).any(axis=1).all()


def test_an_error_leaves_the_past_unchanged_and_prediction_does_not_move_it():
    X, y = hours(80)
    model = kl.StreamPipeline.auto(kl.AVMRegressor(gamma=0.1), lags=[1]).partial_fit(X[:60], y[:60])
    before = model.passed(X[60:61])
    with pytest.raises(ValueError, match=r"NaN|finite"):
        model.partial_fit(X[60:], np.full(20, np.nan))
    model.predict(X[60:])
    np.testing.assert_array_equal(model.passed(X[60:61]), before)


def test_rows_out_of_order_are_told():
    X, y = hours(60)
    order = np.r_[np.arange(30), 40, np.arange(30, 40), np.arange(41, 60)]
    encode = Encode(lags=[1], missing="impute")
    with pytest.warns(UserWarning, match="rows are not in order of 'when'"):
        encode.learn_transform(X.iloc[order], y[order])
    assert encode.disordered_ == 10
    again = part_from_state(json.loads(json.dumps(encode.to_state())))
    with pytest.warns(UserWarning, match="rows are not in order"):
        again.learn_transform(X[:5], y[:5])
    assert again.disordered_ == 15
    assert Encode(missing="impute").fit(X.iloc[order]).disordered_ == 0  # nobody asked
    with pytest.warns(UserWarning, match="rows are not in order"):
        assert Encode(missing="impute", time="when").fit(X.iloc[order]).disordered_ == 10


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"lags": [0]}, "lags must be numbers of rows"),
        ({"lags": "1,24"}, "lags must be a list"),
        ({"windows": [("sensor", 0.5)]}, "windows must be numbers of rows"),
        ({"lags": [("senor", 1)]}, "did you mean 'sensor'"),
        ({"lags": [("when", 1)]}, "need numbers or texts"),
        ({"lags": [1], "missing": "error"}, "need missing='impute'"),
        ({"time": "when", "ignore": ["when"]}, "cannot be both ignore and the time"),
    ],
)
def test_what_cannot_be_is_refused(options, message):
    X, y = hours(30)
    with pytest.raises((TypeError, ValueError), match=message):
        Encode(**{"missing": "impute"} | options).fit(X, y)


def test_labels_have_no_mean_and_lags_cannot_be_exported(tmp_path):
    X, y = hours(60)
    with pytest.raises(ValueError, match="windows of the target need targets that are numbers"):
        Encode(windows=[3], missing="impute").fit(X, np.where(y > 0, "a", "b"))
    with pytest.raises(ValueError, match="need a classifier or a regressor"):
        Encode(lags=[3], missing="impute").fit(X)
    model = kl.StreamPipeline.auto(kl.AVMRegressor(gamma=0.1), lags=[1]).partial_fit(X, y)
    with pytest.raises(TypeError, match="lags and windows, which depend on the rows before, cannot be exported"):
        kl.to_onnx(model, tmp_path / "model.onnx")


@pytest.mark.parametrize("wrong", [[], [[None, [1.0, 2.0]]], [[None, [float("inf")]]], [[None, [[1]]]], [["x", [1.0]]]])
def test_forged_values_are_refused(wrong):
    X, y = hours(30)
    state = Encode(lags=[1], missing="impute").fit(X, y).to_state()
    assert part_from_state(json.loads(json.dumps(state))).to_state() == state
    with pytest.raises(ValueError, match="values of rows before"):
        part_from_state(state | {"past": wrong})
