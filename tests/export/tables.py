"""What is exported in tests: a table with columns of every kind, and mixtures of experts of every age."""

from datetime import datetime, timedelta

import numpy as np
import pandas as pd

import kernling as kl
from kernling.estimators.mixed import Mixed
from oracles import CASES, Case

AGES = [1, 3, 40, 1500]  # events: before the first settling of scales and gamma, between two, and after the last
TASKS = ["two classes", "three classes", "values"]


def table(rows: int, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    """Numbers, booleans, text and dates, from 1890 on, with gaps; and labels."""
    rng = np.random.default_rng(seed)
    numbers = rng.normal(50.0, 20.0, size=(rows, 2))
    numbers[::7, 0] = np.nan
    numbers[5::50, 1] = np.inf
    dates = [datetime(1890, 1, 1) + timedelta(days=37.43 * row) for row in rng.permutation(rows)]
    frame = pd.DataFrame(
        {
            "city": rng.choice(["Oslo", "Rome", "Kyiv", ""], rows),
            "open": rng.integers(2, size=rows).astype(bool),
            "width": numbers[:, 0],
            "when": pd.to_datetime(pd.Series(dates)).astype("datetime64[s]"),
            "height": numbers[:, 1],
            "row": [f"row {place}" for place in range(rows)],  # hardly repeats, and is ignored
            "day": pd.Series(dates).map(lambda date: date.strftime("%Y-%m-%d")),
        }
    )
    frame.loc[3::11, "when"] = pd.NaT
    return frame, np.where((frame["city"] == "Oslo") ^ (numbers[:, 1] > 50.0), "up", "down")


def mixture(task: str, events: int, standardise: bool = True, dtype: str = "float64"):
    """A mixture of experts that has learned so many events; one column is 0 or 1."""
    rng = np.random.default_rng(events)
    X = rng.normal(3.0, 2.0, size=(events, 4))
    X[:, 3] = rng.integers(2, size=events)
    product = X[:, 0] * X[:, 1]
    cls = kl.AutoRegressor if task == "values" else kl.AutoClassifier
    y = {"two classes": product > 9.0, "three classes": np.digitize(product, [5.0, 12.0]), "values": 100.0 + product}[task]
    return cls(memory=0, standardise=standardise, dtype=dtype).partial_fit(X, y)


def mixture_rows(dtype: str = "float64") -> np.ndarray:
    """Rows for a mixture, some of them far from all others, with another number in the column of 0 and 1."""
    rows = np.random.default_rng(0).normal(3.0, 2.0, size=(100, 4))
    rows[:, 3] = rows[:, 3] > 3.0
    rows[:5] *= 20.0
    return rows.astype(dtype)


def exported_cases(cls: type) -> list[Case]:
    """The cases of an estimator that can be exported: all but those of a metric on random features, mixtures without memory."""
    cases = CASES.get(cls.__name__, [])
    if issubclass(cls, Mixed):
        cases = [case._replace(params=case.params | {"memory": 0}) for case in cases]
    return [case for case in cases if cls.__name__ != "AOGDMetric" or case.params.get("features", "linear") == "linear"]
