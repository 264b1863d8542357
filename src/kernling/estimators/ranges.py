"""Search ranges of parameters, declared by each estimator."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from .constraints import Real, Whole


class Log(NamedTuple):
    """Numbers between two limits, uniform on a logarithmic scale."""

    low: float
    high: float

    def at(self, share: float, base: float) -> float:
        """Return the number at this fraction of the range, from 0 to 1."""
        return math.exp(math.log(self.low) + share * (math.log(self.high) - math.log(self.low)))

    def grid(self, n: int, base: float) -> list[float]:
        """Return n evenly spaced numbers, including the ends."""
        return [self.at(i / (n - 1) if n > 1 else 0.5, base) for i in range(n)]


class Times(NamedTuple):
    """Multiples of the parameter's default value for the data, uniform on a logarithmic scale."""

    low: float
    high: float

    def at(self, share: float, base: float) -> float:
        """Return the number at this fraction of the range, from 0 to 1."""
        return base * Log(self.low, self.high).at(share, base)

    def grid(self, n: int, base: float) -> list[float]:
        """Return n evenly spaced numbers, including the ends."""
        return [base * value for value in Log(self.low, self.high).grid(n, base)]


class Among(NamedTuple):
    """One of a few values."""

    values: tuple[Any, ...]

    def at(self, share: float, base: float) -> Any:
        """Return the value at this fraction of the list, from 0 to 1."""
        return self.values[min(int(share * len(self.values)), len(self.values) - 1)]

    def grid(self, n: int, base: float) -> list[Any]:
        """Return all values."""
        return list(self.values)


class Rounded(NamedTuple):
    """Another range, rounded to integers."""

    of: Log | Times

    def at(self, share: float, base: float) -> int:
        """Return the number at this fraction of the range, from 0 to 1."""
        return round(self.of.at(share, base))

    def grid(self, n: int, base: float) -> list[int]:
        """Return at most n numbers, including the ends."""
        return sorted({round(value) for value in self.of.grid(n, base)})


Range = Log | Times | Among | Rounded
GAMMA = Times(1 / 32, 32)


def ranges_of(estimator: Any) -> dict[str, Range]:
    """Return the ranges that an estimator, or a pipeline's last step, declares."""
    if hasattr(estimator, "steps"):
        name, last = estimator.steps[-1]
        return {f"{name}__{own}": values for own, values in ranges_of(last).items()}
    return {name: declared.search for name, declared in estimator.parameters.items() if declared.search is not None}


def fitting(ranges: Mapping[str, Range], estimator: Any) -> dict[str, Range]:
    """Return the ranges for the parameters of an estimator or pipeline, rounded for integer parameters."""
    whole = [name for name, of in ranges.items() if isinstance(of, (Log, Times)) and _is_whole(name, estimator)]
    return {**ranges, **{name: Rounded(ranges[name]) for name in whole}}  # type: ignore[arg-type]


def _is_whole(name: str, estimator: Any) -> bool:
    if hasattr(estimator, "steps"):
        step, _, own = name.partition("__")
        return _is_whole(own, dict(estimator.steps).get(step))
    declared = getattr(estimator, "parameters", {}).get(name)
    rules = declared.allowed if declared else ()
    return any(isinstance(rule, Whole) for rule in rules) and not any(isinstance(rule, Real) for rule in rules)
