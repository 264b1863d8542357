"""Linear experts: least squares on a constant and the columns, with a diagonal matrix if there are many columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, NamedTuple

import numpy as np

from ..compiler import jit_exact
from ..core.expansion import check_room
from ..core.limits import SCORE
from ..core.shapes import declared
from ..core.state import Widening, added
from . import least_squares
from .least_squares import LeastSquares, Ridge, new_least_squares

if TYPE_CHECKING:
    from ..merging.rules import Merging

WIDE = 512  # columns, above which only the diagonal is kept: memory of the size of a row


@declared()
class Diagonal(NamedTuple):
    weights: Annotated[np.ndarray, "coefficients: outputs features"]  # the first feature is 1
    places: Annotated[np.ndarray, "settings: outputs"]  # the row of each output, as in an expansion
    # sums of squared features, of which forgetting leaves less and less
    squares: Annotated[np.ndarray, "not negative: features"]

    def widened(self, change: Widening) -> Diagonal:
        """Convert the single column of two classes to one per class; targets of a new class were -1 so far."""
        weights, places = change.signs.columns(self.weights, self.places, 0), change.places(self.places)
        weights[places[change.old < 0], 0] = -1.0
        return self._replace(weights=weights, places=places)

    def ordered(self) -> Diagonal:
        """Return a copy with the rows in the order of the labels, and no others."""
        return self._replace(weights=self.weights[self.places], places=np.arange(len(self.places)))

    def merged(self, other: Diagonal, start: Diagonal | None, merging: Merging) -> Diagonal:
        """Return the mean of the weights and the sum of the squares."""
        weights = merging.shares[0] * self.weights + merging.shares[1] * other.weights
        return Diagonal(weights, self.places, np.maximum(added(self, other, start, lambda part: part.squares), 0.0))


Line = LeastSquares | Diagonal


def new_line(ridge: Ridge, d: int, outputs: int) -> Line:
    """Return the initial state for d columns."""
    if d <= WIDE:
        return new_least_squares(ridge, 1 + d, 0, outputs)
    check_room(outputs, 1 + d, "outputs")
    return Diagonal(np.zeros((outputs, 1 + d)), np.arange(outputs), np.zeros(1 + d))


def clear(line: Line) -> None:
    """Forget all events."""
    if isinstance(line, LeastSquares):
        least_squares.clear(line)
    else:
        line.weights[:], line.squares[:] = 0.0, 0.0


@jit_exact
def save_weights(diagonal, W):
    """Copy the weights."""
    for c in range(W.shape[1]):
        for o in range(W.shape[0]):
            W[o, c] = diagonal.weights[diagonal.places[o], c]


@jit_exact
def save(diagonal, to):
    """Copy the weights and the sums."""
    for c in range(diagonal.squares.size):
        to.squares[c] = diagonal.squares[c]
        for o in range(diagonal.weights.shape[0]):
            to.weights[o, c] = diagonal.weights[o, c]


@jit_exact
def learn(diagonal, ridge, keep, Z, targets, weights, scores):
    """Learn events, (features, events), and write the scores before learning each; return whether they are within the limit."""
    W, places, squares = diagonal.weights, diagonal.places, diagonal.squares
    outputs, n = targets.shape
    step = np.empty(squares.size)
    for j in range(n):
        for o in range(outputs):
            total = 0.0
            for c in range(squares.size):
                total += W[places[o], c] * Z[c, j]
            scores[o, j] = total
            if weights[j] > 0.0 and not abs(total) <= SCORE:
                return False
        if weights[j] > 0.0:
            spread = 1.0 / weights[j]
            for c in range(squares.size):
                step[c] = Z[c, j] / (ridge + squares[c])
                spread += step[c] * Z[c, j]
                squares[c] = keep * squares[c] + weights[j] * Z[c, j] * Z[c, j]
            for o in range(outputs):
                error = (targets[o, j] - scores[o, j]) / spread
                for c in range(squares.size):
                    W[places[o], c] += error * step[c]
    return True
