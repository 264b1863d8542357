"""The stages of distributed training: parts are trained in parallel and merged in a tree.

Parts and tree depend only on the list of partitions, and each task only on its arguments, so neither the number of
workers nor the loss of one changes the result.
"""

from __future__ import annotations

import queue
import time
import uuid
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ..pipeline import StreamPipeline
from . import training
from .partitions import Partition, Reading
from .results import Progress

MOST_PARTS = 64  # models trained in parallel by default
TELL_EVERY = 0.5  # seconds
POLL = 0.2  # seconds; a signal delivered to another thread does not wake up a waiting one


class Part(NamedTuple):
    places: list[int]  # of its partitions
    number: int


def stages_of(partitions: int, parts: int | None, merge_every: int | None) -> list[list[Part]]:
    """Return the partitions of each part of each stage: consecutive ones, as evenly as possible."""
    count = min(parts or min(partitions, MOST_PARTS), partitions)
    length = partitions if merge_every is None else count * merge_every
    stages = []
    for first in range(0, partitions, length):
        places = np.arange(first, min(first + length, partitions))
        groups = np.array_split(places, min(count, len(places)))
        stages.append([Part(group.tolist(), number) for number, group in enumerate(groups)])
    return stages


class Node(NamedTuple):
    """A model in the tree: of one part, or merged from two nodes."""

    task: Any
    children: tuple[int, ...] = ()  # indices in the list of nodes


class Run:
    """One call of fit."""

    def __init__(self, client: Any, partitions: list[Partition], pieces: list[Any], reading: Reading, progress: Any):
        self.client, self.partitions, self.pieces, self.reading, self.progress = client, partitions, pieces, reading, progress
        self.model: Any = None  # merged so far
        self.parts = 0  # number of parts that continue from it, with adjusted clocks; 0: unadjusted
        self.futures: list[Any] = []  # of this stage
        self.finished: dict[int, Any] = {}  # of these, the largest finished trees
        self.round, self.events, self.begun = 1, 0, time.perf_counter()
        self.skip: tuple[int, int] = (-1, 0)  # a partition and the number of its first rows that were already learned
        self.told: list[tuple[str, str]] = []

    def begin(self, model: Any, first_rows: int, classes: Any) -> None:
        """Create the model that all parts start from."""
        if hasattr(model, "t_"):
            self._start(model)
            return
        failures = []
        for place, (partition, piece) in enumerate(zip(self.partitions, self.pieces, strict=True)):
            task = self.task(training.begin)(model, partition, piece, self.reading, first_rows, classes)
            beginning = self.client.compute(task).result()
            if beginning.model is not None:
                self.reading = self.reading._replace(options=self.reading.options | beginning.columns)
                self._start(beginning.model)
                self.skip, self.events = (place, beginning.rows), beginning.rows
                return
            failures.append(beginning.failure)
        raise ValueError(f"there are no rows to learn from: {'; '.join(failures)}")

    def _start(self, model: Any) -> None:
        """Set the start of all parts: the last step, trained on rows transformed by the other steps."""
        if isinstance(model, StreamPipeline):
            self.reading = self.reading._replace(pipeline=model)
            model = model.model_
        self.model = model

    def whole(self, model: Any) -> Any:
        """Return a model with the preprocessing steps."""
        return model if self.reading.pipeline is None else self.reading.pipeline.with_model(model)

    def task(self, function: Callable) -> Callable:
        """Return a function that adds a task with a unique name to the graph when it is called."""
        from dask import delayed

        return delayed(function, pure=False)

    def stage(self, stage: list[Part], entropy: int, number: int, warm: bool) -> tuple[tuple[str, str], ...]:
        """Train and merge all parts of a stage; return the partitions that could not be read.

        No task depends on data that exist only in a worker's memory, so any can be repeated.
        """
        self.parts, topic = 0 if warm else len(stage), f"kernling-{uuid.uuid4()}"
        start = self.task(training.started)(self.model, self.parts)
        train, join = self.task(training.train), self.task(training.join)
        jobs = [
            train(
                start,
                (entropy, (number, part.number)),
                *self._arguments(part),
                training.Listener(topic, part.number, TELL_EVERY),
            )
            for part in stage
        ]
        nodes = [Node(job) for job in jobs]
        level = list(range(len(nodes)))
        while len(level) > 1:
            pairs = [level[i : i + 2] for i in range(0, len(level), 2)]
            level = []
            for pair in pairs:
                if len(pair) == 2:
                    nodes.append(Node(join(*(nodes[i].task for i in pair), start), tuple(pair)))
                level.append(pair[0] if len(pair) == 1 else len(nodes) - 1)
        outcome = self._watch(nodes, [self.task(_events)(job) for job in jobs], topic)
        model = training.settle(outcome, self.model).model
        self.finished = {}
        self.model = model
        if any(self.skip[0] in part.places for part in stage):
            self.skip = (-1, 0)  # further rounds learn all rows
        return outcome.failures

    def _watch(self, nodes: list[Node], counts: list[Any], topic: str) -> training.Outcome:
        """Wait for the last node, and report the progress."""
        news: queue.SimpleQueue[tuple[int, int | None]] = queue.SimpleQueue()
        self.client.subscribe_topic(topic, lambda event: news.put(event[1]))
        self.futures = self.client.compute([*(node.task for node in nodes), *counts])
        for place, future in enumerate(self.futures):
            future.add_done_callback(lambda _, place=place: news.put((place, None)))
        learned, done = [0] * len(counts), set[int]()
        try:
            while len(done) < len(self.futures):
                try:
                    place, told = news.get(timeout=POLL)
                except queue.Empty:
                    continue
                part = place if told is not None else place - len(nodes)
                if told is None:
                    done.add(place)
                    self._keep(place if place < len(nodes) else part, nodes)  # a part is finished when its count is
                    if place < len(nodes):
                        continue
                    told = self.futures[place].result()
                elif len(nodes) + part in done:
                    continue  # message of an earlier stage
                learned[part] = told
                if self.progress:
                    finished = sum(place >= len(nodes) for place in done)
                    events, seconds = self.events + sum(learned), time.perf_counter() - self.begun
                    self.progress(Progress(self.round, finished, len(counts), events, seconds))
        finally:
            self.client.unsubscribe_topic(topic)
        self.events += sum(learned)
        return self.futures[len(nodes) - 1].result()

    def _keep(self, place: int, nodes: list[Node]) -> None:
        """Keep a finished node until its parent is finished."""
        future = self.futures[place]
        if future is None:  # its parent is finished
            return
        if future.status == "error":
            future.result()  # raises
        self.finished[place] = future
        for child in nodes[place].children:
            self.finished.pop(child, None)
            self.futures[child] = None

    def so_far(self) -> Any:
        """Return the model merged from all finished parts; the others are cancelled."""
        outcomes = self.client.gather(list(self.finished.values()))
        self.client.cancel([future for future in self.futures if future is not None])
        if not outcomes:
            return self.model
        start, merged = training.started(self.model, self.parts), outcomes[0]
        for outcome in outcomes[1:]:
            merged = training.join(merged, outcome, start)
        return training.settle(merged, self.model).model

    def _arguments(self, part: Part) -> tuple[Any, ...]:
        chosen = [self.partitions[i] for i in part.places], [self.pieces[i] for i in part.places]
        skips = [self.skip[1] if i == self.skip[0] else 0 for i in part.places]
        return *chosen, self.reading, skips


def _events(outcome: training.Outcome) -> int:
    return outcome.events
