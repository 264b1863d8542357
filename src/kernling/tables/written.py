"""Numbers and gaps as people write them: thousands, decimal commas, currencies, per cent, brackets for negative numbers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

FEW = 0.05  # a column is numeric if at most this fraction of its values, taken as damaged, are not numbers
PLAIN, POINT, COMMA = "", "1,234.5", "1.234,5"  # how the numbers of a column are written
_SIGNS = ("", "-", "--", "---", "–", "—", ".", "..", "*", "?", "??", "\\n")
_WORDS = (
    "na",
    "n/a",
    "n.a.",
    "n.a",
    "k.a.",
    "null",
    "(null)",
    "nil",
    "none",
    "(none)",
    "nan",
    "nat",
    "missing",
    "unknown",
    "(blank)",
)
_ERRORS = ("#n/a", "#na", "#value!", "#div/0!", "#ref!", "#num!")
GAPS = frozenset((*_SIGNS, *_WORDS, *_ERRORS))  # in small letters
_CURRENCY = (
    r"(?:R\$|US\$|[€$£¥₹₽₩₺₴₪¢]|kr\.?|zł|Kč|Ft|Fr\.|%|‰|AUD|BRL|CAD|CHF|CNY|CZK|DKK|EUR|GBP|HKD|HUF|ILS|INR|JPY|KRW|MXN|NOK|NZD|PLN|RON|RUB|SEK"
    r"|SGD|TRY|USD|ZAR)"
)
_SPACES = " \u00a0\u202f'’"
_BODY = {
    POINT: rf"(\d{{1,3}}(?:(?P<mark>[,{_SPACES}])\d{{3}})(?:(?P=mark)\d{{3}})*(?:\.\d*)?|\d+\.?\d*|\.\d+)",
    COMMA: rf"(\d{{1,3}}(?:(?P<mark>[.{_SPACES}])\d{{3}})(?:(?P=mark)\d{{3}})*(?:,\d*)?|\d+,?\d*|,\d+)",
}
_SIGN = "[-+−]?"
_GROUPED = re.compile(rf"{_SIGN}(?:0|[1-9]\d{{0,2}}(?:\.\d{{3}})*)")
ENOUGH = 10  # different numbers, above which points may be said to separate thousands
_NUMBER = {
    form: re.compile(rf"(\(?)\s*({_SIGN})\s*{_CURRENCY}?\s*({_SIGN})\s*{body}((?:[eE][-+]?\d+)?)\s*{_CURRENCY}?\s*(-?)\s*(\)?)")
    for form, body in _BODY.items()
}
_DROPPED = {form: str.maketrans(dict.fromkeys(f"{_SPACES}{thousands}")) for form, thousands in ((POINT, ","), (COMMA, "."))}


def is_gap(value: Any) -> bool:
    """Return whether a value marks a gap: None, NaN, or a text such as "-", "n/a" or "?"."""
    if isinstance(value, str):
        return value.strip().lower() in GAPS
    return value is None or value != value


def number(value: Any, form: str = PLAIN) -> float:
    """Return a number that is written in this form; NaN for anything else.

    Examples
    --------
    >>> from kernling.tables.written import COMMA, POINT, number
    >>> number("1.234,56 €", COMMA), number("($1,200)", POINT), number("12 %", POINT), number("x", POINT)
    (1234.56, -1200.0, 12.0, nan)
    """
    if form == PLAIN or not isinstance(value, str):
        try:
            return float(value)
        except (TypeError, ValueError, OverflowError):
            return np.nan
    found = _NUMBER[form].fullmatch(value.strip().strip('"').strip())
    if found is None:
        return np.nan
    bracket, sign, inner, digits, _, exponent, after, end = found.groups()
    if bool(bracket) != bool(end) or sum(map(bool, (bracket, sign, inner, after))) > 1:
        return np.nan
    size = float(digits.translate(_DROPPED[form]).replace(",", ".") + exponent)
    return -size if bracket or after or "-" in sign + inner or "−" in sign + inner else size


def numbers(values: Iterable[Any] | np.ndarray, form: str = PLAIN) -> np.ndarray:
    """Convert values that are written in this form to float64, NaN for those that are not numbers."""
    if form == PLAIN or getattr(values, "dtype", np.dtype(object)).kind in "biuf":
        try:
            return np.array(values, dtype=np.float64)
        except (TypeError, ValueError, OverflowError):
            pass
    return np.array([number(value, form) for value in values], dtype=np.float64)


def are_thousands(texts: Iterable[Any], commas: bool = False) -> bool:
    """Return whether points separate thousands: three digits follow each, and numbers below 1,000 have none.

    1.234 alone could be either.  More than ten such numbers, beside some without a point, are thousands, as decimals would also
    have other numbers of digits; so are numbers beside others with decimal ``commas``.

    Examples
    --------
    >>> from kernling.tables.written import are_thousands
    >>> are_thousands([f"{n}.500" for n in range(1, 20)] + ["950"]), are_thousands(["1.234", "0.500", "2"], commas=True)
    (True, False)
    """
    seen, small = set(), False
    for text in texts:
        if is_gap(text):
            continue
        if not isinstance(text, str) or not _GROUPED.fullmatch(text.strip()):
            return False
        if "." in text:
            seen.add(text)
        else:
            small = True
    return len(seen) > ENOUGH and (small or commas)


def form_of(counts: Mapping[Any, int], decimal: str | None = None) -> str | None:
    """Return how the numbers among these values, with the number of rows of each, are written; None if they are no numbers.

    Where a text can be read in two ways, such as 1,234, the other values decide, and without any the comma separates thousands;
    for 1.234 see :func:`are_thousands`.
    ``decimal``, a point or a comma, decides in any case.
    """
    total = sum(count for value, count in counts.items() if not is_gap(value))
    if not total:
        return None
    if decimal is None and are_thousands(counts):
        return COMMA
    forms = {None: (PLAIN, POINT, COMMA), ".": (PLAIN, POINT), ",": (COMMA,)}[decimal]
    read = {form: _read(counts, form) for form in forms}
    best = max(forms, key=lambda form: read[form])
    return best if read[best] >= (1.0 - FEW) * total else None


def _read(counts: Mapping[Any, int], form: str) -> int:
    """Return the number of rows whose values are numbers in this form."""
    return sum(count for value, count in counts.items() if not is_gap(value) and not np.isnan(number(value, form)))
