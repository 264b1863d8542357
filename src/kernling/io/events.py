"""Rows from a broker, as lines of JSON that go on arriving."""

from __future__ import annotations

import io
import json
import time
import warnings
from collections import deque
from typing import Any, NamedTuple

from ..brokers import Address, BrokerError, open_source

TARGET, ID = "target", "id"  # names of an event that are not columns
MOST = 4096  # events that are read at once
KEPT = 64  # batches whose places are known: more than are read before they are learned
SECONDS = 0.2  # for which a source may wait: Ctrl-C is noticed after that
LONGEST = 5.0  # seconds between two attempts to reach a broker


class _Piece(NamedTuple):
    """The rows of a batch."""

    first: int  # rows before it
    before: dict[str, Any]  # offsets before it
    places: list[str]  # of all of its events
    ends: list[int]  # for each row, the number of events up to it


class Events(io.RawIOBase):
    """A file of JSON lines that reads a stream of a broker, and knows the offsets after each row.

    Events that are not rows are left out, with a warning: texts that are not JSON objects, and late labels, since rows do not
    wait for their labels here.
    """

    def __init__(self, url: str, offsets: dict[str, Any] | None = None):
        self.address = Address.parse(url)
        if "group" in self.address.options:
            raise ValueError("the members of a group need a journal: read it with kernling serve --from, or leave out group=")
        self._source = open_source(self.address)
        self._offsets, self._is_open = dict(offsets or {}), False
        self._rows, self.left_out = 0, 0
        self._pieces: deque[_Piece] = deque(maxlen=KEPT)
        self._data = b""

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Wait for rows, and copy as many bytes of them as there is room for."""
        while not self.more_within(SECONDS):
            pass
        size = min(len(buffer), len(self._data))
        buffer[:size], self._data = self._data[:size], self._data[size:]
        return size

    def more_within(self, seconds: float) -> bool:
        """Return whether there are rows within this many seconds; a broker that is away is waited for."""
        pause = 0.1
        while not self._data:
            try:
                if not self._is_open:
                    self._offsets = self._source.begin(self._offsets)
                    self._is_open = True
                self._take(seconds)
                break
            except BrokerError as error:
                if pause == 0.1:
                    warnings.warn(f"waiting: {error}", stacklevel=2)
                self._is_open = False
                time.sleep(pause)
                pause = min(2.0 * pause, LONGEST)
        return bool(self._data)

    def _take(self, seconds: float) -> None:
        batch = self._source.read(MOST, max(seconds, 0.001))
        for note in batch.notes:
            warnings.warn(f"{self.address}: {note}", stacklevel=2)
        lines, ends = [], []
        for count, event in enumerate(batch.events, 1):
            row = _row(event)
            if row is not None:
                lines.append(json.dumps(row).encode() + b"\n")
                ends.append(count)
        if len(lines) < len(batch.events):
            if not self.left_out:
                warnings.warn(f"{self.address}: events that are not rows with columns are left out", stacklevel=2)
            self.left_out += len(batch.events) - len(lines)
        self._pieces.append(_Piece(self._rows, self._offsets, batch.places, ends))
        self._rows += len(lines)
        self._offsets, self._data = batch.offsets, b"".join(lines)

    def offsets_after(self, rows: int) -> dict[str, Any]:
        """Return where to go on after so many rows."""
        for piece in self._pieces:
            if piece.first < rows <= piece.first + len(piece.ends):
                return self._source.after(piece.before, piece.places[: piece.ends[rows - piece.first - 1]])
        return self._offsets

    def close(self) -> None:
        """Leave the broker."""
        if not self.closed:
            self._source.close()
        super().close()


def _row(event: bytes) -> dict[str, Any] | None:
    """Return the columns and the target of an event; None if it has no columns."""
    try:
        row = json.loads(event)
    except (ValueError, RecursionError):
        return None
    if not isinstance(row, dict) or row.keys() <= {ID, TARGET}:
        return None
    return {name: value for name, value in row.items() if name != ID}
