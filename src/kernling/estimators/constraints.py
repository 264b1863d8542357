"""Constraints on the values of parameters, declared as data and checked before anything is learned."""

from __future__ import annotations

import math
import numbers
import re
from typing import Any, NamedTuple

import numpy as np

from ..core.limits import WEIGHT as LARGEST_WEIGHT


def _is_a(kind: type, value: Any) -> bool:
    """Return whether the value is a number of this type; booleans are not."""
    return isinstance(value, kind) and not isinstance(value, (bool, np.bool_))


class Real(NamedTuple):
    """A number in an interval; ``strict`` excludes the lower limit.

    Unless it is 0, its absolute value is between 1 / extreme and extreme, so that products of parameters do not overflow.
    """

    low: float = -math.inf
    high: float = math.inf
    strict: bool = False
    extreme: float = 1e15

    def admits(self, value: Any) -> bool:
        if not _is_a(numbers.Real, value):
            return False
        return (self.low < value if self.strict else self.low <= value) and value <= self.high and not self.is_extreme(value)

    def is_extreme(self, value: Any) -> bool:
        return value != 0 and not 1.0 / self.extreme <= abs(value) <= self.extreme

    @property
    def kind(self) -> str:
        return "float"

    def __str__(self) -> str:
        if math.isinf(self.low) and math.isinf(self.high):
            return "a number"
        lower = f"greater than {self.low:g}" if self.strict else f"at least {self.low:g}"
        return f"a number {lower}" + ("" if math.isinf(self.high) else f" and at most {self.high:g}")


class Whole(NamedTuple):
    """An integer in an interval."""

    low: int = 1
    high: int = 2**53

    def admits(self, value: Any) -> bool:
        return _is_a(numbers.Integral, value) and self.low <= value <= self.high

    @property
    def kind(self) -> str:
        return "int"

    def __str__(self) -> str:
        return f"an integer of at least {self.low}" + ("" if self.high == 2**53 else f" and at most {self.high}")


class OneOf(NamedTuple):
    """One of a few values."""

    values: tuple

    def admits(self, value: Any) -> bool:
        return any(value is v or (isinstance(value, str) and value == v) for v in self.values)

    @property
    def kind(self) -> str:
        names = [f'"{value}"' for value in self.values if isinstance(value, str)]
        return names[0] if len(names) == 1 else f"{{{', '.join(names)}}}"

    def __str__(self) -> str:
        return " or ".join(repr(v) for v in self.values)


class InstanceOf(NamedTuple):
    """An instance of a type."""

    types: tuple[type, ...]
    words: str
    kind: str

    def admits(self, value: Any) -> bool:
        return isinstance(value, self.types)

    def __str__(self) -> str:
        return self.words


UNITS = {"": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}


class Bytes(NamedTuple):
    """A number of bytes, or text such as "64MB"."""

    def admits(self, value: Any) -> bool:
        if isinstance(value, str):
            return re.fullmatch(rf"\d{{1,9}} ?({'|'.join(UNITS)})", value, re.ASCII) is not None
        return Whole(0).admits(value)

    @property
    def kind(self) -> str:
        return "int or str"

    def __str__(self) -> str:
        return f'a number of bytes of at least 0, or text such as "64MB" (units: {", ".join(list(UNITS)[1:])})'


def bytes_of(value: int | str) -> int:
    """Return a number of bytes, which may be given as text.

    Examples
    --------
    >>> from kernling.estimators.constraints import bytes_of
    >>> bytes_of("64MB")
    64000000
    """
    text = str(value)
    digits = text.rstrip("".join(UNITS) + " ")
    return int(digits) * UNITS[text.removeprefix(digits).strip()]


WEIGHT = Real(0.0, LARGEST_WEIGHT, extreme=math.inf)


class Weights(NamedTuple):
    """A dict from labels to weights."""

    def admits(self, value: Any) -> bool:
        return isinstance(value, dict) and all(WEIGHT.admits(weight) for weight in value.values())

    @property
    def kind(self) -> str:
        return "dict"

    def __str__(self) -> str:
        return f"a dict of weights from 0 to {LARGEST_WEIGHT:g}"


Rule = Real | Whole | Bytes | OneOf | InstanceOf | Weights
NOTHING = OneOf((None,))
SWITCH = InstanceOf((bool, np.bool_), "True or False", "bool")
POSITIVE = Real(0.0, strict=True)


def check(name: str, values: dict[str, Any], rules: dict[str, tuple[Rule, ...]]) -> None:
    """Raise for the first invalid parameter: TypeError for a wrong type, ValueError for a wrong value."""
    for parameter, options in rules.items():
        value = values[parameter]
        if any(rule.admits(value) for rule in options):
            continue
        wrong = ValueError if _right_type(value, options) else TypeError
        allowed = ", or ".join(map(str, options))
        raise wrong(f"{name}: {parameter} must be {allowed}{_size(value, options)}, not {short(value)}")


def _size(value: Any, options: tuple[Rule, ...]) -> str:
    """Return the part of a message about a number that is too large or too small."""
    reals = [rule for rule in options if isinstance(rule, Real)]
    if not reals or not _is_a(numbers.Real, value) or not 0.0 < abs(value) < math.inf or not reals[0].is_extreme(value):
        return ""
    return f" with an absolute value from {1.0 / reals[0].extreme:g} to {reals[0].extreme:g}"


def short(value: Any) -> str:
    """Return the text of a value for messages, truncated if it is long."""
    text = " ".join(repr(value).split())
    return text if len(text) <= 100 else f"{text[:100]}..."


def _right_type(value: Any, options: tuple[Rule, ...]) -> bool:
    if isinstance(value, bool):
        return False
    if isinstance(value, dict):
        return any(isinstance(rule, Weights) for rule in options)
    if isinstance(value, numbers.Real):
        return any(isinstance(rule, (Real, Whole, Bytes)) for rule in options)
    if isinstance(value, str) and any(isinstance(rule, Bytes) for rule in options):
        return True
    return isinstance(value, str) and any(isinstance(v, str) for r in options if isinstance(r, OneOf) for v in r.values)
