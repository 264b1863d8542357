"""Progress of a command."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any, NamedTuple

QUIET = 1.0  # seconds without other news after which the progress of reading is shown


class RunProgress(NamedTuple):
    """The progress of runs as text, one line per run."""

    runs: Mapping[str, Any]

    def __str__(self) -> str:
        return "\n".join(f"{name}: {_progress_of(run)}" if name else _progress_of(run) for name, run in self.runs.items())


def _progress_of(run: Any) -> str:
    from ..evaluate.record import column
    from ..report import tables

    if not run.events:
        return "compiling"
    main = run.metrics[0]
    rate = run.events / max(run.seconds, 1e-9)
    return (
        f"{run.events:,} events, {column(main).label} {tables.text(main, run.value(main))} "
        f"(window {tables.text(main, run.lately(main))}), "
        f"{rate:,.0f} per second, {run.model.n_stored_:,} points"
    )


def fitted(line: str, room: int) -> str:
    """Return a line of facts without the last ones if there is no room for them."""
    while len(line) > room and ", " in line:
        line = line.rpartition(", ")[0]
    return line[:room]


class Status:
    """Status lines on the terminal that show the progress; nothing is shown without a terminal, or if not ``visible``."""

    def __init__(self, first: str, visible: bool = True):
        self._first, self._visible = first, visible

    def __enter__(self) -> Status:
        from rich.console import Console
        from rich.status import Status as Line

        from ..compiler import compiling
        from ..io import progress

        console = Console(stderr=True)
        self._line = Line(self._first, console=console) if self._visible and console.is_terminal else None
        self._latest = time.monotonic()
        self._shown = ExitStack()
        if self._line:
            self._shown.enter_context(self._line)
            self._shown.enter_context(compiling.heard_by(self._line.update))
            self._shown.enter_context(progress.heard_by(self._show_if_quiet))
        return self

    def show(self, progress: object) -> None:
        """Show the progress; it is converted to text only if it is displayed."""
        if self._line:
            self._latest = time.monotonic()
            room = self._line.console.width - 4  # behind the spinner
            self._line.update("\n".join(fitted(line, room) for line in str(progress).splitlines()))

    def _show_if_quiet(self, words: str) -> None:
        if self._line and time.monotonic() - self._latest > QUIET:
            self._line.update(words)

    def __exit__(self, *_: Any) -> None:
        self._shown.close()
