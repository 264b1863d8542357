"""The detector of changes: alarms are those of River, and of the slow version in tests/oracles/auto.py."""

import numpy as np
import pytest
from river.drift import ADWIN

from kernling.components.adwin import new_adwin, watch
from oracles.auto import Adwin


def numbers(seed: int) -> np.ndarray:
    """Means that change some times, of 0 and 1 or of numbers between them."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(20, 3000, rng.integers(1, 6))
    return np.concatenate(
        [(rng.random(n) < rng.random()) if seed % 2 else rng.beta(*rng.uniform(0.2, 5.0, 2), n) for n in sizes]
    )


def watched(adwin, values: np.ndarray, first: int = 0) -> tuple[int, np.ndarray]:
    found = np.zeros(3)
    return watch(adwin, values, first, found), found


def alarms(values: np.ndarray) -> list[tuple[int, float, float]]:
    adwin, found, first = new_adwin(), [], 0
    while first < len(values):
        place, (before, after, chance) = watched(adwin, values, first)
        if place < 0:
            break
        assert 0.0 <= chance < 0.002
        found.append((place, before, after))
        first = place + 1
    return found


def test_alarms_are_those_of_river():
    count = 0
    for seed in range(12):
        values = numbers(seed).astype(float)
        river, expected = ADWIN(), []
        for i, value in enumerate(values):
            river.update(value)
            if river.drift_detected:
                expected.append(i)
        assert [event for event, _, _ in alarms(values)] == expected
        count += len(expected)
    assert count > 20


@pytest.mark.parametrize("seed", [2, 3])
def test_means_on_both_sides_are_those_of_the_slow_version(seed):
    values = numbers(seed).astype(float)
    slow, found = Adwin(), []
    for i, value in enumerate(values):
        rises, before, after = slow.rises(value)
        if before != after:
            assert rises == (after > before)
            found.append((i, before, after))
    assert found
    np.testing.assert_allclose(alarms(values), found)


def test_a_mean_that_stays_gives_hardly_an_alarm():
    values = (np.random.default_rng(0).random(1_000_000) < 0.1).astype(float)
    assert len(alarms(values)) <= 2


def test_numbers_may_come_in_parts():
    values = numbers(5).astype(float)
    whole, parts = new_adwin(), new_adwin()
    first = alarms(values)[0][0]
    watched(whole, values[:first])
    for part in np.array_split(values[:first], 7):
        assert watched(parts, part)[0] == -1
    for own, other in zip(whole, parts, strict=True):
        np.testing.assert_array_equal(own, other)
    assert watched(parts, values, first)[0] == first
