"""Scoring of rows with an expansion, a linear model on features, or both."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np

from ..compiler import address, by_address, entry_point
from ..core.averages import freeze_points
from ..core.blas import one_thread
from ..core.expansion import EVENTS, Expansion
from ..core.fourier import Linear, freeze_features
from ..core.kernels import Kernel
from ..core.rows import Rows, row_count
from ..core.setup import Setup
from .loops import Notes
from .outputs import Scorer, add_scores


class ScoreFunction(NamedTuple):
    """The scores of a model: the sum of its parts, each with one group of coefficients, plus an offset for each output."""

    kernel: Kernel
    parts: list[Expansion | Linear]
    offset: np.ndarray  # (outputs,)


def score(setup: Setup, state: Any, rows: Rows, threads: int = 1) -> np.ndarray:
    """Return the output of the model for each row, (rows, outputs); the result does not depend on the number of threads."""
    n = row_count(rows)
    out = np.zeros((n, state.model.outputs))
    blocks = -(-n // setup.block_size)
    threads = max(1, min(threads, blocks))
    cuts = [setup.block_size * (blocks * i // threads) for i in range(threads)] + [n]
    for part in frozen_parts(setup, state):
        if threads == 1:
            add_scores(setup, part, rows, out, 0, n)
            continue
        add = one_thread(add_scores)
        with ThreadPoolExecutor(threads) as pool:
            for job in [pool.submit(add, setup, part, rows, out, *cuts[i : i + 2]) for i in range(threads)]:
                job.result()
    return out


def frozen_parts(setup: Setup, state: Any) -> list[Expansion | Linear]:
    """Return the functions whose sum is the output, each with one group of coefficients and no scale."""
    return [frozen.part for frozen in _frozen(setup, state)]


class _Frozen:
    """A part of a state with the current output's coefficients as its only group, and no scale."""

    def __init__(self, setup: Setup, part: Expansion | Linear):
        groups, _, width = part.coef.shape
        self.part = part._replace(coef=np.empty((1, part.outputs, width)), places=np.arange(part.outputs))
        self._record = by_address(part)
        more = setup.output, setup.fraction, np.empty(groups), self.part.coef
        self._freeze = entry_point(_FREEZE[type(part)], self._record, *more)
        self._arguments = address(self._record), *more
        self.update()

    def update(self) -> None:
        """Follow a part that has learned in place."""
        self._freeze(*self._arguments)


_FREEZE = {Expansion: freeze_points, Linear: freeze_features}


def _frozen(setup: Setup, state: Any) -> list[_Frozen]:
    return [_Frozen(setup, part) for part in state if isinstance(part, (Expansion, Linear))]


class FewScores:
    """Scores a few rows of one state, at most ``block_size``, with buffers that are created once: for one thread at a time.

    If there are notes, they are thresholds, which are subtracted.
    """

    def __init__(self, setup: Setup, state: Any, notes: Notes | None):
        centre = state.model.centre
        self.state, self._clock = state, state.model.clock
        self._events = self._clock[EVENTS]
        frozen = _frozen(setup, state)
        self._sources: list[Any] = [*frozen, *([] if notes is None else [notes])]
        given = np.zeros((setup.block_size, len(centre)), centre.dtype)
        parts, threshold = [one.part for one in frozen], None if notes is None else notes.noted
        self._scorer = Scorer(setup, parts, given, threshold, is_event=False)
        self._calls, self._out, self._best = self._scorer.calls, self._scorer.out, self._scorer.best

    def score(self, X: np.ndarray, largest: float) -> bool:
        """Compute the outputs of rows of the model's type and width; return False if any cannot be scored."""
        events = self._clock[EVENTS]
        if events != self._events:
            for source in self._sources:
                source.update()
            self._events = events
        with one_thread.where_needed():
            for score, record in self._calls:
                if not score(record, X, largest):
                    return False
        return True

    def outputs(self, rows: int) -> np.ndarray:
        """Return the outputs of the rows that were scored last."""
        return self._out[:rows].copy()

    def best(self, rows: int) -> np.ndarray:
        """Return the index of the best output of each of these rows, or whether the only one is not negative; not a copy."""
        return self._best[:rows]
