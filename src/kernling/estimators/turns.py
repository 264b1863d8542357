"""Threads that share a model: any number may predict, or one may learn, so no prediction uses a partially updated model."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from functools import wraps
from typing import Any


class Turns:
    """A readers-writer lock.  A ``with`` statement waits until no other thread predicts, and excludes all others.

    It is reentrant.  Single events are so short that they just take ``lock`` and are not counted.
    """

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self._changed = threading.Condition(self.lock)
        self.predicting: dict[int, int] = {}  # nested calls of each thread
        self._waiting = 0  # threads that want to learn

    def __enter__(self) -> None:
        self.lock.acquire()
        try:
            if self.predicting:
                self.wait()
        except BaseException:  # such as Ctrl-C
            self.lock.release()
            raise

    def wait(self) -> None:
        """Wait, holding the lock, until no other thread predicts."""
        self._waiting += 1
        try:
            self._changed.wait_for(lambda: not self.predicting.keys() - {threading.get_ident()})
        finally:
            self._waiting -= 1
            self._changed.notify_all()  # threads that wait to predict continue once the lock is free

    def __exit__(self, *_error: object) -> None:
        self.lock.release()

    def begin_predicting(self) -> None:
        """Wait until no thread learns or waits to learn."""
        me = threading.get_ident()
        with self.lock:
            if self._waiting and me not in self.predicting:
                self._changed.wait_for(lambda: not self._waiting)
            self.predicting[me] = self.predicting.get(me, 0) + 1

    def end_predicting(self) -> None:
        """End what ``begin_predicting`` began."""
        me = threading.get_ident()
        with self.lock:
            nested = self.predicting.pop(me) - 1
            if nested:
                self.predicting[me] = nested
            elif self._waiting:
                self._changed.notify_all()


class OwnTurns:
    """An attribute that is created at its first use, once, even if several threads use it at the same time."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, model: Any, owner: type | None = None) -> Turns:
        return model.__dict__.setdefault(self.name, Turns())


class TakesTurns:
    """A model whose copies and pickles have turns of their own."""

    _turns = OwnTurns()

    def __getstate__(self) -> dict[str, Any]:
        state: Any = super().__getstate__()
        return {name: value for name, value in state.items() if name != "_turns"}


def learning(method: Callable) -> Callable:
    """Decorate a method that changes the model."""

    @wraps(method)
    def alone(self: Any, *arguments: Any, **more: Any) -> Any:
        with self._turns:
            return method(self, *arguments, **more)

    return alone


def predicting(method: Callable) -> Callable:
    """Decorate a method that reads the model."""

    @wraps(method)
    def meanwhile(self: Any, *arguments: Any, **more: Any) -> Any:
        self._turns.begin_predicting()
        try:
            return method(self, *arguments, **more)
        finally:
            self._turns.end_predicting()

    return meanwhile


def thread_count(n_jobs: int | None) -> int:
    """Return the number of threads for ``n_jobs``."""
    if n_jobs is None or n_jobs == 0:
        return 1
    return n_jobs if n_jobs > 0 else max(1, (os.cpu_count() or 1) + 1 + n_jobs)
