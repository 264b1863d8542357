"""Threads that share a model: any number may predict, or one may learn, so no prediction uses a partially updated model."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from functools import wraps
from types import FrameType
from typing import Any, NamedTuple


class Prediction(NamedTuple):
    """A call that predicts, and the lock it holds."""

    lock: Any
    call: FrameType


class Turns:
    """A readers-writer lock that an exception cannot leave locked, wherever a signal handler or another thread raises it.

    Only ``with`` statements on Python's own locks hold anything: between the lock and its block, and between the block and the
    release, Python raises nothing.  A thread that learns holds ``lock``; a thread that predicts holds a lock of its own, which
    is listed before it is taken, and which those that learn wait for.  Single events are so short that they just take ``lock``.
    An exception may leave an entry in the list: it counts only as long as the call that wrote it.
    """

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.predicting: dict[int, Prediction] = {}  # of each thread that predicts, or is about to

    def is_predicting(self) -> bool:
        """Return whether this thread predicts."""
        listed = self.predicting.get(threading.get_ident())
        frame = None if listed is None else sys._getframe(1)
        while frame is not None and frame is not listed.call:  # type: ignore[union-attr]
            frame = frame.f_back
        return frame is not None

    def check(self) -> None:
        """Raise if this thread predicts: others that learn may hold ``lock``, and wait for it."""
        if self.is_predicting():
            raise RuntimeError("a model cannot learn in the middle of its own prediction: learn before or after it")

    def wait(self) -> None:
        """Wait, holding ``lock``, until no other thread predicts."""
        for thread, listed in list(self.predicting.items()):
            with listed.lock:
                self.predicting.pop(thread, None)  # if it was only about to, it waits for ``lock`` again

    def meanwhile(self, act: Callable, *arguments: Any, **more: Any) -> Any:
        """Call a function while no thread learns; may be nested."""
        me, predicting = threading.get_ident(), self.predicting
        if me in predicting and self.is_predicting():
            return act(*arguments, **more)
        mine = Prediction(threading.Lock(), sys._getframe())
        try:
            while True:
                with self.lock:
                    predicting[me] = mine
                with mine.lock:
                    if me in predicting:
                        return act(*arguments, **more)
        finally:
            predicting.pop(me, None)
            del mine  # which holds this frame, and so the rows that are predicted


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
        turns = self._turns
        if turns.predicting:
            turns.check()
        with turns.lock:
            if turns.predicting:
                turns.wait()
            return method(self, *arguments, **more)

    return alone


def predicting(method: Callable) -> Callable:
    """Decorate a method that reads the model."""

    @wraps(method)
    def meanwhile(self: Any, *arguments: Any, **more: Any) -> Any:
        return self._turns.meanwhile(method, self, *arguments, **more)

    return meanwhile


def thread_count(n_jobs: int | None) -> int:
    """Return the number of threads for ``n_jobs``."""
    if n_jobs is None or n_jobs == 0:
        return 1
    return n_jobs if n_jobs > 0 else max(1, (os.cpu_count() or 1) + 1 + n_jobs)
