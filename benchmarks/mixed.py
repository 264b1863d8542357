"""Public tables, with nothing but the target: our pipeline, and boosted trees that are refitted as rows arrive.

    python -m benchmarks.mixed [rows] [table.csv:target ...]

Each row is predicted before it is learned.  Auto learns every row; scikit-learn's HistGradientBoosting is fitted again on all
rows so far after 500, 1,000, 2,000 and then every 2,000 rows, with categories as its own type, and predicts the next ones.
Prints mistakes, or root mean squared errors over the deviation of the targets, and seconds of processor time.  The tables are
those that are named, or those of KERNLING_DATA.  See README.md in this folder.
"""

from benchmarks.timing import best  # noqa: F401 - first: it sets the number of threads  # isort: skip

import os
import sys
import time
import warnings
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

import kernling as kl
from benchmarks.tables import KNOWN_LATER

ROWS = 10_000
FIRST, EVERY = (500, 1_000, 2_000), 2_000
DATA = Path(os.environ.get("KERNLING_DATA", "."))


def _read(name: str, rows: int, **options: Any) -> pandas.DataFrame:
    return pandas.read_csv(DATA / name, nrows=rows, **options)


def late_flights(rows: int) -> tuple[pandas.DataFrame, Any]:
    """Whether a flight is late, from what is known before it departs."""
    frame = _read("nycflights13_flights.csv.xz", 2 * rows).dropna(subset="arr_delay")[:rows]
    return frame.drop(columns=KNOWN_LATER), (frame["arr_delay"] > 15).to_numpy()


def air_time(rows: int) -> tuple[pandas.DataFrame, Any]:
    """Minutes in the air, from what is known before a flight departs."""
    frame = _read("nycflights13_flights.csv.xz", 2 * rows).dropna(subset="air_time")[:rows]
    return frame.drop(columns=KNOWN_LATER), frame["air_time"].to_numpy(dtype=float)


def attacks(rows: int) -> tuple[pandas.DataFrame, Any]:
    """The kind of a connection of KDD Cup 99, of which every 20th is taken, since they come in long runs."""
    frame = _read("kddcup.data_10_percent.xz", 20 * rows, header=None)[::20]
    frame.columns = [*(f"c{place}" for place in range(41)), "kind"]
    return frame.drop(columns="kind"), frame["kind"].to_numpy(dtype=str)


def last_column(name: str) -> Callable[[int], tuple[pandas.DataFrame, Any]]:
    """A table of the arena, whose last column is the target."""

    def read(rows: int) -> tuple[pandas.DataFrame, Any]:
        frame = _read(f"streams/{name}.csv.xz", rows)
        return frame.iloc[:, :-1], frame.iloc[:, -1].to_numpy()

    return read


def named(argument: str) -> Callable[[int], tuple[pandas.DataFrame, Any]]:
    """A CSV file and its target, path.csv:target."""
    path, _, target = argument.rpartition(":")

    def read(rows: int) -> tuple[pandas.DataFrame, Any]:
        frame = pandas.read_csv(path, nrows=rows).dropna(subset=target)
        return frame.drop(columns=target), np.array(frame[target].tolist())

    return read


TABLES: dict[str, Callable[[int], tuple[pandas.DataFrame, Any]]] = {
    "late flights": late_flights,
    "time in the air": air_time,
    "kddcup": attacks,
    "airlines": last_column("airlines"),
    "bike": last_column("bike"),
    "MetroTraffic": last_column("MetroTraffic"),
}


def auto(frame: pandas.DataFrame, y: Any) -> np.ndarray:
    """Return the predictions of a pipeline without parameters before each row was learned."""
    model = kl.StreamPipeline.auto()
    return np.concatenate(
        [model.predict_then_learn(frame[first : first + 1000], y[first : first + 1000]) for first in range(0, len(y), 1000)]
    )


def boosted(frame: pandas.DataFrame, y: Any) -> np.ndarray:
    """Return the predictions of boosted trees that were fitted on the rows before; a constant at first."""
    frame = frame.copy()
    for name in frame:
        if frame[name].dtype.kind not in "biuf":  # categories of which there are too many are left out, as it refuses them
            frame[name] = pandas.Categorical(frame[name])
    frame = frame[[name for name in frame if frame[name].dtype != "category" or len(frame[name].cat.categories) <= 255]]
    values, counts = np.unique(y[: FIRST[0]], return_counts=True)
    is_regression = y.dtype.kind == "f"
    found = np.full(len(y), y[: FIRST[0]].mean() if is_regression else values[counts.argmax()], dtype=y.dtype)
    ends = [*FIRST, *range(FIRST[-1] + EVERY, len(y), EVERY), len(y)]
    for begin, end in pairwise(ends):
        kind = HistGradientBoostingRegressor if is_regression else HistGradientBoostingClassifier
        found[begin:end] = kind(random_state=0).fit(frame[:begin], y[:begin]).predict(frame[begin:end])
    return found


def main() -> None:
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else ROWS
    print("| table | rows | Auto | boosted trees | seconds | boosted trees |")
    print("|---|---|---|---|---|---|")
    tables = {Path(one).stem: named(one) for one in sys.argv[2:]} or TABLES
    for name, read in tables.items():
        frame, y = read(rows)
        y = y.astype(float) if y.dtype.kind in "if" and len(np.unique(y)) > 20 else y
        cells = []
        for learn in (auto, boosted):
            begun = time.process_time()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # about ignored columns
                said = learn(frame, y)
            taken = time.process_time() - begun
            error = np.sqrt(np.mean((said - y) ** 2)) / y.std() if y.dtype.kind == "f" else np.mean(said != y)
            cells.append((error, taken))
        (own, seconds), (other, longer) = cells
        print(f"| {name} | {len(y):,} | {own:.4f} | {other:.4f} | {seconds:.1f} | {longer:.1f} |", flush=True)


if __name__ == "__main__":
    main()
