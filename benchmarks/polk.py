"""POLK: the time of learning a mini-batch relative to scoring the same rows with the same model.

    python -m benchmarks.polk

Prints ratios of times taken in the same run; see README.md in this folder.
"""

from benchmarks.timing import best  # first: it sets the number of threads  # isort: skip

import numpy as np

import kernling as kl

POINTS, BATCH, CLASSES, D = 1000, 32, 10, 784
ROUNDS = 40
GOAL = 6.0


def main() -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(POINTS + (ROUNDS + 1) * BATCH, D))  # rows never repeat: a stored row is cheaper than a new one
    y = rng.integers(CLASSES, size=len(X))
    print("| dtype | points | learn, ms | score, ms | learn/score | goal |")
    print("|---|---|---|---|---|---|")
    for dtype in ("float64", "float32"):
        rows = X.astype(dtype)
        model = kl.POLKClassifier(eta=24.0, parsimony=0.0, gamma=1.0 / 32.0, batch_size=BATCH, max_points=None, dtype=dtype)
        model.fit(rows[:POINTS], y[:POINTS])
        sizes = [model.n_stored_]
        # from here on as many points are removed as added: all rows have a loss, and each step is about eta / batch * sqrt(2)
        model._params = model._params._replace(parsimony=(2.0 / BATCH) ** 0.5 / 24.0**0.5)
        batches = iter(range(POINTS, len(X), BATCH))

        def learn(model=model, rows=rows, batches=batches, sizes=sizes) -> None:
            first = next(batches)
            model.partial_fit(rows[first : first + BATCH], y[first : first + BATCH])
            sizes.append(model.n_stored_)

        seconds = best({"learn": learn, "score": lambda m=model, r=rows: m.decision_function(r[-BATCH:])}, ROUNDS)
        taken, scored = 1e3 * seconds["learn"], 1e3 * seconds["score"]
        print(
            f"| {dtype} | {min(sizes)} to {max(sizes)} | {taken:.2f} | {scored:.2f} | {taken / scored:.2f} | {GOAL:g} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
