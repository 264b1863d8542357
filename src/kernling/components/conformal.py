"""How far off predictions are, from the errors before learning: adaptive conformal inference.

I. Gibbs and E. Candès: Adaptive Conformal Inference Under Distribution Shift.  Advances in Neural Information Processing
Systems 34 (2021).

The latest errors are kept in order, and the threshold for a coverage of 1 - a is their quantile at 1 - a_t.  After each event,

    a_t <- a_t + RATE a (a - [the error was above the threshold]),

so that in the long run the share of errors above the thresholds is a, whatever the stream does.

Errors of values are divided by a unit, so that thresholds are low where the model is right: the mean of the latest errors,
times a factor that depends on the prediction, since errors of large values are often large.  Units are learned like the rest,
each after its event.

Departures from the paper, each with its reason:

- Above the largest error, thresholds go on in proportion to 1 - a_t; in the paper they are infinite.
- a_t stays between -1 and (1 + a) / 2: where all errors are 0 it would rise for ever, and a change would be noticed late.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, NamedTuple

import numpy as np

from ..compiler import inline_exact, jit_exact
from ..core.limits import SCORE
from ..core.shapes import declared

LEVELS = (0.5, 0.8, 0.9, 0.95, 0.99)  # coverages that are followed; thresholds for others lie between
WINDOW = 500  # latest errors
RATE = 0.05
RECENT = 0.02  # share of an event in the mean of the latest errors
BINS = 16  # of predictions
FIRM = 20.0  # events that count for a factor of 1 in each bin
FADE = 0.001  # what an event forgets of its bin
REACH = 8.0  # units, at which an error is clipped for the factors
FAR = 100.0  # units, at which it is clipped for the thresholds
GROWTH = 50.0  # of thresholds above the largest error
EVENTS, TOTAL, WEIGHT, MEAN, SQUARES = range(5)  # what record holds: see below
INSIDE, SIZE = range(2)  # what tally holds for each level: errors up to the threshold, and sizes of intervals or sets


@declared()
class Errors(NamedTuple):
    latest: Annotated[np.ndarray, f"0..{FAR}: {WINDOW}"]  # errors in units, as a ring
    ordered: Annotated[np.ndarray, f"0..{FAR}: {WINDOW}"]  # the same, sorted; zeros follow
    allowed: Annotated[np.ndarray, "-1..1: levels"]  # a_t of each level
    # events; the latest errors' sum and weight; mean and squared differences of predictions
    record: Annotated[np.ndarray, "counts", f"0..{SCORE**3}", f"0..{2.0 / RECENT}", f"{-SCORE}..{SCORE}", "not negative"]
    # (2, bins): errors over the mean of the latest ones, and how many; no bins for classes
    factors: Annotated[np.ndarray, f"0..{2.0 * REACH / FADE}: 2 bins"]
    tally: Annotated[np.ndarray, "not negative: levels 2"]  # (levels, 2): see INSIDE and SIZE

    def check(self, dimensions: Mapping[str, int]) -> None:
        """Raise unless the errors in order are the latest ones, and their mean can be computed."""
        n = int(min(self.record[EVENTS], WINDOW))
        if not np.array_equal(np.sort(self.latest[:n]), self.ordered[:n]) or self.ordered[n:].any() or self.latest[n:].any():
            raise ValueError("the sorted errors are not the latest ones")
        if self.record[TOTAL] > 0.0 and self.record[WEIGHT] < 1.0:
            raise ValueError("there are errors without weight")

    @property
    def summary(self) -> list[tuple[float, float, float]]:
        """Each level, the share of targets inside, and the mean size of intervals or sets; NaN before the second event."""
        count = max(self.record[EVENTS] - 1.0, 0.0) or math.nan
        shares = (self.tally / count).tolist()
        return [(level, inside, size) for level, (inside, size) in zip(LEVELS, shares, strict=True)]


def new_errors(of_values: bool) -> Errors:
    """Return the record of a model without events, of values or of classes."""
    n = len(LEVELS)
    return Errors(
        np.zeros(WINDOW),
        np.zeros(WINDOW),
        1.0 - levels(),
        np.zeros(5),
        np.zeros((2, BINS if of_values else 0)),
        np.zeros((n, 2)),
    )


def levels() -> np.ndarray:
    """Return LEVELS for compiled code."""
    return np.array(LEVELS)


@jit_exact
def follow(errors, levels, predicted, found, thresholds):
    """Write the threshold of each level for each prediction, (events, levels), and learn its error, if there are any.

    ``found`` has the errors of the events, or nothing; predictions only matter where there are bins.

    Examples
    --------
    >>> import numpy as np
    >>> from kernling.components.conformal import follow, levels, new_errors
    >>> found = np.abs(np.random.default_rng(0).normal(size=1000))
    >>> thresholds = np.empty((1000, 5))
    >>> follow(new_errors(of_values=True), levels(), np.zeros(1000), found, thresholds)
    >>> print(thresholds[-1].round(1), (found[:, np.newaxis] <= thresholds).mean(axis=0).round(2))
    [0.7 1.4 1.8 2.  2.8] [0.5  0.8  0.9  0.95 0.99]
    """
    record, tally, has_units = errors.record, errors.tally, errors.factors.shape[1] > 0
    for t in range(predicted.size):
        unit, place = 1.0, 0.0
        if has_units:
            place = _place(errors, predicted[t])
            unit = _mean(errors) * _factor(errors, place)
        n = min(int(record[EVENTS]), errors.latest.size)
        for k in range(levels.size):
            thresholds[t, k] = unit * _quantile(errors, n, 1.0 - errors.allowed[k], levels[k]) if n > 0 else np.inf
        if found.size > 0:
            for k in range(levels.size):
                share, inside = 1.0 - levels[k], found[t] <= thresholds[t, k]
                moved = errors.allowed[k] + RATE * share * (share - (0.0 if inside else 1.0))
                errors.allowed[k] = min(max(moved, -1.0), 0.5 + 0.5 * share)
                if n > 0:
                    tally[k, INSIDE] += 1.0 if inside else 0.0
                    tally[k, SIZE] += 2.0 * thresholds[t, k] if has_units else 0.0
            _insert(errors, n, _over(found[t], unit, FAR) if n > 0 or not has_units else 1.0)  # the first one is the unit
            if has_units:
                _learn_unit(errors, place, predicted[t], found[t])
            record[EVENTS] += 1.0


@inline_exact
def _over(error, unit, most):
    """The error in units, clipped; where all errors were 0, a larger one is far."""
    if error < most * unit:
        return error / unit
    return most if error > 0.0 else 0.0


@inline_exact
def _mean(errors):
    """The mean of the latest errors."""
    weight = errors.record[WEIGHT]
    return errors.record[TOTAL] / weight if weight > 0.0 else 0.0


@inline_exact
def _place(errors, predicted):
    """Where a prediction lies between the bins, which are narrow around the mean of all predictions."""
    record = errors.record
    spread = math.sqrt(record[SQUARES] / max(record[EVENTS], 1.0))
    turned = math.tanh(0.8 * (predicted - record[MEAN]) / spread) if spread > 0.0 else 0.0
    return 0.5 * (turned + 1.0) * (errors.factors.shape[1] - 1)


@inline_exact
def _factor(errors, place):
    """The factor of the unit at this place, between those of two bins."""
    i = min(int(place), errors.factors.shape[1] - 2)
    total, weight = errors.factors[0], errors.factors[1]
    left, right = (total[i] + FIRM) / (weight[i] + FIRM), (total[i + 1] + FIRM) / (weight[i + 1] + FIRM)
    return left + (place - i) * (right - left)


@inline_exact
def _quantile(errors, n, level, usual):
    """The quantile of the latest errors; above the largest one, more than that if the level is above the usual one."""
    place = math.ceil(level * (n + 1.0))
    if place > n:
        return errors.ordered[n - 1] * (1.0 + GROWTH * max(level - max(usual, n / (n + 1.0)), 0.0))
    return errors.ordered[int(place) - 1] if place >= 1.0 else 0.0


@inline_exact
def _insert(errors, n, error):
    """Put an error in the place of the oldest one."""
    latest, ordered = errors.latest, errors.ordered
    here = int(errors.record[EVENTS]) % latest.size
    i = n
    if n == latest.size:  # move the larger ones over the oldest
        i = 0
        while ordered[i] != latest[here]:
            i += 1
        while i + 1 < n and ordered[i + 1] < error:
            ordered[i] = ordered[i + 1]
            i += 1
    while i > 0 and ordered[i - 1] > error:
        ordered[i] = ordered[i - 1]
        i -= 1
    ordered[i] = error
    latest[here] = error


@inline_exact
def _learn_unit(errors, place, predicted, error):
    """Learn the mean of the latest errors without the factor, the factor, and where predictions lie."""
    record, factors, mean = errors.record, errors.factors, _mean(errors)
    factor = _factor(errors, place)
    ratio = _over(error, mean, REACH) if mean > 0.0 else 1.0
    i = min(int(place), factors.shape[1] - 2)
    for j in range(i, i + 2):
        share = 1.0 - abs(place - j)
        for k in range(2):
            factors[k, j] = (1.0 - FADE * share) * factors[k, j] + share * (ratio if k == 0 else 1.0)
    record[TOTAL] = (1.0 - RECENT) * record[TOTAL] + error / factor
    record[WEIGHT] = (1.0 - RECENT) * record[WEIGHT] + 1.0
    difference = predicted - record[MEAN]
    record[MEAN] += difference / (record[EVENTS] + 1.0)
    record[SQUARES] += difference * (predicted - record[MEAN])
