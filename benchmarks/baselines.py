"""Baselines on a budget: the time of one pass of learning relative to predicting the same stream with a full model.

    python -m benchmarks.baselines [methods, such as RBP BSGD-merging]

Prints ratios of times taken in the same run, with the fraction of events that changed the model; see README.md in this folder.
"""

from benchmarks.timing import best  # first: it sets the number of threads  # isort: skip

import sys
from typing import NamedTuple

import numpy as np

from benchmarks.streams import stream
from kernling import baselines

ROUNDS = 15
BUDGET = 400
GAMMA = 0.4574
EVENTS = 50_000


class Contest(NamedTuple):
    estimator: str
    params: dict
    goal: float | None  # of learning / predicting


CONTESTS = {
    "RBP": Contest("RBP", {}, 2.0),
    "Forgetron": Contest("Forgetron", {}, 2.0),
    "BudgetPerceptron": Contest("BudgetPerceptron", {}, None),
    "BOGD": Contest("BOGD", {"eta": 0.3, "lam": 1e-3}, 2.0),
    "BOGD-weighted": Contest("BOGD", {"eta": 0.3, "lam": 1e-3, "removal": "weighted"}, None),
    "BSGD-removal": Contest("BSGD", {"lam": 1.5e-6, "maintenance": "removal"}, 2.0),
    "BPAS": Contest("BPAS", {"C": 0.2}, 3.0),
    "BPANN": Contest("BPANN", {"C": 0.2}, None),
    "Projectron": Contest("Projectron", {"threshold": 0.1}, 25.0),
    "ProjectronPlusPlus": Contest("ProjectronPlusPlus", {"threshold": 0.1}, None),
    "BSGD-merging": Contest("BSGD", {"lam": 1.5e-6, "maintenance": "merging"}, 8.0),
    "BSGD-projection": Contest("BSGD", {"lam": 1.5e-6, "maintenance": "projection"}, None),
    "NPBSGD": Contest("NPBSGD", {"lam": 1.5e-6, "beta": 1000.0}, None),
}


def share_of_updates(scores: np.ndarray, y: np.ndarray, name: str) -> float:
    """Return the fraction of events with a mistake, for perceptrons, or with a margin below 1."""
    margins = y * scores
    mistakes_only = name in ("RBP", "Forgetron", "BudgetPerceptron", "Projectron")
    return float(np.mean(margins <= 0.0 if mistakes_only else margins < 1.0))


def line(name: str) -> None:
    """Print a line of the table."""
    contest = CONTESTS[name]
    X, y = stream("A")
    X, y = X[:EVENTS], y[:EVENTS]
    model = getattr(baselines, f"{contest.estimator}Classifier")(
        gamma=GAMMA, budget=BUDGET, random_state=0, **contest.params
    ).fit(X, y)
    points = model.n_stored_
    share = share_of_updates(model.predict_then_learn(X, y, method="decision_function"), y, name)
    seconds = best(
        {"learn": lambda: model.partial_fit(X, y), "predict": lambda: model.decision_function(X)},
        2 if name == "BSGD-projection" else ROUNDS,
    )
    learn, predict = (1e6 * seconds[what] / len(y) for what in ("learn", "predict"))
    print(
        f"| {name} | {points} | {100 * share:.1f} % | {learn:.2f} | {predict:.2f} | {learn / predict:.2f} "
        f"| {contest.goal or '-'} |",
        flush=True,
    )


def main(names: list[str]) -> None:
    print(f"One pass over {EVENTS:,} events of 8 columns with a full model, in microseconds per event and as a ratio.\n")
    print("| method | points | events that updated | learn | predict | learn/predict | goal |")
    print("|---|---|---|---|---|---|---|")
    for name in names:
        line(name)


if __name__ == "__main__":
    main(sys.argv[1:] or list(CONTESTS))
