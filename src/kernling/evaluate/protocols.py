# ruff: noqa: PT028 - test_then_train is no test
"""Test-then-train over a stream, and batch training and testing over permutations."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from itertools import pairwise
from typing import Any, Protocol

import numpy as np

from ..pipeline import StreamPipeline
from ..streams import Stream, Table, stream
from ..streams.base import Chunk
from .measuring import (
    chosen_metrics,
    data_facts,
    is_fitted,
    learn,
    orders,
    resolve,
    seeded,
    size_of,
    task_of,
    tested,
    warm_up,
)
from .metrics import Batch, Counts, Window, metric
from .references import WIDEST, ConstantAnswer, LinearModel, Reference
from .rows import Row, described, loaded


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
    """Let a model predict each row just before it learns it; returns what was measured, one row per moment.

    Parameters
    ----------
    model : estimator
        Learns on from what it knows.
    rows : Stream
    metrics : sequence of str, optional
        Of mistakes, accuracy, balanced_accuracy, f1, log_loss, auc; rmse, mae.  By default the first two of the task.
    window : int
        Rows of the sliding window; each metric is also given over it, as ``<metric>_window``, which shows drift.
    every : int, optional
        Rows between moments; without it there is one moment, the end.
    linear : bool
        Whether a linear model learns beside it, as ``<metric>_linear``, where there are at most 300 columns.
    on_row : callable, optional
        Called with each row as it is made.
    extra : dict, optional
        Goes into every row.

    Returns
    -------
    list of dict
        With ``events`` and ``seconds`` so far (the processor's, of learning and predicting; compiling is not counted), the
        metrics, those of the constant answer beside them (``<metric>_constant``: the most common label or the mean of the rows
        before), the ``majority`` rate (of the most common class so far, and in the window), and the model's size.

    Examples
    --------
    >>> import kernling as kl
    >>> from kernling.evaluate import test_then_train
    >>> from kernling.streams import synthetic
    >>> model = kl.AVMClassifier(gamma=4.0, delta=0.5)
    >>> rows = test_then_train(model, synthetic("checkerboard", 4000), every=1000)
    >>> [row["events"] for row in rows]
    [1000, 2000, 3000, 4000]
    >>> rows[-1]["mistakes"] < 0.2 < rows[-1]["mistakes_constant"]
    True
    """
    options: dict[str, Any] = {"metrics": metrics, "window": window, "every": every, "linear": linear}
    course = ProgressiveRun(model, rows.info, **options, on_row=on_row, extra=extra)
    feed(course, rows)
    return course.end()


test_then_train.__test__ = False  # type: ignore[attr-defined]  # its name is no invitation to pytest


class Learns(Protocol):
    """What can be fed with a stream: a :class:`ProgressiveRun`, several of them, or a :class:`Search`."""

    @property
    def events(self) -> int: ...  # learned so far

    @property
    def begun(self) -> bool: ...  # whether what the first rows decide is settled

    def begin(self, X: Any, y: np.ndarray) -> None: ...

    def learn(self, X: Any, y: np.ndarray) -> None: ...


def feed(
    course: Learns,
    chunks: Iterable[Chunk],
    *,
    cut: int | None = None,
    guard: Callable[[], AbstractContextManager] = nullcontext,
    after: Callable[[], None] = lambda: None,
) -> None:
    """Have a course test and learn the chunks of a stream: the loop behind everything that is evaluated test-then-train.

    The whole first chunk settles what the first rows decide, in however many pieces it is then learned.

    Parameters
    ----------
    course : ProgressiveRun, Courses or Search
    chunks : iterable of (X, y)
    cut : int, optional
        Pieces end at multiples of this many events.
    guard : callable, optional
        Makes a context in which a piece is learned: what has to wait for its end can wait there.
    after : callable, optional
        Called after each piece, within the guard.

    Examples
    --------
    >>> import kernling as kl
    >>> from kernling.evaluate import ProgressiveRun, feed
    >>> from kernling.streams import synthetic
    >>> rows, seen = synthetic("spirals", 2500), []
    >>> course = ProgressiveRun(kl.AVMClassifier(), rows.info)
    >>> feed(course, rows, cut=1000, after=lambda: seen.append(course.events))
    >>> seen
    [1000, 2000, 2500]
    """
    for X, y in chunks:
        if y is None:
            raise ValueError("the stream has no target; name its column with target=")
        if not course.begun:
            course.begin(X, y)
        cuts = range(cut - course.events % cut, len(y), cut) if cut else ()
        for first, last in pairwise([0, *cuts, len(y)]):
            with guard():
                course.learn(X[first:last], y[first:last])
                after()


class ProgressiveRun:
    """Test-then-train of one model, for whoever holds the rows.

    The arguments are those of :func:`test_then_train`; ``info`` is the stream's, and ``on_batch`` is called with what was said
    about rows once they are learned.

    Examples
    --------
    >>> import kernling as kl
    >>> from kernling.evaluate import ProgressiveRun
    >>> from kernling.streams import synthetic
    >>> rows = synthetic("spirals", 2000)
    >>> course = ProgressiveRun(kl.AVMClassifier(gamma=10.0, delta=0.1), rows.info)
    >>> for X, y in rows:
    ...     course.learn(X, y)
    >>> course.end()[-1]["events"]
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
    ):
        self.model = model
        self.metrics = chosen_metrics(metrics, model.task)
        self._need = "decision_function" if any(metric(name).needs != "predict" for name in self.metrics) else "predict"
        if "log_loss" in self.metrics and not hasattr(model, "predict_proba"):
            raise ValueError("log_loss needs probabilities: a classifier with loss='logistic' (two classes) or 'softmax'")
        if every is not None and every < 1:
            raise ValueError(f"every must be at least 1 row, not {every}")
        self._every = every
        self._on_row = on_row
        self._on_batch = on_batch
        self._counts = Counts()
        self._running = {name: metric(name, self._counts) for name in self.metrics}
        self._recent = Window(window)
        self._references = {"constant": Reference(ConstantAnswer(model.task), self.metrics, window)}
        if linear:
            self._references["linear"] = Reference(LinearModel(model.task), self.metrics, window)
        before = model.t_ if is_fitted(model) else 0
        self._facts = {"protocol": "online", "window": window, "every": every, "learned_before": before}
        self._facts |= described(model) | data_facts(info) | (extra or {})
        self.rows: list[Row] = []
        self.events, self.seconds = 0, 0.0
        self.warmup = 0.0  # seconds by the clock that compiling, or loading what was compiled, took
        self.begun = False

    def begin(self, X: Any, y: np.ndarray) -> None:
        """Settle what the first rows decide, such as "auto" parameters, by these; nothing is learned yet."""
        self._facts["first_chunk"] = len(y)
        begin = time.perf_counter()
        warm_up(self.model, X, y)
        self.warmup = time.perf_counter() - begin
        begin = time.process_time()
        resolve(self.model, X, y)
        self.seconds += time.process_time() - begin
        self.begun = True

    def learn(self, X: Any, y: np.ndarray) -> None:
        """Test and learn some rows."""
        if not self.begun:
            self.begin(X, y)
        every = self._every
        cuts = range(every - self.events % every, len(y), every) if every else ()
        for first, last in pairwise([0, *cuts, len(y)]):
            self._learn(X[first:last], y[first:last])

    def _last_rows(self, X: Any, y: np.ndarray) -> Any:
        """Rows as the last step of a pipeline is about to get them."""
        rows = self.model.ahead(X, y) if isinstance(self.model, StreamPipeline) else X
        return np.asarray(rows) if isinstance(rows, Table) else rows

    def _learn(self, X: Any, y: np.ndarray) -> None:
        rows = self._last_rows(X, y) if "linear" in self._references else None
        if rows is not None and rows.shape[1] > WIDEST:
            del self._references["linear"]
        begin = time.process_time()
        batch = learn(self.model, X, y, self._need, "log_loss" in self.metrics)
        self.seconds += time.process_time() - begin
        self.events += len(y)
        for one in self._running.values():
            one.update(batch)
        if self.model.task == "classification":
            self._counts.update(batch)
        self._recent.update(batch)
        for reference in self._references.values():
            reference.update(rows, y)
        self._on_batch(batch)
        if self._every and self.events % self._every == 0:
            self._moment()

    def value(self, name: str) -> float:
        """One of the metrics, now."""
        return float(self._running[name].value)

    def end(self) -> list[Row]:
        """What was measured, one row per moment; the last is now."""
        if not self.rows or self.rows[-1]["events"] != self.events:
            self._moment()
        return self.rows

    def _moment(self) -> None:
        row = self._facts | {"events": self.events, "seconds": self.seconds}
        lately = self._recent.counts(self._counts.classes) if self.model.task == "classification" else None
        for name in self.metrics:
            row[name] = self.value(name)
            row[f"{name}_window"] = float(self._recent.value(partial(metric, name, lately)))
        for beside, reference in self._references.items():
            row |= {f"{name}_{beside}": value for name, value in reference.values().items()}
        if lately:
            row["majority"] = float(self._counts.majority)
            row["majority_window"] = float(lately.majority)
        self.rows.append(row | size_of(self.model))
        if self._on_row:
            self._on_row(self.rows[-1])


class Courses:
    """Several courses that share one reading of a stream; one that cannot go on drops out, and the others do not notice.

    Attributes
    ----------
    running : dict of str to ProgressiveRun
    failed : dict of str to str
        Why the others dropped out.

    Examples
    --------
    >>> import kernling as kl
    >>> from kernling.evaluate import ProgressiveRun, Courses, feed
    >>> from kernling.streams import synthetic
    >>> rows = synthetic("spirals", 2000)
    >>> courses = Courses({g: ProgressiveRun(kl.AVMClassifier(gamma=g, delta=0.1), rows.info) for g in (0.1, 10.0, -1.0)})
    >>> feed(courses, rows)
    >>> wide, narrow = (course.end()[-1]["mistakes"] for course in courses.running.values())
    >>> print(narrow < wide, list(courses.failed))
    True [-1.0]
    """

    def __init__(self, courses: Mapping[Any, ProgressiveRun]):
        self.running = dict(courses)
        self.failed: dict[Any, str] = {}
        self.events, self.begun = 0, False

    def begin(self, X: Any, y: np.ndarray) -> None:
        """Settle what the first rows decide; nothing is learned yet."""
        self._each(ProgressiveRun.begin, X, y)
        self.begun = True

    def learn(self, X: Any, y: np.ndarray) -> None:
        """Let all test and learn some rows."""
        if not self.begun:
            self.begin(X, y)
        self._each(ProgressiveRun.learn, X, y)
        self.events += len(y)

    def _each(self, act: Callable[[ProgressiveRun, Any, np.ndarray], None], X: Any, y: np.ndarray) -> None:
        """Let each do something; those that cannot drop out, unless all cannot: then nothing changes."""
        reasons: dict[Any, Exception] = {}
        for name, course in self.running.items():
            try:
                act(course, X, y)
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
    """Test-then-train over random orders of the same rows, each with a new copy of the model.

    Order p is ``numpy.random.default_rng(seed + p).permutation(rows)``; a model that has a ``random_state`` gets seed + p.

    Parameters
    ----------
    model : estimator
        Not changed.
    data : (X, y), Stream or Dataset
    part : str
        Of a data set: "train", "test" or "all".
    permutations, seed : int
    metrics, window, every, on_row
        As in :func:`test_then_train`.

    Examples
    --------
    >>> import kernling as kl
    >>> from kernling.evaluate import online, summary
    >>> from kernling.streams import synthetic
    >>> rows = online(kl.AVMClassifier(gamma=4.0, delta=0.5), synthetic("spirals", 2000), permutations=3)
    >>> summary(rows)[0]["permutations"]
    3
    """
    X, y, facts = loaded(data, part)
    rows: list[Row] = []
    for p, order in orders(len(y), permutations, seed):
        extra = facts | {"permutation": p, "seed": seed}
        copy = seeded(model, seed + p)
        permuted = stream(X[order], y[order])
        rows += test_then_train(copy, permuted, metrics=metrics, window=window, every=every, on_row=on_row, extra=extra)
    return rows


def batch(
    model: Any,
    data: Any,
    *,
    test: Any = None,
    test_size: float = 0.1,
    permutations: int = 1,
    seed: int = 0,
    metrics: Sequence[str] | None = None,
    on_row: Callable[[Row], None] | None = None,
) -> list[Row]:
    """Fit on one part and measure on another, over random orders; one row per permutation.

    Orders and seeds are those of :func:`online`.

    Parameters
    ----------
    model : estimator
        Not changed.
    data : (X, y), Stream or Dataset
        The training rows; without ``test`` the last of each order are kept back.
    test : (X, y), Stream or str, optional
        The test rows, or the name of a part of the data set.
    test_size : float
        The fraction kept back.
    permutations, seed : int
    metrics, on_row
        As in :func:`test_then_train`.

    Returns
    -------
    list of dict
        With the processor's ``seconds`` of fitting, ``test_seconds``, the metrics on the test rows and their ``majority`` rate.

    Examples
    --------
    >>> import kernling as kl
    >>> from kernling.evaluate import batch
    >>> from kernling.streams import synthetic
    >>> rows = batch(kl.AVMClassifier(gamma=4.0, delta=0.2), synthetic("checkerboard", 4000), test_size=0.25)
    >>> print(rows[0]["events"], rows[0]["accuracy"] > 0.85)
    3000 True
    """
    names = chosen_metrics(metrics, task_of(model))
    X, y, facts = loaded(data)
    facts["test_part"] = None
    held: tuple[Any, np.ndarray] | None = None
    if isinstance(test, str):
        held = data.load(test)
        facts["test_part"] = test
    elif test is not None:
        held = loaded(test)[:2]
    elif not 0.0 < test_size < 1.0:
        raise ValueError(f"test_size must be between 0 and 1, not {test_size}")
    facts["test_size"] = None if held else test_size
    rows: list[Row] = []
    for p, order in orders(len(y), permutations, seed):
        cut = len(y) if held else len(y) - round(test_size * len(y))
        X_test, y_test = held or (X[order[cut:]], y[order[cut:]])
        copy = seeded(model, seed + p)
        train = X[order[:cut]], y[order[:cut]]
        warm_up(copy, *train)
        begin = time.process_time()
        copy.fit(*train)
        middle = time.process_time()
        found = tested(copy, X_test, y_test, names)
        seconds = {"seconds": middle - begin, "test_seconds": time.process_time() - middle}
        row = (
            {"protocol": "batch"} | described(copy) | facts | {"permutation": p, "seed": seed, "events": cut} | seconds | found
        )
        rows.append(row | size_of(copy))
        if on_row:
            on_row(rows[-1])
    return rows
