"""A model whose steps are too large for its data is stopped while it is finite, and the call that did it has not happened."""

import copy

import numpy as np
import pytest

import hostile
from kernling import AOGDRanker, POLKRegressor
from kernling.baselines import OGDRegressor
from oracles import stream

X, y = stream("regression", 400)
SETTINGS = {
    OGDRegressor: dict(loss="l2", eta=20.0, gamma=1.0),
    POLKRegressor: dict(loss="l2", eta=500.0, lam=0.0, parsimony=0.0, gamma=1.0, batch_size=4),
    AOGDRanker: dict(features="linear", eta=50.0, second_eta=50.0, refresh=0.5, random_state=0),
}
EACH = pytest.mark.parametrize("cls", SETTINGS, ids=lambda cls: cls.__name__)


def until_it_fails(model, learn):
    """Learn until a call is refused; returns how many were not."""
    for done in range(20_000):
        result = hostile.attempt(model, lambda: learn(done % len(y)))  # noqa: B023
        if isinstance(result, ValueError):
            assert "grown beyond" in str(result)
            return done
    raise AssertionError("it did not diverge")


@EACH
def test_chunks(cls):
    model = cls(**SETTINGS[cls]).partial_fit(X[:2], y[:2])
    until_it_fails(model, lambda i: model.partial_fit(X[i : i + 7], y[i : i + 7]))
    assert np.isfinite(model.predict(X)).all()


@EACH
def test_single_events(cls):
    model = cls(**SETTINGS[cls]).partial_fit(X[:2], y[:2])
    single = copy.deepcopy(model)
    by_rows = until_it_fails(model, lambda i: model.partial_fit(X[i : i + 1], y[i : i + 1]))
    by_events = until_it_fails(single, lambda i: single.learn_one(X[i], y[i]))
    batch = SETTINGS[cls].get("batch_size", 1)  # rows are scored when a mini-batch is complete, a single event when it arrives
    assert by_rows - batch < by_events <= by_rows


@EACH
def test_fit_keeps_the_model_before(cls):
    model = cls(random_state=np.random.default_rng(3)).fit(X, y)
    usual = model.get_params()
    before = hostile.contents(model), model.random_state.bit_generator.state
    model.set_params(**{**SETTINGS[cls], "random_state": model.random_state, "passes": 50})
    with pytest.raises(ValueError, match="grown beyond"):
        model.fit(X, y)
    model.set_params(**usual)
    assert (hostile.contents(model), model.random_state.bit_generator.state) == before
