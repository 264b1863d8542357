"""Keeping a model within a budget: which point is removed, and how the others compensate.

``tags[0]`` of a point is the index of the event that added it: coefficients of equal size are common (for example all those of
the perceptron), and then the oldest point is removed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, NamedTuple

import numpy as np

from ..compiler import inline, inner
from ..core import losses
from ..core.block import point_values
from ..core.expansion import EVENTS
from ..core.kernels import is_isotropic, self_value
from ..core.matrices import point_matrix
from ..core.shapes import declared
from ..core.state import Widening, recoded
from ..core.updates import insert, replace

if TYPE_CHECKING:
    from ..merging.rules import Merging

BIRTH = 0  # in tags
TIE = 1e-9  # weights that differ by less count as equal
UNBOUNDED = 2**62


@inline
def mistaken(loss, f, y, g):
    """Write the gradient of the loss; return whether the label is wrong, or the value outside of the tube."""
    lossy = losses.gradient(loss, f, y, g)
    return lossy and (losses.is_regression(loss) or losses.margin(f, y) <= 0.0)


@inline
def columns_changed(f):
    """Return how many columns a step on a margin loss changes."""
    return 1.0 if f.size == 1 else 2.0


@inline
def event_value(block, j):
    """K(x_j, x_j)."""
    return self_value(block.kernel, np.float64(block.norms[j]))


@inline
def point_value(model, kernel, k):
    """K(p_k, p_k)."""
    return self_value(kernel, np.float64(model.norms[k]))


@inline
def square(model, k):
    """Return the sum of squared coefficients of point k, without scale."""
    total = 0.0
    for o in range(model.places.size):
        coef = model.coef[0, model.places[o]]
        total += coef[k] * coef[k]
    return total


@inner
def oldest(model):
    """Return the oldest point."""
    first = 0
    for k in range(1, model.size[0]):
        if model.tags[BIRTH, k] < model.tags[BIRTH, first]:
            first = k
    return first


@inner
def term_squares(model, kernel, out):
    """Write the squared norms of the terms of all points, without scale."""
    size = model.size[0]
    for k in range(size):
        out[k] = 0.0
    for o in range(model.places.size):
        coef = model.coef[0, model.places[o]]
        for k in range(size):
            out[k] += coef[k] * coef[k]
    if not is_isotropic(kernel):
        for k in range(size):
            out[k] *= point_value(model, kernel, k)


@inner
def smallest(values, size):
    """Return the smallest of the first numbers; four independent chains, since each comparison depends on the previous one."""
    a = b = c = d = np.inf
    for k in range(0, size - 3, 4):
        a, b = min(a, values[k]), min(b, values[k + 1])
        c, d = min(c, values[k + 2]), min(d, values[k + 3])
    for k in range(size - size % 4, size):
        a = min(a, values[k])
    return min(min(a, b), min(c, d))


@inner
def lightest(model, block):
    """Return the point whose term has the smallest norm; the oldest of equal ones."""
    size = model.size[0]
    weights = block.work[0]
    term_squares(model, block.kernel, weights)
    most = smallest(weights, size) * (1.0 + TIE)
    best = -1
    for k in range(size):
        if weights[k] <= most and (best < 0 or model.tags[BIRTH, k] < model.tags[BIRTH, best]):
            best = k
    return best


@inner
def store(model, block, j, budget, victim):
    """Store event j with coefficient 0: as a new point while there is room, else in place of the victim."""
    birth = model.clock[EVENTS]
    if model.size[0] < budget:
        return insert(model, block, j, birth)
    replace(model, block, j, victim, birth)
    return victim


@inner
def point_scores(model, block, k, f):
    """Write the scores of stored point k, without scale."""
    values = block.work[0]
    point_values(model, block.kernel, k, values)
    for o in range(f.size):
        coef = model.coef[0, model.places[o]]
        total = 0.0
        for i in range(model.size[0]):
            total += coef[i] * values[i]
        f[o] = total


# ---------------------------------------------------------------------- per-point data of some methods


@declared()
class Values(NamedTuple):
    """The model's scores of its own points."""

    scores: Annotated[np.ndarray, "coefficients: outputs stored"]

    def widened(self, change: Widening) -> Values:
        """Convert to the outputs of ``change``."""
        return Values(change.of(self.scores))

    def merged(self, other: Values, start: Values | None, merging: Merging) -> Values:
        """Return the scores of the merged model."""
        return Values(merging.model.coef[0] @ point_matrix(merging.kernel, merging.model))


@declared()
class Labels(NamedTuple):
    """The target of each stored point."""

    targets: Annotated[np.ndarray, "targets: stored"]

    def widened(self, change: Widening) -> Labels:
        """Recode the targets for the outputs of ``change``."""
        return Labels(recoded(self.targets, change))

    def merged(self, other: Labels, start: Labels | None, merging: Merging) -> Labels:
        """Return the targets of the merged model's points."""
        targets = np.zeros(merging.model.stored)
        left = merging.places >= 0
        targets[merging.places[left]] = np.concatenate([self.targets, other.targets])[left]
        return Labels(targets)


@declared()
class Pairs(NamedTuple):
    """Kernel values between stored points, and the point nearest to each in feature space (-1 if there is no other)."""

    matrix: Annotated[np.ndarray, "coefficients: stored stored"]
    nearest: Annotated[np.ndarray, "index of stored or -1: stored"]

    def merged(self, other: Pairs, start: Pairs | None, merging: Merging) -> Pairs:
        """Return the pairs of the merged model's points."""
        matrix = point_matrix(merging.kernel, merging.model)
        distances = matrix.diagonal() - 2.0 * matrix
        np.fill_diagonal(distances, np.inf)
        alone = len(matrix) < 2
        return Pairs(matrix, np.full(len(matrix), -1) if alone else distances.argmin(axis=1))


def new_pairs() -> Pairs:
    """Return an empty set of pairs."""
    return Pairs(np.zeros((0, 0)), np.zeros(0, np.int64))


@inner
def _find_nearest(pairs, size, k):
    """Return the point nearest to point k: ||Phi(p) - Phi(q)||^2 = K(p, p) - 2 K(p, q) + K(q, q)."""
    best = -1
    least = np.inf
    for i in range(size):
        distance = pairs.matrix[i, i] - 2.0 * pairs.matrix[k, i]
        if i != k and distance < least:
            least = distance
            best = i
    return best


@inner
def set_pairs(pairs, model, block, j, k):
    """Update the pairs for event j as point k, possibly replacing another; to be called before it is stored."""
    known = model.size[0]
    size = max(known, k + 1)
    for i in range(known):
        pairs.matrix[i, k] = block.K[i, j]
        pairs.matrix[k, i] = block.K[i, j]
    own = event_value(block, j)
    pairs.matrix[k, k] = own
    for i in range(size):
        nearest = pairs.nearest[i]
        if i == k or nearest == k or nearest < 0:
            pairs.nearest[i] = _find_nearest(pairs, size, i)
        elif own - 2.0 * pairs.matrix[i, k] < pairs.matrix[nearest, nearest] - 2.0 * pairs.matrix[i, nearest]:
            pairs.nearest[i] = k


@inline
def squared_gap(p, q):
    """Return ||p - q||^2."""
    total = p.dtype.type(0.0)
    for c in range(p.size):
        z = p[c] - q[c]
        total += z * z
    return np.float64(total)
