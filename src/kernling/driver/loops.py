"""The compiled loops around a step; settings, state, events and buffers are passed by address."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from ..compiler import UNIT, address, bind, by_address, entry_point, inline, number_of, strided
from ..core.averages import begin_event, learn_votes, output_mix, use_groups
from ..core.blas import one_thread
from ..core.block import Block, open_block
from ..core.expansion import EVENTS
from ..core.fourier import Features, feature_outputs, feature_scale, feature_scores, meet_event, open_features
from ..core.limits import all_within, in_bounds
from ..core.rows import Rows, copy_numbers, row_count
from ..core.setup import Setup, mix_scores
from ..core.updates import forget, read_scores

REFUSED = -2  # an event that holds what cannot be learned
FINITE = float(np.finfo(np.float64).max)
NEVER = np.zeros(1, np.int64)


class EventBatch(NamedTuple):
    """Events for the loop, and its output."""

    rows: Rows
    targets: np.ndarray
    weights: np.ndarray
    uniforms: np.ndarray
    before: np.ndarray  # (rows, outputs and notes), or no rows: the outputs before each event was learned


class Event(NamedTuple):
    """The event of a stretch of one, or a few, to be written, and what is needed to learn them; empty in other stretches."""

    rows: np.ndarray  # (events, d)
    targets: np.ndarray
    weights: np.ndarray
    uniforms: np.ndarray  # to be drawn
    drawn: np.ndarray  # those of a few events, which are kept with them
    draw: int = 0  # address of the C function that draws a number; 0 if they have been drawn
    bits: int = 0  # address of the generator
    memory: np.ndarray = np.empty(0)  # of a state that is restored if it is not finite after the event
    floats: np.ndarray = np.empty(0)  # the part of it that is checked
    before: np.ndarray = np.empty(0)  # a copy of it


def no_event(dtype: DTypeLike) -> Event:
    """Return what takes the place of an event where there are several."""
    return Event(np.empty((0, 0), dtype), *np.empty((4, 0)))


class Nothing(NamedTuple):
    """No buffers."""


class Call(NamedTuple):
    """The arguments of a loop."""

    setup: Setup
    params: Any
    state: Any
    events: EventBatch
    block: Any  # Block, Batch or Nothing
    features: Features | Nothing
    event: Event


def step(*arguments):
    """Placeholder for a learner's step: learn event j of the block, whose scores are f and whose target is y.

    Its arguments are ``params, state, block, j, f, y, weight, u``, and ``features`` after the block if it has any.
    """


def note(params, state, row):
    """Placeholder for a learner's note: write what its outputs need in addition to the scores."""


def _kernel_loop(call, first, last):
    """Blocks of events; ``before``, unless empty, gets each event's output.  Returns where it stopped; -1: diverged."""
    setup, params, state, events, block = call.setup, call.params, call.state, call.events, call.block
    model = state.model
    drawn = 0
    for start in range(first, last, setup.block_size):
        b = min(setup.block_size, last - start)
        if model.size[0] + b > model.points.shape[0]:
            return start
        use_groups(model, setup.output, setup.fraction, b, block.used)
        open_block(model, block, start, b)
        for j in range(b):
            i = start + j
            if events.before.shape[0] > 0:
                output_mix(model, setup.output, setup.fraction, block.mix)
                mix_scores(block.mix, block.scores, j, events.before[i])
                if setup.notes > 0:
                    note(params, state, events.before[i])
            if events.weights[i] > 0.0:
                read_scores(model, block, j, block.f)
                if not in_bounds(block.f):
                    return -1
                if model.votes.size > 0:
                    learn_votes(model, block, j, setup.fraction, setup.numeric, events.targets[i], events.weights[i])
                begin_event(model, block, setup.growth)
                u = events.uniforms[drawn : drawn + setup.uniforms]
                drawn += setup.uniforms
                step(params, state, block, j, block.f, events.targets[i], events.weights[i], u)
                if setup.decay < 1.0:
                    forget(model, block, j, setup.decay)
    return last


def _feature_loop(call, first, last):
    """Learn blocks of events with one linear model on features."""
    setup, params, state, events, features = call.setup, call.params, call.state, call.events, call.features
    model = state.model
    drawn = 0
    for start in range(first, last, setup.block_size):
        b = min(setup.block_size, last - start)
        open_features(model, features, start, b)
        for j in range(b):
            i = start + j
            if events.before.shape[0] > 0:
                feature_outputs(model, features, j, setup.output, events.before[i])
                if setup.notes > 0:
                    note(params, state, events.before[i])
            if events.weights[i] > 0.0:
                meet_event(model, features, j, features.f)
                if not in_bounds(features.f):
                    return -1
                u = events.uniforms[drawn : drawn + setup.uniforms]
                drawn += setup.uniforms
                step(params, state, features, j, features.f, events.targets[i], events.weights[i], u)
                if setup.decay < 1.0:
                    feature_scale(model, setup.decay)
    return last


def _dual_loop(call, first, last):
    """Learn blocks of events with an expansion and a linear model, whose scores add up."""
    setup, params, state, events = call.setup, call.params, call.state, call.events
    block, features = call.block, call.features
    model, linear = state.model, state.linear
    drawn = 0
    for start in range(first, last, setup.block_size):
        b = min(setup.block_size, last - start)
        if model.size[0] + b > model.points.shape[0]:
            return start
        open_block(model, block, start, b)
        open_features(linear, features, start, b)
        for j in range(b):
            i = start + j
            f = block.f
            read_scores(model, block, j, f)
            feature_scores(linear, features, j, features.f)
            for o in range(f.size):
                f[o] += features.f[o]
            if events.before.shape[0] > 0:
                for o in range(f.size):
                    events.before[i, o] = f[o]
            if events.weights[i] > 0.0:
                if not in_bounds(f):
                    return -1
                model.clock[EVENTS] += 1.0
                u = events.uniforms[drawn : drawn + setup.uniforms]
                drawn += setup.uniforms
                step(params, state, block, features, j, f, events.targets[i], events.weights[i], u)
                if setup.decay < 1.0:
                    forget(model, block, j, setup.decay)
                    feature_scale(linear, setup.decay)
    return last


def loop(call, first, last):
    """Placeholder for one of the loops above, bound to a step."""


def _learn_rows(call, first, last):
    return loop(call, first, last)


def _learn_event(call, x, y, weight, largest):
    """Learn one event: 1 if that was done, 0 if there was no room, -1 if it diverges, REFUSED if x cannot be learned."""
    event = call.event
    if event.draw != 0:
        for i in range(event.uniforms.size):
            event.uniforms[i] = number_of(event.draw, event.bits)
    if not load_event(event.rows[0], x, largest):
        return REFUSED
    event.targets[0] = y
    event.weights[0] = weight
    if event.memory.size == 0:
        return loop(call, 0, 1)
    copy_numbers(event.memory, event.before)
    done = loop(call, 0, 1)
    if done != 1 or not all_within(event.floats, FINITE):
        copy_numbers(event.before, event.memory)
        return -1
    return done


def _learn_few(call, X, y, labels, weights, first, largest):
    """Learn a few events, which become those from ``first`` on; without weights, all have weight 1.

    Targets are encoded if there are labels.  Returns where it stopped, -1 if it diverges, REFUSED if they cannot be learned.
    """
    event = call.event
    outside = 0
    draws = 0
    for i in range(X.shape[0]):
        if not load_event(event.rows[first + i], X[i], largest):
            outside += 1
        weight = weights[i] if weights.size > 0 else 1.0
        if weight > 0.0:
            draws += call.setup.uniforms
        target = encoded(labels, y[i])
        if not abs(target) <= FINITE:
            outside += 1
        event.weights[first + i] = weight
        event.targets[first + i] = target
    if outside > 0:
        return REFUSED
    if event.draw != 0:
        for i in range(draws):
            event.uniforms[i] = number_of(event.draw, event.bits)
    copy_numbers(event.uniforms, event.drawn[first * call.setup.uniforms : first * call.setup.uniforms + draws])
    done = loop(call, first, first + X.shape[0])
    return done if all_within(event.floats, FINITE) else -1


@inline
def encoded(labels, y):
    """Return the target of a label, as ``estimators/labels.py`` encodes it; NaN if it is unknown."""
    if labels.size == 0:
        return y
    for k in range(labels.size):
        if labels[k] == y:
            return float(k) if labels.size > 2 else 2.0 * k - 1.0
    return np.nan


def _write_notes(call, row):
    note(call.params, call.state, row)


@inline
def load_event(row, x, largest):
    """Copy an event into the buffer; return whether all its numbers are finite and within the limit."""
    outside = 0
    for c in range(row.size):
        if not abs(x[c]) <= largest:
            outside += 1
        row[c] = x[c]
    return outside == 0


class Loop:
    """The compiled forms of a step: a loop over rows, and a function for single events."""

    settle: Any = None  # what Python does where the buffers say that it is due, see settled.py

    def __init__(self, template: Callable, buffers: Callable, blas: bool, exact: bool = False, **functions: Callable):
        unit = bind(template, kind=UNIT, exact=exact, **functions)
        self.buffers = buffers
        self.guard: Callable = one_thread if blas else lambda entry: entry
        self.rows = bind(_learn_rows, loop=unit)
        self.event = bind(_learn_event, loop=unit)
        self.few = bind(_learn_few, loop=unit)
        self.notes = bind(_write_notes, note=functions.get("note", no_note))

    def of(self, state: Any) -> Loop:
        """Return the loop for a state."""
        return self

    def stamp(self, state: Any) -> Any:
        """Return what the buffers for a state depend on besides its arrays; None if there is nothing."""

    def event_guard(self, entry: Callable, state: Any) -> Callable:
        """Return the function for single events of a state, with BLAS limited to one thread where it is called."""
        return self.guard(entry)


no_note = inline(note)


def kernel_loop(step: Callable, note: Callable = no_note, blas: bool = False) -> Loop:
    """Compile the loop around a step of a learner with one expansion; ``blas``: the step itself calls BLAS."""

    def buffers(setup: Setup, params: Any, state: Any, rows: Rows, size: int) -> tuple:
        return Block(setup, state.model, rows, size), Nothing()

    return Loop(_kernel_loop, buffers, blas, step=step, note=note)


def feature_loop(step: Callable, note: Callable = no_note) -> Loop:
    """Compile the loop around ``step(params, state, features, j, f, y, weight, u)`` of a learner with one linear model."""

    def buffers(setup: Setup, params: Any, state: Any, rows: Rows, size: int) -> tuple:
        return Nothing(), Features(state.model, rows, size)

    return Loop(_feature_loop, buffers, blas=False, step=step, note=note)


def dual_loop(step: Callable) -> Loop:
    """Compile the loop around a step of a learner with both: ``step(params, state, block, features, j, f, y, weight, u)``."""

    def buffers(setup: Setup, params: Any, state: Any, rows: Rows, size: int) -> tuple:
        block = Block(setup, state.model, rows, size)
        centred = block.X if len(block.X) and np.array_equal(state.model.centre, state.linear.centre) else None
        return block, Features(state.linear, rows, size, block.values.size, centred)

    return Loop(_dual_loop, buffers, blas=False, step=step, note=no_note)


class Run:
    """A compiled loop and its arguments, passed by address."""

    def __init__(self, loop: Loop, setup: Setup, params: Any, events: EventBatch, event: Event):
        self._given = self._loop = loop
        self._fixed, self._events, self._event = (setup, params), events, event
        self._state: Any = None
        self._stamp: Any = None
        self._rows: Any = None
        self.due = NEVER

    def _attach(self, state: Any) -> None:
        setup, params = self._fixed
        rows = self._events.rows
        self._loop = self._given.of(state)
        block, features = self._loop.buffers(setup, params, state, rows, min(setup.block_size, row_count(rows)))
        self.due = getattr(block, "due", NEVER)
        self._call = by_address(Call(setup, params, state, self._events, block, features, self._event))
        self._state, self._stamp = state, self._given.stamp(state)

    def __call__(self, state: Any, first: int, last: int) -> int:
        """Learn events first .. last - 1, or until there is no more room; return where it stopped."""
        if state is not self._state or self._given.stamp(state) != self._stamp:
            self._attach(state)
        if self._rows is None:
            self._rows = self._loop.guard(entry_point(self._loop.rows, self._call, 0, 1))
        return self._rows(self._call, first, last)

    def of_events(self, state: Any, outputs: np.ndarray, **more: Any) -> tuple[Callable, Any]:
        """Return the function that learns single events of this state, and its first argument: see ``_learn_event``.

        x must be as wide as the rows and of their type; ``outputs`` gets those before each, ``more`` are fields of the
        event.  The argument is valid as long as this object.
        """
        self._events, self._event = self._events._replace(before=outputs), self._event._replace(**more)
        self._attach(state)
        entry = entry_point(self._loop.event, self._call, strided(self._event.rows[0]), 0.0, 1.0, 1.0)
        return self._loop.event_guard(entry, state), address(self._call)

    def of_few(self, state: Any, **more: Any) -> tuple[Callable, Any]:
        """Same for the function that learns a few events: see ``_learn_few``."""
        self._event = self._event._replace(**more)
        self._attach(state)
        row = np.empty(1)
        return entry_point(self._loop.few, self._call, self._event.rows, row, row, row, 0, 1.0), address(self._call)


class Noted(NamedTuple):
    """The arguments of a note."""

    params: Any
    state: Any


class Notes:
    """What the outputs of a state need in addition to the scores; for one thread at a time."""

    def __init__(self, loop: Loop, setup: Setup, params: Any, state: Any):
        outputs = state.model.outputs
        self._row = np.empty(outputs + setup.notes)  # as those of ``EventBatch.before``
        self.noted = self._row[outputs:]
        self._record = by_address(Noted(params, state))
        self._write, self._call = entry_point(loop.notes, self._record, self._row), address(self._record)
        self.update()

    def update(self) -> None:
        """Follow a state that has learned in place."""
        self._write(self._call, self._row)
