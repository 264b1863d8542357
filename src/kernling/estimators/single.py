"""Learning and scoring one event, or a few, at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from ..core import loop
from ..core.fourier import Linear
from ..core.limits import TARGET, WEIGHT
from ..core.run import Loop
from .checking import one_row
from .constraints import short
from .turns import TakesTurns

NUMBERS: Any = (float, int, np.floating, np.integer, np.bool_)


BUFFERS = ("_one", "_few", "_allowed")  # attributes that only make the next call faster


class SingleEvents(TakesTurns):
    """The methods for single events and small batches; arrays of the model's type and width are checked by compiled code."""

    learner: ClassVar[Any]
    _setup: Any
    _params: Any
    _problem: Any
    _state: Any
    _largest: float
    _rng: np.random.Generator
    verbose: Any
    block_size: int
    _stream: Callable
    _next_target: Callable[[float], float]

    def learn_one(self, x, y, sample_weight=1.0):
        """Learn one event, a 1-D array; faster than ``partial_fit`` for single events."""
        turns = self._turns
        with turns.lock:
            if turns.predicting:
                turns.wait()
            target = self._target_of(y) if "_state" in self.__dict__ else None
            if target is None:  # nothing has been learned yet, or the class is new
                self._stream(one_row(x)[np.newaxis], [y], [sample_weight])
                return self
            if type(sample_weight) is not float or not 0.0 <= sample_weight <= WEIGHT:
                sample_weight = _checked_weight(sample_weight)
            x = self._event(x)
            counts, scale = (
                self.__dict__.get("_counts"),
                self.__dict__.get("_target_scale"),
            )  # restored after an error
            weight = self._weight_of(y, sample_weight)
            if weight > 0.0:  # otherwise the row is skipped entirely, and draws no random numbers
                state, target = None, self._next_target(target)
                try:
                    state = self._one.learn(self._state, x, target, weight, self._largest, self._rng)
                finally:
                    if state is None and counts is not None:
                        self._counts = counts
                    if state is None and scale is not None:
                        self._target_scale = scale
                if state is not self._state:
                    self._state = self._known(state)
        return self

    def score_one(self, x):
        """Return the score of one event, a 1-D array: a number, or one number per class; 0 before any learning."""
        with self._turns.lock:
            if "_state" not in self.__dict__:
                return 0.0
            x = self._event(x)
            scores = self._known(self._one.score(self._state, x, self._largest))
            return scores.item() if scores.size == 1 else scores.copy()

    def _event(self, x) -> np.ndarray:
        """Return an event as an array of the model's type and width."""
        one = self.__dict__.get("_one")
        if one is None:
            one = self._one = loop.Single(self.learner.loop, self._setup, self._params, self._state)
        if type(x) is np.ndarray and x.dtype is one.dtype and x.shape == one.shape and x.strides == one.strides:
            return x
        x = one_row(x)
        if x.shape != one.shape:
            raise ValueError(f"x has shape {x.shape}, but this model expects {one.shape}")
        try:
            return np.ascontiguousarray(x, dtype=one.dtype)
        except (ValueError, TypeError, OverflowError) as error:
            raise ValueError(f"x must contain only numbers: {error}") from None

    def _are_few(self, X) -> bool:
        """Return whether the rows are so few that buffers are kept for the next call; steps on points check every event."""
        plain = isinstance(self.learner.loop, Loop) and not self.verbose and not sparse.issparse(X)
        return plain and len(X) <= self.block_size and not any(isinstance(part, Linear) for part in self._state)

    def _learn_few(self, X, targets, weights, record):
        """Same as ``_learn``, in place."""
        batches = self.__dict__.get("_few")
        if batches is None:
            batches = self._few = loop.SmallBatches(self.learner.loop, self._setup, self._params, self._state)
        with loop.deferred_interrupt():
            self._state = batches.learn(self._state, X, targets, weights, self._rng)

    def _drop_buffers(self) -> None:
        """Drop what was made for other parameters."""
        for name in BUFFERS:
            self.__dict__.pop(name, None)

    def _known(self, found: Any) -> Any:
        """Return the result of compiled code, or raise if it refused the event."""
        if found is None:
            raise ValueError(f"x contains NaN or infinity, or numbers above {self._largest:g}")
        return found

    def _target_of(self, y) -> float | None:
        """Return the encoded target; None for a new label."""
        y = scalar(y)
        if not isinstance(y, NUMBERS):
            raise TypeError(f"y must be a number, not {short(y)}")
        highest = TARGET[np.dtype(self._problem.dtype).name]
        if not abs(y) <= highest:
            raise ValueError(f"y must be finite and at most {highest:g}, not {short(y)}")
        return float(y)

    def _weight_of(self, y, weight: float) -> float:
        return weight


def scalar(y: Any) -> Any:
    """Return the value of an array without dimensions."""
    return y[()] if isinstance(y, np.ndarray) and y.ndim == 0 else y


def _checked_weight(weight: Any) -> float:
    if not isinstance(weight, NUMBERS) or not 0.0 <= weight <= WEIGHT:
        raise ValueError(f"sample_weight must be a number from 0 to {WEIGHT:g}, not {short(weight)}")
    return float(weight)
