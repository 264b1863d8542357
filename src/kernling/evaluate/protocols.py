# ruff: noqa: PT028 - test_then_train is not a test
"""Test-then-train evaluation on a stream, and on random orders of the same rows."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any, Protocol

import numpy as np

from ..estimators.checking import is_fitted
from ..io import Stream, stream
from ..io.base import Chunk, cut_chunk, first_rows
from ..tables import Table
from .label_metrics import Counts
from .measuring import (
    chosen_metrics,
    copy_with_seed,
    data_facts,
    learn,
    orders,
    resolve,
    size_of,
    warm_up,
    weights_of_experts,
)
from .metrics import Window, metric, metric_class
from .references import WIDEST, ConstantAnswer, LinearModel, Reference
from .rows import Row, describe, load_data
from .running import Batch
from .summary import Summary

FINEST = 20  # rows between measurements that are spread over a stream, at least
FEWEST = 50  # such measurements, if the stream is long enough


def test_then_train(
    model: Any,
    rows: Stream,
    *,
    metrics: Sequence[str] | None = None,
    window: int = 1000,
    every: int | None = None,
    linear: bool = False,
    on_row: Callable[[Row], None] | None = None,
    extra: Row | None = None,
) -> list[Row]:
    """Evaluate a model test-then-train: each row is predicted just before it is learned.

    Parameters
    ----------
    model : estimator
        If it is already fitted, it continues to learn.
    rows : Stream
    metrics : sequence of str, optional
        Among mistakes, accuracy, balanced_accuracy, f1, precision, recall, log_loss, auc; rmse, mae, r2.  By default the first
        two of the task.
    window : int
        Size of the sliding window; each metric is also reported over it as ``<metric>_window``, which shows drift.
    every : int, optional
        Number of rows between measurements; 0 for 50 to 100 measurements whatever the length of the stream, after the first
        1,000 rows.  By default the only measurement is at the end.
    linear : bool
        Whether to run a linear model on the same rows, as ``<metric>_linear``, for at most 300 columns.
    on_row : callable, optional
        Called with each row of results.
    extra : dict, optional
        Added to every row of results.

    Returns
    -------
    list of dict
        One row per measurement, with ``events`` and ``seconds`` so far (processor time of learning and predicting, without
        compilation), the metrics, those of the constant answer (``<metric>_constant``: the most common label or the mean of the
        rows before), ``majority`` (the fraction of the majority class so far, and in the window), and the size of the model.

    Examples
    --------
    >>> import kernling as kl
    >>> from kernling.evaluate import test_then_train
    >>> from kernling.io import synthetic
    >>> model = kl.AVMClassifier(gamma=4.0, delta=0.5)
    >>> rows = test_then_train(model, synthetic("checkerboard", 4000), every=1000)
    >>> [row["events"] for row in rows]
    [1000, 2000, 3000, 4000]
    >>> rows[-1]["mistakes"] < 0.2 < rows[-1]["mistakes_constant"]
    True
    """
    options: dict[str, Any] = {"metrics": metrics, "window": window, "every": every, "linear": linear}
    run = ProgressiveRun(model, rows.info, **options, on_row=on_row, extra=extra)
    feed(run, rows)
    return run.end()


test_then_train.__test__ = False  # type: ignore[attr-defined]  # its name is no invitation to pytest


class Learns(Protocol):
    """Anything that :func:`feed` can train: a :class:`ProgressiveRun`, several of them, or a :class:`Search`."""

    @property
    def events(self) -> int: ...  # learned so far

    @property
    def begun(self) -> bool: ...  # whether "auto" parameters are resolved

    def begin(self, X: Any, y: np.ndarray) -> None: ...

    def learn(self, X: Any, y: np.ndarray) -> None: ...


def feed(
    run: Learns,
    chunks: Iterable[Chunk],
    *,
    cut: int | None = None,
    start: int = 0,
    guard: Callable[[], AbstractContextManager] = nullcontext,
    after: Callable[[], None] = lambda: None,
) -> None:
    """Run test-then-train on the chunks of a stream: the loop behind all test-then-train evaluation.

    "auto" parameters are resolved from the first 8,192 rows, however many chunks and pieces they are learned in; for a stream
    that can be read only once, where rows may arrive slowly, from the first chunk.

    Parameters
    ----------
    run : ProgressiveRun, ProgressiveRuns or Search
    chunks : iterable of (X, y)
    cut : int, optional
        Split chunks at multiples of this number of events, counted from ``start``.
    start : int
        Number of events before the first chunk.
    guard : callable, optional
        Returns a context manager in which each piece is learned, for example to defer signals until its end.
    after : callable, optional
        Called after each piece, within the guard.

    Examples
    --------
    >>> import kernling as kl
    >>> from kernling.evaluate import ProgressiveRun, feed
    >>> from kernling.io import synthetic
    >>> rows, seen = synthetic("spirals", 2500), []
    >>> run = ProgressiveRun(kl.AVMClassifier(), rows.info)
    >>> feed(run, rows, cut=1000, after=lambda: seen.append(run.events))
    >>> seen
    [1000, 2000, 2500]
    """
    row = start + run.events
    if not run.begun:
        beginning, chunks = first_rows(chunks, live=getattr(chunks, "once", False))
        if beginning:
            run.begin(*_with_target(*beginning))
    for X, y in chunks:
        _with_target(X, y)
        for piece in cut_chunk(X, y, range(cut - row % cut, len(y), cut) if cut else ()):
            with guard():
                run.learn(*piece)
                after()
        row += len(y)


def _with_target(X: Any, y: Any) -> Chunk:
    if y is None:
        raise ValueError("the stream has no target; name its column with target=")
    return X, y


class ProgressiveRun:
    """Test-then-train evaluation of one model, for callers that supply the rows themselves.

    See :func:`test_then_train` for the arguments; ``info`` is the stream's ``info``, and ``on_batch`` is called with the
    predictions of rows that have been learned.  A run that continues a stream starts at its row ``row``, and ``every`` counts
    from the stream's first row; ``again`` rows have been measured before.  With ``summarise``, ``summary`` is a
    :class:`~kernling.evaluate.summary.Summary`.

    Examples
    --------
    >>> import kernling as kl
    >>> from kernling.evaluate import ProgressiveRun
    >>> from kernling.io import synthetic
    >>> rows = synthetic("spirals", 2000)
    >>> run = ProgressiveRun(kl.AVMClassifier(gamma=10.0, delta=0.1), rows.info)
    >>> for X, y in rows:
    ...     run.learn(X, y)
    >>> run.end()[-1]["events"]
    2000
    """

    def __init__(
        self,
        model: Any,
        info: Row,
        *,
        metrics: Sequence[str] | None = None,
        window: int = 1000,
        every: int | None = None,
        linear: bool = False,
        on_row: Callable[[Row], None] | None = None,
        on_batch: Callable[[Batch], None] = lambda batch: None,
        extra: Row | None = None,
        row: int = 0,
        again: int = 0,
        summarise: bool = False,
    ):
        self.model = model
        self._places, self._summarises = list[int](), summarise
        self.summary: Summary | None = None
        if every is not None and every < 0:
            raise ValueError(f"every must be a number of rows, or 0, not {every}")
        self._every = every
        self._on_row = on_row
        self._on_batch = on_batch
        self._counts = Counts()
        self._recent = Window(window)
        self.row = row
        self._again = again
        before = model.t_ if is_fitted(model) else 0
        self._facts = {"protocol": "online", "window": window, "every": every, "learned_before": before}
        self._facts |= data_facts(info) | (extra or {})
        self.rows: list[Row] = []
        self.events, self.seconds = 0, 0.0
        self.begun = False
        self._options = metrics, window, linear
        self._task: str | None = None
        if hasattr(model, "task"):  # otherwise the first targets decide
            self._set_up()

    def _set_up(self) -> None:
        """Choose the metrics and references, which depend on the task."""
        metrics, window, linear = self._options
        self._task = task = self.model.task
        self.metrics = chosen_metrics(metrics, task)
        for name in self.metrics:
            if metric_class(name).held_out_only:
                raise ValueError(f"{name} is of one model on held-out rows: evaluate it with batch, held_out or folds")
        self.summary = Summary(task) if self._summarises else None
        self._has_shares = "log_loss" in self.metrics or (self._summarises and hasattr(self.model, "predict_proba"))
        self._need = "predict"
        if self._has_shares or any(metric(name).needs != "predict" for name in self.metrics):
            self._need = "decision_function"
        if "log_loss" in self.metrics and not hasattr(self.model, "predict_proba"):
            raise ValueError("log_loss needs probabilities: a classifier with loss='logistic' (two classes) or 'softmax'")
        self._running = {name: metric(name, self._counts) for name in self.metrics}
        self._references = {"constant": Reference(ConstantAnswer(task), self.metrics, window)}
        if linear:
            self._references["linear"] = Reference(LinearModel(task), self.metrics, window)
        self._facts |= describe(self.model)

    def begin(self, X: Any, y: np.ndarray) -> None:
        """Resolve "auto" parameters from these rows, without learning them."""
        self._facts["first_chunk"] = len(y)
        warm_up(self.model, X, y)
        begin = time.process_time()
        resolve(self.model, X, y)
        self.seconds += time.process_time() - begin
        if self._task is None:
            self._set_up()
        self.begun = True

    def learn(self, X: Any, y: np.ndarray) -> None:
        """Predict and then learn some rows."""
        if not self.begun:
            self.begin(X, y)
        for piece in cut_chunk(X, y, () if self._every is None else self._cuts(len(y))):
            self._learn(*piece)

    def _cuts(self, rows: int) -> list[int]:
        """Return where the next rows are cut for measurements."""
        first, last = self.row + 1, self.row + rows
        if self._every:
            return list(range(self._every - self.row % self._every, rows, self._every))
        places = range(first + -first % FINEST, last, FINEST)
        return [place - self.row for place in places if place % _step(place) == 0]

    def _is_measured(self) -> bool:
        """Return whether there is a measurement at this row; forget those that have become too many."""
        if self._every is None or self._every > 0:
            return self._every is not None and self.row % self._every == 0
        step = _step(self.row)
        kept = [number for number, place in enumerate(self._places) if place % step == 0]
        self.rows, self._places = [self.rows[number] for number in kept], [self._places[number] for number in kept]
        return self.row % step == 0

    def _learn(self, X: Any, y: np.ndarray) -> None:
        begin = time.process_time()
        batch, rows = learn(self.model, X, y, self._need, self._has_shares)
        self.seconds += time.process_time() - begin
        if rows.shape[1] > WIDEST:
            self._references.pop("linear", None)
        rows = (np.asarray(rows) if isinstance(rows, Table) else rows) if "linear" in self._references else None
        self.row += len(y)
        again = min(self._again, len(y))
        self._again -= again
        self._on_batch(batch)
        if again < len(y):
            self._measure(batch.last(len(y) - again) if again else batch, None if rows is None else rows[again:])

    def _measure(self, batch: Batch, rows: Any) -> None:
        self.events += len(batch.y)
        if self.summary is not None:
            self.summary.update(batch)
        for one in self._running.values():
            one.update(batch)
        if self._task == "classification":
            self._counts.update(batch)
        self._recent.update(batch)
        for reference in self._references.values():
            reference.update(rows, batch.y)
        if self._is_measured():
            self._add_row()
            self._places.append(self.row)

    def value(self, name: str) -> float:
        """Return the current value of a metric."""
        return float(self._running[name].value)

    def lately(self, name: str) -> float:
        """Return one of the metrics over the window."""
        counts = self._recent.counts(self._counts.classes) if self._task == "classification" else None
        return float(self._recent.value(partial(metric, name, counts)))

    def end(self) -> list[Row]:
        """Return the rows of results, the last of which describes the current state."""
        if self._task is None:
            raise ValueError("there are no results before the first rows, which decide the task")
        if not self.rows or self.rows[-1]["events"] != self.events:
            self._add_row()
        return self.rows

    def _add_row(self) -> None:
        row = self._facts | {"events": self.events, "seconds": self.seconds}
        for name in self.metrics:
            row[name] = self.value(name)
            row[f"{name}_window"] = self.lately(name)
        for beside, reference in self._references.items():
            row |= {f"{name}_{beside}": value for name, value in reference.values().items()}
        if self._task == "classification":
            row["majority"] = float(self._counts.majority)
            row["majority_window"] = float(self._recent.counts(self._counts.classes).majority)
        self.rows.append(row | weights_of_experts(self.model) | size_of(self.model))
        if self._on_row:
            self._on_row(self.rows[-1])


def _step(row: int) -> int:
    """Return the number of rows between measurements that are spread over the first rows of a stream."""
    step = FINEST
    while row >= 2 * FEWEST * step:
        step *= 2
    return step


class ProgressiveRuns:
    """Several progressive runs that share one pass over a stream; a run that fails is dropped, and the others continue.

    Attributes
    ----------
    running : dict of str to ProgressiveRun
    failed : dict of str to str
        Error messages of the runs that were dropped.

    Examples
    --------
    >>> import kernling as kl
    >>> from kernling.evaluate import ProgressiveRun, ProgressiveRuns, feed
    >>> from kernling.io import synthetic
    >>> rows = synthetic("spirals", 2000)
    >>> runs = ProgressiveRuns({g: ProgressiveRun(kl.AVMClassifier(gamma=g, delta=0.1), rows.info) for g in (0.1, 10.0, -1.0)})
    >>> feed(runs, rows)
    >>> wide, narrow = (run.end()[-1]["mistakes"] for run in runs.running.values())
    >>> print(narrow < wide, list(runs.failed))
    True [-1.0]
    """

    def __init__(self, runs: Mapping[Any, ProgressiveRun]):
        self.running = dict(runs)
        self.failed: dict[Any, str] = {}
        self.events, self.begun = 0, False

    def begin(self, X: Any, y: np.ndarray) -> None:
        """Resolve "auto" parameters from these rows, without learning them."""
        self._each(ProgressiveRun.begin, X, y)
        self.begun = True

    def learn(self, X: Any, y: np.ndarray) -> None:
        """Predict and then learn some rows with all models."""
        if not self.begun:
            self.begin(X, y)
        self._each(ProgressiveRun.learn, X, y)
        self.events += len(y)

    def _each(self, act: Callable[[ProgressiveRun, Any, np.ndarray], None], X: Any, y: np.ndarray) -> None:
        """Apply a method to each run; runs that fail are dropped, unless all fail, which raises the first error."""
        reasons: dict[Any, Exception] = {}
        for name, run in self.running.items():
            try:
                act(run, X, y)
            except (ValueError, TypeError, FloatingPointError) as error:
                reasons[name] = error
        if reasons and len(reasons) == len(self.running):
            raise next(iter(reasons.values()))
        for name, reason in reasons.items():
            self.failed[name] = str(reason)
            del self.running[name]


def online(
    model: Any,
    data: Any,
    *,
    part: str = "train",
    permutations: int = 1,
    seed: int = 0,
    metrics: Sequence[str] | None = None,
    window: int = 1000,
    every: int | None = None,
    on_row: Callable[[Row], None] | None = None,
) -> list[Row]:
    """Evaluate a model test-then-train on random orders of the same rows, each with a new copy of the model.

    Order p is ``numpy.random.default_rng(seed + p).permutation(rows)``; ``random_state`` of the model, if it has one, is seed +
    p.

    Parameters
    ----------
    model : estimator
        Left unchanged.
    data : (X, y), Stream or Dataset
    part : str
        Part of a data set: "train", "test" or "all".
    permutations, seed : int
    metrics, window, every, on_row
        See :func:`test_then_train`.

    Examples
    --------
    >>> import kernling as kl
    >>> from kernling.evaluate import online, summary
    >>> from kernling.io import synthetic
    >>> rows = online(kl.AVMClassifier(gamma=4.0, delta=0.5), synthetic("spirals", 2000), permutations=3)
    >>> summary(rows)[0]["permutations"]
    3
    """
    X, y, facts = load_data(data, part)
    rows: list[Row] = []
    for p, order in orders(len(y), permutations, seed):
        extra = facts | {"permutation": p, "seed": seed}
        copy = copy_with_seed(model, seed + p)
        permuted = stream(X[order], y[order])
        rows += test_then_train(copy, permuted, metrics=metrics, window=window, every=every, on_row=on_row, extra=extra)
    return rows
