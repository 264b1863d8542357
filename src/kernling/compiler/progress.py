"""Time spent on compilation so far; compiled code is cached, so it happens once."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

logger = logging.getLogger("kernling.compiler")


class Compiling:
    """Counts the functions compiled by this process; ``listeners`` are called before each of them."""

    def __init__(self) -> None:
        self.functions = 0
        self.seconds = 0.0
        self.fallbacks: dict[str, str] = {}  # functions that the fast backend left to Numba, and why
        self.listeners: list[Callable[[], None]] = []
        self._began: float | None = None

    @contextmanager
    def function(self) -> Iterator[None]:
        """Measure the compilation of a function, including the functions that it calls."""
        for listener in self.listeners:
            listener()
        outermost = self._began is None
        if outermost:
            self._began = time.perf_counter()
        try:
            yield
        finally:
            self.functions += 1
            if outermost and self._began is not None:
                self.seconds += time.perf_counter() - self._began
                self._began = None

    def fall_back(self, function: str, error: Exception) -> None:
        """Note that the fast backend leaves a function to Numba."""
        reason = f"{type(error).__name__}: {error}"
        self.fallbacks[function] = reason
        logger.debug("%s is compiled by Numba: %s", function, reason)

    @contextmanager
    def heard_by(self, listener: Callable[[str], None]) -> Iterator[None]:
        """Call a listener with a message about the progress of compilation."""

        def tell() -> None:
            listener(f"compiling for this processor, which happens once: {self.functions} functions")

        self.listeners.append(tell)
        try:
            yield
        finally:
            self.listeners.remove(tell)


compiling = Compiling()
