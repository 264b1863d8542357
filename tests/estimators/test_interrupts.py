"""Ctrl-C is never lost, however short the call that it meets, and leaves a model at the boundary of an event."""

import os

import pytest

LOOP = """
import os, random, signal, sys, threading, time
import numpy as np
import kernling as kl

rng = np.random.default_rng(0)
X = rng.normal(size=(int(sys.argv[1]), 3))
y = (X[:, 0] > 0).astype(int)
model = kl.AVMClassifier(gamma=0.5, delta=0.5).fit(X, y)
random.seed(0)
for attempt in range(5):
    sent = threading.Timer(random.uniform(0.01, 0.05), os.kill, (os.getpid(), signal.SIGINT))
    sent.start()
    calls_after = 0
    try:
        for _ in range(100_000):
            model.partial_fit(X, y)
            calls_after += sent.finished.is_set()
    except KeyboardInterrupt:
        pass
    sent.join()
    assert calls_after <= 1, f"attempt {attempt}: {calls_after} calls went on after the signal"
    assert model.t_ > 0 and np.isfinite(model.decision_function(X)).all()
    assert model.partial_fit(X, y).t_ > len(y)
print("never lost")
"""


@pytest.mark.parametrize("rows", ["20", pytest.param("3000", marks=pytest.mark.long)])
def test_a_signal_is_never_lost(rows, run_python):
    assert run_python(LOOP, rows).strip() == "never lost"


PIPELINE = """
import signal
import numpy as np
import kernling as kl
from kernling.driver import events
from kernling.tables import Standardise

rng = np.random.default_rng(0)
X = rng.normal(50.0, 3.0, size=(3000, 3))
y = X[:, 0] + X[:, 1]
usual = events._call_length
events._call_length = lambda state, setup: setup.block_size  # so that there are many places to stop at


def new():
    model = kl.SPARegressor(gamma=0.5, random_state=0)
    return kl.StreamPipeline([("scale", Standardise()), ("model", model)])


def interrupt_after(calls):
    left = [calls]

    def length(state, setup):
        left[0] -= 1
        if left[0] == 0:
            signal.raise_signal(signal.SIGINT)
        return setup.block_size

    events._call_length = length


def contents(model):
    held = model.to_contents()
    return held.header, {name: array.tobytes() for name, array in held.arrays.items()}


for learn in ("partial_fit", "predict_then_learn"):
    model, straight = (new().partial_fit(X[:500], y[:500]) for _ in range(2))
    before = contents(model)
    interrupt_after(3)
    try:
        getattr(model, learn)(X[500:2000], y[500:2000])
        raise SystemExit("not stopped")
    except KeyboardInterrupt as error:
        assert "as it was before" in str(error), error
    assert contents(model) == before, "not as it was"
    events._call_length = usual
    for each in (model, straight):
        getattr(each, learn)(X[500:2000], y[500:2000])
        each.learn_one(X[2000], y[2000])
    assert contents(model) == contents(straight), "goes on otherwise"
    fresh = new()
    interrupt_after(3)
    try:
        getattr(fresh, learn)(X, y)
        raise SystemExit("not stopped")
    except KeyboardInterrupt:
        assert not hasattr(fresh, "steps_")
    events._call_length = usual

labels = np.where(y > 100.0, "high", "low")
labels[1200:] = "late"  # a new class, so that the rows are learned in two parts
for rows in (100, 1000):  # in one block: Ctrl-C waits until all rows have been learned
    first, last = 1250 - rows, 1250
    model, straight = (
        kl.StreamPipeline([("scale", Standardise()), ("model", kl.SPAClassifier(gamma=0.5, random_state=0))]) for _ in range(2)
    )
    for each in (model, straight):
        each.partial_fit(X[:first], labels[:first])
    interrupt_after(1)
    try:
        model.partial_fit(X[first:last], labels[first:last])
        raise SystemExit("not stopped")
    except KeyboardInterrupt as error:
        expected = "have been learned" if rows == 100 else "as it was before"
        assert expected in str(error), error
    events._call_length = usual
    if rows == 100:
        straight.partial_fit(X[first:last], labels[first:last])
    assert contents(model) == contents(straight), rows
    assert list(model.classes_) == (["high", "late", "low"] if rows == 100 else ["high", "low"])
print("all or nothing")
"""


def test_ctrl_c_in_a_chunk_leaves_scales_and_model_of_a_pipeline_at_the_same_event(run_python):
    assert run_python(PIPELINE).strip() == "all or nothing"


TARGETS = """
import signal
import numpy as np
import kernling as kl
from kernling.driver import events

rng = np.random.default_rng(0)
X = rng.normal(50.0, 3.0, size=(3000, 3))
y = X[:, 0] + X[:, 1]
labels = (y > 100.0).astype(int)
usual = events._call_length


def contents(model):
    held = model.to_contents()
    return held.header, {name: array.tobytes() for name, array in held.arrays.items()}


def interrupted(model, learn, X, y, calls):
    left = [calls]

    def length(state, setup):
        left[0] -= 1
        if left[0] == 0:
            signal.raise_signal(signal.SIGINT)
        return setup.block_size

    events._call_length = length
    try:
        getattr(model, learn)(X, y)
        raise SystemExit("not stopped")
    except events.Interrupted as stop:
        rows = len(y) if stop.rows is None else stop.rows
    events._call_length = usual
    return rows


new = {
    "spa": lambda: kl.SPARegressor(gamma=0.5, random_state=0),
    "polk": lambda: kl.POLKRegressor(gamma=0.5, batch_size=100, random_state=0),
    "counts": lambda: kl.SPAClassifier(gamma=0.5, class_weight="balanced", random_state=0),
}
for name, make in new.items():
    targets = labels if name == "counts" else y
    for learn in ("partial_fit", "predict_then_learn"):
        for calls in (1, 3, 12):
            model, straight = (make().partial_fit(X[:500], targets[:500]) for _ in range(2))
            rows = interrupted(model, learn, X[500:2000], targets[500:2000], calls)
            assert 0 < rows <= 1500, rows
            straight.partial_fit(X[500 : 500 + rows], targets[500 : 500 + rows])
            assert contents(model) == contents(straight), (name, learn, calls)
            for each in (model, straight):
                each.partial_fit(X[500 + rows :], targets[500 + rows :])
            assert contents(model) == contents(straight), (name, learn, calls)
print("only what was learned")
"""


@pytest.mark.long
def test_statistics_of_targets_are_those_of_the_rows_learned(run_python):
    assert run_python(TARGETS).strip() == "only what was learned"


SHORT = """
import ctypes, itertools, signal
import numpy as np
import kernling as kl
from kernling.driver import events, loops

rng = np.random.default_rng(0)
X = rng.normal(50.0, 3.0, size=(500, 3))
y = X[:, 0] + X[:, 1]
usual, usual_few = loops.Run.__call__, loops.Run.of_few


def contents(model):
    held = model.to_contents()
    return held.header, {name: array.tobytes() for name, array in held.arrays.items()}


def learned_then_stopped(learn, calls):
    # as if it had arrived in compiled code: Python only notices after the whole step
    return itertools.chain(itertools.starmap(learn, calls), itertools.starmap(ctypes.pythonapi.PyErr_SetInterrupt, [()]))


def stopped_in(change, begun):
    def interrupted(learn):
        def learn_and_stop(*arguments):
            found = learn(*arguments)
            signal.raise_signal(signal.SIGINT)  # as if it had arrived while the events were learned
            return change(found)

        return learn_and_stop

    def of_few(self, *arguments, **more):
        learn, call = usual_few(self, *arguments, **more)
        return (lambda *given: change(learn(*given))), call

    model, straight = (kl.SPARegressor(gamma=0.5, random_state=0).partial_fit(X[:100], y[:100]) for _ in range(2))
    if begun:  # buffers have been prepared: nothing is deferred
        for each in (model, straight):
            each.partial_fit(X[:50], y[:50])
    if rows > model.block_size:
        loops.Run.__call__ = interrupted(usual)
    else:
        events.starmap = learned_then_stopped
        if begun:
            learn = model._few._learn
            model._few._learn = lambda *given: change(learn(*given))
        else:
            loops.Run.of_few = of_few
    try:
        model.partial_fit(X[100 : 100 + rows], y[100 : 100 + rows])
        raise SystemExit("not stopped")
    except KeyboardInterrupt:
        pass
    finally:
        loops.Run.__call__, loops.Run.of_few, events.starmap = usual, usual_few, itertools.starmap
    if begun and rows <= model.block_size:
        model._few._learn = learn
    return model, straight


for rows in (1, 20, 300):
    for begun in (False, True):
        model, straight = stopped_in(lambda found: found, begun)
        straight.partial_fit(X[100 : 100 + rows], y[100 : 100 + rows])
        assert contents(model) == contents(straight), f"{rows} rows: between two events"
        for each in (model, straight):
            each.partial_fit(X[450:], y[450:])
        assert contents(model) == contents(straight), f"{rows} rows: goes on otherwise"
for rows in (20, 300):
    for begun in (False, True):
        model, straight = stopped_in(lambda found: -1, begun)  # diverged
        assert contents(model) == contents(straight), f"{rows} rows: a call that fails changes nothing"
print("stopped")
"""


def test_a_signal_in_a_short_call_or_in_one_that_fails(run_python):
    assert run_python(SHORT).strip() == "stopped"


ANYWHERE = """
import random, signal
import numpy as np
import kernling as kl
from kernling.tables import Standardise

X = np.random.default_rng(0).normal(size=(20, 3))
y = X[:, 0] + X[:, 1]
model = kl.StreamPipeline([("scale", Standardise()), ("model", kl.SPARegressor(gamma=0.5))]).partial_fit(X, y)
signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(signal.SIGINT))
random.seed(0)
for attempt in range(1500):
    try:
        signal.setitimer(signal.ITIMER_REAL, random.uniform(0.001, 0.003))
        while True:
            model.partial_fit(X, y)
    except KeyboardInterrupt:
        assert model.steps_[0][1].count_ == model.t_ == model.model_._target_scale.rows, attempt
print("together")
"""


@pytest.mark.skipif(os.name == "nt", reason="Windows has no timer that sends a signal")
def test_wherever_a_signal_meets_a_pipeline_scale_and_model_have_learned_the_same_rows(run_python):
    assert run_python(ANYWHERE).strip() == "together"
