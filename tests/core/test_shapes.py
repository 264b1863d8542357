"""Declarations of arrays, and states that are not as declared."""

from typing import Annotated, NamedTuple

import numpy as np
import pytest

import checks
from kernling.core.shapes import declared, verify
from kernling.core.state import grown, trimmed
from oracles import CASES, stream

DIMENSIONS = {"stored": 4, "columns": 3, "outputs": 2, "classes": 2}


@declared(lengths={"count": ("most", 0)})
class Inner(NamedTuple):
    held: Annotated[np.ndarray, "index of stored or -1: count own"]
    most: Annotated[np.ndarray, "counts", "settings"]


@declared()
class Outer(NamedTuple):
    points: Annotated[np.ndarray, "rows: stored columns"]
    matrix: Annotated[np.ndarray, "positive: outputs*stored"]
    chances: Annotated[np.ndarray, "shares: own"]
    inner: Inner

    def check(self, dimensions):
        if self.points[0, 0] == 42.0:
            raise ValueError("no declaration can say this")


def state(stored=4, count=2):
    held = np.arange(2 * count).reshape(count, 2) % 4
    return Outer(np.zeros((stored, 3)), np.ones(8), np.full(2, 0.5), Inner(held, np.array([count, 5])))


EMPTY = state(0, 0)._replace(inner=Inner(np.zeros((0, 2), np.int64), np.array([0, 5])))


def test_what_is_as_declared():
    verify(state(), EMPTY, DIMENSIONS)


def outer(**changes):
    return lambda whole: whole._replace(**changes)


def inner(**changes):
    return lambda whole: whole._replace(inner=whole.inner._replace(**changes))


WRONG = {
    "a point too many": (
        lambda whole: whole._replace(points=np.zeros((5, 3))),
        r"state\.points has the shape \(5, 3\), but \(4, 3\)",
    ),
    "a flat matrix of another size": (
        lambda whole: whole._replace(matrix=np.ones(6)),
        r"matrix has the shape \(6,\), but \(8,\)",
    ),
    "a length that an array says": (inner(most=np.array([3, 5])), r"inner\.held has the shape \(2, 2\), but \(3, 2\)"),
    "an own dimension": (inner(held=np.zeros((2, 3), np.int64)), r"inner\.held has the shape \(2, 3\), but \(2, 2\)"),
    "a setting": (inner(most=np.array([2, 6])), r"inner\.most is \[2, 6\], but \[0, 5\] follows from the parameters"),
    "an index too large": (inner(held=np.full((2, 2), 4)), "held has the number 4, .* from -1 to 3"),
    "an index too small": (inner(held=np.full((2, 2), -2)), "held has the number -2"),
    "half a count": (inner(most=np.array([2.5, 5.0])), "not whole"),
    "no number": (outer(points=np.full((4, 3), np.nan)), "points has the number nan"),
    "a row too far away": (outer(points=np.full((4, 3), 1e155)), "points has the number 1e"),
    "nothing positive": (outer(matrix=np.zeros(8)), "matrix has the number 0, .* positive"),
    "shares of more than all": (outer(chances=np.full(2, 0.6)), "chances has the sum 1.2"),
    "what a part says itself": (outer(points=np.full((4, 3), 42.0)), "no declaration"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_not_as_declared(name):
    change, message = WRONG[name]
    with pytest.raises(ValueError, match=message):
        verify(change(state()), EMPTY, DIMENSIONS)


def test_a_part_that_is_not_used_is_empty():
    @declared(used="record")
    class Part(NamedTuple):
        matrix: Annotated[np.ndarray, "numbers: stored stored"]
        record: Annotated[np.ndarray, "counts: record"]

    unused = Part(np.zeros((0, 0)), np.zeros(0))
    verify(unused, unused, DIMENSIONS)
    with pytest.raises(ValueError, match=r"matrix has the shape \(4, 4\), but \(0, 0\)"):
        verify(Part(np.zeros((4, 4)), np.zeros(0)), unused, DIMENSIONS)


def declarations(part, name):
    """Every array of a state with its declaration, or None."""
    arrays = getattr(type(part), "ARRAYS", None)
    for field, value in zip(part._fields, part, strict=True):
        if isinstance(value, np.ndarray):
            yield f"{name}.{field}", value, arrays and arrays.arrays.get(field)
        else:
            yield from declarations(value, f"{name}.{field}")


@pytest.mark.parametrize("cls", checks.estimators(), ids=lambda cls: cls.__name__)
def test_all_arrays_are_declared(cls):
    case = CASES[cls.__name__][0]
    X, y = stream(case.stream, 30)
    model = checks.learn(checks.make(cls, case), X, y)
    for name, array, entry in declarations(model.state_, "state"):
        assert entry is not None, name
        assert len(entry.shape) == array.ndim, name
    model.verify_state()


@declared(used="record")
class PerPoint(NamedTuple):
    matrix: Annotated[np.ndarray, "numbers: stored stored"]
    scores: Annotated[np.ndarray, "numbers: outputs stored"]
    record: Annotated[np.ndarray, "counts: record"]


class Points(NamedTuple):
    stored: int


class Whole(NamedTuple):
    model: Points
    needed: PerPoint
    unused: PerPoint


def test_parts_grow_and_shrink_as_declared():
    needed = PerPoint(np.ones((2, 2)), np.ones((3, 2)), np.ones(1))
    unused = PerPoint(np.empty((0, 0)), np.empty((3, 0)), np.empty(0))
    wider = grown(Whole(Points(2), needed, unused), 5)
    assert [array.shape for array in (*wider.needed, *wider.unused)] == [(5, 5), (3, 5), (1,), (0, 0), (3, 0), (0,)]
    assert wider.needed.matrix.sum() == 4.0
    again = trimmed(wider)
    for part, same in zip((*again.needed, *again.unused), (*needed, *unused), strict=True):
        assert np.array_equal(part, same)
