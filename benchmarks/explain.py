"""Processor time of explanations, in milliseconds a row.

    python -m benchmarks.explain [--columns 10,54] [--points 512]

``one`` is a call with a single row, which also computes what absent columns are worth, and ``each more`` what a further row
adds.  Expansions with a Gaussian kernel have a formula.  Auto's memory is sampled, by 16 orders of the columns or, of few
columns, more: ``scored`` rows for each that is explained; its other neighbours by half as many.  Error and size are means over
contributions.
"""

import argparse
import time

import numpy as np

import kernling as kl
from kernling.estimators.explained import SAMPLES, SCORES

ROWS, ROUNDS = 5000, 7
MORE = 30  # rows of the longer call


def models(points: int) -> dict:
    """The contestants, and whether targets are labels."""
    return {
        "SPA, Gaussian kernel": (kl.SPAClassifier(max_points=points, random_state=0), True),
        "KRLS, Gaussian kernel": (kl.KRLSRegressor(points=points, kernel="rbf"), False),
        "KRLS, Matern kernel": (kl.KRLSRegressor(points=points, kernel="matern52"), False),
        "AutoClassifier": (kl.AutoClassifier(points=points), True),
        "AutoRegressor": (kl.AutoRegressor(points=points), False),
    }


def seconds(call) -> float:
    """The least processor time of some calls."""
    found = []
    for _ in range(ROUNDS):
        begin = time.process_time()
        call()
        found.append(time.process_time() - begin)
    return min(found)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--columns", default="10,54")
    options.add_argument("--points", type=int, default=512)
    given = options.parse_args()
    print("| columns | model | points | one | each more | scored | error | size |\n|---|---|---|---|---|---|---|---|")
    for d in map(int, given.columns.split(",")):
        X = np.random.default_rng(0).normal(size=(ROWS, d))
        values = X[:, 0] * X[:, 1] + X[:, 2] + 0.3 * X[:, 3:].mean(axis=1)
        for name, (model, is_class) in models(given.points).items():
            model.fit(X, values > 0.0 if is_class else values)
            found = model.explain(X[:MORE])
            one = seconds(lambda model=model, X=X: model.explain(X[:1]))
            more = (seconds(lambda model=model, X=X: model.explain(X[: 1 + MORE])) - one) / MORE
            scored = (d - 1) * max(SAMPLES, SCORES // d) if found.error.any() else 0
            sizes = f"{found.error.mean():.2g} | {np.abs(found.values).mean():.2g}"
            print(f"| {d} | {name} | {model.n_stored_} | {1e3 * one:.1f} | {1e3 * more:.2f} | {scored} | {sizes} |", flush=True)


if __name__ == "__main__":
    main()
