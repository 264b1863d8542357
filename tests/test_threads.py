"""Threads: models that learn at the same time do not disturb each other, nor does learning disturb predicting."""

import copy
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import checks
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
