"""Atomic replacement of files."""

from __future__ import annotations

import errno
import os
import secrets
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

STALE = 3600.0  # seconds after which an unchanged temporary file is considered left over from a crash


@contextmanager
def replaced(path: str | os.PathLike, *, durable: bool = True) -> Iterator[Path]:
    """Yield the path of a temporary file that replaces ``path`` when the block ends without an error.

    The temporary file is in the same folder.  Symbolic links are followed, and the mode and, if permitted, the owner of an
    existing file are kept.  Temporary files left over from earlier crashes are removed.  With ``durable``, the file is flushed
    to disk, so that it survives a power failure.

    Examples
    --------
    >>> from pathlib import Path
    >>> from kernling.atomic import replaced
    >>> with replaced("numbers.txt") as temporary:
    ...     _ = temporary.write_text("1 2 3")
    >>> print(Path("numbers.txt").read_text())
    1 2 3
    """
    target = Path(os.path.realpath(path))
    before = _status(target)
    _remove_stale(target)
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(8)}.tmp")
    try:
        yield temporary
        if before is not None:
            temporary.chmod(stat.S_IMODE(before.st_mode))
            with suppress(PermissionError, AttributeError):  # only root can change owners; Windows has no such owners
                os.chown(temporary, before.st_uid, before.st_gid)
        if durable:
            flush(temporary)
        os.replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)
    if durable:
        with suppress(OSError):  # some systems cannot flush folders
            flush(target.parent)


def _status(target: Path) -> os.stat_result | None:
    """Return the status of an existing file; raise for folders, devices and pipes."""
    try:
        found = target.stat()
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(found.st_mode):
        raise IsADirectoryError(f"{target} is a folder; give the path of a file")
    if not stat.S_ISREG(found.st_mode):
        raise ValueError(f"{target} is a device or a pipe; give the path of a regular file")
    return found


def _remove_stale(target: Path) -> None:
    with os.scandir(target.parent) as files:
        for left in files:
            if left.name.startswith(f".{target.name}.") and left.name.endswith(".tmp"):
                with suppress(OSError):
                    if time.time() - left.stat().st_mtime > STALE:
                        os.unlink(left)


def flush(path: Path) -> None:
    """Wait until a file, or the entries of a folder, are on disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def read_regular(path: Path) -> bytes:
    """Read a regular file; raise OSError for everything else, such as a link to a device, which may have no end.

    Examples
    --------
    >>> from pathlib import Path
    >>> from kernling.atomic import read_regular
    >>> _ = Path("numbers.txt").write_text("1 2 3")
    >>> read_regular(Path("numbers.txt"))
    b'1 2 3'
    """
    if not stat.S_ISREG(path.stat().st_mode):
        raise OSError(errno.EINVAL, "it is not a regular file", str(path))
    return path.read_bytes()
