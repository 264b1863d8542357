"""When a model's losses rise, a successor learns beside it from the latest events, and takes its place once it is better.

Losses are watched by ADWIN (adwin.py): mistakes, or squared errors over their running mean, clipped, and how rare classes are
ranked (ranks.py).  A window of losses in which they rose is an alarm; a fall is none, since that is learning.  The successor
begins some events later, since a block is learned at once.  While there are two, the one with the smaller losses of the latest
events answers.  The successor takes the place of the other one when its losses are smaller beyond chance, and is itself
followed by another: a change that goes on for long is met again.  The first successor that is not better within its time is
dropped.  Where classes are rare, few events tell which of the two is better, so losses are compared over more of them.

Auto compares logarithmic losses.  KRLS compares squared errors, which it minimises, and its successor answers only once it has
taken over, so that all that reads an expansion reads one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, TypeVar

import numpy as np

from ..compiler import UNIT as COMPILED_UNIT
from ..compiler import bind, inline_exact, inner_exact, jit_exact
from ..core import state as states
from ..core.limits import SCORE
from ..core.shapes import declared
from ..core.state import Widening
from ..core.votes import TIE
from .adwin import AFTER, BEFORE, CHANCE, REACH, Adwin, follow_unit, new_adwin, relative, watch
from .ranks import Ranks, have_fallen, new_ranks, pace, rank

if TYPE_CHECKING:
    from ..merging.rules import Merging

Part = TypeVar("Part")
DELAY = 256  # events between an alarm and the first event of the successor: at least those of a block
DECIDE = 256  # events of the successor between two decisions
YOUNG = 1024  # events of the successor, before which it replaces nobody, and alarms start no other
LIFE = 8192  # events of the successor, after which it is dropped
LONGEST = 4.0  # times that, where classes are rare
SURE = 3.0  # standard errors by which the successor's losses must be smaller
BETTER = 0.05  # of the losses of the other one, by which they must be smaller
LATEST = 1.0 / 256.0  # the share of an event in the losses that decide who answers
FADE = 1.0 / 1024.0  # of the sums that decide who stays, for each event
SURPRISE = 4.0  # loss of a class, at which it is clipped
KEPT = 16  # alarms
ERROR, RANK = range(2)  # kinds of alarms
WORDS = ("error", "rank")
LEAD, SUM, SQUARES, WEIGHT, OWN, PENDING, UNIT, EVENTS = range(8)  # what contest holds
REPLACED, KIND = 4, 5  # places in an alarm's row


class Rise(NamedTuple):
    """A rise of the losses."""

    event: int  # at which it was found
    sure: float  # at least how unlikely it is by chance
    before: float  # the loss before the rise: see ``what``
    after: float
    replaced: int | None  # the event at which a successor took over; None if none did, or not yet
    what: str  # "error": the share of mistakes, or the mean squared error; "rank": of other events ranked above rare classes

    def in_units_of(self, unit: float) -> Rise:
        """Return the same with errors that are multiplied by this."""
        return self if self.what == WORDS[RANK] else self._replace(before=unit * self.before, after=unit * self.after)


class Settled(NamedTuple):
    """What happens to a successor, in this order."""

    replaces: bool  # it takes the place of the other one
    drops: bool
    begins: bool  # another one


@declared()
class Succession(NamedTuple):
    adwin: Adwin
    ranks: Ranks
    alarms: Annotated[np.ndarray, f"not negative: {KEPT} 6"]  # the latest, as a ring
    noted: Annotated[np.ndarray, "counts: 1"]  # how many there were
    # see LEAD and the rest above
    contest: Annotated[np.ndarray, "-5..5", "-1e6..1e6", "0..1e6", "0..1e5", "0..1e6", "counts", f"0..{SCORE**3}", "counts"]

    def check(self, dimensions: Mapping[str, int]) -> None:
        """Raise unless all alarms are of known kinds."""
        if not np.isin(self.alarms[:, KIND], range(len(WORDS))).all():
            raise ValueError("an alarm of a rise is of no known kind")

    def latest(self) -> list[Rise]:
        """Return the latest alarms, the oldest first."""
        noted = int(self.noted[0])
        rows = (self.alarms[i % KEPT].tolist() for i in range(max(0, noted - KEPT), noted))
        return [
            Rise(int(event), sure, old, new, int(replaced) or None, WORDS[int(kind)])
            for event, sure, old, new, replaced, kind in rows
        ]

    def widened(self, change: Widening) -> Succession:
        """Convert to the outputs of ``change``."""
        return self._replace(ranks=self.ranks.widened(change))

    def retimed(self, factor: float) -> Succession:
        """Return the record of a model whose events are counted otherwise; those of alarms stay as they were."""
        contest = self.contest.copy()
        contest[PENDING] = np.floor(factor * contest[PENDING]) + 1.0 if contest[PENDING] else 0.0
        return self._replace(contest=contest)

    def merged(self, other: Succession, start: Succession | None, merging: Merging) -> Succession:
        """Return the latest alarms of both, each with the number of events of its own model; losses are watched anew."""
        merged = new_succession(len(self.ranks.seen))
        rows = {tuple(part.alarms[i % KEPT].tolist()) for part in (self, other) for i in range(int(min(part.noted[0], KEPT)))}
        kept = sorted(rows)[-KEPT:]
        for row in kept:
            merged.note(row)
        if len(kept) == KEPT:  # with fewer, these are all there were
            shared = 0 if start is None else start.noted
            merged.noted[:] = max(len(rows), int((self.noted + other.noted - shared)[0]))
            merged.alarms[:] = np.roll(merged.alarms, int(merged.noted[0]) - KEPT, axis=0)
        return merged

    def settled(self, events: int, age: float) -> Settled:
        """Decide what happens after so many events, given those of the successor, -1 if there is none; note it."""
        decides = age >= YOUNG and age % DECIDE == 0.0
        wins = decides and is_better(self)
        drops = decides and not wins and age >= life(self)
        if wins:
            self.contest[PENDING] = events
        begins = bool(self.contest[PENDING] == events)
        replaces = wins or (begins and age >= 0.0 and not drops and leads(self))
        if replaces:
            self.replaced(events)
        if begins:
            self.contest[: PENDING + 1] = 0.0
        return Settled(replaces, drops, begins)

    def note(self, row: tuple[float, ...]) -> None:
        """Store an alarm in the place of the oldest."""
        self.alarms[int(self.noted[0]) % KEPT] = row
        self.noted[0] += 1

    def replaced(self, event: int) -> None:
        """Note of the latest alarm that a successor took over."""
        last = self.alarms[int(self.noted[0] - 1) % KEPT]
        last[REPLACED] = last[REPLACED] or event


class Nothing(NamedTuple):
    """No succession, or no successor."""

    def merged(self, other: Nothing, start: Nothing | None, merging: Merging) -> Nothing:
        """Return the same."""
        return self


class _Heir:
    """What a successor can do as a part of a state (core/state.py), given ``has_begun`` and ``emptied``."""

    has_begun: bool
    emptied: Any

    def grown(self, capacity: int) -> Any:
        """Return a successor with room for this many points, if it has begun."""
        return states.grown(self, capacity) if self.has_begun else self

    def trimmed(self, size: int) -> Any:
        """Return a successor without room for more points."""
        return states.without_points(self)

    def ordered(self) -> Any:
        """Return a successor with the outputs in the order of the labels."""
        return states.ordered(self)

    def widened(self, change: Widening) -> Any:
        """Convert a successor to the outputs of ``change``."""
        return states.widened(self, change)

    def set_centre(self, row: np.ndarray) -> None:
        """Store rows of a successor relative to this one."""
        states.set_centre(self, row)

    def merged(self, other: Any, start: Any, merging: Merging) -> Any:
        """Return no successor: models are merged by what answers."""
        return self.emptied()


def heir(part: type[Part]) -> type[Part]:
    """Give a class of states what successors can do as parts of another state."""
    for name, method in vars(_Heir).items():
        if callable(method):
            setattr(part, name, method)
    return part


def times() -> np.ndarray:
    """Return DELAY, YOUNG and DECIDE for compiled code."""
    return np.array([DELAY, YOUNG, DECIDE])


def new_succession(labels: int) -> Succession:
    """Return the record of a model without alarms; values count as two labels."""
    return Succession(new_adwin(), new_ranks(labels), np.zeros((KEPT, 6)), np.zeros(1, np.int64), np.zeros(8))


def life(succession: Succession) -> float:
    """Return after how many events a successor is dropped."""
    return LIFE * min(LONGEST, 1.0 / max(pace(succession.ranks), 1.0 / LONGEST))


def leads(succession: Succession) -> bool:
    """Return whether the successor had the smaller losses lately."""
    return bool(succession.contest[LEAD] > 0.0)


def is_better(succession: Succession) -> bool:
    """Return whether the successor's losses are smaller beyond chance."""
    total, squares, weight, own = succession.contest[SUM : OWN + 1].tolist()
    mean = total / weight
    error = math.sqrt(max(squares / weight - mean * mean, 0.0) / weight)
    return mean > SURE * error and total > BETTER * own


@jit_exact
def until_due(contest, events, age, times):
    """Return the number of events until a successor begins, or it is decided who stays; its age is -1 if there is none.

    At most DELAY: an alarm is only known at the end of a block, which must not be later than its successor begins.
    """
    ahead = times[0]
    if age >= 0.0:
        ahead = min(ahead, times[2] - int(age) % times[2])
    return min(ahead, int(contest[PENDING] - events)) if contest[PENDING] > events else ahead


@inner_exact
def watch_losses(succession, losses, units, shares, events, latest_began, times, found):
    """Watch the losses of events, the last of which has this number, and how those of rare classes are ranked."""
    for i in range(losses.size):
        event = events - losses.size + i + 1
        begins = event + times[0] if event >= latest_began + times[1] else 0.0  # a young successor is given time
        if watch(succession.adwin, losses[i : i + 1], 0, found) >= 0:
            _note_rise(succession, ERROR, REACH * units[i] if units[i] > 0.0 else 1.0, event, begins, found)
        if shares[i] >= 0.0 and have_fallen(succession.ranks, shares[i], found):
            _note_rise(succession, RANK, 1.0, event, begins, found)


@inner_exact
def _note_rise(succession, kind, unit, event, begins, found):
    """Note a change that was found, if it is a rise.

    Then a successor begins at event ``begins``, unless one is about to; 0 means that none does.
    """
    if found[AFTER] > found[BEFORE]:
        row = succession.alarms[succession.noted[0] % KEPT]
        row[0], row[1], row[2], row[3] = event, 1.0 - found[CHANCE], unit * found[BEFORE], unit * found[AFTER]
        row[REPLACED], row[KIND] = 0.0, kind
        succession.noted[0] += 1
        if begins > 0.0 and succession.contest[PENDING] == 0.0:
            succession.contest[PENDING] = begins


def _follow(succession, outputs, other, two, targets, weights, values, losses, units, shares):
    """Replace the outputs of a block by those of the successor, if there are two, where it leads.

    The losses before each event decide.  They are written, with their units and ranks, for the events that are learned, whose
    number is returned.
    """
    contest, count, speed = succession.contest, 0, 1.0
    for j in range(targets.size):
        answers = two and may_answer(contest)
        if weights[j] > 0.0:
            unit = contest[UNIT]
            own = loss(outputs, j, targets[j], values, unit)
            theirs = loss(other, j, targets[j], values, unit) if two else own
            units[count] = unit
            if values:
                error = (other[0, j] if answers else outputs[0, j]) - targets[j]
                losses[count] = theirs if answers else own
                contest[EVENTS] += 1.0
                contest[UNIT] = follow_unit(unit, contest[EVENTS], error * error)
            else:
                losses[count] = 1.0 if _is_wrong(other if answers else outputs, j, targets[j]) else 0.0
                speed = pace(succession.ranks)
                label = int(targets[j]) if outputs.shape[0] > 1 else int(targets[j] > 0.0)
                shares[count] = rank(succession.ranks, other if answers else outputs, j, label)
            count += 1
            if two:
                lead, keep = own - theirs, 1.0 - FADE * speed
                contest[LEAD] += LATEST * speed * (lead - contest[LEAD])
                contest[SUM] = keep * contest[SUM] + lead
                contest[SQUARES] = keep * contest[SQUARES] + lead * lead
                contest[WEIGHT] = keep * contest[WEIGHT] + 1.0
                contest[OWN] = keep * contest[OWN] + own
        if answers:
            for o in range(outputs.shape[0]):
                outputs[o, j] = other[o, j]
    return count


def loss(outputs, j, target, values, unit):
    """Placeholder for one of the losses below."""


def may_answer(contest):
    """Placeholder for one of the rules below: whether the successor answers."""


@inline_exact
def _leading(contest):
    return contest[LEAD] > 0.0


@inline_exact
def _never(contest):
    return False


@inline_exact
def _squared(outputs, j, target, values, unit):
    """The clipped squared error over its mean, or the clipped mean squared difference of the outputs from -1 and 1."""
    if values:
        error = outputs[0, j] - target
        return relative(error * error, unit)
    total, n = 0.0, outputs.shape[0]
    for o in range(n):
        wanted = target if n == 1 else 1.0 if o == int(target) else -1.0
        total += (outputs[o, j] - wanted) * (outputs[o, j] - wanted)
    return min(total / n, SURPRISE)


@inline_exact
def _logarithmic(outputs, j, target, values, unit):
    """The clipped squared error over its mean, or the clipped logarithmic loss."""
    if values:
        error = outputs[0, j] - target
        return relative(error * error, unit)
    if outputs.shape[0] == 1:
        margin = target * outputs[0, j]
        return min(np.log1p(np.exp(-abs(margin))) + max(-margin, 0.0), SURPRISE)
    highest = outputs[0, j]
    for o in range(1, outputs.shape[0]):
        highest = max(highest, outputs[o, j])
    total = 0.0
    for o in range(outputs.shape[0]):
        total += np.exp(outputs[o, j] - highest)
    return min(np.log(total) + highest - outputs[int(target), j], SURPRISE)


@inline_exact
def _is_wrong(outputs, j, target):
    if outputs.shape[0] == 1:
        return (outputs[0, j] >= -TIE) != (target > 0.0)
    best = 0
    for o in range(1, outputs.shape[0]):
        if outputs[o, j] > outputs[best, j] + TIE:
            best = o
    return best != int(target)


follow = bind(_follow, kind=COMPILED_UNIT, exact=True, loss=_logarithmic, may_answer=_leading)
follow_squares = bind(_follow, kind=COMPILED_UNIT, exact=True, loss=_squared, may_answer=_never)
