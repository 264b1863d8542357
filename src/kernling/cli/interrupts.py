"""Handling of Ctrl-C and SIGTERM: immediate while waiting for rows, deferred while rows are being learned."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import typer

SIGNALS = (signal.SIGINT, signal.SIGTERM)
PIECE = 1024  # rows that several models learn before signals are checked
CURABLE = (ValueError, TypeError, OSError, ImportError)  # errors that the user can fix; shown in one line


class Interrupts:
    """Context in which signals raise KeyboardInterrupt, except inside of ``deferred`` blocks."""

    def __init__(self) -> None:
        self.received: int | None = None
        self.failure: Exception | None = None
        self._busy = False

    @property
    def stopped(self) -> bool:
        """Whether a signal or an error ended the run early."""
        return self.received is not None or self.failure is not None

    @property
    def exit_code(self) -> int:
        """The exit code that a shell expects of a process ended by a signal."""
        return 128 + (self.received or signal.SIGINT)

    def __enter__(self) -> Interrupts:
        self._before: dict[signal.Signals, Any] = {}
        if threading.current_thread() is threading.main_thread():
            self._before = {one: signal.signal(one, self._arrived) for one in SIGNALS}
            if any(getattr(one, "received", False) for one in self._before.values()):
                self.__exit__()
                raise KeyboardInterrupt  # it came while libraries were being imported, and one of them has swallowed it
            with suppress(ImportError):
                import pyarrow

                pyarrow.enable_signal_handlers(False)  # its handlers are active while it reads, and sometimes lose a signal
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
        """Defer signals until the end of the block."""
        self._busy = True
        try:
            yield
        finally:
            self._busy = False
        if self.received is not None:
            raise KeyboardInterrupt

    @contextmanager
    def held_back(self) -> Iterator[None]:
        """Hold back a signal or error that ends the block early until ``let_go``, so that results are saved and shown first."""
        try:
            yield
        except KeyboardInterrupt:
            pass
        except CURABLE as error:
            self.failure = error

    def let_go(self) -> None:
        """Raise what was held back."""
        if self.failure is not None:
            raise self.failure
        if self.received is not None:
            typer.echo("interrupted", err=True)
            raise typer.Exit(self.exit_code)
