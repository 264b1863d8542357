"""Runs a learner's step over events: blocks inside a compiled call, capacity and random numbers around it.

One compiled call covers at most ``CALL`` events, after which Python checks the capacity of the state, progress and
Ctrl-C.  Random numbers are drawn per call and in the order of events, so whatever stops the loop leaves the state and the
generator at the boundary of an event.
"""

from __future__ import annotations

import ctypes
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from .expansion import EVENTS, Expansion
from .fourier import Linear
from .jit import COMPILED, entry_point
from .limits import Diverged, row_within, within
from .rows import Rows, as_rows, read_only, row_count
from .run import FINITE, REFUSED, Event, EventScorer, Loop, Run, Stretch, no_event
from .setup import Setup
from .state import grown, packed

CALL = 8192
WORK = 2**32  # maximum multiplications per compiled call, so that Ctrl-C never waits long


class Events(NamedTuple):
    """A segment of the stream, with encoded targets."""

    rows: Rows
    targets: np.ndarray
    weights: np.ndarray


class Interrupted(KeyboardInterrupt):
    """Raised if Ctrl-C stops the loop between two events."""

    rows: int | None = None  # of the call that were learned; None: all of them


def learn(
    loop: Loop | Callable,
    setup: Setup,
    params: Any,
    state: Any,
    events: Events,
    rng: np.random.Generator,
    *,
    record: bool = False,
    done: Callable[[Any, int], None] = lambda state, events: None,
) -> tuple[Any, np.ndarray]:
    """Learn all events; return the state and, if requested, the outputs before each event was learned.

    ``done(state, n)`` is called after every compiled call, and last of all when Ctrl-C stops the loop.  When Diverged is
    raised, some events may have been learned: the caller has to restore the state.
    """
    n = row_count(events.rows)
    outputs = state.model.coef.shape[1]
    before = np.empty((n if record else 0, outputs + setup.notes))
    uniforms = np.empty(setup.uniforms * min(n, CALL))
    nothing = no_event(events.rows.dense.dtype)
    run = _runner(loop, setup, params, Stretch(*events, read_only(uniforms), before), nothing)
    first = 0
    with deferred_interrupt() as interrupted:
        while first < n:
            state = _with_room(state, max(setup.block_size, setup.room))
            last = min(n, first + _call_length(state, setup))
            if setup.uniforms:
                generator = rng.bit_generator.state
                rng.random(out=uniforms[: setup.uniforms * int(np.count_nonzero(events.weights[first:last]))])
            stopped = run(state, first, last)
            if stopped < 0:
                raise Diverged
            if setup.uniforms and stopped < last:  # out of room: return the unused random numbers
                rng.bit_generator.state = generator
                rng.random(setup.uniforms * int(np.count_nonzero(events.weights[first:stopped])))
            done(state, stopped - first)
            first = stopped
            if interrupted():
                stop = Interrupted(f"stopped after {int(state.model.clock[EVENTS])} events; the model can be used")
                stop.rows = first
                raise stop
    return state, before


class Plain:
    """A loop in Python and its arguments: the counterpart of ``Run``."""

    def __init__(self, loop: Callable, setup: Setup, params: Any, events: Stretch, event: Event):
        self._loop, self._fixed, self._event = loop, (setup, params), event
        self._events = Events(events.rows, events.targets, events.weights)
        self._buffers = events.uniforms, events.before

    def __call__(self, state: Any, first: int, last: int) -> int:
        """Learn events first .. last - 1, or until there is no more room; return where it stopped."""
        return self._loop(*self._fixed, state, self._events, *self._buffers, first, last)

    def of_events(self, state: Any, **_more: Any) -> tuple[Callable, Any]:
        """Return the function that learns single events of this state, and its first argument, like ``Run.of_events``."""
        return self._learn_event, state

    def _learn_event(self, state: Any, x: np.ndarray, y: float, weight: float, largest: float) -> int:
        if not state.model.has_room(max(1, self._fixed[0].room)):
            return 0
        row, target, weights = self._event[:3]
        row[:] = x
        if not within(row, largest):
            return REFUSED
        target[0], weights[0] = y, weight
        return self(state, 0, 1)


def _runner(loop: Loop | Callable, setup: Setup, params: Any, events: Stretch, event: Event) -> Run | Plain:
    """Return the loop as a function of the state and the range of events, first and last."""
    return Run(loop, setup, params, events, event) if isinstance(loop, Loop) else Plain(loop, setup, params, events, event)


class SmallBatches:
    """Learns a few rows at a time, at most ``block_size``, with buffers that are created once, as those of ``Single``."""

    def __init__(self, loop: Loop, setup: Setup, params: Any, state: Any):
        n, model = setup.block_size, state.model
        self._setup = setup
        self._X = np.empty((n, len(model.centre)), model.centre.dtype)
        self._targets, self._weights, self._uniforms = np.empty(n), np.empty(n), np.empty(n * setup.uniforms)
        targets, weights, uniforms = map(read_only, (self._targets, self._weights, self._uniforms))
        events = Stretch(as_rows(self._X), targets, weights, uniforms, np.empty((0, 1)))
        self._run = Run(loop, setup, params, events, no_event(self._X.dtype))
        self.dtype, self.shape = self._X.dtype, self._X.shape
        self._packed: Any = None
        self.is_within = entry_point(row_within, self._X, 1.0)  # as ``within``: without the time that NumPy needs to begin

    def learn(self, state: Any, X: np.ndarray, targets: np.ndarray, weights: np.ndarray, rng: np.random.Generator) -> Any:
        """Learn the rows in place, and return the state, which is another one only if it had to grow.

        When Diverged is raised, some events may have been learned: the caller has to restore the state.
        """
        n = len(X)
        self._X[:n], self._targets[:n], self._weights[:n] = X, targets, weights
        if self._setup.uniforms:
            rng.random(out=self._uniforms[: self._setup.uniforms * int(np.count_nonzero(weights))])
        state = self._with_room(state)
        if self._run(state, 0, n) < 0:
            raise Diverged
        return state

    def learn_all(self, state: Any, X: np.ndarray, targets: list[float], rng: np.random.Generator) -> Any:
        """Same for rows of weight 1, after a copy of the state, which is restored if Diverged is raised.

        The state that is returned and ``rng``, a PCG64, can be given to the next call; another state is copied first.
        """
        n, draws = len(X), self._setup.uniforms * len(X)
        state = self._with_room(state)
        if state is not self._packed:
            state, self._memory, floats = packed(state)
            self._packed, self._before, self._floats = state, np.empty_like(self._memory), self._memory[np.newaxis, :floats]
            self._checks = any(isinstance(part, Linear) for part in state)  # divergence may only be seen afterwards
        self._X[:n], self._targets[:n], self._weights[:n] = X, targets, 1.0
        self._before[:] = self._memory
        try:
            if draws:
                rng.random(out=self._uniforms[:draws])
            if self._run(state, 0, n) < 0 or (self._checks and not self.is_within(self._floats, FINITE)):
                raise Diverged
        except BaseException:
            self._memory[:] = self._before
            if draws:
                rng.bit_generator.state = _rewound(rng.bit_generator, draws)
            raise
        return state

    def _with_room(self, state: Any) -> Any:
        return _with_room(state, max(self._setup.block_size, self._setup.room))


class Single:
    """Learns and scores single events of one model with as little overhead as possible.

    Buffers and entry points are created once; they are valid as long as the types of setup, parameters and state do not change.
    """

    def __init__(
        self, loop: Loop | Callable, setup: Setup, params: Any, state: Any, rng: np.random.Generator, *, is_shared: bool
    ):
        model, bits = state.model, rng.bit_generator
        self._setup, self._rng = setup, rng
        row = np.zeros((1, len(model.centre)), model.centre.dtype)
        self._row, self._rows = row[0], as_rows(row)
        self.dtype, self.shape = row.dtype, row.shape[1:]
        self._uniforms = np.empty(setup.uniforms)
        target, weight = np.zeros(1), np.ones(1)
        events = Stretch(self._rows, read_only(target), read_only(weight), read_only(self._uniforms), np.empty((0, 1)))
        event = Event(self._row, target, weight, self._uniforms)
        self._rewinds = isinstance(bits, np.random.PCG64)
        self._draws = setup.uniforms > 0
        if COMPILED and isinstance(loop, Loop) and self._draws and self._rewinds and not is_shared:
            event = event._replace(
                draw=ctypes.cast(bits.ctypes.next_double, ctypes.c_void_p).value or 0, bits=bits.ctypes.state_address
            )
            self._draws = False
        self._run = _runner(loop, setup, params, events, event)
        self._learned: Any = None
        self._scored: Any = None

    def learn(self, state: Any, x: np.ndarray, y: float, weight: float, largest: float) -> Any:
        """Learn an event; return the state, or None if x cannot be learned.

        x must be of the model's type and width.  When Diverged is raised, nothing has changed.
        """
        if state is not self._learned:
            state = self._attached(state)
        if self._draws:
            kept: Any = None if self._rewinds else self._rng.bit_generator.state
            self._rng.random(out=self._uniforms)
        done = self._learn(self._call, x, y, weight, largest)
        if done == 1:
            return state
        if self._uniforms.size:
            bits = self._rng.bit_generator
            bits.state = _rewound(bits, self._uniforms.size) if self._rewinds else kept
        if done == 0:
            return self.learn(_with_room(state, max(1, self._setup.room)), x, y, weight, largest)
        if done == REFUSED:
            return None
        raise Diverged

    def _attached(self, state: Any) -> Any:
        """Prepare for learning this state; return it, or the copy that is learned instead."""
        more: dict[str, np.ndarray] = {}
        if isinstance(state.model, Linear):  # divergence is only detected after the event; the state is small
            state, memory, floats = packed(state)
            more = {"memory": memory, "floats": memory[:floats], "before": np.empty_like(memory)}
        self._learn, self._call = self._run.of_events(state, **more)
        self._learned = state
        return state

    def score(self, state: Any, x: np.ndarray, largest: float) -> float | np.ndarray | None:
        """Return the output of an event, an array if there are several; None if x cannot be scored."""
        if state is not self._scored:
            parts = [part for part in state if isinstance(part, (Expansion, Linear))]
            self._scorer = EventScorer(self._setup, parts, self._rows, self._row)
            self._scored, self._calls, self._outputs = state, self._scorer.calls, self._scorer.out[0]
            self._is_single = self._outputs.size == 1
        for score, record in self._calls:
            if not score(record, x, largest):
                return None
        return self._outputs.item() if self._is_single else self._outputs.copy()


def _rewound(bits: Any, draws: int) -> Any:
    """Return the state of a generator before this many draws of ``random``; storing it before each event would take longer."""
    drawn = bits.state
    bits.advance(-draws)
    return {**bits.state, "has_uint32": drawn["has_uint32"], "uinteger": drawn["uinteger"]}


def _call_length(state: Any, setup: Setup) -> int:
    """Return the number of events per compiled call: a multiple of the block, independent of the machine's speed."""
    work = state.model.work + (8 * state.model.stored**2 if setup.room else 0)  # batches also update a matrix
    blocks = max(1, min(CALL, WORK // max(1, work)) // setup.block_size)
    return blocks * setup.block_size


def _with_room(state: Any, points: int) -> Any:
    """Grow every part of the state that holds points, if this many more might not fit."""
    if state.model.has_room(points):
        return state
    capacity = len(state.model.points)
    return grown(state, max(capacity * 5 // 4, state.model.stored) + 2 * points)


@contextmanager
def deferred_interrupt() -> Iterator[Callable[[], bool]]:
    """Defer Ctrl-C: the loop checks for it between compiled calls; after the last one, it is raised here."""
    hits: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return
    usual = signal.getsignal(signal.SIGINT)
    if usual is not signal.default_int_handler:  # the user's own handler is left alone
        yield lambda: False
        return
    signal.signal(signal.SIGINT, lambda number, frame: hits.append(number))
    try:
        yield lambda: bool(hits)
    except Interrupted:
        raise
    except Exception as error:
        if hits:  # not an Interrupted: the caller has to restore the state, as after the error
            raise KeyboardInterrupt(f"stopped in a call that failed: {error or type(error).__name__}") from error
        raise
    finally:
        signal.signal(signal.SIGINT, usual)
    if hits:
        raise Interrupted("stopped between two events; the model can be used")
