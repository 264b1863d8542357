"""Running standardisation of regression targets: each is scaled by the mean and standard deviation of the targets up to it."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from ..compiler import entry_point
from ..components.scaling import MOST, scale_targets


class TargetScale(NamedTuple):
    """Statistics of the targets; a prediction f of a model that learns scaled targets means ``mean + spread * f``."""

    rows: float = 0.0
    mean: float = 0.0
    squares: float = 0.0  # the sum of squared differences from the mean

    @property
    def spread(self) -> float:
        """The standard deviation of the targets so far."""
        return math.sqrt(self.squares / max(self.rows, 1.0))

    def scaled(self, y: Any) -> Any:
        """Return targets on the current scale; all are 0 if the targets have not varied so far."""
        return (y - self.mean) / self.spread if self.spread > 0.0 else 0.0 * y

    def meant(self, scores: Any) -> Any:
        """Return predictions in the units of the targets."""
        return self.mean + self.spread * scores

    def learned(self, y: np.ndarray, weights: np.ndarray) -> tuple[TargetScale, np.ndarray, np.ndarray, np.ndarray]:
        """Return the scale after these targets, each target scaled by those up to it, and mean and spread before each."""
        after, found = np.array(self).reshape(3, 1), np.empty((3, len(y)))
        _entry()(np.ascontiguousarray(y), np.ascontiguousarray(weights), *after, *found)
        return TargetScale(*after[:, 0].tolist()), *found

    def with_one(self, y: float) -> TargetScale:
        """Return the scale after this target."""
        return self.learned(np.array([y]), np.ones(1))[0]  # rounded as for many

    def units_of(self, other: TargetScale) -> tuple[float, float]:
        """Return shift and width of another scale relative to this one: f there is ``shift + width * f`` here."""
        spread = self.spread or 1.0
        return (other.mean - self.mean) / spread, other.spread / spread

    @classmethod
    def from_plain(cls, numbers: list[float]) -> TargetScale:
        """Restore a scale from a list of its numbers."""
        if len(numbers) != 3 or not all(type(number) in (int, float) for number in numbers):
            raise ValueError(f"{numbers!r:.60} is not a scale of targets: it has three numbers")
        scale = cls(*(float(number) for number in numbers))
        if not (0.0 <= scale.rows < math.inf and abs(scale.mean) <= MOST and scale.squares >= 0.0 and scale.spread <= MOST):
            raise ValueError(f"{numbers} is not a valid scale of targets")
        return scale


@cache
def _entry() -> Callable:
    one = np.empty(1)
    return entry_point(scale_targets, *(one,) * 8)


def merged_scale(scales: list[TargetScale], shares: np.ndarray) -> TargetScale:
    """Return the scale on which the mean of two models with these shares needs no constant; a third is that of their start."""
    rows = scales[0].rows + scales[1].rows - sum(start.rows for start in scales[2:])
    mean = float(shares @ [one.mean for one in scales[:2]])
    variance = shares @ [one.spread**2 + (one.mean - mean) ** 2 for one in scales[:2]]
    return TargetScale(rows, mean, float(variance) * rows)
