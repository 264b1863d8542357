"""Text that can be stored, answered and exported again: labels, categories, ids and names of columns."""

from __future__ import annotations

from collections.abc import Iterable


def flaw(text: str) -> str | None:
    """Return why a text cannot be stored, or None if it can.

    Half of a surrogate pair has no encoding in UTF-8; NumPy drops NUL characters at the end of a text, so that two labels
    would become one, and databases and C programs take them for the end.

    Examples
    --------
    >>> from kernling.text import flaw
    >>> flaw("Málaga"), flaw("late\\0")
    (None, 'contains a NUL character')
    """
    if "\0" in text:
        return "contains a NUL character"
    if text.isascii():
        return None
    try:
        text.encode()
    except UnicodeEncodeError:
        return "contains half of a surrogate pair, which is not a character"
    return None


def check_text(what: str, text: str) -> str:
    """Return the text; raise if it cannot be stored."""
    wrong = flaw(text)
    if wrong:
        raise ValueError(f"{what} {_shown(text)} {wrong}: remove it")
    return text


def check_texts(what: str, values: Iterable[object]) -> None:
    """Raise for the first text among the values that cannot be stored."""
    texts = [value for value in values if isinstance(value, str)]
    if flaw("".join(texts)):  # one look at all of them
        for text in texts:
            check_text(what, text)


def _shown(text: str) -> str:
    shown = ascii(text)
    return shown if len(shown) <= 100 else f"{shown[:100]}..."
