"""Learning and scoring one event, or a few, at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from ..core.limits import TARGET, WEIGHT
from ..driver import scoring
from ..driver.events import Interrupted, KeptRun, Single, SmallBatches, deferred_interrupt, events_of, is_small
from .checking import one_row
from .constraints import short
from .turns import TakesTurns, learning

NONE = np.empty(0)
NUMBERS: Any = (float, int, np.floating, np.integer, np.bool_)


# attributes that only make the next call faster
BUFFERS = ("_one", "_few", "_kept", "_scorers", "_allowed", "_plain_with", "_encoded", "_numbers", "_answering")


class SingleEvents(TakesTurns):
    """The methods for single events and small batches; arrays of the model's type and width are checked by compiled code."""

    _learn_with_statistics: Callable
    _few: Any = None
    _plain_with: Any = None  # the parameters with which a few rows may be learned plainly
    _allowed: Any = None
    check_own_parameters: Callable
    _one: Any = None  # buffers for single events, once they have been needed
    _errors: Any = None  # those before learning, if they are followed
    _watch: Any = None  # errors and columns, if they are watched
    _source: Any = None  # rows whose columns are watched, if not those that are learned
    _scorers: list  # buffers for predicting a few rows
    _target_scale: Any = None
    partial_fit: Callable
    learner: ClassVar[Any]
    pairwise: ClassVar[bool] = False  # whether it learns from pairs: its scores rank, and need a threshold
    single_methods: ClassVar[dict[str, tuple[str, str]]] = {}  # how one event is predicted, and how a score is read
    _notes: Callable[[], Any]
    _setup: Any
    _params: Any
    _problem: Any
    _state: Any
    _largest: float
    _rng: np.random.Generator
    random_state: Any
    verbose: Any
    _stream: Callable
    _follow: Callable
    _watch_events: Callable
    _note: Callable
    _telling: Callable

    @property
    def _follows(self) -> bool:
        """Whether what was said of events before they were learned is needed."""
        return self._errors is not None or self._watch is not None

    def learn_one(self, x, y, sample_weight=1.0):
        """Learn one event, a 1-D array; faster than ``partial_fit`` for single events."""
        turns = self._turns
        if turns.predicting:
            turns.check()
        with turns.lock:
            if turns.predicting:
                turns.wait()
            one: Any = self._one or self._make_ready()
            target = self._target_of(y) if one else None
            if target is None:  # nothing has been learned yet, or the class is new
                if not (one and self._learn_new_class(x, y, sample_weight)):
                    self._stream(one_row(x)[np.newaxis], [y], [sample_weight])
                return self
            if type(sample_weight) is not float or not 0.0 <= sample_weight <= WEIGHT:
                sample_weight = _checked_weight(sample_weight)
            if type(x) is not np.ndarray or x.dtype is not one.dtype or x.shape != one.shape:
                x = self._event(x)
            if sample_weight == 0.0 or not self._follows:
                self._learn_known(x, y, target, sample_weight)
            else:
                self._followed_and_learned(x, y, target, sample_weight)
        return self

    @learning
    def predict_then_learn_one(self, x, y, method="predict", sample_weight=1.0):
        """Learn one event, a 1-D array; return the prediction of it just before: ``predict_then_learn`` for a single event.

        ``method`` is one of those of ``predict_then_learn``; the result has the form of ``predict_one`` (None before any
        learning), ``score_one`` or ``predict_proba_one``.  Faster than these and ``learn_one``, since the event is scored once.
        """
        read = getattr(self, self._single_method(method)[1])
        one: Any = self._one or self._make_ready()
        target = self._target_of(y) if one else None
        sample_weight = _checked_weight(sample_weight)
        if target is None or sample_weight == 0.0:  # nothing would be scored, or a class that is not known yet as well
            found = self.said_of(x, method)
            self.learn_one(x, y, sample_weight)
            return found
        learn = self._followed_and_learned if self._follows else self._scored_and_learned
        return read(learn(self._event(x), y, target, sample_weight))

    def said_of(self, x, method: str) -> Any:
        """Return what a method of ``predict_then_learn_one`` says of an event, without learning it."""
        return getattr(self, self._single_method(method)[0])(x)

    def _single_method(self, method: str) -> tuple[str, str]:
        found = self.single_methods.get(method)
        if found is None:
            raise ValueError(f"method must be one of {', '.join(map(repr, self.single_methods))}, not {method!r}")
        return found

    def _scored_and_learned(self, x, y, target: float, weight: float) -> Any:
        """Learn an event of the model's type and width, and of a positive weight; return its score just before."""
        score_before = self._reader(x)
        self._learn_known(x, y, target, weight)
        return score_before()

    def _reader(self, x) -> Callable[[], Any]:
        """Return what reads the score of this event from before it was learned; to be made before, and called afterwards."""
        return self._one.score_before

    def _followed_and_learned(self, x, y, target: float, weight: float) -> Any:
        """Same for a model that follows its errors; Ctrl-C is deferred until both is done."""
        score_before, events, before = self._reader(x), events_of(self._state), (self._errors, self._watch)
        rows = x[np.newaxis] if self._source is None else self._source

        def note() -> None:
            self._note(np.reshape(score_before(), (1, -1)), np.array([scalar(y)]), rows, np.ones(1), since=before)

        with self._telling():
            try:
                with deferred_interrupt():
                    self._learn_known(x, y, target, weight)
                    note()
            except BaseException:  # which may have arrived when the event had been learned
                if events_of(self._state) != events:
                    note()
                raise
        return score_before()

    def _score_itself(self, score: Any) -> Any:
        return score

    def _learn_known(self, x, y, target: float, weight: float) -> None:
        """Learn an event of the model's type and width, and of a known class."""
        if self._target_scale is None and getattr(self, "class_weight", None) is None:
            self._learn_event(x, target, weight)
        else:
            self._learn_with_statistics(x, y, target, weight)

    def learn_many(self, X, y=None):
        """Learn rows: River's name of ``partial_fit``."""
        return self.partial_fit(X, y)

    def score_one(self, x):
        """Return the score of one event, a 1-D array: a number, or one number per class; 0 before any learning."""
        with self._turns.lock:
            return self._score_event(self._event(x)) if self._one or self._make_ready() else 0.0

    def _learn_new_class(self, x, y, weight) -> bool:
        """Learn an event whose label is not known, without most of the work around it; return whether that was possible.

        Whatever is unusual is left to ``_stream``, which gives the same, or raises.
        """
        return False

    def _learn_event(self, x, target: float, weight: float) -> None:
        """Learn an event of the model's type and width, and an encoded target."""
        if weight > 0.0:  # otherwise the row is skipped entirely, and draws no random numbers
            one = self._one
            if self._state is not one.learned:
                self._state = one.attached(self._state)
            while (done := one.learn(x, target, weight, self._largest)) != 1:
                if done < 0:
                    self._known(None)
                self._state = one.attached(one.roomier(self._state))

    def _score_event(self, x) -> Any:
        """Return the score of an event of the model's type and width."""
        score = self._one.score(self._state, x, self._largest)
        return self._known(None) if score is None else score

    def _make_ready(self) -> Single | None:
        """Prepare for single events, unless nothing has been learned."""
        if "_state" in self.__dict__:
            self._one = Single(*self._tools(), is_shared=self._is_shared, has_thresholds=self.pairwise)
        return self._one

    def _tools(self) -> tuple[Any, ...]:
        return self.learner.loop, self._setup, self._params, self._state, self._rng

    @property
    def _is_shared(self) -> bool:
        """Whether others may draw from the generator, too."""
        return self._rng is self.random_state

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

    @learning
    def _learn_plain(self, X, y, sample_weight) -> bool:
        """Learn a few rows without most of the work around them, and return whether that was possible.

        Whatever is unusual is left to ``_stream``, which gives the same, or raises.
        """
        if not self._learns_plainly() or not self._are_few(X):
            return False
        few, shape, weights = self._batches(), X.shape[:1], NONE if sample_weight is None else sample_weight
        if weights is not NONE and not (is_plain(weights, shape) and few.are_within(weights[np.newaxis], 0.0, WEIGHT)):
            return False
        found = self._plain_targets(as_array(y) if type(y) is list else y, shape, weights)
        if found is None:
            return False
        targets, labels, scale = found
        guard = few.guard(self._state)
        try:
            with guard:
                state = few.learn(self._state, X, targets, labels, weights, self._largest)
                if state is None:
                    return False
                self._take(state, scale)
        except Interrupted:
            raise
        except BaseException as stop:
            state = few.resumed()
            if state is None:
                raise
            self._take(state, scale)
            if isinstance(stop, KeyboardInterrupt):
                raise Interrupted("stopped between two events; the model can be used") from None
            raise
        return True

    def _take(self, state: Any, scale: Any) -> None:
        """Continue with the state and the scale of the targets after a few rows."""
        if state is not self._state:
            self._state = state
        if scale is not None:
            self._target_scale = scale

    def _plain_targets(self, y, shape: tuple[int], weights) -> tuple[np.ndarray, np.ndarray, Any] | None:
        """Return targets, the labels by which they are to be encoded, and their scale, if any; None if they are unusual."""
        return np.ones(shape), NONE, None

    def _learns_plainly(self) -> bool:
        """Return whether only the model itself learns from small batches; known until a parameter is set."""
        if "_state" not in self.__dict__:
            return False
        self.check_own_parameters()
        if self._plain_with is None or self._plain_with is not self._allowed:
            named = "feature_names_in_" in self.__dict__
            weighted = getattr(self, "class_weight", None) is not None
            if named or weighted or self._follows or not self._has_small_batches():
                return False
            self._plain_with = self._allowed
        return True

    def _has_small_batches(self) -> bool:
        return self.learner.loop.settle is None and not self.verbose

    def _are_few(self, X) -> bool:
        """Return whether these are a few rows of the model's type, for which buffers are kept."""
        centre = self._state.model.centre
        return (
            type(X) is np.ndarray
            and X.dtype is centre.dtype
            and X.shape[1:] == centre.shape
            and 0 < len(X) <= self._setup.block_size  # as it was when learning began
            and X.flags.c_contiguous
        )

    def _steps(self, events: int, record: bool) -> int:
        """Return in how many steps these events could fail: full batches count, and so does scoring the rows after one."""
        if self.learner.loop.settle:
            return 1 if events <= self.learner.loop.until_due(self._state) else events
        waiting = getattr(self._state, "waiting", None)
        return events if waiting is None else (int(waiting.count[0]) + events) // len(waiting.targets) + record

    def _takes_few(self, X) -> bool:
        return self._has_small_batches() and self._are_few(X) and is_small(self._state, self._setup)

    def _kept_run(self, X) -> KeptRun | None:
        """Return buffers for a few rows, where making them takes longer than learning the rows; None for others."""
        if self.learner.loop.settle is None or not self._are_few(X):
            return None
        kept, outputs = self.__dict__.get("_kept"), self._problem.outputs
        if kept is None or kept.before.shape[1] != outputs:
            self._kept = kept = KeptRun(*self._tools()[:4])
        return kept

    def _learn_few(self, X, targets, weights, record):
        """Same as ``_learn``, in place."""
        few = self._batches()
        with few.guard(self._state):
            self._state = few.learn(self._state, X, targets, NONE, weights, self._largest)

    def _batches(self) -> SmallBatches:
        if self._few is None:
            with deferred_interrupt():  # the compiler would lose it
                self._few = SmallBatches(*self._tools(), is_shared=self._is_shared)
        return self._few

    def _of_few(self, X, read: Callable[[scoring.FewScores, int], np.ndarray]) -> np.ndarray | None:
        """Score a few rows, and return what is read then; None if anything is unusual."""
        if "_state" not in self.__dict__ or "feature_names_in_" in self.__dict__ or not self._are_few(X):
            return None
        scorers = self.__dict__.setdefault("_scorers", [])  # each thread takes one out
        scorer = scorers.pop() if scorers else None
        if scorer is None or scorer.state is not self._state:
            if not is_small(self._state, self._setup):
                return None
            scorer = scoring.FewScores(self._setup, self._state, self._notes() if self.pairwise else None)
        found = read(scorer, len(X)) if scorer.score(X, self._largest) else None
        scorers.append(scorer)
        return found

    def _drop_buffers(self) -> None:
        """Drop what was made for other parameters."""
        for name in BUFFERS:
            self.__dict__.pop(name, None)
        self._scorers = []  # so that predicting adds no attribute

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


def is_plain(array: Any, shape: tuple[int, ...]) -> bool:
    """Return whether compiled code can take this for an array of doubles of this shape."""
    return type(array) is np.ndarray and array.shape == shape and array.dtype is NONE.dtype and array.flags.c_contiguous


def as_array(values: list) -> np.ndarray | None:
    """Return a list as an array; None if that is impossible."""
    try:
        return np.array(values)
    except (ValueError, TypeError, OverflowError):
        return None


def scalar(y: Any) -> Any:
    """Return the value of an array without dimensions."""
    return y[()] if isinstance(y, np.ndarray) and y.ndim == 0 else y


def _checked_weight(weight: Any) -> float:
    if not isinstance(weight, NUMBERS) or not 0.0 <= weight <= WEIGHT:
        raise ValueError(f"sample_weight must be a number from 0 to {WEIGHT:g}, not {short(weight)}")
    return float(weight)
