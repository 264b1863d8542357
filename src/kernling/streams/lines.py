"""Text in blocks of whole lines."""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO, Any, cast

BLOCK = 1 << 20
LONGEST = 1 << 28  # bytes of one line
MARK = b"\xef\xbb\xbf"  # with which some programs begin UTF-8 text


def line_blocks(file: IO[bytes], size: int = BLOCK) -> Iterator[bytes]:
    """Blocks that end where a line does: of about this size, and from a pipe whatever has come so far."""
    read: Any = file.read if file.seekable() else cast(Any, file).read1
    rest = b""
    begun = False
    while data := read(size):
        data = rest + (data if begun else data.removeprefix(MARK))
        begun = True
        cut = data.rfind(b"\n") + 1
        rest = data[cut:]
        if len(rest) > LONGEST:
            raise ValueError(f"a line is longer than {LONGEST} bytes: this is not text in lines")
        if cut:
            yield data[:cut]
    if rest:
        yield rest
