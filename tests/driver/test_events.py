"""The driver: room that grows, threads, Ctrl-C."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from scipy import sparse

import kernling
from kernling.core.expansion import LIMIT, new_expansion
from oracles import stream


@pytest.mark.parametrize("block_size", [1, 7, 128, 5000])
@pytest.mark.parametrize("params", [{}, {"loss": "l2", "lam": 0.5}], ids=["plain", "norm"])
def test_room_grows_by_itself(block_size, params):
    X, y = stream("regression", 1000)
    params = {"gamma": 1.0, "delta": 0.0, "zero_cells": True, "max_cells": None, **params}
    model = kernling.AVMRegressor(block_size=block_size, **params).partial_fit(X, y)
    assert model.n_stored_ == model.n_cells_ == 1000
    np.testing.assert_allclose(model.state_.model.points[:1000] + model.state_.model.centre, X, atol=1e-15)
    one_by_one = kernling.AVMRegressor(**params)
    for first in range(0, 1000, 50):
        one_by_one.partial_fit(X[first : first + 50], y[first : first + 50])
    np.testing.assert_allclose(model.predict(X), one_by_one.predict(X), atol=1e-9)


def test_room_left_unused_stays_within_twice_the_points():
    X, y = stream("regression", 3000)
    model = kernling.AVMRegressor(gamma=1.0, delta=0.0, zero_cells=True, max_cells=None).partial_fit(X, y)
    per_point = 8 * (X.shape[1] + 1 + 1 + 2)  # point, norm, coefficient, tags
    assert model.nbytes_ <= 2.1 * 3000 * per_point


@pytest.mark.parametrize("d", [LIMIT + 1, 2**40])
def test_too_many_numbers_are_refused_before_they_are_allocated(d):
    with pytest.raises(ValueError, match="hash the columns"):
        new_expansion(d, 1, np.float64)
    with pytest.raises(ValueError, match="hash the columns"):
        new_expansion(10, 1, np.float64).grown(d)


def test_a_model_too_wide_for_sparse_rows_stays_as_it_was():
    rows = sparse.random_array((3, LIMIT // 100), density=1e-6, format="csr", random_state=np.random.default_rng(0))
    model = kernling.AVMClassifier(gamma=1.0, delta=0.0)
    with pytest.raises(ValueError, match=r"too wide for a method that stores points.*hash them to fewer"):
        model.partial_fit(rows, [0, 1, 0])


@pytest.mark.parametrize("kind", ["binary", "multiclass"])
def test_threads_give_identical_results(kind):
    X, y = stream(kind, 3000)
    model = kernling.AVMClassifier(gamma=1.0, delta=0.5, lam=0.01).fit(X, y)
    alone = model.decision_function(X)
    for n_jobs in (2, 3, -1):
        model.set_params(n_jobs=n_jobs)
        np.testing.assert_array_equal(model.decision_function(X), alone)
        np.testing.assert_allclose(model.decision_function(sparse.csr_array(X)), alone, atol=1e-9)


LONG_FIT = """
import signal, sys, time
import numpy as np, kernling

signal.signal(signal.SIGINT, signal.default_int_handler)
rng = np.random.default_rng(0)
X = rng.normal(size=(100_000, 40))
y = (X[:, 0] * X[:, 1] > 0).astype(int)
rule = dict(approximate="bernoulli", beta=0.5, random_state=3, zero_cells=True, max_cells=None)
model = kernling.AVMClassifier(gamma=0.1, delta=0.0, passes=50, **rule)
kernling.AVMClassifier(gamma=0.1, delta=0.0).fit(X[:300], y[:300])  # compiled by now
print("started", flush=True)
try:
    getattr(model, sys.argv[1])(X, y)
except KeyboardInterrupt as stop:
    learned = model.t_
    print("stopped", learned, str(stop).split()[2], flush=True)
other = kernling.AVMClassifier(**model.get_params()).partial_fit(X[:learned], y[:learned], classes=[0, 1])
print(np.abs(other.decision_function(X[:50]) - model.decision_function(X[:50])).max(), other.n_stored_ - model.n_stored_)
for each in (model, other):
    each.partial_fit(X[:10], y[:10])
print(model.t_ - learned, model._rng.bit_generator.state == other._rng.bit_generator.state)
"""


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGINT to send to another process")
@pytest.mark.parametrize("method", ["fit", pytest.param("partial_fit", marks=pytest.mark.long)])
def test_interrupt_leaves_a_model_of_the_events_learned(method):
    child = subprocess.Popen([sys.executable, "-c", LONG_FIT, method], stdout=subprocess.PIPE, text=True)
    try:
        assert child.stdout.readline().strip() == "started"
        time.sleep(0.3)
        sent = time.perf_counter()
        child.send_signal(signal.SIGINT)
        word, learned, said = child.stdout.readline().split()
        assert time.perf_counter() - sent < 5.0  # a second, and leave for a loaded machine
        difference, points = child.stdout.readline().split()
        further, same_random_state = child.stdout.readline().split()
        assert child.wait(60) == 0
    finally:
        child.kill()
    assert word == "stopped"
    assert 0 < int(learned) == int(said) < 100_000
    assert float(difference) < 1e-8
    assert int(points) == 0
    assert further == "10"
    assert same_random_state == "True"
