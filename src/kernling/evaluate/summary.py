"""Facts for deciding whether to use a model: errors by class, ranking, calibration, and the course of the error."""

from __future__ import annotations

from typing import Any

import numpy as np

from .auc import AucHistogram
from .running import Batch

BLOCKS = "▁▂▃▄▅▆▇█"
BINS = 10  # of confidence
LONGEST = 64  # stretches of the stream with an error of their own
MOST = 50  # classes that are counted in pairs
RARE = 0.1  # a class with a smaller share is rare


class Trail:
    """Mean loss of equally long stretches of a stream: at most 64, which become longer as it goes on.

    Examples
    --------
    >>> import numpy as np
    >>> from kernling.evaluate.summary import Trail
    >>> trail = Trail()
    >>> trail.update(np.repeat([0.5, 0.1], 64))
    >>> print(trail.blocks(4), trail.means(2))
    ██▁▁ [0.5 0.1]
    """

    def __init__(self) -> None:
        self._length = 1  # rows of a stretch
        self._sums: list[float] = [0.0]
        self._last = 0  # rows in the last stretch

    def update(self, losses: np.ndarray) -> None:
        """Add the losses of rows."""
        first = 0
        while first < len(losses):
            taken = losses[first : first + self._length - self._last]
            self._sums[-1] += float(taken.sum())
            self._last += len(taken)
            first += len(taken)
            if self._last == self._length:
                if len(self._sums) == LONGEST:
                    self._sums = [a + b for a, b in zip(self._sums[::2], self._sums[1::2], strict=True)]
                    self._length *= 2
                self._sums.append(0.0)
                self._last = 0

    def means(self, count: int) -> np.ndarray:
        """Return the mean losses of about this many stretches; rows of an incomplete one count with the one before."""
        rows = np.array([self._length] * (len(self._sums) - 1) + [self._last] * (self._last > 0), dtype=np.float64)
        parts = np.array_split(np.arange(len(rows)), min(count, len(rows))) if len(rows) else []
        return np.array([np.take(self._sums, part).sum() / rows[part].sum() for part in parts])

    def blocks(self, count: int = 40) -> str:
        """Return the losses as a line of blocks, the highest for the largest."""
        means = self.means(count)
        low, high = (means.min(), means.max()) if len(means) else (0.0, 0.0)
        heights = (means - low) / (high - low) if high > low else np.zeros(len(means))
        return "".join(BLOCKS[round(height * (len(BLOCKS) - 1))] for height in heights.tolist())


class Summary:
    """Counts of labels in pairs, scores of each class, confidence, and the error over time, from a run's predictions.

    Examples
    --------
    >>> import numpy as np
    >>> from kernling.evaluate import Batch
    >>> from kernling.evaluate.summary import Summary
    >>> summary = Summary("classification")
    >>> summary.update(Batch(np.array(["a", "b", "a"]), np.array(["a", "a", "a"])))
    >>> summary.classes, summary.pairs.tolist(), summary.never_predicted()
    (['a', 'b'], [[2, 0], [1, 0]], ['b'])
    """

    def __init__(self, task: str):
        self.task = task
        self.trail = Trail()
        self._labels = np.empty(0)  # sorted
        self.pairs = np.zeros((0, 0), dtype=np.int64)  # number of rows by true and predicted class
        self._scores: dict[Any, AucHistogram] = {}
        self._sure = np.zeros((3, BINS))  # rows, confidence and hits

    def update(self, batch: Batch) -> None:
        """Add rows and their predictions."""
        if self.task == "regression":
            self.trail.update((batch.y - batch.predicted) ** 2)
            return
        wrong = batch.y != batch.predicted
        self.trail.update(wrong.astype(np.float64))
        self._count(batch)
        if batch.confidence is not None:
            place = np.minimum((batch.confidence * BINS).astype(np.intp), BINS - 1)
            for row, weights in zip(self._sure, (None, batch.confidence, ~wrong), strict=True):
                row += np.bincount(place, weights, BINS)
        if batch.score is not None:
            self._rank(batch)

    def _count(self, batch: Batch) -> None:
        if len(self._labels) > MOST:
            return
        labels = np.union1d(batch.y, batch.predicted)
        if not np.isin(labels, self._labels).all():
            labels = np.union1d(self._labels, labels) if len(self._labels) else labels
            wider = np.zeros((len(labels), len(labels)), dtype=np.int64)
            place = np.searchsorted(labels, self._labels) if len(self._labels) else np.empty(0, dtype=np.intp)
            wider[np.ix_(place, place)] = self.pairs
            self._labels, self.pairs = labels, wider
        true, said = (np.searchsorted(self._labels, side) for side in (batch.y, batch.predicted))
        size = len(self._labels)
        self.pairs += np.bincount(true * size + said, minlength=size * size).reshape(size, size)

    def _rank(self, batch: Batch) -> None:
        if batch.classes is None:  # one score, of the second class
            if len(self._labels) == 2:
                second = self.classes[1]
                self._scores.setdefault(second, AucHistogram(1024)).add(batch.y == second, np.asarray(batch.score))
            return
        for label, column in zip(batch.classes.tolist(), np.asarray(batch.score).T, strict=True):
            if len(self._scores) < MOST or label in self._scores:
                there = ~np.isnan(column)
                self._scores.setdefault(label, AucHistogram(64)).add(batch.y[there] == label, column[there])

    @property
    def is_counted(self) -> bool:
        """Whether there are few enough classes for counts in pairs."""
        return 1 < len(self._labels) <= MOST

    @property
    def classes(self) -> list[Any]:
        """All labels, sorted."""
        return self._labels.tolist()

    def never_predicted(self) -> list[Any]:
        """Return the classes that came, and were never predicted."""
        pairs = self.pairs
        return [label for place, label in enumerate(self.classes) if pairs[place].any() and not pairs[:, place].any()]

    def never_right(self) -> list[Any]:
        """Return the classes that were predicted, but never when they came."""
        pairs = self.pairs
        came, said = pairs.sum(axis=1), pairs.sum(axis=0)
        return [label for place, label in enumerate(self.classes) if came[place] and said[place] and not pairs[place, place]]

    def is_imbalanced(self) -> bool:
        """Return whether a class is rare."""
        came = self.pairs.sum(axis=1)
        return bool((came[came > 0] < RARE * came.sum() / max(1, len(came) / 2)).any())

    def auc(self, label: Any) -> float:
        """Return the area under the curve of one class against the rest; NaN if there are no scores."""
        return self._scores[label].area()[0] if label in self._scores else np.nan

    def calibration_error(self) -> float:
        """Return the mean difference between confidence and the share of hits; NaN without probabilities."""
        rows, confidence, hits = self._sure
        return float(np.abs(confidence - hits).sum() / rows.sum()) if rows.any() else np.nan
