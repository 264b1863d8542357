"""What answers for experts: their weights after all events, brought up to date when they have learned, and compiled calls."""

from __future__ import annotations

import math
import threading
from typing import Any

import numpy as np

from ..compiler import address, by_address, entry_point, strided
from ..core.expansion import EVENTS
from ..core.kernels import Kernel
from ..core.rows import Rows
from .experts import Experts, new_answers
from .learning import ANSWER, ANSWER_ONE, PREPARE, Seen, Side, kind_of


class Answering:
    """The answers of a state, for several threads; only the buffers of ``of_event`` are for one at a time."""

    def __init__(self, state: Experts, kernel: Kernel, standardise: bool):
        self._state, self._said = state, state.answering
        self._gamma, self._events = float(self._said.early.gamma[0]), -1.0
        self._lock = threading.Lock()
        side = Side.of(self._said, kernel, standardise)
        self.answers = new_answers(self._said)
        self._side, self._answers, self._kind = by_address(side), by_address(self.answers), kind_of(self._said)
        self._prepare = entry_point(PREPARE[self._kind], self._side, self._answers)
        self._one: Any = None

    def is_of(self, state: Experts) -> bool:
        """Return whether these are the answers of a state, which may have learned in place."""
        said = state.answering
        return state is self._state and said is self._said and said.early.gamma[0] == self._gamma

    def follow(self) -> None:
        """Bring the weights up to date."""
        if self._events != self._state.model.clock[EVENTS]:
            with self._lock:
                self._prepare(address(self._side), address(self._answers))
                self._events = self._state.model.clock[EVENTS]

    def outputs(self, rows: Rows, part: range) -> np.ndarray:
        """Return the outputs of some rows, (outputs, rows)."""
        return self._answer(rows, part)[0]

    def expert_scores(self, rows: Rows, part: range) -> np.ndarray:
        """Return what each expert says of some rows, (experts, outputs, rows); predictions of values are clipped."""
        out, seen = self._answer(rows, part)
        shape = len(self._said.names), *out.shape
        return seen.scores[: math.prod(shape)].reshape(shape)

    def _answer(self, rows: Rows, part: range) -> tuple[np.ndarray, Seen]:
        out = np.empty((self._said.model.outputs, len(part)))
        seen = Seen(self._said, len(part))
        ANSWER[self._kind[0]](self._side, self._answers, by_address(seen), by_address(rows), part.start, out)
        return out, seen

    def of_event(self, x: np.ndarray, largest: float) -> np.ndarray | None:
        """Return the outputs of an event of the model's type and width; None if it holds what cannot be scored."""
        if self._one is None:
            seen, out = by_address(Seen(self._said, 1)), np.empty((self._said.model.outputs, 1))
            records = self._side, self._answers, seen
            entry = entry_point(ANSWER_ONE[self._kind[0]], *records, strided(x), 1.0, out)
            self._one = entry, tuple(map(address, records)), seen, out
        entry, records, _, out = self._one
        return out[:, 0].copy() if entry(*records, x, largest, out) else None
