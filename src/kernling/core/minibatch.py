"""The driver for mini-batch learners: rows wait in the state until a batch is full, so results do not depend on chunks."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from . import kernels
from .blas import one_thread
from .block import as_distances, products
from .expansion import EVENTS, SCALE, Expansion, check_room
from .jit import entry_point, jit
from .kernels import Kernel
from .limits import SCORE, Diverged
from .rows import Rows, centred_row
from .run import REFUSED, load_event
from .state import Widening, are_targets, copied, recoded, restore
from .struct import by_address, shaped, strided

if TYPE_CHECKING:
    from ..merging.rules import Merging

STRIP = 1024  # points whose kernel values are computed at once


class Waiting(NamedTuple):
    """Rows of an incomplete batch."""

    X: np.ndarray  # (batch, d) minus the model's centre
    targets: np.ndarray
    weights: np.ndarray
    uniforms: np.ndarray
    count: np.ndarray  # type: ignore[assignment]  # (1,); hides the method of tuples

    def widened(self, change: Widening) -> Waiting:
        """Convert to the outputs of ``change``."""
        return self._replace(targets=recoded(self.targets, change))

    def merged(self, other: Waiting, start: Waiting | None, merging: Merging) -> Waiting:
        """Return no rows: waiting rows are learned before models are merged."""
        return self._replace(count=np.zeros_like(self.count))

    def check(self, size: int, d: int, outputs: int) -> None:
        """Raise unless all shapes agree."""
        n = len(self.targets)
        one = (n,)
        fits = self.X.shape == (n, d) and self.weights.shape == self.uniforms.shape == one
        if not fits or not 0 <= self.count[0] < max(n, 1) or not are_targets(self.targets, outputs):
            raise ValueError("the waiting rows do not match the model")


def new_waiting(batch_size: int, d: int, dtype: DTypeLike) -> Waiting:
    """Return an empty batch."""
    check_room(batch_size, d, "rows in a batch")
    zeros = np.zeros(batch_size)
    return Waiting(np.zeros((batch_size, d), dtype), zeros, zeros.copy(), zeros.copy(), np.zeros(1, np.int64))


class Batch(NamedTuple):
    X: np.ndarray  # (rows, d) minus the model's centre
    targets: np.ndarray
    weights: np.ndarray
    uniforms: np.ndarray


@jit
def _take(rows, targets, weights, uniforms, drawn, first, last, centre, waiting):
    """Move rows into the waiting batch until it is full; return how far it got."""
    i = first
    while i < last and waiting.count[0] < waiting.targets.size:
        if weights[i] > 0.0:
            n = waiting.count[0]
            centred_row(rows, i, centre, waiting.X[n])
            waiting.targets[n] = targets[i]
            waiting.weights[n] = weights[i]
            if uniforms.size > 0:
                waiting.uniforms[n] = uniforms[drawn]
                drawn += 1
            waiting.count[0] = n + 1
        i += 1
    return i


@jit
def kernel_values(kernel, A, a_norms, B, b_norms, out):
    """Write the kernel values of two tables of rows minus the same centre, with known squared norms."""
    if out.size > 0:
        products(A, B, out)
        if kernels.is_isotropic(kernel):
            as_distances(out, 0, A.shape[0], a_norms, b_norms)
        kernels.transform(kernel, shaped(out, (out.size,)))


def kernel_matrix(kernel: Kernel, A: np.ndarray, a_norms: np.ndarray, B: np.ndarray, b_norms: np.ndarray) -> np.ndarray:
    """Return the kernel values of two tables."""
    out = np.empty((len(A), len(B)), A.dtype)
    kernel_values(kernel, A, a_norms, B, b_norms, out)
    return out


def squared_norms(X: np.ndarray) -> np.ndarray:
    """Return the squared norms of the rows of a table."""
    return np.einsum("ic,ic->i", X, X)


def own_matrix(kernel: Kernel, X: np.ndarray, norms: np.ndarray) -> np.ndarray:
    """Return the kernel values between all rows of a table: exactly symmetric, as their computed products need not be."""
    values = kernel_matrix(kernel, X, norms, X, norms).astype(np.float64, copy=False)
    return 0.5 * (values + values.T)


def point_matrix(kernel: Kernel, model: Expansion) -> np.ndarray:
    """Return the kernel values between all points of a model."""
    n = int(model.size[0])
    return own_matrix(kernel, model.points[:n], model.norms[:n])


def function_products(kernel: Any, points: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return <f_o, g_o> for functions with coefficients a and b (outputs, points), one number per output."""
    used = np.flatnonzero(a.any(axis=0) | b.any(axis=0))
    points, a, b = np.ascontiguousarray(points[used]), a[:, used], b[:, used]
    norms = squared_norms(points)
    total = np.zeros(len(a))
    for first in range(0, len(points), STRIP):
        strip = slice(first, first + STRIP)
        values = kernel_matrix(kernel, points[strip], norms[strip], points, norms).astype(np.float64, copy=False)
        total += np.einsum("oi,oi->o", a[:, strip], b @ values.T)
    return total


def batch_scores(kernel: Kernel, model: Expansion, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the model's scores (rows, outputs) and the kernel values (points, rows)."""
    size = int(model.size[0])
    cross = kernel_matrix(kernel, model.points[:size], model.norms[:size], X, squared_norms(X)).astype(np.float64, copy=False)
    scores = model.clock[SCALE] * (cross.T @ model.coef[0, :, :size].T)
    if not (np.abs(scores) <= SCORE).all():
        raise Diverged
    return scores, cross


class BatchLoop:
    """The loop around a step that learns a batch, ``step(params, state, kernel, batch)``."""

    def __init__(self, step: Callable):
        self._step = step

    def __call__(self, setup, params, state, events, uniforms, before, first, last):
        waiting: Waiting = state.waiting
        i, drawn = first, 0
        while i < last:
            if int(state.model.size[0]) + len(waiting.targets) > len(state.model.points):
                return i
            kept = copied(waiting)
            taken = _take(events.rows, events.targets, events.weights, uniforms, drawn, i, last, state.model.centre, waiting)
            drawn += int(np.count_nonzero(events.weights[i:taken])) * setup.uniforms
            try:
                if len(before):
                    before[i:taken] = _scores_of(setup.kernel, state.model, events.rows, i, taken)
                if waiting.count[0] == len(waiting.targets):
                    learn_waiting(self._step, params, state, setup.kernel)
            except Diverged:
                restore(waiting, kept)
                raise
            i = taken
        return last


class Joining(NamedTuple):
    """The arguments of ``_join``."""

    centre: np.ndarray
    waiting: Waiting
    uniforms: np.ndarray  # of the event
    row: np.ndarray


@jit
def _join(call, x, y, weight, largest):
    """Let an event wait for others: 1 if that was done, 0 if it would complete the batch, REFUSED if x cannot be learned."""
    row, centre, waiting = call.row, call.centre, call.waiting
    if not load_event(row, x, largest):
        return REFUSED
    n = waiting.count[0]
    if n + 1 == waiting.targets.size:
        return 0
    to = waiting.X[n]
    for c in range(row.size):
        to[c] = row[c] - centre[c]
    waiting.targets[n] = y
    waiting.weights[n] = weight
    if call.uniforms.size > 0:
        waiting.uniforms[n] = call.uniforms[0]
    waiting.count[0] = n + 1
    return 1


def joining(state: Any, row: np.ndarray, uniforms: np.ndarray) -> Callable:
    """Return a function that lets single events wait, see ``_join``; buffers for the event's row and numbers are given."""
    record = by_address(Joining(state.model.centre, state.waiting, uniforms, row))
    entry = entry_point(_join, record, strided(row), 0.0, 1.0, 1.0)
    return lambda x, y, weight, largest: entry(record, x, y, weight, largest)


def _scores_of(kernel: Kernel, model: Expansion, rows: Rows, first: int, last: int) -> np.ndarray:
    X = np.empty((last - first, len(model.centre)), model.points.dtype)
    rows_between(rows, first, model.centre, X)
    return batch_scores(kernel, model, X)[0]


@jit
def rows_between(rows, first, centre, out):
    """Write rows from ``first`` on, minus the centre."""
    for i in range(out.shape[0]):
        centred_row(rows, first + i, centre, out[i])


@one_thread
def learn_waiting(step: Callable, params: Any, state: Any, kernel: Kernel) -> None:
    """Learn the rows of an incomplete batch."""
    waiting: Waiting = state.waiting
    n = int(waiting.count[0])
    waiting.count[0] = 0
    if n:
        step(params, state, kernel, Batch(waiting.X[:n], waiting.targets[:n], waiting.weights[:n], waiting.uniforms[:n]))
        state.model.clock[EVENTS] += n
