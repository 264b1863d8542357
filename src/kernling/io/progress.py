"""Progress of reading compressed files, which may take long before any row is known."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

_listeners: list[Callable[[str], None]] = []


@contextmanager
def heard_by(listener: Callable[[str], None]) -> Iterator[None]:
    """Call a listener with a message after each block that is read."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)


def tell(name: str, file: Any) -> None:
    """Tell the listeners how much of a compressed file has been read; nothing is known of pipes."""
    if _listeners and file.seekable():
        share = file.tell() / max(os.fstat(file.fileno()).st_size, 1)
        for listener in _listeners:
            listener(f"reading {name}: {share:.0%}")
