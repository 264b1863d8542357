"""The treatment of each column of a table, inferred from the first rows."""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from ..text import check_text, check_texts
from . import dates
from .table import FEW, Table, check_plain, missing, numbers

TREATMENTS = ("number", "boolean", "category", "date", "ignore")
MANY = 100  # from this many rows on, text with mostly distinct values is taken for an identifier of the row
OTHERS = 16  # columns that the remaining categories are hashed into if there are many, or if new ones are to be expected
NEW = 0.01  # fraction of rows with a category of their own above which new categories are to be expected


class Column(NamedTuple):
    """The treatment of a column; ``width`` is the number of encoded columns."""

    name: str
    treatment: str
    gaps: bool = False  # whether there is an indicator of missing values
    categories: tuple[str, ...] = ()
    others: int = 0  # columns for all other categories
    clock: bool = False  # whether dates have a time of day
    origin: int = 0  # start of elapsed time, in seconds since 1970

    @property
    def is_measured(self) -> bool:
        """Whether missing values are imputed with a mean."""
        return self.treatment in ("number", "boolean", "date")

    @property
    def width(self) -> int:
        """Number of encoded columns."""
        return len(self.names_out())

    def names_out(self) -> list[str]:
        """Return the names of the encoded columns."""
        name = self.name
        if self.treatment == "ignore":
            return []
        if self.treatment == "category":
            other = [f"{name}=?"] if self.others == 1 else [f"{name}=?{place}" for place in range(self.others)]
            own = [*(f"{name}={word}" for word in self.categories), *other]
        elif self.treatment == "date":
            own = [f"{name} days", *(f"{name} {angle}" for angle in dates.angle_names(self.clock))]
        else:
            own = [name]
        return [*own, f"{name} missing"] if self.gaps else own

    def place(self, word: str, known: Mapping[str, int]) -> int:
        """Return the index of the encoded column of a category, given the indices of categories that have their own."""
        found = known.get(word)
        if found is not None:
            return found
        check_text(f"column {self.name!r}: the text", word)
        return len(known) + (zlib.crc32(word.encode()) % self.others if self.others > 1 else 0)

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Column:
        """Restore a column from the result of ``_asdict``."""
        column = cls(**{**plain, "categories": tuple(plain["categories"])})
        whole = all(type(value) is int for value in (column.others, column.origin))
        flags = all(type(value) is bool for value in (column.gaps, column.clock))
        words = all(isinstance(word, str) for word in (column.name, *column.categories))
        if not (whole and flags and words and column.treatment in TREATMENTS and abs(column.origin) < 2**40):
            raise ValueError(f"{dict(plain)} is not a column of a schema")
        if not (1 if column.treatment == "category" else 0) <= column.others <= OTHERS:
            raise ValueError(f"column {column.name!r} cannot have {column.others} columns for other categories")
        if len(set(column.categories)) < len(column.categories):
            raise ValueError(f"the categories of {column.name!r} must be distinct")
        check_texts("the text", (column.name, *column.categories))
        return column


class Schema(tuple[Column, ...]):
    """The treatment of all columns; prints as a table."""

    def rows(self) -> list[dict[str, str]]:
        """Return name, treatment and number of encoded columns as text."""
        return [{"column": one.name, "treatment": _told(one), "becomes": _counted(one.width)} for one in self]

    def __str__(self) -> str:
        lines = [tuple(row.values()) for row in self.rows()]
        wide = [max(map(len, cells)) for cells in list(zip(*lines, strict=True))[:2]]
        return "\n".join(f"{name:{wide[0]}}  {what:{wide[1]}}  {count}" for name, what, count in lines)


def decide(table: Table, given: Mapping[str, Any], impute: bool, limit: int) -> Schema:
    """Infer the treatment of each column; ``given`` has the treatments set by the user, for categories possibly a list."""
    return Schema(_decided(table, name, given.get(name), impute, limit) for name in table.names)


def _decided(table: Table, name: str, given: Any, impute: bool, limit: int) -> Column:
    check_text("the name of column", name)
    values = table.columns[name]
    if given != "ignore":
        check_plain(name, values)
    treatment = "category" if isinstance(given, list) else given or kind_of(values)
    gaps = impute and treatment != "ignore" and bool(missing(values).any())
    if isinstance(given, list):
        return Column(name, treatment, gaps, tuple(given), others=1)
    if treatment == "category":
        words, codes = table.categories(name)
        found = Counter(codes[~missing(values)].tolist())
        if given is None and len(codes) >= MANY and 2 * len(found) > found.total():
            return Column(name, "ignore")
        most = sorted(found, key=lambda code: (-found[code], code))[:limit]
        # The share of categories seen once is about the chance that the next one is new (Good, Biometrika 1953).
        new = sum(count == 1 for count in found.values()) / max(found.total(), 1)
        others = 1 if len(found) <= limit and new <= NEW else OTHERS
        return Column(name, treatment, gaps, tuple(words[code] for code in sorted(most)), others)
    if treatment == "date":
        times = dates_of(table, name)
        known = times[~np.isnat(times)]
        origin = int(known[0].astype(np.int64)) if len(known) else 0
        return Column(name, treatment, gaps, clock=dates.has_clock(times), origin=origin)
    return Column(name, treatment, gaps)


def kind_of(values: np.ndarray) -> str:
    """Infer the treatment of values."""
    kinds = {"b": "boolean", "i": "number", "u": "number", "f": "number", "M": "date"}
    if values.dtype.kind in kinds:
        return kinds[values.dtype.kind]
    present = values[~missing(values)].tolist()
    if present and all(isinstance(value, (bool, np.bool_)) for value in present):
        return "boolean"
    if np.isnan(numbers(present)).sum() <= FEW * len(present):
        return "number"
    no_dates = np.isnat(dates.moments(dict.fromkeys(map(str, present))))
    return "date" if no_dates.mean() <= FEW else "category"


def dates_of(table: Table, name: str) -> np.ndarray:
    """Return a column as dates; NaT where a value is missing or cannot be parsed."""
    values = table.columns[name]
    if values.dtype.kind == "M":
        return values.astype("datetime64[s]")
    if values.dtype.kind in "iuf":  # seconds since 1970
        return np.where(np.isfinite(values), values, np.iinfo(np.int64).min).astype(np.int64).astype("datetime64[s]")
    words, codes = table.categories(name)
    return dates.moments(words)[codes]


def _told(column: Column) -> str:
    what = column.treatment
    if what == "category":
        hashed = f", others hashed into {column.others}" if column.others > 1 else ""
        count = len(column.categories)
        what += f" ({count} {'value' if count == 1 else 'values'}{hashed})"
    elif what == "date":
        what += " with time of day" if column.clock else ""
    elif what == "ignore":
        return "ignored"
    return f"{what}, gaps marked" if column.gaps else what


def _counted(width: int) -> str:
    return "1 column" if width == 1 else f"{width} columns"


def names_of(columns: Iterable[Column], *treatments: str) -> list[str]:
    """Return the names of the columns with these treatments."""
    return [column.name for column in columns if column.treatment in treatments]
