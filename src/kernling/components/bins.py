"""Least squares on step functions of single columns, for borders along the axes, where trees are strong.

The features of a row x are 1 and, for each of some pairs of a column c and an edge e, whether x_c > e: a weight is the height
of a step.  Edges are quantiles of the first events, up to 15 per column, fewer if there are many columns, none if there are
more than 128.  They are halfway to the next larger value: an edge that is a value of many rows would be a matter of rounding.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, NamedTuple

import numpy as np

from ..compiler import jit_exact
from ..core.shapes import declared
from ..core.state import Widening
from . import least_squares
from .least_squares import EVENTS, LeastSquares, Ridge, new_least_squares

if TYPE_CHECKING:
    from ..merging.rules import Merging

BINS = 16  # of a column at most
MOST = 128  # edges of all columns
SAME = 1e-6  # of the range of a column: values that differ by less may be the same up to rounding
NEVER = np.finfo(np.float64).max  # an edge that is not in use: no row may be so large


@declared()
class Bins(NamedTuple):
    columns: Annotated[np.ndarray, "index of columns: edges"]  # the column of each edge
    edges: Annotated[np.ndarray, "numbers: edges"]  # NEVER where there is none
    sums: LeastSquares

    def grown(self, capacity: int) -> Bins:
        """Return a copy with room for all features."""
        return self._replace(sums=self.sums.grown(capacity))

    def trimmed(self, size: int) -> Bins:
        """Return a copy without room for more features and events."""
        return self._replace(sums=self.sums.trimmed(size))

    def ordered(self) -> Bins:
        """Return a copy with the outputs in the order of the labels."""
        return self._replace(sums=self.sums.ordered())

    def widened(self, change: Widening) -> Bins:
        """Convert to the outputs of ``change``."""
        return self._replace(sums=self.sums.widened(change))

    def merged(self, other: Bins, start: Bins | None, merging: Merging) -> Bins:
        """Return the sums of both, with the edges of the one that learned more; others move to the nearest of their column.

        Events of a common start that had other edges cannot be subtracted, and count twice.
        """
        common = max(self, other, key=lambda bins: bins.sums.record[EVENTS])
        begun = start if start is not None and all(bins.has_edges_of(start) for bins in (self, other)) else None
        sums = self.moved(common).sums.merged(other.moved(common).sums, begun and begun.sums, merging)
        return common._replace(sums=sums)

    def has_edges_of(self, other: Bins) -> bool:
        """Return whether all edges are the same."""
        return np.array_equal(self.edges, other.edges) and np.array_equal(self.columns, other.columns)

    def moved(self, common: Bins) -> Bins:
        """Return the same with other edges."""
        if self.has_edges_of(common):
            return self
        turn = np.zeros((len(self.edges) + 1, self.sums.count))
        turn[0, :1] = 1.0
        for i in np.flatnonzero(self.edges[: max(self.sums.count - 1, 0)] < NEVER):
            known = np.flatnonzero((common.columns == self.columns[i]) & (common.edges < NEVER))
            if len(known):
                turn[1 + known[np.abs(common.edges[known] - self.edges[i]).argmin()], 1 + i] = 1.0
        return common._replace(sums=least_squares.turned(self.sums, turn))


def _room(d: int) -> int:
    return min((BINS - 1) * d, MOST)


def new_bins(ridge: Ridge, d: int, outputs: int) -> Bins:
    """Return the expert without edges, for d columns."""
    n = _room(d)
    return Bins(np.zeros(n, np.int64), np.full(n, NEVER), new_least_squares(ridge, 1 + n, 0, outputs))


def place_edges(expert: Bins, X: np.ndarray) -> None:
    """Replace the edges by quantiles of these rows: as many for each column as there is room for, without repetitions."""
    ordered = np.sort(X, axis=0).astype(np.float64)
    n, same = len(X), SAME * (ordered[-1] - ordered[0])
    for bins in range(BINS, 1, -1):
        quantiles = ordered[(np.arange(1, bins) * n + bins - 1) // bins - 1]
        used = quantiles < ordered[-1] - same
        used[1:] &= quantiles[1:] > quantiles[:-1] + same
        if (count := np.count_nonzero(used)) <= len(expert.edges):
            break
    else:
        return
    expert.columns[:], expert.edges[:] = 0, NEVER
    expert.columns[:count] = columns = np.nonzero(used.T)[0]
    below = quantiles.T[used.T]
    places = [np.searchsorted(ordered[:, c], value + same[c], "right") for c, value in zip(columns, below, strict=True)]
    expert.edges[:count] = 0.5 * below + 0.5 * ordered[places, columns]


@jit_exact
def write_features(bins, X, Z):
    """Write the features of rows, (1 + edges, rows)."""
    for j in range(X.shape[0]):
        Z[0, j] = 1.0
        for i in range(bins.edges.size):
            Z[1 + i, j] = 1.0 if X[j, bins.columns[i]] > bins.edges[i] else 0.0
