"""Logs: records in files that are only ever appended to, each record with its own checksum.

A log is a folder of files.  A record says which model it belongs to and, by the number of events before it, where in the
model's sequence of events it stands, so that a missing one leaves a gap.  Every record begins with eight random bytes, which
are those of the file's name: after damage, reading goes on at their next occurrence, and nobody who sends rows can write bytes
that look like a record.  The records of a commit are written at once, and only the last of them says that it is complete.
"""

from __future__ import annotations

import os
import re
import secrets
import struct
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from ..atomic import flush, read_regular

NAME = re.compile(r"(\d{8})-([0-9a-f]{16})\.log")
HEAD = struct.Struct("<8sBBIQIII")  # salt, kind, whether it ends a commit, model, first, rows, length, checksum of the content
SUM = struct.Struct("<I")  # checksum of the head
SIZE = HEAD.size + SUM.size
SEGMENT = 16 * 2**20  # bytes of a file, after which another is begun
SMALL = 2**16  # bytes that are copied to a new file in any case so that the old one can be removed
_flush_data = getattr(os, "fdatasync", os.fsync)


class Record(NamedTuple):
    """A record of a log."""

    kind: int
    model: int
    first: int  # number of the model's events before it
    rows: int  # number of events that it covers
    content: bytes

    def to_bytes(self, salt: bytes, is_last: bool) -> bytes:
        """Serialise the record for a file."""
        head = HEAD.pack(
            salt, self.kind, is_last, self.model, self.first, self.rows, len(self.content), zlib.crc32(self.content)
        )
        return head + SUM.pack(zlib.crc32(head)) + self.content


class Found(NamedTuple):
    """The head of a record that was found in a file."""

    path: Path
    place: int  # of its head in the file
    kind: int
    is_last: bool  # of its commit
    model: int
    first: int
    rows: int
    length: int
    is_whole: bool  # whether its content is as it was written

    @property
    def end(self) -> int:
        """Number of the model's events after it."""
        return self.first + self.rows

    def read(self) -> Record:
        """Read the record."""
        with self.path.open("rb") as file:
            file.seek(self.place + SIZE)
            return Record(self.kind, self.model, self.first, self.rows, file.read(self.length))


@dataclass
class Segment:
    """A file of a log."""

    path: Path
    size: int = 0
    unread: int = 0  # bytes that belong to no whole record
    spans: dict[int, tuple[int, int]] = field(default_factory=dict)  # by model: end of its last record, and bytes

    @property
    def salt(self) -> bytes:
        """The bytes with which its records begin."""
        return bytes.fromhex(self.path.stem.partition("-")[2])

    def note(self, model: int, end: int, size: int) -> None:
        """Count a record."""
        last, held = self.spans.get(model, (0, 0))
        self.spans[model] = max(last, end), held + size

    def scan(self) -> list[Found]:
        """Find all records whose head is intact."""
        data = read_regular(self.path)
        self.size, self.unread, found = len(data), len(data), []
        for one in _records(data, self.path, self.salt):
            found.append(one)
            self.note(one.model, one.end, SIZE + one.length)
            if one.is_whole:
                self.unread -= SIZE + one.length
        return found


def _records(data: bytes, path: Path, salt: bytes) -> Iterator[Found]:
    view = memoryview(data)
    place = data.find(salt)
    while 0 <= place <= len(data) - SIZE:
        head, content = view[place : place + HEAD.size], place + SIZE
        if SUM.unpack_from(data, place + HEAD.size)[0] != zlib.crc32(head):
            place = data.find(salt, place + 1)
            continue
        _, kind, is_last, model, first, rows, length, checksum = HEAD.unpack(head)
        end = content + length
        is_whole = end <= len(data) and zlib.crc32(view[content:end]) == checksum
        yield Found(path, place, kind, bool(is_last), model, first, rows, length, is_whole)
        place = data.find(salt, end if is_whole else content)


class Log:
    """The log in a folder, written by one thread at a time.  Opening it only reads.

    Examples
    --------
    >>> from pathlib import Path
    >>> from kernling.serve.log import Log, Record
    >>> log = Log(Path("log"))
    >>> log.append([Record(1, model=7, first=0, rows=3, content=b"abc")])
    >>> log.close()
    >>> [(found.model, found.end, found.read().content) for found in Log(Path("log")).scan()]
    [(7, 3, b'abc')]
    """

    def __init__(self, folder: Path, opening: Callable[[], list[Record]] = list, lasting: int | None = None):
        self.folder = folder
        self._lasting = lasting  # kind of records that are always needed
        self.opening = opening  # returns the records with which every file begins
        self.segments: list[Segment] = []  # complete files, oldest first
        self.current: Segment | None = None  # the file that is written
        self.found: list[Found] = []  # by the last scan
        self.unreadable: list[str] = []  # a sentence for every file that could not be read at all
        self._file: int | None = None
        self._cuts: dict[int, int] = {}
        self._is_tidy = True

    def scan(self) -> list[Found]:
        """Read all files; return the heads of their records, in the order in which they were written."""
        self.found, self.segments, self.unreadable = [], [], []
        for path in sorted(self.folder.glob("*.log")):
            if not NAME.fullmatch(path.name):
                self.unreadable.append(f"{self.folder.name}/{path.name} is not a file of the log")
                continue
            segment = Segment(path)
            try:
                self.found += segment.scan()
                self.segments.append(segment)
            except OSError as error:
                self.unreadable.append(f"{self.folder.name}/{path.name} cannot be read: {error.strerror}")
        return self.found

    def damage(self) -> list[str]:
        """Return a sentence for every file that is damaged."""
        damaged = (one for one in self.segments if one.unread)
        shown = (f"{self.folder.name}/{one.path.name}: {one.unread:,} of {one.size:,} bytes are damaged" for one in damaged)
        return [*self.unreadable, *shown]

    def incomplete(self) -> list[Found]:
        """Return the records at the end of the last file that are not followed by the end of their commit."""
        last = [one for one in self.found if self.segments and one.path == self.segments[-1].path]
        ends = [place for place, one in enumerate(last) if one.is_last and one.is_whole]
        return last[ends[-1] + 1 if ends else 0 :]

    def leave_out(self, records: Sequence[Found]) -> int:
        """Do as if records at the end of the last file, and what follows them, were not there; return where they begin."""
        self.found = [one for one in self.found if one not in records]
        segment = self.segments[-1]
        place = max((one.place + SIZE + one.length for one in self.found if one.path == segment.path), default=0)
        segment.unread -= segment.size - place - sum(SIZE + one.length for one in records if one.is_whole)
        segment.size = place
        return place

    # ------------------------------------------------------------------ writing

    def append(self, records: Sequence[Record]) -> None:
        """Write the records of a commit: when this returns, all of them are on disk; if it raises, none is."""
        if self.current is None or self.current.size > SEGMENT:
            self._begin_file()
            records = [*self.opening(), *records]
        segment = self.current
        assert segment is not None
        assert self._file is not None
        last = len(records) - 1
        data = [record.to_bytes(segment.salt, place == last) for place, record in enumerate(records)]
        try:
            _write(self._file, b"".join(data))
            _flush_data(self._file)
        except BaseException:
            with suppress(OSError):
                os.ftruncate(self._file, segment.size)
            self._end_file()  # what a disk holds after an error is not known: go on in another file
            raise
        for record, content in zip(records, data, strict=True):
            segment.note(record.model, record.first + record.rows, len(content))
            segment.size += len(content)

    def _begin_file(self) -> None:
        self._end_file()
        self.folder.mkdir(parents=True, exist_ok=True)
        numbers = [int(path.name[:8]) for path in self.folder.glob("*.log*") if path.name[:8].isdigit()]
        path = self.folder / f"{max(numbers, default=0) + 1:08d}-{secrets.token_hex(8)}.log"
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600)
        self.current = Segment(path)
        self._is_tidy = False
        with suppress(OSError):  # some systems cannot flush folders
            flush(self.folder)

    def _end_file(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None
        if self.current is not None:
            self.segments.append(self.current)
            self.current = None

    def close(self) -> None:
        """Close the file that is written."""
        self._end_file()

    # ------------------------------------------------------------------ removal

    def cut(self, model: int, end: int) -> None:
        """Allow the removal of a model's records up to this number of events; any thread may call this."""
        if self._cuts.get(model, -1) < end:
            self._cuts[model] = end
            self._is_tidy = False

    def is_needed(self, found: Found) -> bool:
        """Return whether a record is whole and has not been cut."""
        return found.is_whole and (found.kind == self._lasting or found.end > self._cuts.get(found.model, -1))

    def tidy(self) -> None:
        """Remove files of which little is still needed, after copying that; the last file stays."""
        if self._is_tidy or self.current is None:
            return
        self._is_tidy = True
        for segment in list(self.segments):
            needed = sum(size for model, (end, size) in segment.spans.items() if end > self._cuts.get(model, -1))
            if needed <= max(segment.size // 4, SMALL):
                self.carry(segment, self.is_needed)

    def carry(self, segment: Segment, is_needed: Callable[[Found], bool], damaged: bool = False) -> None:
        """Copy the needed records of a file to the current one, and remove it, or rename it if it is damaged."""
        kept = [found.read() for found in Segment(segment.path).scan() if is_needed(found)]
        if kept:
            self.append(kept)
        with suppress(FileNotFoundError):
            if damaged:
                segment.path.replace(f"{segment.path}.damaged")
            else:
                segment.path.unlink()
        if segment in self.segments:
            self.segments.remove(segment)

    def clean(self, is_needed: Callable[[Found], bool], everywhere: bool = False) -> None:
        """Set damaged files aside, after copying the records that are needed; ``everywhere`` removes all others as well."""
        unneeded = {one.path for one in self.found if not is_needed(one)} if everywhere else set()
        for segment in list(self.segments):
            if segment.unread or segment.path in unneeded:
                self.carry(segment, is_needed, damaged=bool(segment.unread))
        self.found = []


def _write(file: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(file, view) :]
