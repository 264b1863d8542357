"""Ctrl-C and SIGTERM: at once while rows are awaited, after those at hand while some are learned."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import typer

SIGNALS = (signal.SIGINT, signal.SIGTERM)
PIECE = 1024  # rows that several models learn before a signal is looked at
CURABLE = (ValueError, TypeError, OSError, ImportError)  # by the user, who is told in a line


class Interrupts:
    """Within it, signals raise KeyboardInterrupt, but never in the middle of what ``deferred`` covers."""

    def __init__(self) -> None:
        self.received: int | None = None
        self.failure: Exception | None = None
        self._busy = False

    @property
    def stopped(self) -> bool:
        """Whether a signal or a failure came before the end."""
        return self.received is not None or self.failure is not None

    @property
    def exit_code(self) -> int:
        """What a shell expects of a process that a signal has ended."""
        return 128 + (self.received or signal.SIGINT)

    def __enter__(self) -> Interrupts:
        self._before: dict[signal.Signals, Any] = {}
        if threading.current_thread() is threading.main_thread():
            self._before = {one: signal.signal(one, self._arrived) for one in SIGNALS}
            with suppress(ImportError):
                import pyarrow

                pyarrow.enable_signal_handlers(False)  # its own are in place while it reads, and lose a signal now and then
        return self

    def __exit__(self, *_: Any) -> None:
        for one, handler in self._before.items():
            signal.signal(one, handler)

    def _arrived(self, number: int, _: Any) -> None:
        self.received = number
        if not self._busy:
            raise KeyboardInterrupt

    @contextmanager
    def deferred(self) -> Iterator[None]:
        """Lets what is inside finish."""
        self._busy = True
        try:
            yield
        finally:
            self._busy = False
        if self.received is not None:
            raise KeyboardInterrupt

    @contextmanager
    def held_back(self) -> Iterator[None]:
        """What ends it early, a signal or a failure, waits for ``let_go``: first comes what has to be kept and told."""
        try:
            yield
        except KeyboardInterrupt:
            pass
        except CURABLE as error:
            self.failure = error

    def let_go(self) -> None:
        """End as what was held back would have."""
        if self.failure is not None:
            raise self.failure
        if self.received is not None:
            raise typer.Exit(self.exit_code)
