"""Batches of targets and predictions, and the base class of metrics that are updated with them."""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import numpy as np


class Batch(NamedTuple):
    """Targets of some rows, and a model's predictions for them.

    Examples
    --------
    >>> import numpy as np
    >>> from kernling.evaluate import Batch
    >>> print(Batch(y=np.array([0, 1]), predicted=np.array([1, 1])).score)
    None
    """

    y: np.ndarray
    predicted: np.ndarray  # labels or values
    score: np.ndarray | None = None  # of the second class if there are two; else (rows, classes), NaN where unknown
    probability: np.ndarray | None = None  # predicted probability of the true label
    classes: np.ndarray | None = None  # of the columns of score, if it has several
    confidence: np.ndarray | None = None  # predicted probability of the predicted label

    def part(self, first: int, last: int) -> Batch:
        """Return some of the rows."""
        sides: Any = (None if side is None else side[first:last] for side in self._replace(classes=None))
        return Batch(*sides)._replace(classes=self.classes)

    def last(self, n: int) -> Batch:
        """Return a copy of the last n rows."""
        sides: Any = (None if side is None else side.copy() for side in self.part(max(len(self.y) - n, 0), len(self.y)))
        return Batch(*sides)


class Metric:
    """Base class of running metrics.

    Examples
    --------
    >>> from kernling.evaluate import Metric, metric
    >>> isinstance(metric("mae"), Metric), metric("mae").needs
    (True, 'predict')
    """

    label: ClassVar[str]  # in tables and figures
    task: ClassVar[str] = "classification"
    needs: ClassVar[str] = "predict"  # the model's method whose output it needs
    low_is_good: ClassVar[bool] = False
    is_share: ClassVar[bool] = False  # shown as a percentage
    held_out_only: ClassVar[bool] = False  # it is of one model: there is no value along a stream

    def update(self, batch: Batch) -> None:
        """Update the metric with a batch of rows."""
        raise NotImplementedError

    def measure(self, model: Any, X: Any, predicted: Batch) -> float:
        """Return the metric of a fitted model on rows that it has not learned, given its predictions for them."""
        self.update(predicted)
        return float(self.value)

    @property
    def value(self) -> float:
        """Current value; NaN while it is undefined."""
        raise NotImplementedError
