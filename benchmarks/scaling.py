"""Accuracy of merging: mistakes and points against the number of parts and rounds, with parts trained one after the other.

    python -m benchmarks.scaling [--methods avm,polk] [--data a9a,ijcnn1] [--parts 1,8] [--merges 4] [--rows 10000]

Results are stored in scaling.jsonl in this folder, a line per method, data set and number of parts; stored results
are not measured again, so an interrupted run can be resumed.  The page docs/scaling_table.md is rewritten from all lines,
without measuring anything with ``--methods ""``.  The steps are those of kernling.distributed, without a cluster.
"""

from benchmarks.timing import best  # noqa: F401  # first: it sets the number of threads  # isort: skip

import argparse
import itertools
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import roc_auc_score

from kernling import registry
from kernling.distributed import training
from kernling.distributed.partitions import Partition, Reading
from kernling.distributed.stages import stages_of
from kernling.io import synthetic
from kernling.papers import dataset

KEPT = Path(__file__).with_name("scaling.jsonl")
PAGE = Path(__file__).parents[1] / "docs" / "scaling_table.md"
PARTS = "1,2,4,8,16,64"
ROUNDS = 3
TEST = 50_000  # rows of data sets that have no test part
WHAT = ("method", "data", "rows", "parts", "merges", "first", "params")  # keys of a stored line that identify the measurement
SLOW = {("polk", "covtype"): 20_000}  # training rows, if all of them would take hours
# Candidates of the other methods, two to six each, were compared on 5,000 training rows after learning 10,000 others.
SETTINGS: dict[str, dict[str, dict[str, Any]]] = {
    "a9a": {
        "": {"gamma": 0.0921},
        "avm": {"delta": 7.0, "lam": 0.000408},
        "polk": {"eta": 10.0, "parsimony": 0.03},
        "spa": {"eta": 0.1, "beta": 5.0},
        "dualsvrg": {"eta": 0.5, "lam": 1e-4},
        "aogd": {"eta": 0.1},
    },
    "ijcnn1": {
        "": {"gamma": 2.0},
        "avm": {"delta": 0.8, "lam": 1e-5},
        "polk": {"eta": 10.0, "parsimony": 0.01},
        "spa": {"eta": 1.0, "beta": 5.0},
        "dualsvrg": {"eta": 2.0, "lam": 1e-6},
        "aogd": {"eta": 1.0, "gamma": 0.5},
    },
    "covtype": {
        "": {"gamma": 8.0},
        "avm": {"delta": 1.0, "lam": 1e-5},
        "polk": {"eta": 10.0, "parsimony": 0.03},
        "spa": {"eta": 1.0, "beta": 200.0},
        "dualsvrg": {"eta": 0.1, "lam": 1e-6},
        "aogd": {"eta": 1.0, "gamma": 0.5},
    },
    "gaussian": {
        "": {"gamma": 1.0},
        "avm": {"delta": 0.5, "lam": 1e-3},
        "polk": {"eta": 1.0, "parsimony": 0.03},
        "spa": {"eta": 0.1, "beta": 20.0},
        "dualsvrg": {"eta": 0.5, "lam": 1e-6},
        "aogd": {"eta": 0.25, "gamma": 0.5},
    },
}
READING = Reading({})
HEAD = """# Merging, measured

Mistakes on test rows in %, with the number of stored points in brackets, against the number of parts; a line per round.
One part is the sequential learner, which learns the rows again in each round. For methods that rank, mistakes are pairs of a
positive and a negative row in the wrong order; for models on random features, their number is given instead of points.
"Merges" is the number of merges within a round. See [the discussion](scaling.md); `python -m benchmarks.scaling` writes
this page.
"""


def load(name: str, rows: int | None):
    """Load training rows in random order and test rows; covtype's labels are the second class against the rest."""
    if name == "gaussian":
        X, y = synthetic(name, 100_000 + TEST).load()
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


def trained(model: Any, X: Any, y: Any, parts: int, merges: int, first: int) -> Iterator[Any]:
    """Yield the merged model after each round."""
    cuts = [X.shape[0] * i // (parts * merges) for i in range(parts * merges + 1)]
    pieces = [(X[low:high], y[low:high]) for low, high in itertools.pairwise(cuts)]
    named = [Partition(f"piece {i}") for i in range(len(pieces))]
    current = training.begin(model, named[0], pieces[0], READING, first, np.unique(y)).model
    begun = current.t_
    stages = stages_of(len(pieces), parts, 1)
    for number, stage in enumerate(ROUNDS * stages):
        start = training.started(current, len(stage) if number else 0)
        level = [
            training.train(
                start,
                (0, (number, part.number)),
                [named[i] for i in part.places],
                [pieces[i] for i in part.places],
                READING,
                begun if number == part.number == 0 else 0,
            )
            for part in stage
        ]
        while len(level) > 1:
            pairs = [level[i : i + 2] for i in range(0, len(level), 2)]
            level = [pair[0] if len(pair) == 1 else training.join(*pair, start) for pair in pairs]
        current = training.settle(level[0], current).model
        if (number + 1) % len(stages) == 0:
            yield current


def mistakes(model: Any, X: Any, y: Any) -> float:
    """Return the mistakes in percent of rows or of pairs."""
    if hasattr(model, "rank_scores"):
        return 100.0 * (1.0 - roc_auc_score(y, model.rank_scores(X)))
    return 100.0 * float(np.mean(model.predict(X) != y))


def kept() -> list[dict[str, Any]]:
    return [json.loads(line) for line in KEPT.read_text().splitlines()] if KEPT.exists() else []


def measure(methods: list[str], data: list[str], counts: list[int], merges: int, rows: int | None, first: int) -> None:
    """Add missing measurements to the stored lines."""
    known = [{name: line[name] for name in WHAT} for line in kept()]
    for name in data if methods else ():
        X, y, X_test, y_test = load(name, rows)
        for method, parts in itertools.product(methods, counts):
            n = min(X.shape[0], SLOW.get((method, name), X.shape[0]))
            params = {"random_state": 0, **SETTINGS[name][""], **SETTINGS[name].get(method, {})}
            line: dict[str, Any] = dict(zip(WHAT, (method, name, n, parts, merges, first, params), strict=True))
            if line in known:
                continue
            begun = time.process_time()
            classifier: Any = next(cls for cls in registry.find(method).classes() if cls.task == "classification")
            models = list(trained(classifier(**params), X[:n], y[:n], parts, merges, first))
            line["mistakes"] = [mistakes(model, X_test, y_test) for model in models]
            line["points"] = [model.n_stored_ or model._state.model.coef.shape[-1] for model in models]
            line["seconds"] = time.process_time() - begun
            print(json.dumps(line), flush=True)
            with KEPT.open("a") as file:
                file.write(json.dumps(line) + "\n")


def page(lines: list[dict[str, Any]]) -> str:
    """Return the page of all measurements, a table for each method, the main methods first."""
    methods, data = list(registry.METHODS), list(SETTINGS)

    def run(line: dict[str, Any]) -> tuple[Any, ...]:
        return data.index(line["data"]), line["rows"], line["merges"], line["first"]

    text = [HEAD]
    for method in sorted({line["method"] for line in lines}, key=methods.index):
        found = sorted((line for line in lines if line["method"] == method), key=run)
        counts = sorted({line["parts"] for line in found})
        text += [f"## {registry.find(method).learner().title}\n", f"| data | rows | merges | round | {row(counts)} |"]
        text.append("|---" * (4 + len(counts)) + "|")
        for (place, rows, merges, _), of_run in itertools.groupby(found, run):
            cells = {line["parts"]: line for line in of_run}
            for r in range(ROUNDS):
                shown = [f"{cells[p]['mistakes'][r]:.2f} ({cells[p]['points'][r]:,})" if p in cells else "" for p in counts]
                text.append(f"| {data[place]} | {rows:,} | {merges} | {r + 1} | {row(shown)} |")
        text.append("")
    return "\n".join(text)


def row(cells: list[Any]) -> str:
    return " | ".join(map(str, cells))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    classifiers = [name for name, entry in registry.METHODS.items() if any(c.task == "classification" for c in entry.classes())]
    parser.add_argument("--methods", default="avm,polk,spa,dualsvrg,aogd", help='"baselines" for all others')
    parser.add_argument("--data", default=",".join(SETTINGS))
    parser.add_argument("--parts", default=PARTS)
    parser.add_argument("--merges", type=int, default=1, help="number of merges within a round")
    parser.add_argument("--first", type=int, default=1000, help="rows learned before parts are trained separately")
    parser.add_argument("--rows", type=int, help="maximum number of training rows of each data set")
    given = parser.parse_args()
    others = [name for name in classifiers if not registry.find(name).is_main]
    methods = others if given.methods == "baselines" else [name for name in given.methods.split(",") if name]
    counts = [int(count) for count in given.parts.split(",")]
    measure(methods, given.data.split(","), counts, given.merges, given.rows, given.first)
    PAGE.write_text(page(kept()))


if __name__ == "__main__":
    main()
