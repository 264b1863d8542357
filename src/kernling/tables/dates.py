"""Features of dates and times: cyclic features as angles, and elapsed time."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import numpy as np

DAY = 86_400  # seconds
DIGITS = 9  # of sines and cosines: last digits differ between libraries, and rules of models compare with values seen before
ISO, DAY_FIRST, MONTH_FIRST = "", "day first", "month first"  # how the dates of a column are written
_CLOCK = r"(?:[T ,]+(\d{1,2}:\d\d(?::\d\d)?)(?:[.,]\d+)?\s*([AaPp]\.?[Mm]\.?)?)?\s*(?:Z|[A-Z]{2,4}|[+-]\d\d(?::?\d\d)?)?"
_YEAR_FIRST = re.compile(r"(\d{4})([-/.])(\d\d?)\2(\d\d?)" + _CLOCK)
_YEAR_LAST = re.compile(r"(\d\d?)([-/.])(\d\d?)\2(\d{4}|\d\d)" + _CLOCK)
_NAMED = re.compile(r"(?:[A-Za-z]{3,9}, )?(?:(\d\d?)[-. ]+([A-Za-z]{3,9})|([A-Za-z]{3,9})\.? (\d\d?))[-,. ]+(\d{4})" + _CLOCK)
_MONTHS = {
    "jan": 1,
    "feb": 2,
    "mar": 3,
    "apr": 4,
    "may": 5,
    "jun": 6,
    "jul": 7,
    "aug": 8,
    "sep": 9,
    "oct": 10,
    "nov": 11,
    "dec": 12,
}
_NOT = np.datetime64("NaT", "s")
_OLD = 70  # two digits from here on are years of the last century


def moment(text: str, form: str = ISO) -> np.datetime64:
    """Parse a date with a precision of one second; NaT for any other text.

    ``form`` tells whether 3/4/2026 is in April.  Time zones are ignored: the local hour is more informative than UTC.
    """
    text = text.strip()
    if found := _YEAR_FIRST.fullmatch(text):
        year, _, month, day, *clock = found.groups()
    elif form != ISO and (found := _YEAR_LAST.fullmatch(text)):
        first, _, second, year, *clock = found.groups()
        day, month = (first, second) if form == DAY_FIRST else (second, first)
        year = year if len(year) == 4 else str(int(year) + (1900 if int(year) >= _OLD else 2000))
    elif found := _NAMED.fullmatch(text):
        before, name, other, after, year, *clock = found.groups()
        day, month = before or after, str(_MONTHS.get((name or other)[:3].lower(), 0))
    else:
        return _NOT
    try:
        return np.datetime64(f"{year}-{int(month):02}-{int(day):02}T{_time(*clock)}", "s")
    except ValueError:  # such as February 30
        return _NOT


def _time(clock: str | None, half: str | None) -> str:
    hour, _, rest = (clock or "00:00").partition(":")
    late = 12 * (half[0] in "pP") if half else 0
    return f"{(int(hour) % 12 + late) if half else int(hour):02}:{rest}"


def moments(words: Iterable[str], form: str = ISO) -> np.ndarray:
    """Parse texts as dates."""
    return np.array([moment(word, form) for word in words], dtype="datetime64[s]")


def form_of(words: Sequence[str], day_first: bool | None = None) -> str:
    """Return how dates, in the order of their rows, are written.

    Numbers above 12 decide what comes first; if there are none, the reading in which the dates of a stream are closer to each
    other, and at last the separator: a point is European.
    """
    if day_first is not None:
        return DAY_FIRST if day_first else MONTH_FIRST
    found = [match for match in map(_YEAR_LAST.fullmatch, map(str.strip, words)) if match]
    if not found:
        return ISO
    days, months = (sum(int(match[place]) > 12 for match in found) for place in (1, 3))
    if days != months:
        return DAY_FIRST if days > months else MONTH_FIRST
    steps = {form: _way(moments((match[0] for match in found), form)) for form in (DAY_FIRST, MONTH_FIRST)}
    if steps[DAY_FIRST] != steps[MONTH_FIRST]:
        return min(steps, key=lambda form: steps[form])
    return DAY_FIRST if found[0][2] == "." else MONTH_FIRST


def _way(times: np.ndarray) -> int:
    return int(np.abs(np.diff(times[~np.isnat(times)].astype(np.int64))).sum())


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
    pairs = _on_circles(np.column_stack(turns))
    pairs[np.isnat(times)] = 0.0
    return pairs


def _on_circles(turns: np.ndarray) -> np.ndarray:
    """Return sine and cosine of each of these turns, side by side."""
    angle, pairs = 2.0 * np.pi * turns, np.empty((*turns.shape[:-1], 2 * turns.shape[-1]))
    pairs[..., ::2], pairs[..., 1::2] = np.sin(angle), np.cos(angle)
    return np.round(pairs, DIGITS, out=pairs)


def elapsed_and_angles(time: np.datetime64, origin: int, clock: bool) -> tuple[float, tuple[float, ...]]:
    """Return what ``elapsed`` and ``angles`` give for one known date, in a fraction of their time."""
    seconds, months = int(time.astype(np.int64)), int(time.astype("datetime64[M]").astype(np.int64))
    pairs = _MONTHS_ON_CIRCLE[months % 12] + _WEEKDAYS_ON_CIRCLE[(seconds // DAY + 3) % 7]
    return (seconds - origin) / DAY, pairs + _on_circle(seconds % DAY / DAY) if clock else pairs


def _on_circle(turn: float) -> tuple[float, float]:
    """Return what ``_on_circles`` gives for one turn."""
    angle, unit = 2.0 * np.pi * turn, 10.0**DIGITS
    return round(float(np.sin(angle)) * unit, 0) / unit, round(float(np.cos(angle)) * unit, 0) / unit


_MONTHS_ON_CIRCLE = [_on_circle(month / 12) for month in range(12)]
_WEEKDAYS_ON_CIRCLE = [_on_circle(day / 7) for day in range(7)]


def angle_names(clock: bool) -> list[str]:
    """Return the names of the columns of ``angles``."""
    return [f"{turn} {side}" for turn in ("month", "weekday", *(["hour"] if clock else [])) for side in ("sine", "cosine")]
