"""Runs a learner's step over events: blocks inside a compiled call, capacity and random numbers around it.

One compiled call covers at most ``CALL`` events, after which Python looks at the capacity of the state, progress and
Ctrl-C.  Random numbers are drawn per call and in the order of events, so whatever stops the loop leaves the state and the
generator at the boundary of an event.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from .averages import begin_event, output_mix
from .expansion import EVENTS, Expansion, new_scratch, open_block, read_scores
from .jit import bind, entry_point, inline, inner, jit
from .kernels import Kernel
from .rows import Rows, as_rows, read_only, row_count

CALL = 8192
WORK = 2**32  # multiplications per compiled call at most, so that Ctrl-C never waits long


class Setup(NamedTuple):
    """What the loop around a step needs to know."""

    kernel: Kernel
    block_size: int
    tolerance: float  # of the nearest core point, in squared distance; negative where no step asks for it
    dense: bool  # the step reads whole rows
    output: int  # averages.LAST, AVERAGE or SUFFIX
    fraction: float  # of a suffix
    growth: float  # between snapshots
    uniforms: int  # random numbers per event
    room: int  # points that one call of the step may add, where that is more than the block
    notes: int  # numbers recorded beside the outputs of each event


class Events(NamedTuple):
    """A stretch of the stream, in the learner's own terms."""

    rows: Rows
    targets: np.ndarray
    weights: np.ndarray


def step(params, state, block, j, f, y, weight, u):
    """What a learner puts in this place: learn event j of the block, whose scores are f and whose target is y."""


def note(params, state, row):
    """What a learner may put in this place: write what its outputs need besides the scores."""


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
                begin_event(model, block, j, setup.growth)
                u = uniforms[drawn : drawn + setup.uniforms]
                drawn += setup.uniforms
                read_scores(model, block, j, scratch.f)
                step(params, state, block, j, scratch.f, events.targets[i], events.weights[i], u)
    return last


def blocks(setup, params, state, events, uniforms, before, first, last, scratch, mix):
    """What stands in this place is one of the loops above, bound to a step."""


@inline
def mix_scores(mix, scores, j, row):
    """Write the outputs of event j: the scores of all groups, mixed."""
    for o in range(scores.shape[1]):
        row[o] = 0.0
        for g in range(mix.size):
            row[o] += mix[g] * scores[g, o, j]


def _kernel_loop(setup, params, state, events, uniforms, before, first, last):
    scratch = new_scratch(state.model, events.rows, min(setup.block_size, last - first), setup.dense)
    mix = np.empty(state.model.coef.shape[0])
    return blocks(setup, params, state, events, uniforms, before, first, last, scratch, mix)


def kernel_loop(step: Callable, note: Callable = inline(note)) -> Callable:
    """The compiled loop around a step of a learner with one expansion."""
    return bind(_kernel_loop, blocks=bind(_kernel_blocks, is_inner=True, step=step, note=note))


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
    """Learn all events; returns the state and, when asked for, the outputs before each event was learned.

    ``done(state, n)`` is called after every compiled call, and last of all when Ctrl-C stops the loop.
    """
    n = row_count(events.rows)
    outputs = state.model.coef.shape[1]
    before = np.empty((n if record else 0, outputs + setup.notes))
    first = 0
    with _deferred_interrupt() as interrupted:
        while first < n:
            state = _with_room(state, max(setup.block_size, setup.room))
            last = min(n, first + _call_length(state, setup))
            spare = np.empty(0)
            if setup.uniforms:
                generator = rng.bit_generator.state
                spare = rng.random(setup.uniforms * int(np.count_nonzero(events.weights[first:last])))
            stopped = loop(setup, params, state, events, read_only(spare), before, first, last)
            if setup.uniforms and stopped < last:  # out of room: give back what was not used
                rng.bit_generator.state = generator
                rng.random(setup.uniforms * int(np.count_nonzero(events.weights[first:stopped])))
            done(state, stopped - first)
            first = stopped
            if interrupted() and first < n:
                raise KeyboardInterrupt(f"stopped after {int(state.model.clock[EVENTS])} events; the model can be used")
    return state, before


class Single:
    """Learns and scores single events of one model with as little around the compiled code as can be.

    Buffers and entry points are made once; they fit as long as the types of setup, parameters and state stay the same.
    """

    def __init__(self, loop: Callable, setup: Setup, params: Any, state: Any):
        d = state.model.points.shape[1]
        self.row = np.zeros((1, d), state.model.points.dtype)
        self.target = np.zeros(1)
        self.weight = np.ones(1)
        self.out = np.zeros((1, state.model.coef.shape[1]))
        self.setup, self.params = setup, params
        self.rows = as_rows(self.row)
        self.events = Events(self.rows, read_only(self.target), read_only(self.weight))
        self._record = np.empty((0, 1))
        self._spare = read_only(np.empty(0))
        arguments = (setup, params, state, self.events, self._spare, self._record, 0, 1)
        self._learn = entry_point(loop, *arguments)
        self._score = entry_point(_score_event, setup, state.model, self.rows, self.out)

    def learn(self, state: Any, rng: np.random.Generator) -> Any:
        """Learn the event in the buffers."""
        state = _with_room(state, max(1, self.setup.room))
        uniforms = rng.random(self.setup.uniforms) if self.setup.uniforms else self._spare
        self._learn(self.setup, self.params, state, self.events, uniforms, self._record, 0, 1)
        return state

    def score(self, state: Any) -> np.ndarray:
        """The outputs of the event in the buffers, in a row that the next call overwrites."""
        self._score(self.setup, state.model, self.rows, self.out)
        return self.out[0]


def _call_length(state: Any, setup: Setup) -> int:
    """How many events one compiled call takes: a multiple of the block, and the same whatever the machine's speed."""
    size, d = int(state.model.size[0]), state.model.points.shape[1]
    cost = max(1, size * (d + 8 * size) if setup.room else size * d)  # batches also update a matrix
    blocks = max(1, min(CALL, WORK // cost) // setup.block_size)
    return blocks * setup.block_size


def _with_room(state: Any, block_size: int) -> Any:
    """Let every part of the state grow that holds points, if the next blocks might not fit."""
    model: Expansion = state.model
    capacity = len(model.points)
    if int(model.size[0]) + block_size <= capacity:
        return state
    return grown(state, max(capacity * 5 // 4, int(model.size[0])) + 2 * block_size)


def trimmed(state: Any) -> Any:
    """The state without spare room."""
    size = int(state.model.size[0])
    return state._replace(
        **{name: part.trimmed(size) for name, part in zip(state._fields, state, strict=True) if hasattr(part, "trimmed")}
    )


def check_shapes(state: Any, d: int, outputs: int) -> None:
    """Raise unless the arrays of a state that comes from outside fit each other: compiled code does not look."""
    for part in state:
        if hasattr(part, "check"):
            part.check(int(state.model.size[0]), d, outputs)


def widened(state: Any, change: np.ndarray) -> Any:
    """The state with outputs ``change @ outputs``."""
    return state._replace(
        **{name: part.widened(change) for name, part in zip(state._fields, state, strict=True) if hasattr(part, "widened")}
    )


def grown(state: Any, capacity: int) -> Any:
    """The state with room for this many points."""
    return state._replace(
        **{name: part.grown(capacity) for name, part in zip(state._fields, state, strict=True) if hasattr(part, "grown")}
    )


@contextmanager
def _deferred_interrupt() -> Iterator[Callable[[], bool]]:
    """Turn Ctrl-C into a question that the loop asks between compiled calls."""
    hits: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return
    usual = signal.getsignal(signal.SIGINT)
    if usual is not signal.default_int_handler:  # somebody else's business
        yield lambda: False
        return
    signal.signal(signal.SIGINT, lambda number, frame: hits.append(number))
    try:
        yield lambda: bool(hits)
    finally:
        signal.signal(signal.SIGINT, usual)


@inner
def _score_blocks(setup, model, rows, out, first, last, scratch):
    for start in range(first, last, setup.block_size):
        b = min(setup.block_size, last - start)
        block = open_block(setup.kernel, model, rows, start, b, scratch, -1.0)
        for j in range(b):
            for o in range(out.shape[1]):
                out[start + j, o] = block.scores[0, o, j]


@jit
def _score(setup, model, rows, out, first, last):
    """Scores of rows first .. last - 1; the model has one group and is only read."""
    _score_blocks(setup, model, rows, out, first, last, new_scratch(model, rows, setup.block_size, False))


@inner
def _mixed_outputs(setup, model, rows, out, scratch, mix):
    block = open_block(setup.kernel, model, rows, 0, 1, scratch, -1.0)
    output_mix(model, setup.output, setup.fraction, mix)
    mix_scores(mix, block.scores, 0, out[0])


@jit
def _score_event(setup, model, rows, out):
    """Outputs of one event, from the model as it is."""
    scratch = new_scratch(model, rows, 1, False)
    _mixed_outputs(setup, model, rows, out, scratch, np.empty(model.coef.shape[0]))


def score(setup: Setup, model: Expansion, rows: Rows, threads: int = 1) -> np.ndarray:
    """The output of the model for each row: (rows, outputs).  Several threads give the same numbers."""
    n = row_count(rows)
    out = np.empty((n, model.coef.shape[1]))
    frozen = frozen_model(setup, model)
    blocks = -(-n // setup.block_size)
    threads = max(1, min(threads, blocks))
    cuts = [setup.block_size * (blocks * i // threads) for i in range(threads)] + [n]
    if threads == 1:
        _score(setup, frozen, rows, out, 0, n)
    else:
        with ThreadPoolExecutor(threads) as pool:
            jobs = [pool.submit(_score, setup, frozen, rows, out, *cuts[i : i + 2]) for i in range(threads)]
            for job in jobs:
                job.result()
    return out


def frozen_model(setup: Setup, model: Expansion) -> Expansion:
    """The output function of a model, as an expansion with one group and scale 1."""
    mix = np.empty(model.coef.shape[0])
    output_mix(model, setup.output, setup.fraction, mix)
    return model._replace(coef=np.tensordot(mix, model.coef, (0, 0))[np.newaxis])
