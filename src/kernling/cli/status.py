"""How far a command has come."""

from __future__ import annotations

from typing import Any


class Status:
    """A line on the terminal that says how far learning has come; nothing where there is no terminal."""

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
        """Show something as text, which is made only where it is seen."""
        if self._line:
            text, room = str(progress), self._line.console.width - 4  # of one line, behind the sign that turns
            self._line.update(text if len(text) <= room else f"{text[: room - 1]}…")

    def __exit__(self, *_: Any) -> None:
        if self._line:
            self._line.stop()
