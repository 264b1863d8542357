"""Long streams: memory stays flat, speed stays the same, and running quantities stay what they stand for."""

import copy
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

    def chunks():
        """A million events in another order."""
        return rng.permutation(PART).reshape(-1, CHUNK)

    def learn(each, part) -> float:
        rows, targets = X[part], y[part]
        return seconds(lambda: checks.learn(each, rows, targets))

    for part in chunks():
        learn(model, part)
    early, memory = copy.deepcopy(model), []  # after the first million
    for _ in range(EVENTS // PART - 2):
        for part in chunks():
            learn(model, part)
        memory.append((model.nbytes_, resident()))
    # The early model learns its second million in turn with the last one, so that a busy machine slows down both.
    times = np.array([(learn(early, part), learn(model, part)) for part in chunks()])
    worst = drift(model)
    slower = times[:, 1].min() / times[:, 0].min()
    held, process = (last / second for last, second in zip((model.nbytes_, resident()), memory[0], strict=True))
    text = ", ".join(f"{key} {value:.0e}" for key, value in worst.items())
    print(f"\n| {cls.__name__} | {1e6 * times.min() / CHUNK:.2f} | {slower:.2f} | {held:.3f} | {process:.3f} | {text} |")
    assert held <= 1.05
    assert process <= 1.05
    assert slower <= 1.15  # the best of ten chunks each: what is left of the machine's noise
    assert max(worst.values(), default=0.0) < 1e-6, worst
