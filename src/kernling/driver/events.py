"""Runs a learner's step over events: blocks inside a compiled call, capacity and random numbers around it.

One compiled call covers at most ``CALL`` events, after which Python checks the capacity of the state, progress and
Ctrl-C.  Random numbers are drawn per call and in the order of events, so whatever stops the loop leaves the state and the
generator at the boundary of an event.
"""

from __future__ import annotations

import _signal  # what ``signal`` is made of: the enumerations around it take 20 microseconds
import ctypes
import math
import signal
import sys
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from itertools import pairwise, starmap
from types import FrameType
from typing import Any, NamedTuple

import numpy as np

from ..compiler import COMPILED, entry_point
from ..core.blas import one_thread
from ..core.expansion import EVENTS, Expansion
from ..core.fourier import Linear
from ..core.limits import Diverged, row_within
from ..core.rows import Rows, as_rows, read_only, row_count
from ..core.setup import Setup
from ..core.state import grown, nbytes, packed
from .loops import REFUSED, Event, EventBatch, Loop, Notes, Run, no_event
from .minibatch import BatchLoop
from .outputs import Scorer

CALL = 8192
SMALL = 2**20  # numbers in a state, or kernel values of a block, up to which buffers are kept
KEPT = 1024  # rows of small batches from which a state can be computed again
NOTHING = nullcontext()
WORK = 2**32  # maximum multiplications per compiled call, so that Ctrl-C never waits long


class Events(NamedTuple):
    """A segment of the stream, with encoded targets."""

    rows: Rows
    targets: np.ndarray
    weights: np.ndarray


class Interrupted(KeyboardInterrupt):
    """Raised if Ctrl-C stops the loop between two events."""

    rows: int | None = None  # of the call that were learned; None: all of them
    scores: np.ndarray = np.empty((0, 0))  # what was recorded of these rows


def learn_events(  # a method, a model, events and what to do meanwhile: a bundle of them would have a single use
    loop: Loop,
    setup: Setup,
    params: Any,
    state: Any,
    events: Events,
    rng: np.random.Generator,
    *,
    record: bool = False,
    done: Callable[[Any, int], None] = lambda state, events: None,
    kept: KeptRun | None = None,
) -> tuple[Any, np.ndarray]:
    """Learn all events, with kept buffers if given; return the state and, if requested, the outputs before each was learned.

    ``done(state, n)`` is called after every compiled call, and last of all when Ctrl-C stops the loop.  When Diverged is
    raised, some events may have been learned: the caller has to restore the state.
    """
    n = row_count(events.rows)
    uniforms = np.empty(setup.uniforms * min(n, CALL))
    if kept is None:
        before = np.empty((n if record else 0, state.model.outputs + setup.notes))
        batch = EventBatch(*events, read_only(uniforms), before)
        run = Run(loop, setup, params, batch, no_event(events.rows.dense.dtype))
    else:
        run, before = kept.load(events), kept.before[:n]
    room = room_for(loop, setup)
    first = 0
    try:
        with deferred_interrupt() as interrupted:
            while first < n:
                state = _with_room(state, room)
                last = min(n, first + _call_length(state, setup))
                if setup.uniforms:
                    generator = rng.bit_generator.state
                    rng.random(out=uniforms[: setup.uniforms * int(np.count_nonzero(events.weights[first:last]))])
                stopped = run(state, first, last)
                if stopped < 0:
                    raise Diverged
                if run.due[0]:
                    loop.settle(setup, params, state)
                    run.due[0] = 0
                if setup.uniforms and stopped < last:  # out of room: return the unused random numbers
                    rng.bit_generator.state = generator
                    rng.random(setup.uniforms * int(np.count_nonzero(events.weights[first:stopped])))
                done(state, stopped - first)
                first = stopped
                if interrupted():
                    stop = Interrupted(f"stopped after {int(state.model.clock[EVENTS])} events; the model can be used")
                    stop.rows = first
                    raise stop
    except Interrupted as stop:
        stop.scores = before[:first].copy()
        raise
    return state, before if kept is None else before.copy()


class KeptRun:
    """Buffers for at most ``block_size`` dense rows, created once: for loops that draw no numbers and have many buffers."""

    def __init__(self, loop: Loop, setup: Setup, params: Any, state: Any):
        n, centre = setup.block_size, state.model.centre
        self._rows, self._targets, self._weights = np.empty((n, len(centre)), centre.dtype), np.empty(n), np.empty(n)
        self.before = np.empty((n, state.model.outputs + setup.notes))
        numbers = read_only(self._targets), read_only(self._weights), read_only(np.empty(0))
        self._run = Run(loop, setup, params, EventBatch(as_rows(self._rows), *numbers, self.before), no_event(centre.dtype))

    def load(self, events: Events) -> Run:
        """Take over events, which become the first rows of the run; return it."""
        n = row_count(events.rows)
        self._rows[:n], self._targets[:n], self._weights[:n] = events.rows.dense, events.targets, events.weights
        return self._run


@one_thread
def learn_waiting(loop: BatchLoop, setup: Setup, params: Any, state: Any) -> Any:
    """Learn the rows of an incomplete batch; return the state, which is another one if there was no room."""
    if not state.waiting.count[0]:
        return state
    state = _with_room(state, setup.room)
    nothing = no_event(state.model.centre.dtype)
    numbers = read_only(np.empty(0))
    events = EventBatch(as_rows(nothing.rows.reshape(0, len(state.model.centre))), numbers, numbers, numbers, np.empty((0, 1)))
    if Run(loop, setup, params, events, nothing)(state, 0, 0) < 0:
        raise Diverged
    return state


class SmallBatches:
    """Learns a few rows at a time, at most ``block_size``, with buffers that are created once, as those of ``Single``.

    A call that diverges changes nothing.  Copying the state before each call would take longer than learning: there is one
    copy, and the rows learned since are kept, from which the state before the last call can be computed again.

    Deferring Ctrl-C takes several microseconds, so it usually is not: ``resumed`` tells what was done before it was raised.
    """

    def __init__(self, loop: Loop, setup: Setup, params: Any, state: Any, rng: np.random.Generator, *, is_shared: bool):
        self.most = setup.block_size
        n, u, centre = max(KEPT, self.most), setup.uniforms, state.model.centre
        X, uniforms = np.empty((n, len(centre)), centre.dtype), np.empty(self.most * u)
        targets, weights = np.empty(n), np.empty(n)
        self._event = Event(X, targets, weights, uniforms, np.empty(n * u))
        if drawing := _drawing(setup, rng, is_shared):
            self._event = self._event._replace(**drawing)
        self._draws = u > 0 and not drawing
        events = EventBatch(as_rows(X), read_only(targets), read_only(weights), read_only(uniforms), np.empty((0, 1)))
        self._run = Run(loop, setup, params, events, self._event)
        self._setup, self._rng, self._cuts = setup, rng, [0]
        self._state: Any = None
        self._events = 0.0
        self._room = room_for(loop, setup)
        self._is_one_call = COMPILED and not self._draws
        self._done: list[int] = []  # what compiled code has returned in the last call
        self._generator: Any = None  # its state before the numbers of the last call, unless compiled code draws them
        self._last = 0, 0  # where it should have stopped, and how many numbers it draws
        self.are_within = entry_point(row_within, np.empty((1, 1)), -1.0, 1.0)  # without the time that NumPy needs to begin

    def learn(self, state: Any, X: np.ndarray, y: np.ndarray, labels: np.ndarray, weights: np.ndarray, largest: float) -> Any:
        """Learn rows of the model's type, and return the state, which is another one if it had to be copied.

        Without weights, all are 1; without labels, y are encoded targets.  Returns None if these rows cannot be learned, or the
        state is not small; then, and when Diverged is raised, state and generator are as they were before.
        """
        if not state.model.has_room(self._room):
            if not is_small(state, self._setup):
                return None
            state = _with_room(state, self._room)
        elif not (state is self._state or is_small(state, self._setup)):
            return None
        return self._learn_small(state, X, y, labels, weights, largest)

    def _learn_small(self, state: Any, X: Any, y: Any, labels: np.ndarray, weights: np.ndarray, largest: float) -> Any:
        known = state is self._state and events_of(state) == self._events
        first = self._cuts[-1]
        if not known or first + len(X) > len(self._event.rows):
            state, first = self._copied(state), 0
        if self._draws:
            self._generator = self._rng.bit_generator.state
            self._rng.random(out=self._event.uniforms[: self._draws_of(X, weights)])
        self._last = first + len(X), self._draws_of(X, weights)
        arguments = self._call, X, y, labels, weights, first, largest
        with one_thread.where_needed():
            self._done.extend(starmap(self._learn, (arguments,)))  # in one step, between whose parts Ctrl-C is not raised
        done = self._done[0]
        if done == self._last[0]:
            self._cuts.append(done)
            self._events = events_of(state)
            return state
        with deferred_interrupt():
            self._fail(done)
        if done >= 0:  # batches have filled all room: rows that wait may be stored as well, and one more batch has to fit
            return self._learn_small(_with_room(state, len(X) + 2 * self._room), X, y, labels, weights, largest)
        if done == REFUSED:
            return None
        raise Diverged

    def guard(self, state: Any) -> AbstractContextManager:
        """Return the context in which this state may learn next; Ctrl-C is deferred unless all is done by one compiled call."""
        self._done, self._generator = [], None
        return NOTHING if self._is_one_call and state is self._state else deferred_interrupt()

    def resumed(self) -> Any:
        """Return the state if the last call had learned its rows when it was interrupted; None if nothing has changed."""
        self._events = math.nan  # the next call starts with a copy
        if self._done and self._done[0] == self._last[0]:
            return self._state
        if self._done or self._generator is not None:
            self._fail(self._done[0] if self._done else REFUSED)
        return None

    def _fail(self, done: int) -> None:
        """Restore the state and the generator as they were before a call that did not learn its rows."""
        self._done = []
        if done != REFUSED:
            self._undo()
        if self._generator is not None:
            self._rng.bit_generator.state, self._generator = self._generator, None
        elif self._setup.uniforms and done != REFUSED:
            _rewind(self._rng, self._last[1])

    def _draws_of(self, X: np.ndarray, weights: np.ndarray) -> int:
        u = self._setup.uniforms
        return u * (int(np.count_nonzero(weights)) if u and len(weights) else len(X))

    def _copied(self, state: Any) -> Any:
        """Return a state that is learned instead of this one, and start to keep rows from here."""
        self._events = math.nan  # until all is complete
        if state is not self._state:
            self._state = None
            state, self._memory, floats = packed(state)
            self._before = np.empty_like(self._memory)
            checked = any(isinstance(part, Linear) for part in state)  # divergence may only be seen afterwards
            self._learn, self._call = self._run.of_few(state, floats=self._memory[: floats if checked else 0])
            self._state = state
        self._before[:] = self._memory
        self._cuts, self._events = [0], events_of(state)
        return state

    @one_thread
    def _undo(self) -> None:
        """Restore the state before the call that failed."""
        self._memory[:] = self._before
        u, event = self._setup.uniforms, self._event
        for first, last in pairwise(self._cuts):
            event.uniforms[: u * (last - first)] = event.drawn[u * first : u * last]
            self._run(self._state, first, last)


class Single:
    """Learns and scores single events of one model with as little overhead as possible.

    Buffers and entry points are created once; they are valid as long as the types of setup, parameters and state do not change.
    """

    def __init__(
        self,
        loop: Loop,
        setup: Setup,
        params: Any,
        state: Any,
        rng: np.random.Generator,
        *,
        is_shared: bool,
        has_thresholds: bool,
    ):
        """``has_thresholds``: what the loop notes is subtracted from outputs."""
        model = state.model
        self._loop, self._setup, self._params, self._rng = loop, setup, params, rng
        self._noting: tuple[Any, Any, Any] | None = (loop, setup, params) if has_thresholds else None
        self._follow: Callable | None = None
        row = np.zeros((1, len(model.centre)), model.centre.dtype)
        self._row = row
        self.dtype, self.shape = row.dtype, row.shape[1:]
        self._uniforms = np.empty(setup.uniforms)
        target, weight = np.zeros(1), np.ones(1)
        events = EventBatch(as_rows(row), read_only(target), read_only(weight), read_only(self._uniforms), np.empty((0, 1)))
        event = Event(row, target, weight, self._uniforms, np.empty(0))
        drawing = _drawing(setup, rng, is_shared)
        event = event._replace(**drawing)
        self._draws = setup.uniforms > 0 and not drawing
        self._run = Run(loop, setup, params, events, event)
        self.learned: Any = None  # the state that single events change
        self._scored: Any = None

    def learn(self, x: np.ndarray, y: float, weight: float, largest: float) -> int:
        """Let ``learned`` learn an event in place: 1 if that was done, 0 if there is no room, REFUSED if x cannot be learned.

        x must be of the model's type and width.  When Diverged is raised, nothing has changed.
        """
        if self._stamp is not None and self._loop.stamp(self.learned) != self._stamp:
            return 0  # what has been learned by other calls needs other buffers
        done = (self._draw_and_learn if self._draws else self._learn)(self._call, x, y, weight, largest)
        if done == 1:
            if self._run.due[0]:
                self._settle()
            return done
        if self._uniforms.size and not self._draws:
            _rewind(self._rng, self._uniforms.size)
        if done < 0 and done != REFUSED:
            raise Diverged
        return done

    def _draw_and_learn(self, *arguments: Any) -> int:
        """Learn with random numbers that compiled code cannot draw itself; they are returned unless it has learned."""
        before, events = self._rng.bit_generator.state, events_of(self.learned)
        try:
            self._rng.random(out=self._uniforms)
            done = self._learn(*arguments)
            if done != 1:
                self._rng.bit_generator.state = before
        except BaseException:
            if events_of(self.learned) == events:
                self._rng.bit_generator.state = before
            raise
        return done

    def _settle(self) -> None:
        """Settle what is due after an event; Ctrl-C is deferred meanwhile, since the event has been learned."""
        with deferred_interrupt():
            self._loop.settle(self._setup, self._params, self.learned)
            self._run.due[0] = 0

    def roomier(self, state: Any) -> Any:
        """Return a state with room for another event."""
        return _with_room(state, max(1, self._setup.room))

    def attached(self, state: Any) -> Any:
        """Prepare for learning this state; return ``learned``: the state itself, or a copy that is learned instead."""
        more: dict[str, np.ndarray] = {}
        if isinstance(state.model, Linear):  # divergence is only detected after the event; the state is small
            state, memory, floats = packed(state)
            more = {"memory": memory, "floats": memory[:floats], "before": np.empty_like(memory)}
        self.learned = None
        self._before = np.empty((1, state.model.outputs + self._setup.notes))
        self._learn, self._call = self._run.of_events(state, self._before, **more)
        self.learned, self._stamp = state, self._loop.stamp(state)
        return state

    def score_before(self) -> float | np.ndarray:
        """Return what was recorded of the event that was learned last, its output before and the notes."""
        return self._before.item() if self._before.size == 1 else self._before[0].copy()

    def score(self, state: Any, x: np.ndarray, largest: float) -> float | np.ndarray | None:
        """Return the output of an event, an array if there are several; None if x cannot be scored."""
        if state is not self._scored:
            parts: list[Any] = [part for part in state if isinstance(part, (Expansion, Linear))]
            notes = Notes(*self._noting, state) if self._noting else None
            self._follow = None if notes is None else notes.update
            self._scorer = Scorer(self._setup, parts, self._row, None if notes is None else notes.noted, is_event=True)
            self._scored, self._calls, self._outputs = state, self._scorer.calls, self._scorer.out[0]
            self._is_single = self._outputs.size == 1
        if self._follow:
            self._follow()
        for score, record in self._calls:
            if not score(record, x, largest):
                return None
        return self._outputs.item() if self._is_single else self._outputs.copy()


def is_small(state: Any, setup: Setup) -> bool:
    """Return whether a state and the buffers of a block are so small that buffers are kept, and a copy of the state."""
    return max(nbytes(state) // 8, state.model.stored * setup.block_size) <= SMALL


def room_for(loop: Loop, setup: Setup) -> int:
    """Return for how many points there must be room before a compiled call."""
    return setup.room if isinstance(loop, BatchLoop) else max(setup.block_size, setup.room)


def events_of(state: Any) -> float:
    """Return how many events have been learned, or wait to be: it changes whenever the state does."""
    waiting = getattr(state, "waiting", None)
    return state.model.clock[EVENTS] + (0 if waiting is None else waiting.count[0])


def _drawing(setup: Setup, rng: np.random.Generator, is_shared: bool) -> dict[str, Any]:
    """Return what compiled code needs to draw the numbers of events; nothing if that is impossible, or there are none."""
    bits = rng.bit_generator
    if not (COMPILED and setup.uniforms and isinstance(bits, np.random.PCG64)) or is_shared:
        return {}
    draw = ctypes.cast(bits.ctypes.next_double, ctypes.c_void_p).value or 0
    return {"draw": draw, "bits": bits.ctypes.state_address}


def _rewind(rng: np.random.Generator, draws: int) -> None:
    """Restore a PCG64 generator as it was before compiled code has drawn this many numbers."""
    bits: Any = rng.bit_generator
    drawn = bits.state
    bits.advance(-draws)
    bits.state = {**bits.state, "has_uint32": drawn["has_uint32"], "uinteger": drawn["uinteger"]}


def _call_length(state: Any, setup: Setup) -> int:
    """Return the number of events per compiled call: a multiple of the block, independent of the machine's speed."""
    work = state.model.work + (8 * state.model.stored**2 if setup.room else 0)  # batches also update a matrix
    blocks = max(1, min(CALL, WORK // max(1, work)) // setup.block_size)
    return blocks * setup.block_size


def _with_room(state: Any, points: int) -> Any:
    """Grow every part of the state that holds points, if this many more might not fit, and what comes and goes."""
    if not getattr(state, "fits", True):
        state = state.fitted()
    if state.model.has_room(points):
        return state
    capacity = len(state.model.points)
    return grown(state, max(capacity * 5 // 4, state.model.stored) + 2 * points)


class deferred_interrupt:
    """Defer Ctrl-C: the loop checks for it between compiled calls; after the last one, it is raised here."""

    def __init__(self) -> None:
        self._hits: list[int] = []
        self._caller: FrameType | None = None  # whose Ctrl-C is deferred

    def __enter__(self) -> Callable[[], bool]:
        if threading.current_thread() is threading.main_thread():
            usual = _signal.getsignal(signal.SIGINT)
            if usual is signal.default_int_handler:  # the user's own handler is left alone
                self._caller = sys._getframe(1)
                _signal.signal(signal.SIGINT, self._hit)
        return lambda: bool(self._hits)

    def _hit(self, number: int, frame: FrameType | None) -> None:
        while frame is not None and frame is not self._caller:
            frame = frame.f_back
        if frame is not None:
            self._hits.append(number)
            return
        _signal.signal(signal.SIGINT, signal.default_int_handler)  # another exception kept ``__exit__`` from doing so
        raise KeyboardInterrupt

    def __exit__(self, _kind: Any, error: BaseException | None, _trace: Any) -> None:
        if self._caller is not None:
            _signal.signal(signal.SIGINT, signal.default_int_handler)
            self._caller = None
        if not self._hits or isinstance(error, Interrupted):
            return
        if error is None:
            raise Interrupted("stopped between two events; the model can be used")
        if isinstance(error, Exception):  # not an Interrupted: the caller has to restore the state, as after the error
            raise KeyboardInterrupt(f"stopped in a call that failed: {error or type(error).__name__}") from error
