"""A few of the latest rows, as they came: what is usual now, for explanations.

At first each row is kept in the place of the oldest, later every second, fourth, eighth and sixteenth one: rows next to each
other are often alike.  Only the number of events matters, not how they are divided among calls.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from ..compiler import jit_exact
from ..core.shapes import declared
from ..core.state import added

if TYPE_CHECKING:
    from ..merging.rules import Merging

MOST = 64  # rows
ROOM = 2**16  # numbers that they may take: of wide rows, fewer are kept
STEP = 16  # events between two rows that are kept, at most


@declared()
class Latest(NamedTuple):
    rows: Annotated[np.ndarray, "rows: latest columns"]
    count: Annotated[np.ndarray, "counts: 1"]  # type: ignore[assignment]  # events so far

    @property
    def held(self) -> np.ndarray:
        """The rows that are held."""
        return self.rows[: int(self.count[0])]

    def merged(self, other: Latest, start: Latest | None, merging: Merging) -> Latest:
        """Return rows of both, as many of each as fit."""
        n = len(self.rows)
        both = np.concatenate([self.held, other.held])
        rows = np.zeros_like(self.rows)
        rows[: len(both)] = both if len(both) <= n else both[np.linspace(0, len(both) - 1, n).astype(np.intp)]
        return Latest(rows, added(self, other, start, lambda latest: latest.count).astype(np.int64))


def new_latest(d: int, dtype: DTypeLike) -> Latest:
    """Return the initial state for rows of d columns."""
    return Latest(np.zeros((max(1, min(MOST, ROOM // d)), d), dtype), np.zeros(1, np.int64))


@jit_exact
def keep_latest(latest, X, weights):
    """Keep rows of positive weight where it is their turn."""
    most = latest.rows.shape[0]
    for j in range(X.shape[0]):
        if weights[j] > 0.0:
            n, step = latest.count[0], 1
            while step < STEP and n >= 2 * step * most:
                step *= 2
            if n % step == 0:
                place = (n // step) % most
                for c in range(X.shape[1]):
                    latest.rows[place, c] = X[j, c]
            latest.count[0] = n + 1
