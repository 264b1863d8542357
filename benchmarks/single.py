"""Single events and small batches, in microseconds of processor time, next to River's linear model.

    python -m benchmarks.single [names of methods, such as avm spa]

See README.md in this folder.  It needs the extra ``river``.
"""

from benchmarks.timing import best  # first: it sets the number of threads  # isort: skip

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from river import linear_model, preprocessing

import kernling as kl
from kernling import registry

ROWS, COLUMNS, FEW, ROUNDS = 3_000, 10, 32, 5
METHODS = ("avm", "polk", "spa", "dualsvrg", "aogd")


def per_event(contestants: dict[str, Callable[[], Any]]) -> dict[str, float]:
    """Return the best time of each contestant, in microseconds per event."""
    return {name: 1e6 * seconds / ROWS for name, seconds in best(contestants, ROUNDS).items()}


def main() -> None:
    """Print a table of the methods on the command line, or of the five."""
    X = np.random.default_rng(0).normal(size=(ROWS, COLUMNS))
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    labels = y.tolist()
    rows = [{f"x{c}": value for c, value in enumerate(row)} for row in X.tolist()]

    def each(method: Callable, events: Any, *targets: list) -> Callable[[], None]:
        def loop() -> None:
            for event in zip(events, *targets, strict=True):
                method(*event)

        return loop

    linear = preprocessing.StandardScaler() | linear_model.LogisticRegression()
    bare = linear_model.LogisticRegression()
    river = {
        "learn": each(bare.learn_one, rows, labels),
        "predict": each(bare.predict_one, rows),
        "learn, scaled": each(linear.learn_one, rows, labels),
        "predict, scaled": each(linear.predict_one, rows),
    }
    told = ", ".join(f"{name} {time:.1f}" for name, time in per_event(river).items())
    print(f"River's logistic regression, dictionaries: {told}\n")
    print("| | arrays: learn | predict | dictionaries: learn | predict | 32 rows | the rows in one call |")
    print("|---|---|---|---|---|---|---|")
    for name in sys.argv[1:] or METHODS:
        model = registry.estimator_for(name, "classification")(random_state=0).fit(X, y)
        pipeline = kl.StreamPipeline.auto(registry.estimator_for(name, "classification")(random_state=0)).partial_fit(
            rows, labels
        )

        def chunks(size: int, model: Any = model) -> None:
            for first in range(0, ROWS, size):
                model.partial_fit(X[first : first + size], y[first : first + size])

        times = per_event(
            {
                "learn": each(model.learn_one, X, labels),
                "predict": each(model.predict_one, X),
                "learn dictionaries": each(pipeline.learn_one, rows, labels),
                "predict dictionaries": each(pipeline.predict_one, rows),
                "small": lambda: chunks(FEW),
                "whole": lambda: chunks(ROWS),
            }
        )
        events, small, whole = list(times.values())[:4], FEW * times["small"], FEW * times["whole"]
        print(f"| {name} | {' | '.join(f'{time:.1f}' for time in events)} | {small:.0f} | {whole:.0f} |", flush=True)


if __name__ == "__main__":
    main()
