"""AVM: the time of one pass of learning relative to predicting the same stream with the final model.

    python -m benchmarks.avm [streams, such as AC]

Prints ratios of times taken in the same run; see README.md in this folder.
"""

from benchmarks.timing import best, in_fresh_process  # first: it sets the number of threads  # isort: skip

import sys
from typing import NamedTuple

import numpy as np

import kernling as kl
from benchmarks.streams import stream

ROUNDS = 5
CHUNK = 2048  # rows per chunk at which NumPy is fastest
SINGLES = 2000


class Case(NamedTuple):
    gamma: float
    square_radius: float
    lam: float
    numpy_goal: float  # of learning / NumPy's prediction

    def model(self, **others) -> kl.AVMClassifier:
        delta = 2.0 * self.square_radius**0.5
        return kl.AVMClassifier(lam=self.lam, gamma=self.gamma, delta=delta, zero_cells=False, **others)


CASES = {
    "A": Case(0.4574, 2.186, 1.5e-6, 0.35),
    "B": Case(0.07528, 13.28, 3e-6, 0.5),
    "C": Case(0.02993, 33.41, 6e-6, 0.7),
    "D": Case(0.002968, 336.9, 1.5e-5, 0.9),
}
PREDICTION_GOALS = {"float64": 1.3, "float32": 1.4}
FIRST_FIT = """
import time, numpy as np, kernling as kl
X = np.random.default_rng(0).standard_normal((1000, 8))
model = kl.AVMClassifier()
begun = time.perf_counter()
model.fit(X, X[:, 0] > 0.0)
print(time.perf_counter() - begun)
"""


def numpy_scores(X: np.ndarray, points: np.ndarray, coefficients: np.ndarray, gamma: float) -> np.ndarray:
    """Compute decision_function in plain NumPy."""
    centre = points.mean(axis=0)
    points = points - centre
    squares = (points**2).sum(axis=1)
    scores = np.empty(len(X), X.dtype)
    for first in range(0, len(X), CHUNK):
        rows = X[first : first + CHUNK] - centre
        values = rows @ (-2.0 * points.T)
        values += squares
        values += (rows**2).sum(axis=1)[:, np.newaxis]
        np.maximum(values, 0.0, out=values)
        values *= -gamma
        np.exp(values, out=values)
        scores[first : first + CHUNK] = values @ coefficients
    return scores


def one_pass(name: str, dtype: str, output: str) -> None:
    """Print a line of the table of ratios."""
    case = CASES[name]
    X, y = stream(name)
    X = X.astype(dtype)
    model = case.model(dtype=dtype, output=output).fit(X, y)
    points, coefficients = model.support_vectors_, model.dual_coef_.astype(dtype)
    error = np.abs(numpy_scores(X, points, coefficients, case.gamma) - model.decision_function(X)).max()
    assert error < 1e-3 * np.abs(coefficients).max(), f"NumPy's prediction differs by {error}"
    seconds = best(
        {
            "learn": lambda: case.model(dtype=dtype, output=output).fit(X, y),
            "predict": lambda: model.decision_function(X),
            "numpy": lambda: numpy_scores(X, points, coefficients, case.gamma),
        },
        ROUNDS,
    )
    learn, predict, plain = (1e6 * seconds[what] / len(y) for what in ("learn", "predict", "numpy"))
    print(
        f"| {name} | {X.shape[1]} | {len(points)} | {dtype} | {output} | {learn:.3f} | {predict:.3f} | {plain:.3f} "
        f"| {learn / predict:.2f} | {PREDICTION_GOALS[dtype]} | {learn / plain:.2f} | {case.numpy_goal} |",
        flush=True,
    )


def single_events(name: str) -> None:
    """Print a line of the table of single events; the overhead is that of a model of one point."""
    X, y = stream(name)
    model = CASES[name].model().fit(X, y)
    bare = CASES[name].model(max_cells=1).fit(X, y)
    events = list(zip(X[:SINGLES], y[:SINGLES].tolist(), strict=True))

    def learn(learner) -> None:
        for x, label in events:
            learner.learn_one(x, label)

    seconds = best({"whole": lambda: learn(model), "bare": lambda: learn(bare)}, ROUNDS)
    whole, besides = (1e6 * seconds[what] / len(events) for what in ("whole", "bare"))
    print(f"| {name} | {X.shape[1]} | {model.n_stored_} | {whole:.1f} | {besides:.1f} | {whole - besides:.1f} |", flush=True)


def main(names: str) -> None:
    print("One pass, in microseconds per event and as ratios.\n")
    print("| stream | d | points | dtype | output | learn | predict | NumPy | learn/predict | goal | learn/NumPy | goal |")
    print("|---|---|---|---|---|---|---|---|---|---|---|---|")
    for dtype in PREDICTION_GOALS:
        for name in names:
            for output in ("last", "auto"):
                one_pass(name, dtype, output)
    print("\nSingle events, learn_one, in microseconds per call (goal: an overhead of at most 10).\n")
    print("| stream | d | points | whole call | overhead | kernel row |")
    print("|---|---|---|---|---|---|")
    for name in names:
        single_events(name)
    print(f"\nFirst fit in a fresh process with a warm cache (goal: at most 1 s): {in_fresh_process(FIRST_FIT, 3):.2f} s.")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "".join(CASES))
