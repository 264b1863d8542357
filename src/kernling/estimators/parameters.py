"""Parameters' permitted values, declared as data and checked before anything is learned."""

from __future__ import annotations

import math
import numbers
from typing import Any, NamedTuple

import numpy as np

from ..core.kernels import ISOTROPIC, KINDS


class Real(NamedTuple):
    """A number between two limits; ``strict`` leaves the lower one out."""

    low: float = -math.inf
    high: float = math.inf
    strict: bool = False

    def admits(self, value: Any) -> bool:
        if not isinstance(value, numbers.Real) or isinstance(value, (bool, np.bool_)):
            return False
        number = float(value)
        return (self.low < number if self.strict else self.low <= number) and number <= self.high and math.isfinite(number)

    def __str__(self) -> str:
        if math.isinf(self.low) and math.isinf(self.high):
            return "a number"
        lower = f"greater than {self.low:g}" if self.strict else f"at least {self.low:g}"
        return f"a number {lower}" + ("" if math.isinf(self.high) else f" and at most {self.high:g}")


class Whole(NamedTuple):
    """A whole number of at least ``low``."""

    low: int = 1

    def admits(self, value: Any) -> bool:
        return isinstance(value, numbers.Integral) and not isinstance(value, (bool, np.bool_)) and int(value) >= self.low

    def __str__(self) -> str:
        return f"a whole number of at least {self.low}"


class OneOf(NamedTuple):
    """One of a few values."""

    values: tuple

    def admits(self, value: Any) -> bool:
        return any(value is v or (isinstance(value, str) and value == v) for v in self.values)

    def __str__(self) -> str:
        return " or ".join(repr(v) for v in self.values)


class Kind(NamedTuple):
    """An instance of a type."""

    types: tuple[type, ...]
    words: str

    def admits(self, value: Any) -> bool:
        return isinstance(value, self.types)

    def __str__(self) -> str:
        return self.words


class Weights(NamedTuple):
    """A dict from labels to weights."""

    def admits(self, value: Any) -> bool:
        return isinstance(value, dict) and all(Real(0.0).admits(weight) for weight in value.values())

    def __str__(self) -> str:
        return "a dict of weights that are finite and not negative"


Rule = Real | Whole | OneOf | Kind | Weights
NOTHING = OneOf((None,))
SWITCH = Kind((bool, np.bool_), "True or False")
POSITIVE = Real(0.0, strict=True)
KERNEL = (OneOf(tuple(KINDS)),)
ISOTROPIC_KERNEL = (OneOf(ISOTROPIC),)

COMMON: dict[str, tuple[Rule, ...]] = {
    "kernel": KERNEL,
    "gamma": (OneOf(("scale",)), POSITIVE),
    "degree": (Whole(1),),
    "coef0": (Real(),),
    "random_state": (NOTHING, Whole(0), Kind((np.random.Generator, np.random.RandomState), "a NumPy random generator")),
    "dtype": (OneOf(("float64", "float32", np.float64, np.float32, np.dtype("float64"), np.dtype("float32"))),),
    "block_size": (Whole(1),),
    "passes": (Whole(1),),
    "shuffle": (SWITCH,),
    "n_jobs": (NOTHING, Whole(-1)),
    "verbose": (SWITCH, Whole(0)),
}
FEATURES: dict[str, tuple[Rule, ...]] = {
    "kernel": ISOTROPIC_KERNEL,
    "n_components": (Whole(1),),
    "features": (OneOf(("fourier", "orthogonal", "linear")),),
}
CLASS_WEIGHT: tuple[Rule, ...] = (NOTHING, OneOf(("balanced",)), Weights())


def check(name: str, values: dict[str, Any], rules: dict[str, tuple[Rule, ...]]) -> None:
    """Raise for the first parameter that breaks its rule: TypeError for a wrong type, ValueError for a wrong value."""
    for parameter, options in rules.items():
        value = values[parameter]
        if any(rule.admits(value) for rule in options):
            continue
        wrong = ValueError if _right_type(value, options) else TypeError
        raise wrong(f"{name}: {parameter} must be {', or '.join(map(str, options))}, not {value!r}")


def _right_type(value: Any, options: tuple[Rule, ...]) -> bool:
    if isinstance(value, bool):
        return False
    if isinstance(value, dict):
        return any(isinstance(rule, Weights) for rule in options)
    if isinstance(value, numbers.Real):
        return any(isinstance(rule, (Real, Whole)) for rule in options)
    return isinstance(value, str) and any(isinstance(v, str) for r in options if isinstance(r, OneOf) for v in r.values)
