"""The journal: every block of events, on disk before it is acknowledged.

Learning its blocks one after another repeats exactly what was learned.  Records that are older than the last two snapshots of
their model are removed.  The definition of a model is written twice, and again at the beginning of every file, since all of its
blocks depend on it.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from .blocks import Block, farther
from .log import Found, Log, Record
from .marks import Mark, Marks

BLOCK, DEFINITION, ACCEPTED, DELETED = 1, 2, 3, 4  # kinds of records
LENGTH = struct.Struct("<I")


class Definition(NamedTuple):
    """What a model is, apart from what it has learned."""

    name: str
    spec: dict[str, Any]  # how it was created
    traits: dict[str, Any]  # determined by its first rows
    from_file: bool = False  # whether it was created from a model file, which is its first snapshot
    renamed: int = 0  # times; the name of the definition that has been renamed most often counts


def block_of(record: Record) -> tuple[Block, list[str]]:
    """Return the block of a record, and the ids of its events."""
    size = LENGTH.unpack_from(record.content)[0]
    ids = json.loads(record.content[LENGTH.size : LENGTH.size + size])
    return Block.from_bytes(record.content[LENGTH.size + size :]), ids


def definition_of(record: Record) -> Definition:
    """Return the definition in a record."""
    return Definition(*json.loads(record.content))


class Journal:
    """The journal of a folder, used by one thread at a time.

    Examples
    --------
    >>> import numpy as np
    >>> from pathlib import Path
    >>> from kernling.serve.blocks import Block
    >>> from kernling.serve.journal import Definition, Journal, block_of
    >>> journal = Journal(Path("."))
    >>> with journal.commit():
    ...     number = journal.add_model(Definition("flights", {}, {}))
    ...     first = journal.append(number, Block({"km": np.array([2.5])}, ["late"], (1,)), ["a"])
    >>> journal.close()
    >>> block, ids = block_of(Journal(Path(".")).log.scan()[-1].read())
    >>> block.targets, ids
    (['late'], ['a'])
    """

    def __init__(self, folder: Path):
        self.log = Log(folder / "journal", self._opening, lasting=DELETED)
        self.marks = Marks(folder)
        self.models: dict[int, Mark] = {}
        self._definitions: dict[int, bytes] = {}
        self.last_number = 0  # of a model
        self.unmarked: str | None = None  # why the last commit could not be marked
        self._records: list[Record] = []
        self._changes: dict[int, Mark] = {}

    def enter(self, number: int, definition: Definition, total: int, offsets: dict[str, list[Any]]) -> None:
        """Go on with a model of which so many events have been acknowledged."""
        self.models[number] = Mark(definition.name, definition.spec, total, offsets)
        self._definitions[number] = json.dumps(definition).encode()

    def _opening(self) -> list[Record]:
        return [Record(DEFINITION, number, self.models[number].total, 0, held) for number, held in self._definitions.items()]

    @contextmanager
    def commit(self) -> Iterator[None]:
        """Make the changes of a ``with`` statement atomic: when it ends, all of them are on disk, or none."""
        self._records, self._changes = [], {}
        before = self.last_number
        try:
            yield
            if self._records:
                self.log.append(self._records)
        except BaseException:
            self.last_number = before
            raise
        self.models |= self._changes
        self._definitions |= {record.model: record.content for record in self._records if record.kind == DEFINITION}
        gone = [record.model for record in self._records if record.kind == DELETED]
        for number in gone:
            del self.models[number], self._definitions[number]
        try:
            if self._changes or gone:
                self.marks.write(self.models)
            self.log.tidy()
            self.unmarked = None
        except OSError as error:  # the commit itself is on disk
            self.unmarked = error.strerror or str(error)

    def close(self) -> None:
        """Close all files."""
        self.log.close()
        self.marks.close()

    def _mark(self, number: int) -> Mark:
        return self._changes.get(number) or self.models[number]

    def total(self, number: int) -> int:
        """Return the number of events of a model that have been acknowledged, or are about to be."""
        return self._mark(number).total

    def add_model(self, definition: Definition) -> int:
        """Add a model; return its number."""
        self.last_number += 1
        self._changes[self.last_number] = Mark(definition.name, definition.spec, 0)
        self.define(self.last_number, definition, 0)
        return self.last_number

    def define(self, number: int, definition: Definition, rows: int) -> None:
        """Write the definition of a model as it is after its next ``rows`` events."""
        content = json.dumps(definition).encode()
        self._records += [Record(DEFINITION, number, self.total(number) + rows, 0, content)] * 2

    def rename(self, number: int, name: str) -> None:
        """Write another name of a model."""
        definition = Definition(*json.loads(self._definitions[number]))
        self.define(number, definition._replace(name=name, renamed=definition.renamed + 1), 0)
        self._changes[number] = self._mark(number)._replace(name=name)

    def delete(self, number: int) -> None:
        """Write that a model is deleted, and with it all that the journal has of it."""
        self._records.append(Record(DELETED, number, self.total(number), 0, b""))

    def append(self, number: int, block: Block, ids: Sequence[str]) -> int:
        """Add a block that a model is going to learn, with the ids of its events; return the number of events before it."""
        mark, rows = self._mark(number), len(block.targets)
        held = json.dumps(ids).encode()
        self._records.append(Record(BLOCK, number, mark.total, rows, LENGTH.pack(len(held)) + held + block.to_bytes()))
        self._changes[number] = mark._replace(total=mark.total + rows)
        return mark.total

    def note(self, number: int, offsets: dict[str, list[Any]]) -> None:
        """Write how far sources were read if there was nothing to learn: a mark is enough, as reading it again does no harm."""
        mark = self._mark(number)
        self._changes[number] = mark._replace(offsets=farther(mark.offsets, offsets))

    def accept(self, number: int) -> None:
        """Write that all losses of a model so far have been seen."""
        self._records.append(Record(ACCEPTED, number, self.total(number), 0, b""))


def blocks(found: Sequence[Found], number: int) -> list[Found]:
    """Return the blocks of a model in the order in which they were learned; a whole one, where there are copies."""
    chosen: dict[int, Found] = {}
    for one in found:
        if one.model == number and one.kind == BLOCK and (one.is_whole or one.first not in chosen):
            chosen[one.first] = one
    return [chosen[first] for first in sorted(chosen)]
