"""DualSVRG and FOGD: the time of one pass of learning relative to predicting the same stream with the final model.

    python -m benchmarks.dualsvrg [streams, such as AB]

Prints ratios of times taken in the same run; see README.md in this folder.
"""

from benchmarks.timing import best  # first: it sets the number of threads  # isort: skip

import sys
from typing import NamedTuple

import kernling as kl
from benchmarks.streams import stream
from kernling.baselines import FOGDClassifier

ROUNDS = 5
MEMORIES = (10, 1000)
FLAT = 1.2  # goal of the ratio of times with the larger and the smaller memory
FOGD_GOAL = 1.5


class Case(NamedTuple):
    gamma: float
    goal: float  # of learning / predicting


CASES = {"A": Case(0.4574, 2.5), "B": Case(0.07528, 1.8), "D": Case(0.002968, 1.2)}


def model(name: str, **others) -> kl.DualSVRGClassifier:
    """Return a model with 200 features, and m = n = 100 by default."""
    return kl.DualSVRGClassifier(gamma=CASES[name].gamma, eta=0.5, random_state=0, **{"oracle": "always", **others})


def one_pass(name: str, dtype: str) -> None:
    """Print two lines of the table of ratios."""
    X, y = stream(name)
    X = X.astype(dtype)
    makers = {
        "DualSVRG": (lambda: model(name, dtype=dtype), CASES[name].goal),
        "FOGD": (lambda: FOGDClassifier(gamma=CASES[name].gamma, random_state=0, dtype=dtype), FOGD_GOAL),
    }
    for method, (make, goal) in makers.items():
        fitted = make().fit(X, y)
        seconds = best(
            {"learn": lambda make=make: make().fit(X, y), "predict": lambda fitted=fitted: fitted.decision_function(X)}, ROUNDS
        )
        learn, predict = (1e6 * seconds[what] / len(y) for what in ("learn", "predict"))
        print(
            f"| {method} | {name} | {X.shape[1]} | {dtype} | {learn:.3f} | {predict:.3f} | {learn / predict:.2f} | {goal} |",
            flush=True,
        )


def memories(name: str, oracle: str, period: int) -> None:
    """Print a line of the table of memories."""
    X, y = stream(name)
    contestants = {m: (lambda m=m: model(name, memory=m, period=period, oracle=oracle).fit(X, y)) for m in MEMORIES}
    seconds = best(contestants, ROUNDS)
    small, large = (1e6 * seconds[m] / len(y) for m in MEMORIES)
    print(f"| {name} | {X.shape[1]} | {oracle} | {period} | {small:.3f} | {large:.3f} | {large / small:.2f} |", flush=True)


def main(names: str) -> None:
    print("One pass, in microseconds per event and as ratios.\n")
    print("| method | stream | d | dtype | learn | predict | learn/predict | goal |")
    print("|---|---|---|---|---|---|---|---|")
    for dtype in ("float64", "float32"):
        for name in names:
            one_pass(name, dtype)
    print(f"\nOne pass of DualSVRG by the size of its memory (goal: a ratio of at most {FLAT} without points).\n")
    print(f"| stream | d | oracle | period | memory {MEMORIES[0]} | memory {MEMORIES[1]} | ratio |")
    print("|---|---|---|---|---|---|---|")
    for name in names:
        for oracle, period in (("always", 10_000), ("always", 1000), ("budget", 1000), ("always", 100)):
            memories(name, oracle, period)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "".join(CASES))
