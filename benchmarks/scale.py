"""Two workers compared with one process on covtype, repeated and in Parquet: events per second, and memory of a worker.

    python -m benchmarks.scale [--rows 10000000] [--files 20] [--workers 2]

Files are written to a temporary folder and deleted.  Prints Markdown; the load of the machine is printed with it, since the
ratio is only meaningful on an idle machine.  "Ratio possible" is what the processor time of all processes would allow if no
worker ever waited; it varies less with the load.
"""

from benchmarks.timing import best  # noqa: F401  # first: it sets the number of threads  # isort: skip

import argparse
import os
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow
import pyarrow.parquet

import kernling as kl
from kernling import distributed as scale
from kernling.io import stream
from kernling.papers import dataset

GOAL = 1.6


def write(folder: Path, rows: int, files: int) -> list[str]:
    """Write covtype, its second class against the rest, in random order, repeated as needed."""
    X, y = dataset("covtype").stream("train").load()
    rng = np.random.default_rng(0)
    paths = []
    for part in range(files):
        chosen = rng.integers(len(y), size=rows // files)
        columns = {f"c{i}": X[chosen, i].astype(np.float32) for i in range(X.shape[1])}
        paths.append(str(folder / f"{part}.parquet"))
        table = pyarrow.table({**columns, "label": (y[chosen] == 2).astype(np.int8)})
        pyarrow.parquet.write_table(table, paths[-1], row_group_size=65_536)
    return paths


def model() -> kl.AVMClassifier:
    return kl.AVMClassifier(gamma=8.0, delta=1.5, lam=1e-5, random_state=0)


def one_process(paths: list[str]) -> tuple[int, float, float]:
    """Return the number of events, seconds, and processor seconds."""
    learner = model()
    begun, worked = time.perf_counter(), time.process_time()
    for path in paths:
        for X, y in stream(path, target="label"):
            learner.partial_fit(X, y)
    return learner.t_, time.perf_counter() - begun, time.process_time() - worked


def peak() -> int:
    """Return the peak memory of this process in MB; getrusage would include that of its parent process."""
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) // 1024


def cluster(paths: list[str], workers: int) -> tuple[float, float, list[int]]:
    """Return seconds, processor seconds of all workers and the scheduler, and the peak memory of each worker."""
    with scale.connected(f"local:{workers}") as client:
        scale.fit(client, model(), paths[: 2 * workers], target="label")  # compiles both learning and merging

        def worked() -> float:
            return sum(client.run(time.process_time).values()) + time.process_time()

        before, begun = worked(), time.perf_counter()
        scale.fit(client, model(), paths, target="label")
        seconds = time.perf_counter() - begun
        return seconds, worked() - before, sorted(client.run(peak).values())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--files", type=int, default=20)
    parser.add_argument("--workers", type=int, default=2)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        paths = write(Path(folder), given.rows, given.files)
        one_process(paths[:1])
        load = os.getloadavg()[0]
        events, alone, alone_worked = one_process(paths)
        spread, worked, memory = cluster(paths, given.workers)
    print(
        "| rows | files | workers | alone, events/s | cluster, events/s | ratio | goal | processor s | ratio possible "
        "| peak MB | load before |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    print(
        f"| {events:,} | {given.files} | {given.workers} | {events / alone:,.0f} | {events / spread:,.0f} "
        f"| {alone / spread:.2f} | {GOAL} | {alone_worked:.1f} and {worked:.1f} "
        f"| {given.workers * alone_worked / worked:.2f} | {', '.join(map(str, memory))} | {load:.1f} |"
    )


if __name__ == "__main__":
    main()
