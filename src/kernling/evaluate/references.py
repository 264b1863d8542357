"""Reference predictions shown with every result: a constant, and a linear model on the same rows."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

from ..core.blas import lapack, one_thread
from .metrics import Window, metric, metric_class
from .record import Row
from .running import Batch

WIDEST = 300  # maximum number of columns; the linear model stores their products, a square matrix
REFRESH = 0.05  # the linear model is solved again when the number of rows has grown by this fraction


class ConstantAnswer:
    """Predicts the most common label, or the mean of the values, of the rows so far.

    Examples
    --------
    >>> import numpy as np
    >>> from kernling.evaluate import ConstantAnswer
    >>> print(ConstantAnswer("regression").predict_then_learn(None, np.array([2.0, 4.0, 9.0])))
    [0. 2. 3.]
    """

    name = "constant"

    def __init__(self, task: str):
        self.task = task
        self.rows = 0
        self.counts: dict[Any, int] = {}  # of labels
        self._best: Any = None  # label
        self._total = 0.0  # of values

    @property
    def answer(self) -> Any:
        """The prediction of any row now; None before the first label."""
        return self._total / max(self.rows, 1) if self.task == "regression" else self._best

    def predict_then_learn(self, X: Any, y: np.ndarray) -> np.ndarray:
        """Learn targets; return the predictions before each of them.  The rows are not used."""
        return np.array(self.answers_before(y.tolist()), dtype=None if self.task == "regression" else y.dtype)

    def answers_before(self, y: Sequence[Any]) -> list[Any]:
        """Same for a list of targets."""
        if self.task != "regression":
            return [self._most_common_then_count(label) for label in y]
        totals = np.cumsum([self._total, *y])
        rows = self.rows + np.arange(len(y))
        self._total, self.rows = float(totals[-1]), self.rows + len(y)
        return (totals[:-1] / np.maximum(rows, 1)).tolist()

    def predict(self, X: Any) -> np.ndarray:
        """Return the prediction for each row, without learning."""
        return np.full(X.shape[0], self.answer)

    def _most_common_then_count(self, label: Any) -> Any:
        counts = self.counts
        best = self._best if counts else label  # the first prediction always counts as correct
        counts[label] = counts.get(label, 0) + 1
        self.rows += 1
        self._best = label if counts[label] > counts.get(best, 0) else best
        return best

    def to_plain(self) -> dict[str, Any]:
        """Return the state as JSON-compatible data."""
        return {"rows": self.rows, "counts": list(self.counts.items()), "best": self._best, "total": self._total}

    @classmethod
    def from_plain(cls, task: str, plain: dict[str, Any]) -> ConstantAnswer:
        """Restore the state from the result of ``to_plain``."""
        found = cls(task)
        found.rows, found.counts = plain["rows"], dict(plain["counts"])
        found._best, found._total = plain["best"], plain["total"]
        return found


class LinearModel:
    """Slightly regularised least squares with an intercept on all rows so far; labels are encoded as columns of 0 and 1.

    Rows are predicted by the latest solution, which is recomputed when 5 % of the rows, or a tenth of the number of
    columns, have been added.  For at most 300 columns.

    Examples
    --------
    >>> import numpy as np
    >>> from kernling.evaluate import LinearModel
    >>> X = np.random.default_rng(0).normal(size=(1000, 1))
    >>> predicted = LinearModel("regression").predict_then_learn(X, 3.0 * X[:, 0] + 1.0)
    >>> print(abs(predicted[-1] - 3.0 * X[-1, 0] - 1.0) < 0.1)
    True
    """

    name = "linear"

    def __init__(self, task: str):
        self._task = task
        self._places: dict[Any, int] = {} if task == "classification" else {None: 0}
        self._rows, self._next = 0, 1  # rows so far, and the number at which it is solved again
        self._squares: Any = 0.0
        self._products: Any = 0.0
        self._weights = np.zeros((0, 1))
        self._dtype: Any = None  # of labels

    @one_thread
    def predict_then_learn(self, X: Any, y: np.ndarray) -> np.ndarray:
        """Learn rows; return the predictions before."""
        predicted = []
        first = 0
        while first < len(y):
            last = min(len(y), first + self._next - self._rows)
            part = _with_intercept(X[first:last])
            targets = self._targets(y[first:last])
            predicted.append(self._predict(part))
            self._learn(part, targets)
            first = last
        return np.concatenate(predicted)

    @one_thread
    def predict(self, X: Any) -> np.ndarray:
        """Return the predictions of the solution on all rows so far, without learning."""
        self._solve()
        return self._predict(_with_intercept(X))

    def _targets(self, y: np.ndarray) -> np.ndarray:
        if self._task != "classification":
            return np.asarray(y, dtype=np.float64)[:, np.newaxis]
        self._dtype = y.dtype
        places = [self._places.setdefault(label, len(self._places)) for label in y.tolist()]
        return np.eye(len(self._places))[places]

    def _predict(self, X: np.ndarray) -> np.ndarray:
        scores = X @ self._weights if len(self._weights) else np.zeros((len(X), 1))
        if self._task != "classification":
            return scores[:, 0]
        return np.array(list(self._places), dtype=self._dtype)[scores.argmax(axis=1)]

    def _learn(self, X: np.ndarray, targets: np.ndarray) -> None:
        with np.errstate(all="ignore"):  # overflow is detected in the solution
            self._squares = self._squares + X.T @ X
            products = X.T @ targets
            products[:, : np.shape(self._products)[1] if self._rows else 0] += self._products
            self._products = products
            self._rows += len(X)
            if self._rows == self._next:
                self._solve()
                self._next += max(1, int(REFRESH * self._rows), X.shape[1] // 10)

    def _solve(self) -> None:
        own = np.diagonal(self._squares) / self._rows
        ridge = np.where(own > 0.0, own, 1.0)  # of a column: its mean square
        ridge[-1] = 0.0  # of the intercept: the first predictions are near the targets, however large those are
        squares = self._squares + np.diag(ridge)
        units = 1.0 / np.sqrt(np.diagonal(squares))[:, np.newaxis]  # in which the columns' units do not matter for rounding
        _, solution, failed = lapack.dposv(units * squares * units.T, units * self._products)
        weights = units * solution
        if not failed and np.isfinite(weights).all():
            self._weights = weights


def _with_intercept(X: Any) -> np.ndarray:
    rows = X.toarray() if sparse.issparse(X) else np.asarray(X, dtype=np.float64)
    return np.column_stack([rows, np.ones(len(rows))])


def held_out_metrics(
    answer: ConstantAnswer | LinearModel, train: tuple[Any, np.ndarray], test: tuple[Any, np.ndarray], metrics: Sequence[str]
) -> Row:
    """Return the metrics on test rows of a reference model that learned the training rows."""
    answer.predict_then_learn(*train)
    batch = Batch(test[1], answer.predict(test[0]))
    row: Row = {}
    for name in metrics:
        if metric_class(name).needs == "predict" and not metric_class(name).held_out_only:
            one = metric(name)
            one.update(batch)
            row[f"{name}_{answer.name}"] = float(one.value)
    return row


class Reference:
    """A reference model and its metrics, those that only need labels or values."""

    def __init__(self, answer: ConstantAnswer | LinearModel, metrics: Sequence[str], window: int):
        self._answer = answer
        self._running = {name: metric(name) for name in metrics if metric_class(name).needs == "predict"}
        self._recent = Window(window)

    def update(self, X: Any, y: np.ndarray) -> None:
        """Predict rows, update the metrics, and learn the rows."""
        batch = Batch(y, self._answer.predict_then_learn(X, y))
        self._recent.update(batch)
        for one in self._running.values():
            one.update(batch)

    def values(self) -> Row:
        """Return the metrics, overall and of the window."""
        lately = {f"{name}_window": float(self._recent.value(partial(metric, name))) for name in self._running}
        return {name: float(one.value) for name, one in self._running.items()} | lately
