"""Requests that are refused."""

from __future__ import annotations

from typing import Any


class Refused(Exception):
    """A refused request, which changes nothing: HTTP status, one sentence and, if a row is invalid, its index."""

    def __init__(self, status: int, sentence: str, row: int | None = None, retry_after: int | None = None):
        super().__init__(sentence)
        self.status = status
        self.row = row
        self.retry_after = retry_after

    def to_plain(self) -> dict[str, Any]:
        """Return the response as JSON-compatible data."""
        return {"error": str(self)} | ({} if self.row is None else {"row": self.row})


def bad_row(row: int, sentence: str) -> Refused:
    """Return the refusal of a request because of one of its rows."""
    return Refused(422, f"row {row}: {sentence}", row)


def first_line(error: Exception) -> str:
    """Return the first line of an error's message."""
    return str(error).partition("\n")[0]
