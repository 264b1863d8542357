"""Where a model's data go on: what a model file keeps of how far they have been learned, and what a run makes of it.

The last digits of a model depend on how its rows were cut into calls.  A run cuts them at the ends of whole chunks and at the
multiples of ``--every`` and ``--checkpoint-every``, counted from the first row of the data, so a run that goes on from such a
place makes the calls of a run that never stopped.  Where the rows ended elsewhere, the file also holds the model as it was at
the last such place, from which the rows since are learned again.
"""

from __future__ import annotations

import copy
import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from ..evaluate import ProgressiveRun
    from ..models import Saved
    from .data import Reading, Source

HEAD = 4096  # bytes by which data are known again
ORDER = ("shuffle", "part", "positive")  # options that change which row is which


class Start(NamedTuple):
    """Where to begin: how many rows to leave out, and how many of those after them only bring the model up to date."""

    model: Any = None
    skip: int = 0
    again: int = 0


START = Start()


def start(saved: Saved | None, data: list[str], reading: Reading) -> Start:
    """Where a run of these data begins; with a model file that knows them, after the rows that it has learned."""
    model = saved.model if saved else None
    if saved is None or saved.place is None or reading.skip is not None or _is_live(data):
        return Start(model, reading.skip or 0)
    names, head, order, row, exact = _known(saved.place)
    same_names = [Path(one).name for one in data][: len(names)] == names
    same_rows = same_names if head is None else head == _head(data[0], head[0])
    if not same_names and not same_rows:
        return Start(model)
    if not same_names or not same_rows or order != _order(reading):
        raise ValueError(
            f"the model has learned {row} rows of {names[0]}, and {data[0]} may be the same data or not: "
            f"--skip {row} leaves out as many, --skip 0 none"
        )
    if saved.before is None:
        return Start(model, row)
    from .. import models

    return Start(models.unpacked(saved.before, "the earlier model in the file").model, exact, row - exact)


class Keeper:
    """A course that feeds on a source, and what a file needs for going on as if it had never stopped."""

    def __init__(self, course: ProgressiveRun, source: Source, cut: int | None):
        self.course, self.source = course, source
        self._cut = cut
        self._before: tuple[Any, int] | None = None

    @property
    def events(self) -> int:
        return self.course.events

    @property
    def begun(self) -> bool:
        return self.course.begun

    def begin(self, X: Any, y: Any) -> None:
        self.course.begin(X, y)

    def learn(self, X: Any, y: Any) -> None:
        """Let the course learn; a model that an uncut run would not have stopped at keeps the one before it."""
        row = self.course.row + len(y)
        exact = row in self.source.ends or (self._cut is not None and row % self._cut == 0) or _is_live(self.source.data)
        self._before = None if exact else (copy.deepcopy(self.course.model), self.course.row)
        self.course.learn(X, y)

    def save(self, path: Path) -> None:
        """Write the model with all of it."""
        from .. import models

        place = place_of(self.source, self.course.row)
        before, exact = self._before if self._before and self._before[1] < self.course.row else (None, None)
        models.save(self.course.model, path, self.source.kept(), place | {"exact": exact}, before)


def place_of(source: Source, row: int) -> dict[str, Any]:
    """How far the data have been learned, and what they are."""
    names = [Path(one).name for one in source.data]
    return {"data": names, "head": _head(source.data[0]), "order": _order(source.reading), "row": row, "exact": None}


def advice(save: Path, source: Source, mend: bool) -> str:
    """How to go on with a model that was saved when a command stopped."""
    how = "mend the data, then go on" if mend else "go on"
    rest = " and the rows that follow" if _is_live(source.data) else ""
    return f"the model is in {save}: {how} with --resume {save}{rest}"


def _is_live(data: list[str]) -> bool:
    """Whether some of the data can be read only once: what comes next are new rows then."""
    from ..streams.files import is_read_once

    return any(map(is_read_once, data))


def _head(name: str, size: int = HEAD) -> list[Any] | None:
    """The number and the checksum of the first bytes of a file; None for data sets and what can be read only once."""
    from ..streams.files import is_read_once, opened

    if not Path(name).exists() or is_read_once(name):
        return None
    with opened(name) as file:
        first = file.read(size)
    return [len(first), hashlib.sha256(first).hexdigest()]


def _order(reading: Reading) -> dict[str, Any]:
    return {name: getattr(reading, name) for name in ORDER}


def _known(place: Any) -> tuple[list[str], list[Any] | None, dict[str, Any], int, int]:
    """What a file says about its place, once that has proved to be what ``place_of`` writes."""
    try:
        names, head, row = [str(one) for one in place["data"]], place["head"], place["row"]
        exact = row if place["exact"] is None else place["exact"]
        size = 0 if head is None else head[0]
        good = names and all(type(one) is int for one in (row, exact, size)) and 0 <= exact <= row and 0 <= size <= HEAD
    except (KeyError, TypeError, IndexError):
        good = False
    if not good:
        raise ValueError("the model file does not say how far its data have been learned: give --skip")
    return names, head, place["order"], row, exact
