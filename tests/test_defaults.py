"""Defaults: memory is bounded, the classes say by how much, and single events are learned as well as whole tables."""

import re

import numpy as np
import pytest
from sklearn.datasets import load_digits

import kernling as kl
from kernling import registry
from kernling.components.logistic import Logistic
from kernling.core import state as states

MAIN = [cls for entry in registry.METHODS.values() if entry.is_main for cls in entry.classes()]
HARD = 10  # columns of rows whose labels are random, all of which methods would like to store


def stated_bound(cls) -> int:
    """The number of points that a class says it stores at most."""
    said = cls.__doc__.split("Parameters")[0]
    if "No points are stored" in said:
        return 0
    found = re.findall(r"at most ([\d,]+)", said)
    assert found, f"{cls.__name__} does not say how many points it stores by default"
    return int(found[0].replace(",", ""))


def waiting(model) -> int:
    """Bytes of the events that wait for logistic regression, whose number differs."""
    held = getattr(states.trimmed(model._state), "logistic", None)
    return held.rows.nbytes + held.labels.nbytes + held.parts.nbytes if isinstance(held, Logistic) else 0


@pytest.mark.parametrize("cls", MAIN, ids=lambda cls: cls.__name__)
def test_memory_is_bounded_by_what_the_class_says(cls):
    rng = np.random.default_rng(0)
    model, sizes, memory = cls(random_state=0), [], []
    if cls in (kl.AutoClassifier, kl.AutoRegressor):
        model.set_params(memory=0)  # it fills slowly; tests/components/test_archive.py checks its bound
    for rows in (5120, 2048, 2048):  # so that no event waits to be folded in
        X = rng.normal(size=(rows, HARD))
        model.partial_fit(X, rng.normal(size=rows) if cls.task in ("regression", "ranking") else rng.integers(2, size=rows))
        sizes.append(model.n_stored_)
        memory.append(model.nbytes_ - waiting(model))
    assert max(sizes) <= stated_bound(cls)
    assert memory[-1] == memory[-2]


@pytest.mark.parametrize("name", ["avm", "spa", "polk", "dualsvrg", "aogd"])
def test_single_events_make_hardly_more_mistakes_than_one_call(name):
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    X, y = X[order] / 16.0, y[order]
    at_once, model = (registry.estimator_for(name, "classification")(random_state=0) for _ in range(2))
    single = 0
    for x, label in zip(X, y, strict=True):
        single += model.predict_one(x) != label
        model.learn_one(x, label)
    assert single <= 1.15 * np.sum(at_once.predict_then_learn(X, y) != y)
