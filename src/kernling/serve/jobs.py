"""The queue of requests for the thread that learns."""

from __future__ import annotations

import threading
from collections import deque
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from .refusal import Refused


@dataclass(eq=False)
class Job:
    """A request to learn rows or to create a model; the answer is set on its future."""

    name: str
    rows: list[dict[str, Any]] = field(default_factory=list)
    spec: dict[str, Any] | None = None  # of a model to be created
    model: Any = None  # a fitted model, and its traits
    traits: Any = None
    future: Future = field(default_factory=Future)

    def is_wanted(self) -> bool:
        """Return whether the client is still waiting; after that, the job can no longer be cancelled."""
        return self.future.set_running_or_notify_cancel()

    @property
    def size(self) -> int:
        """The size of the job in the queue, in rows."""
        return max(len(self.rows), 1)


class Jobs:
    """A queue with a maximum number of rows, from which several jobs are taken at once."""

    def __init__(self, limit: int):
        self.limit = limit
        self.waiting = 0  # rows
        self._jobs: deque[Job] = deque()
        self._changed = threading.Condition()
        self._closed = False

    def put(self, job: Job) -> Future:
        """Add a job; raise if the queue is full or closed."""
        with self._changed:
            if self._closed:
                raise Refused(503, "the service is stopping: try again", retry_after=1)
            if self._jobs and self.waiting + job.size > self.limit:
                raise Refused(429, "too many rows are waiting to be learned: send these again later", retry_after=1)
            self._jobs.append(job)
            self.waiting += job.size
            self._changed.notify()
        return job.future

    def gather(self, most: int, seconds: float) -> None:
        """Wait this long, or until so many rows are waiting or the queue is closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._closed or self.waiting >= most, seconds)

    def take(self, most: int) -> list[Job]:
        """Wait for jobs and return them: at least one, and at most ``most`` rows; none if the queue is closed and empty.

        Jobs whose clients have disconnected are included: call ``is_wanted`` once for each.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._jobs or self._closed)
            taken: list[Job] = []
            size = 0
            while self._jobs and (not taken or size + self._jobs[0].size <= most):
                taken.append(self._jobs.popleft())
                size += taken[-1].size
            self.waiting -= size
        return taken

    def close(self) -> None:
        """Accept no more jobs."""
        with self._changed:
            self._closed = True
            self._changed.notify()
