"""Text in blocks of whole lines."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import IO, Any, cast

BLOCK = 1 << 20
LONGEST = 1 << 28  # bytes of one line
FEW = 64  # lines below which the next block is twice as large: every block costs something for each column
LARGEST = 1 << 26  # bytes of a block of few lines
MARK = b"\xef\xbb\xbf"  # with which some programs begin UTF-8 text


def line_blocks(file: IO[bytes], size: int = BLOCK, delimiter: str | None = None) -> Iterator[bytes]:
    """Blocks that end where a line does: of about this size, more if lines are long; from a pipe whatever has come so far.

    With the delimiter of CSV a line does not end inside of a quoted value.
    """
    records = None if delimiter is None else _records(delimiter)
    read: Any = file.read if file.seekable() else cast(Any, file).read1
    rest = b""
    first = True
    while data := read(size):
        data = data.removeprefix(MARK) if first else data
        first = False
        waits = b"\n" in rest and b'"' not in data  # for the end of a quoted value, or the rest would hold no line break
        data = rest + data
        cut = 0 if waits else _end_of_lines(data, records)
        rest = data[cut:]
        if len(rest) > LONGEST:
            raise ValueError(f"a line is longer than {LONGEST} bytes: this is not text in lines")
        if cut:
            yield data[:cut]
            if size < LARGEST and cut > size // 2 and data.count(b"\n", 0, cut) < FEW:
                size *= 2
    if rest:
        yield rest


def _end_of_lines(data: bytes, records: re.Pattern[bytes] | None) -> int:
    if records is None or b'"' not in data:
        return data.rfind(b"\n") + 1
    return cast("re.Match[bytes]", records.match(data)).end()


def _records(delimiter: str) -> re.Pattern[bytes]:
    """Whole lines of CSV.  A quoted value begins where a value does, and two quotes in it stand for one."""
    begin = rb"(?<![^\n" + re.escape(delimiter).encode() + rb"])"
    return re.compile(rb'(?:(?:[^"\n]++|' + begin + rb'"[^"]*+(?:""[^"]*+)*+"|(?!' + begin + rb')")*+\n)*+')
