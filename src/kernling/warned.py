"""Warnings that name the user's line, however deep in kernling their cause was found."""

from __future__ import annotations

import sys
import warnings

_INSIDE = ("kernling", "contextlib", "functools", "sklearn")  # packages between a user's line and the cause


def warn(message: str) -> None:
    """Warn at the line outside of kernling that led here."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in _INSIDE:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, stacklevel=level)
