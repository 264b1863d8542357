"""Reading text in blocks of whole lines."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import IO, Any, cast

BLOCK = 1 << 20
LONGEST = 1 << 28  # maximum bytes of one line
FEW = 64  # lines, below which the next block is twice as large, since the cost of a block grows with the number of columns
LARGEST = 1 << 26  # maximum bytes of a block of few lines
MARK = b"\xef\xbb\xbf"  # byte order mark at the start of some UTF-8 files


def line_blocks(file: IO[bytes], size: int = BLOCK, delimiter: str | None = None) -> Iterator[bytes]:
    """Yield blocks of whole lines of about this size, larger if lines are long; from a pipe, whatever has arrived so far.

    With the delimiter of a CSV file, line breaks inside of quoted values do not end a line.
    """
    records = None if delimiter is None else _records(delimiter)
    read: Any = file.read if file.seekable() else cast(Any, file).read1
    rest = b""
    first = True
    while data := read(size):
        data = data.removeprefix(MARK) if first else data
        first = False
        waits = b"\n" in rest and b'"' not in data  # for the end of a quoted value, else the rest would contain no line break
        data = rest + data
        cut = 0 if waits else _end_of_lines(data, records)
        rest = data[cut:]
        if len(rest) > LONGEST:
            raise ValueError(f"a line is longer than {LONGEST} bytes: this is not a text file with lines")
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
    """Return a pattern for whole lines of CSV; inside of quoted values, two quotes stand for one."""
    begin = rb"(?<![^\n" + re.escape(delimiter).encode() + rb"])"
    return re.compile(rb'(?:(?:[^"\n]++|' + begin + rb'"[^"]*+(?:""[^"]*+)*+"|(?!' + begin + rb')")*+\n)*+')
