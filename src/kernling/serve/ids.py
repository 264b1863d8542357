"""The ids of the last events learned."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence


class KnownIds:
    """The set of the last ids, at most ``limit``.

    Examples
    --------
    >>> from kernling.serve.ids import KnownIds
    >>> known = KnownIds(2)
    >>> known.add(["a", "b", "c"])
    1
    >>> "a" in known, "c" in known
    (False, True)
    """

    def __init__(self, limit: int, ids: Sequence[str] = ()):
        self.limit = limit
        self._order: deque[str] = deque()
        self._all: set[str] = set()
        self.add(ids)

    def __contains__(self, one: str) -> bool:
        return one in self._all

    def __len__(self) -> int:
        return len(self._order)

    def add(self, ids: Sequence[str]) -> int:
        """Add ids; return how many old ones were removed for them."""
        self._order.extend(ids)
        self._all.update(ids)
        surplus = max(len(self._order) - self.limit, 0)
        for _ in range(surplus):
            self._all.discard(self._order.popleft())
        return surplus
