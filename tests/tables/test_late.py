"""Columns that come later than the first rows: what fits into the free columns, and how their numbers are scaled."""

import numpy as np
import pytest

from kernling.components.scaling import REACH
from kernling.tables import Table
from kernling.tables.late import HASHED, LateColumn, new_columns
from kernling.tables.scalers import SCALED

TABLE = Table({"a": np.array([1.0, 4.0]), "words": np.array(["x", "y"], dtype=object), "b": np.array([2.0, 3.0])})


def test_columns_fill_the_free_ones_to_the_last():
    names = ["a", "words", "b"]
    found = new_columns(TABLE, names, 0, 2 + HASHED)
    assert [(one.column.name, one.first, one.end) for one in found] == [
        ("a", 0, 1),
        ("words", 1, 1 + HASHED),
        ("b", 1 + HASHED, 2 + HASHED),
    ]
    assert [one.column.name for one in new_columns(TABLE, names, 0, 1 + HASHED)] == ["a", "words"]
    assert [one.column.name for one in new_columns(TABLE, names, 0, HASHED)] == ["a", "b"]


def test_numbers_are_scaled_by_the_mean_and_deviation_of_those_before():
    values = np.array([1.0, 2.0, 4.0])
    late: LateColumn = new_columns(TABLE, ["a"], 0, 1)[0].encode(Table({"a": values}), np.zeros((3, 1)), learn=True)
    rows = np.zeros((4, 1))
    late.encode(Table({"a": np.array([3.0, np.nan, SCALED, 2.0 * SCALED])}), rows, learn=False)
    assert rows[0, 0] == pytest.approx((3.0 - values.mean()) / values.std())
    assert rows[1:, 0].tolist() == [0.0, REACH, 0.0]  # a number that is too large to be summed is none
