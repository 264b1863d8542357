"""Resuming: the position in the data that a model file stores, and where a run continues.

The last digits of a model depend on how its rows were split into calls.  A run splits them at the ends of whole chunks and at
multiples of ``--every`` and ``--checkpoint-every``, counted from the first row of the data, so a run that continues from such a
position makes the same calls as an uninterrupted one.  If the rows ended elsewhere, the file also contains the model at the
last such position, from which the rows since then are learned again.
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

HEAD = 4096  # number of bytes by which data are recognised
ORDER = ("shuffle", "part", "positive")  # options that change which rows come first


class Start(NamedTuple):
    """Where to start."""

    model: Any = None
    skip: int = 0  # rows of the data
    again: int = 0  # rows after them that the model learns again
    measured: int = 0  # events among these rows, which are not measured again


START = Start()


def start(saved: Saved | None, data: list[str], reading: Reading) -> Start:
    """Return where a run on these data starts: after the rows of the data that the model has learned."""
    model = saved.model if saved else None
    if saved is None or saved.place is None or reading.skip is not None or _is_live(data):
        return Start(model, reading.skip or 0)
    names, head, order, row, exact, again = _known(saved.place)
    same_names = [Path(one).name for one in data][: len(names)] == names
    same_rows = same_names if head is None else head == _head(data[0], head[0])
    if not same_names and not same_rows:
        return Start(model)
    if not same_names or not same_rows or order != _order(reading):
        raise ValueError(
            f"the model has learned {row} rows of {names[0]}, and it is unclear whether {data[0]} contains the same rows: "
            f"use --skip {row} to continue after them, or --skip 0 to learn all rows"
        )
    if saved.before is None:
        return Start(model, row)
    from .. import models

    return Start(models.unpacked(saved.before, "the earlier model in the file").model, exact, row - exact, again)


class Keeper:
    """A progressive run on a source, saved with everything that an exact continuation needs."""

    def __init__(self, run: ProgressiveRun, source: Source, cut: int | None):
        self.run, self.source = run, source
        self._cut = cut
        self._before: tuple[Any, int, int] | None = None  # a model, its row in the data, and its events

    @property
    def events(self) -> int:
        return self.run.events

    @property
    def begun(self) -> bool:
        return self.run.begun

    def begin(self, X: Any, y: Any) -> None:
        self.run.begin(X, y)

    def learn(self, X: Any, y: Any) -> None:
        """Learn rows; keep a copy of the model before them if an uninterrupted run would not split the rows here."""
        row = self.run.row + len(y)
        exact = row in self.source.ends or (self._cut is not None and row % self._cut == 0) or _is_live(self.source.data)
        self._before = None if exact else (copy.deepcopy(self.run.model), self._row(), self.run.row)
        self.run.learn(X, y)

    def _row(self) -> int:
        """Return the number of rows of the data up to the last one learned."""
        return self.source.rows_until(self.run.row - self.source.skip)

    def save(self, path: Path) -> None:
        """Save the model."""
        from .. import models

        place = place_of(self.source, self._row())
        before, exact, events = self._before if self._before and self._before[2] < self.run.row else (None, None, self.run.row)
        place |= {"exact": exact, "again": self.run.row - events}
        models.save(self.run.model, path, self.source.kept(), place, before)


def place_of(source: Source, row: int) -> dict[str, Any]:
    """Return the position in the data, and what identifies them."""
    names = [Path(one).name for one in source.data] if source.events is None else [source.name]
    return ({} if source.events is None else {"offsets": {source.name: source.events.offsets_after(row)}}) | {
        "data": names,
        "head": _head(source.data[0]),
        "order": _order(source.reading),
        "row": row,
        "exact": None,
        "again": 0,
    }


def advice(save: Path, source: Source, mend: bool) -> str:
    """Return how to continue with the model that was saved when a command stopped."""
    how = "fix the data, then continue" if mend else "continue"
    rest = " and the rows that follow" if _is_live(source.data) else ""
    return f"the model is in {save}: {how} with --resume {save}{rest}"


def _is_live(data: list[str]) -> bool:
    """Return whether some of the data can be read only once, so that the next rows are new rows."""
    from ..io.files import is_read_once

    return any(map(is_read_once, data))


def _head(name: str, size: int = HEAD) -> list[Any] | None:
    """Return the number and the checksum of the first bytes of a file; None for data sets and pipes."""
    from ..io.files import is_read_once, opened

    if not Path(name).exists() or is_read_once(name):
        return None
    with opened(name) as file:
        first = file.read(size)
    return [len(first), hashlib.sha256(first).hexdigest()]


def _order(reading: Reading) -> dict[str, Any]:
    return {name: getattr(reading, name) for name in ORDER}


def _known(place: Any) -> tuple[list[str], list[Any] | None, dict[str, Any], int, int, int]:
    """Return the position stored in a file after checking it."""
    try:
        names, head, row = [str(one) for one in place["data"]], place["head"], place["row"]
        exact = row if place["exact"] is None else place["exact"]
        again, size = place["again"], 0 if head is None else head[0]
        whole = all(type(one) is int for one in (row, exact, again, size))
        good = names and whole and 0 <= exact <= row and 0 <= again <= row - exact and 0 <= size <= HEAD
    except (KeyError, TypeError, IndexError):
        good = False
    if not good:
        raise ValueError("the position in the data that the model file contains is invalid: use --skip")
    return names, head, place["order"], row, exact, again
