"""Reading CSV text: delimiters, types of columns, and damaged rows."""

from __future__ import annotations

import io
import os
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from ..extras import need_pyarrow
from ..tables.frames import arrow_table, check_names
from ..tables.table import Table
from ..tables.written import COMMA, FEW, GAPS, are_thousands, form_of
from ..warned import warn
from .files import DELIMITERS, in_one_line
from .lines import line_blocks

WESTERN = "cp1252"


def delimiter_of(source: Any, file: io.BufferedReader) -> str:
    """Detect the CSV delimiter: a tab for .tsv, or else the most frequent one in the first line, outside of quotes."""
    if source != "-" and isinstance(source, (str, os.PathLike)) and ".tsv" in Path(str(source).lower()).suffixes:
        return "\t"
    first = re.sub(rb'"[^"]*"', b"", file.peek(4096)).split(b"\n", 1)[0]
    return max(DELIMITERS, key=lambda mark: first.count(mark.encode()))


def read_csv(file: IO[bytes], words: set[str], header: bool, delimiter: str) -> Iterator[Table]:
    """Yield the tables of a CSV file; numeric columns are float64, whatever the first rows look like.

    With semicolons, numbers may have decimal commas.  The rows before a damaged one are yielded before the error is raised;
    values that are not numbers are kept as text, so that the code that converts the column can name the row.
    """
    pyarrow = need_pyarrow()
    csv = pyarrow.csv
    none = [*csv.ConvertOptions().null_values, *GAPS, *(mark.upper() for mark in GAPS), *(mark.title() for mark in GAPS)]
    commas = delimiter == ";"  # as decimal points
    names: list[str] | None = None
    types: dict[str, Any] = {}  # of columns with at least one value so far
    rows = 0
    for block in _utf8_blocks(file, delimiter):
        damaged: list[Any] = []
        top = int(names is None and header)
        reading = csv.ReadOptions(
            block_size=len(block) + 1,
            column_names=names,
            autogenerate_column_names=names is None and not header,
            use_threads=False,
        )
        parsing = csv.ParseOptions(
            delimiter=delimiter,
            newlines_in_values=True,
            invalid_row_handler=lambda row, found=damaged: found.append(row) or "skip",
        )
        try:
            if names is None or len(types) < len(names):
                first = csv.read_csv(io.BytesIO(block), reading, parsing)
                check_names(first.column_names)
                kinds = {name: _settled(pyarrow, first[name], name in words, none, commas) for name in first.column_names}
                if names is None:
                    texts = csv.ConvertOptions(column_types=dict.fromkeys(kinds, pyarrow.string()))
                    kinds |= _grouped(pyarrow, csv.read_csv(io.BytesIO(block), reading, parsing, texts), kinds)
                kinds |= types
                empty = {name for name in kinds if pyarrow.types.is_null(first[name].type)}
                types = {name: kind for name, kind in kinds.items() if name in types or name not in empty}
            table, written = _converted(pyarrow, (io.BytesIO(block), reading, parsing), kinds, none, commas)
        except pyarrow.ArrowInvalid as error:
            raise ValueError(f"damaged CSV after row {rows}: {in_one_line(error)}") from error
        names = table.column_names
        if damaged:
            bad = damaged[0]
            good = bad.number - 1 - top
            yield _csv_table(table.slice(0, good), written, none, commas)
            raise ValueError(
                f"row {rows + good + 1} has {bad.actual_columns} columns, not {bad.expected_columns}: {bad.text[:80]!r}"
            )
        yield _csv_table(table, written, none, commas)
        rows += table.num_rows
    if names is None:
        raise ValueError("the CSV file is empty")


def _converted(
    pyarrow: Any, source: tuple[io.BytesIO, Any, Any], kinds: dict[str, Any], none: list[str], commas: bool
) -> tuple[Any, list[str]]:
    """Return a block as a table with columns of these types, and the names of those that are text instead: as written."""
    file, reading, parsing = source
    for point in (".", ",") if commas else (".",):
        with suppress(pyarrow.ArrowInvalid):
            file.seek(0)
            typed = pyarrow.csv.ConvertOptions(column_types=kinds, null_values=none, decimal_point=point)
            return pyarrow.csv.read_csv(file, reading, parsing, typed), []
    file.seek(0)
    texts = pyarrow.csv.ConvertOptions(column_types=dict.fromkeys(kinds, pyarrow.string()))
    written = [name for name, kind in kinds.items() if kind != pyarrow.string()]  # values of several types
    return pyarrow.csv.read_csv(file, reading, parsing, texts), written


def _utf8_blocks(file: IO[bytes], delimiter: str) -> Iterator[bytes]:
    """Yield blocks of whole lines of CSV as UTF-8.

    A file that is ASCII up to text that is not UTF-8 is read as cp1252, with a warning, if it is text in that encoding.  The
    lines before one that cannot be read are yielded before the error is raised.
    """
    lines, ascii_only, western = 0, True, False
    for block in line_blocks(file, delimiter=delimiter):
        try:
            if western:
                block = block.decode(WESTERN).encode()
            else:
                block.decode()
        except UnicodeDecodeError as error:
            good = block[: block.rfind(b"\n", 0, error.start) + 1]
            line = lines + good.count(b"\n") + 1
            if ascii_only and not western and block[: error.start].isascii() and _is_western(block):
                warn(f"line {line} is not UTF-8: the file is read as {WESTERN}; name its encoding if it is another one")
                western, block = True, block.decode(WESTERN).encode()
            else:
                if good:
                    yield good
                name = WESTERN if western else "UTF-8"
                raise ValueError(
                    f"line {line} is not {name} text ({error.reason}): save the file as UTF-8, or name its encoding"
                ) from error
        lines += block.count(b"\n")
        ascii_only = ascii_only and block.isascii()
        yield block


def _is_western(block: bytes) -> bool:
    """Return whether a block is text in Windows' encoding of Western Europe, rather than damaged UTF-8."""
    if re.search(rb"[\xc2-\xf4][\x80-\xbf]", block):
        return False
    try:
        text = block.decode(WESTERN)
    except UnicodeDecodeError:
        return False
    return re.search("[\x00-\x08\x0e-\x1f]", text) is None


def _csv_table(table: Any, written: list[str], none: list[str], commas: bool) -> Table:
    read = arrow_table(table)
    for name in written:
        read.columns[name][:] = [_as_written(text, none, commas) for text in read.columns[name]]
    return read


def _settled(pyarrow: Any, column: Any, words: bool, none: list[str], commas: bool) -> Any:
    """Return the type of a column for the whole file; a few non-numeric values do not make a numeric column text."""
    types = pyarrow.types
    if words:
        return pyarrow.string()
    if types.is_boolean(column.type):
        return pyarrow.bool_()
    if types.is_integer(column.type) or types.is_floating(column.type) or types.is_null(column.type):
        return pyarrow.float64()
    if types.is_string(column.type):
        counts = Counter(column.to_pylist()).items()
        texts = sum(count for value, count in counts if isinstance(_as_written(value, none, commas), str))
        return pyarrow.float64() if texts <= FEW * len(column) else pyarrow.string()
    return pyarrow.string()


def _grouped(pyarrow: Any, texts: Any, kinds: dict[str, Any]) -> dict[str, Any]:
    """Return the columns that look like decimals but have points between thousands; they stay text, and are read later."""
    written = [texts[name].to_pylist() for name, kind in kinds.items() if kind == pyarrow.string()]
    commas = any(form_of(Counter(values)) == COMMA for values in written)
    numbers = [name for name, kind in kinds.items() if kind == pyarrow.float64()]
    return {name: pyarrow.string() for name in numbers if are_thousands(texts[name].unique().to_pylist(), commas)}


def _as_written(text: str, none: list[str], commas: bool) -> Any:
    """Parse a CSV value as a number, True, False or None; return any other text unchanged."""
    if text in none:
        return None
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    try:
        return text if "_" in text else float(text.replace(",", ".") if commas else text)
    except ValueError:
        return text
