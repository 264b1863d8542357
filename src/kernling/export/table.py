"""Columns of tables and steps in ONNX: the equivalents of ``Encode``, ``Standardise`` and ``MinMax``."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from ..tables.dates import DAY, DIGITS
from .description import Affine, Column

if TYPE_CHECKING:
    from .graph import Graph

NO_DATE = np.iinfo(np.int64).min  # as in NumPy
ERA = 146_097  # days in 400 years
MARCH_0 = 719_468  # days from March 1 of the year 0 to 1970


def scaled(graph: Graph, X: str, step: Affine) -> str:
    """Return rows after a step."""
    X = graph.add("Mul", graph.add("Sub", X, step.shift), step.factor)
    if np.any(step.low):
        X = graph.add("Add", X, step.low)
    return X if step.reach is None else graph.add("Max", graph.add("Min", X, step.reach), -step.reach)


def table_rows(graph: Graph, columns: tuple[Column, ...], width: int) -> str:
    """Add an input for each column, and return them encoded as rows of numbers, followed by 0 up to this width.

    Blocks are concatenated in the order that is simplest to compute, and then sorted into the order of the columns.
    """
    values = {column.name: _input(graph, column) for column in columns}
    blocks: list[str] = []
    places: dict[tuple[str, int], int] = {}  # of each encoded column among the columns of the blocks

    def put(block: str, *own: tuple[str, int]) -> None:
        blocks.append(block)
        places.update({place: len(places) + i for i, place in enumerate(own)})

    measured = [column for column in columns if column.treatment != "category"]
    if measured:
        numbers, absent = _measured(graph, measured, values)
        put(numbers, *((column.name, 0) for column in measured))
        gaps = [place for place, column in enumerate(measured) if column.gaps]
        if gaps:
            marks = graph.cast(graph.add("Gather", absent, np.array(gaps), axis=1))
            put(marks, *((measured[place].name, _width(measured[place]) - 1) for place in gaps))
    for column in columns:
        if column.treatment == "category":
            put(_categories(graph, column, values[column.name]), *((column.name, i) for i in range(_width(column))))
        elif column.treatment == "date":
            angles = _angles(graph, column, values[column.name])
            put(angles, *((column.name, 1 + i) for i in range(_angle_count(column))))
    order = [places[column.name, i] for column in columns for i in range(_width(column))]
    rows = graph.beside(blocks)
    rows = rows if order == sorted(order) else graph.add("Gather", rows, np.array(order), axis=1)
    return rows if width == len(order) else graph.add("Pad", rows, np.array([0, 0, 0, width - len(order)]))


def _input(graph: Graph, column: Column) -> str:
    """Return the input of a column; booleans that may be missing are numbers."""
    dtypes = {"number": None, "boolean": None if column.gaps else bool, "category": str, "date": np.int64}
    return graph.input(column.name, "n", dtype=dtypes[column.treatment])


def _width(column: Column) -> int:
    """Return the number of columns that a column becomes."""
    own = {"category": len(column.categories) + column.others, "date": 1 + _angle_count(column)}.get(column.treatment, 1)
    return own + column.gaps


def _angle_count(column: Column) -> int:
    return 6 if column.clock else 4


def _upright(graph: Graph, values: str) -> str:
    return graph.add("Unsqueeze", values, np.array([1]))


# ---------------------------------------------------------------------- numbers, booleans, days


def _measured(graph: Graph, columns: list[Column], values: dict[str, str]) -> tuple[str, str]:
    """Return all values, filled and scaled, and where they were missing."""
    X = graph.beside([_upright(graph, _number(graph, column, values[column.name])) for column in columns])
    absent = ""
    if columns[0].fill is not None:  # for all columns, or for none
        absent = graph.add("Or", graph.add("IsNaN", X), graph.add("IsInf", X))
        X = graph.add("Where", absent, np.array([column.fill for column in columns]), X)
    scales = [column.scale or Affine(0.0, 1.0) for column in columns]
    if any(column.scale for column in columns):
        shift, factor, low = (np.array([scale[i] for scale in scales]) for i in range(3))
        reach = np.array([math.inf if scale.reach is None else scale.reach for scale in scales])
        X = scaled(graph, X, Affine(shift, factor, low, reach if np.isfinite(reach).any() else None))  # type: ignore[arg-type]
    return X, absent


def _number(graph: Graph, column: Column, value: str) -> str:
    if column.treatment == "boolean" and not column.gaps:
        return graph.cast(value)
    if column.treatment != "date":
        return value
    days = graph.add("Div", graph.cast(graph.add("Sub", value, np.array(column.origin))), float(DAY))
    return days if column.fill is None else graph.add("Where", _no_date(graph, value), math.nan, days)


# ---------------------------------------------------------------------- dates


def _no_date(graph: Graph, seconds: str) -> str:
    return graph.add("Equal", seconds, np.array(NO_DATE))


def _angles(graph: Graph, column: Column, value: str) -> str:
    """Return sine and cosine of month, weekday and time of day; 0 where there is no date."""
    missing = _no_date(graph, value)
    seconds = graph.add("Where", missing, np.array(0), value)
    clock = graph.add("Mod", seconds, np.array(DAY))
    days = graph.add("Div", graph.add("Sub", seconds, clock), np.array(DAY))
    weekday = graph.add("Mod", graph.add("Add", days, np.array(3)), np.array(7))  # 1970 began on a Thursday
    pairs = [graph.add("Gather", _circle(12), _month(graph, days)), graph.add("Gather", _circle(7), weekday)]
    if column.clock:
        angle = _upright(graph, graph.add("Mul", graph.cast(clock), 2.0 * math.pi / DAY))
        unit = 10.0**DIGITS
        for exact in (graph.sine(angle), graph.cosine(angle)):
            pairs.append(graph.add("Div", graph.add("Round", graph.add("Mul", exact, unit)), unit))
    return graph.add("Where", _upright(graph, missing), 0.0, graph.beside(pairs))


def _circle(steps: int) -> np.ndarray:
    """Return sine and cosine of all steps around a circle."""
    angle = 2.0 * np.pi * np.arange(steps) / steps
    return np.round(np.column_stack([np.sin(angle), np.cos(angle)]), DIGITS)


def _month(graph: Graph, days: str) -> str:
    """Return the month, from 0 for January, of days since 1970.

    Years start in March here, so that February 29 is the last day of a year.  The year of a day in an era of 400 years is
    (day - day / 1460 + day / 36524 - day / 146096) / 365, with integer division, and months of a year start every 153 / 5 days.
    """

    def over(value: str, divisor: int) -> str:
        return graph.add("Div", value, np.array(divisor))

    day = graph.add("Mod", graph.add("Add", days, np.array(MARCH_0)), np.array(ERA))
    leap = graph.add("Sub", graph.add("Add", day, over(day, 36_524)), graph.add("Add", over(day, 1_460), over(day, ERA - 1)))
    year = over(leap, 365)
    begun = graph.add("Sub", graph.add("Mul", year, np.array(365)), over(year, 100))
    of_year = graph.add("Sub", day, graph.add("Add", begun, over(year, 4)))
    from_march = over(graph.add("Add", graph.add("Mul", of_year, np.array(5)), np.array(2)), 153)
    return graph.add("Mod", graph.add("Add", from_march, np.array(2)), np.array(12))


# ---------------------------------------------------------------------- categories


def _categories(graph: Graph, column: Column, value: str) -> str:
    """Return a column of 0 and 1 for each category, for all others, and for missing ones."""
    if column.others > 1:
        raise TypeError(
            f"column {column.name!r} has categories that are hashed, which ONNX cannot do: "
            "name its categories in categorical, or ignore it"
        )
    words = np.array([*column.categories, *([""] if column.gaps else [])], dtype=object)
    own = graph.add("Equal", _upright(graph, value), words[np.newaxis])
    columns = graph.cast(own)
    other = graph.add("Sub", 1.0, graph.add("ReduceMax", columns, np.array([1]), keepdims=1))
    if not column.gaps:
        return graph.beside([columns, other])
    count = len(column.categories)
    parts = [graph.add("Slice", columns, np.array([0]), np.array([count]), np.array([1])), other]
    return graph.beside([*parts, graph.add("Slice", columns, np.array([count]), np.array([count + 1]), np.array([1]))])
