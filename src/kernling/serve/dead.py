"""Blocks that brought the process down: they are set aside, so that the service starts again.

Before a block is learned or a snapshot is read, a file says so.  If the process ends in between, the next start knows what it
was doing.  An end by SIGKILL, or the machine's, proves nothing against a block, so it is tried again, up to three times; but
Python's fault handler writes a report if the very thread that learned a block has crashed: then it is set aside at once.
"""

from __future__ import annotations

import faulthandler
import hashlib
import json
import threading
import time
from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

import numpy as np

from ..atomic import read_regular, replaced
from ..text import check_texts
from .blocks import Block
from .refusal import Refused

WIDTH = 120  # bytes of a line
DEATHS = 3  # without a report, after which a block is set aside
KEYS = {"model": int, "first": int, "events": int, "requests": int, "reason": str, "time": float, "digest": str}
STRIKES = 3  # blocks set aside, after which a model learns no more


class Attempts:
    """What the process is about to do, in a file, and what it was doing when it ended the last time."""

    def __init__(self, folder: Path, report: bool):
        self._attempt, self._fault = folder / "attempt", folder / "fault"
        self.before = {(one["model"], one["what"]): one for one in _read_plain(self._attempt)}
        self._lock = threading.Lock()
        self._places: dict[int, int] = {}  # of the threads, each of which has a line of the file
        self.crash = _read_text(self._fault)
        self._file: IO[bytes] = self._attempt.open("wb", buffering=0)
        self._report: IO[bytes] | None = None
        if report:
            self._report = self._fault.open("wb", buffering=0)
            faulthandler.enable(self._report)
        else:
            self._fault.unlink(missing_ok=True)

    def begin(self, number: int, what: str) -> str | None:
        """Note what is about to be done with a model; return a reason not to do it if it has brought the process down."""
        deaths = 0
        before = self.before.get((number, what))
        if before is not None:
            deaths = before["deaths"] + 1
            reason = self._reason(before["thread"], deaths)
            if reason is not None:
                del self.before[number, what]
                return reason
        self._write({"model": number, "what": what, "thread": threading.get_ident(), "deaths": deaths})
        return None

    def _write(self, held: dict[str, Any]) -> None:
        with self._lock:
            place = self._places.setdefault(threading.get_ident(), len(self._places))
            self._file.seek(place * (WIDTH + 1))
            self._file.write(json.dumps(held).encode().ljust(WIDTH) + b"\n")

    def _reason(self, thread: int, deaths: int) -> str | None:
        if f"Current thread 0x{thread:016x}" in self.crash:
            return f"brought the process down ({self.crash.partition(chr(10))[0]})"
        return f"was at work {deaths} times when the process ended" if deaths >= DEATHS else None

    def end(self) -> None:
        """Note that it was done."""
        self._write({})

    def close(self) -> None:
        """Note that the process ended as it should."""
        if self._report is not None:
            faulthandler.disable()
            self._report.close()
        self._file.close()
        for path in (self._attempt, self._fault):
            path.unlink(missing_ok=True)


def _read_text(path: Path) -> str:
    try:
        return read_regular(path).decode(errors="replace")
    except OSError:
        return ""


def _read_plain(path: Path) -> list[dict[str, Any]]:
    """Return the attempts in a file, one for each thread; a damaged one is none."""
    found = []
    for line in _read_text(path).splitlines():
        with suppress(ValueError, AttributeError, RecursionError):
            held = json.loads(line)
            types = {"model": int, "what": str, "thread": int, "deaths": int}
            if {name: type(held.get(name)) for name in types} == types:
                found.append(held)
    return found


class DeadLetters:
    """The blocks that were set aside, a file with rows and reason for each; deleting a file lets its rows be learned."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.damage: list[str] = []
        self._held: dict[int, list[dict[str, Any]]] = defaultdict(list)
        for path in sorted(folder.glob("*.json")):
            try:
                held = json.loads(read_regular(path))
                if {name: type(held[name]) for name in KEYS} != KEYS:
                    raise ValueError("its values are not of the types that they should be")
                check_texts("its reason", [held["reason"]])
                self._held[held["model"]].append(held | {"file": f"{folder.name}/{path.name}"})
            except (OSError, ValueError, KeyError, TypeError, RecursionError):
                self.damage.append(
                    f"{folder.name}/{path.name} is damaged: rows that brought the process down may be learned again"
                )

    def add(self, number: int, first: int, block: Block, ids: Sequence[str], reason: str) -> dict[str, Any]:
        """Set a block aside."""
        self.folder.mkdir(exist_ok=True)
        path = self.folder / f"{number}-{first}.json"
        held = {
            "model": number,
            "first": first,
            "events": len(block.targets),
            "requests": len(block.pieces),
            "reason": reason,
            "time": time.time(),
            "digest": digest(block),
            "ids": list(ids),
            "rows": rows_of(block),
        }
        with replaced(path) as temporary:
            temporary.write_text(json.dumps(held), encoding="utf-8")
        self._held[number].append(held | {"file": f"{self.folder.name}/{path.name}"})
        return self._held[number][-1]

    def of(self, number: int) -> list[dict[str, Any]]:
        """Return the facts about a model's blocks, without their rows."""
        names = ("first", "events", "reason", "time", "file")
        return [{name: held[name] for name in names} for held in self._held.get(number, ())]

    def forget(self, number: int) -> None:
        """Remove the blocks of a model."""
        for held in self._held.pop(number, ()):
            (self.folder.parent / held["file"]).unlink(missing_ok=True)

    def has(self, number: int, first: int) -> bool:
        """Return whether a block has been set aside."""
        return any(held["first"] == first for held in self._held.get(number, ()))

    def check(self, number: int, block: Block) -> None:
        """Refuse the rows of a request that brought the process down, and all rows of a model that has done so often.

        If they were learned together with other requests, it is not known which of them it was: then all may be sent again.
        """
        held = self._held.get(number)
        if not held:
            return
        if len(held) >= STRIKES:
            raise Refused(
                422, f"this model has brought the process down {len(held)} times, and learns no more: {held[-1]['reason']}"
            )
        found = digest(block)
        for one in held:
            if one["requests"] == 1 and one["digest"] == found:
                raise Refused(422, f"these rows were set aside, since learning them {one['reason']}: see {one['file']}")


def told_letter(letter: dict[str, Any]) -> str:
    """Return what is to be said about a block that was set aside."""
    count = letter["events"]
    those = (
        f"{count:,} events were set aside, since learning them" if count != 1 else "1 event was set aside, since learning it"
    )
    return f"{those} {letter['reason']}: see {letter['file']}"


def digest(block: Block) -> str:
    """Return a hash of the rows of a block."""
    return hashlib.sha256(block._replace(pieces=(len(block.targets),), offsets={}).to_bytes()).hexdigest()


def rows_of(block: Block) -> list[dict[str, Any]]:
    """Return the rows of a block as JSON-compatible data."""
    columns = {name: [_plain(value) for value in column.tolist()] for name, column in block.columns.items()}
    return [
        {**{name: values[place] for name, values in columns.items()}, "target": target}
        for place, target in enumerate(block.targets)
    ]


def _plain(value: Any) -> Any:
    return None if isinstance(value, float) and np.isnan(value) else value
