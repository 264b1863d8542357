"""Comparable times: one thread, contestants in turn, the best of several rounds, in processor time.

Import this module before NumPy: it limits its matrix products to one thread.
"""

import os
import subprocess
import sys
import time
from collections.abc import Callable

assert "numpy" not in sys.modules, "import benchmarks.timing before numpy, or its matrix products may use several threads"
for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"


def best(contestants: dict[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Return the seconds of each contestant in its best round; they take turns, so that a slow machine affects all."""
    for contestant in contestants.values():
        contestant()  # compiles, and fills the caches
    seconds = dict.fromkeys(contestants, float("inf"))
    for _ in range(rounds):
        for name, contestant in contestants.items():
            begun = time.thread_time()  # of this thread only, without other processes
            contestant()
            seconds[name] = min(seconds[name], time.thread_time() - begun)
    return seconds


def in_fresh_process(program: str, rounds: int) -> float:
    """Return the smallest number that a program prints in several new interpreters, after a warm-up."""
    command = [sys.executable, "-c", program]
    numbers = [float(subprocess.run(command, capture_output=True, text=True, check=True).stdout) for _ in range(rounds + 1)]
    return min(numbers[1:])
