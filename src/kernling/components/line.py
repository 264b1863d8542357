"""Linear experts: least squares on a constant and the columns, with a diagonal matrix if there are many columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..compiler import jit
from ..core.expansion import check_room
from ..core.shapes import declared
from ..core.state import Widening, added
from . import least_squares
from .least_squares import LeastSquares, Ridge, new_least_squares

if TYPE_CHECKING:
    from ..merging.rules import Merging

WIDE = 512  # columns, above which only the diagonal is kept: memory of the size of a row


@declared(weights="coefficients: outputs features", squares="not negative: features")
class Diagonal(NamedTuple):
    weights: np.ndarray  # the first feature is 1
    squares: np.ndarray  # sums of squared features, of which forgetting leaves less and less

    def widened(self, change: Widening) -> Diagonal:
        """Convert the single column of two classes to one per class; targets of a new class were -1 so far."""
        weights = change._replace(factors=np.sign(change.factors)).of(self.weights)
        weights[change.old < 0, 0] = -1.0
        return self._replace(weights=weights)

    def merged(self, other: Diagonal, start: Diagonal | None, merging: Merging) -> Diagonal:
        """Return the mean of the weights and the sum of the squares."""
        weights = merging.shares[0] * self.weights + merging.shares[1] * other.weights
        return Diagonal(weights, np.maximum(added(self, other, start, lambda part: part.squares), 0.0))


Line = LeastSquares | Diagonal


def new_line(ridge: Ridge, d: int, outputs: int) -> Line:
    """Return the initial state for d columns."""
    if d <= WIDE:
        return new_least_squares(ridge, 1 + d, 0, outputs)
    check_room(outputs, 1 + d, "outputs")
    return Diagonal(np.zeros((outputs, 1 + d)), np.zeros(1 + d))


def clear(line: Line, ridge: Ridge) -> None:
    """Forget all events."""
    if isinstance(line, LeastSquares):
        least_squares.clear(line, ridge)
    else:
        line.weights[:], line.squares[:] = 0.0, 0.0


def scores_of(line: Line, Z: np.ndarray) -> np.ndarray:
    """Return the scores of events, the columns of Z, (outputs, events)."""
    return least_squares.scores_of(line, Z) if isinstance(line, LeastSquares) else line.weights @ Z


def learn(line: Line, ridge: Ridge, Z: np.ndarray, targets: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Learn events; return the scores before learning each, (outputs, events)."""
    if isinstance(line, LeastSquares):
        return least_squares.learn(line, ridge, Z, targets, weights)
    return _learn_diagonal(line, ridge.ridge, ridge.keep, Z, targets, weights)


@jit
def _learn_diagonal(diagonal, ridge, keep, Z, targets, weights):
    W, squares = diagonal.weights, diagonal.squares
    outputs, n = targets.shape
    scores = np.zeros((outputs, n))
    step = np.empty(squares.size)
    for j in range(n):
        for o in range(outputs):
            for c in range(squares.size):
                scores[o, j] += W[o, c] * Z[c, j]
        if weights[j] > 0.0:
            spread = 1.0 / weights[j]
            for c in range(squares.size):
                step[c] = Z[c, j] / (ridge + squares[c])
                spread += step[c] * Z[c, j]
                squares[c] = keep * squares[c] + weights[j] * Z[c, j] * Z[c, j]
            for o in range(outputs):
                error = (targets[o, j] - scores[o, j]) / spread
                for c in range(squares.size):
                    W[o, c] += error * step[c]
    return scores
