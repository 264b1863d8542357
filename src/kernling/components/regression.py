"""Ridge regression on a constant, random Fourier features, columns, and whitened kernel values against points that it stores.

Features of rows are computed here, and the solution of least squares is written into the model that predicts.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ..compiler import by_address, inner_exact, jit_exact, shaped
from ..core import state as states
from ..core.expansion import EVENTS, Expansion
from ..core.fourier import Features, Linear, open_features
from ..core.kernels import Kernel
from ..core.rows import Rows, row_count, row_of
from ..core.triangles import solve_back
from . import least_squares
from .least_squares import LeastSquares, learn
from .pending import BLOCK, FEATURES, FIXED, WAITING, commit, write_leverages, write_weights_of
from .succession import heir
from .whitened import Whitening, admit, whiten


@heir
class Regression(NamedTuple):
    """Points, and least squares on features that do not depend on them and on kernel values against them."""

    model: Expansion
    whitening: Whitening
    squares: LeastSquares

    @property
    def has_begun(self) -> bool:
        """Whether a successor learns."""
        return bool(self.model.clock[EVENTS] > 0.0)

    @property
    def events(self) -> float:
        """Events learned since it began."""
        return float(self.squares.record[least_squares.EVENTS])

    def begin(self, events: float) -> None:
        """Let a successor learn from here on, when the model has learned so many events, knowing nothing of them."""
        self.model.size[0] = 0
        least_squares.clear(self.squares)
        self.model.clock[EVENTS] = events

    def emptied(self) -> Regression:
        """Return a successor that has not begun and holds nothing."""
        self.begin(0.0)
        return states.without_points(self)


class Seen:
    """Rows as a regression sees them: memory for compiled code, which takes tables from flat arrays."""

    def __init__(self, kernel: Kernel, params: Any, waves: Linear, one: Regression, rows: Rows, size: int):
        """``params`` has the maximum number of points ``most``, ``novelty``, and ``unit``, the factor of the columns."""
        d, n = len(one.model.centre), int(one.squares.size[FIXED]) + params.most
        self.kernel, self.params, self.waves = kernel, params, waves
        self.turns = Features(waves, rows, 1)  # one row at a time, since products of several round differently
        self.Z = np.empty(n * size)  # (features, events): 1, waves, columns, whitened kernel values
        self.X, self.norms = np.empty(size * d), np.empty(size)  # rows minus the centre, in the precision of points
        self.new = np.empty(size)  # k(x, x) - |z(x)|^2


@inner_exact
def cut(weights, start, last, ahead):
    """Return how many events there are until so many are learned, and how many are."""
    b = learned = 0
    while start + b < last and learned < ahead:
        learned += 1 if weights[start + b] > 0.0 else 0
        b += 1
    return b, learned


@inner_exact
def learn_block(seen, one, rows, start, T, weights, scores):
    """Learn the events of a block, and write the scores before each, (outputs, events); return False if it diverges."""
    params, model, whitening, squares, b = seen.params, one.model, one.whitening, one.squares, weights.size
    known, features, fixed = model.size[0], squares.size[FEATURES], squares.size[FIXED]
    n = min(params.most, known + b)
    Z, X = shaped(seen.Z, (fixed + n, b)), shaped(seen.X, (b, model.centre.size))
    _write_features(seen, one, rows, start, Z, X)
    if params.most > 0:
        norms, new, others = seen.norms[:b], seen.new[:b], Z[fixed:]
        whiten(whitening, seen.kernel, model, X, norms, others, new)
        n = admit(whitening, seen.kernel, model, X, norms, weights, new, params.novelty, others)
    waiting = learn(squares, Z[: fixed + n], T, weights, scores)
    if waiting < 0:
        model.size[0], squares.size[FEATURES] = known, features
        return False
    commit(squares, waiting)
    return True


@inner_exact
def _write_features(seen, one, rows, start, Z, X):
    """Write the features of rows that are always there, and the rows minus the centre."""
    waves, model = seen.waves, one.model
    number = model.points.dtype.type
    L, fixed, b, d = waves.phase.size, one.squares.size[FIXED], Z.shape[1], X.shape[1]
    root = math.sqrt(L / (L - 1.0)) if L > 1 else 1.0
    for j in range(b):
        Z[0, j] = 1.0
        if L > 1:
            open_features(waves, seen.turns, start + j, 1)
            z = seen.turns.Z[0]
            for i in range(1, L):
                Z[i, j], Z[L - 1 + i, j] = root * z[i], root * z[L + i]
        if fixed >= 2 * L or seen.params.most > 0:
            row_of(rows, start + j, X[j])
        if fixed >= 2 * L:
            for c in range(d):
                Z[2 * L - 1 + c, j] = seen.params.unit * X[j, c]
        total = 0.0
        for c in range(d):
            X[j, c] = np.float64(number(X[j, c] - model.centre[c]))
            total += X[j, c] * X[j, c]
        seen.norms[j] = np.float64(number(total))


@jit_exact
def write_solution(state, unit, first, last, w):
    """Write the solution of least squares for some outputs into ``model``, ``linear`` and ``waves`` of a state, by way of w."""
    L, fixed, n, d = state.waves.phase.size, state.squares.size[FIXED], state.model.size[0], state.model.centre.size
    root = math.sqrt(L / (L - 1.0)) if L > 1 else 1.0
    left, turned = np.empty(state.squares.size[WAITING]), np.empty(state.squares.size[FEATURES])
    for o in range(first, last):
        waves, linear = state.waves.coef[0, state.waves.places[o]], state.linear.coef[0, state.linear.places[o]]
        coef = state.model.coef[0, state.model.places[o]]
        write_weights_of(state.squares, o, left, turned, w)
        waves[0] = w[0] * math.sqrt(1.0 * L)
        for i in range(1, L):
            waves[i], waves[L + i] = w[i] * root, w[L - 1 + i] * root
        if fixed >= 2 * L:
            for c in range(d):
                linear[c] = w[2 * L - 1 + c] * unit
        for k in range(n):
            coef[k] = w[fixed + k]
        solve_back(state.whitening.factor, coef, n)


def write_coefficients(params: Any, state: Any, outputs: slice = slice(None)) -> None:
    """Write the solution, or some outputs of it, into the model that predicts."""
    first, last, _ = outputs.indices(state.model.outputs)
    write_solution(by_address(state), params.unit, first, last, np.empty(int(state.squares.size[FIXED]) + params.most))


def with_constant(linear: Linear) -> Linear:
    """Return an empty model on the same frequencies, preceded by frequency 0."""
    frequencies = np.vstack([np.zeros_like(linear.centre), linear.frequencies])
    coef, phase = np.zeros((1, linear.outputs, 2 * len(frequencies))), np.zeros(len(frequencies))
    return Linear(frequencies, phase, linear.centre.copy(), coef, linear.places, linear.clock.copy(), linear.votes)


def variances(kernel: Kernel, params: Any, state: Any, rows: Rows) -> np.ndarray:
    """Return the variance of a new target at each row, as a multiple of the noise; infinite before the first event."""
    one, spread = state.regression, np.full(row_count(rows), np.inf)
    seen = Seen(kernel, params, state.waves, one, rows, BLOCK)
    for start in range(0, len(spread) if one.squares.count else 0, BLOCK):
        _write_variances(*map(by_address, (seen, one, rows)), start, one.squares.rho, spread[start : start + BLOCK])
    return spread


@jit_exact
def _write_variances(seen, one, rows, start, rho, out):
    b, d, fixed, n = out.size, one.model.centre.size, one.squares.size[FIXED], one.model.size[0]
    Z, X, norms, new = shaped(seen.Z, (fixed + n, b)), shaped(seen.X, (b, d)), seen.norms[:b], seen.new[:b]
    _write_features(seen, one, rows, start, Z, X)
    whiten(one.whitening, seen.kernel, one.model, X, norms, Z[fixed:], new)
    write_leverages(one.squares, Z, out)
    for j in range(b):
        out[j] += 1.0 + (max(0.0, new[j]) / rho if seen.params.most > 0 else 0.0)
