"""Tasks of the workers.  Results depend only on the arguments, so the work of a lost worker can be repeated exactly."""

from __future__ import annotations

import copy
import math
import time
from typing import Any, NamedTuple

import numpy as np

from ..core.averages import LAST
from ..io.base import rows_of
from ..merging.models import merge
from ..merging.rules import at_time
from ..pipeline import StreamPipeline
from .cluster import need_distributed
from .partitions import Partition, Reading

BAD = (ValueError, OSError, ImportError)  # errors of partitions that cannot be read


class Listener(NamedTuple):
    """Receiver of the progress of a part."""

    topic: str
    part: int
    every: float  # seconds

    def tell(self, events: int) -> None:
        need_distributed().get_worker().log_event(self.topic, (self.part, events))


class Beginning(NamedTuple):
    """The model that all parts start from, or the error."""

    model: Any = None
    rows: int = 0  # that it has learned
    columns: dict[str, Any] = {}  # options for reading other partitions, whatever the order of their columns
    failure: str = ""


class Outcome(NamedTuple):
    """A model, or None if there were no rows; its events since the start; and the partitions that could not be read."""

    model: Any
    events: int
    failures: tuple[tuple[str, str], ...] = ()


def begin(model: Any, partition: Partition, piece: Any, reading: Reading, rows: int, classes: Any) -> Beginning:
    """Learn the first rows of a partition, so that what depends on the data is determined once."""
    try:
        read = reading.stream(partition, piece)
        for X, y in read:
            begun = copy.deepcopy(model)
            if isinstance(begun, StreamPipeline):
                begun.begin(X)
            learn(begun, *rows_of(X, y, slice(rows)), classes)
            columns = {} if read.names is None else {"features": list(read.names), "target": read.target}
            return Beginning(begun, min(rows, X.shape[0]), columns)
    except BAD as error:
        return Beginning(failure=f"{partition.name}: {error}")
    return Beginning(failure=f"{partition.name} has no rows")


def learn(model: Any, X: Any, y: Any, classes: Any = None) -> None:
    """Learn some rows; classes are passed with the first rows of a classifier."""
    known = {} if classes is None or hasattr(model, "t_") else {"classes": classes}
    model.partial_fit(X, y, **known)


def train(
    start: Any,
    seed: tuple[int, tuple[int, ...]],
    partitions: list[Partition],
    pieces: list[Any],
    reading: Reading,
    skips: list[int],
    listener: Listener | None = None,
) -> Outcome:
    """Train from the start on some partitions, each without its first rows in ``skips``; damaged ones are skipped entirely."""
    told = time.monotonic()
    model = copy.deepcopy(start)
    model._rng = np.random.default_rng(np.random.SeedSequence(seed[0], spawn_key=seed[1]))
    failures = []
    for partition, piece, skip in zip(partitions, pieces, skips, strict=True):
        before = copy.deepcopy(model)
        try:
            for X, y in reading.chunks(partition, piece):
                if skip < X.shape[0]:
                    learn(model, *rows_of(X, y, slice(skip, None)))
                skip = max(0, skip - X.shape[0])
                if listener and time.monotonic() - told > listener.every:
                    told = time.monotonic()
                    listener.tell(model.t_ - start.t_)
        except BAD as error:
            failures.append((partition.name, str(error)))
            model = before
    if model.learner.finish:
        model._state = model.learner.finish(model._setup, model._params, model._state)
    return Outcome(model, model.t_ - start.t_, tuple(failures))


def join(a: Outcome, b: Outcome, start: Any) -> Outcome:
    """Merge two outcomes."""
    failures = (*a.failures, *b.failures)
    weights = [a.events, b.events]
    if not all(weights):
        return (a if a.events else b)._replace(failures=failures)
    return Outcome(merge([a.model, b.model], weights, start=start), a.events + b.events, failures)


def started(model: Any, parts: int) -> Any:
    """Return a model that this many parts continue from, with an adjusted clock (0: unadjusted).

    Steps of size 1 / (lam t) that continue at event t would move the mean of P parts P times slower than a single learner; at
    event t / P it moves as fast and varies as much, once it is averaged over time too (Stich, Local SGD Converges Fast and
    Communicates Little, ICLR 2019).  Where the last model predicts, each part is then too far from the others: steps are larger
    by sqrt(P) only, with which a step of the mean of P parts varies as much as a step of one learner.
    """
    if not parts:
        return model
    slower = math.sqrt(parts) if model._setup.output == LAST else parts
    return at(model, max(1, round(model.t_ / slower)))


def at(model: Any, events: int) -> Any:
    """Return the model with its clock set to this number of events."""
    model = copy.deepcopy(model)
    model._state = at_time(model.learner.merge, model._setup, model._params, model._state, float(events))
    error, event = model._merged
    model._merged = (error, events if event >= 0 else event)
    model._drop_buffers()
    return model


def settle(outcome: Outcome, before: Any) -> Outcome:
    """Return the merged model with the clock set to all events, or the previous one if there were no rows."""
    if not outcome.events:
        return outcome._replace(model=before)
    return outcome._replace(model=at(outcome.model, before.t_ + outcome.events))


def say(model: Any, partition: Partition, piece: Any, reading: Reading, method: str) -> Any:
    """Return the predictions for each row of a partition."""
    try:
        return np.concatenate([getattr(model, method)(X) for X, _ in reading.chunks(partition, piece)])
    except BAD as error:
        raise ValueError(f"{partition.name} cannot be read: {error}") from error
