"""Long streams: memory stays flat, speed stays the same, and running quantities stay what they stand for."""

import time
from pathlib import Path

import numpy as np
import pytest

import checks
from drift import drift
from oracles import stream

EVENTS = 20_000_000
PART = 1_000_000
CHUNK = 100_000
PATIENCE = 30 * 60.0  # seconds that one estimator may take
BOUNDED = list({param.values[0]: param for param in reversed(checks.bounded_cases())}.values())[::-1]  # the first of each


def name(value) -> str:
    return getattr(value, "__name__", "")


@pytest.mark.parametrize(("cls", "case"), BOUNDED, ids=name)
def test_running_quantities(cls, case):
    """A short stream: what the long one is measured by."""
    X, y = stream(case.stream, 3000)
    worst = drift(checks.learn(checks.make(cls, case), X, y))
    assert max(worst.values(), default=0.0) < 1e-7, worst


def seconds(action) -> float:
    """Processor time of this thread, so that what else runs does not count."""
    begun = time.thread_time()
    action()
    return time.thread_time() - begun


def resident() -> int:
    """Bytes of memory that this process holds."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


@pytest.mark.long
@pytest.mark.contract("soak")
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory is read from /proc")
@pytest.mark.parametrize(("cls", "case"), BOUNDED, ids=name)
def test_soak(cls, case, record_property):
    X, y = stream(case.stream, PART)
    model = checks.learn(checks.make(cls, case), X[:CHUNK], y[:CHUNK], np.unique(y))
    cost = seconds(lambda: checks.learn(model, X[:CHUNK], y[:CHUNK])) / CHUNK
    if cost * EVENTS > PATIENCE:
        pytest.skip(f"{1e6 * cost:.1f} µs per event are too many for {EVENTS:,} events")
    rng = np.random.default_rng(0)
    times, memory = [], []
    for _ in range(EVENTS // PART):
        order = rng.permutation(PART)
        parts = [order[first : first + CHUNK] for first in range(0, PART, CHUNK)]
        times.append(min(seconds(lambda part=part: checks.learn(model, X[part], y[part])) for part in parts))
        memory.append((model.nbytes_, resident()))
    worst = drift(model)
    slower = times[-1] / times[1]
    held, process = (memory[-1][i] / memory[1][i] for i in range(2))
    text = ", ".join(f"{key} {value:.0e}" for key, value in worst.items())
    print(f"\n| {cls.__name__} | {1e6 * times[-1] / CHUNK:.2f} | {slower:.2f} | {held:.3f} | {process:.3f} | {text} |")
    assert held <= 1.05
    assert process <= 1.05
    assert slower <= 1.25  # the best of ten chunks each: what is left of the machine's noise
    assert max(worst.values(), default=0.0) < 1e-6, worst
