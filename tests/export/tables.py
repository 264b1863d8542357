"""What is exported in tests: all estimators that can be, and a table with columns of every kind."""

from datetime import datetime, timedelta

import numpy as np
import pandas as pd

from checks import estimators
from kernling.estimators.mixed import Mixed

EXPORTED = [cls for cls in estimators() if not issubclass(cls, Mixed)]  # mixtures are refused


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
