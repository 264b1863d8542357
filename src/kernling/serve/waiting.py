"""Predicted rows that wait for their labels.

They are stored in a separate database, whose commits do not wait for the disk (``synchronous=NORMAL``): predictions are fast,
and rows survive a crash of the process, but after a power failure the latest rows may be missing.  Damage is noticed by SQLite
when the database is opened, by comparing its log with what SQLite uses of it, and by a checksum of each row when its label
arrives.
"""

from __future__ import annotations

import json
import sqlite3
import struct
import threading
import time
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from ..atomic import read_regular
from .settings import Settings

TABLES = """
CREATE TABLE IF NOT EXISTS waiting (number INTEGER PRIMARY KEY, model INTEGER NOT NULL, id TEXT NOT NULL, since REAL NOT NULL,
    bytes INTEGER NOT NULL, checksum INTEGER NOT NULL, row BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS clock (seconds REAL NOT NULL);
CREATE UNIQUE INDEX IF NOT EXISTS by_id ON waiting (model, id);
CREATE INDEX IF NOT EXISTS by_age ON waiting (model, number);
"""
PAGES = 32_768  # of the log, above which it is merged into the database: predictions wait for the end of that
PIECE = 200  # rows per commit: another thread never waits long for the lock
WAL_HEAD = struct.Struct(">4I8s2I")  # magic number, version, size of a page, generation, salt, checksum
WAL_FRAME = struct.Struct(">2I8s8s")  # page, size of the database after a commit or 0, salt, checksum
DAY = 86_400.0
TICK = 60.0  # seconds between two records of the clock
OVERHEAD = 64  # bytes of a row besides its text and its id


def _begin(database: sqlite3.Connection) -> None:
    """Use a write-ahead log, without waiting for the disk."""
    database.execute("PRAGMA journal_mode=WAL")
    database.execute("PRAGMA synchronous=NORMAL")


def early(number: int) -> int:
    """Return the number under which labels wait that have arrived before the rows of this model."""
    return -number


def _set_aside(path: Path) -> None:
    for end in ("", "-wal"):
        with suppress(FileNotFoundError):
            Path(f"{path}{end}").replace(f"{path}.damaged{end}")
    Path(f"{path}-shm").unlink(missing_ok=True)


def lacks_commits(log: bytes, used: int) -> bool:
    """Return whether a write-ahead log has commits after the frames that SQLite uses: it ignores the log from damage on.

    Examples
    --------
    >>> from kernling.serve.waiting import lacks_commits
    >>> lacks_commits(b"", 0), lacks_commits(b"not a log", 0)
    (False, True)
    """
    if not log:
        return False
    if len(log) < WAL_HEAD.size:
        return True
    magic, _, page, _, salt, *checksum = WAL_HEAD.unpack_from(log)
    if checksum != _wal_checksum(log[: WAL_HEAD.size - 8], "<" if magic % 2 == 0 else ">"):
        return len(log) > WAL_HEAD.size
    heads = (WAL_FRAME.unpack_from(log, place) for place in range(WAL_HEAD.size, len(log) - page, WAL_FRAME.size + page))
    return any(frame >= used and size and own == salt for frame, (_, size, own, _) in enumerate(heads))


def _wal_checksum(data: bytes, order: str) -> list[int]:
    first = second = 0
    for one, other in struct.iter_unpack(f"{order}2I", data):
        first = (first + one + second) % 2**32
        second = (second + other + first) % 2**32
    return [first, second]


class Waiting:
    """Rows by model and id, bounded in number, bytes and age; several threads may use it.

    Age is counted in time during which the service runs, so that a clock that is set to another time makes no difference.

    Examples
    --------
    >>> from pathlib import Path
    >>> from kernling.serve.settings import Settings
    >>> from kernling.serve.waiting import Waiting
    >>> waiting = Waiting(Path("waiting.sqlite"), Settings(waiting_rows=1))
    >>> waiting.keep(1, ["a", "b"], [{"km": 2.5}, {"km": 3.5}])
    >>> waiting.find(1, ["a", "b"]), waiting.evicted[1]
    ({'b': {'km': 3.5}}, 1)
    """

    def __init__(self, path: Path, settings: Settings):
        self.settings = settings
        self.counts: Counter[int] = Counter()  # rows that wait, by model
        self.bytes: Counter[int] = Counter()  # of these rows
        self.evicted: Counter[int] = Counter()  # rows removed without a label since the start, by model
        self._lock = threading.Lock()
        self._flaw = None if path.exists() and path.stat().st_size else "is missing"
        self._name, self._log = path.name, Path(f"{path}-wal")
        try:
            self._open(path)
        except sqlite3.OperationalError:
            raise
        except sqlite3.DatabaseError as error:  # start empty; labels of lost rows are reported as unknown
            self._flaw = f"is damaged ({error})"
            self._database.close()
            _set_aside(path)
            self._open(path)

    def damage(self, is_new: bool) -> list[str]:
        """Return what was wrong with the database when it was opened; only a new service has none yet."""
        if self._flaw is None or (is_new and self._flaw == "is missing"):
            return []
        return [f"{self._name} {self._flaw}: rows that waited for labels are lost, predict them again"]

    def _open(self, path: Path) -> None:
        self._database = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        _begin(self._database)
        found = self._database.execute("PRAGMA quick_check(1)").fetchone()[0]
        if found != "ok":
            raise sqlite3.DatabaseError(found.replace("\n", " "))
        _, used, _ = self._database.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
        if self._log.exists() and lacks_commits(read_regular(self._log), used):
            self._flaw = "has a damaged log"
        self._database.executescript(TABLES)
        self._database.execute("PRAGMA wal_autocheckpoint=0")  # it would wait for the disk: see merge_log
        self._merging = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        _begin(self._merging)
        self._page = self._database.execute("PRAGMA page_size").fetchone()[0]
        found = self._database.execute("SELECT model, COUNT(*), SUM(bytes) FROM waiting GROUP BY model").fetchall()
        self.counts = Counter({model: count for model, count, _ in found})
        self.bytes = Counter({model: size for model, _, size in found})
        self._told = self._database.execute("SELECT MAX(seconds) FROM clock").fetchone()[0] or 0.0
        self._begun = time.monotonic() - self._told

    @property
    def _now(self) -> float:
        """Seconds that the service has run, over all starts."""
        return time.monotonic() - self._begun

    @contextmanager
    def _commit(self) -> Iterator[sqlite3.Connection]:
        with self._database:
            self._database.execute("BEGIN IMMEDIATE")
            yield self._database

    def keep(self, model: int, ids: Sequence[str], rows: Sequence[dict[str, Any]]) -> None:
        """Store rows; an id that is already waiting keeps its first row, and if there are too many, the oldest are removed."""
        now = self._now
        texts = [json.dumps(row).encode() for row in rows]
        values = [
            (model, one, now, len(one) + len(text) + OVERHEAD, zlib.crc32(text), text)
            for one, text in zip(ids, texts, strict=True)
        ]
        for piece in _pieces(values):
            with self._lock:
                self._keep(model, piece)

    def _keep(self, model: int, values: Sequence[tuple[int, str, float, int, int, bytes]]) -> None:
        with self._commit() as database:
            before = database.total_changes
            query = "INSERT OR IGNORE INTO waiting (model, id, since, bytes, checksum, row) VALUES (?, ?, ?, ?, ?, ?)"
            database.executemany(query, values)
            added = database.total_changes - before
            count = self.counts[model] + added
            size = self.bytes[model] + sum(value[3] for value in values) if added == len(values) else self._size(model)
            kept = self._surplus(model, count, size)
            if kept is not None:
                last, gone, freed = kept
                database.execute("DELETE FROM waiting WHERE model = ? AND number <= ?", (model, last))
                count, size = count - gone, size - freed
                self.evicted[model] += gone
        self.counts[model], self.bytes[model] = count, size

    def _size(self, model: int) -> int:
        return self._database.execute("SELECT SUM(bytes) FROM waiting WHERE model = ?", (model,)).fetchone()[0] or 0

    def _surplus(self, model: int, count: int, size: int) -> tuple[int, int, int] | None:
        """Return the last of the oldest rows that have to be removed, how many there are, and their bytes; None if none."""
        rows, bytes = count - self.settings.waiting_rows, size - self.settings.waiting_bytes
        gone = freed = 0
        if rows > 0 or bytes > 0:
            query = "SELECT number, bytes FROM waiting WHERE model = ? ORDER BY number"
            for number, own in self._database.execute(query, (model,)):
                gone, freed = gone + 1, freed + own
                if gone >= rows and freed >= bytes:
                    return number, gone, freed
        return None

    def find(self, model: int, ids: Sequence[str]) -> dict[str, dict[str, Any]]:
        """Return the waiting rows with these ids; a damaged one is missing."""
        query = "SELECT checksum, CAST(row AS BLOB) FROM waiting WHERE model = ? AND id = ?"
        found: list[tuple[str, Any]] = []
        for piece in _pieces(ids):
            with self._lock:
                found += [(one, self._database.execute(query, (model, one)).fetchone()) for one in piece]
        return {one: json.loads(row[1]) for one, row in found if row and zlib.crc32(row[1] or b"") == row[0]}

    def remove(self, model: int, ids: Sequence[str]) -> None:
        """Remove rows whose labels have arrived."""
        for piece in _pieces(ids):
            with self._lock:
                with self._commit() as database:
                    query = "DELETE FROM waiting WHERE model = ? AND id = ? RETURNING bytes"
                    gone = [size for one in piece for (size,) in database.execute(query, (model, one)).fetchall()]
                self.counts[model] -= len(gone)
                self.bytes[model] -= sum(gone)

    def forget(self, model: int) -> None:
        """Remove all rows and early labels of a model."""
        for number in (model, early(model)):
            with self._lock:
                with self._commit() as database:
                    database.execute("DELETE FROM waiting WHERE model = ?", (number,))
                for counts in (self.counts, self.bytes, self.evicted):
                    counts.pop(number, None)

    def evict_old(self) -> None:
        """Remove rows that have waited for too long."""
        since = self._now - self.settings.waiting_days * DAY
        with self._lock:
            if self._now - self._told >= TICK:
                self._tell_time()
            oldest = self._database.execute("SELECT since FROM waiting ORDER BY number LIMIT 1").fetchone()
            if oldest is None or oldest[0] >= since:  # so are all others, which need not be read
                return
            with self._commit() as database:
                query = "SELECT model, COUNT(*), SUM(bytes) FROM waiting WHERE since < ? GROUP BY model"
                old = database.execute(query, (since,)).fetchall()
                database.execute("DELETE FROM waiting WHERE since < ?", (since,))
            for model, count, size in old:
                self.counts[model] -= count
                self.bytes[model] -= size
                self.evicted[model] += count

    def _tell_time(self) -> None:
        with self._commit() as database:
            database.execute("DELETE FROM clock")
            database.execute("INSERT INTO clock VALUES (?)", (self._now,))
        self._told = self._now

    def merge_log(self) -> None:
        """Merge a long log into the database, which waits for the disk: mostly without the lock, the last rows with it."""
        if self._log.stat().st_size > PAGES * self._page:
            self._merging.execute("PRAGMA wal_checkpoint(PASSIVE)")
            with self._lock:
                self._merging.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def close(self) -> None:
        """Close the database."""
        with self._lock:
            with suppress(sqlite3.Error):  # then rows wait a little longer
                self._tell_time()
            self._merging.close()
            self._database.close()


def _pieces(values: Sequence[Any]) -> Iterator[Sequence[Any]]:
    return (values[first : first + PIECE] for first in range(0, len(values), PIECE))
