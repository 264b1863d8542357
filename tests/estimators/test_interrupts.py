"""Ctrl-C is never lost, however short the call that it meets, and leaves a model at the boundary of an event."""

LOOP = """
import os, random, signal, sys, threading, time
import numpy as np
import kernling as kl

rng = np.random.default_rng(0)
X = rng.normal(size=(int(sys.argv[1]), 3))
y = (X[:, 0] > 0).astype(int)
model = kl.AVMClassifier(gamma=0.5, delta=0.5).fit(X, y)
random.seed(0)
for attempt in range(10):
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


def test_a_signal_is_never_lost(run_python):
    for rows in ("20", "3000"):
        assert run_python(LOOP, rows).strip() == "never lost"
