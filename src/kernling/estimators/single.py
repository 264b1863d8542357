"""Learning and scoring one event, or a few, at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from ..core import loop
from ..core.blas import one_thread
from ..core.fourier import Linear
from ..core.limits import TARGET, WEIGHT
from ..core.run import Loop
from .checking import one_row
from .constraints import short
from .turns import TakesTurns, learning

PLAIN = 2**17  # numbers in the points of a model of which a second copy is kept, to restore it
NUMBERS: Any = (float, int, np.floating, np.integer, np.bool_)


BUFFERS = ("_one", "_few", "_allowed", "_encoded")  # attributes that only make the next call faster


class SingleEvents(TakesTurns):
    """The methods for single events and small batches; arrays of the model's type and width are checked by compiled code."""

    _learn_with_statistics: Callable
    _few: Any = None
    check_own_parameters: Callable
    _one: Any = None  # buffers for single events, once they have been needed
    _target_scale: Any = None
    learner: ClassVar[Any]
    _setup: Any
    _params: Any
    _problem: Any
    _state: Any
    _largest: float
    _rng: np.random.Generator
    random_state: Any
    verbose: Any
    block_size: int
    _stream: Callable

    def learn_one(self, x, y, sample_weight=1.0):
        """Learn one event, a 1-D array; faster than ``partial_fit`` for single events."""
        turns = self._turns
        with turns.lock:
            if turns.predicting:
                turns.wait()
            target = self._target_of(y) if self._one or self._make_ready() else None
            if target is None:  # nothing has been learned yet, or the class is new
                self._stream(one_row(x)[np.newaxis], [y], [sample_weight])
                return self
            if type(sample_weight) is not float or not 0.0 <= sample_weight <= WEIGHT:
                sample_weight = _checked_weight(sample_weight)
            x = self._event(x)
            if self._target_scale is None and getattr(self, "class_weight", None) is None:
                self._learn_event(x, target, sample_weight)
            else:
                self._learn_with_statistics(x, y, target, sample_weight)
        return self

    def score_one(self, x):
        """Return the score of one event, a 1-D array: a number, or one number per class; 0 before any learning."""
        with self._turns.lock:
            return self._score_event(self._event(x)) if self._one or self._make_ready() else 0.0

    def _learn_event(self, x, target: float, weight: float) -> None:
        """Learn an event of the model's type and width, and an encoded target."""
        if weight > 0.0:  # otherwise the row is skipped entirely, and draws no random numbers
            before = self._state
            state = self._one.learn(before, x, target, weight, self._largest)
            if state is not before:
                self._state = self._known(state)

    def _score_event(self, x) -> Any:
        """Return the score of an event of the model's type and width."""
        score = self._one.score(self._state, x, self._largest)
        return self._known(None) if score is None else score

    def _make_ready(self) -> bool:
        """Prepare for single events, unless nothing has been learned."""
        if "_state" in self.__dict__:
            shared = self._rng is self.random_state
            self._one = loop.Single(self.learner.loop, self._setup, self._params, self._state, self._rng, is_shared=shared)
        return self._one is not None

    def _event(self, x) -> np.ndarray:
        """Return an event as an array of the model's type and width."""
        one = self._one
        if type(x) is np.ndarray and x.dtype is one.dtype and x.shape == one.shape:
            return x
        x = one_row(x)
        if x.shape != one.shape:
            raise ValueError(f"x has shape {x.shape}, but this model expects {one.shape}")
        try:
            return np.asarray(x, dtype=one.dtype)
        except (ValueError, TypeError, OverflowError) as error:
            raise ValueError(f"x must contain only numbers: {error}") from None

    def _are_few(self, X) -> bool:
        """Return whether the rows are so few that buffers are kept for the next call; steps on points check every event."""
        plain = isinstance(self.learner.loop, Loop) and not self.verbose and not sparse.issparse(X)
        return plain and len(X) <= self.block_size and not any(isinstance(part, Linear) for part in self._state)

    def _learn_few(self, X, targets, weights, record):
        """Same as ``_learn``, in place."""
        with loop.deferred_interrupt():
            self._state = self._batches().learn(self._state, X, targets, weights, self._rng)

    def _batches(self) -> loop.SmallBatches:
        if self._few is None:
            self._few = loop.SmallBatches(self.learner.loop, self._setup, self._params, self._state)
        return self._few

    @learning
    def _learn_plain(self, X, y) -> bool:
        """Learn a few rows of the model's type with known labels, without most of the work around them; else return False."""
        if type(X) is not np.ndarray or type(y) is not np.ndarray or X.ndim != 2 or y.shape != X.shape[:1] or not len(y):
            return False
        if not self._learns_plainly():
            return False
        few = self._batches()
        if X.dtype is not few.dtype or X.shape[1] != few.shape[1] or len(X) > few.shape[0] or not X.flags.c_contiguous:
            return False
        try:
            targets = list(map(self._encoded.__getitem__, y.tolist()))  # type: ignore[attr-defined]  # of classifiers
        except (KeyError, TypeError):  # a new label, or none
            return False
        if not few.is_within(X, self._largest):
            return False
        with loop.deferred_interrupt():
            self._state = one_thread(few.learn_all)(self._state, X, targets, self._rng)
        return True

    def _learns_plainly(self) -> bool:
        """Return whether nothing but the model learns, in double precision, and all that it needs is known."""
        if "_state" not in self.__dict__ or self.verbose or getattr(self, "class_weight", None) is not None:
            return False
        self.check_own_parameters()
        return (
            isinstance(self.learner.loop, Loop)
            and "classes_" in self.__dict__
            and "feature_names_in_" not in self.__dict__
            and self._problem.dtype is np.float64
            and type(self._rng.bit_generator) is np.random.PCG64
            and self._state.model.work <= PLAIN
        )

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


def scalar(y: Any) -> Any:
    """Return the value of an array without dimensions."""
    return y[()] if isinstance(y, np.ndarray) and y.ndim == 0 else y


def _checked_weight(weight: Any) -> float:
    if not isinstance(weight, NUMBERS) or not 0.0 <= weight <= WEIGHT:
        raise ValueError(f"sample_weight must be a number from 0 to {WEIGHT:g}, not {short(weight)}")
    return float(weight)
