"""AVM and SPA with their default parameters once they are full: learning where each new point takes an old one's place.

    python -m benchmarks.full

Rows are normal in all columns, so that most of them are far from all stored points.  See README.md in this folder.
"""

from benchmarks.timing import best  # first: it sets the number of threads  # isort: skip

from functools import partial

import numpy as np

import kernling as kl

FIRST, ROWS, ROUNDS = 20_000, 4_000, 5


def main() -> None:
    """Print a table of both methods."""
    print("| method | d | dtype | points | learn | predict | learn/predict |\n|---|---|---|---|---|---|---|")
    for cls in (kl.AVMClassifier, kl.SPAClassifier):
        for d in (8, 54):
            for dtype in ("float64", "float32"):
                X = np.random.default_rng(0).normal(size=(FIRST, d)).astype(dtype)
                y = np.sin(3.0 * X[:, 0]) * X[:, 1] > 0.0
                model = cls(random_state=0, dtype=dtype).fit(X, y)
                found = best(
                    {
                        "learn": partial(model.partial_fit, X[:ROWS], y[:ROWS]),
                        "predict": partial(model.decision_function, X[:ROWS]),
                    },
                    ROUNDS,
                )
                learn, predict = (1e6 * seconds / ROWS for seconds in found.values())
                print(f"| {cls.__name__} | {d} | {dtype} | {model.n_stored_} | {learn:.1f} | {predict:.1f} |", end="")
                print(f" {learn / predict:.2f} |", flush=True)


if __name__ == "__main__":
    main()
