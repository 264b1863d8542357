"""The memory of models: limits that are checked when a model is created, and before it grows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from ..estimators.labels import output_count
from ..estimators.sizes import bytes_in_use, most_points, size_within
from ..pipeline import last_step
from .refusal import Refused, first_line
from .settings import Settings
from .specs import new_pipeline

if TYPE_CHECKING:
    from .live import LiveModel, Traits

STEP = 4096  # points by which the size of a model is estimated ahead if its parameters do not limit them
CURE = "choose smaller parameters, fewer columns or fewer classes, or give the service more memory (--memory-mb)"


class Claim(NamedTuple):
    """The shape that a model may grow to without being checked again, and its size in bytes."""

    columns: int = 0
    outputs: int = 0
    points: int = 0
    bytes: int = 0
    is_limited: bool = False  # whether parameters limit the points, to this number


def used_by(model: Any) -> int:
    """Return the bytes of a fitted model."""
    first = model.steps_[0][1] if hasattr(model, "steps_") else model
    return bytes_in_use(last_step(model)) + (first.nbytes if getattr(first, "takes_tables", False) else 0)


def claimed(live: LiveModel, traits: Traits, classes: int, rows: int, free: int) -> Claim:
    """Return what a model may take after so many more rows; raise if that is more than the limit, or than is free.

    Before the first rows, the columns and outputs count as one each.
    """
    model = live.current.model
    task = str(traits.targets.task or "classification")
    last = new_pipeline(live.spec, task).steps[-1][1] if model is None else last_step(model)
    columns = max(len(traits.layout.columns), 1) if model is None else last.n_features_in_
    outputs = 1 if task == "regression" else output_count(classes)
    most = live.claim.points if live.claim.is_limited else most_points(last)
    points = -(-((0 if model is None else last.n_stored_) + rows) // STEP) * STEP if most is None else most
    if (columns, outputs, points) == live.claim[:3]:
        return live.claim
    return Claim(columns, outputs, points, _size(last, columns, outputs, points, live.settings, free), most is not None)


def _size(last: Any, columns: int, outputs: int, points: int, settings: Settings, free: int) -> int:
    try:
        size = size_within(last, columns, outputs, points, settings.model_bytes)
    except (ValueError, MemoryError) as error:  # such as rows that are too wide for the method
        raise Refused(422, first_line(error) or "the model needs more memory than there is") from None
    shape = f"{type(last).__name__} with {columns:,} columns, {outputs:,} outputs and up to {points:,} points"
    if size is None:
        raise Refused(422, f"{shape} takes more than {settings.model_bytes / 2**20:,.0f} MiB: {CURE}")
    if size > free:
        raise Refused(507, f"{shape} takes {size / 2**20:,.1f} MiB, of which {max(free, 0) / 2**20:,.1f} are left: {CURE}")
    return size
