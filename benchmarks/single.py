"""Single events and small batches, in microseconds of processor time, next to River's linear model, tree and forest.

    python -m benchmarks.single [names of methods, such as avm spa]

See README.md in this folder.  It needs the extra ``river``.
"""

from benchmarks.timing import best  # first: it sets the number of threads  # isort: skip

import copy
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from river import forest, linear_model, preprocessing, tree

import kernling as kl
from kernling import registry

ROWS, COLUMNS, FEW, EVENTS, ROUNDS = 3_000, 10, 32, 200, 30
SMALLEST: dict[str, dict[str, int]] = {  # the methods, and parameters with which kernel values and features take no time
    "avm": {"max_cells": 1},
    "polk": {"max_points": 1},
    "spa": {"max_points": 1},
    "dualsvrg": {"max_points": 1, "n_components": 2},
    "aogd": {"n_components": 2},
    "krls": {"points": 1},
    "auto": {},
}


def microseconds(contestants: dict[str, Callable[[], Any]], events: float = EVENTS) -> dict[str, float]:
    """Return the best time of each contestant per event."""
    return {name: 1e6 * seconds / events for name, seconds in best(contestants, ROUNDS).items()}


def main() -> None:
    """Print a table of the methods on the command line, or of all."""
    X = np.random.default_rng(0).normal(size=(ROWS, COLUMNS))
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    rows = [{f"x{c}": value for c, value in enumerate(row)} for row in X.tolist()]
    arrays, dictionaries, labels = list(X[:EVENTS]), rows[:EVENTS], y[:EVENTS].tolist()

    def learn(model: Any, events: list) -> Callable[[], None]:
        def loop() -> None:
            for event, label in zip(events, labels, strict=True):
                model.learn_one(event, label)

        return loop

    def both(model: Any, events: list) -> Callable[[], None]:
        def loop() -> None:
            for event, label in zip(events, labels, strict=True):
                model.predict_one(event)
                model.learn_one(event, label)

        return loop

    def at_once(model: Any, events: list) -> Callable[[], None]:
        def loop() -> None:
            for event, label in zip(events, labels, strict=True):
                model.predict_then_learn_one(event, label)

        return loop

    def predict(model: Any, events: list) -> Callable[[], None]:
        def loop() -> None:
            for event in events:
                model.predict_one(event)

        return loop

    scaled = preprocessing.StandardScaler() | linear_model.LogisticRegression()
    bare = linear_model.LogisticRegression()
    tested = {
        "logistic": bare,
        "scaled": scaled,
        "tree": tree.HoeffdingTreeClassifier(),
        "forest": forest.ARFClassifier(seed=0),
    }
    river = microseconds(
        {f"{name}, {what.__name__}": what(model, dictionaries) for name, model in tested.items() for what in (learn, both)}
        | {"logistic, predict": predict(bare, dictionaries)}
    )
    found = ", ".join(f"{name} {time:.1f}" for name, time in river.items())
    print(f"River's logistic regression (also with its scaler), Hoeffding tree and forest, dictionaries: {found}\n")
    print("| | arrays: learn | predict | both | at once | over River's logistic, tree, forest ", end="")
    print("| besides: learn | predict | dictionaries, besides: learn | predict |", end="")
    print(f" 32 rows: learn | in one call | predict | in one call |\n|{14 * '---|'}")
    for name in sys.argv[1:] or SMALLEST:
        cls: Any = registry.estimator_for(name, "classification")
        model = cls(random_state=0).fit(X, y)
        smallest = cls(random_state=0, **SMALLEST[name]).fit(X, y)
        pipeline = kl.StreamPipeline.auto(cls(random_state=0, **SMALLEST[name])).partial_fit(rows, y)

        whole = copy.deepcopy(model)

        def learn_chunks(model: Any, size: int) -> None:
            for first in range(0, ROWS, size):
                model.partial_fit(X[first : first + size], y[first : first + size])

        def predict_chunks(model: Any, size: int) -> None:
            for first in range(0, ROWS, size):
                model.predict(X[first : first + size])

        times = microseconds(
            {
                "learn": learn(model, arrays),
                "predict": predict(model, arrays),
                "both": both(model, arrays),
                "at once": at_once(model, arrays),
                "learn besides": learn(smallest, arrays),
                "predict besides": predict(smallest, arrays),
                "learn dictionaries": learn(pipeline, dictionaries),
                "predict dictionaries": predict(pipeline, dictionaries),
            }
        )
        batches = microseconds(
            {
                "learn few": partial(learn_chunks, model, FEW),
                "learn": partial(learn_chunks, whole, ROWS),
                "predict few": partial(predict_chunks, model, FEW),
                "predict": partial(predict_chunks, whole, ROWS),
            },
            ROWS / FEW,
        )
        shown = [f"{time:.1f}" for time in times.values()]
        shown.insert(
            4, ", ".join(f"{times['at once'] / river[f'{peer}, both']:.2f}" for peer in ("logistic", "tree", "forest"))
        )
        print(f"| {name} | {' | '.join(shown)} ", end="")
        print(f"| {' | '.join(f'{time:.0f}' for time in batches.values())} |", flush=True)


if __name__ == "__main__":
    main()
