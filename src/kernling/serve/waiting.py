"""Predicted rows that wait for their labels.

They are stored in a separate database, whose commits do not wait for the disk (``synchronous=NORMAL``): predictions are fast,
and rows survive a crash of the process, but after a power failure the latest rows may be missing.
"""

from __future__ import annotations

import json
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from .settings import Settings

TABLES = """
CREATE TABLE IF NOT EXISTS waiting (number INTEGER PRIMARY KEY, model INTEGER NOT NULL, id TEXT NOT NULL, since REAL NOT NULL,
    row TEXT NOT NULL);
CREATE UNIQUE INDEX IF NOT EXISTS by_id ON waiting (model, id);
CREATE INDEX IF NOT EXISTS by_age ON waiting (model, number);
"""
PAGES = 32_768  # of the log, above which it is merged into the database: predictions wait for the end of that
PIECE = 200  # rows per commit: another thread never waits long for the lock
DAY = 86_400.0


def connect(path: Path, synchronous: str) -> sqlite3.Connection:
    """Open a database with a write-ahead log, for one thread at a time."""
    database = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    database.execute("PRAGMA journal_mode=WAL")
    database.execute(f"PRAGMA synchronous={synchronous}")
    return database


class Waiting:
    """Rows by model and id, bounded in number and age; several threads may use it.

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
        self.evicted: Counter[int] = Counter()  # rows removed without a label since the start, by model
        self._lock = threading.Lock()
        try:
            self._open(path)
        except sqlite3.OperationalError:
            raise
        except sqlite3.DatabaseError:  # damaged: start empty; labels of lost rows are reported as unknown
            for end in ("", "-wal", "-shm"):
                Path(f"{path}{end}").unlink(missing_ok=True)
            self._open(path)

    def _open(self, path: Path) -> None:
        self._database = connect(path, "NORMAL")
        self._database.executescript(TABLES)
        self._database.execute("PRAGMA wal_autocheckpoint=0")  # it would wait for the disk: see merge_log
        self._merging = connect(path, "NORMAL")
        self._log = Path(f"{path}-wal")
        self._page = self._database.execute("PRAGMA page_size").fetchone()[0]
        self.counts = Counter(dict(self._database.execute("SELECT model, COUNT(*) FROM waiting GROUP BY model")))

    @contextmanager
    def _commit(self) -> Iterator[sqlite3.Connection]:
        with self._database:
            self._database.execute("BEGIN IMMEDIATE")
            yield self._database

    def keep(self, model: int, ids: Sequence[str], rows: Sequence[dict[str, Any]]) -> None:
        """Store rows; an id that is already waiting keeps its first row, and if there are too many, the oldest are removed."""
        now = time.time()
        values = [(model, one, now, json.dumps(row)) for one, row in zip(ids, rows, strict=True)]
        for piece in _pieces(values):
            with self._lock:
                self._keep(model, piece)

    def _keep(self, model: int, values: Sequence[tuple[int, str, float, str]]) -> None:
        with self._commit() as database:
            before = database.total_changes
            database.executemany("INSERT OR IGNORE INTO waiting (model, id, since, row) VALUES (?, ?, ?, ?)", values)
            count = self.counts[model] + database.total_changes - before
            surplus = max(count - self.settings.waiting_rows, 0)
            if surplus:
                oldest = "SELECT number FROM waiting WHERE model = ? ORDER BY number LIMIT ?"
                database.execute(f"DELETE FROM waiting WHERE number IN ({oldest})", (model, surplus))
        self.counts[model] = count - surplus
        self.evicted[model] += surplus

    def find(self, model: int, ids: Sequence[str]) -> dict[str, dict[str, Any]]:
        """Return the waiting rows with these ids."""
        query = "SELECT row FROM waiting WHERE model = ? AND id = ?"
        found: list[tuple[str, Any]] = []
        for piece in _pieces(ids):
            with self._lock:
                found += [(one, self._database.execute(query, (model, one)).fetchone()) for one in piece]
        return {one: json.loads(row[0]) for one, row in found if row}

    def remove(self, model: int, ids: Sequence[str]) -> None:
        """Remove rows whose labels have arrived."""
        for piece in _pieces(ids):
            with self._lock:
                with self._commit() as database:
                    before = database.total_changes
                    database.executemany("DELETE FROM waiting WHERE model = ? AND id = ?", [(model, one) for one in piece])
                    gone = database.total_changes - before
                self.counts[model] -= gone

    def evict_old(self) -> None:
        """Remove rows that have waited for too long."""
        since = time.time() - self.settings.waiting_days * DAY
        with self._lock:
            oldest = self._database.execute("SELECT since FROM waiting ORDER BY number LIMIT 1").fetchone()
            if oldest is None or oldest[0] >= since:  # so are all others, which need not be read
                return
            with self._commit() as database:
                query = "SELECT model, COUNT(*) FROM waiting WHERE since < ? GROUP BY model"
                old = dict(database.execute(query, (since,)).fetchall())
                database.execute("DELETE FROM waiting WHERE since < ?", (since,))
            self.counts.subtract(old)
            self.evicted.update(old)

    def merge_log(self) -> None:
        """Merge a long log into the database, which waits for the disk: mostly without the lock, the last rows with it."""
        if self._log.stat().st_size > PAGES * self._page:
            self._merging.execute("PRAGMA wal_checkpoint(PASSIVE)")
            with self._lock:
                self._merging.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def close(self) -> None:
        """Close the database."""
        with self._lock:
            self._merging.close()
            self._database.close()


def _pieces(values: Sequence[Any]) -> Iterator[Sequence[Any]]:
    return (values[first : first + PIECE] for first in range(0, len(values), PIECE))
