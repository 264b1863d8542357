"""Mini-batches: rows wait in the state until a batch is full, so results do not depend on chunks."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from ..compiler import inner, shaped
from ..core import kernels
from ..core.blas import one_thread
from ..core.block import Block, as_distances, open_block, products
from ..core.expansion import EVENTS, check_room
from ..core.limits import in_bounds
from ..core.rows import Rows, as_rows, centred_row
from ..core.setup import Setup
from ..core.shapes import declared
from ..core.state import Widening, recoded
from ..core.updates import read_scores
from .loops import Loop, Nothing, no_note

if TYPE_CHECKING:
    from ..merging.rules import Merging


@declared()
class Waiting(NamedTuple):
    """Rows of an incomplete batch; all numbers beyond them are 0."""

    X: Annotated[np.ndarray, "rows: batch columns"]  # minus the model's centre
    targets: Annotated[np.ndarray, "targets: batch"]
    weights: Annotated[np.ndarray, "weights: batch"]
    uniforms: Annotated[np.ndarray, "0..1: batch"]
    count: Annotated[np.ndarray, "index of batch: 1"]  # type: ignore[assignment]  # ; hides the method of tuples

    def widened(self, change: Widening) -> Waiting:
        """Convert to the outputs of ``change``."""
        return self._replace(targets=recoded(self.targets, change))

    def merged(self, other: Waiting, start: Waiting | None, merging: Merging) -> Waiting:
        """Return no rows: waiting rows are learned before models are merged."""
        return self._replace(count=np.zeros_like(self.count))


def new_waiting(batch_size: int, d: int, dtype: DTypeLike) -> Waiting:
    """Return an empty batch."""
    check_room(batch_size, d, "rows in a batch")
    zeros = np.zeros(batch_size)
    return Waiting(np.zeros((batch_size, d), dtype), zeros, zeros.copy(), zeros.copy(), np.zeros(1, np.int64))


class Batch:
    """The rows of a batch as a step sees them, with their kernel values and scores.  Not part of the state."""

    def __init__(self, setup: Setup, state: Any, rows: Rows, size: int, work: Callable):
        model, setup, n = state.model, setup._replace(dense=True), len(state.waiting.targets)
        capacity, outputs = len(model.points), model.outputs
        self.block = Block(setup, model._replace(centre=np.zeros_like(model.centre)), as_rows(state.waiting.X), n)
        self.ahead = Block(setup, model, rows, size)  # rows of the call, to record their outputs
        self.chosen = np.empty(n, np.int64)  # rows that become points
        self.work = work(capacity, n, outputs)  # of the method


def step(params, state, batch):
    """Placeholder for a learner's step: learn the waiting rows, whose scores are in ``batch.block``."""


def _batch_loop(call, first, last):
    """Let rows wait until a batch is full, and learn it; without any rows, learn those that wait, however few.

    ``before``, unless empty, gets each row's output by the model before its batch.  Returns where it stopped; -1: diverged.
    """
    setup, params, state, events, batch = call.setup, call.params, call.state, call.events, call.block
    model, waiting = state.model, state.waiting
    drawn = 0
    i = first
    while i < last or first == last:
        n = waiting.count[0]
        if model.size[0] + waiting.targets.size > model.points.shape[0]:
            return i
        end = _wait(waiting, model.centre, events, i, last, drawn, setup.uniforms)
        drawn += (waiting.count[0] - n) * setup.uniforms
        if events.before.shape[0] > 0 and not _record(model, batch.ahead, i, end, events.before):
            _discard(waiting, n)
            return -1
        if waiting.count[0] == waiting.targets.size or first == last:
            if not _score(model, batch.block, 0, waiting.count[0]):
                _discard(waiting, n)
                return -1
            step(params, state, batch)
            model.clock[EVENTS] += waiting.count[0]
            _discard(waiting, 0)
        if first == last:
            return last
        i = end
    return last


@inner
def _wait(waiting, centre, events, first, last, drawn, uniforms):
    """Move rows into the waiting batch until it is full; return how far it got."""
    i = first
    n = waiting.count[0]
    while i < last and n < waiting.targets.size:
        if events.weights[i] > 0.0:
            centred_row(events.rows, i, centre, waiting.X[n])
            waiting.targets[n] = events.targets[i]
            waiting.weights[n] = events.weights[i]
            if uniforms > 0:
                waiting.uniforms[n] = events.uniforms[drawn]
                drawn += uniforms
            n += 1
        i += 1
    waiting.count[0] = n
    return i


@inner
def _discard(waiting, n):
    """Let only the first n rows wait."""
    for i in range(n, waiting.count[0]):
        row = waiting.X[i]
        for c in range(row.size):
            row[c] = 0.0
        waiting.targets[i] = 0.0
        waiting.weights[i] = 0.0
        waiting.uniforms[i] = 0.0
    waiting.count[0] = n


@inner
def _score(model, block, start, b):
    """Compute kernel values and scores of b events; return whether all scores are within their limit."""
    if b == 0:
        return True
    open_block(model, block, start, b)
    for j in range(b):
        read_scores(model, block, j, block.f)
        if not in_bounds(block.f):
            return False
    return True


@inner
def _record(model, block, first, last, before):
    """Write the scores of events; return whether all are within their limit."""
    for start in range(first, last, block.X.shape[0]):
        b = min(block.X.shape[0], last - start)
        if not _score(model, block, start, b):
            return False
        for j in range(b):
            read_scores(model, block, j, before[start + j])
    return True


@inner
def gather(model, batch, n, cross, own):
    """Write the kernel values of the n chosen rows with all points, and among themselves; they become the first rows."""
    block, chosen = batch.block, batch.chosen
    K, X, norms, size = block.K, block.X, block.norms, model.size[0]
    for c in range(n):
        j = chosen[c]
        if j != c:
            norms[c] = norms[j]
            for i in range(X.shape[1]):
                X[c, i] = X[j, i]
    for k in range(size):
        values, row = K[k], cross[k * n : k * n + n]
        for c in range(n):
            row[c] = values[chosen[c]]
    if n > 0:
        _own_values(block, n, own)


@inner
def _own_values(block, n, own):
    """Write the kernel values among the first n rows: exactly symmetric, as their computed products need not be."""
    K = shaped(block.values, (n, n))
    products(block.X[:n], block.X[:n], K)
    if kernels.is_isotropic(block.kernel):
        as_distances(K, block.norms, block.norms)
    block.transform(block.kernel, block.values[: n * n])
    for i in range(n):
        for j in range(n):
            own[i * n + j] = 0.5 * (np.float64(K[i, j]) + np.float64(K[j, i]))


class BatchLoop(Loop):
    """The compiled forms of a step that learns batches."""

    def event_guard(self, entry: Callable, state: Any) -> Callable:
        """Return the function for single events, with BLAS limited to one thread when a batch is learned."""
        count, last = state.waiting.count, len(state.waiting.targets) - 1

        def learn(call: Any, x: np.ndarray, y: float, weight: float, largest: float) -> int:
            if count.item() < last:
                return entry(call, x, y, weight, largest)
            with one_thread.where_needed():
                return entry(call, x, y, weight, largest)

        return learn


def batch_loop(step: Callable, work: Callable) -> BatchLoop:
    """Compile the loop around ``step(params, state, batch)`` of a learner with one expansion, whose state has ``waiting`` rows.

    ``work(capacity, batch, outputs)`` returns its buffers, for a model with room for this many points.
    """

    def buffers(setup: Setup, params: Any, state: Any, rows: Rows, size: int) -> tuple:
        return Batch(setup, state, rows, size, work), Nothing()

    return BatchLoop(_batch_loop, buffers, blas=True, step=step, note=no_note)
