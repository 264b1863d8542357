"""onnxruntime compared with kernling: prediction of 1,000 rows on one thread with the same models, in one run.

Run ``python -m benchmarks.export [--dtype float32] [--methods avm krls] [--data a9a ijcnn1]``.  Each model learns 2,000 rows
and predicts the next 1,000.  ``error`` is the largest difference of scores or values, divided by their size or their root mean
square, whichever is larger; ``labels`` counts those that differ although scores are not within 1e-5 of a tie; ``speed`` is our
time divided by onnxruntime's, so 0.33 means that onnxruntime takes three times as long.
"""

from __future__ import annotations

from . import timing  # isort: skip - before NumPy

import argparse
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import kernling as kl
from benchmarks.onnx_runs import Exported
from kernling import registry
from kernling.core.limits import Diverged
from kernling.papers import dataset
from kernling.papers.datasets import data_folders
from kernling.tables import MinMax, Standardise

LEARNED, PREDICTED = 2000, 1000
ROUNDS = 5
UNKNOWN = ["dep_time", "dep_delay", "arr_time", "air_time"]  # of flights, before departure
DATA = ("a9a", "ijcnn1", "mnist", "casp", "flights")


def rows_of(name: str) -> tuple[Any, np.ndarray]:
    """Return raw rows and their labels; values for casp and flights."""
    if name == "flights":
        path = next(path for folder in data_folders() for path in folder.glob("nycflights13_flights.csv*"))
        flights = pd.read_csv(path).dropna(subset=["arr_delay"]).iloc[::100]
        return flights.drop(columns=[*UNKNOWN, "arr_delay"]), flights["arr_delay"].to_numpy()
    X, y = dataset(name).stream("train", seed=0).load()
    rows = slice(LEARNED + PREDICTED)
    return (X[rows].toarray() if hasattr(X, "toarray") else np.asarray(X[rows], np.float64)), y[rows]


def targets_of(values: np.ndarray, name: str, task: str) -> np.ndarray:
    """Return the targets of a task; for classification, the values of casp and flights are split at the median."""
    is_regression = name in ("casp", "flights")
    if task == "regression":
        return values.astype(np.float64)
    return values > np.median(values) if is_regression else values


def pipeline(model: Any, name: str) -> kl.StreamPipeline:
    """Return a pipeline of the steps that the rows need and a model."""
    if name == "flights":  # as a table; tail numbers and rare destinations would be hashed
        return kl.StreamPipeline.auto(model, ignore=["tailnum"], limit=128)
    return kl.StreamPipeline([("scale", Standardise() if name == "casp" else MinMax()), ("model", model)])


def beside(model: Any, X: Any, folder: Path) -> dict[str, Any]:
    """Return error, labels and times of a model on rows."""
    exported = Exported(model, folder)
    found, inputs = exported.agreement(X), exported.inputs(X)
    seconds = timing.best({"ours": lambda: exported.scores(X), "onnx": lambda: exported.run(inputs)}, ROUNDS)
    return {
        "error": f"{found.error:.1e}",
        "labels": found.labels,
        "ours, ms": f"{1e3 * seconds['ours']:.2f}",
        "onnx, ms": f"{1e3 * seconds['onnx']:.2f}",
        "speed": f"{seconds['ours'] / seconds['onnx']:.2f}",
    }


def measured(names: list[str], methods: list[str], dtype: str, folder: Path) -> Iterator[dict[str, Any]]:
    """Yield a row for every data set and estimator."""
    for name in names:
        X, values = rows_of(name)
        for method in methods:
            for cls in registry.find(method).classes():
                model = pipeline(cls(dtype=dtype, random_state=0), name)
                try:
                    model.partial_fit(X[:LEARNED], targets_of(values, name, cls.task)[:LEARNED])
                except Diverged:
                    yield {"data": name, "estimator": f"{cls.__name__} diverges at its defaults"}
                    continue
                found = beside(model, X[LEARNED : LEARNED + PREDICTED], folder)
                yield {"data": name, "estimator": cls.__name__, **found}


def main() -> None:
    parser = argparse.ArgumentParser(description="onnxruntime beside kernling")
    parser.add_argument("--dtype", default="float64", choices=["float64", "float32"])
    parser.add_argument("--methods", nargs="*", default=list(registry.METHODS), metavar="METHOD")
    parser.add_argument("--data", nargs="*", default=list(DATA), choices=DATA)
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    begun = False
    with tempfile.TemporaryDirectory() as folder:
        for row in measured(asked.data, asked.methods, asked.dtype, Path(folder)):
            if not begun:
                print(f"| {' | '.join(row)} |\n|{'---|' * len(row)}")
                begun = True
            print(f"| {' | '.join(map(str, row.values()))} |", flush=True)


if __name__ == "__main__":
    main()
