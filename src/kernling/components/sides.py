"""Count, mean and example of each side of each output."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import numpy as np

from ..compiler import inline
from ..core.shapes import declared
from ..core.state import Widening, added
from .pairwise import inherited

if TYPE_CHECKING:
    from ..merging.rules import Merging


def pooled_means(own: Any, other: Any, start: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the counts and means of all events of two parts, which have ``counts`` and ``means``."""
    counts = added(own, other, start, lambda part: part.counts)
    sums = added(own, other, start, lambda part: part.counts[..., np.newaxis] * part.means)
    return counts, sums / np.maximum(counts, 1.0)[..., np.newaxis]


def pooled_examples(own: Any, other: Any) -> np.ndarray:
    """Return the examples of the part that has learned more events; parts have ``counts`` and ``examples``."""
    return np.where((other.counts > own.counts)[..., np.newaxis], other.examples, own.examples)


@declared()
class Sides(NamedTuple):
    """Number of events, mean of their features and one example, for each side of each output."""

    counts: Annotated[np.ndarray, "counts: outputs 2"]
    means: Annotated[np.ndarray, "coefficients: outputs 2 means"]  # or without features if a learner does not need them
    examples: Annotated[np.ndarray, "coefficients: outputs 2 examples"]  # the same
    latest: Annotated[np.ndarray, "index of 2 or -1: outputs"]  # side of the example stored last, -1 before the first

    def widened(self, change: Widening) -> Sides:
        """Convert to the outputs of ``change``; all earlier events are negative examples of a new class."""
        outputs = [self._everything() if old is None else self._swapped(*old) for old in inherited(change)]
        return Sides(*(np.stack(parts) for parts in zip(*outputs, strict=True)))

    def _swapped(self, o: int, order: int) -> tuple[np.ndarray, ...]:
        latest = self.latest[o] if order > 0 or self.latest[o] < 0.0 else 1.0 - self.latest[o]
        return self.counts[o, ::order], self.means[o, ::order], self.examples[o, ::order], latest

    def _everything(self) -> tuple[np.ndarray, ...]:
        counts, means, examples = (np.zeros_like(array[0]) for array in self[:3])
        counts[0] = self.counts[0].sum()
        means[0] = self.counts[0] @ self.means[0] / max(1.0, counts[0])
        examples[0] = self.examples[0, int(max(0.0, self.latest[0]))]
        latest = min(0.0, self.latest[0])
        return counts, means, examples, latest

    def merged(self, other: Sides, start: Sides | None, merging: Merging) -> Sides:
        """Return the exact counts and means of all events."""
        larger = other if other.counts.sum() > self.counts.sum() else self
        return Sides(*pooled_means(self, other, start), pooled_examples(self, other), larger.latest)


def new_sides(model: Any, means: bool = True, examples: bool = True) -> Sides:
    """Return empty sides for the outputs of a linear model."""
    outputs, width = model.outputs, model.coef.shape[2]
    of_means, of_examples = np.zeros((outputs, 2, width * means)), np.zeros((outputs, 2, width * examples))
    return Sides(np.zeros((outputs, 2)), of_means, of_examples, np.full(outputs, -1.0))


@inline
def join_mean(mean, z, share):
    """Update a mean with an event with features z and this share."""
    for i in range(mean.size):
        mean[i] += share * (np.float64(z[i]) - mean[i])


@inline
def keep_example(sides, z, o, side):
    """Store an event with features z as the example of its side."""
    example = sides.examples[o, side]
    for i in range(example.size):
        example[i] = z[i]
    sides.latest[o] = side
