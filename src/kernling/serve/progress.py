"""Performance of a model: its loss overall and in a sliding window, with that of a constant answer."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..evaluate.references import ConstantAnswer

RECENT = 100  # values that are kept, for the page
PARTS = ("value", "predicted", "low", "high")


class RunningLosses:
    """Running losses of a model and of the constant answer, which is the majority class or the mean so far.

    The loss is 1 for a wrong label, and the squared error of a value.

    Examples
    --------
    >>> from kernling.serve.progress import RunningLosses
    >>> progress = RunningLosses("classification", window=2)
    >>> progress.update(["b", "a", "a", "a"], ["a", "a", "a", "a"])
    >>> progress.summary()["overall"], progress.summary()["constant"], progress.answer
    (0.25, 0.5, 'a')
    """

    def __init__(self, task: str, window: int):
        self.task = task
        self.window = window
        self.events = 0
        self.total, self.constant_total = 0.0, 0.0
        self.lately = np.empty((2, 0))  # losses of the model and of the constant answer
        self._constant = ConstantAnswer(task)
        self.recent = np.empty((len(PARTS), 0))  # the latest values, predictions before learning, and limits

    @property
    def answer(self) -> Any:
        """The constant answer now."""
        return self._constant.answer

    @property
    def counts(self) -> dict[Any, int]:
        """Number of events of each class."""
        return self._constant.counts

    def add_recent(self, y: np.ndarray, predicted: np.ndarray, limits: np.ndarray) -> None:
        """Keep the latest values with their predictions and intervals, (events, 2), from before they were learned."""
        self.recent = np.hstack([self.recent, np.vstack([y, predicted, limits.T])])[:, -RECENT:]

    def update(self, y: Sequence[Any], predicted: Sequence[Any] | None) -> None:
        """Update with events and the model's predictions before it learned them; None for the constant answer."""
        constant = self._losses(y, self._constant.answers_before(y))
        losses = constant if predicted is None else self._losses(y, predicted)
        self.events += len(y)
        self.total += float(losses.sum())
        self.constant_total += float(constant.sum())
        self.lately = np.concatenate([self.lately, [losses, constant]], axis=1)[:, -self.window :]

    def _losses(self, y: Sequence[Any], predicted: Sequence[Any]) -> np.ndarray:
        if self.task == "regression":
            return (np.asarray(y, dtype=np.float64) - np.asarray(predicted, dtype=np.float64)) ** 2
        return np.array([a != b for a, b in zip(y, predicted, strict=True)], dtype=np.float64)

    def summary(self) -> dict[str, Any]:
        """Return the number of events and the current losses: mistake rates, or root mean squared errors."""
        lately = self.lately.mean(axis=1) if self.events else np.zeros(2)
        found = {
            "overall": self.total / max(self.events, 1),
            "lately": float(lately[0]),
            "constant": self.constant_total / max(self.events, 1),
            "constant_lately": float(lately[1]),
        }
        values = {name: value**0.5 for name, value in found.items()} if self.task == "regression" else found
        measure = "rmse" if self.task == "regression" else "mistakes"
        shown = {"recent": self._plain_recent()} if self.recent.size else {}
        return {"events": self.events, "measure": measure, "window": self.lately.shape[1], **values, **shown}

    def _plain_recent(self) -> dict[str, list[float | None]]:
        """Return the latest values with their predictions and limits; JSON has no infinity."""
        rows = self.recent.tolist()
        return {part: [one if math.isfinite(one) else None for one in row] for part, row in zip(PARTS, rows, strict=True)}

    def frequencies(self) -> dict[Any, float]:
        """Return the share of each class so far."""
        return {label: count / self.events for label, count in self.counts.items()}

    def to_plain(self) -> dict[str, Any]:
        """Return the state as JSON-compatible data."""
        return {
            "task": self.task,
            "window": self.window,
            "events": self.events,
            "totals": [self.total, self.constant_total],
            "lately": self.lately.tolist(),
            "constant": self._constant.to_plain(),
            **({"recent": self._plain_recent()} if self.recent.size else {}),
        }

    @classmethod
    def from_plain(cls, plain: dict[str, Any]) -> RunningLosses:
        """Restore the progress from the result of ``to_plain``."""
        progress = cls(plain["task"], plain["window"])
        progress.events = plain["events"]
        progress.total, progress.constant_total = plain["totals"]
        progress.lately = np.array(plain["lately"], dtype=np.float64).reshape(2, -1)
        progress._constant = ConstantAnswer.from_plain(plain["task"], plain["constant"])
        if "recent" in plain:
            recent = np.array([plain["recent"][part] for part in PARTS], dtype=np.float64)
            progress.recent = np.where(np.isnan(recent), np.array([[np.nan], [np.nan], [-np.inf], [np.inf]]), recent)
        return progress
