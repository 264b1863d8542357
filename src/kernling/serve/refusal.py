"""Requests that are refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Refused(Exception):
    """A refused request, which changes nothing: HTTP status, one sentence and, if a row is invalid, its index."""

    def __init__(self, status: int, sentence: str, row: int | None = None, retry_after: int | None = None):
        super().__init__(sentence)
        self.status = status
        self.row = row
        self.retry_after = retry_after

    @property
    def is_passing(self) -> bool:
        """Whether the same may be accepted later: the service is full, or cannot write, or is stopping."""
        return self.status in (429, 503, 507)

    @property
    def reason(self) -> str:
        """The sentence without the index of a row."""
        return str(self) if self.row is None else str(self).partition(": ")[2]

    def to_plain(self) -> dict[str, Any]:
        """Return the response as JSON-compatible data."""
        return {"error": str(self)} | ({} if self.row is None else {"row": self.row})


def divide(first: int, last: int, attempt: Callable[[int, int], None], failed: dict[int, str]) -> None:
    """Attempt a range of rows; if it is refused, its halves, down to the rows that are at fault, whose reasons are noted.

    Refusals that a later attempt may not meet are raised.

    Examples
    --------
    >>> from kernling.serve.refusal import bad_row, divide
    >>> done, failed = [], {}
    >>> def attempt(first, last):
    ...     if first <= 3 < last:
    ...         raise bad_row(3 - first, "it is odd")
    ...     done.extend(range(first, last))
    >>> divide(0, 6, attempt, failed)
    >>> done, failed
    ([0, 1, 2, 4, 5], {3: 'it is odd'})
    """
    if first == last:
        return
    try:
        attempt(first, last)
    except Refused as refused:
        if refused.is_passing:
            raise
        if last - first == 1:
            failed[first] = refused.reason
            return
        middle = (first + last) // 2
        divide(first, middle, attempt, failed)
        divide(middle, last, attempt, failed)


def bad_row(row: int, sentence: str) -> Refused:
    """Return the refusal of a request because of one of its rows."""
    return Refused(422, f"row {row}: {sentence}", row)


def first_line(error: Exception) -> str:
    """Return the first line of an error's message."""
    return str(error).partition("\n")[0]
