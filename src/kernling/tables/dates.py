"""Features of dates and times: cyclic features as angles, and elapsed time."""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np

DAY = 86_400  # seconds
DIGITS = 9  # of sines and cosines: last digits differ between libraries, and rules of models compare with values seen before
_ISO = re.compile(r"(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d(?::\d\d)?)(?:[.,]\d+)?)?\s*(?:Z|UTC|[+-]\d\d(?::?\d\d)?)?")


def moment(text: str) -> np.datetime64:
    """Parse an ISO 8601 date with a precision of one second; NaT for any other text.

    Time zones are ignored: the local hour is more informative than UTC.
    """
    found = _ISO.fullmatch(text.strip())
    try:
        return np.datetime64(f"{found[1]}T{found[2] or '00:00'}", "s") if found else np.datetime64("NaT", "s")
    except ValueError:  # such as February 30
        return np.datetime64("NaT", "s")


def moments(words: Iterable[str]) -> np.ndarray:
    """Parse texts as dates."""
    return np.array([moment(word) for word in words], dtype="datetime64[s]")


def has_clock(times: np.ndarray) -> bool:
    """Return whether any date has a time of day."""
    seconds = times[~np.isnat(times)].astype(np.int64)
    return bool((seconds % DAY).any())


def elapsed(times: np.ndarray, origin: int) -> np.ndarray:
    """Return the days since ``origin``, which is in seconds since 1970; NaN for missing dates."""
    days = (times.astype(np.int64) - origin) / DAY
    return np.where(np.isnat(times), np.nan, days)


def angles(times: np.ndarray, clock: bool) -> np.ndarray:
    """Return sine and cosine of month, weekday and, with ``clock``, time of day; 0 for missing dates."""
    known = np.where(np.isnat(times), np.datetime64(0, "s"), times)
    seconds = known.astype(np.int64)
    months = known.astype("datetime64[M]").astype(np.int64) % 12
    turns = [months / 12, (seconds // DAY + 3) % 7 / 7]  # 1970 began on a Thursday
    if clock:
        turns.append(seconds % DAY / DAY)
    angle = 2.0 * np.pi * np.column_stack(turns)
    pairs = np.round(np.stack([np.sin(angle), np.cos(angle)], axis=2), DIGITS).reshape(len(times), -1)
    pairs[np.isnat(times)] = 0.0
    return pairs


def angle_names(clock: bool) -> list[str]:
    """Return the names of the columns of ``angles``."""
    return [f"{turn} {side}" for turn in ("month", "weekday", *(["hour"] if clock else [])) for side in ("sine", "cosine")]
