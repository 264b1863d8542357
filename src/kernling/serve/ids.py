"""The ids of the last events learned, in memory and on disk.

On disk, the ids of a block are part of its record in the journal: if it is lost, so are they, and its events can be sent again.
When a snapshot covers the block, they are copied to two logs of ids with the same contents, since nothing else could tell that
the events were learned.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from .log import Found, Log, Record

IDS = 1  # kind of record
TOGETHER = 4_096  # events whose ids make a record, at least
FOLDERS = ("ids", "ids-copy")


class Piece(NamedTuple):
    """The ids of some consecutive events of a model."""

    first: int  # number of events before them
    end: int
    ids: Sequence[str]


class KnownIds:
    """The set of the last ids, at most ``limit``.

    Examples
    --------
    >>> from kernling.serve.ids import KnownIds, Piece
    >>> known = KnownIds(2)
    >>> known.add(Piece(0, 1, ["a"]))
    >>> known.add(Piece(1, 3, ["b", "c"]))
    >>> "a" in known, "c" in known, known.oldest
    (False, True, 1)
    """

    def __init__(self, limit: int):
        self.limit = limit
        self.oldest = 0  # events before this number have no known ids
        self.new: deque[Piece] = deque()  # not in the logs yet
        self.stored = 0  # the logs reach up to this number of events
        self.oldest_stored = 0  # and begin before this one: the last two snapshots need what comes after it
        self._order: deque[str] = deque()
        self._ends: deque[list[int]] = deque()  # ends of pieces, and how many of their ids are known
        self._all: set[str] = set()

    def begin(self, oldest: int, stored: int, pieces: Sequence[Piece]) -> None:
        """Begin with the ids of the logs, which a snapshot says to be those of this range of events."""
        self.oldest = self.oldest_stored = oldest
        self.stored = stored
        surplus = max(sum(len(piece.ids) for piece in pieces) - self.limit, 0)
        for piece in pieces:  # the surplus may hold an id that was forgotten and learned again, which must not be forgotten
            self.add(piece._replace(ids=piece.ids[surplus:]), is_stored=True)
            surplus = max(surplus - len(piece.ids), 0)

    def __contains__(self, one: str) -> bool:
        return one in self._all

    def __len__(self) -> int:
        return len(self._order)

    def add(self, piece: Piece, is_stored: bool = False) -> None:
        """Add the ids of events, and forget the oldest ids if there are too many."""
        if not piece.ids:
            return
        if not is_stored:
            self.new.append(piece)
        self._order.extend(piece.ids)
        self._all.update(piece.ids)
        self._ends.append([piece.end, len(piece.ids)])
        for _ in range(max(len(self._order) - self.limit, 0)):
            self._all.discard(self._order.popleft())
            self._ends[0][1] -= 1
            if not self._ends[0][1]:
                self.oldest = self._ends.popleft()[0]

    def to_store(self, end: int) -> list[Piece]:
        """Return the new ids up to this number of events, in pieces that follow each other."""
        pieces: list[Piece] = []
        first, ids = self.stored, []  # type: int, list[str]
        chosen = [piece for piece in list(self.new) if piece.end <= end]
        for piece in chosen:
            ids += piece.ids
            if piece.end - first >= TOGETHER or piece is chosen[-1]:
                pieces.append(Piece(first, piece.end, ids))
                first, ids = piece.end, []
        return pieces

    def set_stored(self, end: int) -> None:
        """Note that the ids up to this number of events are in the logs."""
        while self.new and self.new[0].end <= end:
            self.stored = self.new.popleft().end

    def range(self) -> tuple[int, int]:
        """Return the range of events whose ids are in the logs, for a snapshot."""
        self.oldest_stored = min(self.oldest, self.stored)
        return self.oldest_stored, self.stored


class StoredIds:
    """The two logs of ids in a folder, used by one thread at a time."""

    def __init__(self, folder: Path):
        self.logs = [Log(folder / name) for name in FOLDERS]
        for log in self.logs:
            log.scan()

    def last_number(self) -> int:
        """Return the highest number of a model."""
        return max((found.model for log in self.logs for found in log.found), default=0)

    def last_end(self, number: int) -> int:
        """Return the highest number of events of a model."""
        return max((found.end for log in self.logs for found in log.found if found.model == number), default=0)

    def _chosen(self, ranges: dict[int, tuple[int, int]]) -> dict[tuple[int, int], Found]:
        """Return the records in ranges of events, by model and first event; of several, the one that reaches farthest."""
        chosen: dict[tuple[int, int], Found] = {}
        for found in (found for log in self.logs for found in log.found if _is_within(found, ranges)):
            key = found.model, found.first
            if key not in chosen or chosen[key].end < found.end:
                chosen[key] = found
        return chosen

    def pieces(self, number: int, oldest: int, end: int) -> tuple[list[Piece], list[tuple[int, int]]]:
        """Return the ids of a model's events between two numbers, and the ranges of events whose ids are lost."""
        chosen = self._chosen({number: (oldest, end)})
        pieces: list[Piece] = []
        gaps: list[tuple[int, int]] = []
        reached = oldest
        for key in sorted(chosen):
            found = chosen[key]
            if found.first > reached:
                gaps.append((reached, found.first))
            reached = max(reached, found.end)
            pieces.append(Piece(found.first, found.end, json.loads(found.read().content)))
        return pieces, gaps + ([(reached, end)] if reached < end else [])

    def damage(self) -> list[str]:
        """Return a sentence for every damaged file."""
        return [sentence for log in self.logs for sentence in log.damage()]

    def mend(self, ranges: dict[int, tuple[int, int]]) -> None:
        """Make both logs whole: they have all that one of them has of these ranges of events, by model, and nothing else."""
        chosen = self._chosen(ranges).values()
        for log in self.logs:
            held = {(one.model, one.first, one.end) for one in log.found if one.is_whole}
            missing = [one for one in chosen if (one.model, one.first, one.end) not in held]
            for place in range(0, len(missing), TOGETHER):
                log.append([one.read() for one in missing[place : place + TOGETHER]])
        for log in self.logs:
            log.clean(lambda found: _is_within(found, ranges), everywhere=True)

    def write(self, number: int, pieces: Sequence[Piece], oldest: int) -> None:
        """Add ids to both logs; those of events before the number ``oldest`` may be removed."""
        records = [Record(IDS, number, one.first, one.end - one.first, json.dumps(one.ids).encode()) for one in pieces]
        for log in self.logs:
            if records:
                log.append(records)
            log.cut(number, oldest)
            log.tidy()

    def close(self) -> None:
        """Close all files."""
        for log in self.logs:
            log.close()


def _is_within(found: Found, ranges: dict[int, tuple[int, int]]) -> bool:
    oldest, end = ranges.get(found.model, (0, -1))
    return found.is_whole and oldest < found.end <= end
