"""How far merging carries: mistakes and points against the number of parts and rounds, the parts trained one after the other.

    python -m benchmarks.scaling [--methods avm,polk] [--data a9a,ijcnn1] [--rows 20000] [--output benchmarks/scaling.md]

Writes a Markdown table.  The steps are those of kernling.scale, without a cluster.
"""

from benchmarks.timing import best  # noqa: F401  # first: it sets the number of threads  # isort: skip

import argparse
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from kernling import registry
from kernling.scale import training
from kernling.scale.partitions import Partition, Reading
from kernling.streams import Columns, dataset, synthetic

PARTS = "1,2,4,8,16,64"
ROUNDS = 3
TEST = 50_000  # rows of data sets that have no test part
SETTINGS: dict[str, dict[str, dict[str, Any]]] = {
    "a9a": {"": {"gamma": 0.0921}, "avm": {"delta": 7.0, "lam": 0.000408}},
    "ijcnn1": {"": {"gamma": 2.0}, "avm": {"delta": 0.8, "lam": 1e-5}},
    "covtype": {"": {"gamma": 8.0}, "avm": {"delta": 1.0, "lam": 1e-5}},
    "gaussian": {"": {"gamma": 1.0}, "avm": {"delta": 0.5, "lam": 1e-3}},
}
READING = Reading({}, Columns().to_state())


def load(name: str, rows: int | None):
    """Training rows in random order and test rows; covtype's labels are the second class against the rest."""
    if name == "gaussian":
        X, y = synthetic(name, (rows or 100_000) + TEST).load()
    else:
        X, y = dataset(name).stream("train").load()
    if name == "covtype":
        y = (y == 2).astype(int)
    order = np.random.default_rng(0).permutation(X.shape[0])
    if name in ("a9a", "ijcnn1"):
        test = dataset(name).stream("test").load()
    else:
        test = X[order[:TEST]], y[order[:TEST]]
        order = order[TEST:]
    return X[order[:rows]], y[order[:rows]], *test


def trained(model: Any, X: Any, y: Any, parts: int, first: int):
    """The merged model after each round."""
    cuts = [X.shape[0] * i // parts for i in range(parts + 1)]
    pieces = [(X[first:last], y[first:last]) for first, last in pairwise(cuts)]
    named = [Partition(f"part {i}") for i in range(parts)]
    current = training.begin(model, named[0], pieces[0], READING, min(first, cuts[1]), np.unique(y)).model
    for number in range(ROUNDS):
        start = training.started(current, parts if number else 0)
        level = [
            training.train(start, (0, (number, i)), [named[i]], [pieces[i]], READING, current.t_ if number == i == 0 else 0)
            for i in range(parts)
        ]
        while len(level) > 1:
            pairs = [level[i : i + 2] for i in range(0, len(level), 2)]
            level = [pair[0] if len(pair) == 1 else training.join(*pair, start) for pair in pairs]
        current = training.settle(level[0], current).model
        yield current


def lines(methods: list[str], data: list[str], counts: list[int], rows: int | None, first: int):
    for name in data:
        X, y, X_test, y_test = load(name, rows)
        for method in methods:
            classes: list[Any] = [cls for cls in registry.find(method).classes() if cls.task == "classification"]
            for parts in counts if classes else ():
                params = {"random_state": 0, **SETTINGS[name][""], **SETTINGS[name].get(method, {})}
                cells = [f"{method} | {name} | {X.shape[0]:,} | {parts}"]
                for model in trained(classes[0](**params), X, y, parts, first):
                    mistakes = 100.0 * np.mean(model.predict(X_test) != y_test)
                    cells += [f"{mistakes:.2f}", f"{model.n_stored_ or model._state.model.coef.shape[-1]:,}"]
                yield f"| {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--methods", default="avm,polk,spa,dualsvrg,aogd")
    parser.add_argument("--data", default=",".join(SETTINGS))
    parser.add_argument("--parts", default=PARTS)
    parser.add_argument("--first", type=int, default=1000, help="rows learned before the parts go different ways")
    parser.add_argument("--rows", type=int, help="training rows of each data set at most")
    parser.add_argument("--output", type=Path)
    given = parser.parse_args()
    head = " | ".join(f"mistakes % after {r} | points" for r in range(1, ROUNDS + 1))
    table = [f"| method | data | rows | parts | {head} |", "|---" * (4 + 2 * ROUNDS) + "|"]
    print(*table, sep="\n", flush=True)
    counts = [int(count) for count in given.parts.split(",")]
    for line in lines(given.methods.split(","), given.data.split(","), counts, given.rows, given.first):
        print(line, flush=True)
        table.append(line)
        if given.output:
            given.output.write_text("\n".join(table) + "\n")


if __name__ == "__main__":
    main()
