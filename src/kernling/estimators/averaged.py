"""Estimators that can predict with the mean of their latest models."""

from __future__ import annotations

from ..core.averages import KINDS, averaged_share
from .parameters import OneOf, Real, Rule

OUTPUT: dict[str, tuple[Rule, ...]] = {
    "output": (OneOf(tuple(KINDS)),),
    "suffix": (Real(0.0, 1.0, strict=True),),
}


class Averaged:
    """Has ``output="suffix"``, the mean of a share of all models, the latest."""

    suffix_fraction_ = property(
        lambda self: averaged_share(self._fitted().model, self._setup.output, self._setup.fraction),
        doc="Share of all models in the mean: ``suffix`` after ``fit``, up to 1.25 times as much on an open stream.",
    )
