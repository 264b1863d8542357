"""Auto and KRLS are the same to the last bit, however events are divided among calls, and whatever is predicted between."""

import numpy as np
import pytest

import kernling as kl
from kernling.core import state as states
from kernling.core.limits import Diverged
from kernling.estimators.contents import flatten
from kernling.methods.auto import events_ahead

SMALL = {"points": 40, "window": 60, "memory": 4000}
MODELS = {
    "two classes": lambda: kl.AutoClassifier(**SMALL),
    "three classes": lambda: kl.AutoClassifier(**SMALL),
    "values": lambda: kl.AutoRegressor(**SMALL),
    "single precision": lambda: kl.AutoClassifier(**SMALL, dtype="float32"),
    "KRLS": lambda: kl.KRLSClassifier(points=40, gamma=0.3),
    "KRLS, values, forgetting": lambda: kl.KRLSRegressor(points=40, gamma=0.3, forget=100.0),
    "KRLS, Fourier features": lambda: kl.KRLSClassifier(features="fourier", points=20, gamma=0.3, random_state=0),
    "KRLS, few points": lambda: kl.KRLSClassifier(points=8, gamma=0.3),
}


def stream(name: str, n: int = 700) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X, weights = rng.normal(size=(n, 4)), rng.choice([0.0, 0.5, 1.0, 1.0], n)
    value = X[:, 0] * X[:, 1]
    weights[0] = 1.0
    if "values" in name:
        return X, value, weights
    return X, (value > 0.0).astype(int) + (name == "three classes") * (X[:, 2] > 0.0), weights


def learned(model, X, y, weights, sizes, rng):
    """Learn in calls of random sizes, and predict between them."""
    classes = {"classes": np.unique(y)} if hasattr(model, "predict_proba") else {}
    first = 0
    while first < len(y):
        part = slice(first, first + int(rng.choice(sizes)))
        if len(y[part]) == 1 and first:
            model.learn_one(X[first], y[first], float(weights[first]))
        else:
            model.partial_fit(X[part], y[part], sample_weight=weights[part], **classes)
        if rng.random() < 0.2:
            model.predict(X[:5])
            model.predict_one(X[5])
        first = part.stop
    return model


@pytest.mark.parametrize("name", MODELS)
def test_states_are_the_same_whatever_the_calls(name):
    X, y, weights = stream(name)
    X = X.astype("float32" if name == "single precision" else "float64")
    whole = learned(MODELS[name](), X, y, weights, [len(y)], np.random.default_rng(0))
    for seed, sizes in ((1, [1]), (2, [1, 1, 1, 2, 3, 32, 100, 300])):
        other = learned(MODELS[name](), X, y, weights, sizes, np.random.default_rng(seed))
        for key, array in flatten(states.trimmed(whole.state_)).items():
            np.testing.assert_array_equal(array, flatten(states.trimmed(other.state_))[key], err_msg=key)
        if "KRLS" not in name:
            scores = whole._scores(X[:40])
            np.testing.assert_array_equal(other._scores(X[:40]), scores)
            np.testing.assert_array_equal([np.atleast_1d(other.score_one(x)) for x in X[:40]], scores)


@pytest.mark.parametrize("name", ["two classes", "values"])
def test_single_events_follow_what_batches_have_settled(name):
    X, y, _ = stream(name, 600)
    X = np.abs(X) / 5.0  # not scaled, so that gamma is another one after each time that it is settled
    known = {} if name == "values" else {"classes": np.unique(y)}
    whole, mixed = (MODELS[name]().partial_fit(X[:100], y[:100], **known) for _ in range(2))
    whole.partial_fit(X[100:], y[100:])
    i = 100
    while i < len(y):
        mixed.learn_one(X[i], y[i])
        n = events_ahead(mixed.state_)
        mixed.partial_fit(X[i + 1 : i + 1 + n], y[i + 1 : i + 1 + n])
        i += 1 + n
        if i < len(y):
            mixed.predict_then_learn_one(X[i], y[i])
            mixed.partial_fit(X[i + 1 : i + 3], y[i + 1 : i + 3])
            i += 3
    for key, array in flatten(states.trimmed(whole.state_)).items():
        np.testing.assert_array_equal(array, flatten(states.trimmed(mixed.state_))[key], err_msg=key)


@pytest.mark.parametrize("name", ["two classes", "values"])
def test_outputs_before_each_event_are_the_same_whatever_the_calls(name):
    X, y, _ = stream(name)
    said = MODELS[name]().predict_then_learn(X, y)
    other = MODELS[name]()
    parts = [other.predict_then_learn(X[i : i + 45], y[i : i + 45]) for i in range(0, len(y), 45)]
    np.testing.assert_array_equal(np.concatenate(parts), said)


@pytest.mark.parametrize("name", MODELS)
def test_an_event_predicted_and_learned_by_one_call_is_as_in_a_block(name):
    X, y, _ = stream(name, 300)
    X = X.astype("float32" if name == "single precision" else "float64")
    method, known = ("predict", {}) if "values" in name else ("decision_function", {"classes": np.unique(y)})
    whole, single = (MODELS[name]().partial_fit(X[:40], y[:40], **known) for _ in range(2))
    expected = whole.predict_then_learn(X[40:], y[40:], method)
    found = [single.predict_then_learn_one(x, target, method) for x, target in zip(X[40:], y[40:], strict=True)]
    np.testing.assert_array_equal(found, expected)
    for key, array in flatten(states.trimmed(whole.state_)).items():
        np.testing.assert_array_equal(array, flatten(states.trimmed(single.state_))[key], err_msg=key)


@pytest.mark.parametrize("weights", ["balanced", {0: 1.0, 1: 5.0}])
@pytest.mark.parametrize("name", ["two classes", "three classes"])
def test_one_call_for_an_event_with_class_weights_and_a_late_class(name, weights):
    X, y, _ = stream(name, 100)
    first = y < 2
    X, y = np.vstack([X[first], X[~first]]), np.concatenate([y[first], y[~first]])  # the third class comes late
    once, twice = (MODELS[name]().set_params(class_weight=weights) for _ in range(2))
    for x, label in zip(X, y, strict=True):
        expected = twice.predict_proba_one(x)
        assert once.predict_then_learn_one(x, label, "predict_proba") == pytest.approx(expected)
        twice.learn_one(x, label)
    assert once.predict_proba_one(X[0]) == twice.predict_proba_one(X[0])


def test_an_event_that_diverges_changes_nothing():
    X, y, _ = stream("values", 300)
    model = kl.KRLSRegressor(points=60, gamma=1.0, standardise_target=False).fit(1e-3 * X, 1e49 * y)
    before = {key: array.copy() for key, array in flatten(states.trimmed(model.state_)).items()}
    for size in (1, 2, 32):
        rows = np.vstack([1e-3 * X[: size - 1], np.full((1, 4), 1e20)])
        with pytest.raises(Diverged):
            model.partial_fit(rows, y[:size])
    with pytest.raises(Diverged):
        model.learn_one(rows[-1], 1.0)
    for key, array in flatten(states.trimmed(model.state_)).items():
        np.testing.assert_array_equal(array, before[key], err_msg=key)
