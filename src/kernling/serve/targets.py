"""Targets of requests: labels or values."""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np

from ..core.limits import TARGET
from ..estimators.task_choice import task_of
from ..text import flaw
from .refusal import bad_row
from .settings import Settings

KINDS: dict[type, str] = {str: "text", bool: "booleans", int: "whole numbers"}
DTYPES: dict[str, Any] = {"text": np.str_, "booleans": np.bool_, "whole numbers": np.int64}
HIGHEST = 2**63


class Targets(NamedTuple):
    """The kind of targets that a model learns: labels of one type, or values; unknown before the first target."""

    task: str | None = None
    kind: str | None = None  # of labels

    def widened(self, values: Sequence[Any]) -> Targets:
        """Infer the kind from the targets of a request, by the same rule as everywhere: see ``task_of``."""
        task = self.task or (task_of(values) if set(map(type, values)) <= {*KINDS, float} else "classification")
        if task == "regression" or self.kind:
            return Targets(task, self.kind)
        return Targets(task, KINDS.get(type(_whole(values[0]))))

    def read(self, values: Sequence[Any], places: Sequence[int], settings: Settings) -> list[Any]:
        """Return checked targets; ``places`` are the indices of their rows in the request."""
        check = self._value if self.task == "regression" else self._label
        if self.task == "regression" or not set(map(type, values)) <= {str, bool}:
            return [check(value, place, settings) for value, place in zip(values, places, strict=True)]
        firsts = dict(zip(reversed(values), reversed(places), strict=True))  # labels repeat: each is checked once
        for value, place in sorted(firsts.items(), key=itemgetter(1)):
            check(value, place, settings)
        return list(values)

    def _value(self, value: Any, place: int, settings: Settings) -> float:
        if type(value) not in (int, float) or not -TARGET["float64"] <= value <= TARGET["float64"]:
            raise bad_row(place, f"the target must be a number from -{TARGET['float64']:g} to {TARGET['float64']:g}")
        return float(value)

    def _label(self, value: Any, place: int, settings: Settings) -> Any:
        value = _whole(value)
        if KINDS.get(type(value)) != self.kind or self.kind is None:
            cure = "; create the model with task regression if it is to learn values" if _has_fraction(value) else ""
            raise bad_row(place, f"the target must be a label, here {self.kind or ', '.join(KINDS.values())}{cure}")
        if type(value) is str and not 1 <= len(value) <= settings.characters:
            raise bad_row(place, f"a label must have 1 to {settings.characters} characters")
        if type(value) is str and flaw(value):
            raise bad_row(place, f"the label {flaw(value)}: remove it")
        if type(value) is int and not -HIGHEST <= value < HIGHEST:
            raise bad_row(place, "a label that is a whole number must fit into 64 bits")
        return value

    def array(self, values: Sequence[Any]) -> np.ndarray:
        """Convert checked targets to an array for a model."""
        return np.array(values, dtype=np.float64 if self.kind is None else DTYPES[self.kind])


def _has_fraction(value: Any) -> bool:
    return type(value) is float and not value.is_integer()


def _whole(value: Any) -> Any:
    """Convert 3.0 to 3, since some clients write whole numbers with a fraction."""
    return int(value) if type(value) is float and value.is_integer() else value
