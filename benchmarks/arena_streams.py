"""The streams of benchmarks/arena.py: eight for classification and four for regression, whole, as published.

Numbers are given as they are, and text as text: scaling and encoding are part of a contestant.  All but covtype are files in
the folder ``streams`` of ``KERNLING_DATA``, one table each, with the target in its last column.
"""

from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from benchmarks.peer_streams import Events, data_file, shuffled


class ArenaStream(NamedTuple):
    """A stream and its shape."""

    rows: int
    columns: int
    classes: int = 0  # 0: regression
    covtype: bool = False
    is_shuffled: bool = False

    @property
    def task(self) -> str:
        return "classification" if self.classes else "regression"

    def read(self, name: str, rows: int | None = None) -> Events:
        """Return the first rows, an array of numbers, or a frame if there is text."""
        X: Any
        if self.covtype:
            table = pd.read_csv(data_file("covtype.data"), header=None)
        else:
            table = pd.read_csv(data_file(f"streams/{name}.csv"))
        X, y = table.iloc[:, :-1], table.iloc[:, -1].to_numpy()
        if all(pd.api.types.is_numeric_dtype(dtype) for dtype in X.dtypes):
            X = np.ascontiguousarray(X, dtype=np.float64)
        if self.is_shuffled:
            X, y = shuffled(X, y)
        if self.classes:
            y = np.unique(y, return_inverse=True)[1]
        X, y = X[:rows], y[:rows]
        return Events(X, y, np.zeros(len(y)), np.ones(len(y)), y)


STREAMS = {
    "electricity": ArenaStream(45_312, 8, 2),
    "airlines": ArenaStream(539_383, 7, 2),
    "covtype": ArenaStream(581_012, 54, 7, covtype=True),
    "covtype-shuffled": ArenaStream(581_012, 54, 7, covtype=True, is_shuffled=True),
    "poker": ArenaStream(829_201, 10, 10),
    "weather": ArenaStream(18_159, 8, 2),
    "nomao": ArenaStream(34_465, 118, 2),
    "powersupply": ArenaStream(29_927, 2, 24),
    "bike": ArenaStream(17_379, 12),
    "MetroTraffic": ArenaStream(48_204, 7),
    "california_housing": ArenaStream(20_640, 8),
    "fried": ArenaStream(40_768, 10),
}
