"""The loop around a step, with everything by address: settings, parameters, state, events and the block.

This takes the place of the kernel part of drive.py and scoring.py, method by method.
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
from .bounds import in_bounds
from .changes import forget, read_scores
from .expansion import Expansion
from .jit import bind, entry_point, inline, inner, jit, pluggable
from .rows import Rows, centred_row, row_count
from .setup import Setup, mix_scores
from .struct import Plug, by_address, shaped


class Stretch(NamedTuple):
    """Events as the loop sees them, and what it writes about them."""

    rows: Rows
    targets: np.ndarray
    weights: np.ndarray
    uniforms: np.ndarray
    before: np.ndarray  # (rows, outputs and notes), or no rows: the outputs before each event was learned


class Block:
    """The events ahead: their kernel values against the stored points and their scores.  Never state."""

    def __init__(self, setup: Setup, model: Expansion, rows: Rows, size: int):
        capacity, d = model.points.shape
        groups, outputs = model.coef.shape[:2]
        dtype = model.points.dtype
        from_csr = bool(rows.indptr.size) and not setup.dense and not model.centre.any()
        self.kernel = setup.kernel
        self.load = Plug(load_sparse if from_csr else load_dense, model, self, 0, 0)
        self.transform = Plug(kernels.TRANSFORMS.get(setup.kernel.kind, kernels.any_kernel), setup.kernel, np.empty(0, dtype))
        self.rows = rows
        self.tolerance = setup.tolerance  # by how much a point must be nearer to count as nearer; negative: nobody asks
        self.start = 0
        self.size = 0
        self.turned = np.zeros(1, np.int64)  # whether columns have been filled
        self.values = np.empty(capacity * size, dtype)  # K, flat
        self.K = self.values[:0].reshape(0, 0)  # (points now and possibly inserted, events)
        self.flat_scores = np.empty(groups * outputs * size, dtype)
        self.scores = self.flat_scores[:0].reshape(0, 0, 0)  # (groups, outputs, events), without scale
        self.X = np.empty((0 if from_csr else size, d), dtype)  # rows less the centre; none when products are from CSR
        self.flat_columns = np.empty(0 if from_csr or d > NARROW else size * d, dtype)
        self.columns = self.flat_columns[:0].reshape(0, 0)  # (d, events) X turned, once a step asks for it
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
    """Norms of the rows, and their inner products with all points."""
    size, norms, K = model.size[0], block.norms, block.K
    X, centre = block.X[:b], model.centre
    for j in range(b):
        centred_row(block.rows, start + j, centre, X[j])
        norms[j] = inner_product(X[j], X[j])
    if size > 0:
        products(model.points[:size], X, K[:size])


@pluggable
def load_sparse(model, block, start, b):
    """The same of CSR rows."""
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


def step(params, state, block, j, f, y, weight, u):
    """What a learner puts in this place: learn event j of the block, whose scores are f and whose target is y."""


def note(params, state, row):
    """What a learner may put in this place: write what its outputs need besides the scores."""


def _kernel_loop(setup, params, state, events, block, first, last):
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


_no_note = inline(note)


def kernel_loop(step: Callable, note: Callable = _no_note) -> Callable:
    """The compiled loop around a step of a learner with one expansion."""
    loop = bind(_kernel_loop, step=step, note=note)
    loop.takes_addresses = True
    return loop


@jit
def outputs(setup, model, block, out, frozen, first, last):
    """Add the outputs of rows first .. last - 1, from the model as it is; a frozen one has one group and no scale."""
    mix = block.mix
    if frozen:
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


class Run:
    """One compiled loop with all that it takes, by address."""

    def __init__(self, loop: Callable, setup: Setup, params: Any, events: Stretch):
        self._loop, self._setup, self._events = loop, setup, events
        self._fixed = (by_address(setup), by_address(params))
        self._stretch = by_address(events)
        self._state: Any = None

    def __call__(self, state: Any, first: int, last: int) -> int:
        """Learn events first .. last - 1, or up to where there is no more room; returns where it stopped."""
        if state is not self._state:
            self._state = state
            size = min(self._setup.block_size, row_count(self._events.rows))
            block = by_address(Block(self._setup, state.model, self._events.rows, size))
            self._arguments = (*self._fixed, by_address(state), self._stretch, block)
            self._entry = entry_point(self._loop, *self._arguments, 0, 1)
        return self._entry(*self._arguments, first, last)


class Scorer:
    """Outputs of one expansion for rows that stay in one place, by address."""

    def __init__(self, setup: Setup, model: Expansion, rows: Rows, out: np.ndarray, frozen: bool = False):
        setup = setup._replace(tolerance=-1.0, dense=False)
        block = Block(setup, model, rows, min(setup.block_size, row_count(rows)))
        self._arguments = (by_address(setup), by_address(model), by_address(block), out, frozen)
        self._entry = entry_point(outputs, *self._arguments, 0, 1)

    def __call__(self, first: int, last: int) -> None:
        """Add the outputs of rows first .. last - 1."""
        self._entry(*self._arguments, first, last)
