"""Where good values of parameters are looked for, declared by each estimator."""

from __future__ import annotations

import math
from typing import Any, NamedTuple


class Log(NamedTuple):
    """Numbers between two limits, evenly on a logarithmic scale."""

    low: float
    high: float

    def at(self, share: float, base: float) -> float:
        """The number this far along, from 0 to 1."""
        return math.exp(math.log(self.low) + share * (math.log(self.high) - math.log(self.low)))

    def grid(self, n: int, base: float) -> list[float]:
        """So many numbers, ends included."""
        return [self.at(i / (n - 1) if n > 1 else 0.5, base) for i in range(n)]


class Times(NamedTuple):
    """Multiples of what the parameter is by default on the data at hand, evenly on a logarithmic scale."""

    low: float
    high: float

    def at(self, share: float, base: float) -> float:
        """The number this far along, from 0 to 1."""
        return base * Log(self.low, self.high).at(share, base)

    def grid(self, n: int, base: float) -> list[float]:
        """So many numbers, ends included."""
        return [base * value for value in Log(self.low, self.high).grid(n, base)]


class Among(NamedTuple):
    """One of a few values."""

    values: tuple[Any, ...]

    def at(self, share: float, base: float) -> Any:
        """The value this far along, from 0 to 1."""
        return self.values[min(int(share * len(self.values)), len(self.values) - 1)]

    def grid(self, n: int, base: float) -> list[Any]:
        """All of them."""
        return list(self.values)


Range = Log | Times | Among
GAMMA = Times(1 / 32, 32)
GENERIC: dict[str, Range] = {"gamma": GAMMA, "lam": Log(1e-8, 1e-2), "eta": Log(1e-2, 10.0), "C": Log(1e-2, 10.0)}


def ranges_of(estimator: Any) -> dict[str, Range]:
    """The ranges that an estimator, or a pipeline's last step, declares, or those that such names have everywhere."""
    if hasattr(estimator, "steps"):
        name, last = estimator.steps[-1]
        return {f"{name}__{own}": values for own, values in ranges_of(last).items()}
    known = estimator.get_params(deep=False)
    return {name: values for name, values in (estimator.search or GENERIC).items() if name in known}
