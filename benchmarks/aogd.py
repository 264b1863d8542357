"""AOGD: the time of one pass of learning relative to predicting the same stream with the final model.

    python -m benchmarks.aogd

Prints ratios of times taken in the same run; see README.md in this folder.
"""

from benchmarks.timing import best  # first: it sets the number of threads  # isort: skip

import numpy as np

import kernling as kl

ROUNDS = 7
EVENTS, COLUMNS, COMPONENTS = 20_000, 22, 1000
GOAL = 1.6


def one_pass(dtype: str, output: str) -> None:
    """Print a line of the table of ratios."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((EVENTS, COLUMNS)).astype(dtype)
    y = X[:, 0] * X[:, 1] + 0.3 * rng.standard_normal(EVENTS) > 1.0

    def model() -> kl.AOGDClassifier:
        return kl.AOGDClassifier(gamma=0.05, n_components=COMPONENTS, output=output, dtype=dtype, random_state=0)

    fitted = model().fit(X, y)
    seconds = best({"learn": lambda: model().fit(X, y), "predict": lambda: fitted.decision_function(X)}, ROUNDS)
    learn, predict = (1e6 * seconds[what] / EVENTS for what in ("learn", "predict"))
    print(f"| {COLUMNS} | {COMPONENTS} | {dtype} | {output} | {learn:.2f} | {predict:.2f} | {learn / predict:.2f} | {GOAL} |")


def main() -> None:
    print("One pass, in microseconds per event and as a ratio.\n")
    print("| d | features | dtype | output | learn | predict | learn/predict | goal |")
    print("|---|---|---|---|---|---|---|---|")
    for dtype in ("float64", "float32"):
        for output in ("average", "last"):
            one_pass(dtype, output)


if __name__ == "__main__":
    main()
