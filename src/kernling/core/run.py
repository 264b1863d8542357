"""The loop around a step, with everything by address: settings, parameters, state, events and the block.

It replaces the kernel part of loop.py and scoring.py, method by method.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from . import kernels
from .averages import begin_event, output_mix
from .block import (
    NARROW,
    SPARE,
    STRIP,
    _accumulate,
    _keep_nearest,
    _sparse_products,
    as_distances,
    fill,
    inner_product,
    products,
)
from .expansion import Expansion
from .jit import UNIT, bind, entry_point, inline, inner, jit, pluggable, template
from .limits import in_bounds
from .rows import Rows, centred_row, row_count
from .setup import Setup, mix_scores
from .struct import Plug, by_address, shaped
from .updates import forget, read_scores


class Stretch(NamedTuple):
    """Events for the loop, and its output."""

    rows: Rows
    targets: np.ndarray
    weights: np.ndarray
    uniforms: np.ndarray
    before: np.ndarray  # (rows, outputs and notes), or no rows: the outputs before each event was learned


class Event(NamedTuple):
    """The event at the front of a stretch of one, to be written; empty in other stretches."""

    row: np.ndarray
    target: np.ndarray
    weight: np.ndarray


class Block:
    """The events ahead: their kernel values against the stored points and their scores.  Not part of the state."""

    def __init__(self, setup: Setup, model: Expansion, rows: Rows, size: int):
        capacity, d = model.points.shape
        groups, outputs = model.coef.shape[:2]
        dtype = model.points.dtype
        from_csr = bool(rows.indptr.size) and not setup.dense and not model.centre.any()
        self.kernel = setup.kernel
        self.load = Plug(load_sparse if from_csr else load_dense, model, self, 0, 0)
        self.transform = Plug(kernels.TRANSFORMS.get(setup.kernel.kind, kernels.any_kernel), setup.kernel, np.empty(0, dtype))
        self.rows = rows
        self.tolerance = setup.tolerance  # by how much a point must be nearer to count as nearer; negative: not needed
        self.start = 0
        self.size = 0
        self.turned = np.zeros(1, np.int64)  # whether columns have been filled
        self.values = np.empty(capacity * size, dtype)  # K, flat
        self.K = self.values[:0].reshape(0, 0)  # (points now and possibly inserted, events)
        self.flat_scores = np.empty(groups * outputs * size, dtype)
        self.scores = self.flat_scores[:0].reshape(0, 0, 0)  # (groups, outputs, events), without scale
        self.X = np.empty((0 if from_csr else size, d), dtype)  # rows minus the centre; none when products are from CSR
        self.flat_columns = np.empty(0 if from_csr or d > NARROW else size * d, dtype)
        self.columns = self.flat_columns[:0].reshape(0, 0)  # (d, events) X transposed, once a step needs it
        self.norms = np.empty(size, dtype)
        self.nearest = np.empty(size, dtype)  # index of each event's nearest core point, -1 for none
        self.distance = np.empty(size, dtype)  # its squared distance
        self.transposed = np.empty((d if from_csr else 0, capacity), dtype)  # points, for CSR products only
        if from_csr:
            self.transposed[:, : model.stored] = model.points[: model.stored].T
        self.sums = np.empty(capacity if from_csr else 0)
        self.f = np.empty(outputs)  # scores of one event
        self.g = np.empty(outputs)  # gradient of one event
        self.mix = np.empty(groups)
        self.work = np.empty((3, capacity + SPARE))  # for steps that look at all points at once


@pluggable
def load_dense(model, block, start, b):
    """Compute the norms of dense rows, and their inner products with all points."""
    size, norms, K = model.size[0], block.norms, block.K
    X, centre = block.X[:b], model.centre
    for j in range(b):
        centred_row(block.rows, start + j, centre, X[j])
        norms[j] = inner_product(X[j], X[j])
    if size > 0:
        products(model.points[:size], X, K[:size])


@pluggable
def load_sparse(model, block, start, b):
    """Compute the norms of CSR rows, and their inner products with all points."""
    size, norms, K = model.size[0], block.norms, block.K
    data, indptr = block.rows.data, block.rows.indptr
    for j in range(b):
        total = 0.0
        for p in range(indptr[start + j], indptr[start + j + 1]):
            total += np.float64(data[p]) ** 2
        norms[j] = total
    _sparse_products(block.rows, start, block.transposed, block.sums, K[:size])


@inner
def open_block(model, block, start, b):
    """Kernel values, nearest points and scores of events start .. start + b - 1."""
    size = model.size[0]
    room = min(size + b, model.points.shape[0])
    block.start, block.size = start, b
    block.turned[0] = 0
    values = block.values
    K = shaped(values, (room, b))
    block.K = K
    width = 0 if block.flat_columns.size == 0 else block.X.shape[1]
    block.columns = shaped(block.flat_columns, (width, b))
    block.load(model, block, start, b)
    groups, outputs = model.coef.shape[:2]
    flat_scores = block.flat_scores[: groups * outputs * b]
    scores = shaped(flat_scores, (groups, outputs, b))
    block.scores = scores
    number = K.dtype.type
    fill(flat_scores, number(0.0))
    fill(block.nearest, number(-1.0))
    fill(block.distance, number(np.inf))
    height = max(4, STRIP // b)
    isotropic = kernels.is_isotropic(block.kernel)
    for first in range(0, size, height):
        last = min(first + height, size)
        if isotropic:
            as_distances(K, first, last, model.norms, block.norms)
            if block.tolerance >= 0.0:
                _keep_nearest(K, first, last, model.tags, block.tolerance, block.nearest, block.distance)
        block.transform(block.kernel, values[first * b : last * b])
        _accumulate(K, first, last, model.coef, scores)


@template
def step(params, state, block, j, f, y, weight, u):
    """Placeholder for a learner's step: learn event j of the block, whose scores are f and whose target is y."""


@template
def note(params, state, row):
    """Placeholder for a learner's note: write what its outputs need besides the scores."""


@template
def _kernel_loop(call, first, last):
    """Blocks of events; ``before``, unless empty, gets each event's output.  Returns where it stopped; -1: diverged."""
    setup, params, state, events, block = call.setup, call.params, call.state, call.events, call.block
    model = state.model
    drawn = 0
    for start in range(first, last, setup.block_size):
        b = min(setup.block_size, last - start)
        if model.size[0] + b > model.points.shape[0]:
            return start
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
                begin_event(model, block, j, setup.growth)
                u = events.uniforms[drawn : drawn + setup.uniforms]
                drawn += setup.uniforms
                step(params, state, block, j, block.f, events.targets[i], events.weights[i], u)
                if setup.keep < 1.0:
                    forget(model, block, j, setup.keep)
    return last


@template
def loop(call, first, last):
    """Placeholder for the loop above, bound to a step."""


@template
def _learn_rows(call, first, last):
    return loop(call, first, last)


@template
def _learn_event(call, x, y, weight, largest):
    """Learn one event: 1 if that was done, 0 if there was no room, -1 if it diverges, -2 if x holds what cannot be learned."""
    if not load_event(call.event.row, x, largest):
        return -2
    call.event.target[0] = y
    call.event.weight[0] = weight
    return loop(call, 0, 1)


@inline
def load_event(row, x, largest):
    """Copy an event into the buffer; return whether all its numbers are finite and within the limit."""
    outside = 0
    for c in range(row.size):
        if not abs(x[c]) <= largest:
            outside += 1
        row[c] = x[c]
    return outside == 0


_no_note = inline(note)


class Loop:
    """The compiled forms of a step: a loop over rows, and a function for single events."""

    def __init__(self, template: Callable, step: Callable, note: Callable):
        unit = bind(template, kind=UNIT, step=step, note=note)
        self.rows = bind(_learn_rows, loop=unit)
        self.event = bind(_learn_event, loop=unit)


def kernel_loop(step: Callable, note: Callable = _no_note) -> Loop:
    """Compile the loop around a step of a learner with one expansion."""
    return Loop(_kernel_loop, step, note)


class Call(NamedTuple):
    """The arguments of a loop."""

    setup: Setup
    params: Any
    state: Any
    events: Stretch
    block: Block
    event: Event


class Run:
    """A compiled loop with its arguments by address."""

    def __init__(self, loop: Loop, setup: Setup, params: Any, events: Stretch, event: Event):
        self._loop, self._fixed, self._events, self._event = loop, (setup, params), events, event
        self._state: Any = None

    def _attach(self, state: Any) -> None:
        setup, params = self._fixed
        block = Block(setup, state.model, self._events.rows, min(setup.block_size, row_count(self._events.rows)))
        self._call = by_address(Call(setup, params, state, self._events, block, self._event))
        self._state = state

    def __call__(self, state: Any, first: int, last: int) -> int:
        """Learn events first .. last - 1, or up to where there is no more room; returns where it stopped."""
        if state is not self._state:
            self._attach(state)
            self._rows = entry_point(self._loop.rows, self._call, 0, 1)
        return self._rows(self._call, first, last)

    def learn_event(self, state: Any, x: np.ndarray, y: float, weight: float, largest: float) -> int:
        """Learn one event: see ``_learn_event``.  x must be as wide as the rows, contiguous, and of their type."""
        if state is not self._state:
            self._attach(state)
            self._learn = entry_point(self._loop.event, self._call, x, 0.0, 1.0, 1.0)
        return self._learn(self._call, x, y, weight, largest)


class Scoring(NamedTuple):
    """The arguments of scoring."""

    setup: Setup
    model: Expansion
    block: Block
    out: np.ndarray
    row: np.ndarray  # of a single event, to be written; empty for others
    frozen: bool  # the model has one group and no scale


@inner
def _add_outputs(call, first, last):
    setup, model, block, out = call.setup, call.model, call.block, call.out
    mix = block.mix
    if call.frozen:
        mix[0] = 1.0
    else:
        output_mix(model, setup.output, setup.fraction, mix)
    for start in range(first, last, setup.block_size):
        b = min(setup.block_size, last - start)
        open_block(model, block, start, b)
        for j in range(b):
            mix_scores(mix, block.scores, j, block.f)
            for o in range(block.f.size):
                out[start + j, o] += block.f[o]


@jit
def _score_rows(call, first, last):
    """Add the outputs of rows first .. last - 1, from the model as it is."""
    _add_outputs(call, first, last)


@jit
def _score_event(call, x, largest):
    """Write the outputs of one event; returns whether it holds what can be scored."""
    if not load_event(call.row, x, largest):
        return False
    out = call.out
    for o in range(out.shape[1]):
        out[0, o] = 0.0
    _add_outputs(call, 0, 1)
    return True


class Scorer:
    """Outputs of one expansion for rows that stay in one place, by address."""

    def __init__(
        self, setup: Setup, model: Expansion, rows: Rows, out: np.ndarray, row: np.ndarray | None = None, frozen: bool = False
    ):
        setup = setup._replace(tolerance=-1.0, dense=False)
        block = Block(setup, model, rows, min(setup.block_size, row_count(rows)))
        row = np.empty(0, model.points.dtype) if row is None else row
        self._call = by_address(Scoring(setup, model, block, out, row, frozen))
        self._rows = entry_point(_score_rows, self._call, 0, 1)
        if row.size:
            self._event = entry_point(_score_event, self._call, row, 1.0)

    def __call__(self, first: int, last: int) -> None:
        """Add the outputs of rows first .. last - 1."""
        self._rows(self._call, first, last)

    def event(self, x: np.ndarray, largest: float) -> bool:
        """Write the outputs of one event, as wide as the rows, contiguous, and of their type; whether that could be done."""
        return self._event(self._call, x, largest)
