"""Restoring a model after a call that has failed or was stopped."""

from __future__ import annotations

import copy
from typing import Any

from ..driver.events import Interrupted, events_of
from .randomness import SOURCES, RngState


class Snapshot:
    """An estimator as it is now, without its arrays: a call that may stop or fail half-way learns a copy of them.

    A ``with`` statement restores it if an error is raised.
    """

    learns_in_place = False  # whether all rows have been learned as soon as any has

    def __init__(self, model: Any):
        self._model, self._attributes = model, dict(vars(model))
        sources = self._attributes.get("_rng"), model.random_state
        self._generators = [RngState(source) for source in sources if isinstance(source, SOURCES)]
        self._events = self._events_now()

    def _events_now(self) -> float:
        state = vars(self._model).get("_state")
        return 0.0 if state is None else events_of(state)

    def has_learned(self) -> bool:
        """Return whether the estimator has learned events since."""
        return self._events_now() != self._events

    def __enter__(self) -> Snapshot:
        return self

    def __exit__(self, _kind: Any, error: BaseException | None, _trace: Any) -> None:
        if error is None or isinstance(error, Interrupted) or (self.learns_in_place and self.has_learned()):
            return
        self.restore()

    def restore(self) -> None:
        """Restore the attributes and the states of the generators."""
        restore_attributes(self._model, self._attributes)
        for generator in self._generators:
            generator.restore()


class StepsSnapshot:
    """A pipeline as it is now: a ``with`` statement restores all steps if an error is raised.

    Not if the last step, which restores itself, has learned the rows.
    """

    last: Snapshot | None = None  # before it learns

    def __init__(self, pipeline: Any):
        self._pipeline, self._attributes = pipeline, dict(vars(pipeline))
        parts = [part for _, part in self._attributes.get("steps_", ())[:-1]]
        self._parts = [(part, dict(vars(part) if hasattr(part, "to_state") else vars(copy.deepcopy(part)))) for part in parts]

    def __enter__(self) -> StepsSnapshot:
        return self

    def __exit__(self, _kind: Any, error: BaseException | None, _trace: Any) -> None:
        if error is None or (self.last is not None and self.last.has_learned()):
            return
        restore_attributes(self._pipeline, self._attributes)
        for part, attributes in self._parts:
            restore_attributes(part, attributes)


def restore_attributes(model: Any, attributes: dict[str, Any]) -> None:
    """Restore the attributes, without removing those that other threads may read meanwhile."""
    model.__dict__.update(attributes)
    for name in model.__dict__.keys() - attributes.keys():
        del model.__dict__[name]
