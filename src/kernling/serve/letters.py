"""Dead letters: events of a source that could not be learned or predicted, in a table, with the reason.

Their places in the source are the key, so an event that is read again after a crash is there once.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

TABLE = """
CREATE TABLE IF NOT EXISTS letters (number INTEGER PRIMARY KEY, model INTEGER NOT NULL, source TEXT NOT NULL,
    place TEXT NOT NULL, time REAL NOT NULL, reason TEXT NOT NULL, event BLOB NOT NULL, UNIQUE (model, source, place))
"""
SHOW = """
SELECT CAST(source AS TEXT), CAST(place AS TEXT), CAST(time AS REAL), CAST(reason AS TEXT), CAST(event AS BLOB)
    FROM letters WHERE model = ? ORDER BY number DESC LIMIT ?
"""  # whatever damage has made of them
SHOWN = 5  # in the facts
LONGEST = 2**16  # bytes of an event that are kept
TEXT = 200  # characters of an event in the facts


class Letter(NamedTuple):
    """An event that was set aside."""

    place: str
    reason: str
    event: bytes


class Letters:
    """The table in a file; several threads may use it.

    Examples
    --------
    >>> from pathlib import Path
    >>> from kernling.serve.letters import Letter, Letters
    >>> letters = Letters(Path("letters.sqlite"), most=1000)
    >>> for _ in range(2):  # read twice
    ...     letters.add(1, "redis://localhost/flights", [Letter("7-0", "it is not JSON", b"{")])
    >>> letters.counts[1], letters.of(1)["last"][0]["reason"]
    (1, 'it is not JSON')
    """

    def __init__(self, path: Path, most: int):
        self.most = most
        self.counts: Counter[int] = Counter()  # by model
        self.damage: list[str] = []
        self._lock = threading.Lock()
        self._path = path
        self._database: sqlite3.Connection | None = None  # until the first letter
        if not path.exists():
            return
        try:
            self._database = self._open(path)
        except sqlite3.OperationalError:
            raise
        except sqlite3.DatabaseError as error:
            self.damage.append(f"{path.name} is damaged ({error}): the events that were set aside are in {path.name}.damaged")
            for end in ("", "-wal"):
                with suppress(FileNotFoundError):
                    Path(f"{path}{end}").replace(f"{path}.damaged{end}")

    def _open(self, path: Path) -> sqlite3.Connection:
        database = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        database.text_factory = lambda text: text.decode(errors="replace")  # SQLite does not notice damage to a text
        try:
            database.execute("PRAGMA journal_mode=WAL")
            found = database.execute("PRAGMA quick_check(1)").fetchone()[0]
            if found != "ok":
                raise sqlite3.DatabaseError(found.replace("\n", " "))
            database.execute(TABLE)
            self.counts = Counter(dict(database.execute("SELECT model, COUNT(*) FROM letters GROUP BY model").fetchall()))
        except sqlite3.Error:
            database.close()
            raise
        return database

    def add(self, model: int, source: str, letters: Iterable[Letter]) -> None:
        """Write letters; of too many, the oldest are removed."""
        query = "INSERT OR IGNORE INTO letters (model, source, place, time, reason, event) VALUES (?, ?, ?, ?, ?, ?)"
        now = time.time()
        with self._lock:
            database = self._database = self._database or self._open(self._path)
            with database:
                database.execute("BEGIN IMMEDIATE")
                before = database.total_changes
                database.executemany(
                    query, [(model, source, one.place, now, one.reason, one.event[:LONGEST]) for one in letters]
                )
                added = database.total_changes - before
                database.execute(
                    "DELETE FROM letters WHERE model = ? AND number <= (SELECT number FROM letters WHERE model = ? "
                    "ORDER BY number DESC LIMIT 1 OFFSET ?)",
                    (model, model, self.most),
                )
            self.counts[model] += added

    def of(self, model: int) -> dict[str, Any]:
        """Return how many events of a model were set aside, and the last of them."""
        found: list[Any] = []
        if self._database is not None:
            with self._lock:
                found = self._database.execute(SHOW, (model, SHOWN)).fetchall()
        names = ("source", "place", "time", "reason")
        last = [dict(zip(names, row, strict=False)) | {"event": row[4].decode(errors="replace")[:TEXT]} for row in found]
        return {"count": self.counts[model], "last": last}

    def forget(self, model: int) -> None:
        """Remove the letters of a model."""
        with self._lock:
            if self._database is not None:
                self._database.execute("DELETE FROM letters WHERE model = ?", (model,))
            self.counts.pop(model, None)

    def close(self) -> None:
        """Close the file."""
        if self._database is not None:
            self._database.close()
