"""Public streams, whole and in order, test-then-train, with defaults: accuracy, log-loss, RMSE, time and memory.

    python -m benchmarks.arena [--streams electricity,fried] [--contestants auto,capymoa-arf] [--limit 600] [--figure FOLDER]

Auto and our other methods next to River's, CapyMOA's and boosted trees that are refitted at every twentieth of the stream, and
next to results that others have printed (arena_printed.toml).  Results are stored in a JSON lines file, a row per stream and
contestant; stored results are not measured again, so an interrupted run can be resumed.  See README.md in this folder.
"""

import argparse
import warnings
from pathlib import Path

from benchmarks.arena_contestants import contestants
from benchmarks.arena_report import draw, show, write_page
from benchmarks.arena_results import measure
from benchmarks.arena_streams import STREAMS
from benchmarks.peer_results import latest, read

HERE = Path(__file__).parent
RESULTS = HERE / "arena.jsonl"
PAGE = HERE / "arena.md"
LIMIT = 600.0  # processor time in seconds for a contestant on a stream


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--streams", default=",".join(STREAMS))
    parser.add_argument("--contestants", help="names or families (default: all)")
    parser.add_argument("--rows", type=int, help="first rows of each stream only; not stored among whole streams")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--limit", type=float, default=LIMIT, help="seconds for a contestant on a stream")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--page", type=Path, help=f"write the tables as Markdown (in this folder: {PAGE.name})")
    parser.add_argument("--figure", type=Path, help="folder for the figure of learning curves")
    given = parser.parse_args()
    known = contestants()
    asked = set(given.contestants.split(",")) if given.contestants else {one.family for one in known}
    chosen = [one for one in known if {one.name, one.family} & asked]
    streams = {name: STREAMS[name] for name in given.streams.split(",")}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about uneven columns and steps that did not converge
        measure(given.results, streams, chosen, given.rows, given.seed, given.limit)
    wanted = (row for row in read(given.results) if row["seed"] == given.seed and row["of"] == of(row, given.rows))
    results = latest(row for row in wanted if row["stream"] in streams)
    show(results, known)
    if given.page:
        write_page(results, known, given.page)
    if given.figure:
        draw(results, known, given.figure)


def of(row: dict, rows: int | None) -> int:
    whole = STREAMS[row["stream"]].rows
    return whole if rows is None else min(rows, whole)


if __name__ == "__main__":
    main()
