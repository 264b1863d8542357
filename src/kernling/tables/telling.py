"""Columns that tell the target by themselves: often they are filled in only once the target is known."""

from __future__ import annotations

from typing import Any

import numpy as np

from .dates import elapsed
from .schema import Column, Schema, dates_of
from .table import Table
from .written import numbers

ENOUGH = 100  # rows
ROWS = 5000  # are looked at, at most
SURE = 0.99  # mean share of each class, or of the variance, that a column predicts


def telling_columns(table: Table, schema: Schema, y: Any, task: str) -> list[str]:
    """Return the columns each of which predicts the targets of later rows from its nearest value in earlier ones.

    There is nothing to say about the only column of a table.

    Examples
    --------
    >>> import numpy as np
    >>> from kernling.tables import Encode, Table
    >>> from kernling.tables.telling import telling_columns
    >>> rng = np.random.default_rng(0)
    >>> y = rng.random(400) < 0.1
    >>> table = Table({"km": rng.normal(size=400), "refunded": np.where(y, "yes", "")})
    >>> telling_columns(table, Encode().begin(table).schema_, y, "classification")
    ['refunded']
    """
    used = [column for column in schema if column.treatment not in ("ignore", "text") and column.name in table.columns]
    y = np.asarray(y)[:ROWS]
    if len(y) < ENOUGH or len(used) < 2:
        return []
    table = table[:ROWS]
    return [column.name for column in used if _explained(_values(table, column), y, task) >= SURE]


def _values(table: Table, column: Column) -> np.ndarray:
    """Return a column as numbers, minus infinity where a value is missing."""
    if column.treatment == "date":
        values = elapsed(dates_of(table, column.name, column.form), 0)
    elif column.treatment == "category":
        values = np.where(table.missing(column.name), np.nan, table.categories(column.name)[1])
    else:
        values = numbers(table.columns[column.name], column.form)
    return np.where(np.isfinite(values), values, -np.inf)


def _explained(values: np.ndarray, y: np.ndarray, task: str) -> float:
    """Return the mean recall over the classes, or the share of the variance, in the second half of the rows."""
    half = len(y) // 2
    order = np.argsort(values[:half], kind="stable")
    known, later = values[:half][order], values[half:]
    right = np.searchsorted(known, later).clip(max=half - 1)
    left = (right - 1).clip(min=0)
    with np.errstate(invalid="ignore"):  # missing values are at equal distances from each other
        nearer = np.where(known[left] == later, True, np.abs(later - known[left]) < np.abs(known[right] - later))
    said, true = y[:half][order][np.where(nearer & (known[right] != later), left, right)], y[half:]
    if task == "regression":
        spread = float(((true - true.mean()) ** 2).sum())
        return 1.0 - float(((true - said) ** 2).sum()) / spread if spread > 0.0 else 0.0
    classes = np.unique(true)
    return float(np.mean([(said[true == label] == label).mean() for label in classes])) if len(classes) > 1 else 0.0
