"""Outputs that are added to arrays, in spare room."""

import numpy as np
import pytest

from kernling.core.state import Spare, Widening


def added(outputs, place):
    return Widening(np.insert(np.arange(outputs), place, -1), np.insert(np.ones(outputs), place, 0.0))


@pytest.mark.parametrize(("shape", "axis"), [((3,), 0), ((3, 4), 0), ((5, 3, 4), 1), ((2, 3, 0), 1), ((2, 2, 3), 2)])
def test_outputs_are_inserted_one_after_another(shape, axis):
    rng = np.random.default_rng(0)
    values = rng.normal(size=shape)
    expected, memories = values.copy(), []
    for outputs in range(3, 60):
        place = int(rng.integers(outputs + 1))
        values, expected = added(outputs, place).of(values, axis), np.insert(expected, place, 0.0, axis)
        np.testing.assert_array_equal(values, expected)
        assert values.flags.c_contiguous
        assert type(values) is np.ndarray
        memories.append(values.base)
    assert len({id(memory) for memory in memories}) < 20, "mostly in the memory that is there"


def test_arrays_that_have_no_room_are_left_alone():
    wider = added(3, 1).of(np.ones((2, 3)), 1)
    for values in (np.ones((2, 4)), wider.copy(), wider[:, :], wider[:1], wider.T):
        assert not isinstance(values.base, Spare)
        before = values.copy()
        added(values.shape[1], 0).of(values, 1)
        np.testing.assert_array_equal(values, before)


def test_factors():
    values = added(3, 3).of(np.arange(3.0))  # with room
    np.testing.assert_array_equal(
        Widening(np.array([0, 1, -1, 2, 3]), np.array([1.0, -2.0, 0.0, 1.0, 1.0])).of(values), [0, -2, 0, 2, 0]
    )
    np.testing.assert_array_equal(
        Widening(np.array([0, -1, 0]), np.array([-0.5, 0.0, 0.5])).of(np.array([[4.0, 6.0]])), [[-2, -3], [0, 0], [2, 3]]
    )
