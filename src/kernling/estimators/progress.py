"""Progress line of a long fit."""

from __future__ import annotations

import sys
import time


class VerboseProgress:
    """Writes to standard error at most twice a second, and once at the end."""

    def __init__(self, name: str, total: int):
        self.name = name
        self.total = total
        self.done = 0
        self.began = self.shown = time.perf_counter()

    def advance(self, events: int, note: str) -> None:
        """Add to the number of learned events."""
        self.done += events
        now = time.perf_counter()
        finished = self.done >= self.total
        if finished or now - self.shown > 0.5:
            self.shown = now
            rate = self.done / max(now - self.began, 1e-9)
            line = f"{self.name}: {self.done:,} of {self.total:,} events, {rate:,.0f} a second, {note}"
            print(f"\r{line:<78}", end="\n" if finished else "", file=sys.stderr, flush=True)
