"""Alarms: a model that watches its errors before learning, and the columns of its rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from ..components.alarms import ALARMS, Alarm, watch_events, watch_labels, watch_values
from ..components.columns import WIDEST
from ..core.state import copied
from . import labels
from .constraints import SWITCH
from .parameters import parameter


class RaisesAlarms:
    """A model with alarms, or a pipeline that ends in one."""

    on_alarm: Callable[[Alarm], Any] | None = None  # called with each alarm after the call in which it was found
    alarms_: list[Alarm]
    alarm_count_: int

    def __getstate__(self) -> dict[str, Any]:
        state: Any = super().__getstate__()
        return {name: value for name, value in state.items() if name != "on_alarm"}

    def _telling(self) -> AbstractContextManager:
        """Return a context that calls ``on_alarm`` with the alarms which its block raises, once it is complete."""
        return nullcontext() if self.on_alarm is None else self._told_of(self.on_alarm)

    @contextmanager
    def _told_of(self, on_alarm: Callable[[Alarm], Any]) -> Iterator[None]:
        before = getattr(self, "alarm_count_", 0)  # there is none before the first event
        yield
        new = getattr(self, "alarm_count_", 0) - before
        for alarm in self.alarms_[-new:] if new > 0 else ():
            on_alarm(alarm)


class Watched(RaisesAlarms):
    """Mixin of classifiers and regressors that watch themselves (components/alarms.py)."""

    watch: bool = parameter(
        default=False,
        allowed=SWITCH,
        doc="Whether prediction errors and columns are watched for changes of the stream: see ``alarms_``.",
    )
    task: ClassVar[str]
    classes_: np.ndarray
    _watch: Any  # a Watch, or None
    _fitted: Callable[[], Any]
    _source: Any = None  # rows as they were before the steps of a pipeline

    @property
    def alarms_(self) -> list[Alarm]:  # type: ignore[override]
        """The latest 16 alarms, the oldest first; needs ``watch=True``."""
        return named(self.numbered_alarms(), getattr(self, "feature_names_in_", ()))

    @property
    def alarm_count_(self) -> int:  # type: ignore[override]
        """Number of alarms so far; needs ``watch=True``."""
        self._fitted()
        if self._watch is None:
            raise AttributeError("alarms need watch=True, before the first event is learned")
        return int(self._watch.noted[ALARMS])

    def numbered_alarms(self) -> list[Alarm]:
        """Return the latest alarms with the numbers of columns, those of ``watching``."""
        _ = self.alarm_count_  # raises if there are none
        return self._watch.latest()

    @contextmanager
    def watching(self, rows: Any) -> Iterator[None]:
        """Watch the columns of these rows instead of those that are learned meanwhile: what a pipeline was given."""
        self._source = rows
        try:
            yield
        finally:
            self._source = None

    def _watch_events(self, said: np.ndarray, y: np.ndarray, rows: Any, weights: np.ndarray, is_new: bool) -> None:
        """Watch events that have been learned, their rows, and what was said of them before."""
        learned = weights > 0.0
        if not learned.any():
            return
        said, y, watch = said[learned], y[learned], copied(self._watch)  # the old one is restored if the call fails
        if self.task == "regression":
            found = watch_values(watch.losses, said[:, 0], y)
        else:
            wrong = labels.decide(self.classes_, said) != y
            wrong[0] |= is_new and learned[0]  # its label could not be said
            found = watch_labels(watch.losses, wrong, np.searchsorted(self.classes_, y))
        self._watch = watch_events(watch, found, _dense(rows, learned))


def _dense(rows: Any, learned: np.ndarray) -> np.ndarray:
    """Return the rows that were learned as an array, without columns if there are too many."""
    if rows.shape[1] > WIDEST:
        return np.empty((int(learned.sum()), 0))
    rows = rows if learned.all() else rows[learned]
    return rows.toarray() if sparse.issparse(rows) else rows


def named(alarms: list[Alarm], names: Sequence[str]) -> list[Alarm]:
    """Return alarms with the names of columns, or their numbers if they have none."""
    return [
        alarm._replace(columns={names[c] if len(names) else c: share for c, share in alarm.columns.items()}) for alarm in alarms
    ]
