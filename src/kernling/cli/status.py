"""Progress of a command."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any


class Status:
    """A status line on the terminal that shows the progress; nothing is shown without a terminal."""

    def __init__(self, first: str):
        self._first = first

    def __enter__(self) -> Status:
        from rich.console import Console
        from rich.status import Status as Line

        from ..core.compiling import compiling

        console = Console(stderr=True)
        self._line = Line(self._first, console=console) if console.is_terminal else None
        self._shown = ExitStack()
        if self._line:
            self._shown.enter_context(self._line)
            self._shown.enter_context(compiling.heard_by(self._line.update))
        return self

    def show(self, progress: object) -> None:
        """Show the progress; it is converted to text only if it is displayed."""
        if self._line:
            text, room = str(progress), self._line.console.width - 4  # of one line, behind the sign that turns
            self._line.update(text if len(text) <= room else f"{text[: room - 1]}…")

    def __exit__(self, *_: Any) -> None:
        self._shown.close()
