"""Is a search worth it?  Parameters found on the first 3,000 rows of a stream, against the defaults, on all rows.

    python -m benchmarks.search [--methods avm,spa,dualsvrg] [--streams sea,digits] [--candidates 27] [--seeds 0,1]

The streams are those of peers.py, test-then-train.  Results are stored in a JSON lines file, a row per stream, method and
seed of the search, and are not measured again.  A ratio is the error with the parameters found over that of the defaults.
"""

import argparse
import json
import warnings
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.peer_contestants import commit, our
from benchmarks.peer_report import goal_line, of_task
from benchmarks.peer_results import Row, compare, geometric_mean, measured, read
from benchmarks.peer_streams import STREAMS, Events, PeerStream
from kernling import registry
from kernling.evaluate import search
from kernling.io import stream

RESULTS = Path(__file__).parent / "search.jsonl"
SEARCHED = 3_000  # rows
LIMIT = 600.0  # seconds for a run over all rows
GOAL = 1.02  # largest ratio
KEY = ("stream", "contestant", "version", "candidates", "seed")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--methods", default="avm,spa,dualsvrg,polk,aogd")
    parser.add_argument("--streams", default=",".join(STREAMS))
    parser.add_argument("--candidates", type=int, default=27)
    parser.add_argument("--seeds", default="0", help="seeds of the searches")
    parser.add_argument("--results", type=Path, default=RESULTS)
    given = parser.parse_args()
    methods, seeds = given.methods.split(","), [int(seed) for seed in given.seeds.split(",")]
    for name in given.streams.split(","):
        known = {tuple(row[one] for one in KEY) for row in read(given.results) if not row["version"].endswith("+")}
        events = None
        for method in methods:
            for seed in seeds:
                facts: Row = dict(zip(KEY, (name, method, commit(), given.candidates, seed), strict=True))
                if tuple(facts.values()) in known or not can(method, STREAMS[name].task):
                    continue
                events = events or STREAMS[name].read()
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # about uneven columns and steps that did not converge
                    row = facts | searched(method, STREAMS[name], events, given.candidates, seed)
                with given.results.open("a") as file:
                    file.write(json.dumps(row) + "\n")
                print(f"{name}, {method}, seed {seed}: {row['ratio']:.3f} {row['params']}", flush=True)
    latest = {(row["stream"], row["contestant"], row["seed"]): row for row in read(given.results)}
    show([row for row in latest.values() if row["contestant"] in methods])


def can(method: str, task: str) -> bool:
    return any(cls.task == task for cls in registry.find(method).classes())


def searched(method: str, one: PeerStream, events: Events, candidates: int, seed: int) -> Row:
    """Search the first rows, then learn all rows with what was found and with the defaults."""
    model = registry.estimator_for(method, one.task)(random_state=0)
    found = search(model, stream(events.X[:SEARCHED], events.y[:SEARCHED]), candidates=candidates, seed=seed)
    if not found.improved:
        return {"ratio": 1.0, "params": {}}
    default, tuned = (
        measured(our(method, method, **params), one, events, seed=0, limit=LIMIT) for params in ({}, found.params)
    )
    ratio = float("inf") if "failure" in tuned else compare(tuned, default).ratio
    return {"ratio": float(f"{ratio:.5g}"), "params": found.params}


def show(rows: list[Row]) -> None:
    """Print a table of ratios, the largest over seeds, and the goal."""
    table = Table(title="error after searching 3,000 rows / error of the defaults, the largest over the seeds")
    table.add_column("stream")
    methods = list(dict.fromkeys(row["contestant"] for row in rows))
    for method in methods:
        table.add_column(method, justify="right")
    for name in STREAMS:
        ratios = {m: [row["ratio"] for row in rows if (row["stream"], row["contestant"]) == (name, m)] for m in methods}
        if any(ratios.values()):
            table.add_row(name, *(f"{max(found):.3f}" if found else "" for found in ratios.values()))
    Console().print(table)
    for method in methods:
        for task in ("classification", "regression"):
            ratios = [row["ratio"] for row in rows if row["contestant"] == method and row["stream"] in of_task(task)]
            if ratios:
                label = f"{method}, {task}: mean {geometric_mean(ratios):.3f}, changed in {sum(r != 1.0 for r in ratios)} of"
                print(goal_line(f"{label} {len(ratios)}; largest ratio", max(ratios), GOAL))


if __name__ == "__main__":
    main()
