"""Which backend compiles: the fast one, or Numba alone, which takes longer and gives the same.

``KERNLING_COMPILER`` is ``fast`` (the default) or ``numba``.  The fast one relies on private parts of Numba, so it is used
only if they are there, and if it has compiled a small function correctly, once for each compile cache.
"""

from __future__ import annotations

import hashlib
import os
from functools import cache
from typing import Any

import numpy as np

from ..warned import warn
from .cache import read_entry, write_entry
from .keys import shared_hash
from .loader import processor
from .progress import logger

FAST, NUMBA = "fast", "numba"


def asked_for() -> str:
    """Return the backend in the environment variable."""
    given = os.environ.get("KERNLING_COMPILER") or FAST
    if given not in (FAST, NUMBA):
        raise ValueError(f"KERNLING_COMPILER is {given!r}: set it to {FAST} or {NUMBA}, or do not set it")
    return given


@cache
def fast_backend() -> Any:
    """Return the module with the fast backend's compilers; None if Numba compiles alone."""
    if asked_for() == NUMBA:
        return None
    try:
        from .fast_backend import link_once

        mark = f"canary-{hashlib.sha256(processor().encode()).hexdigest()[:24]}"
        if read_entry(shared_hash(), mark) is None:
            _check(link_once)
            write_entry(shared_hash(), mark, b"passed")
        return link_once
    except Exception as error:  # Numba or llvmlite has changed
        logger.debug("the fast backend is not used", exc_info=True)
        warn(f"the fast compiler does not work here, so Numba compiles alone, which takes longer: {error!r}")
        return None


def small_program(values, n):
    """Use a little of everything but branches and loops, which take long to optimise."""
    part = values[1:n]
    whole = (n - 8) // 3 - (n - 9) % 3
    values[-n] = part[-1] * whole - abs(part[n - 4])
    return whole


def _check(compilers: Any) -> None:
    """Raise an error if the fast backend does not compile a small program, or not correctly."""
    given = np.array([1.5, -2.0, 0.25, 3.0, -0.75])
    found, expected = given.copy(), given.copy()
    outputs = compilers.run_canary(small_program, found, 4), small_program(expected, 4)
    if outputs[0] != outputs[1] or found.tolist() != expected.tolist():
        raise ValueError(f"a small program returned {outputs[0]} instead of {outputs[1]}")
