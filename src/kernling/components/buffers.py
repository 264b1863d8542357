"""Buffers of events for each side of each output."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import numpy as np

from ..compiler import inline
from ..core.expansion import check_room
from ..core.shapes import declared
from ..core.state import Widening, added
from .pairwise import inherited, quota

if TYPE_CHECKING:
    from ..merging.rules import Merging


@declared()
class Buffers(NamedTuple):
    """Number of events, and features of some of them, for each side of each output."""

    counts: Annotated[np.ndarray, "counts: outputs 2"]
    rows: Annotated[np.ndarray, "coefficients: outputs 2 size features"]

    def widened(self, change: Widening) -> Buffers:
        """Convert to the outputs of ``change``; negative events of a new class come evenly from both sides of an old one."""
        counts, rows = np.zeros((change.outputs, 2)), np.zeros((change.outputs, *self.rows.shape[1:]))
        filled = [self.rows[0, side, : int(self.counts[0, side])] for side in range(2)]
        everything = np.concatenate(filled)
        size = min(len(everything), self.rows.shape[2])
        for p, old in enumerate(inherited(change)):
            if old is None:
                counts[p, 0] = self.counts[0].sum()
                rows[p, 0, :size] = everything[np.arange(size) * len(everything) // max(1, size)]
            else:
                counts[p], rows[p] = self.counts[old[0], :: old[1]], self.rows[old[0], :: old[1]]
        return Buffers(counts, rows)

    def merged(self, other: Buffers, start: Buffers | None, merging: Merging) -> Buffers:
        """Take exchangeable rows of both in proportion to their events: the first of one and the last of the other."""
        size = self.rows.shape[2]
        rows = np.zeros_like(self.rows)
        for place in np.ndindex(*self.counts.shape):
            met = float(self.counts[place]), float(other.counts[place])
            held = int(min(met[0], size)), int(min(met[1], size))
            own = quota(size, *held, met[0] / max(1.0, sum(met)))
            rest = min(size, sum(held)) - own
            rows[place][:own] = self.rows[place][:own]
            rows[place][own : own + rest] = other.rows[place][held[1] - rest : held[1]]
        return Buffers(added(self, other, start, lambda part: part.counts), rows)


def new_buffers(model: Any, size: int) -> Buffers:
    """Return empty buffers for the features of a linear model."""
    outputs, width = model.outputs, model.coef.shape[2]
    check_room(2 * outputs * size, width, "buffered rows")
    return Buffers(np.zeros((outputs, 2)), np.zeros((outputs, 2, size, width)))


@inline
def buffer_row(buffers, o, side, k, z):
    """Write an event with features z to entry k."""
    row = buffers.rows[o, side, k]
    for i in range(row.size):
        row[i] = z[i]


@inline
def buffered(buffers, o, side):
    """Return the number of events in a buffer."""
    return int(min(buffers.counts[o, side], np.float64(buffers.rows.shape[2])))
