"""Histogram of the scores of two classes, for the area under the ROC curve in fixed memory."""

from __future__ import annotations

import numpy as np

OCTAVES = 64


class AucHistogram:
    """Number of scores of the lower and of the upper class in each bin."""

    def __init__(self, per_octave: int):
        self.per_octave = per_octave
        self.counts = np.zeros((2, 2 * per_octave * OCTAVES + 1), np.int64)

    def add(self, is_upper: np.ndarray, score: np.ndarray) -> None:
        """Add scores to the histogram."""
        cell = self._cell(score)
        for side in (0, 1):
            self.counts[side] += np.bincount(cell[is_upper == side], minlength=self.counts.shape[1])

    def _cell(self, score: np.ndarray) -> np.ndarray:
        """Return the index of the bin, which increases with the score."""
        size = self.per_octave * OCTAVES
        mantissa, exponent = np.frexp(np.abs(score))
        octave = exponent + OCTAVES // 2 - 1
        place = 1 + octave * self.per_octave + ((2.0 * mantissa - 1.0) * self.per_octave).astype(np.int64)
        place = np.where(score == 0.0, 0, np.clip(place, 1, size))
        return np.where(score < 0.0, size - place, size + place)

    def area(self) -> tuple[float, float]:
        """Return the area and half the fraction of pairs that share a bin; NaN while one class has no scores."""
        lower, upper = self.counts
        pairs = float(lower.sum()) * float(upper.sum())
        if not pairs:
            return np.nan, np.nan
        below = np.cumsum(lower) - lower
        shared = float((lower.astype(np.float64) * upper).sum())
        return float((upper * (below + 0.5 * lower)).sum() / pairs), 0.5 * shared / pairs
