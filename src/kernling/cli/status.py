"""Progress of a command."""

from __future__ import annotations

from typing import Any


class Status:
    """A status line on the terminal that shows the progress; nothing is shown without a terminal."""

    def __init__(self, first: str):
        self._first = first

    def __enter__(self) -> Status:
        from rich.console import Console
        from rich.status import Status as Line

        console = Console(stderr=True)
        self._line = Line(self._first, console=console) if console.is_terminal else None
        if self._line:
            self._line.start()
        return self

    def show(self, progress: object) -> None:
        """Show the progress; it is converted to text only if it is displayed."""
        if self._line:
            text, room = str(progress), self._line.console.width - 4  # of one line, behind the sign that turns
            self._line.update(text if len(text) <= room else f"{text[: room - 1]}…")

    def __exit__(self, *_: Any) -> None:
        if self._line:
            self._line.stop()
