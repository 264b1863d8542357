"""The latest scores of a one-class model, each computed before its event was learned: the border is a quantile of them.

Early scores belong to a model that has seen little, so only the last fifth of the events counts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, NamedTuple

import numpy as np

from ..compiler import inline
from ..core.shapes import declared
from .pairwise import quota

if TYPE_CHECKING:
    from ..merging.rules import Merging

LENGTH = 1000  # scores behind the border
PARTS = 5  # of all events, of which only the last one counts


@declared()
class RecentScores(NamedTuple):
    """A ring buffer of scores."""

    ring: Annotated[np.ndarray, "coefficients: ring"]  # or empty where nobody asks for the scores
    # scores so far, those that the ring has lost included
    count: Annotated[np.ndarray, "counts: 1"]  # type: ignore[assignment]

    def check(self, dimensions: Mapping[str, int]) -> None:
        """Raise if there were scores where none are kept."""
        if self.count[0] and not len(self.ring):
            raise ValueError(f"{self.count[0]:g} scores were counted, but none are kept")

    def latest(self) -> np.ndarray:
        """Return the scores of the last fifth of the events, as far as they are stored, oldest first."""
        count = int(self.count[0])
        return self.ring[np.arange(count - latest_count(count), count) % LENGTH]

    def merged(self, other: RecentScores, start: RecentScores | None, merging: Merging) -> RecentScores:
        """Return the latest scores of both."""
        both = new_scores(len(self.ring) > 0)
        a, b = self.latest(), other.latest()
        most = len(both.ring) // PARTS
        own = quota(most, len(a), len(b), merging.shares[0])
        kept = np.concatenate([a[len(a) - own :], b[len(b) - min(most - own, len(b)) :]])
        both.ring[(PARTS - 1) * len(kept) : PARTS * len(kept)] = kept
        both.count[0] = PARTS * len(kept)
        return both


def latest_count(count: int) -> int:
    """Return how many of the scores so far determine the border."""
    return min(LENGTH, count - (PARTS - 1) * count // PARTS)


def border(ordered: Sequence[float], contamination: float) -> float:
    """Return the score below which this share of further events is expected, given sorted scores of earlier ones.

    Of n earlier scores and a new one, each is equally likely to be the k-th: it is below the k-th of the others with
    probability k / (n + 1), between which scores are interpolated.
    """
    place = min(max(contamination * (len(ordered) + 1) - 1.0, 0.0), len(ordered) - 1.0)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return float(ordered[low] + (place - low) * (ordered[high] - ordered[low]))


def new_scores(kept: bool) -> RecentScores:
    """Return an empty ring buffer, of length 0 if no scores are stored."""
    return RecentScores(np.zeros(LENGTH if kept else 0), np.zeros(1))


@inline
def keep_score(recent, score):
    """Store the score of an event, replacing the oldest."""
    if recent.ring.size > 0:
        recent.ring[int(recent.count[0]) % recent.ring.size] = score
        recent.count[0] += 1.0
