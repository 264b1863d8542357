"""The queue of requests to learn, with a share for each model."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from .refusal import Refused

REST = 0.1  # seconds at most between two blocks of a model
ENOUGH = 512  # rows of a block, beyond which each costs hardly less


class Taken(NamedTuple):
    """A batch that was read from a source."""

    source: str
    batch: int  # its number
    offsets: dict[str, Any]  # where to go on after it
    places: Sequence[str] = ()  # of the rows to learn
    events: Sequence[bytes] = ()  # what they were made of

    def to_plain(self) -> dict[str, list[Any]]:
        """Return the offsets as the journal has them."""
        return {self.source: [self.batch, self.offsets]}


@dataclass(eq=False)
class Job:
    """A request to learn rows, or to create, rename or delete a model; the answer is set on its future."""

    name: str
    rows: list[dict[str, Any]] = field(default_factory=list)
    spec: dict[str, Any] | None = None  # of a model to be created
    model: Any = None  # a fitted model, and its traits
    traits: Any = None
    deletes: bool = False  # the model
    new_name: str | None = None  # of the model
    bytes: int = 0  # of the request
    taken: Taken | None = None  # if the rows are events of a source, each of which is learned if it can be, whatever the others
    future: Future = field(default_factory=Future)

    def is_wanted(self) -> bool:
        """Return whether the client is still waiting; after that, the job can no longer be cancelled."""
        return self.future.set_running_or_notify_cancel()

    @property
    def is_change(self) -> bool:
        """Whether it deletes or renames the model: what was asked before it is learned first."""
        return self.deletes or self.new_name is not None

    @property
    def size(self) -> int:
        """The size of the job in the queue, in rows."""
        return max(len(self.rows), 1)


@dataclass(eq=False)
class Lane:
    """The jobs of one model, in the order of the requests."""

    jobs: deque[Job] = field(default_factory=deque)
    rows: int = 0
    bytes: int = 0
    begun: float | None = None  # when the jobs that are being learned were taken; None if there are none
    rests_until: float = 0.0
    taken: int = 0  # rows of the last block

    def is_used(self, now: float) -> bool:
        """Return whether the lane has jobs, or rests from some, or those that were taken are not learned yet."""
        return bool(self.jobs) or self.begun is not None or now < self.rests_until

    def is_ready(self, most: int, now: float) -> bool:
        """Return whether jobs may be taken: the last ones are learned, and it has rested, or there is no reason to.

        Clients that have been answered usually send again at once: there is none once as many rows wait as were learned last.
        """
        has_rested = now >= self.rests_until or self.rows >= min(most, self.taken, ENOUGH)
        return bool(self.jobs) and self.begun is None and has_rested


class Jobs:
    """A queue from which models take turns: the next jobs of a model are taken once the last ones have been learned.

    A model may fill at most half of what the others leave free, in rows and in bytes, so that there is always room for another.

    Examples
    --------
    >>> from kernling.serve.jobs import Job, Jobs
    >>> jobs = Jobs(rows=100, bytes=1000)
    >>> for name in ("a", "a", "b"):
    ...     _ = jobs.put(Job(name))
    >>> [job.name for job in jobs.take(2)], jobs.waiting
    (['a', 'a'], 1)
    >>> _ = jobs.put(Job("a"))
    >>> [job.name for job in jobs.take(2)]  # "a" is still learning
    ['b']
    """

    def __init__(self, rows: int, bytes: int):
        self.rows, self.bytes = rows, bytes
        self.waiting = 0  # rows
        self.waiting_bytes = 0
        self._lanes: dict[str, Lane] = {}  # those that come first have waited longest for their turn
        self._changed = threading.Condition()
        self._closed = False

    def put(self, job: Job) -> Future:
        """Add a job; raise if the queue is full or closed."""
        with self._changed:
            if self._closed:
                raise Refused(503, "the service is stopping: try again", retry_after=1)
            lane = self._lanes.get(job.name) or Lane()
            free, free_bytes = self.rows - self.waiting, self.bytes - self.waiting_bytes
            if self.waiting and (lane.rows + job.size > free or lane.bytes + job.bytes > free_bytes):
                raise Refused(429, "too many rows are waiting to be learned: send these again later", retry_after=1)
            self._lanes[job.name] = lane
            lane.jobs.append(job)
            self._count(lane, job, 1)
            self._changed.notify()
        return job.future

    def _count(self, lane: Lane, job: Job, sign: int) -> None:
        lane.rows += sign * job.size
        lane.bytes += sign * job.bytes
        self.waiting += sign * job.size
        self.waiting_bytes += sign * job.bytes

    def take(self, most: int, alone: Callable[[str], bool] = lambda name: False) -> list[Job]:
        """Wait for jobs and return them: at least one, and at most ``most`` rows; none if the queue is closed and empty.

        Of a name that is ``alone``, it is one.  Call ``release`` for each of their names when they are done.  Jobs whose
        clients have disconnected are included: call ``is_wanted`` once for each.
        """
        with self._changed:
            while True:
                now = time.monotonic()
                ready = [name for name, lane in self._lanes.items() if lane.is_ready(0 if self._closed else most, now)]
                if ready:
                    return self._taken(ready, most, now, alone)
                self._lanes = {name: lane for name, lane in self._lanes.items() if lane.is_used(now)}
                if self._closed and not self._lanes:
                    return []
                rests = [lane.rests_until - now for lane in self._lanes.values() if lane.begun is None]
                self._changed.wait(min(rests, default=None))

    def _taken(self, names: list[str], most: int, now: float, alone: Callable[[str], bool]) -> list[Job]:
        taken: list[Job] = []
        for name in names:
            lane = self._lanes[name]
            before = lane.rows
            while lane.jobs and (not taken or most >= lane.jobs[0].size):
                if lane.jobs[0].is_change and lane.begun is not None:
                    break
                job = lane.jobs.popleft()
                self._count(lane, job, -1)
                taken.append(job)
                most -= job.size
                lane.begun = now
                if alone(name) or job.is_change:
                    break
            if lane.begun is None:  # the block is full: its turn comes first next time
                break
            lane.taken = before - lane.rows
            self._lanes[name] = self._lanes.pop(name)
        return taken

    def release(self, name: str) -> None:
        """Let a model take its next jobs, after a rest at most as long as the last ones took.

        Requests that arrive meanwhile are learned together, which costs less, and other threads get half of the time if few do.
        """
        with self._changed:
            lane = self._lanes[name]
            now = time.monotonic()
            lane.rests_until = now + min(now - (lane.begun or now), REST)
            lane.begun = None
            self._changed.notify()

    def close(self) -> None:
        """Accept no more jobs."""
        with self._changed:
            self._closed = True
            self._changed.notify()
