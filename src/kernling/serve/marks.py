"""Marks: how many events of each model were acknowledged, apart from the journal, whose end could vanish unnoticed otherwise.

A mark is written after every commit, to two files in turn, without waiting for the disk; a second later it is there.  So a mark
never promises more than the journal has: if the journal has fewer events, they were lost.
"""

from __future__ import annotations

import json
import os
import zlib
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from ..atomic import read_regular
from .blocks import farther

NAMES = ("mark-1", "mark-2")


class Mark(NamedTuple):
    """What the marks say about a model."""

    name: str
    spec: dict[str, Any]
    total: int  # events acknowledged
    offsets: dict[str, list[Any]] = {}  # of batches from sources in which there was nothing to learn: see blocks.py


class Found(NamedTuple):
    """The marks in a folder, by the numbers of models, and the names of files that are missing or damaged."""

    models: dict[int, Mark]
    missing: list[str]


def read(folder: Path) -> Found:
    """Read the marks in a folder."""
    found: dict[int, Mark] = {}
    missing: list[str] = []
    for path in (folder / name for name in NAMES):
        try:
            held = _parse(read_regular(path))
        except (OSError, ValueError, TypeError, KeyError):
            missing.append(path.name)
            continue
        for number, mark in held.items():
            held_too = found.get(number, mark)
            newest = max(held_too, mark, key=lambda one: one.total)
            found[number] = newest._replace(offsets=farther(held_too.offsets, mark.offsets))
    return Found(found, missing)


def _parse(content: bytes) -> dict[int, Mark]:
    checksum, _, text = content.partition(b"\n")[0].partition(b" ")
    if int(checksum, 16) != zlib.crc32(text):
        raise ValueError("the checksum does not match")
    return {int(number): Mark(*values) for number, values in json.loads(text).items()}


class Marks:
    """Writes the marks of a folder.

    Examples
    --------
    >>> from pathlib import Path
    >>> from kernling.serve.marks import Mark, Marks, read
    >>> Path("marked").mkdir()
    >>> marks = Marks(Path("marked"))
    >>> marks.write({7: Mark("flights", {}, 100)})
    >>> marks.close()
    >>> read(Path("marked")).models[7].total
    100
    """

    def __init__(self, folder: Path):
        self.folder = folder
        self._files: list[BinaryIO] = []
        self._texts: dict[int, tuple[Mark, str]] = {}
        self._turn = 0
        self._is_flushed = True

    def write(self, models: dict[int, Mark]) -> None:
        """Write the marks of all models."""
        if not self._files:
            opened = [os.open(self.folder / name, os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o600) for name in NAMES]
            self._files = [os.fdopen(one, "r+b", buffering=0) for one in opened]  # not emptied: the old marks hold until then
            self.write(models)  # to both at first
        text = f"{{{', '.join(self._text(number, mark) for number, mark in models.items())}}}".encode()
        self._turn = 1 - self._turn
        file = self._files[self._turn]
        file.seek(0)
        file.write(b"%08x %b\n" % (zlib.crc32(text), text))
        self._is_flushed = False

    def _text(self, number: int, mark: Mark) -> str:
        """Return a mark as JSON, of which only the marks that have changed are written anew."""
        held = self._texts.get(number)
        if held is None or held[0] is not mark:
            held = self._texts[number] = mark, f'"{number}": {json.dumps(mark)}'
        return held[1]

    def flush(self) -> None:
        """Wait until the last mark is on disk."""
        if not self._is_flushed:
            self._is_flushed = True
            os.fsync(self._files[self._turn].fileno())

    def close(self) -> None:
        """Flush and close the files."""
        self.flush()
        for file in self._files:
            file.close()
