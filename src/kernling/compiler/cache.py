"""Files of the compile cache: since they contain machine code, only complete files written by this user are read.

An entry begins with a checksum of the rest.  It and its folders must belong to the user who reads it and be writable by nobody
else; links are not followed.  Invalid entries are treated as not found, and written again.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import time
from functools import cache
from pathlib import Path

from ..atomic import replaced
from ..warned import warn

KEEP = 30 * 24 * 3600.0  # seconds after which code of other versions is deleted
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
_DIGEST = hashlib.sha256().digest_size


def cache_folder() -> Path:
    """Return the folder for compiled code and downloads: ``KERNLING_CACHE``, or the user's cache folder."""
    given = os.environ.get("KERNLING_CACHE")
    return Path(given) if given else _usual_folder()


@cache
def _usual_folder() -> Path:
    from platformdirs import user_cache_path

    return user_cache_path("kernling", appauthor=False)


def shared_folder() -> Path | None:
    """Return a trusted folder of shared compiled code: ``KERNLING_SHARED_CACHE``.

    Anyone who can write to it can run code as its readers.
    """
    given = os.environ.get("KERNLING_SHARED_CACHE")
    return Path(given) if given else None


def read_entry(folder: str, name: str) -> bytes | None:
    """Return the content of an entry; None if it is missing or invalid."""
    own = cache_folder() / "compiled" / folder
    if _is_ours(own):
        found = _read(own / name, only_ours=True)
        if found is not None:
            return found
    shared = shared_folder()
    return None if shared is None else _read(shared / "compiled" / folder / name, only_ours=False)


def write_entry(folder: str, name: str, content: bytes) -> None:
    """Write an entry; a full or read-only disk, or a folder that others can write to, is not an error."""
    own = cache_folder() / "compiled" / folder
    try:
        if not own.exists():
            own.mkdir(mode=0o700, parents=True, exist_ok=True)
            own.parent.chmod(0o700)
            own.chmod(0o700)
            _remove_old(own.parent)
        if _is_ours(own):
            with replaced(own / name, durable=False) as temporary, open(temporary, "xb", opener=_private) as file:
                file.write(hashlib.sha256(content).digest() + content)
    except (OSError, ValueError):
        return


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _read(path: Path, *, only_ours: bool) -> bytes | None:
    try:
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
    except OSError:
        return None
    with open(handle, "rb") as file:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode) or status.st_mode & _OTHERS_WRITE or (only_ours and not _owned(status)):
            return None
        try:
            text = file.read()
        except OSError:
            return None
    return text[_DIGEST:] if hashlib.sha256(text[_DIGEST:]).digest() == text[:_DIGEST] else None


def _is_ours(folder: Path) -> bool:
    """Return whether a folder and the one above it belong to this user and are writable by nobody else."""
    for one in (folder, folder.parent):
        try:
            status = one.lstat()
        except OSError:
            return False
        if not stat.S_ISDIR(status.st_mode) or status.st_mode & _OTHERS_WRITE or not _owned(status):
            warn(
                f"the compile cache {one} is not a folder that only you can write to, so it is not used: "
                "delete it, or set KERNLING_CACHE to another folder",
            )
            return False
    return True


def _owned(status: os.stat_result) -> bool:
    return not hasattr(os, "geteuid") or status.st_uid == os.geteuid()


def _remove_old(folder: Path) -> None:
    """Delete machine code of other versions that has not been used for a month."""
    for old in folder.iterdir():
        if time.time() - old.lstat().st_mtime > KEEP:
            shutil.rmtree(old, ignore_errors=True)
