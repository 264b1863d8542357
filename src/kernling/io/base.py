"""The stream class: chunks of rows from any source."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol

import numpy as np
from scipy import sparse

from ..tables.table import Table, joined

Chunk = tuple[Any, Any]  # (X, y): X a float64 array, CSR matrix or Table, y an array, or None without a target
CHUNK = 8192  # rows; also the maximum of one compiled call of a learner
DENSEST = 1 << 32  # maximum size in bytes of a chunk converted from sparse to dense
WAIT = 0.03  # seconds that rows of a pipe wait for more rows to fill a chunk
FIRST_PAUSE, FIRST_WAIT = 0.2, 1.0  # seconds; the first chunk, which decides a lot, ends at a pause or after this long


class Part(Protocol):
    """A preprocessing step of a stream: see ``Encode``, ``Standardise`` and ``MinMax``."""

    def learn_transform(self, X: Any) -> Any: ...


class Stream:
    """Iterable of (X, y) chunks; it can be iterated repeatedly if the source allows it.

    Created by :func:`stream`, :func:`synthetic` and :meth:`Dataset.stream`.

    Attributes
    ----------
    names : tuple of str or None
        Column names, if the source has any (for files: known once iteration has started).
    target : str, int or None
        Target column; its name once that is known.
    dropped : int
        Number of rows of a table dropped so far because of missing values.
    once : bool
        Whether it can be read only once, like standard input.
    info : dict
        Description of the source for the records: name, seed, checksum.

    Examples
    --------
    >>> import numpy as np
    >>> from kernling.io import stream
    >>> rows = stream(np.eye(5), [0, 1, 0, 1, 0], chunk=2)
    >>> [len(y) for X, y in rows]
    [2, 2, 1]
    """

    def __init__(
        self,
        pieces: Callable[[Stream], Iterator[Chunk]],
        *,
        chunk: int = CHUNK,
        names: tuple[str, ...] | None = None,
        target: str | int | None = None,
        info: dict[str, Any] | None = None,
        once: bool = False,
    ):
        if not isinstance(chunk, (int, np.integer)) or chunk < 1:
            raise ValueError(f"chunk must be an integer of at least 1 row, not {chunk!r}")
        self._pieces = pieces
        self.once = once
        self._used = False
        self.chunk = chunk
        self.names = names
        self.target = target
        self.dropped = 0
        self.info = info or {}
        self.more_within: Callable[[float], bool] = lambda seconds: True  # whether a pipe has more data by then

    def __iter__(self) -> Iterator[Chunk]:
        if self.once and self._used:
            raise ValueError("this stream can be read only once; open its source again")
        self._used = True
        return _rechunked(self._pieces(self), self.chunk, lambda seconds: self.more_within(seconds))

    def through(self, *parts: Part) -> Stream:
        """Return this stream with its rows transformed by steps that learn from them along the way.

        Examples
        --------
        >>> import numpy as np
        >>> from kernling.tables import Standardise
        >>> from kernling.io import stream
        >>> scale = Standardise()
        >>> rows = stream(np.arange(6.0).reshape(3, 2), [0, 1, 1]).through(scale)
        >>> X, y = rows.load()
        >>> print(scale.mean_)
        [2. 3.]
        """

        def pieces(_: Stream) -> Iterator[Chunk]:
            for X, y in self:
                for part in parts:
                    X = part.learn_transform(X)
                yield X, y

        return Stream(pieces, chunk=self.chunk, names=self.names, info=self.info, once=self.once)

    def take(self, n: int) -> Stream:
        """Return a stream of the first n rows."""

        def pieces(_: Stream) -> Iterator[Chunk]:
            left = n
            for X, y in self if left > 0 else ():
                yield rows_of(X, y, slice(left))
                left -= X.shape[0]
                if left <= 0:
                    return

        return Stream(pieces, chunk=self.chunk, names=self.names, info={**self.info, "first_rows": n}, once=self.once)

    def load(self) -> Chunk:
        """Load all rows into memory."""
        chunks = list(self)
        if not chunks:
            raise ValueError("the stream has no rows")
        return _joined(chunks)


def dense_pieces(pieces: Callable[[Stream], Iterator[Chunk]]) -> Callable[[Stream], Iterator[Chunk]]:
    """Return the same pieces as dense arrays, converted chunk by chunk."""

    def dense(self: Stream) -> Iterator[Chunk]:
        for X, y in pieces(self):
            if not sparse.issparse(X):
                yield X, y
                continue
            rows = min(self.chunk, X.shape[0])
            if rows * X.shape[1] * 8 > DENSEST:
                size = f"{rows} rows of {X.shape[1]} columns take {rows * X.shape[1] >> 27} GiB"
                raise ValueError(f"dense=True: {size} as a dense array; leave it out, or pass a smaller chunk=")
            for part, targets in cut_chunk(X, y, range(self.chunk, X.shape[0], self.chunk)):
                yield part.toarray(), targets

    return dense


def _rechunked(pieces: Iterable[Chunk], rows: int, more_within: Callable[[float], bool]) -> Iterator[Chunk]:
    """Regroup pieces into chunks of this many rows, or fewer if a pipe has no more at the moment.

    The rest before the end, an error or Ctrl-C is yielded too.
    """
    waiting: list[Chunk] = []
    count = 0
    pause, wait, begun = FIRST_PAUSE, FIRST_WAIT, 0.0
    failure: BaseException | None = None
    source = iter(pieces)
    while True:
        try:
            enough = count > 0 and not more_within(max(0.0, min(pause, begun + wait - time.monotonic())))
            if not enough:
                X, y = next(source)
                begun = begun if count else time.monotonic()
                waiting += [(X, y)] if X.shape[0] else []
                count += X.shape[0]
        except StopIteration:
            break
        except (Exception, KeyboardInterrupt) as error:  # rows before a damaged line or Ctrl-C are valid: yield them first
            failure = error
            break
        if enough or count >= rows:
            whole = list(cut_chunk(*_joined(waiting), range(rows, count, rows)))
            count = 0 if enough else count % rows
            waiting = [whole.pop()] if count else []
            yield from whole
            pause, wait, begun = WAIT, WAIT, time.monotonic()
    if count:
        yield _joined(waiting)
    if failure:
        raise failure


def first_rows(
    chunks: Iterable[Chunk], *, live: bool, usable: Callable[[Any, Any], Chunk] = lambda X, y: (X, y)
) -> tuple[Chunk | None, Iterator[Chunk]]:
    """Return the first 8,192 rows (of a live stream, the first chunk; None if there are none), and all chunks.

    "auto" parameters are resolved from these rows, so they do not depend on the size of chunks.  Only rows that ``usable``
    returns are counted.  If a single chunk has all of them, they are that chunk.
    """
    enough = 1 if live else CHUNK
    source = iter(chunks)
    held: list[Chunk] = []
    failure: BaseException | None = None
    while sum(usable(*chunk)[0].shape[0] for chunk in held) < enough:
        try:
            held.append(next(source))
        except StopIteration:
            break
        except (Exception, KeyboardInterrupt) as error:  # raised after the rows before it
            failure = error
            break

    beginning = _joined(held) if held else None

    def whole() -> Iterator[Chunk]:
        yield from held
        if failure:
            raise failure
        yield from source

    return beginning and next(cut_chunk(*beginning, range(CHUNK, beginning[0].shape[0], CHUNK))), whole()


def rows_of(X: Any, y: Any, part: Any) -> Chunk:
    """Return some rows of a chunk: those of a slice, a mask or indices."""
    return X[part], None if y is None else y[part]


def cut_chunk(X: Any, y: Any, cuts: Iterable[int]) -> Iterator[Chunk]:
    """Yield the pieces of a chunk between these rows; the chunk itself if there are none."""
    ends = [*cuts, X.shape[0]]
    for first, last in zip([0, *ends], ends, strict=False):
        yield (X, y) if len(ends) == 1 else rows_of(X, y, slice(first, last))


def _joined(chunks: list[Chunk]) -> Chunk:
    if len(chunks) == 1:
        return chunks[0]
    matrices, targets = zip(*chunks, strict=True)
    X: Any
    if isinstance(matrices[0], Table):
        X = joined(matrices)
    else:
        X = sparse.vstack(matrices, format="csr") if sparse.issparse(matrices[0]) else np.concatenate(matrices)
    return X, None if targets[0] is None else np.concatenate(targets)
