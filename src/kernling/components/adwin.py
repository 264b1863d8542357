"""ADWIN, a detector of changes: the mean of the latest numbers differs from that of those before by more than chance allows.

A. Bifet and R. Gavaldà: Learning from Time-Changing Data with Adaptive Windowing.  SIAM International Conference on Data Mining
(2007).

Numbers from 0 to 1 are summed in buckets of 1, 2, 4, ... of them, at most five of each size, so a window of n numbers takes
memory of the order of log n.  Every 32 numbers, the means before and behind each border of buckets are compared.  As in River,
a window in which a change was found is emptied.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, NamedTuple

import numpy as np

from ..compiler import inline_exact, jit_exact
from ..core.shapes import declared

DELTA = 0.002  # the chance of an alarm without a change, for each window
CLOCK = 32  # numbers between two checks
GRACE = 10  # numbers, up to which nothing is compared
SHORTEST = 5  # part of the window that is compared
BUCKETS = 5  # of a size, before two become one of the next size
ROWS = 53  # sizes: more numbers than can be counted
REACH = 9.0  # mean squared errors, at which a squared error is clipped
FOLLOW = 1e-4  # the least share of an event in the mean squared error
SOON = 4.0  # the share of an event in it, times events: those of the beginning, which are large, are forgotten
WIDTH, TOTAL, VARIANCE, TICK = range(4)  # what record holds: the window's numbers, their sum and squares; the clock
BEFORE, AFTER, CHANCE = range(3)  # what is found: means on both sides of the border, and at most how likely that is by chance


@declared()
class Adwin(NamedTuple):
    totals: Annotated[np.ndarray, "0..1e16: rows buckets"]  # sums of buckets of 1, 2, 4, ... numbers, the oldest of a row first
    counts: Annotated[np.ndarray, f"0..{BUCKETS}: rows"]  # buckets in each row
    record: Annotated[np.ndarray, "counts", "0..1e16", "0..1e16", "counts"]  # see WIDTH and the rest above

    def check(self, dimensions: Mapping[str, int]) -> None:
        """Raise unless the buckets hold as many numbers as there are in the window."""
        if self.counts @ 2.0 ** np.arange(ROWS) != self.record[WIDTH]:
            raise ValueError(f"the buckets of a detector of changes do not hold {self.record[WIDTH]:g} numbers")


def new_adwin() -> Adwin:
    """Return a detector that has seen nothing."""
    return Adwin(np.zeros((ROWS, BUCKETS + 1)), np.zeros(ROWS, np.int64), np.zeros(4))


@inline_exact
def relative(square, unit):
    """A squared error as a number from 0 to 1, given the mean of those before."""
    return min(square / (REACH * unit), 1.0) if unit > 0.0 else 0.0


@inline_exact
def follow_unit(unit, events, square):
    """The running mean of squared errors after one more, with which there are so many events."""
    share = max(FOLLOW, min(1.0, SOON / events))
    most = 100.0 * unit if events > 100.0 else np.inf
    return unit + share * (min(square, most) - unit)


@jit_exact
def watch(adwin, numbers, first, found):
    """Take in numbers from ``first`` on, up to the first alarm; return its index, or -1, and write what was found.

    Examples
    --------
    >>> import numpy as np
    >>> from kernling.components.adwin import new_adwin, watch
    >>> found = np.zeros(3)
    >>> event = watch(new_adwin(), np.repeat([0.1, 0.5], 500), 0, found)
    >>> print(f"{event}: {found[0]:.2f}, {found[1]:.2f}, {found[2]:.0e}")
    543: 0.10, 0.47, 1e-06
    """
    for i in range(first, numbers.size):
        _insert(adwin, numbers[i])
        record = adwin.record
        record[TICK] += 1.0
        if record[TICK] % CLOCK == 0.0 and record[WIDTH] > GRACE and _differs(adwin, found):
            for row in range(ROWS):
                adwin.counts[row] = 0
            for k in range(record.size):
                record[k] = 0.0
            return i
    return -1


@jit_exact
def _insert(adwin, number):
    totals, counts, record = adwin.totals, adwin.counts, adwin.record
    if record[WIDTH] > 0.0:
        difference = number - record[TOTAL] / record[WIDTH]
        record[VARIANCE] += record[WIDTH] * difference * difference / (record[WIDTH] + 1.0)
    record[WIDTH] += 1.0
    record[TOTAL] += number
    row = 0
    while True:
        totals[row, counts[row]] = number
        counts[row] += 1
        if counts[row] <= BUCKETS:
            return
        number = totals[row, 0] + totals[row, 1]
        for k in range(2, BUCKETS + 1):
            totals[row, k - 2] = totals[row, k]
        counts[row] -= 2
        row += 1


@jit_exact
def _differs(adwin, found):
    """Whether the means before and behind a border of buckets differ by more than chance allows; find the clearest one."""
    totals, counts, record = adwin.totals, adwin.counts, adwin.record
    width = record[WIDTH]
    spread = 2.0 * record[VARIANCE] / width
    tries = 2.0 * math.log(width)
    doubt = math.log(tries / DELTA)
    n0, u0, size = 0.0, 0.0, 2.0**ROWS
    found[CHANCE] = 1.0
    differs = False
    for row in range(ROWS - 1, -1, -1):
        size *= 0.5
        for k in range(counts[row]):
            n0 += size
            u0 += totals[row, k]
            n1 = width - n0
            if n0 < SHORTEST or n1 < SHORTEST:
                continue
            before, after = u0 / n0, (record[TOTAL] - u0) / n1
            share = 1.0 / (n0 - SHORTEST + 1.0) + 1.0 / (n1 - SHORTEST + 1.0)
            if abs(before - after) > math.sqrt(spread * share * doubt) + 2.0 / 3.0 * doubt * share:
                # the doubt at which this difference would just be allowed: sqrt(a s) + b s = difference
                root, slope = math.sqrt(spread * share), 2.0 / 3.0 * share
                s = (math.sqrt(root * root + 4.0 * slope * abs(before - after)) - root) / (2.0 * slope)
                chance = min(1.0, tries * math.exp(-s * s))
                if chance < found[CHANCE] or not differs:
                    found[BEFORE], found[AFTER], found[CHANCE] = before, after, chance
                differs = True
    return differs
