"""The treatment of each column of a table, inferred from the first rows."""

from __future__ import annotations

import re
import zlib
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from ..estimators.constraints import short
from ..text import check_text, check_texts
from . import dates, written
from .prose import OUTPUTS, word_count
from .table import Table, check_plain, missing
from .written import FEW, PLAIN, is_gap, numbers

TREATMENTS = ("number", "boolean", "category", "date", "text", "ignore")
FORMS = {"number": (PLAIN, written.POINT, written.COMMA), "date": (dates.ISO, dates.DAY_FIRST, dates.MONTH_FIRST)}
MANY = 100  # from this many rows on, columns with a different value in each row are taken for identifiers
EPOCH = 946_684_800, 4_102_444_800  # seconds from 2000 to 2100: times, although they may all be different and increase
_NAMED_ID = re.compile(r"(?:^|[_\W])(?:id|uuid|guid|key|index|nr|no|number)$|[a-z]I[dD]$|^unnamed: 0$|^$", re.IGNORECASE)
PROSE = 4  # words, on average, from which on texts that are mostly different are prose
NO_TARGETS = "prose, which only classifiers and regressors can use"
OTHERS = 16  # columns that the remaining categories are hashed into if there are many, or if new ones are to be expected
NEW = 0.01  # fraction of rows with a category of their own above which new categories are to be expected


class Column(NamedTuple):
    """The treatment of a column; ``width`` is the number of encoded columns."""

    name: str
    treatment: str
    gaps: bool = False  # whether there is an indicator of missing values
    categories: tuple[str, ...] = ()
    others: int = 0  # columns for all other categories, or for the scores of prose
    clock: bool = False  # whether dates have a time of day
    origin: int = 0  # start of elapsed time, in seconds since 1970
    form: str = ""  # how numbers or dates are written, if not plainly
    reason: str = ""  # why the column is ignored
    late: bool = False  # whether it came after the first rows; dates are then elapsed days only

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
        elif self.treatment == "text":
            own = [f"{name} score {place}" for place in range(self.others)]
        elif self.treatment == "date":
            own = [f"{name} days", *(f"{name} {angle}" for angle in dates.angle_names(self.clock) if not self.late)]
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
        flags = all(type(value) is bool for value in (column.gaps, column.clock, column.late))
        words = all(isinstance(word, str) for word in (column.name, *column.categories))
        if not (whole and flags and words and column.treatment in TREATMENTS and abs(column.origin) < 2**40):
            raise ValueError(f"{dict(plain)} is not a column of a schema")
        if not (1 if column.treatment == "category" else 0) <= column.others <= OTHERS:
            raise ValueError(f"column {column.name!r} cannot have {column.others} columns for other categories")
        if column.treatment == "text" and (column.others not in (1, OUTPUTS) or column.gaps or column.late):
            raise ValueError(f"the text {column.name!r} cannot have {column.others} columns")
        if len(set(column.categories)) < len(column.categories):
            raise ValueError(f"the categories of {column.name!r} must be distinct")
        if column.form not in FORMS.get(column.treatment, ("",)) or not isinstance(column.reason, str):
            raise ValueError(f"column {column.name!r} cannot be written as {column.form!r:.40}")
        check_texts("the text", (column.name, *column.categories))
        return column


class Schema(tuple[Column, ...]):
    """The treatment of all columns; prints as a table."""

    def rows(self) -> list[dict[str, str]]:
        """Return name, treatment and number of encoded columns as text."""
        return [{"column": one.name, "treatment": _told(one), "becomes": _counted(one.width)} for one in self]

    def ignored(self) -> str:
        """Return the names of the ignored columns, with the reasons, as text; empty if there are none."""
        return "; ".join(f"{short(one.name)} ({one.reason})" for one in self if one.treatment == "ignore")

    def __str__(self) -> str:
        lines = [tuple(row.values()) for row in self.rows()]
        wide = [max(map(len, cells)) for cells in list(zip(*lines, strict=True))[:2]]
        return "\n".join(f"{name:{wide[0]}}  {what:{wide[1]}}  {count}" for name, what, count in lines)


class Hints(NamedTuple):
    """What is known about a table besides its values."""

    given: Mapping[str, Any]  # treatments set by the user, for categories possibly a list
    impute: bool
    limit: int  # categories of a column that have their own columns
    decimal: str | None = None  # mark of decimals, a point or a comma
    day_first: bool | None = None  # whether dates such as 3/4/2026 are in April
    scores: int = 0  # columns of prose, 0 if there are no targets to learn it from


def decide(table: Table, hints: Hints) -> Schema:
    """Decide how each column is read: the one place where that happens."""
    return Schema(_decided(table, name, hints.given.get(name), hints) for name in table.names)


def _decided(table: Table, name: str, given: Any, hints: Hints) -> Column:
    check_text("the name of column", name)
    values = table.columns[name]
    if given == "ignore":
        return Column(name, "ignore", reason="as asked")
    check_plain(name, values)
    if isinstance(given, list):
        return Column(name, "category", hints.impute and bool(missing(values).any()), tuple(given), others=1)
    treatment, form = (given, _form(values, given, hints)) if given else kind_of(values, hints.decimal, hints.day_first)
    if treatment == "category":
        return _category(table, name, given, hints)
    if treatment == "text":
        return _text(name, hints)
    if treatment == "date":
        times = dates_of(table, name, form)
        known = times[~np.isnat(times)]
        origin = int(known[0].astype(np.int64)) if len(known) else 0
        return Column(name, treatment, hints.impute and len(known) < len(times), (), 0, dates.has_clock(times), origin, form)
    found = numbers(values, form)
    if given is None and treatment == "number" and is_identifier(name, found):
        return Column(name, "ignore", reason="an identifier: a different whole number in each row")
    return Column(name, treatment, hints.impute and bool(np.isnan(found).any()), form=form)


def _category(table: Table, name: str, given: Any, hints: Hints) -> Column:
    gaps = missing(table.columns[name])
    words, codes = table.categories(name)
    found = Counter(codes[~gaps].tolist())
    if given is None and 2 * len(found) > found.total():
        if word_count([words[code] for code in found]) >= PROSE:
            return _text(name, hints)
        if len(codes) >= MANY:
            return Column(name, "ignore", reason="text that is different in most rows")
    most = sorted(found, key=lambda code: (-found[code], code))[: hints.limit]
    # The share of categories seen once is about the chance that the next one is new (Good, Biometrika 1953).
    new = sum(count == 1 for count in found.values()) / max(found.total(), 1)
    others = 1 if len(found) <= hints.limit and new <= NEW else OTHERS
    return Column(name, "category", hints.impute and bool(gaps.any()), tuple(words[code] for code in sorted(most)), others)


def _text(name: str, hints: Hints) -> Column:
    return Column(name, "text", others=hints.scores) if hints.scores else Column(name, "ignore", reason=NO_TARGETS)


def is_identifier(name: str, values: np.ndarray) -> bool:
    """Return whether whole numbers are taken for identifiers: all different, and increasing or called like one.

    Times in seconds or milliseconds since 1970 are not.

    Examples
    --------
    >>> import numpy as np
    >>> from kernling.tables.schema import is_identifier
    >>> is_identifier("row", np.arange(200.0)), is_identifier("at", 1.7e9 + np.arange(200.0)), is_identifier("km", np.ones(200))
    (True, False, False)
    """
    if len(values) < MANY or not np.array_equal(values, np.floor(values)) or not np.isfinite(values).all():
        return False
    first, last = EPOCH
    if any(first * unit <= values.min() and values.max() <= last * unit for unit in (1, 1000)):
        return False
    if (np.diff(values) > 0.0).all():
        return True
    return _NAMED_ID.search(name.strip()) is not None and len(np.unique(values)) == len(values)


def kind_of(values: np.ndarray, decimal: str | None = None, day_first: bool | None = None) -> tuple[str, str]:
    """Infer the treatment of values, and how they are written."""
    kinds = {"b": "boolean", "i": "number", "u": "number", "f": "number", "M": "date"}
    if values.dtype.kind in kinds:
        return kinds[values.dtype.kind], ""
    present = [value for value in values.tolist() if not is_gap(value)]
    if not present:
        texts = values[~missing(values)].tolist()
        return ("category" if texts else "number"), ""
    if all(isinstance(value, (bool, np.bool_)) for value in present):
        return "boolean", ""
    try:
        counts = Counter(present)
    except TypeError:  # lists or structs, about which reading the categories complains
        return "category", ""
    form = written.form_of(counts, decimal)
    if form is not None:
        return "number", form
    words = [str(value) for value in counts]
    form = dates.form_of(words, day_first)
    known = ~np.isnat(dates.moments(words, form))
    share = float(np.dot(known, list(counts.values()))) / len(present)
    return ("date", form) if share >= 1.0 - FEW else ("category", "")


def _form(values: np.ndarray, treatment: str, hints: Hints) -> str:
    """Return how the values of a column whose treatment is given are written."""
    if values.dtype.kind not in "OU" or treatment not in FORMS:
        return ""
    present = Counter(value for value in values.tolist() if not is_gap(value))
    if treatment == "date":
        return dates.form_of(list(map(str, present)), hints.day_first)
    return written.form_of(present, hints.decimal) or PLAIN


def dates_of(table: Table, name: str, form: str = dates.ISO) -> np.ndarray:
    """Return a column as dates; NaT where a value is missing or cannot be parsed."""
    values = table.columns[name]
    if values.dtype.kind == "M":
        return values.astype("datetime64[s]")
    if values.dtype.kind in "iuf":  # seconds since 1970
        return np.where(np.isfinite(values), values, np.iinfo(np.int64).min).astype(np.int64).astype("datetime64[s]")
    words, codes = table.categories(name)
    return dates.moments(words, form)[codes]


def _told(column: Column) -> str:
    what = column.treatment
    if what == "category":
        hashed = f", others hashed into {column.others}" if column.others > 1 else ""
        count = len(column.categories)
        what += f" ({count} {'value' if count == 1 else 'values'}{hashed})"
    elif what == "date":
        what += " with time of day" if column.clock else ""
        what += f", {column.form}" if column.form else ""
    elif what == "number" and column.form:
        what += f", written as {column.form}"
    elif what == "text":
        what += ", scored by its words"
    elif what == "ignore":
        return f"ignored: {column.reason}"
    what += ", came later" if column.late else ""
    return f"{what}, gaps marked" if column.gaps else what


def _counted(width: int) -> str:
    return "1 column" if width == 1 else f"{width} columns"


def names_of(columns: Iterable[Column], *treatments: str) -> list[str]:
    """Return the names of the columns with these treatments."""
    return [column.name for column in columns if column.treatment in treatments]
