"""The end of a service: incomplete requests are not waited for."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

GRACE = 1.0  # seconds for the body of a request that arrives while the service stops


class Stopping(threading.Event):
    """Whether a service is stopping, and the requests that are still arriving."""

    def __init__(self) -> None:
        super().__init__()
        self._arriving: set[asyncio.Timeout] = set()

    @asynccontextmanager
    async def limited(self, seconds: float) -> AsyncIterator[None]:
        """Raise TimeoutError after so many seconds, or soon after the service begins to stop."""
        async with asyncio.timeout(min(seconds, GRACE) if self.is_set() else seconds) as limit:
            self._arriving.add(limit)
            try:
                yield
            finally:
                self._arriving.discard(limit)

    def hurry(self) -> None:
        """Give the requests that are arriving a last moment; called in the event loop."""
        end = asyncio.get_running_loop().time() + GRACE
        for limit in self._arriving:
            limit.reschedule(min(end, limit.when() or end))
