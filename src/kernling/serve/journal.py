"""The journal: every block of events, on disk before it is acknowledged, and the ids of the events learned.

SQLite with a write-ahead log that is flushed at every commit (``synchronous=FULL``).  A record is a block, so that learning the
records one after another repeats exactly what was learned.  Records before the last snapshots are deleted; ids are kept longer.
"""

from __future__ import annotations

import json
import os
import sqlite3
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from .blocks import Block

TABLES = """
CREATE TABLE IF NOT EXISTS models (number INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE, spec TEXT NOT NULL,
    traits TEXT NOT NULL, cut INTEGER NOT NULL DEFAULT 0);
CREATE TABLE IF NOT EXISTS blocks (position INTEGER PRIMARY KEY AUTOINCREMENT, model INTEGER NOT NULL, rows INTEGER NOT NULL,
    checksum INTEGER NOT NULL, content BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS ids (position INTEGER PRIMARY KEY, model INTEGER NOT NULL, count INTEGER NOT NULL,
    ids TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS blocks_of_model ON blocks (model, position);
CREATE INDEX IF NOT EXISTS ids_of_model ON ids (model, position);
"""
CUT = 64  # records deleted per commit, so that no commit takes long


class Entry(NamedTuple):
    """The journal's record of a model."""

    number: int
    name: str
    spec: dict[str, Any]  # how it was created
    traits: dict[str, Any]  # determined by its first rows
    cut: int  # records up to this position have been deleted


class Record(NamedTuple):
    """A block of the journal; None if it is damaged."""

    position: int
    rows: int
    block: Block | None


def connect(path: Path, synchronous: str) -> sqlite3.Connection:
    """Open a database with a write-ahead log, for one thread at a time."""
    database = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    database.execute("PRAGMA journal_mode=WAL")
    database.execute(f"PRAGMA synchronous={synchronous}")
    return database


class Journal:
    """The journal of a folder, used by one thread at a time.

    Examples
    --------
    >>> import numpy as np
    >>> from pathlib import Path
    >>> from kernling.serve.blocks import Block
    >>> from kernling.serve.journal import Journal
    >>> journal = Journal(Path("journal.sqlite"))
    >>> with journal.commit():
    ...     number = journal.add_model("flights", {}, {})
    ...     position = journal.append(number, Block({"km": np.array([2.5])}, ["late"], (1,)), ["a"])
    >>> [record.block.targets for record in journal.blocks(number, after=0)], journal.ids(number, limit=10)
    ([['late']], ['a'])
    """

    def __init__(self, path: Path):
        self.path = path
        self._cuts: dict[int, int] = {}
        self.database = connect(path, "FULL")
        self.database.executescript(TABLES)

    @contextmanager
    def commit(self) -> Iterator[None]:
        """Make the changes of a ``with`` statement atomic: when it ends, all of them are on disk, or none."""
        self.database.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._cut_some()
            self.database.execute("COMMIT")
        except BaseException:
            with suppress(sqlite3.Error):  # a full disk has rolled back already
                self.database.execute("ROLLBACK")
            raise

    def close(self) -> None:
        """Merge the log into the database and close it."""
        self.database.close()

    def go_on_after(self, number: int, position: int) -> None:
        """Continue the numbers of models and positions of blocks after these, which a damaged journal may have lost."""
        last = self.database.execute("SELECT MAX(position) FROM ids").fetchone()[0] or 0
        for table, least in (("models", number), ("blocks", max(position, last))):
            held = self.database.execute("SELECT seq FROM sqlite_sequence WHERE name = ?", (table,)).fetchone()
            if least > (held[0] if held else 0):
                self.database.execute("DELETE FROM sqlite_sequence WHERE name = ?", (table,))
                self.database.execute("INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)", (table, least))

    # ------------------------------------------------------------------ models

    def add_model(self, name: str, spec: dict[str, Any], traits: dict[str, Any]) -> int:
        """Add a model; return its number."""
        made = self.database.execute(
            "INSERT INTO models (name, spec, traits) VALUES (?, ?, ?)", (name, json.dumps(spec), json.dumps(traits))
        )
        return int(made.lastrowid or 0)

    def set_traits(self, number: int, traits: dict[str, Any]) -> None:
        """Update the traits of a model."""
        self.database.execute("UPDATE models SET traits = ? WHERE number = ?", (json.dumps(traits), number))

    def models(self) -> list[Entry]:
        """Return all models."""
        found = self.database.execute("SELECT number, name, spec, traits, cut FROM models ORDER BY number")
        return [Entry(number, name, json.loads(spec), json.loads(traits), cut) for number, name, spec, traits, cut in found]

    # ------------------------------------------------------------------ events

    def append(self, number: int, block: Block, ids: Sequence[str]) -> int:
        """Add a block that a model is going to learn, with the ids of its events; return its position."""
        content = block.to_bytes()
        values = (number, len(block.targets), zlib.crc32(content), content)
        made = self.database.execute("INSERT INTO blocks (model, rows, checksum, content) VALUES (?, ?, ?, ?)", values)
        position = int(made.lastrowid or 0)
        if ids:
            held = (position, number, len(ids), json.dumps(ids))
            self.database.execute("INSERT INTO ids (position, model, count, ids) VALUES (?, ?, ?, ?)", held)
        return position

    def blocks(self, number: int, after: int) -> Iterator[Record]:
        """Yield the blocks of a model after a position, in the order in which they were learned."""
        found = self.database.execute(
            "SELECT position, rows, checksum, content FROM blocks WHERE model = ? AND position > ? ORDER BY position",
            (number, after),
        )
        for position, rows, checksum, content in found:
            yield Record(position, rows, Block.from_bytes(content) if zlib.crc32(content) == checksum else None)

    def ids(self, number: int, limit: int) -> list[str]:
        """Return the ids of the last events learned, oldest first, at most ``limit``; older ones are deleted."""
        query = "SELECT position, ids FROM ids WHERE model = ? ORDER BY position DESC"
        found: list[list[str]] = []
        count = 0
        for position, ids in self.database.execute(query, (number,)):
            found.append(json.loads(ids))
            count += len(found[-1])
            if count >= limit:
                self.database.execute("DELETE FROM ids WHERE model = ? AND position < ?", (number, position))
                break
        return [one for ids in reversed(found) for one in ids][-limit:]

    def forget_ids(self, number: int, count: int) -> int:
        """Delete the oldest ids of a model, block by block and at most ``count``; return how many."""
        gone, last = 0, None
        query = "SELECT position, count FROM ids WHERE model = ? ORDER BY position"
        for position, size in self.database.execute(query, (number,)):
            if gone + size > count:
                break
            gone, last = gone + size, position
        if last is not None:
            self.database.execute("DELETE FROM ids WHERE model = ? AND position <= ?", (number, last))
        return gone

    # ------------------------------------------------------------------ deletion

    def cut(self, number: int, position: int) -> None:
        """Schedule the deletion of a model's records up to this position, a few with each commit."""
        self._cuts[number] = position

    def _cut_some(self) -> None:
        for number, position in list(self._cuts.items()):
            chosen = "SELECT position FROM blocks WHERE model = ? AND position <= ? ORDER BY position LIMIT ?"
            gone = self.database.execute(f"DELETE FROM blocks WHERE position IN ({chosen})", (number, position, CUT)).rowcount
            self.database.execute("UPDATE models SET cut = ? WHERE number = ? AND cut < ?", (position, number, position))
            if gone < CUT:
                del self._cuts[number]


def opened(path: Path) -> tuple[Journal, str | None]:
    """Open a journal; a damaged one is renamed, its readable rows are copied to a new one, and a sentence says so."""
    try:
        journal = Journal(path)
        damage = journal.database.execute("PRAGMA quick_check(1)").fetchone()[0]
        if damage == "ok":
            return journal, None
        journal.close()
    except sqlite3.DatabaseError as error:
        if isinstance(error, sqlite3.OperationalError):  # locked or read-only: nothing is damaged
            raise
        damage = str(error)
    aside = path.with_name(f"{path.name}.damaged")
    for end in ("", "-wal", "-shm"):
        with suppress(FileNotFoundError):
            os.replace(f"{path}{end}", f"{aside}{end}")
    journal = Journal(path)
    with journal.commit():
        _salvage(aside, journal.database)
    return (
        journal,
        f"the journal was damaged ({damage.splitlines()[-1]}): what could be read was kept, the rest is in {aside.name}",
    )


def _salvage(aside: Path, into: sqlite3.Connection) -> None:
    """Copy rows from a damaged database as far as it can be read."""
    with suppress(sqlite3.DatabaseError):
        source = sqlite3.connect(aside)
        for table, width in (("models", 5), ("blocks", 5), ("ids", 4)):
            holes = ", ".join("?" * width)
            with suppress(sqlite3.DatabaseError):
                for row in source.execute(f"SELECT * FROM {table}"):
                    into.execute(f"INSERT OR IGNORE INTO {table} VALUES ({holes})", row)
        source.close()
