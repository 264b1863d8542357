"""The state of an ``Encode`` as plain data for model files, and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.base import clone

from .fill import Fill
from .given import given_treatments
from .late import SPARE, LateColumn
from .past import Order, wanted_of
from .prose import ARRAYS, Prose
from .scalers import scaling_from_state
from .schema import Column, Schema


class StoredEncode:
    """What an ``Encode`` has for model files."""

    def to_state(self: Any) -> dict[str, Any]:
        """Return the state as JSON-compatible data."""
        given = given_treatments(self)
        scale = getattr(self, "scale_", None) or self.scale
        names: Any = list(self.categorical)
        if isinstance(self.categorical, Mapping):
            names = {name: given[name] for name in names} if self.hash is None else {name: [] for name in names}
        return {
            "part": "Encode",
            "categorical": names,
            "numeric": list(self.numeric),
            "date": list(self.date),
            "text": list(self.text),
            "ignore": list(self.ignore),
            "missing": self.missing,
            "limit": self.limit,
            "decimal": self.decimal,
            "day_first": self.day_first,
            "hash": self.hash,
            "scale": None if scale is None else scale.to_state(),
            "schema": [column._asdict() for column in getattr(self, "_own", ())],
            "fill": self._fill.to_state() if hasattr(self, "schema_") else None,
            "named": hasattr(self, "feature_names_in_"),
            "spare": getattr(self, "_spare", 0),
            "late": [one.to_state() for one in getattr(self, "_late", ())],
            "unread": getattr(self, "unread_", {}),
            "lags": [list(one) if isinstance(one, tuple) else one for one in self.lags],
            "windows": [list(one) if isinstance(one, tuple) else one for one in self.windows],
            "time": self.time,
            "past": self._past.to_state() if hasattr(self, "schema_") else [],
            "order": [self._time, self._order.latest, self._order.count] if hasattr(self, "schema_") else [None, None, 0],
            "prose": [one.to_state() for one in getattr(self, "_prose", ())],
        }

    def to_arrays(self: Any) -> dict[str, np.ndarray]:
        """Return the arrays of the state: those of prose."""
        every = enumerate(getattr(self, "_prose", ()))
        return {f"prose.{place}.{name}": array for place, one in every for name, array in one.to_arrays().items()}

    @classmethod
    def from_state(cls: Any, state: dict[str, Any], arrays: dict[str, np.ndarray] | None = None) -> Any:
        """Restore a step from the results of ``to_state`` and ``to_arrays``."""
        scale = None if state["scale"] is None else scaling_from_state(state["scale"])
        own = (
            "categorical",
            "hash",
            "numeric",
            "date",
            "text",
            "ignore",
            "missing",
            "limit",
            "decimal",
            "day_first",
            "lags",
            "windows",
            "time",
        )
        params = {name: state[name] for name in own}
        params = {name: () if value == [] else value for name, value in params.items()}  # the default, which is not displayed
        part = cls(**params, scale=None if scale is None else clone(scale))
        given = given_treatments(part)
        schema = Schema(Column.from_plain(column) for column in state["schema"])
        names = [column.name for column in schema]
        if len(set(names)) < len(names) or not all(isinstance(name, str) for name in given):
            raise ValueError("the names of columns must be distinct strings")
        if schema:
            if not set(given) <= set(names) or not {one.name for one in wanted_of(part.lags, part.windows)} <= set(names):
                raise ValueError("the treatments do not match the columns")
            measured = sum(column.is_measured for column in schema)
            part._settle(schema, bool(state["named"]), scale, Fill.from_state(state["fill"], measured), state["spare"])
            part._restore_late(state)
            part._restore_prose(state, arrays or {})
            part._restore_past(state)
            if scale is not None and getattr(scale, "n_features_in_", part._scaled) != part._scaled:
                raise ValueError(f"the scale is for {scale.n_features_in_} columns, but {part._scaled} are scaled")
        return part

    def _restore_late(self: Any, state: dict[str, Any]) -> None:
        late = tuple(LateColumn.from_state(one) for one in state["late"])
        ends = [0, *(one.end for one in late)]
        names = [column.name for column in self._own] + [one.column.name for one in late]
        if self._spare not in (0, SPARE) or ends[-1] > self._spare or [one.first for one in late] != ends[:-1]:
            raise ValueError("the columns that came later do not fit into those kept free for them")
        counts = state["unread"]
        if len(set(names)) < len(names) or not all(type(count) is int and count > 0 for count in counts.values()):
            raise ValueError("the names of columns must be distinct, and counts positive")
        self._welcome(late)
        self.unread_ = dict(counts)

    def _restore_past(self: Any, state: dict[str, Any]) -> None:
        self._past = self._past.restored(state["past"])
        name, latest, count = state["order"]
        dates = [column.name for column in self._own if column.treatment == "date"]
        if name not in (None, *dates) or type(latest) not in (int, type(None)) or type(count) is not int or count < 0:
            raise ValueError("what is known of the order of rows is not valid")
        self._time, self._order = name, Order(latest, count)

    def _restore_prose(self: Any, state: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        texts, held = [column for column in self._own if column.treatment == "text"], state["prose"]
        if arrays.keys() != {f"prose.{place}.{name}" for place in range(len(held)) for name in ARRAYS} or len(held) != len(
            texts
        ):
            raise ValueError("what was learned from texts does not match the columns")
        own = [{name: arrays[f"prose.{place}.{name}"] for name in ARRAYS} for place in range(len(held))]
        self._prose = tuple(Prose.from_state(one, found) for one, found in zip(held, own, strict=True))
        if any(Prose.width(one.task) > column.others for one, column in zip(self._prose, texts, strict=True)):
            raise ValueError("the scores of texts do not match their columns")
