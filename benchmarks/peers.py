"""Our methods and others with their defaults on 25 streams, test-then-train: error, AUC, calibration, memory and time.

    python -m benchmarks.peers [--streams a9a,sea] [--contestants avm,river-arf] [--baselines] [--rows 2000] [--figure FOLDER]

Results are stored in a JSON lines file, a row per stream and contestant; stored results are not measured again, so an
interrupted run can be resumed.  See README.md in this folder.
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
BASE = HERE / "peers_base.jsonl"  # our methods when this benchmark was started
LIMIT = 60.0  # processor time in seconds for a contestant on a stream


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    known = {contestant.name: contestant for contestant in [*contestants(), *moa()]}
    parser.add_argument("--streams", default=",".join(STREAMS))
    parser.add_argument("--contestants", help="names or families (default: all but the baselines)")
    parser.add_argument("--baselines", action="store_true", help="include our baselines")
    parser.add_argument("--rows", type=int, default=ROWS, help="maximum number of rows per stream")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--limit", type=float, default=LIMIT, help="seconds for a contestant on a stream")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--figure", type=Path, help="folder for figures of error against time")
    given = parser.parse_args()
    asked = given.contestants.split(",") if given.contestants else sorted({c.family for c in known.values()} - {"baselines"})
    asked += ["baselines"] * given.baselines
    chosen = [contestant for contestant in known.values() if {contestant.name, contestant.family} & set(asked)]
    streams = {name: STREAMS[name] for name in given.streams.split(",")}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about uneven columns and steps that did not converge
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
