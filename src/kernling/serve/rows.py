"""Rows of requests: JSON objects, checked column by column."""

from __future__ import annotations

import json
import re
from array import array
from collections.abc import Iterable, Sequence, Set
from itertools import chain
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
import orjson

from ..core.limits import LARGEST
from ..tables.table import objects
from ..text import flaw
from .refusal import Refused, bad_row
from .settings import Settings

ID, TARGET = "id", "target"  # keys of a row that are not columns
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
TYPES: dict[str, frozenset[type]] = {
    "numbers": frozenset((int, float)),
    "text": frozenset((str,)),
    "booleans": frozenset((bool,)),
    "text or numbers": frozenset((int, float, str, bool)),
}
ANY = "text or numbers"
NOTHING = type(None)
MOST = LARGEST["float64"]


def parse(body: bytes, settings: Settings) -> list[dict[str, Any]]:
    """Return the rows of a request: an object, a list of objects, or lines with an object each."""
    try:
        found = loads(body)
    except UnicodeDecodeError:
        raise Refused(400, "the body must be UTF-8") from None
    except RecursionError:
        raise Refused(400, "the body is nested too deeply: send rows as flat JSON objects") from None
    except ValueError as error:
        found = _parse_lines(body, error)
    rows = [found] if isinstance(found, dict) else found
    if not isinstance(rows, list) or not rows:
        raise Refused(400, "the body must be a JSON object, a list of them, or lines with one each")
    if len(rows) > settings.rows:
        raise Refused(413, f"{len(rows):,} rows are too many: send at most {settings.rows:,} in a request")
    for place, row in enumerate(rows):
        if type(row) is not dict:
            raise bad_row(place, "must be a JSON object of columns and values")
    return rows


def loads(body: bytes) -> Any:
    """Parse JSON; Python's own parser has better messages, and accepts NaN, which is refused later with its row.

    Unlike orjson, it accepts other encodings and halves of surrogate pairs, which are refused here.
    """
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        found = json.loads(body.decode())
    try:
        json.dumps(found, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise ValueError("a text contains half of a surrogate pair, which is not a character: remove it") from None
    return found


def _parse_lines(body: bytes, error: ValueError) -> list[Any]:
    lines = body.splitlines()
    if len(lines) < 2:
        raise Refused(400, f"the body is not JSON: {error}") from None
    found = []
    for line in filter(bytes.strip, lines):
        try:
            found.append(loads(line))
        except (ValueError, RecursionError) as wrong:
            raise Refused(400, f"row {len(found)} is not JSON: {wrong}", len(found)) from None
    return found


def check_name(name: str) -> str:
    """Return the name of a model; raise if it is invalid."""
    if not NAME.fullmatch(name):
        raise Refused(422, "the name of a model must be 1 to 64 letters, digits, dots, underscores and hyphens")
    return name


def ids_of(rows: Sequence[dict[str, Any]], settings: Settings) -> list[str | None]:
    """Return the ids of rows, None where there is none."""
    found = [row.get(ID) for row in rows]
    return [one if one is None else _checked_id(one, place, settings) for place, one in enumerate(found)]


def targets_of(rows: Sequence[dict[str, Any]]) -> list[Any]:
    """Return the targets of rows; raise for the first without one."""
    found = [row.get(TARGET) for row in rows]
    if None in found:
        raise bad_row(found.index(None), f"there is no {TARGET!r}")
    return found


def has_columns(row: dict[str, Any]) -> bool:
    """Return whether a row has more than an id and a target."""
    return len(row) > 2 or not row.keys() <= {ID, TARGET}


def _checked_id(found: Any, place: int, settings: Settings) -> str:
    most = settings.id_bytes
    text = str(found) if type(found) is str or (type(found) is int and abs(found) < 10**most) else ""
    wrong = flaw(text)
    if wrong:
        raise bad_row(place, f"its id {wrong}: remove it")
    if not 1 <= len(text.encode()) <= most:
        raise bad_row(place, f"its id must be a whole number or a text of 1 to {most} bytes")
    return text


class Layout(NamedTuple):
    """The columns of a model's rows, with the type of their values; None before the first value that is not null.

    Rows of a model that takes gaps may lack columns and have values of any type: an absent value is a missing one, and the
    model understands numbers in quotes.
    """

    columns: dict[str, str | None]
    gaps: bool = True

    def widened(self, rows: Sequence[dict[str, Any]], settings: Settings, room: int | None = None) -> Layout:
        """Return the layout after these rows, with their new names, as many as there is room for, and unknown types."""
        if not self.gaps:
            return self
        names = dict.fromkeys(name for row in rows for name in row if name not in (ID, TARGET))
        new = [name for name in names if name not in self.columns][:room]
        if new and self.columns:
            self._check_some(rows)  # rows of another kind do not bring columns
        opened = [name for name, kind in self.columns.items() if kind is None]
        if not new and not opened:
            return self
        columns = self.columns | {name: _kind_of(rows, name) for name in (*opened, *new)}
        _check_columns(columns, settings)
        return self._replace(columns=columns)

    def unknown(self, rows: Sequence[dict[str, Any]]) -> list[str]:
        """Return the names in these rows that are not columns."""
        return sorted({name for row in rows for name in row} - self.columns.keys() - {ID, TARGET})

    def kept(self, row: dict[str, Any], unused: Set[str]) -> dict[str, Any]:
        """Return what is to be stored of a predicted row: all but the columns that the model does not use."""
        known = self.columns if not self.gaps else row
        return {name: value for name, value in row.items() if name in known and name not in unused}

    def restored(self, row: dict[str, Any]) -> dict[str, Any]:
        """Return a stored row with all columns; those that the model does not use are null."""
        return dict.fromkeys(self.columns) | row

    def read_one(self, row: dict[str, Any], place: int) -> dict[str, Any]:
        """Return the columns of one row, checked as in ``read``; faster for few rows."""
        found = {name: row.get(name) for name in self.columns}
        if not all(self._allows(kind, found[name]) for name, kind in self.columns.items()) or not self._has_enough(row):
            try:
                self.read([row])
            except Refused as refused:  # with what is wrong
                raise bad_row(place, str(refused).partition(": ")[2]) from None
        return found

    def _has_enough(self, row: dict[str, Any]) -> bool:
        """Return whether a row has any column, or all of them if there may be no gaps."""
        return not self.columns.keys().isdisjoint(row) if self.gaps else self.columns.keys() <= row.keys()

    def _check_some(self, rows: Sequence[dict[str, Any]]) -> None:
        for place, row in enumerate(rows):
            if not self._has_enough(row):
                lacking = next((name for name in self.columns if name not in row), None)
                raise bad_row(place, "must have columns" if lacking is None else f"there is no column {lacking!r}")

    def _allows(self, kind: str | None, value: Any) -> bool:
        if value is None:
            return self.gaps
        types = TYPES[ANY if self.gaps or kind is None else kind]
        if type(value) is str:
            return str in types and flaw(value) is None
        return type(value) in types and (type(value) is bool or -MOST <= value <= MOST)

    def read(self, rows: Sequence[dict[str, Any]]) -> dict[str, np.ndarray]:
        """Convert rows to columns, float64 for numbers; raise for the first row that does not fit."""
        numbers = self._numbers(rows)
        if numbers is not None:
            return dict(zip(self.columns, numbers, strict=True))
        self._check_some(rows)
        return {
            name: _column([row.get(name) for row in rows], name, ANY if self.gaps else kind, self.gaps)
            for name, kind in self.columns.items()
        }

    def _numbers(self, rows: Sequence[dict[str, Any]]) -> np.ndarray | None:
        """Return the columns as a matrix if all of them are numbers without gaps, in a few calls for all of the rows."""
        if len(self.columns) < 2 or set(self.columns.values()) != {"numbers"}:
            return None
        try:
            values = list(chain.from_iterable(map(itemgetter(*self.columns), rows)))
        except KeyError:
            return None
        if not TYPES["numbers"].issuperset(map(type, values)):
            return None
        try:
            matrix = np.frombuffer(array("d", values)).reshape(len(rows), len(self.columns))
        except OverflowError:
            return None
        return np.ascontiguousarray(matrix.T) if (np.abs(matrix) <= MOST).all() else None


def _check_columns(columns: Iterable[str], settings: Settings) -> None:
    names = list(columns)
    if not 1 <= len(names) <= settings.columns:
        raise bad_row(0, f"there must be 1 to {settings.columns:,} columns, not {len(names):,}")
    if max(map(len, names)) > settings.characters:
        raise bad_row(0, f"the names of columns must have at most {settings.characters} characters")
    wrong = flaw("".join(names))
    if wrong:
        raise bad_row(0, f"the name of a column {wrong}: remove it")


def _kind_of(rows: Sequence[dict[str, Any]], name: str) -> str | None:
    for row in rows:
        value = row.get(name)
        if value is not None:
            return "numbers" if type(value) in TYPES["numbers"] else ANY
    return None


def _column(values: list[Any], name: str, kind: str | None, gaps: bool) -> np.ndarray:
    if kind is None:
        return objects(values)
    allowed = TYPES[kind] | {NOTHING} if gaps else TYPES[kind]
    if not allowed.issuperset(map(type, values)):
        place = next(place for place, value in enumerate(values) if type(value) not in allowed)
        kinds = "text, numbers or booleans" if kind == ANY else kind
        raise bad_row(place, f"column {name!r} holds {kinds}, not {_shown(values[place])}")
    if kind == "numbers" or (kind == ANY and (TYPES["numbers"] | {NOTHING}).issuperset(map(type, values))):
        return _numbers(values, name)
    if kind == ANY:
        _check_finite([value if type(value) in (int, float) else None for value in values], name)
    _check_texts(values, name)
    return objects(values)


def _check_texts(values: list[Any], name: str) -> None:
    texts = [value if type(value) is str else "" for value in values]
    if flaw("".join(texts)):  # one look at all of them
        place, wrong = next((place, wrong) for place, wrong in enumerate(map(flaw, texts)) if wrong)
        raise bad_row(place, f"the text in column {name!r} {wrong}: remove it")


def _numbers(values: list[Any], name: str) -> np.ndarray:
    try:
        column = np.array(values, dtype=np.float64)
    except OverflowError:
        _check_finite(values, name)
        raise
    if not (np.abs(column) <= MOST).all():  # NaN where a value is null, or given as such
        _check_finite(values, name)
    return column


def _check_finite(values: list[Any], name: str) -> None:
    for place, value in enumerate(values):
        if value is not None and not -MOST <= value <= MOST:
            raise bad_row(place, f"{_shown(value)} in column {name!r} cannot be learned; send null for a missing value")


def _shown(value: Any) -> str:
    if isinstance(value, (list, dict)):  # however deep
        return "a list" if isinstance(value, list) else "an object"
    text = json.dumps(value)
    return text if len(text) <= 40 else f"{text[:37]}..."
