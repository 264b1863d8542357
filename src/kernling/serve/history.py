"""The history of a model in a few hundred records, for the page."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from typing import Any

MOMENTS = 300
SMOOTH = 5  # records over which the rate of events is measured: blocks arrive whole, so it would jump from second to second


class History:
    """At most 300 records over time: if there are more, every second one is removed, and new ones are added half as often."""

    def __init__(self, moments: Sequence[dict[str, Any]] = (), events: int = 0):
        """``events`` have been learned up to now: those of a replay count as learned when they were."""
        self.moments = list(moments)
        self._seconds = 1.0
        if len(self.moments) > 1:
            self._seconds = (self.moments[-1]["time"] - self.moments[0]["time"]) / len(self.moments)
        self._last = deque([(time.time(), events)], maxlen=SMOOTH)  # times and events

    def add(self, facts: dict[str, Any], waiting: int) -> None:
        """Add a record if enough time has passed since the last one."""
        now = time.time()
        if self.moments and now - self._last[-1][0] < 0.9 * self._seconds:
            return
        before, events = self._last[0]
        rate = max(facts["events"] - events, 0) / max(now - before, 1e-3)
        self._last.append((now, facts["events"]))
        names = ("events", "lately", "constant_lately", "points", "bytes", "experts")
        self.moments = [*self.moments, {name: facts.get(name) for name in names} | dict(time=now, rate=rate, waiting=waiting)]
        if len(self.moments) > MOMENTS:
            self.moments = self.moments[::2]
            self._seconds *= 2.0
