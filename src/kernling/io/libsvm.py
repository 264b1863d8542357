"""LIBSVM text: ``label [qid:n] index:value index:value ...  # comment``, parsed in chunks by compiled code.

A number is read as an integer and a power of ten.  If the integer is below 2^53 and the exponent is at most 22 in absolute
value, both are exact in float64, and one multiplication or division rounds correctly (W. Clinger, How to read floating point
numbers accurately, PLDI 1990).  With up to 19 digits, the product with a 128-bit power of five nearly always decides the
rounding (D. Lemire, Number parsing at a gigabyte per second, Software: Practice and Experience, 2021).  A longer number lies
between its first 19 digits and the next such number; if both round to the same value, that is the result.  The few remaining
numbers are parsed by Python's ``float``, so that all results agree with it to the last digit.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import IO, Any

import numpy as np
from scipy import sparse

from ..compiler import inline, inner, jit_exact
from .base import CHUNK
from .lines import line_blocks

BLOCK = 1 << 22  # bytes read at a time
FIRST = 1 << 26  # maximum bytes used to determine the number of columns of a source that is read once
WIDEST = 1 << 26  # maximum number of columns found in the text itself: kdd12, the widest public data set, has 54,686,452

_SMALLEST, _LARGEST = -290, 285  # powers of ten whose product with 19 digits is neither infinite nor subnormal


def _leading_bits(q: int) -> int:
    """Return the first 128 bits of 5^q: rounded down, or up if q is negative, as Lemire's proof requires."""
    if q >= 0:
        five = 5**q
        excess = five.bit_length() - 128
        return five >> excess if excess >= 0 else five << -excess
    five = 5**-q
    return (1 << (five.bit_length() + 127)) // five + 1


_BITS = [_leading_bits(q) for q in range(_SMALLEST, _LARGEST + 1)]
_HIGH = np.array([b >> 64 for b in _BITS], dtype=np.uint64)
_LOW = np.array([b & (1 << 64) - 1 for b in _BITS], dtype=np.uint64)
_DIGITS = 19  # fit into 64 bits
_TEN = np.array([10.0**k for k in range(23)])
_FAULTS = (
    "",
    "{token!r} is not a number",
    "{token!r} is not index:value",
    "the index in {token!r} is 0, but indices start at 1 (if they start at 0, pass zero_based=True)",
    "the index in {token!r} is not larger than the one before",
    "the index in {token!r} is too large",
    "the value in {token!r} is not finite",
)
_NUMBER, _PAIR, _ZERO, _ORDER, _LARGE, _INFINITE = range(1, 7)


@inner
def _product(a, b):
    """Return the high and low halves of a 128-bit product."""
    mask, half = np.uint64(0xFFFFFFFF), np.uint64(32)
    a0, a1, b0, b1 = a & mask, a >> half, b & mask, b >> half
    low = a0 * b0
    middle = a1 * b0 + (low >> half)
    other = a0 * b1 + (middle & mask)
    return a1 * b1 + (middle >> half) + (other >> half), (other << half) | (low & mask)


@inner
def _rounded(digits, q):
    """Return digits * 10^q, correctly rounded, as an integer times a power of two; the integer is 0 if undecided."""
    one = np.uint64(1)
    zeros = 0
    while digits >> np.uint64(63) == 0:
        digits = digits << one
        zeros += 1
    high, low = _product(digits, _HIGH[q - _SMALLEST])
    if high & np.uint64(0x1FF) == np.uint64(0x1FF):  # the truncated bits could matter
        more, _ = _product(digits, _LOW[q - _SMALLEST])
        added = low + more
        if added < low:
            high += one
        low = added
    if low == np.uint64(0xFFFFFFFFFFFFFFFF) and not -27 <= q <= 55:
        return 0, 0
    upper = high >> np.uint64(63)
    mantissa = high >> (upper + np.uint64(9))
    if low <= one and -4 <= q <= 23 and mantissa & np.uint64(3) == one and mantissa << (upper + np.uint64(9)) == high:
        mantissa -= one  # halfway between two numbers: round to even
    mantissa = (mantissa + (mantissa & one)) >> one
    return np.int64(mantissa), ((217706 * q) >> 16) + np.int64(upper) - zeros + 11  # floor(q log2 10), as a fraction


@inline
def _scan(text, at, end):
    """Scan a number: its first 19 digits, power of ten and sign, the number of digits (-1: not a number), and its end."""
    negative = text[at] == 45
    if negative or text[at] == 43:
        at += 1
    mantissa = np.uint64(0)
    significant = 0
    unread = 0
    point = -1
    first = at
    while at < end:
        c = text[at]
        if 48 <= c <= 57:
            if significant < _DIGITS:
                mantissa = mantissa * np.uint64(10) + np.uint64(np.int64(c) - 48)
            else:
                unread += 1
            if significant > 0 or c != 48:
                significant += 1
        elif c == 46 and point < 0:
            point = at
        else:
            break
        at += 1
    if at - first <= (0 if point < 0 else 1):
        return mantissa, 0, negative, -1, at
    shift = unread if point < 0 else unread + point + 1 - at
    if at < end and (text[at] == 101 or text[at] == 69):
        at += 1
        minus = at < end and text[at] == 45
        if at < end and (minus or text[at] == 43):
            at += 1
        first = at
        exponent: Any = 0
        while at < end and 48 <= text[at] <= 57:
            exponent = min(exponent * 10 + (np.int64(text[at]) - 48), 100000)
            at += 1
        if at == first:
            return mantissa, 0, negative, -1, at
        shift += -exponent if minus else exponent
    return mantissa, shift, negative, significant, at


@jit_exact
def _value(mantissa, shift, negative, significant):
    """Return the number, and whether Python has to parse it."""
    if significant == 0:
        value = 0.0
    elif significant <= _DIGITS and mantissa < np.uint64(9007199254740992) and -22 <= shift <= 22:
        value = float(np.int64(mantissa))
        value = value * _TEN[shift] if shift >= 0 else value / _TEN[-shift]
    else:
        if shift < _SMALLEST or shift > _LARGEST:
            return 0.0, True
        integer, exponent = _rounded(mantissa, shift)
        above, power = integer, exponent
        if significant > _DIGITS:
            above, power = _rounded(mantissa + np.uint64(1), shift)
        if integer == 0 or integer != above or exponent != power:
            return 0.0, True
        value = math.ldexp(float(integer), int(exponent))
    return -value if negative else value, False


@jit_exact
def _largest_index(text, end, most):
    """Return the largest number up to ``most`` before a colon outside of comments; -1 if there is none."""
    largest = -1
    number: Any = -1
    comment = False
    for at in range(end):
        c = text[at]
        if c == 10:
            comment = False
            number = -1
        elif c == 35:
            comment = True
        elif not comment and 48 <= c <= 57:
            if number < 100000000000:
                number = max(number, 0) * 10 + (np.int64(c) - 48)
        else:
            if c == 58 and not comment and largest < number <= most:
                largest = number
            number = -1
    return largest


@inline
def _skip_blanks(text, at, end):
    while at < end and (text[at] == 32 or text[at] == 9 or text[at] == 13):
        at += 1
    return at


@inline
def _ends(text, at, end):
    """Return whether a line or a comment begins here."""
    return at >= end or text[at] == 10 or text[at] == 35


@inline
def _number(text, at, end):
    """Read a number: its value, whether Python has to parse it, and its end; -1 if it is none."""
    mantissa, shift, negative, significant, at = _scan(text, at, end)
    value, slow = _value(mantissa, shift, negative, max(significant, 0))
    if significant < 0 or (at < end and text[at] > 32 and text[at] != 35):
        at = -1
    return value, slow, at


@inline
def _index(text, at, end, first):
    """Read an index and its colon: the index, whether it is "qid" instead, and where its value begins; -1 if there is none."""
    query = first and at + 4 < end and text[at] == 113 and text[at + 1] == 105 and text[at + 2] == 100
    if query:
        at += 3
    index: Any = 0
    begin = at
    while at < end and 48 <= text[at] <= 57:
        if index < 100000000000:
            index = index * 10 + (np.int64(text[at]) - 48)
        at += 1
    if (at == begin) != query or at >= end or text[at] != 58 or at + 1 >= end or text[at + 1] <= 32:
        at = -2
    return index, query, at + 1


@jit_exact
def _parse(text, end, base, labels, indptr, indices, values, left):
    """Parse whole lines; return rows, lines, numbers left to Python, the fault, and where its token begins.

    ``left`` receives (begin, end, index) of every number left to Python: the index is that of a value, or -1 - row for a label.
    """
    at = rows = lines = count = leftover = 0
    indptr[0] = 0
    while at < end:
        token = _skip_blanks(text, at, end)
        at = token
        if not _ends(text, at, end):
            labels[rows], slow, at = _number(text, at, end)
            if at < 0:
                return rows, lines, leftover, _NUMBER, token
            if slow:
                left[leftover, 0], left[leftover, 1], left[leftover, 2] = token, at, -1 - rows
                leftover += 1
            first = True
            previous = -1
            token = _skip_blanks(text, at, end)
            while not _ends(text, token, end):
                index, query, begin = _index(text, token, end, first)
                if begin < 0:
                    return rows, lines, leftover, _PAIR, token
                value, slow, at = _number(text, begin, end)
                if at < 0:
                    return rows, lines, leftover, _PAIR, token
                first = False
                if not query:
                    index -= base
                    if index < 0 or index <= previous or index >= 2147483647:
                        fault = _ZERO if index < 0 else _ORDER if index <= previous else _LARGE
                        return rows, lines, leftover, fault, token
                    previous = index
                    if slow:
                        left[leftover, 0], left[leftover, 1], left[leftover, 2] = begin, at, count
                        leftover += 1
                    indices[count], values[count] = index, value
                    count += 1
                token = _skip_blanks(text, at, end)
            rows += 1
            indptr[rows] = count
        while at < end and text[at] != 10:
            at += 1
        at += 1
        lines += 1
    return rows, lines, leftover, 0, 0


def read(file: IO[bytes], n_features: int | None, zero_based: bool) -> Iterator[tuple[sparse.csr_matrix, np.ndarray]]:
    """Yield CSR rows and labels of LIBSVM text.

    Without ``n_features``, the largest index of the first rows determines the number of columns; larger indices are an error.
    """
    line = 0
    blocks = line_blocks(file, BLOCK)
    for text in _first_joined(blocks) if n_features is None else blocks:
        X, y, lines, problem = _read_block(text, n_features, zero_based, line)
        yield X, y
        if problem:
            raise ValueError(problem)
        line += lines
        n_features = n_features or X.shape[1] or None


def _first_joined(blocks: Iterator[bytes]) -> Iterator[bytes]:
    """Yield blocks, joining the first ones until they contain a whole chunk of lines or an error occurs."""
    first: list[bytes] = []
    lines = size = 0
    failure: Exception | None = None
    try:
        for block in blocks:
            first.append(block)
            lines += block.count(b"\n")
            size += len(block)
            if lines >= CHUNK or size >= FIRST:
                break
    except (ValueError, OSError) as error:
        failure = error
    yield b"".join(first)
    if failure:
        raise failure
    yield from blocks


def _read_block(text: bytes, n_features: int | None, zero_based: bool, line: int):
    data = np.frombuffer(text, np.uint8)
    pairs = int(np.count_nonzero(data == 58))
    rows = int(np.count_nonzero(data == 10)) + 1
    labels, indptr = np.empty(rows), np.empty(rows + 1, np.int64)
    indices, values = np.empty(pairs, np.int32), np.empty(pairs)
    left = np.empty((pairs + rows, 3), np.int64)
    base = 0 if zero_based else 1
    with np.errstate(over="ignore"):  # 64-bit products wrap on purpose; NumPy warns about it if the code is not compiled
        rows, lines, leftover, fault, at = _parse(data, len(data), base, labels, indptr, indices, values, left)
    problem = ""
    if fault:
        problem = _message(text, line + lines, fault, at)
    for begin, end, place in left[:leftover]:
        number = float(text[begin:end])
        if not np.isfinite(number):
            line_of = text.count(b"\n", 0, begin)
            rows, problem = _row_of(indptr, rows, place), _message(text, line + line_of, _INFINITE, begin)
            break
        if place < 0:
            labels[-1 - place] = number
        else:
            values[place] = number
    rows, problem = _check_width(text, line, indptr, indices, rows, n_features or WIDEST, base) or (rows, problem)
    count = int(indptr[rows])
    width = n_features if n_features is not None else int(indices[:count].max(initial=-1)) + 1
    X = sparse.csr_matrix((values[:count].copy(), indices[:count].copy(), indptr[: rows + 1].astype(np.int32)), (rows, width))
    X.has_canonical_format = True
    return X, labels[:rows].copy(), lines, problem


def _row_of(indptr: np.ndarray, rows: int, place: int) -> int:
    return int(np.searchsorted(indptr[: rows + 1], place, side="right")) - 1 if place >= 0 else -1 - int(place)


def _check_width(text: bytes, line: int, indptr, indices, rows: int, n_features: int, base: int) -> tuple[int, str] | None:
    """Return the number of rows before the first index that exceeds ``n_features``, and the error message."""
    wide = np.flatnonzero(indices[: indptr[rows]] >= n_features)
    if not len(wide):
        return None
    row = _row_of(indptr, rows, wide[0])
    written = [number for number, words in enumerate(text.split(b"\n")) if words.split(b"#")[0].strip()]
    index = int(indices[wide[0]]) + base
    cure = "pass the right n_features="
    if index > WIDEST:
        cure = f"more than {WIDEST} columns are taken for a mistake: correct it, or pass n_features={index + 1 - base}"
    return row, f"line {line + written[row] + 1}: index {index} does not fit into {n_features} columns; {cure}"


def _message(text: bytes, line: int, fault: int, at: int) -> str:
    token = text[at:].split(None, 1)[0][:40].decode("utf-8", "replace")
    return f"line {line + 1}: {_FAULTS[fault].format(token=token)}"


def count_features(file: IO[bytes], zero_based: bool) -> int:
    """Return the number of columns found before any damaged line, which is reported when the file is read."""
    base = 0 if zero_based else 1
    largest = -1
    try:
        for text in line_blocks(file, BLOCK):
            largest = max(largest, _largest_index(np.frombuffer(text, np.uint8), len(text), WIDEST - 1 + base))
    except ValueError:
        pass
    return max(largest + 1 - base, 0)
