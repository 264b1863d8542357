"""Running metrics of predicted labels, computed from counts for each class."""

from __future__ import annotations

import numpy as np

from .running import Batch, Metric


class Counts:
    """Per class: the number of rows, of predictions, and of correct predictions.

    ``classes``, sorted, are known in advance: those of the whole stream if only a window of it is counted.
    """

    def __init__(self, classes: np.ndarray | None = None) -> None:
        self.classes = np.empty(0) if classes is None else classes
        self.came, self.predicted, self.right = (np.zeros(len(self.classes), np.int64) for _ in range(3))

    def update(self, batch: Batch) -> None:
        """Update the counts with a batch of rows."""
        y, predicted = self._places(batch.y), self._places(batch.predicted)
        if y is None or predicted is None:
            seen = np.union1d(batch.y, batch.predicted)
            self._widen(np.union1d(self.classes, seen) if len(self.classes) else seen)
            y, predicted = np.searchsorted(self.classes, batch.y), np.searchsorted(self.classes, batch.predicted)
        size = len(self.classes)
        self.came += np.bincount(y, minlength=size)
        self.predicted += np.bincount(predicted, minlength=size)
        self.right += np.bincount(y[y == predicted], minlength=size)

    def _places(self, labels: np.ndarray) -> np.ndarray | None:
        """Return the indices of the labels among the classes, or None if one of them is new."""
        if not len(self.classes):
            return None
        place = np.searchsorted(self.classes, labels).clip(max=len(self.classes) - 1)
        return place if (self.classes[place] == labels).all() else None

    def _widen(self, wider: np.ndarray) -> None:
        place = np.searchsorted(wider, self.classes) if len(self.classes) else np.empty(0, np.intp)
        for name in ("came", "predicted", "right"):
            counts = np.zeros(len(wider), np.int64)
            counts[place] = getattr(self, name)
            setattr(self, name, counts)
        self.classes = wider

    @property
    def total(self) -> int:
        """Number of rows so far."""
        return int(self.came.sum())

    @property
    def majority(self) -> float:
        """Accuracy of always predicting the majority class."""
        return self.came.max() / self.total if self.total else np.nan


class LabelMetric(Metric):
    """Metric computed from counts of labels, either its own or counts shared with other metrics and updated by the caller."""

    def __init__(self, counts: Counts | None = None):
        self._own = counts is None
        self.counts = Counts() if counts is None else counts

    def update(self, batch: Batch) -> None:
        if self._own:
            self.counts.update(batch)

    @property
    def majority(self) -> float:
        """Accuracy of always predicting the majority class."""
        return self.counts.majority


class Accuracy(LabelMetric):
    """Fraction of correct labels.

    Examples
    --------
    >>> import numpy as np
    >>> from kernling.evaluate import Accuracy, Batch
    >>> metric = Accuracy()
    >>> metric.update(Batch(np.array([0, 1, 1, 1]), np.array([0, 1, 0, 1])))
    >>> print(metric.value, metric.majority)
    0.75 0.75
    """

    label = "accuracy"
    is_share = True

    @property
    def value(self) -> float:
        return self.counts.right.sum() / self.counts.total if self.counts.total else np.nan


class Mistakes(LabelMetric):
    """Fraction of wrong labels: the mistake rate of the online learning literature.

    Examples
    --------
    >>> import numpy as np
    >>> from kernling.evaluate import Mistakes, Batch
    >>> metric = Mistakes()
    >>> metric.update(Batch(np.array([0, 0, 0, 1]), np.array([0, 0, 1, 1])))
    >>> print(metric.value)
    0.25
    """

    label = "mistakes"
    low_is_good = True
    is_share = True

    @property
    def value(self) -> float:
        total = self.counts.total
        return (total - self.counts.right.sum()) / total if total else np.nan


class BalancedAccuracy(LabelMetric):
    """Mean recall over the classes seen so far; NaN while there is only one.

    Examples
    --------
    >>> import numpy as np
    >>> from kernling.evaluate import BalancedAccuracy, Batch
    >>> metric = BalancedAccuracy()
    >>> metric.update(Batch(np.array([0, 0, 0, 1]), np.array([0, 0, 1, 1])))
    >>> print(round(metric.value, 3))
    0.833
    """

    label = "balanced accuracy"
    is_share = True

    @property
    def value(self) -> float:
        came = self.counts.came > 0
        return float((self.counts.right[came] / self.counts.came[came]).mean()) if came.sum() > 1 else np.nan


class F1(LabelMetric):
    """F1 score of the second of two classes, or the mean over more than two, of those that were seen or predicted.

    Same as ``sklearn.metrics.f1_score(..., zero_division=numpy.nan)``: NaN if the second class was neither seen nor predicted,
    and while there is only one class.  For a window, the second class is that of the whole stream.

    Examples
    --------
    >>> import numpy as np
    >>> from kernling.evaluate import F1, Batch
    >>> metric = F1()
    >>> metric.update(Batch(np.array([0, 0, 0, 1]), np.array([0, 0, 1, 1])))
    >>> print(round(metric.value, 3))
    0.667
    """

    label = "F1"
    is_share = True

    @property
    def value(self) -> float:
        both = self.counts.came + self.counts.predicted
        chosen = np.flatnonzero(both) if len(both) > 2 else np.arange(1, len(both))
        if not both[chosen].any():
            return np.nan
        return float((2.0 * self.counts.right[chosen] / both[chosen]).mean())


class Recall(LabelMetric):
    """Share of the rows of the second of two classes that are predicted, or the mean over more than two.

    Same as ``sklearn.metrics.recall_score``, with average "binary" or "macro".

    Examples
    --------
    >>> import numpy as np
    >>> from kernling.evaluate import Batch, metric
    >>> recall = metric("recall")
    >>> recall.update(Batch(np.array([0, 0, 1, 1]), np.array([0, 0, 0, 1])))
    >>> print(recall.value)
    0.5
    """

    label = "recall"
    is_share = True

    def _of(self) -> np.ndarray:
        """Return the number of rows of each class of which a share is right."""
        return self.counts.came

    @property
    def value(self) -> float:
        of = self._of()
        chosen = np.flatnonzero(self.counts.came + self.counts.predicted) if len(of) > 2 else np.arange(1, len(of))
        if not len(chosen) or (len(of) == 2 and not of[1]):
            return np.nan
        return float((self.counts.right[chosen] / np.maximum(of[chosen], 1)).mean())


class Precision(Recall):
    """Share of the predictions of the second of two classes that are right, or the mean over more than two.

    Same as ``sklearn.metrics.precision_score``, with average "binary" or "macro"; NaN if the second class is never predicted.

    Examples
    --------
    >>> import numpy as np
    >>> from kernling.evaluate import Batch, metric
    >>> precision = metric("precision")
    >>> precision.update(Batch(np.array([0, 0, 1, 1]), np.array([0, 1, 1, 1])))
    >>> print(round(precision.value, 3))
    0.667
    """

    label = "precision"

    def _of(self) -> np.ndarray:
        return self.counts.predicted
