"""Whether the distribution of a column has changed: each window of events against all of those before.

The first window of a column settles its bins, between the deciles of its values; values that are a decile themselves, as
codes of categories often are, have bins of their own, and so do missing ones.  Later windows are compared with the counts of
the windows before by Pearson's statistic for two samples, divided by its degrees of freedom.  Neighbours in a stream are often
alike, so that windows differ by more than chance: the statistic is therefore divided by its mean over earlier windows, and its
tail is that of an F distribution whose degrees of freedom follow from the mean and variance of earlier windows:

F. E. Satterthwaite: An Approximate Distribution of Estimates of Variance Components.  Biometrics Bulletin 2 (1946).

Where neighbours are very much alike, a window of 400 events is worth few independent ones, so tails are heavier still: the
statistic must also be four times the largest one so far.  The mean statistic of the first windows says how many events are
worth one; where it is large, several windows are taken as one.  A column that has moved begins anew with the next window.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, NamedTuple

import numpy as np

from ..compiler import jit_exact
from ..core.shapes import declared

WINDOW = 400  # events
DECILES = np.arange(0.1, 0.95, 0.1)
EDGES = 2 * len(DECILES) + 1  # the least value of each bin but the first
BINS = EDGES + 1
MISSING = 1e308  # stands for a value that is missing: above all others, which are limited
WIDEST = 1000  # columns, up to which they are watched
LEVEL = 1e-4  # the chance that any column of a window seems to have moved, without a change
MATURE = 8  # windows that a column has been compared with before it may move
LEAST = 5.0  # events expected in a bin, below which it counts for less
ABOVE, ABOVE_LONGER = 4.0, 6.0  # times the largest statistic so far, which a window must exceed; one of several windows
CROWDED = 5.0  # times chance, by which windows may differ on average before several are taken as one
LONGEST = 8.0  # windows that are
COUNT, TOTAL, SQUARES, LARGEST, SHARES, LENGTH, PARTS = range(7)  # what usual holds of each column: see below
WATCHED, FILLED = range(2)  # what size holds


class Moved(NamedTuple):
    """A column whose distribution differs from that of the events before."""

    column: int
    share: float  # of its values that lie in other bins than before
    usual: float  # mean of this share in the windows before
    chance: float  # at most how likely that is without a change


@declared(lengths={"watched": ("size", WATCHED)})
class Columns(NamedTuple):
    size: Annotated[np.ndarray, "counts", f"index of {WINDOW}"]  # columns, and events in the window
    latest: Annotated[np.ndarray, f"numbers: {WINDOW} watched"]  # the window
    edges: Annotated[np.ndarray, f"numbers: watched {EDGES}"]  # of bins
    # events in each bin, without those of the window; none before the first window
    past: Annotated[np.ndarray, f"counts: watched {BINS}"]
    # the same of the windows that are going to be compared as one
    recent: Annotated[np.ndarray, f"0..{WINDOW * LONGEST}: watched {BINS}"]
    # windows compared; sum, squares and largest of their statistics; sum of their shares; how many are one, and are in recent
    usual: Annotated[np.ndarray, "0..1e30: watched 7"]

    def check(self, dimensions: Mapping[str, int]) -> None:
        """Raise unless edges are in order."""
        if (np.diff(self.edges, axis=1) < 0.0).any():
            raise ValueError("the edges of the bins of columns are not in order")

    @property
    def number(self) -> int:
        """Number of columns that are watched."""
        return int(self.size[WATCHED])


def new_columns(number: int) -> Columns:
    """Return the record of so many columns without events."""
    number = number if number <= WIDEST else 0
    return Columns(
        np.array([number, 0.0]),
        np.zeros((WINDOW, number)),
        np.zeros((number, EDGES)),
        np.zeros((number, BINS)),
        np.zeros((number, BINS)),
        np.zeros((number, 7)) + (np.arange(7) == LENGTH),
    )


def watch_rows(columns: Columns, rows: np.ndarray) -> list[tuple[int, list[Moved]]]:
    """Take in rows, NaN where a value is missing; return the indices of those after which columns have moved, and which.

    Examples
    --------
    >>> import numpy as np
    >>> from kernling.components.columns import new_columns, watch_rows
    >>> X = np.random.default_rng(0).normal(size=(8000, 3))
    >>> X[6000:, 1] += 2.0
    >>> for place, moved in watch_rows(new_columns(3), X):
    ...     print(place, [(one.column, round(one.share, 2)) for one in moved])
    6399 [(1, 0.68)]
    """
    found, first = [], 0
    while columns.number and first < len(rows):
        filled = int(columns.size[FILLED])
        part = rows[first : first + WINDOW - filled]
        place = slice(filled, filled + len(part))
        columns.latest[place] = np.where(np.isnan(part), MISSING, part)
        first += len(part)
        columns.size[FILLED] = place.stop % WINDOW
        if place.stop == WINDOW:
            moved = _compared(columns)
            if moved:
                found.append((first - 1, moved))
    return found


def _compared(columns: Columns) -> list[Moved]:
    """Compare windows that are complete with those before, and add them; return the columns that have moved, farthest first.

    A column whose windows differ by much more than chance, though nothing changes, is given longer ones, and begins anew.
    """
    usual, known = columns.usual, columns.past.any(axis=1)
    count(columns.latest, columns.edges, columns.recent)
    usual[:, PARTS] += 1.0
    full = known & (usual[:, PARTS] >= usual[:, LENGTH])
    statistic, share = _statistics(columns.recent, columns.past)
    chance = _chances(statistic, usual)
    above = np.where(usual[:, LENGTH] > 1.0, ABOVE_LONGER, ABOVE)
    clear = (statistic > above * usual[:, LARGEST]) & (chance * columns.number < LEVEL)
    moved = full & clear & (usual[:, COUNT] >= MATURE)
    each = [
        Moved(c, float(share[c]), float(usual[c, SHARES] / usual[c, COUNT]), float(min(1.0, chance[c] * columns.number)))
        for c in np.flatnonzero(moved).tolist()
    ]
    stays = full & ~moved
    for place, more in ((COUNT, 1.0), (TOTAL, statistic), (SQUARES, statistic**2), (SHARES, share)):
        usual[:, place] += stays * more
    usual[stays, LARGEST] = np.maximum(usual[stays, LARGEST], statistic[stays])
    columns.past[stays] += columns.recent[stays]
    columns.past[moved] = 0.0
    longer = stays & (usual[:, LENGTH] == 1.0) & (usual[:, COUNT] == MATURE) & (usual[:, TOTAL] > MATURE * CROWDED)
    length = np.clip(np.ceil(usual[:, TOTAL] / (MATURE * CROWDED)), 1.0, LONGEST)
    usual[moved | longer, :LENGTH] = 0.0
    usual[longer, LENGTH] = length[longer]
    usual[moved, LENGTH] = 1.0
    new = np.flatnonzero(~known)
    if len(new):
        columns.edges[new] = _edges(columns.latest[:, new])
        own = np.zeros((len(new), BINS))
        count(np.ascontiguousarray(columns.latest[:, new]), columns.edges[new], own)
        columns.past[new] = own
    done = full | ~known
    columns.recent[done], usual[done, PARTS] = 0.0, 0.0
    return sorted(each, key=lambda one: (-one.share, one.column))


def _edges(values: np.ndarray) -> np.ndarray:
    """Return the edges of bins, (columns, EDGES): each decile, the next number above it, and that of missing values."""
    marks = np.quantile(values, DECILES, axis=0, method="inverted_cdf").T
    pairs = np.stack([marks, np.nextafter(marks, np.inf)], axis=2)
    return np.sort(np.hstack([pairs.reshape(len(marks), -1), np.full((len(marks), 1), MISSING)]), axis=1)


def _statistics(counts: np.ndarray, past: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return Pearson's statistic of each column over its degrees of freedom, and the share of values in other bins."""
    before, now = (np.maximum(part.sum(axis=1, keepdims=True), 1.0) for part in (past, counts))
    expected = now * (past + counts) / (before + now)
    terms = np.square(counts - expected) / np.maximum(expected, LEAST)
    freedom = np.maximum(np.minimum(expected / LEAST, 1.0).sum(axis=1) - 1.0, 1.0)
    statistic = terms.sum(axis=1) * (1.0 + (now / before)[:, 0]) / freedom
    return statistic, 0.5 * np.abs(counts / now - past / before).sum(axis=1)


def _chances(statistic: np.ndarray, usual: np.ndarray) -> np.ndarray:
    """Return how likely statistics of this size are, given those of earlier windows."""
    from scipy.special import fdtrc  # slow to import

    windows = np.maximum(usual[:, COUNT], 1.0)
    mean = usual[:, TOTAL] / windows
    variance = np.maximum(usual[:, SQUARES] / windows - mean**2, 0.0)
    freedom = np.divide(2.0 * mean**2, variance, out=np.full(len(mean), np.inf), where=variance > 0.0)
    freedom = np.clip(freedom, 1.0, len(DECILES))
    ratio = np.divide(statistic, mean, out=np.where(statistic > 0.0, np.inf, 0.0), where=mean > 0.0)
    return fdtrc(freedom, windows * freedom, ratio)


@jit_exact
def count(rows, edges, counts):
    """Count the values of each column in its bins."""
    for t in range(rows.shape[0]):
        for c in range(rows.shape[1]):
            value, place = rows[t, c], 0
            for k in range(edges.shape[1]):
                if edges[c, k] <= value:
                    place += 1
            counts[c, place] += 1.0
