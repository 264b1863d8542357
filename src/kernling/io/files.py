"""Reading files and standard input: compression is detected from content, the format from suffix or content."""

from __future__ import annotations

import bz2
import codecs
import gzip
import io
import json
import lzma
import os
import re
import select
import shutil
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import IO, Any, cast

from ..brokers import is_url
from ..estimators.constraints import short
from ..extras import need_pyarrow
from ..tables.frames import arrow_table
from ..tables.table import Table, listed, objects
from ..text import check_texts
from . import progress
from .lines import BLOCK, MARK, line_blocks

FORMATS = {
    "libsvm": (".libsvm", ".svm", ".svmlight"),
    "csv": (".csv", ".tsv"),
    "parquet": (".parquet", ".pq"),
    "arrow": (".arrow", ".feather", ".ipc"),
    "jsonl": (".jsonl", ".ndjson"),
}
DELIMITERS = (",", "\t", ";", "|")
STEP = 1 << 16  # bytes decompressed at a time
UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
COMPRESSIONS = (".gz", ".xz", ".bz2", ".zst", ".zip")
_LIBSVM_LINE = re.compile(rb"[-+0-9.eE]+(\s+qid:\d+)?(\s+\d+:[-+0-9.eE]+)+\s*(#.*)?$")


@contextmanager
def opened(source: Any, encoding: str | None = None) -> Iterator[io.BufferedReader]:
    """Open a path, standard input ("-") or an open binary file for reading uncompressed bytes; text becomes UTF-8."""
    with ExitStack() as stack:
        if source == "-":
            name, raw = "standard input", _waited_for(sys.stdin.buffer)
        elif isinstance(source, (str, os.PathLike)):
            name, raw = os.fspath(source), stack.enter_context(open(source, "rb"))
            raw = _waited_for(raw) if is_read_once(source) else raw
        else:
            name, raw = str(getattr(source, "name", "the file")), source
        buffered = raw if hasattr(raw, "peek") else io.BufferedReader(cast(Any, raw))
        yield _as_utf8(stack.enter_context(_decompressed(buffered, name, stack)), name, encoding)


def is_read_once(source: Any) -> bool:
    """Return whether a source can be read only once: standard input, an open file, a named pipe, or a stream of a broker."""
    if source == "-" or hasattr(source, "read") or is_url(str(source)):
        return True
    return os.path.exists(source) and not os.path.isfile(source)


def _waited_for(file: Any) -> Any:
    raw = getattr(file, "raw", None)
    return io.BufferedReader(_Polled(raw.fileno()), BLOCK) if os.name == "posix" and isinstance(raw, io.FileIO) else file


class _Polled(io.RawIOBase):
    """A pipe that is polled with a short timeout.

    A signal may be delivered to another library's thread and then does not interrupt a blocking read of the main thread: Python
    would not notice Ctrl-C before more rows arrive.
    """

    def __init__(self, descriptor: int):
        self._descriptor = descriptor

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self.more_within(0.2):
            pass
        return os.readv(self._descriptor, [buffer])

    def more_within(self, seconds: float) -> bool:
        """Return whether there is data or the end of the pipe within this many seconds."""
        return bool(select.select([self._descriptor], [], [], seconds)[0])


def more_within(file: Any) -> Callable[[float], bool]:
    """Return a function that tells whether more data arrives within this many seconds; for files it is always True."""
    raw = getattr(file, "raw", None)
    return getattr(raw, "more_within", lambda seconds: True)


def _decompressed(file: io.BufferedReader, name: str, stack: ExitStack) -> Any:
    read = _decompressor(file, name, stack)
    return _Kept(file) if read is None else io.BufferedReader(_Decompressed(name, read, file), BLOCK)


def _decompressor(file: io.BufferedReader, name: str, stack: ExitStack) -> Callable[[int], bytes] | None:
    """Return a function that reads at most n decompressed bytes, never more than one step; None for an uncompressed file."""
    head = file.peek(6)[:6]
    if head.startswith(b"\x1f\x8b"):
        return gzip.GzipFile(fileobj=file).read1
    if head.startswith(b"\xfd7zXZ\x00"):
        return lzma.LZMAFile(file).read1
    if head.startswith(b"BZh"):
        return bz2.BZ2File(file).read1
    if head.startswith(b"\x28\xb5\x2f\xfd"):
        pyarrow = need_pyarrow()
        zst = pyarrow.CompressedInputStream(pyarrow.PythonFile(file, "r"), "zstd")
        return lambda size: zst.read(min(size, STEP))
    if head.startswith(b"PK\x03\x04"):
        with _damage_named(name):
            archive = stack.enter_context(zipfile.ZipFile(_seekable(file, stack)))
        if len(archive.namelist()) != 1:
            raise ValueError(f"a zip file must contain exactly one file, not {len(archive.namelist())}")
        return cast(Any, archive.open(archive.namelist()[0])).read1
    return None


@contextmanager
def _damage_named(name: str) -> Iterator[None]:
    """Convert the various errors of decompressors to one ValueError that names the file."""
    try:
        yield
    except EOFError as error:
        raise ValueError(f"{name} is truncated: it is only part of a compressed file") from error
    except (OSError, lzma.LZMAError, zlib.error, zipfile.BadZipFile) as error:
        if isinstance(error, OSError) and error.errno is not None:  # an error of the disk, not of the data
            raise
        raise ValueError(f"{name} is damaged or truncated: {error}") from error


class _Decompressed(io.RawIOBase):
    """Output of a decompressor; all bytes before a damaged place are read before the error is raised."""

    def __init__(self, name: str, read: Callable[[int], bytes], file: io.BufferedReader):
        self._name = name
        self._read = read
        self._file = file  # compressed

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        count = 0
        while count < len(buffer):
            try:
                with _damage_named(self._name):
                    data = self._read(len(buffer) - count)
            except ValueError as error:
                if not count:
                    raise
                self._read = partial(_fail, error)
                break
            if not data:
                break
            buffer[count : count + len(data)] = data
            count += len(data)
        progress.tell(self._name, self._file)
        return count


def _as_utf8(file: Any, name: str, encoding: str | None) -> Any:
    """Return the file, recoded as UTF-8 if an encoding is given, or if it starts with the byte order mark of UTF-16."""
    if encoding is None and file.peek(2)[:2] in UTF_16:
        encoding = "utf-16"
    return file if encoding is None else io.BufferedReader(_Recoded(file, name, encoding), BLOCK)


class _Recoded(io.RawIOBase):
    """Text in another encoding as UTF-8."""

    def __init__(self, file: Any, name: str, encoding: str):
        self._file, self._name, self._encoding = file, name, encoding
        try:
            self._decode = codecs.getincrementaldecoder(encoding)().decode
        except LookupError:
            raise ValueError(
                f"encoding: Python knows no {encoding!r}; common ones are utf-8, utf-16, cp1252 and latin-1"
            ) from None
        self._rest = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._rest:
            data = self._file.read1(STEP)
            try:
                self._rest = self._decode(data, final=not data).encode()
            except UnicodeError as error:
                raise ValueError(f"{self._name} is not {self._encoding} text throughout: {error}") from error
            if not data:
                break
        taken, self._rest = self._rest[: len(buffer)], self._rest[len(buffer) :]
        buffer[: len(taken)] = taken
        return len(taken)


def _fail(error: Exception, _: int) -> bytes:
    raise error


class _Kept:
    """A file that the caller closes."""

    def __init__(self, file: io.BufferedReader):
        self._file = file

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def __enter__(self) -> io.BufferedReader:
        return self._file

    def __exit__(self, *_: Any) -> None:
        return None


def _seekable(file: Any, stack: ExitStack) -> Any:
    """Return the file itself, or a temporary copy if it is not seekable."""
    if isinstance(file, io.BufferedReader) and isinstance(getattr(file, "raw", None), io.FileIO) and file.seekable():
        return file
    copy = stack.enter_context(tempfile.TemporaryFile())  # noqa: SIM115
    shutil.copyfileobj(file, copy, BLOCK)
    copy.seek(0)
    return copy


def format_of(source: Any, file: io.BufferedReader) -> str:
    """Detect the format of a source from its suffix or else its first bytes."""
    name = "" if source == "-" or not isinstance(source, (str, os.PathLike)) else Path(source).name.lower()
    for suffix in COMPRESSIONS:
        name = name.removesuffix(suffix)
    for format, suffixes in FORMATS.items():
        if name.endswith(suffixes):
            return format
    head = file.peek(4096).removeprefix(MARK)
    first = head.split(b"\n", 1)[0].strip()
    if head.startswith(b"PAR1"):
        return "parquet"
    if head.startswith((b"ARROW1", b"\xff\xff\xff\xff")):
        return "arrow"
    if first.startswith(b"{"):
        return "jsonl"
    if _LIBSVM_LINE.match(first):
        return "libsvm"
    if _is_text(first) and any(mark.encode() in first for mark in DELIMITERS):
        return "csv"
    what = "standard input" if source == "-" else repr(str(source))
    raise ValueError(f"cannot detect the format of {what}; pass format= one of {', '.join(map(repr, FORMATS))}")


def _is_text(line: bytes) -> bool:
    try:
        return line.decode().replace("\t", " ").isprintable()
    except UnicodeDecodeError:
        return False


def in_one_line(error: Exception) -> str:
    """Return the message of a library that may take several lines."""
    return " ".join(str(error).split())[:200]


def read_parquet(file: Any, rows: int) -> Iterator[Table]:
    """Yield the tables of a Parquet file."""
    pyarrow = need_pyarrow()
    with ExitStack() as stack:
        try:
            for batch in pyarrow.parquet.ParquetFile(_seekable(file, stack)).iter_batches(rows):
                yield arrow_table(batch)
        except (pyarrow.ArrowInvalid, OSError) as error:
            raise ValueError(f"damaged Parquet file: {in_one_line(error)}") from error


def read_arrow(file: Any) -> Iterator[Table]:
    """Yield the tables of an Arrow file or stream (including Feather)."""
    pyarrow = need_pyarrow()
    with ExitStack() as stack:
        try:
            if file.peek(6)[:6] == b"ARROW1":
                reader = pyarrow.ipc.open_file(_seekable(file, stack))
                for i in range(reader.num_record_batches):
                    yield arrow_table(reader.get_batch(i))
            else:
                for batch in pyarrow.ipc.open_stream(file):
                    yield arrow_table(batch)
        except (pyarrow.ArrowInvalid, OSError) as error:
            raise ValueError(f"damaged Arrow file: {in_one_line(error)}") from error


def read_jsonl(file: IO[bytes], asked: list[str], more: bool) -> Iterator[Table]:
    """Yield the tables of JSON lines: one object per line, of numbers, strings, true, false and null.

    A name that a line lacks is a missing value.  If ``more`` is false, names that neither the first line nor ``asked`` has are
    an error; so are names in ``asked`` that no line has.
    """
    lacking = set(asked)
    names: dict[str, None] = {}
    line = 0
    for block in line_blocks(file):
        rows: list[dict[str, Any]] = []
        problem = ""
        for text in block.splitlines():
            line += 1
            if not text.strip():
                continue
            try:
                row = json.loads(text.decode())
                if b"\\u" in text and isinstance(row, dict):  # the only way to write what cannot be stored
                    check_texts("the text", (*row, *row.values()))
            except (ValueError, RecursionError) as error:
                problem = f"line {line}: {error}"
                break
            if not isinstance(row, dict) or any(isinstance(value, (dict, list)) for value in row.values()):
                problem = f"line {line}: expected an object of numbers and strings"
                break
            names = names or dict.fromkeys([*row, *asked])
            unknown = row.keys() - names.keys()
            if unknown and not more:
                name = short(min(unknown))
                problem = f"line {line}: the name {name} is not in the first line; name the columns to use with features="
                break
            lacking -= row.keys()
            names |= dict.fromkeys(row)
            rows.append(row)
        if rows:
            yield Table({name: objects([row.get(name) for row in rows]) for name in names}, keyed=True)
        if problem:
            raise ValueError(problem)
    if lacking and names:
        found = listed(name for name in names if name not in lacking)
        raise ValueError(f"no line has the name {short(min(lacking))}; the names are {found}")
