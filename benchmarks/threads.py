"""Threads: two models that learn in parallel or one after the other, and predicting while another model learns.

    python -m benchmarks.threads

Prints ratios of wall-clock times taken in the same run; with two free cores the best possible ratio is 0.5.
"""

import benchmarks.timing  # noqa: F401  # first: it sets the number of threads  # isort: skip

import copy
import time
from concurrent.futures import ThreadPoolExecutor

import kernling as kl
from benchmarks.streams import stream

ROUNDS = 3


def wall(action) -> float:
    """Return the wall-clock seconds of the best round."""
    found = []
    for _ in range(ROUNDS):
        begun = time.perf_counter()
        action()
        found.append(time.perf_counter() - begun)
    return min(found)


def compare(name: str, model) -> None:
    """Print a line of the table."""
    X, y = stream("B")
    learned = copy.deepcopy(model).fit(X, y)

    def learn(_=None):
        copy.deepcopy(model).fit(X, y)

    def predict(_=None):
        learned.predict(X)

    with ThreadPoolExecutor(2) as pool:
        learn()
        one_by_one = wall(lambda: (learn(), learn()))
        at_once = wall(lambda: list(pool.map(learn, range(2))))
        in_turn = wall(lambda: (learn(), predict()))
        beside = wall(lambda: [job.result() for job in [pool.submit(learn), pool.submit(predict)]])
    print(f"| {name} | {one_by_one:.2f} | {at_once:.2f} | {at_once / one_by_one:.2f} | {beside / in_turn:.2f} |", flush=True)


def main() -> None:
    print("| method | sequential, s | in parallel, s | ratio | predicting while learning, ratio |")
    print("|---|---|---|---|---|")
    compare("AVM", kl.AVMClassifier(delta=8.0, random_state=0))
    compare("SPA", kl.SPAClassifier(beta=300.0, random_state=0))
    compare("DualSVRG", kl.DualSVRGClassifier(random_state=0))
    compare("AOGD", kl.AOGDClassifier(random_state=0))


if __name__ == "__main__":
    main()
