"""SPA: the time of one pass of learning relative to predicting the same stream, and the cost of the average.

    python -m benchmarks.spa [streams, such as AC]

Prints ratios of times taken in the same run; see README.md in this folder.
"""

from benchmarks.timing import best  # first: it sets the number of threads  # isort: skip

import sys

import kernling as kl
from benchmarks.streams import stream

ROUNDS = 5
BETAS = {"A": 300.0, "C": 150.0}  # larger ones store fewer points
PREDICTION_GOAL = 1.5
AVERAGE_GOAL = 1.10


def one_pass(name: str, dtype: str) -> None:
    """Print a line of the table."""
    X, y = stream(name)
    X = X.astype(dtype)
    gamma = 1.0 / (X.shape[1] * X.var())

    def learned(output: str) -> kl.SPAClassifier:
        model = kl.SPAClassifier(beta=BETAS[name], gamma=gamma, output=output, dtype=dtype, random_state=0)
        return model.fit(X, y)

    model = learned("average")
    seconds = best(
        {
            "average": lambda: learned("average"),
            "last": lambda: learned("last"),
            "predict": lambda: model.decision_function(X),
        },
        ROUNDS,
    )
    average, last, predict = (1e6 * seconds[what] / len(y) for what in ("average", "last", "predict"))
    print(
        f"| {name} | {X.shape[1]} | {model.n_stored_} | {dtype} | {average:.3f} | {last:.3f} | {predict:.3f} "
        f"| {average / predict:.2f} | {PREDICTION_GOAL} | {average / last:.2f} | {AVERAGE_GOAL:.2f} |",
        flush=True,
    )


def main(names: str) -> None:
    print("One pass, in microseconds per event and as ratios.\n")
    print("| stream | d | points | dtype | average | last | predict | average/predict | goal | average/last | goal |")
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    for dtype in ("float64", "float32"):
        for name in names:
            one_pass(name, dtype)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "".join(BETAS))
