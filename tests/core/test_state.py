"""Outputs that are added to arrays."""

from typing import Annotated, NamedTuple

import numpy as np
import pytest

from kernling.core.shapes import declared
from kernling.core.state import Widening, grown


def added(outputs, place):
    return Widening(np.insert(np.arange(outputs), place, -1), np.insert(np.ones(outputs), place, 0.0))


@pytest.mark.parametrize(("shape", "axis"), [((3,), 0), ((3, 4), 0), ((5, 3, 4), 1), ((2, 3, 0), 1), ((2, 2, 3), 2)])
def test_outputs_are_inserted_one_after_another(shape, axis):
    rng = np.random.default_rng(0)
    values = rng.normal(size=shape)
    for outputs in range(3, 20):
        place = int(rng.integers(outputs + 1))
        expected = np.insert(values, place, 0.0, axis)
        values = added(outputs, place).of(values, axis)
        np.testing.assert_array_equal(values, expected)
        assert not np.signbit(values.take(place, axis)).any()
        assert values.flags.c_contiguous


def test_factors():
    np.testing.assert_array_equal(
        Widening(np.array([0, 1, -1, 2]), np.array([1.0, -2.0, 0.0, 1.0])).of(np.arange(3.0)), [0, -2, 0, 2]
    )
    np.testing.assert_array_equal(
        Widening(np.array([0, -1, 0]), np.array([-0.5, 0.0, 0.5])).of(np.array([[4.0, 6.0]])), [[-2, -3], [0, 0], [2, 3]]
    )


@pytest.mark.parametrize("axis", [0, 1])
def test_columns_stay_where_they_are_and_outputs_know_them(axis):
    def added_to(change, values, places):
        return change.columns(values, places, axis), change.places(places)

    def column(place):
        return (slice(None),) * axis + (place,)

    rng = np.random.default_rng(0)
    single = rng.normal(size=(2, 1, 5) if axis else (1, 5))
    coef, places = added_to(Widening(np.array([0, 0, -1]), np.array([-0.5, 0.5, 0.0])), single, np.arange(1))
    expected, copies = np.concatenate([-0.5 * single, 0.5 * single, 0.0 * single], axis), 0
    for outputs in range(3, 100):
        np.testing.assert_array_equal(coef.take(places, axis), expected)
        before = coef, places, expected.copy()
        place = int(rng.integers(outputs + 1))
        coef, places = added_to(added(outputs, place), coef, places)
        expected = np.insert(expected, place, 0.0, axis)
        copies += coef is not before[0]
        coef[column(places[place])] = expected[column(place)] = rng.normal(size=(2, 5) if axis else 5)
        np.testing.assert_array_equal(before[0].take(before[1], axis), before[2])  # the old outputs know nothing of it
        failed = added_to(added(outputs, 0), before[0], before[1])  # after an event that failed, another class
        assert not failed[0][column(failed[1][0])].any()
        if failed[0] is coef:
            coef[column(places[place])] = expected[column(place)]
    assert copies < 20


def test_a_part_with_an_entry_for_each_point_grows_from_the_first_call_on():
    @declared()
    class Part(NamedTuple):
        values: Annotated[np.ndarray, "numbers: stored"]

    class State(NamedTuple):
        part: Part

    assert len(grown(State(Part(np.ones(2))), 5).part.values) == 5
