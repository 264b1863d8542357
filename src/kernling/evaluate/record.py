"""The columns of result rows: their types, labels and formats, declared once.

A row is a dictionary with some of these columns; which ones depends on the protocol.  Metrics also appear over the last
rows (``_window``), on held-out rows (``_validation``), in summaries as standard deviations (``_std``), and for
references on the same rows: the constant answer (``_constant``) and a linear model (``_linear``).
"""

from __future__ import annotations

from enum import Enum
from typing import Any, NamedTuple

from .metrics import METRICS

Row = dict[str, Any]
REFERENCES = {"constant": "constant answer", "linear": "linear model"}  # what stands beside a metric
SUFFIXES = {"_window": ", window", "_validation": ", validation", "_std": ", standard deviation"}
SUFFIXES |= {f"_{name}": f", {words}" for name, words in REFERENCES.items()}


class Shown(Enum):
    """Formats of a column's values."""

    TEXT = "text"
    COUNT = "count"  # 12,345
    SHARE = "share"  # 12.34 %
    SECONDS = "seconds"
    NUMBER = "number"


class Column(NamedTuple):
    """One column of result rows."""

    label: str
    shown: Shown
    measured: bool = False  # averaged over permutations; other columns describe the run
    low_is_good: bool | None = None  # None if neither direction is better


def _metric_columns() -> dict[str, Column]:
    return {
        name: Column(kind.label, Shown.SHARE if kind.is_share else Shown.NUMBER, True, kind.low_is_good)
        for name, kind in METRICS.items()
    }


COLUMNS: dict[str, Column] = {
    "protocol": Column("protocol", Shown.TEXT),
    "method": Column("method", Shown.TEXT),
    "learner": Column("learner", Shown.TEXT),
    "params": Column("parameters", Shown.TEXT),
    "pipeline": Column("pipeline", Shown.TEXT),
    "data": Column("data", Shown.TEXT),
    "data_info": Column("data info", Shown.TEXT),
    "versions": Column("versions", Shown.TEXT),
    "failed": Column("failed", Shown.TEXT),
    "candidate": Column("candidate", Shown.COUNT),
    "permutation": Column("permutation", Shown.COUNT),
    "permutations": Column("orders", Shown.COUNT),
    "seed": Column("seed", Shown.COUNT),
    "events": Column("events", Shown.COUNT),
    "window": Column("window", Shown.COUNT),
    "every": Column("every", Shown.COUNT),
    "first_chunk": Column("first chunk", Shown.COUNT),
    "learned_before": Column("learned before", Shown.COUNT),
    **_metric_columns(),
    "experts": Column("weights of experts", Shown.TEXT),
    "majority": Column("majority class", Shown.SHARE, True),
    "n_stored": Column("points stored", Shown.COUNT, True),
    "n_support": Column("points used", Shown.COUNT, True),
    "nbytes": Column("bytes", Shown.COUNT, True),
    "seconds": Column("seconds", Shown.SECONDS, True),
    "test_seconds": Column("test seconds", Shown.SECONDS, True),
}


def column(name: str) -> Column:
    """Return the declaration of a column; an undeclared column is a number labelled by its name.

    Examples
    --------
    >>> from kernling.evaluate.record import column
    >>> column("auc_window").label, column("auc_window").shown.value
    ('AUC, window', 'share')
    """
    for suffix, words in SUFFIXES.items():
        if name.endswith(suffix):
            of = column(name.removesuffix(suffix))
            return of._replace(label=of.label + words)
    return COLUMNS.get(name, Column(name.replace("_", " "), Shown.NUMBER, True))
