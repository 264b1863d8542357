"""What a model says when its stream changes: its error rose, it is no better than a constant answer, columns have moved.

Errors before learning are watched by ADWIN (adwin.py): mistakes, or squared errors over their running mean.  Errors of
neighbours are often alike, and learners wander, so that ADWIN finds many rises which mean little: one counts if the mean error
of the window of 200 events in which it was found, or of the next two, is higher than earlier windows let one expect.  Where
errors are correlated with those before them, two or all three of these windows must be: rises by chance are short.  Soon after
an alarm, windows of the falling error do not count, and variances are multiples of those of independent mistakes, as before it.

Windows of a thousand events tell whether the model was better than the constant answer, the most frequent class or the mean
target before each event; after such an alarm, the next is raised only if it has been better again.  Columns are watched in
columns.py.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, NamedTuple

import numpy as np

from ..compiler import inline_exact, jit_exact
from ..core.limits import SCORE
from ..core.shapes import declared
from .adwin import AFTER, BEFORE, CHANCE, REACH, Adwin, follow_unit, new_adwin, relative, watch
from .columns import WIDEST, Columns, Moved, new_columns, watch_rows

KEPT = 16  # alarms
SHOWN = 8  # names of columns in a line
NAMED = 16  # columns of an alarm, those that moved most
PERIOD = 1000.0  # events of a window that is compared with the constant answer
AGAIN = 3.0  # standard errors by which a model must be better than the constant answer before it can fail again
ERROR, CONSTANT, COLUMNS = range(3)  # kinds of alarms
WORDS = ("error", "constant", "columns")
EVENT, KIND, BEFORE_IT, AFTER_IT, DOUBT = range(5)  # the row of an alarm
SPAN = 200.0  # events of a window by which a rise is confirmed
TRIES = 3  # such windows in which it may be, the one in which ADWIN found it included
MATURE = 8.0  # windows, before which nothing is confirmed
KEEP = 0.93  # what each leaves of those before
FAR = 4.0  # standard deviations of their means by which that of a window must be higher
CLEARLY = 0.8  # of the constant answer's error, below which a model is better again
HIGH = 2.0  # such deviations by which each of several windows must be higher
CLEAR = 12.0  # such deviations by which the mean of two windows is so much higher that a third one need not follow
SOON = 3.0  # windows after an alarm, before which no other is confirmed
FALLS = 2.0  # deviations of chance by which a window is lower than those before it, which then count no more
ALIKE = 0.03  # correlation of errors with those before, for each multiple of which a rise must last for a window more
LASTS = 0.98  # what each window leaves of the sums that it is computed from
COUNT, SUM, SUSPECT, DOUBTED, HELD, WINDOWS, WEIGHT, LEVEL, VARIANCE, EXCESS = range(10)  # what spans holds: see below
SQUARE, PAIRS, LATEST, APART, TOGETHER = range(5)  # what likeness holds: see below
EVENTS, OWN, USUAL, SQUARES, FAILED, MEAN, UNIT, SEEN = range(8)  # what record holds: see below
ALARMS, TIME = range(2)  # what noted holds


class Alarm(NamedTuple):
    """Something that has changed."""

    event: int  # after which it was found: the number of events learned
    what: str  # "error": it rose; "constant": the model was no better than a constant answer; "columns" have moved
    before: float  # the error (share of mistakes, or root mean squared error) before; of the constant answer; see columns
    after: float  # the error since; of the model
    sure: float  # at least how unlikely it is by chance
    columns: dict[Any, float] = {}  # share of the values of each that lie elsewhere now; that of the first is ``after``

    def to_plain(self) -> dict[str, Any]:
        """Return the alarm as JSON-compatible data."""
        return self._asdict() | {"columns": {str(name): share for name, share in self.columns.items()}}


def changes(alarms: Sequence[Alarm], of_values: bool) -> list[str]:
    """Return a line for each change: alarms that follow each other within 1,000 events are taken for one.

    Examples
    --------
    >>> from kernling.components.alarms import Alarm, changes
    >>> error = Alarm(10_240, "error", 0.021, 0.17, 0.9999)
    >>> columns = Alarm(10_400, "columns", 0.04, 0.6, 0.9999, {"x2": 0.6, "x3": 0.5})
    >>> print(*changes([error, columns], of_values=False))
    changed at event 10,240: error 2.1 to 17 %; x2, x3 moved
    """
    groups: list[list[Alarm]] = []
    for alarm in alarms:
        if groups and alarm.event <= groups[-1][0].event + PERIOD:
            groups[-1].append(alarm)
        else:
            groups.append([alarm])
    return [f"changed at event {group[0].event:,}: {'; '.join(_told(group, of_values))}" for group in groups]


def _told(alarms: Sequence[Alarm], of_values: bool) -> list[str]:
    """Return what the alarms of one change say."""

    def errors(*found: float) -> str:
        return " to ".join(f"{one if of_values else 100.0 * one:.3g}" for one in found) + ("" if of_values else " %")

    found = []
    rises = [alarm for alarm in alarms if alarm.what == "error"]
    if rises:
        found.append(f"error {errors(rises[0].before, max(alarm.after for alarm in rises))}")
    found += [
        f"error {errors(alarm.after)}, no better than a constant answer ({errors(alarm.before)})"
        for alarm in alarms
        if alarm.what == "constant"
    ]
    names = list(dict.fromkeys(_column(name) for alarm in alarms for name in alarm.columns))
    if names:
        more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
        found.append(f"{', '.join(names[:SHOWN])}{more} moved")
    return found


def _column(name: Any) -> str:
    return name if isinstance(name, str) else f"column {name}"


@declared()
class Losses(NamedTuple):
    adwin: Adwin
    counts: Annotated[np.ndarray, "counts: classes"]  # events of each class; none for values
    # events and errors of a window; how many may confirm a rise, its chance; windows held; number, weight, mean and variance of
    # past ones; this variance over that of chance before the last alarm
    spans: Annotated[
        np.ndarray,
        f"index of {int(SPAN)}",
        f"0..{SPAN}",
        f"index of {TRIES + 1}",
        "0..1",
        f"index of {TRIES}",
        "counts",
        f"0..{2.0 / (1.0 - KEEP)}",
        "0..1",
        "0..1",
        f"0..{SPAN * SPAN}",
    ]
    # squares of errors and products with those before, in a window; the latest; variance and covariance in windows so far
    likeness: Annotated[np.ndarray, *[f"0..{SPAN}"] * 2, "0..1", f"0..{1.0 / (1.0 - LASTS)}", f"-{SPAN}..{SPAN}"]
    held: Annotated[np.ndarray, f"0..1: {TRIES}"]  # mean errors of the windows since ADWIN found a rise
    # events, losses of model and constant, squares of differences; whether it failed; of targets and errors
    record: Annotated[np.ndarray, "counts", *["not negative"] * 3, "0..1", f"{-SCORE}..{SCORE}", f"0..{SCORE**3}", "counts"]


@declared()
class Watch(NamedTuple):
    losses: Losses
    columns: Columns
    alarms: Annotated[np.ndarray, f"not negative: {KEPT} 5"]  # the latest, as a ring
    moved: Annotated[np.ndarray, f"-1..1e9: {KEPT} {NAMED} 2"]  # their columns and shares; -1 if there are fewer
    noted: Annotated[np.ndarray, "counts: 2"]  # alarms and events so far

    def check(self, dimensions: Mapping[str, int]) -> None:
        """Raise unless the columns are those of the rows that are given, and alarms of known kinds and of these columns."""
        given = dimensions["given"] if self.noted[TIME] and dimensions["given"] <= WIDEST else 0
        if self.columns.number != given:
            raise ValueError(f"{self.columns.number} columns are watched, but {given} of the rows would be")
        kinds, places = self.alarms[:, KIND], self.moved[:, :, 0]
        if not np.isin(kinds, range(len(WORDS))).all() or not np.isin(places, range(-1, self.columns.number)).all():
            raise ValueError("an alarm is of no known kind, or of no known column")

    def latest(self) -> list[Alarm]:
        """Return the latest alarms, the oldest first; columns by number."""
        noted = int(self.noted[ALARMS])
        return [self._alarm(place % KEPT) for place in range(max(0, noted - KEPT), noted)]

    def _alarm(self, place: int) -> Alarm:
        event, kind, before, after, doubt = self.alarms[place].tolist()
        columns = {int(column): share for column, share in self.moved[place].tolist() if column >= 0.0}
        return Alarm(int(event), WORDS[int(kind)], before, after, 1.0 - doubt, columns)

    def note(self, row: Any, moved: list[Moved] = []) -> None:  # noqa: B006 - it is not changed
        """Store an alarm in the place of the oldest."""
        place = int(self.noted[ALARMS]) % KEPT
        self.alarms[place], self.moved[place] = row, -1.0
        for k, one in enumerate(moved[:NAMED]):
            self.moved[place, k] = one.column, one.share
        self.noted[ALARMS] += 1

    def with_class(self, place: int) -> Watch:
        """Return the record of a model for which a class has been inserted."""
        return self._replace(losses=self.losses._replace(counts=np.insert(self.losses.counts, place, 0.0)))

    def begun_anew(self) -> Watch:
        """Return the record of a model with other errors: alarms and columns stay."""
        return self._replace(losses=new_losses(len(self.losses.counts)))


def new_losses(classes: int) -> Losses:
    """Return the record of a model of so many classes without events; one for values."""
    return Losses(new_adwin(), np.zeros(classes), np.zeros(10), np.zeros(5), np.zeros(TRIES), np.zeros(8))


def new_watch(classes: int) -> Watch:
    """Return the record of a model of so many classes without events; the first rows determine the columns."""
    return Watch(new_losses(classes), new_columns(0), np.zeros((KEPT, 5)), np.full((KEPT, NAMED, 2), -1.0), np.zeros(2))


def watch_events(watch: Watch, found: list[tuple[float, ...]], rows: np.ndarray) -> Watch:
    """Note the alarms of events, and watch their rows; the columns are those of the first event."""
    events = watch.noted[TIME]
    if not events:
        watch = watch._replace(columns=new_columns(rows.shape[1]))
    moved = [(events + place + 1, columns) for place, columns in watch_rows(watch.columns, rows)]
    alarms: list[tuple[Any, list[Moved]]] = [((events + place, *rest), []) for place, *rest in found]
    alarms += [((event, COLUMNS, one[0].usual, one[0].share, one[0].chance), one) for event, one in moved]
    for row, columns in sorted(alarms, key=lambda alarm: alarm[0][:2]):
        watch.note(row, columns)
    watch.noted[TIME] += len(rows)
    return watch


def watch_labels(losses: Losses, wrong: np.ndarray, labels: np.ndarray) -> list[tuple[float, ...]]:
    """Take in mistakes, 0 or 1, and the classes of events; return alarms, their events counted from 1."""
    own = np.ascontiguousarray(wrong, np.float64)
    usual = np.empty(len(own))
    compare_labels(losses.counts, np.ascontiguousarray(labels, np.int64), usual)
    return _found(losses, own, own, usual, None)


def watch_values(losses: Losses, said: np.ndarray, y: np.ndarray) -> list[tuple[float, ...]]:
    """Do the same for predicted values and targets."""
    shares, own, usual, units = np.empty((4, len(y)))
    compare_values(losses.record, np.ascontiguousarray(said), np.ascontiguousarray(y), shares, own, usual, units)
    return _found(losses, shares, own, usual, units)


def _found(
    losses: Losses, shares: np.ndarray, own: np.ndarray, usual: np.ndarray, units: np.ndarray | None
) -> list[tuple[float, ...]]:
    """Return rows of alarms: of shares that rise, which are in these units, and of losses that are no better than usual."""
    rows, found, first = list[tuple[float, ...]](), np.empty(3), 0
    while (place := confirm(losses, shares, first, found)) >= 0:
        first = place + 1
        rows.append((first, ERROR, *_errors(found, None if units is None else REACH * units[place]), found[CHANCE]))
    first = 0
    while (place := compare(losses.record, own, usual, first, found)) >= 0:
        first = place + 1
        doubt = 0.5 * math.erfc(found[CHANCE] / math.sqrt(2.0))
        rows.append((first, CONSTANT, *_errors(found, None if units is None else 1.0), doubt))
    return rows


def _errors(found: np.ndarray, unit: float | None) -> list[float]:
    """Return the errors before and after as they are told: shares of mistakes, or roots of means in this unit."""
    means = found[[BEFORE, AFTER]]
    return (means if unit is None else np.sqrt(unit * means)).tolist()


@jit_exact
def confirm(losses, shares, first, found):
    """Take in shares from ``first`` on, up to the first rise that is confirmed; return its index, or -1."""
    spans, held, likeness = losses.spans, losses.held, losses.likeness
    for t in range(first, shares.size):
        if watch(losses.adwin, shares[t : t + 1], 0, found) >= 0 and found[AFTER] > found[BEFORE]:
            spans[SUSPECT], spans[DOUBTED] = float(TRIES), found[CHANCE]
        _add_pair(likeness, shares[t], spans[COUNT] == 0.0)
        spans[SUM] += shares[t]
        spans[COUNT] += 1.0
        if spans[COUNT] < SPAN:
            continue
        mean = spans[SUM] / SPAN
        spans[COUNT], spans[SUM] = 0.0, 0.0
        is_usual = spans[SUSPECT] == 0.0
        _end_window(likeness, mean, is_usual)
        if is_usual:
            _add_window(spans, mean)
            continue
        spans[SUSPECT] -= 1.0
        held[int(spans[HELD])] = mean
        spans[HELD] += 1.0
        if _has_risen(spans, held, _windows_needed(likeness, held.size), found):
            if spans[WINDOWS] >= MATURE:
                spans[EXCESS] = spans[VARIANCE] / _chance(spans[LEVEL])
            for k in range(SUSPECT, EXCESS):
                spans[k] = 0.0
            return t
        if spans[SUSPECT] == 0.0 or spans[HELD] == held.size:  # none of them confirms it; a new rise holds further ones
            for k in range(int(spans[HELD])):
                _add_window(spans, held[k])
            spans[HELD] = 0.0
    return -1


@inline_exact
def _add_pair(likeness, share, is_first):
    """Add an error, and its product with the one before."""
    if not is_first:
        likeness[PAIRS] += share * likeness[LATEST]
    likeness[SQUARE] += share * share
    likeness[LATEST] = share


@inline_exact
def _end_window(likeness, mean, is_usual):
    """Add the variance of the errors of a window, and their covariance with those before, if nothing seems to change in it."""
    if is_usual:
        likeness[APART] = LASTS * likeness[APART] + max(likeness[SQUARE] / SPAN - mean * mean, 0.0)
        likeness[TOGETHER] = LASTS * likeness[TOGETHER] + likeness[PAIRS] / (SPAN - 1.0) - mean * mean
    likeness[SQUARE], likeness[PAIRS] = 0.0, 0.0


@inline_exact
def _windows_needed(likeness, most):
    """Return for how many windows a rise must last: the more errors resemble those before, the longer are rises by chance."""
    needed = 1
    while needed < most and likeness[TOGETHER] > needed * ALIKE * likeness[APART]:
        needed += 1
    return needed


@inline_exact
def _add_window(spans, mean):
    """Add a window to the past ones: after an alarm, those of falling errors are no measure of a rise."""
    falls = FALLS * math.sqrt(spans[EXCESS] * _chance(spans[LEVEL]))
    if spans[EXCESS] > 0.0 and spans[WINDOWS] < MATURE and mean < spans[LEVEL] - falls:
        for k in range(WINDOWS, EXCESS):
            spans[k] = 0.0
    spans[WINDOWS] += 1.0
    spans[WEIGHT] = KEEP * spans[WEIGHT] + 1.0
    difference = mean - spans[LEVEL]
    spans[LEVEL] += difference / spans[WEIGHT]
    spans[VARIANCE] = (1.0 - 1.0 / spans[WEIGHT]) * (spans[VARIANCE] + difference * difference / spans[WEIGHT])


@inline_exact
def _has_risen(spans, held, needed, found):
    """Whether the mean of the last windows that are held, one or more of them, is too high for chance; write what is found."""
    usual = spans[VARIANCE]
    if spans[WINDOWS] < MATURE:
        usual = max(usual, spans[EXCESS] * _chance(spans[LEVEL]))
        if spans[WINDOWS] < SOON or spans[EXCESS] == 0.0:
            return False
    total, n, risen = 0.0, 0.0, False
    for k in range(int(spans[HELD]) - 1, -1, -1):
        total += held[k]
        n += 1.0
        spread = math.sqrt(max(usual, 1.0 / (SPAN * SPAN)) * (1.0 / n + 1.0 / spans[WEIGHT]))
        if n < needed and held[k] - spans[LEVEL] <= HIGH * spread:
            return False
        far = FAR if n >= needed else CLEAR
        if not risen and n >= min(needed, 2.0) and total / n - spans[LEVEL] > far * spread:
            found[BEFORE], found[AFTER], found[CHANCE] = spans[LEVEL], total / n, spans[DOUBTED]
            risen = True
    return risen


@inline_exact
def _chance(level):
    """The variance of the mean of a window of independent events that are 0 or 1."""
    return max(level * (1.0 - level), 1.0 / SPAN) / SPAN


@jit_exact
def compare_labels(counts, labels, usual):
    """Write whether the most frequent class before each event was wrong; the first of those that are equally frequent."""
    best = 0
    for k in range(1, counts.size):
        if counts[k] > counts[best]:
            best = k
    for t in range(labels.size):
        k = labels[t]
        usual[t] = 1.0 if k != best else 0.0
        counts[k] += 1.0
        if counts[k] > counts[best] or (counts[k] == counts[best] and k < best):
            best = k


@jit_exact
def compare_values(record, said, y, shares, own, usual, units):
    """Write squared errors, of the mean before each event as well, and as shares of their running mean."""
    for t in range(y.size):
        error, other = y[t] - said[t], y[t] - record[MEAN]
        own[t], usual[t] = error * error, other * other
        units[t] = record[UNIT]
        shares[t] = relative(own[t], record[UNIT])
        record[SEEN] += 1.0
        record[MEAN] += other / record[SEEN]
        record[UNIT] = follow_unit(record[UNIT], record[SEEN], own[t])


@jit_exact
def compare(record, own, usual, first, found):
    """Compare losses from ``first`` on with those of the constant answer, up to the first alarm; return its index, or -1.

    The chance that is found is in standard errors.
    """
    for t in range(first, own.size):
        difference = own[t] - usual[t]
        record[OWN] += own[t]
        record[USUAL] += usual[t]
        record[SQUARES] += difference * difference
        record[EVENTS] += 1.0
        if record[EVENTS] % PERIOD != 0.0:
            continue
        before, after = record[USUAL] / PERIOD, record[OWN] / PERIOD
        mean = after - before
        error = math.sqrt(max(record[SQUARES] / PERIOD - mean * mean, 0.0) / PERIOD)
        for k in range(OWN, SQUARES + 1):
            record[k] = 0.0
        if record[EVENTS] > PERIOD and mean >= 0.0 and after > 0.0:  # the first window is that of a beginner
            if record[FAILED] == 0.0:
                record[FAILED] = 1.0
                found[BEFORE], found[AFTER] = before, after
                found[CHANCE] = mean / error if error > 0.0 else 0.0
                return t
        elif mean < -AGAIN * error and after < CLEARLY * before:
            record[FAILED] = 0.0
    return -1
