"""A stream: rows in chunks, from wherever they come."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol

import numpy as np
from scipy import sparse

from .tables import Table, joined

Chunk = tuple[Any, Any]  # (X, y): X a float64 array, CSR matrix or Table, y an array, or None where there is no target
CHUNK = 8192  # rows; one compiled call of a learner covers as many
DENSEST = 1 << 32  # bytes of sparse rows made dense at once
WAIT = 0.03  # seconds that rows of a pipe wait for others to fill a chunk with them
FIRST_PAUSE, FIRST_WAIT = 0.2, 1.0  # seconds; the first chunk, which settles a lot, ends when rows pause or after so long


class Part(Protocol):
    """What rows can be passed through: see ``Encode``, ``Standardise`` and ``MinMax``."""

    def learn_transform(self, X: Any) -> Any: ...


class Stream:
    """Rows in chunks of (X, y), as often as they are asked for where the source allows it.

    Made by :func:`stream`, :func:`synthetic` and :meth:`Dataset.stream`.

    Attributes
    ----------
    names : tuple of str or None
        The columns' names, where the source has any and they are known already (files: once iteration has begun).
    target : str, int or None
        The target's column, by its name once that is known.
    dropped : int
        The rows of a table left out so far because a value was missing.
    info : dict
        What the source is, for the record: its name, a seed, a checksum.

    Examples
    --------
    >>> import numpy as np
    >>> from kernling.streams import stream
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
            raise ValueError(f"chunk must be a whole number of at least 1 row, not {chunk!r}")
        self._pieces = pieces
        self._once = once
        self._used = False
        self.chunk = chunk
        self.names = names
        self.target = target
        self.dropped = 0
        self.info = info or {}
        self.more_within: Callable[[float], bool] = lambda seconds: True  # of a pipe: whether more comes within so many seconds

    def __iter__(self) -> Iterator[Chunk]:
        if self._once and self._used:
            raise ValueError("this stream can be read only once; open its source again")
        self._used = True
        return _rechunked(self._pieces(self), self.chunk, lambda seconds: self.more_within(seconds))

    def through(self, *parts: Part) -> Stream:
        """This stream with its rows passed through parts, which learn from the rows as they go by.

        Examples
        --------
        >>> import numpy as np
        >>> from kernling.streams import Standardise, stream
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

        return Stream(pieces, chunk=self.chunk, names=self.names, info=self.info, once=self._once)

    def take(self, n: int) -> Stream:
        """The first n rows."""

        def pieces(_: Stream) -> Iterator[Chunk]:
            left = n
            for X, y in self if left > 0 else ():
                yield X[:left], None if y is None else y[:left]
                left -= X.shape[0]
                if left <= 0:
                    return

        return Stream(pieces, chunk=self.chunk, names=self.names, info={**self.info, "first_rows": n}, once=self._once)

    def load(self) -> Chunk:
        """All rows at once."""
        chunks = list(self)
        if not chunks:
            raise ValueError("the stream has no rows")
        return _joined(chunks)


def dense_pieces(pieces: Callable[[Stream], Iterator[Chunk]]) -> Callable[[Stream], Iterator[Chunk]]:
    """The same pieces as plain arrays; sparse ones become dense chunk by chunk."""

    def dense(self: Stream) -> Iterator[Chunk]:
        for X, y in pieces(self):
            if not sparse.issparse(X):
                yield X, y
                continue
            rows = min(self.chunk, X.shape[0])
            if rows * X.shape[1] * 8 > DENSEST:
                size = f"{rows} rows of {X.shape[1]} columns take {rows * X.shape[1] >> 27} GiB"
                raise ValueError(f"dense=True: {size} as a plain array; leave it out, or pass a smaller chunk=")
            for first in range(0, X.shape[0], self.chunk):
                part = slice(first, first + self.chunk)
                yield X[part].toarray(), None if y is None else y[part]

    return dense


def _rechunked(pieces: Iterable[Chunk], rows: int, more_within: Callable[[float], bool]) -> Iterator[Chunk]:
    """Pieces of any size as chunks of this many rows, fewer where a pipe has no more for the moment.

    What is left at the end, before an error or Ctrl-C, is given too.
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
        except (Exception, KeyboardInterrupt) as error:  # the rows before a damaged line, or Ctrl-C, are good: give them first
            failure = error
            break
        if enough or count >= rows:
            X, y = _joined(waiting)
            whole = count if enough else count - count % rows
            for first in range(0, whole, rows):
                part = slice(first, min(first + rows, whole))
                yield X[part], None if y is None else y[part]
            waiting, count = [], count - whole
            if count:
                waiting = [(X[whole:], None if y is None else y[whole:])]
            pause, wait, begun = WAIT, WAIT, time.monotonic()
    if count:
        yield _joined(waiting)
    if failure:
        raise failure


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
