"""The lock of a folder, which only one process can use."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .refusal import first_line


def locked(folder: Path) -> sqlite3.Connection:
    """Lock a folder until the connection is closed; the lock ends with the process in any case."""
    path = folder / "lock.sqlite"
    if path.is_dir():
        raise ValueError(f"{path} must be a file, by which the service locks its folder, but it is a folder: remove it")
    database = sqlite3.connect(path, isolation_level=None, timeout=0.0, check_same_thread=False)
    try:
        database.execute("BEGIN EXCLUSIVE")
        return database
    except sqlite3.OperationalError as error:
        database.close()
        if error.sqlite_errorcode != sqlite3.SQLITE_BUSY:
            raise
        raise ValueError(f"another service uses {folder}: stop it, or choose another folder with --data") from None
    except sqlite3.DatabaseError:  # there is nothing in the file, unless it is damaged
        database.close()
        os.truncate(path, 0)
        return locked(folder)


@contextmanager
def usable(folder: Path) -> Iterator[None]:
    """Say in one sentence that a folder cannot be read or written."""
    try:
        yield
    except (OSError, sqlite3.OperationalError) as error:
        raise ValueError(f"the folder {folder} cannot be used ({first_line(error)}): choose another") from error
