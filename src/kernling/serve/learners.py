"""Threads that learn, and the share of time that a model gets at once."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence, Set
from queue import SimpleQueue
from typing import Any

THREADS = max(2, min(4, os.cpu_count() or 2))
ROWS = 2048  # learned at most in a turn
WORK = 2**32  # bytes of the model times rows of a turn: about 0.2 seconds
NEW = 64  # rows that cost as much as a new class


class Learners:
    """Threads that learn for several models in turn, a few rows at a time, so that no model waits long for another.

    Examples
    --------
    >>> from kernling.serve.learners import Learners
    >>> learned = []
    >>> learners = Learners()
    >>> learners.add(learned.append(row) for row in range(3))
    >>> learners.stop()
    >>> learned
    [0, 1, 2]
    """

    def __init__(self) -> None:
        self._turns: SimpleQueue[Iterator[Any] | None] = SimpleQueue()
        self._threads = [threading.Thread(target=self._run, name=f"learner {place}") for place in range(THREADS)]
        for thread in self._threads:
            thread.start()

    def add(self, turns: Iterator[Any]) -> None:
        """Run an iterator to its end; other iterators get their turn between two of its items."""
        self._turns.put(turns)

    def stop(self) -> None:
        """Finish everything that was added, and end the threads."""
        for _ in self._threads:
            self._turns.put(None)
        for thread in self._threads:
            thread.join()

    def _run(self) -> None:
        ended = object()
        while True:
            turns = self._turns.get()
            if turns is None:
                if self._turns.empty():
                    return
                self._turns.put(None)  # something is not finished yet
                continue
            while next(turns, ended) is not ended:
                if not self._turns.empty():
                    self._turns.put(turns)
                    break


def share(targets: Sequence[Any], known: Set[Any] | None, size: int) -> int:
    """Return how many rows a model of this size in bytes learns in one turn; ``known`` are its classes, None for values.

    It depends on nothing else, such as the time: after a restart, the journal is learned in the same turns.

    Examples
    --------
    >>> from kernling.serve.learners import share
    >>> share(["a"] * 10_000, {"a", "b"}, size=2**20), share(["a"] * 10_000, {"a", "b"}, size=2**28)
    (2048, 16)
    """
    rows, most = min(len(targets), ROWS), WORK / max(size, 1)
    if known is None or known >= set(targets[:rows]):
        return max(1, min(rows, int(most)))
    spent, seen = 0.0, set(known)
    for place, target in enumerate(targets[:rows]):
        spent += (1.0 if target in seen else NEW) * len(seen) / max(len(known), 1)
        seen.add(target)
        if spent > most:
            return max(1, place)
    return rows
