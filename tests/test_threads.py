"""Threads: models that learn at the same time do not disturb each other, nor does learning disturb predicting."""

import copy
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import checks
import kernling
from kernling.tables import Standardise
from oracles import CASES, stream

ESTIMATORS = checks.estimators()
LENGTH = 600


def all_rows(cls, case, seed):
    X, y = stream(case.stream, LENGTH, seed)
    model = checks.make(cls, case, random_state=seed)
    for first in range(0, LENGTH, 100):
        checks.learn(model, X[first : first + 100], y[first : first + 100], np.unique(y))
    for x, label in zip(X[:50], y[:50], strict=True):
        model.learn_one(x, label)
    return model


@pytest.mark.contract("threads")
@pytest.mark.parametrize("cls", ESTIMATORS, ids=lambda cls: cls.__name__)
def test_two_models_learn_at_once(cls):
    case = CASES[cls.__name__][0]
    alone = [all_rows(cls, case, seed) for seed in range(2)]
    with ThreadPoolExecutor(2) as pool:
        together = list(pool.map(lambda seed: all_rows(cls, case, seed), range(2)))
    for one, other in zip(alone, together, strict=True):
        checks.assert_identical(one, other)


@pytest.mark.contract("threads")
@pytest.mark.parametrize("cls", ESTIMATORS, ids=lambda cls: cls.__name__)
def test_predicting_while_a_copy_learns(cls):
    case = CASES[cls.__name__][0]
    X, y = stream(case.stream, LENGTH)
    model = checks.learn(checks.make(cls, case), X[:200], y[:200], np.unique(y))
    expected = checks.scores(model, X)
    learner = copy.deepcopy(model)
    with ThreadPoolExecutor(2) as pool:
        done = pool.submit(lambda: [checks.learn(learner, X[i : i + 50], y[i : i + 50]) for i in range(0, LENGTH, 50)])
        seen = [pool.submit(checks.scores, model, X).result()]
        while not done.done():
            seen.append(checks.scores(model, X))
        done.result()
    for scores in seen:
        np.testing.assert_array_equal(scores, expected)


@pytest.fixture
def impatient():
    """Threads that interrupt each other all the time."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(usual)


def as_dicts(X):
    return [{f"c{i}": value for i, value in enumerate(row)} for row in X.tolist()]


def scaled(model):
    return kernling.StreamPipeline([("scale", Standardise()), ("model", model)])


SHARED = {  # models that threads share, and the form of their rows
    "AVMClassifier": (kernling.AVMClassifier(gamma=1.0), np.asarray),
    "SPAClassifier": (kernling.SPAClassifier(gamma=1.0, random_state=0), np.asarray),
    "AOGDClassifier": (kernling.AOGDClassifier(gamma=1.0, random_state=0), np.asarray),
    "SPAOneClass": (kernling.SPAOneClass(gamma=1.0, random_state=0), np.asarray),
    "KRLSRegressor": (kernling.KRLSRegressor(gamma=1.0), np.asarray),
    "scaled": (scaled(kernling.AVMClassifier(gamma=1.0)), np.asarray),
    "encoded": (kernling.StreamPipeline.auto(kernling.AVMClassifier(gamma=1.0)), as_dicts),
}


def fitted(name, events=100):
    X, y = stream("binary", LENGTH)
    X[:, 0] += np.arange(LENGTH)  # so that scaling changes with every row
    model, form = SHARED[name]
    rows = form(X)
    return copy.deepcopy(model).partial_fit(rows[:events], y[:events]), rows, y


def assert_same(a, b):
    """Bit for bit the same contents."""
    one, other = a.to_contents(), b.to_contents()
    assert repr(one.header) == repr(other.header)
    for name, array in one.arrays.items():
        np.testing.assert_array_equal(array, other.arrays[name], err_msg=name)


@pytest.mark.parametrize("name", SHARED)
def test_threads_share_a_model_that_predicts(name, impatient):
    model, X, _ = fitted(name)
    expected = [model.score_one(x) for x in X]
    labels = [model.predict_one(x) for x in X]
    rows = np.asarray(model.predict(X[:50]))

    def ask(first):
        order = np.roll(np.arange(LENGTH), first)
        for i in order:
            assert model.score_one(X[i]) == expected[i]
            assert model.predict_one(X[i]) == labels[i]
            if i % 100 == 0:
                np.testing.assert_array_equal(model.predict(X[:50]), rows)

    with ThreadPoolExecutor(4) as pool:
        for job in [pool.submit(ask, 150 * thread) for thread in range(4)]:
            job.result()


def scores_of(model, X):
    return (model.decision_function if hasattr(model, "decision_function") else model.predict)(X).tobytes()


@pytest.mark.parametrize("bulk", [False, True], ids=["events", "chunks"])
@pytest.mark.parametrize("name", SHARED)
def test_answers_beside_learning_are_those_of_a_model_between_two_calls(name, bulk, impatient):
    model, X, y = fitted(name)
    chunks = [slice(i, i + (20 if bulk else 1)) for i in range(100, 300, 20 if bulk else 1)]

    def learn(model, part):
        if bulk:
            model.partial_fit(X[part], y[part])
        else:
            model.learn_one(X[part.start], y[part.start])

    twin = copy.deepcopy(model)
    possible = {twin.score_one(X[0])}
    tables = {scores_of(twin, X[:5])}
    for part in chunks:
        learn(twin, part)
        possible.add(twin.score_one(X[0]))
        tables.add(scores_of(twin, X[:5]))
    with ThreadPoolExecutor(3) as pool:
        done = pool.submit(lambda: [learn(model, part) for part in chunks])
        jobs = []
        while not done.done():
            jobs = [pool.submit(model.score_one, X[0]) for _ in range(20)]
            assert {job.result() for job in jobs} <= possible
            assert scores_of(model, X[:5]) in tables
        done.result()
    assert_same(model, twin)


def test_scores_and_the_boundary_of_one_class_are_of_one_moment():
    model, X, _ = fitted("SPAOneClass")
    score, offset, before = model.score_samples, model.offset_, model.score_samples(X[:5])
    learning = threading.Thread(target=model.partial_fit, args=(X[100:400],))

    def score_while_another_thread_learns(rows):
        scores = score(rows)
        learning.start()
        learning.join(0.5)
        return scores

    model.score_samples = score_while_another_thread_learns
    decision = model.decision_function(X[:5])
    learning.join()
    np.testing.assert_array_equal(decision, before - offset)
    assert model.offset_ != offset
