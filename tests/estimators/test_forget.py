"""Forgetting: what the half-life means, and that it helps where the stream changes."""

import numpy as np
import pytest

import kernling as kl

HALF_LIFE = 50.0


@pytest.fixture(scope="module")
def turned():
    """A circle inside which the labels change sides halfway."""
    rng = np.random.default_rng(11)
    X = rng.uniform(-1.0, 1.0, size=(4000, 2))
    y = np.where((X**2).sum(axis=1) < 0.6, 1, -1)
    y[2000:] *= -1
    return X, y


SETTINGS = {  # steps small enough that without forgetting the old labels last for long
    kl.AVMClassifier: {"lam": 0.1, "delta": 0.3, "output": "last"},
    kl.POLKClassifier: {"eta": 1.0},
    kl.DualSVRGClassifier: {"eta": 0.05},
    kl.AOGDClassifier: {"output": "last", "eta": 0.02, "second_eta": 0.005, "n_components": 200},
    kl.KRLSClassifier: {"points": 50},
}


@pytest.mark.parametrize("cls", SETTINGS, ids=lambda cls: cls.__name__)
def test_forgetting_helps_when_the_labels_turn(cls, turned):
    X, y = turned
    usual, forgetful = (
        np.mean(cls(forget=forget, gamma=2.0, random_state=0, **SETTINGS[cls]).predict_then_learn(X, y)[2000:] != y[2000:])
        for forget in (None, 200.0)
    )
    assert forgetful < usual - 0.03


def test_half_life_is_what_it_says():
    """Events without loss shrink an AVM by 1 - 1/t, which at the horizon is the half-life's share."""
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(1000, 2)), rng.choice([-1, 1], 1000)
    model = kl.AVMClassifier(gamma=1.0, delta=0.5, lam=1e-2, output="last", forget=HALF_LIFE).fit(X, y)
    probe = X[:20]
    before = model.decision_function(probe)
    far = np.array([40.0, 40.0])  # no kernel value reaches it: its events add to its own cell only
    for _ in range(int(HALF_LIFE)):
        model.learn_one(far, 1)
    np.testing.assert_allclose(model.decision_function(probe), before / 2.0, rtol=1e-9)


def test_without_forgetting_nothing_changes(turned):
    X, y = turned
    usual, endless = (
        kl.AVMClassifier(gamma=2.0, delta=0.3, lam=1e-3, forget=forget).fit(X[:500], y[:500]) for forget in (None, 1e12)
    )
    np.testing.assert_array_equal(usual.decision_function(X), endless.decision_function(X))


def test_a_half_life_below_one_event_is_refused(turned):
    with pytest.raises(ValueError, match="forget must be None, or a number at least 1"):
        kl.AVMClassifier(forget=0.5).fit(*turned)
