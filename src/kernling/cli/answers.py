"""Predictions as text: one line for each row, written as soon as it is known."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..io.base import cut_chunk
from ..tables import Table
from ..tables.table import missing, places_of
from ..tables.written import numbers
from .data import with_targets

if TYPE_CHECKING:
    from ..evaluate.running import Batch
    from ..io.base import Chunk

STANDARD_OUTPUT = Path("-")
PIECE = 256  # rows that are learned at once between rows without a target: fewer take longer, more answer with an older model


def lines_of(said: np.ndarray) -> list[str]:
    """Return labels, values, or several numbers per row, as text."""
    return [",".join(map(str, line)) for line in said.reshape(len(said), -1).tolist()]


def usable(model: Any, X: Any) -> np.ndarray:
    """Return a mask of the rows that a model can predict."""
    if not isinstance(X, Table):
        return np.ones(X.shape[0], dtype=bool)
    steps = getattr(model, "steps_", None)
    if steps and hasattr(steps[0][1], "schema_"):
        return steps[0][1].readable(X)
    return np.logical_and.reduce([np.isfinite(numbers(values)) for values in X.columns.values()])


class Predictions(NamedTuple):
    """Predictions of rows."""

    lines: list[str]  # for each row, empty where a value is missing that the model needs
    usable: np.ndarray  # mask of predictable rows
    values: np.ndarray | None  # of the usable rows


def predictions(model: Any, X: Any, method: str = "predict", **options: Any) -> Predictions:
    """Return the predictions of rows by a method of a model, with these options."""
    good = usable(model, X)
    lines = [""] * X.shape[0]
    values = getattr(model, method)(X if good.all() else X[good], **options) if good.any() else None
    for place, line in zip(np.flatnonzero(good), () if values is None else lines_of(values), strict=True):
        lines[place] = line
    return Predictions(lines, good, values)


class Answers:
    """A file with a line for each row of a stream: its prediction, or an empty line if it cannot be predicted.

    Rows with a target are written when they are learned, with the prediction just before; others when they arrive.  Without a
    path nothing is written.
    """

    def __init__(self, path: Path | None, skipped: int = 0, answered: int = 0):
        self._path = path
        self._answered = answered  # rows learned again whose predictions an earlier run has written
        self._lines: list[str | None] = []  # in the order of the rows; None waits for its row to be learned
        self._rows = skipped  # of the stream, so far

    def __enter__(self) -> Answers:
        self._file = sys.stdout
        if self._path is not None and self._path != STANDARD_OUTPUT:
            self._file = open(self._path, "w", encoding="utf-8")
        return self

    def __exit__(self, *_: Any) -> None:
        if self._file is not sys.stdout:
            self._file.close()

    def write(self, lines: Iterable[str]) -> None:
        """Write lines and flush, so that readers of the file see them immediately."""
        self._file.write("".join(f"{line}\n" for line in lines))
        self._file.flush()

    def learnable(self, model: Any, chunks: Iterable[Chunk]) -> Iterator[Chunk]:
        """Yield the rows that have a target; the others are predicted with the current model."""
        for X, y in chunks:
            if y is None:
                yield X, y
                continue
            cuts = () if self._path is None else _cuts(missing(y), getattr(model, "t_", 0))
            for piece in cut_chunk(X, y, cuts):
                if self._path is not None:
                    self._expect(model, piece[0], missing(piece[1]))
                rows = with_targets(*piece)
                if rows[0].shape[0]:
                    yield rows

    def _expect(self, model: Any, X: Any, unlabelled: np.ndarray) -> None:
        lines: list[str | None] = ["" if one else None for one in unlabelled]
        learned = getattr(model, "t_", 0) > 0
        if learned and unlabelled.any():
            for place, answer in zip(np.flatnonzero(unlabelled), predictions(model, X[unlabelled]).lines, strict=True):
                lines[place] = answer
        for row, line in zip(places_of(X, self._rows).tolist(), lines, strict=True):
            self._lines += [*[""] * (row - self._rows), line]  # rows in between were dropped
            self._rows = row + 1
        self._write_known()

    def learned(self, batch: Batch) -> None:
        """Write the predictions of the next rows, which have been learned."""
        answers = iter(lines_of(batch.predicted) if self._path is not None else ())
        self._lines = [next(answers, None) if line is None else line for line in self._lines]
        self._write_known()

    def end(self, rows: int) -> None:
        """Add empty lines for rows that were dropped after the last one."""
        if self._path is not None and None not in self._lines:
            self.write([""] * (rows - self._rows))

    def _write_known(self) -> None:
        known = self._lines.index(None) if None in self._lines else len(self._lines)
        if known:
            self.write(map(str, self._lines[self._answered : known]))
            self._answered = max(self._answered - known, 0)
            del self._lines[:known]


def _cuts(unlabelled: np.ndarray, learned: int) -> list[int]:
    """Return where to cut a chunk: before rows without a target, so that they are predicted with what was learned by then.

    A cut needs ``PIECE`` rows with a target since the last one; at the beginning of a stream, as many as have been learned.
    """
    cuts, targets, last = [], np.cumsum(~unlabelled), 0
    for place in np.flatnonzero(unlabelled).tolist():
        if targets[place] - last >= max(1, min(PIECE, learned + last)):
            cuts.append(place)
            last = targets[place]
    return cuts
