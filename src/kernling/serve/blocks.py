"""Blocks: the rows that a model learns in one call, as arrays and as bytes for the journal."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import safetensors.numpy

from ..tables.table import objects

META, NUMBERS = "block", "numbers"


class Block(NamedTuple):
    """Checked rows with their targets; ``pieces`` are the numbers of rows of the requests that they came in.

    An event of a source is a request of its own.  ``offsets`` say how far the block has read the sources that it came from.

    Examples
    --------
    >>> import numpy as np
    >>> from kernling.serve.blocks import Block, joined
    >>> one = Block({"km": np.array([2.5])}, ["late"], (1,))
    >>> both = joined([one, Block.from_bytes(one.to_bytes())])
    >>> print(both.columns["km"], both.targets, both.pieces)
    [2.5 2.5] ['late', 'late'] (1, 1)
    """

    columns: dict[str, np.ndarray]  # float64 or objects
    targets: list[Any]
    pieces: tuple[int, ...]
    offsets: dict[str, list[Any]] = {}  # by source: number of the last batch, and where to go on after it

    @property
    def nbytes(self) -> int:
        """Approximate size in bytes: text counts by its characters."""
        others = (value for column in self.columns.values() if column.dtype == object for value in column.tolist())
        text = sum(len(value) for value in others if isinstance(value, str))
        return sum(column.nbytes for column in self.columns.values()) + text

    def column(self, name: str) -> np.ndarray:
        """Return a column; without values if the block lacks it."""
        found = self.columns.get(name)
        return np.full(len(self.targets), np.nan) if found is None else found

    def to_bytes(self) -> bytes:
        """Serialise the block: numbers in binary, everything else as JSON."""
        numbers = [name for name, column in self.columns.items() if column.dtype == np.float64]
        others = {name: column.tolist() for name, column in self.columns.items() if column.dtype != np.float64}
        matrix = np.array([self.columns[name] for name in numbers]).reshape(len(numbers), len(self.targets))
        meta = {"names": list(self.columns), "others": others, "targets": self.targets, "pieces": self.pieces}
        if self.offsets:
            meta["offsets"] = self.offsets
        return safetensors.numpy.save({NUMBERS: matrix}, {META: json.dumps(meta)})

    @classmethod
    def from_bytes(cls, content: bytes) -> Block:
        """Restore a block from the result of ``to_bytes``."""
        size = int.from_bytes(content[:8], "little")
        meta = json.loads(json.loads(content[8 : 8 + size])["__metadata__"][META])
        numbers = iter(safetensors.numpy.load(content)[NUMBERS])
        others = meta["others"]
        columns = {name: objects(others[name]) if name in others else next(numbers) for name in meta["names"]}
        return cls(columns, meta["targets"], tuple(meta["pieces"]), meta.get("offsets", {}))

    def split(self) -> list[Block]:
        """Return the rows of each request as a block of their own."""
        ends = np.cumsum(self.pieces).tolist()
        return [self.part(first, last) for first, last in zip([0, *ends[:-1]], ends, strict=True)]

    def part(self, first: int, last: int) -> Block:
        """Return some of the rows."""
        if (first, last) == (0, len(self.targets)):
            return self
        columns = {name: column[first:last] for name, column in self.columns.items()}
        return Block(columns, self.targets[first:last], (last - first,))


def farther(*offsets: dict[str, list[Any]]) -> dict[str, list[Any]]:
    """Return the offsets of the last batch of each source.

    Examples
    --------
    >>> from kernling.serve.blocks import farther
    >>> farther({"a": [2, {"id": "7-0"}]}, {"a": [1, {"id": "3-0"}]})
    {'a': [2, {'id': '7-0'}]}
    """
    return dict(sorted((item for one in offsets for item in one.items()), key=lambda item: item[1][0]))


def joined(blocks: Sequence[Block]) -> Block:
    """Return the rows of blocks as one block; a column that a block lacks has no values in its rows."""
    if len(blocks) == 1:
        return blocks[0]
    names = dict.fromkeys(name for block in blocks for name in block.columns)
    columns = {name: np.concatenate([block.column(name) for block in blocks]) for name in names}
    targets = [target for block in blocks for target in block.targets]
    pieces = tuple(piece for block in blocks for piece in block.pieces)
    return Block(columns, targets, pieces, farther(*(block.offsets for block in blocks)))
