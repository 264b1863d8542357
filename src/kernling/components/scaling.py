"""Running standardisation: each row is scaled by the mean and spread of the rows up to and including it.

Scaling a row that is not learned takes it in for the moment, as if it were the next one: what is predicted of a row does not
depend on whether it is about to be learned.  Scaled numbers are at most ``REACH`` deviations from the mean, and further ones
are learned as if they were so far away: one absurd number spoils neither its column nor an expert.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, NamedTuple

import numpy as np

from ..compiler import inline_exact, jit_exact
from ..core.limits import LARGEST
from ..core.shapes import declared
from ..core.state import added

if TYPE_CHECKING:
    from ..merging.rules import Merging

ENOUGH = 30  # rows before one can be called an outlier
REACH = 5.0  # deviations from the mean, at which numbers are clipped
MOST = LARGEST["float64"]  # what a scale that comes from outside may be made of: beyond, nothing behind it would be finite
WIDEST = 2.0  # spreads of columns, of which all numbers are at most MOST
KINDS = ZERO_OR_ONE, UNIT, ANY = range(3)  # what all values of a column have been: 0 or 1, from 0 to 1, or anything


@inline_exact
def welford(value, count, mean, squares):
    """Mean and sum of squares once this value, the count-th, is among them (Welford, Technometrics, 1962)."""
    difference = value - mean
    mean += difference / count
    return mean, squares + difference * (value - mean)


@inline_exact
def _kind_of(value):
    if value == 0.0 or value == 1.0:
        return ZERO_OR_ONE
    return UNIT if 0.0 < value < 1.0 else ANY


@inline_exact
def as_they_are(kind):
    """Return the last kind of columns that are not scaled: all while values are in [0, 1], then those of 0 and 1."""
    widest = ZERO_OR_ONE
    for j in range(kind.size):
        widest = max(widest, kind[j])
    return UNIT if widest <= UNIT else ZERO_OR_ONE


@jit_exact
def standardise(X, count, mean, squares, kind, clip, out):
    """Learn and scale row by row, but for columns that stay as they are.

    Values more than ``clip`` deviations away count as if they were so far away, once there are enough rows to tell.
    """
    clipped_rows = 0
    for i in range(X.shape[0]):
        clipped = 0
        reach = clip if count >= ENOUGH else np.inf
        count += 1.0
        for j in range(X.shape[1]):
            kind[j] = max(kind[j], _kind_of(X[i, j]))
        as_is = as_they_are(kind)
        for j in range(X.shape[1]):
            value = X[i, j]
            if kind[j] <= as_is:
                mean[j], squares[j] = welford(value, count, mean[j], squares[j])
                out[i, j] = value
                continue
            if reach < np.inf and squares[j] > 0.0:
                far = reach * np.sqrt(squares[j] / (count - 1.0))
                value = min(max(value, mean[j] - far), mean[j] + far)
                if value != X[i, j]:
                    clipped = 1
            mean[j], squares[j] = welford(value, count, mean[j], squares[j])
            spread = np.sqrt(squares[j] / count)
            out[i, j] = min(max((value - mean[j]) / spread, -clip), clip) if spread > 0.0 else 0.0
        clipped_rows += clipped
    return count, clipped_rows


def standardise_column(
    values: np.ndarray, count: float, mean: float, squares: float
) -> tuple[np.ndarray, tuple[float, float, float]]:
    """Learn and scale the values of a column; return them, clipped, and its statistics after them."""
    out, means, sums = np.empty((len(values), 1)), np.array([mean]), np.array([squares])
    count, _ = standardise(np.array(values[:, np.newaxis]), count, means, sums, np.array([float(ANY)]), REACH, out)
    return out[:, 0], (float(count), float(means[0]), float(sums[0]))


def stay(kind: np.ndarray) -> np.ndarray:
    """Return a mask of the columns that are not scaled, see ``as_they_are``."""
    return kind <= (UNIT if kind.max(initial=ZERO_OR_ONE) <= UNIT else ZERO_OR_ONE)


@declared()
class Scales(NamedTuple):
    """Statistics of the columns, for a model that standardises them itself."""

    count: Annotated[np.ndarray, "counts: 1"]  # type: ignore[assignment]  # rows learned
    clipped: Annotated[np.ndarray, "counts: 1"]  # rows in which a number was clipped
    mean: Annotated[np.ndarray, f"{-MOST}..{MOST}: scaled"]
    squares: Annotated[np.ndarray, "not negative: scaled"]  # sums of squared differences from the mean
    kind: Annotated[np.ndarray, f"{ZERO_OR_ONE}..{ANY}: scaled"]  # see ZERO_OR_ONE and the rest above

    def check(self, dimensions: Mapping[str, int]) -> None:
        """Raise if a column varies by more than rows can."""
        spread = np.sqrt(self.squares / max(self.count[0], 1.0)).max()
        if spread > WIDEST * MOST:
            raise ValueError(f"a column of the scales has the spread {spread:g}, but at most {WIDEST * MOST:g}")

    def stays(self) -> np.ndarray:
        """Return a mask of the columns that are not scaled."""
        return stay(self.kind)

    def merged(self, other: Scales, start: Scales | None, merging: Merging) -> Scales:
        """Return the scales of the rows of both."""
        count = added(self, other, start, lambda scales: scales.count)
        clipped = added(self, other, start, lambda scales: scales.clipped)
        sums = added(self, other, start, lambda scales: scales.count * scales.mean)
        squares = added(self, other, start, lambda scales: scales.squares + scales.count * scales.mean**2)
        mean = sums / np.maximum(count, 1.0)
        return Scales(count, clipped, mean, np.maximum(squares - count * mean**2, 0.0), np.maximum(self.kind, other.kind))


def new_scales(d: int) -> Scales:
    """Return the initial statistics."""
    return Scales(np.zeros(1), np.zeros(1), np.zeros(d), np.zeros(d), np.zeros(d, np.int64))


def rows_as_known(scales: Scales, X: np.ndarray) -> np.ndarray:
    """Return rows on the current scales."""
    spread = np.sqrt(scales.squares / max(scales.count[0], 1.0))
    varies = spread > 0.0
    scaled = np.where(varies, np.clip((X - scales.mean) / np.where(varies, spread, 1.0), -REACH, REACH), 0.0)
    return np.where(scales.stays(), X, scaled)


def set_scales(scales: Scales, after: Scales) -> None:
    """Replace the scales by newer ones."""
    for part, new in zip(scales, after, strict=True):
        part[:] = new


@jit_exact
def scale(X, weights, count, clipped, mean, squares, kind, out):
    """Scale rows one by one, and bring the scales up to date; rows of weight 0 do not contribute."""
    d = X.shape[1]
    for i in range(X.shape[0]):
        n = count[0] + 1.0
        widest = ZERO_OR_ONE
        is_clipped = False
        for c in range(d):
            widest = max(widest, kind[c], _kind_of(X[i, c]))
        as_is = UNIT if widest <= UNIT else ZERO_OR_ONE
        for c in range(d):
            value = np.float64(X[i, c])
            known = max(kind[c], _kind_of(value))
            centre, spread = welford(value, n, mean[c], squares[c])
            out[i, c] = value
            if known > as_is:
                out[i, c] = (value - centre) / np.sqrt(spread / n) if spread > 0.0 else 0.0
                out[i, c] = min(max(out[i, c], -REACH), REACH)
                far = REACH * np.sqrt(squares[c] / count[0]) if count[0] >= ENOUGH else 0.0
                if far > 0.0 and abs(value - mean[c]) > far:
                    is_clipped = True
                    centre, spread = welford(min(max(value, mean[c] - far), mean[c] + far), n, mean[c], squares[c])
            if weights[i] > 0.0:
                mean[c], squares[c], kind[c] = centre, spread, known
        if weights[i] > 0.0:
            count[0] = n
            clipped[0] += is_clipped


def targets_as_known(scales: Scales, y: np.ndarray) -> np.ndarray:
    """Return targets on the current scale."""
    shift, width = target_scale(scales)
    return (y - shift) / width if width > 0.0 else np.zeros_like(y)


def target_scale(scales: Scales) -> tuple[float, float]:
    """Return shift and width: a prediction f means shift + width * f."""
    return float(scales.mean[0]), float(np.sqrt(scales.squares[0] / max(scales.count[0], 1.0)))


@jit_exact
def scale_targets(y, weights, count, mean, squares, scaled, shift, width):
    """Scale targets one by one, and bring the scale up to date; those of weight 0 do not contribute.

    A prediction f, said before the target was seen, means shift + width * f.
    """
    for i in range(y.size):
        shift[i] = mean[0]
        width[i] = np.sqrt(squares[0] / max(count[0], 1.0))
        n = count[0] + 1.0
        centre, spread = welford(y[i], n, mean[0], squares[0])
        scaled[i] = (y[i] - centre) / np.sqrt(spread / n) if spread > 0.0 else 0.0
        if weights[i] > 0.0:
            count[0], mean[0], squares[0] = n, centre, spread


def variance_of_entries(scales: Scales, standardised: bool) -> float:
    """Return the variance of all entries of the rows as the model sees them, times the number of columns."""
    d = len(scales.mean)
    variance = scales.squares / max(scales.count[0], 1.0)
    as_is = scales.stays() if standardised else np.ones(d, bool)
    means = np.where(as_is, scales.mean, 0.0)
    second = np.where(as_is, variance + scales.mean**2, variance > 0.0)
    return float(second.sum() - means.sum() ** 2 / d)
