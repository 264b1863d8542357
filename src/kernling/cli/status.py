"""How far a command has come."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any


class Status:
    """A line on the terminal that says how far learning has come; nothing where there is no terminal."""

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
        """Show something as text, which is made only where it is seen."""
        if self._line:
            self._line.update(str(progress))

    def __exit__(self, *_: Any) -> None:
        self._shown.close()
