"""Running metrics in fixed memory, by name, over a whole stream or a window of it; those of labels are in label_metrics.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..estimators.risk import regularised_risk
from .auc import AucHistogram
from .label_metrics import F1, Accuracy, BalancedAccuracy, Counts, LabelMetric, Mistakes, Precision, Recall
from .running import Batch, Metric


class MeanLoss(Metric):
    """Mean of a loss over all rows."""

    low_is_good = True

    def __init__(self) -> None:
        self.rows, self.total = 0, 0.0

    def _losses(self, batch: Batch) -> np.ndarray:
        raise NotImplementedError

    def update(self, batch: Batch) -> None:
        self.rows += len(batch.y)
        self.total += float(self._losses(batch).sum())

    @property
    def value(self) -> float:
        return self.total / self.rows if self.rows else np.nan


class LogLoss(MeanLoss):
    """Mean negative log of the predicted probability of the true label; probabilities are clipped at 2.2e-16.

    Examples
    --------
    >>> import numpy as np
    >>> from kernling.evaluate import Batch, LogLoss
    >>> metric = LogLoss()
    >>> metric.update(Batch(np.array([0, 1]), np.array([0, 0]), None, np.array([0.9, 0.5])))
    >>> print(round(metric.value, 3))
    0.399
    """

    label = "log loss"
    needs = "predict_proba"

    def _losses(self, batch: Batch) -> np.ndarray:
        if batch.probability is None:
            raise ValueError("log loss needs probabilities: a classifier with loss='logistic' (two classes) or 'softmax'")
        return -np.log(np.maximum(batch.probability, np.finfo(float).eps))


class MAE(MeanLoss):
    """Mean absolute error.

    Examples
    --------
    >>> import numpy as np
    >>> from kernling.evaluate import MAE, Batch
    >>> metric = MAE()
    >>> metric.update(Batch(np.array([0.0, 0.0]), np.array([3.0, -1.0])))
    >>> print(metric.value)
    2.0
    """

    label = "MAE"
    task = "regression"

    def _losses(self, batch: Batch) -> np.ndarray:
        return np.abs(batch.y - batch.predicted)


class RMSE(MeanLoss):
    """Root mean squared error.

    Examples
    --------
    >>> import numpy as np
    >>> from kernling.evaluate import RMSE, Batch
    >>> metric = RMSE()
    >>> metric.update(Batch(np.array([0.0, 0.0]), np.array([5.0, -5.0])))
    >>> print(metric.value)
    5.0
    """

    label = "RMSE"
    task = "regression"

    def _losses(self, batch: Batch) -> np.ndarray:
        return (batch.y - batch.predicted) ** 2

    @property
    def value(self) -> float:
        return float(np.sqrt(super().value))


class R2(Metric):
    """Share of the variance of the targets that is explained, as ``sklearn.metrics.r2_score``.

    Examples
    --------
    >>> import numpy as np
    >>> from kernling.evaluate import Batch, metric
    >>> r2 = metric("r2")
    >>> r2.update(Batch(np.array([1.0, 2.0, 3.0]), np.array([1.0, 2.0, 2.0])))
    >>> print(r2.value)
    0.5
    """

    label = "R²"
    task = "regression"

    def __init__(self) -> None:
        self.rows, self.mean, self.squares, self.errors = 0, 0.0, 0.0, 0.0

    def update(self, batch: Batch) -> None:
        y = np.asarray(batch.y, dtype=np.float64)
        rows, shift = self.rows + len(y), y.mean() - self.mean
        self.squares += float(((y - y.mean()) ** 2).sum()) + shift**2 * self.rows * len(y) / rows
        self.mean += shift * len(y) / rows
        self.rows = rows
        self.errors += float(((y - batch.predicted) ** 2).sum())

    @property
    def value(self) -> float:
        return 1.0 - self.errors / self.squares if self.squares else np.nan


class AUC(Metric):
    """Area under the ROC curve: the probability that a row of the second class scores higher than one of the first.

    It is computed in fixed memory (about 2 MB) from a histogram of the scores: 1,024 bins between each power of two and the
    next, from 2^-32 to 2^32, on both sides of 0.  Pairs in different bins are counted exactly; pairs in the same bin, like
    ties, count half, so the error is at most half the fraction of such pairs, which is ``error_bound``.

    With more than two classes, it is the mean over the classes of one against the rest, with 64 bins between powers of two.  A
    class counts from its first row on.

    Examples
    --------
    >>> import numpy as np
    >>> from kernling.evaluate import AUC, Batch
    >>> metric = AUC()
    >>> y = np.array([-1, -1, 1, 1])
    >>> metric.update(Batch(y, y, score=np.array([0.1, 0.4, 0.35, 0.8])))
    >>> print(metric.value, metric.error_bound)
    0.75 0.0
    """

    label = "AUC"
    is_share = True

    needs = "decision_function"

    def __init__(self) -> None:
        self.classes = np.empty(0)
        self._two = AucHistogram(1024)
        self._each: dict[Any, AucHistogram] = {}

    def update(self, batch: Batch) -> None:
        if batch.score is None:
            raise ValueError("AUC needs the scores of a classifier")
        score = np.asarray(batch.score, dtype=np.float64)
        if score.ndim == 2:
            for label, column in zip(batch.classes.tolist(), score.T, strict=True):  # type: ignore[union-attr]
                there = ~np.isnan(column)
                self._each.setdefault(label, AucHistogram(64)).add(batch.y[there] == label, column[there])
            return
        known = np.unique(batch.y) if not len(self.classes) else np.union1d(self.classes, batch.y)
        if len(known) > 2:
            raise ValueError(f"the scores are for two classes, but there are {len(known)}: {known.tolist()}")
        if len(self.classes) == 1 and len(known) == 2 and known[1] == self.classes[0]:
            self._two.counts = self._two.counts[::-1].copy()  # the class seen so far turns out to be the second
        self.classes = known
        self._two.add(np.isin(batch.y, known[1:]), score)

    @property
    def value(self) -> float:
        return self._mean(0)

    @property
    def error_bound(self) -> float:
        """Maximum difference between ``value`` and the exact AUC of the scores."""
        return self._mean(1)

    def _mean(self, which: int) -> float:
        areas = np.array([sides.area()[which] for sides in self._each.values() or [self._two]])
        return float(np.mean(areas[~np.isnan(areas)])) if not np.isnan(areas).all() else np.nan


class Risk(Metric):
    """Regularised risk: the mean loss of a classifier on held-out rows plus lam / 2 ||f||^2, with its own loss and lam.

    It is what the method minimises, so it can be compared between settings with the same loss and lam only.

    Examples
    --------
    >>> import kernling as kl
    >>> from kernling.evaluate import Risk, batch
    >>> from kernling.io import synthetic
    >>> rows = batch(kl.POLKClassifier(loss="softmax"), synthetic("multidist", 2000), metrics=["mistakes", "risk"])
    >>> print(Risk.label, 0.0 < rows[0]["risk"] < 1.0)
    risk True
    """

    label = "risk"
    low_is_good = True
    held_out_only = True

    def measure(self, model: Any, X: Any, predicted: Batch) -> float:
        return regularised_risk(getattr(model, "model_", model), getattr(model, "passed", lambda rows: rows)(X), predicted.y)

    def update(self, batch: Batch) -> None:
        raise TypeError("risk is of one model on held-out rows: evaluate it with batch, held_out or folds")

    @property
    def value(self) -> float:
        return np.nan


METRICS: dict[str, type[Metric]] = {
    "mistakes": Mistakes,
    "accuracy": Accuracy,
    "balanced_accuracy": BalancedAccuracy,
    "f1": F1,
    "precision": Precision,
    "recall": Recall,
    "log_loss": LogLoss,
    "auc": AUC,
    "risk": Risk,
    "rmse": RMSE,
    "mae": MAE,
    "r2": R2,
}
OTHER_NAMES = {  # of scikit-learn
    "roc_auc": "auc",
    "zero_one_loss": "mistakes",
    "neg_log_loss": "log_loss",
    "root_mean_squared_error": "rmse",
    "neg_root_mean_squared_error": "rmse",
    "mean_absolute_error": "mae",
    "neg_mean_absolute_error": "mae",
    "r2_score": "r2",
}


class Window:
    """The last ``size`` rows, for metrics over a sliding window.

    Examples
    --------
    >>> import numpy as np
    >>> from kernling.evaluate import Accuracy, Batch, Window
    >>> window = Window(2)
    >>> window.update(Batch(np.array([0, 1, 1, 1]), np.array([1, 0, 1, 1])))
    >>> print(window.value(Accuracy))
    1.0
    """

    def __init__(self, size: int):
        if size < 1:
            raise ValueError(f"the window must have at least 1 row, not {size}")
        self.size = size
        self._last: list[Batch] = []

    def update(self, batch: Batch) -> None:
        """Add a batch of rows and drop the oldest."""
        self._last.append(batch.last(self.size))
        spare = sum(len(part.y) for part in self._last) - self.size
        while spare >= len(self._last[0].y):
            spare -= len(self._last.pop(0).y)
        if spare > 0:
            self._last[0] = self._last[0].last(len(self._last[0].y) - spare)

    def value(self, make: Callable[[], Metric]) -> float:
        """Return the value of a metric over the window."""
        metric = make()
        for batch in self._last:
            metric.update(batch)
        return metric.value

    def counts(self, classes: np.ndarray) -> Counts:
        """Return the counts of labels in the window, for a stream with these classes."""
        counts = Counts(classes)
        for batch in self._last:
            counts.update(batch)
        return counts


def metric(name: str, counts: Counts | None = None) -> Metric:
    """Return a running metric by name: mistakes, accuracy, balanced_accuracy, f1, precision, recall, log_loss, auc or
    risk; rmse, mae or r2.  Scikit-learn's names, such as roc_auc and mean_absolute_error, are understood.

    Metrics of labels that are given the same ``counts`` share them; the caller updates them.

    Examples
    --------
    >>> from kernling.evaluate import metric
    >>> metric("rmse").value
    nan
    """
    kind = metric_class(name)
    return kind(counts) if issubclass(kind, LabelMetric) else kind()


def metric_class(name: str) -> type[Metric]:
    """Return the class of a metric, whose attributes are its task, direction and label."""
    name = OTHER_NAMES.get(name, name)
    if name not in METRICS:
        raise ValueError(f"a metric must be one of {', '.join(map(repr, METRICS))}, not {name!r}")
    return METRICS[name]
