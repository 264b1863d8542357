"""What something costs, counted: instructions of Python, and bytes of memory."""

import sys
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from interrupting import HOME


@contextmanager
def little_memory(most: int) -> Iterator[None]:
    """Raise if more than so many bytes are taken at any time within."""
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < most
    finally:
        tracemalloc.stop()


def instructions_of(act: Callable, *arguments: Any) -> int:
    """Return how many instructions of Python were executed in kernling's functions."""
    executed = [0]

    def count(frame, event, _argument):
        if not frame.f_code.co_filename.startswith(HOME):
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        executed[0] += event == "opcode"
        return count

    usual = sys.gettrace()
    sys.settrace(count)
    try:
        act(*arguments)
    finally:
        sys.settrace(usual)
    return executed[0]
