"""Conditions of theorems about events that are drawn independently."""

from __future__ import annotations

from typing import Any


def are_alike(problem: Any) -> bool:
    """Return whether the target and the weight of an event do not depend on earlier events."""
    o = problem.options
    return not o.get("standardise_target") and o.get("class_weight") != "balanced"
