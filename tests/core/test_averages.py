"""Averages and suffix averages against explicit means of all models."""

import math

import numpy as np
import pytest

import kernling
from kernling.core.averages import SPREAD
from oracles import stream

PROBE = np.array([0.2, -0.1, 0.4])
SETTINGS = {"gamma": 1.0, "delta": 0.8, "lam": 0.1, "loss": "logistic"}


def learn_one(model, x, label):
    """Learn one event; at the first one, say that there are two classes: alone, either would be the first."""
    if hasattr(model, "t_"):
        model.learn_one(x, label)
    else:
        model.partial_fit([x], [label], classes=[0, 1])


def outputs_of_all_models(X, y):
    """w_t(PROBE) for t = 1, 2, ...: the model that meets event t."""
    model = kernling.AVMClassifier(output="last", **SETTINGS)
    values = []
    for x, label in zip(X, y, strict=True):
        values.append(model.score_one(PROBE))
        learn_one(model, x, label)
    return np.array(values)


def averaged_from(values, score):
    """The s with mean(w_s .. w_T) = score."""
    T = len(values)
    means = values[::-1].cumsum()[::-1] / (T - np.arange(T))
    close = np.flatnonzero(np.abs(means - score) < 1e-9)
    assert len(close) == 1
    return int(close[0]) + 1


def test_average_at_every_event():
    X, y = stream("binary", 200)
    values = outputs_of_all_models(X, y)
    model = kernling.AVMClassifier(output="average", **SETTINGS)
    for t in range(200):
        learn_one(model, X[t], y[t])
        assert model.score_one(PROBE) == pytest.approx(values[: t + 1].mean(), abs=1e-11)


@pytest.mark.parametrize("suffix", [0.01, 0.1, 0.5, 0.77, 1.0])
@pytest.mark.parametrize("n", [1, 2, 7, 100, 333])
@pytest.mark.parametrize("passes", [1, 3])
def test_fit_averages_the_exact_suffix(suffix, n, passes):
    X, y = stream("binary", n, seed=1)
    values = outputs_of_all_models(np.tile(X, (passes, 1)), np.tile(y, passes))
    T = n * passes
    first = min(T, math.ceil((1.0 - suffix) * T - 1e-9) + 1)
    model = kernling.AVMClassifier(output="suffix", suffix=suffix, passes=passes, **SETTINGS).fit(X, y)
    assert model.score_one(PROBE) == pytest.approx(values[first - 1 :].mean(), abs=1e-10)


@pytest.mark.parametrize("suffix", [0.1, 0.3, 0.5, 0.75, 0.9])
def test_an_open_stream_averages_somewhat_more_than_asked_for(suffix):
    n = 1500
    X, y = stream("binary", n, seed=2)
    values = outputs_of_all_models(X, y)
    model = kernling.AVMClassifier(output="suffix", suffix=suffix, **SETTINGS)
    shares = []
    for t in range(1, n + 1):
        learn_one(model, X[t - 1], y[t - 1])
        if t in (5, 17, 60) or t % 71 == 0:
            first = averaged_from(values[:t], model.score_one(PROBE))
            averaged = t - first + 1
            assert suffix * t - 1.0 <= averaged <= min(t, SPREAD * suffix * t + 1.0)
            shares.append(averaged / t)
            assert model.suffix_fraction_ == pytest.approx(averaged / t)
    assert min(shares) < 1.1 * suffix  # the spread is used in both directions


def test_the_suffix_stays_right_when_learning_goes_on_after_fit():
    X, y = stream("binary", 600, seed=4)
    values = outputs_of_all_models(X, y)
    model = kernling.AVMClassifier(output="suffix", suffix=0.5, **SETTINGS).fit(X[:100], y[:100])
    assert model.suffix_fraction_ == pytest.approx(0.5)
    for t in range(101, 601):
        learn_one(model, X[t - 1], y[t - 1])
        averaged = t - averaged_from(values[:t], model.score_one(PROBE)) + 1
        assert 0.5 * t - 1.0 <= averaged <= SPREAD * 0.5 * t + 1.0


def test_a_late_class_keeps_the_averages():
    X, y = stream("multiclass", 300, seed=3)
    y = np.where(np.arange(300) < 200, y % 2, y)
    first = kernling.AVMClassifier(output="average", **SETTINGS).partial_fit(X[:200], y[:200])
    before = first.decision_function(X)
    assert before.ndim == 1
    late = int(np.flatnonzero(y > 1)[0])
    first.partial_fit(X[200 : late + 1], y[200 : late + 1])
    total = kernling.AVMClassifier(output="average", **SETTINGS).partial_fit(X[:late], y[:late]).decision_function(X) * late
    last = (
        kernling.AVMClassifier(output="last", **SETTINGS).partial_fit(X[:late], y[:late]).decision_function(X)
    )  # w_{late + 1} is counted in
    expected = (total + last) / (late + 1)
    np.testing.assert_allclose(first.decision_function(X)[:, :2], np.column_stack([-expected, expected]) / 2.0, atol=1e-10)
    np.testing.assert_allclose(first.decision_function(X)[:, 2], 0.0, atol=1e-10)


# ---------------------------------------------------------------------- the automatic choice


def flipping(n, every):
    """Labels of a border that turns around every so many events, and never if that is more than n; a tenth is noise."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(n, 2))
    y = (X[:, 0] > 0.0) ^ (np.arange(n) // every % 2 == 1)
    return X, np.where(rng.random(n) < 0.1, ~y, y).astype(int)


def test_votes_follow_the_last_model_where_the_stream_moves_and_an_average_where_it_does_not():
    weights, mistakes = {}, {}
    for name, every in (("moving", 250), ("standing", 10_000)):
        X, y = flipping(2000, every)
        for output in ("auto", "last", "average", "suffix"):
            model = kernling.SPAClassifier(gamma=0.5, output=output, random_state=0)
            mistakes[name, output] = np.mean(model.predict_then_learn(X, y) != y)
            weights[name, output] = model.output_weights_
    assert weights["moving", "auto"]["last"] > 0.5 > weights["standing", "auto"]["last"]
    assert weights["standing", "suffix"] == {"last": 0.0, "average": 0.0, "suffix": 1.0}
    for name in ("moving", "standing"):
        assert mistakes[name, "auto"] < 1.1 * min(mistakes[name, output] for output in ("last", "average", "suffix"))
        assert sum(weights[name, "auto"].values()) == pytest.approx(1.0)


def test_the_prediction_is_the_weighted_mean_of_the_three_outputs():
    X, y = flipping(500, 200)
    make = lambda output: kernling.SPAClassifier(gamma=0.5, output=output, random_state=0).partial_fit(X, y)  # noqa: E731
    chosen = make("auto")
    expected = sum(weight * make(name).decision_function(X) for name, weight in chosen.output_weights_.items())
    np.testing.assert_allclose(chosen.decision_function(X), expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("output", ["average", "suffix", "auto"])
def test_outputs_in_blocks_are_those_between_single_events(output):
    """Snapshots are taken, and become the beginning of the suffix, in the middle of blocks."""
    X, y = stream("binary", 1500, seed=5)
    blocks, singles = (kernling.AVMClassifier(output=output, suffix=0.5, **SETTINGS) for _ in range(2))
    scores = blocks.partial_fit(X[:1], y[:1], classes=[0, 1]).predict_then_learn(X[1:], y[1:], method="decision_function")
    expected = []
    for x, label, following in zip(X[:-1], y[:-1], X[1:], strict=True):
        learn_one(singles, x, label)
        expected.append(singles.score_one(following))
    np.testing.assert_allclose(scores, expected, rtol=1e-9, atol=1e-9)
