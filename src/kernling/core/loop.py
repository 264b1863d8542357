"""Runs a learner's step over events: blocks inside a compiled call, capacity and random numbers around it.

One compiled call covers at most ``CALL`` events, after which Python checks the capacity of the state, progress and
Ctrl-C.  Random numbers are drawn per call and in the order of events, so whatever stops the loop leaves the state and the
generator at the boundary of an event.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from .averages import AVERAGE, begin_event, output_mix
from .block import new_scratch, open_block
from .expansion import EVENTS
from .fourier import (
    Linear,
    feature_outputs,
    feature_scale,
    feature_scores,
    meet_event,
    new_feature_scratch,
    open_features,
)
from .jit import UNIT, bind, inline, template
from .limits import Diverged, in_bounds
from .rows import Rows, as_rows, read_only, row_count
from .run import Event, Loop, Run, Stretch
from .scoring import EventScorer
from .setup import Setup, mix_scores
from .state import copied, grown, is_finite, restore
from .updates import forget, read_scores

CALL = 8192
WORK = 2**32  # maximum multiplications per compiled call, so that Ctrl-C never waits long


class Events(NamedTuple):
    """A segment of the stream, with encoded targets."""

    rows: Rows
    targets: np.ndarray
    weights: np.ndarray


class Interrupted(KeyboardInterrupt):
    """Raised if Ctrl-C stops the loop between two events."""


@template
def step(params, state, block, j, f, y, weight, u):
    """Placeholder for a learner's step: learn event j of the block, whose scores are f and whose target is y."""


@template
def note(params, state, row):
    """Placeholder for a learner's note: write what its outputs need in addition to the scores."""


@template
def _kernel_blocks(setup, params, state, events, uniforms, before, first, last, scratch, mix):
    """Blocks of events for a learner with one expansion; ``before``, unless empty, gets each event's output."""
    model = state.model
    drawn = 0
    for start in range(first, last, setup.block_size):
        b = min(setup.block_size, last - start)
        if model.size[0] + b > model.points.shape[0]:
            return start
        block = open_block(setup.kernel, model, events.rows, start, b, scratch, setup.tolerance)
        for j in range(b):
            i = start + j
            if before.shape[0] > 0:
                output_mix(model, setup.output, setup.fraction, mix)
                mix_scores(mix, block.scores, j, before[i])
                if setup.notes > 0:
                    note(params, state, before[i])
            if events.weights[i] > 0.0:
                read_scores(model, block, j, scratch.f)
                if not in_bounds(scratch.f):
                    return -1
                begin_event(model, block, j, setup.growth)
                u = uniforms[drawn : drawn + setup.uniforms]
                drawn += setup.uniforms
                step(params, state, block, j, scratch.f, events.targets[i], events.weights[i], u)
                if setup.keep < 1.0:
                    forget(model, block, j, setup.keep)
    return last


@template
def blocks(setup, params, state, events, uniforms, before, first, last, scratch, mix):
    """Placeholder for one of the loops above, bound to a step."""


@template
def _kernel_loop(setup, params, state, events, uniforms, before, first, last):
    scratch = new_scratch(state.model, events.rows, min(setup.block_size, last - first), setup.dense)
    mix = np.empty(state.model.coef.shape[0])
    return blocks(setup, params, state, events, uniforms, before, first, last, scratch, mix)


_no_note = inline(note)


def kernel_loop(step: Callable, note: Callable = _no_note) -> Callable:
    """Compile the loop around a step of a learner with one expansion."""
    return bind(_kernel_loop, blocks=bind(_kernel_blocks, kind=UNIT, step=step, note=note))


@template
def _feature_blocks(setup, params, state, events, uniforms, before, first, last, scratch):
    """Blocks of events for a learner with one linear model on features."""
    model = state.model
    drawn = 0
    for start in range(first, last, setup.block_size):
        b = min(setup.block_size, last - start)
        features = open_features(model, events.rows, start, b, scratch)
        for j in range(b):
            i = start + j
            if before.shape[0] > 0:
                feature_outputs(model, features, j, setup.output == AVERAGE, before[i])
                if setup.notes > 0:
                    note(params, state, before[i])
            if events.weights[i] > 0.0:
                meet_event(model, features, j, scratch.f)
                if not in_bounds(scratch.f):
                    return -1
                u = uniforms[drawn : drawn + setup.uniforms]
                drawn += setup.uniforms
                step(params, state, features, j, scratch.f, events.targets[i], events.weights[i], u)
                if setup.keep < 1.0:
                    feature_scale(model, setup.keep)
    return last


@template
def _feature_loop(setup, params, state, events, uniforms, before, first, last):
    scratch = new_feature_scratch(state.model, events.rows, min(setup.block_size, last - first), 0)
    return blocks(setup, params, state, events, uniforms, before, first, last, scratch)


def feature_loop(step: Callable, note: Callable = _no_note) -> Callable:
    """Compile the loop around ``step(params, state, features, j, f, y, weight, u)`` of a learner with one linear model."""
    return bind(_feature_loop, blocks=bind(_feature_blocks, kind=UNIT, step=step, note=note))


@template
def _dual_blocks(setup, params, state, events, uniforms, before, first, last, scratch, feature_scratch):
    """Blocks of events for a learner that has an expansion and a linear model, whose scores add up."""
    model, linear = state.model, state.linear
    drawn = 0
    for start in range(first, last, setup.block_size):
        b = min(setup.block_size, last - start)
        if model.size[0] + b > model.points.shape[0]:
            return start
        block = open_block(setup.kernel, model, events.rows, start, b, scratch, setup.tolerance)
        features = open_features(linear, events.rows, start, b, feature_scratch)
        for j in range(b):
            i = start + j
            read_scores(model, block, j, scratch.f)
            feature_scores(linear, features, j, feature_scratch.f)
            for o in range(scratch.f.size):
                scratch.f[o] += feature_scratch.f[o]
            if before.shape[0] > 0:
                for o in range(scratch.f.size):
                    before[i, o] = scratch.f[o]
            if events.weights[i] > 0.0:
                if not in_bounds(scratch.f):
                    return -1
                model.clock[EVENTS] += 1.0
                u = uniforms[drawn : drawn + setup.uniforms]
                drawn += setup.uniforms
                step(params, state, block, features, j, scratch.f, events.targets[i], events.weights[i], u)
                if setup.keep < 1.0:
                    forget(model, block, j, setup.keep)
                    feature_scale(linear, setup.keep)
    return last


@template
def _dual_loop(setup, params, state, events, uniforms, before, first, last):
    size = min(setup.block_size, last - first)
    scratch = new_scratch(state.model, events.rows, size, setup.dense)
    feature_scratch = new_feature_scratch(state.linear, events.rows, size, scratch.values.size)
    return blocks(setup, params, state, events, uniforms, before, first, last, scratch, feature_scratch)


def dual_loop(step: Callable) -> Callable:
    """Compile the loop around a step of a learner with both: ``step(params, state, block, features, j, f, y, weight, u)``."""
    return bind(_dual_loop, blocks=bind(_dual_blocks, kind=UNIT, step=step))


def learn(
    loop: Callable,
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
    run = _runner(loop, setup, params, events, uniforms, before)
    first = 0
    with _deferred_interrupt() as interrupted:
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
                raise Interrupted(f"stopped after {int(state.model.clock[EVENTS])} events; the model can be used")
    return state, before


def _runner(loop: Callable, setup: Setup, params: Any, events: Events, uniforms: np.ndarray, before: np.ndarray) -> Callable:
    """The loop as a function of the state and of the events to learn: first and last."""
    if isinstance(loop, Loop):
        nothing = np.empty(0, events.rows.dense.dtype)
        event = Event(nothing, np.empty(0), np.empty(0))
        return Run(loop, setup, params, Stretch(*events, read_only(uniforms), before), event)
    return lambda state, first, last: loop(setup, params, state, events, read_only(uniforms), before, first, last)


class Single:
    """Learns and scores single events of one model with as little overhead as possible.

    Buffers and entry points are made once; they fit as long as the types of setup, parameters and state stay the same.
    """

    def __init__(self, loop: Callable, setup: Setup, params: Any, state: Any):
        model = state.model
        self.row = np.zeros((1, len(model.centre)), model.centre.dtype)
        self.target = np.zeros(1)
        self.weight = np.ones(1)
        self.setup, self.params = setup, params
        rows = as_rows(self.row)
        self._careful = isinstance(model, Linear)  # one event takes many steps, and the state is small enough to copy
        self._events = Events(rows, read_only(self.target), read_only(self.weight))
        self._uniforms = np.empty(setup.uniforms)
        fixed = (setup, params, self._events, self._uniforms, np.empty((0, 1)))
        self._learn = _runner(loop, *fixed)
        self.score = EventScorer(setup, state, rows)

    def learn(self, state: Any, rng: np.random.Generator) -> Any:
        """Learn the event in the buffers; when Diverged is raised, nothing has changed."""
        before = copied(state) if self._careful else state
        state = _with_room(state, max(1, self.setup.room))
        if self.setup.uniforms:
            generator = rng.bit_generator.state
            rng.random(out=self._uniforms)
        stopped = self._learn(state, 0, 1)
        if stopped < 0 or (self._careful and not is_finite(state)):
            if self._careful:
                restore(state, before)
            if self.setup.uniforms:
                rng.bit_generator.state = generator
            raise Diverged
        return state


def _call_length(state: Any, setup: Setup) -> int:
    """How many events one compiled call takes: a multiple of the block, and the same whatever the machine's speed."""
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
def _deferred_interrupt() -> Iterator[Callable[[], bool]]:
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
    finally:
        signal.signal(signal.SIGINT, usual)
    if hits:
        raise Interrupted("stopped between two events; the model can be used")
