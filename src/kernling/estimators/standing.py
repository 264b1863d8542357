"""Restoring a model after a call that has failed or was stopped."""

from __future__ import annotations

from typing import Any

from ..core.loop import events_of
from .randomness import SOURCES, RngState


class Standing:
    """An estimator as it is now, without its arrays: a call that may stop or fail half-way learns a copy of them."""

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

    def restore(self) -> None:
        """Restore the attributes and the states of the generators."""
        restore_attributes(self._model, self._attributes)
        for generator in self._generators:
            generator.restore()


def restore_attributes(model: Any, attributes: dict[str, Any]) -> None:
    """Restore the attributes, without removing those that other threads may read meanwhile."""
    model.__dict__.update(attributes)
    for name in model.__dict__.keys() - attributes.keys():
        del model.__dict__[name]
