"""Our methods and others at their defaults, on 25 streams, test-then-train: error, AUC, calibration, memory and time.

    python -m benchmarks.peers [--streams a9a,sea] [--contestants avm,river-arf] [--baselines] [--rows 2000] [--figure FOLDER]

What is measured is kept in a JSON lines file, a row per stream and contestant; what is there is not measured again, so a run
that was stopped goes on.  See README.md beside this file.
"""

import argparse
import warnings
from pathlib import Path

from benchmarks.peer_contestants import contestants
from benchmarks.peer_figures import draw
from benchmarks.peer_moa import moa
from benchmarks.peer_report import show
from benchmarks.peer_results import Row, latest, measure, read
from benchmarks.peer_streams import ROWS, STREAMS

HERE = Path(__file__).parent
RESULTS = HERE / "peers.jsonl"
BASE = HERE / "peers_base.jsonl"  # our methods when this benchmark began
LIMIT = 60.0  # seconds of the processor that a contestant has for a stream


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    known = {contestant.name: contestant for contestant in [*contestants(), *moa()]}
    parser.add_argument("--streams", default=",".join(STREAMS))
    parser.add_argument("--contestants", help="names or families; all but the baselines by default")
    parser.add_argument("--baselines", action="store_true", help="our baselines as well")
    parser.add_argument("--rows", type=int, default=ROWS, help="of each stream at most")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--limit", type=float, default=LIMIT, help="seconds that a contestant has for a stream")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--figure", type=Path, help="folder for pictures of error against time")
    given = parser.parse_args()
    asked = given.contestants.split(",") if given.contestants else sorted({c.family for c in known.values()} - {"baselines"})
    asked += ["baselines"] * given.baselines
    chosen = [contestant for contestant in known.values() if {contestant.name, contestant.family} & set(asked)]
    streams = {name: STREAMS[name] for name in given.streams.split(",")}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # uneven columns, steps that did not converge: the rows say what came of it
        measure(given.results, streams, chosen, given.rows, given.seed, given.limit)
    base = latest(read(BASE))
    results = base | latest(
        row for row in read(given.results) if row["seed"] == given.seed and row["of"] == of(row, given.rows)
    )
    show(results, base, list(known.values()))
    if given.figure:
        draw(results, base, list(known.values()), given.figure)


def of(row: Row, rows: int) -> int:
    return min(rows, STREAMS[row["stream"]].rows)


if __name__ == "__main__":
    main()
