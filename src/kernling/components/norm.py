"""The RKHS norm of a model with one output, updated as it changes, and the projection on a ball.

It requires the Gram matrix of the stored points and the model's value at each of them: an addition to point k changes all
values by one row of the matrix.  Values and norm are those of v, without the model's scale.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, NamedTuple

import numpy as np

from ..compiler import inner
from ..core.expansion import EVENTS, SCALE
from ..core.kernels import self_value
from ..core.matrices import point_matrix
from ..core.shapes import declared
from ..core.updates import scale_model

if TYPE_CHECKING:
    from ..merging.rules import Merging

REFRESH = 4096  # events after which values and norm are recomputed, so that rounding errors do not accumulate


@declared(used="square")
class Norm(NamedTuple):
    gram: Annotated[np.ndarray, "coefficients: stored stored"]
    values: Annotated[np.ndarray, "coefficients: stored"]
    square: Annotated[np.ndarray, "numbers: square"]  # or empty when the norm is not needed

    def merged(self, other: Norm, start: Norm | None, merging: Merging) -> Norm:
        """Return the norm of the merged model."""
        if not len(self.square):
            return self
        v = merging.model.coef[0, 0]
        gram = point_matrix(merging.kernel, merging.model)
        return Norm(gram, gram @ v, np.array([v @ gram @ v]))


def new_norm(used: bool) -> Norm:
    """Return the norm of a model without points; it uses no memory unless ``used``."""
    return Norm(np.zeros((0, 0)), np.zeros(0), np.zeros(int(used)))


@inner
def norm_insert(norm, model, block, j, k):
    """Update the Gram matrix for point k, which was just stored as event j, with coefficient 0."""
    if norm.square.size == 0:
        return
    norm.values[k] = 0.0
    for i in range(model.size[0]):
        if i != k:
            norm.gram[i, k] = block.K[i, j]
            norm.gram[k, i] = block.K[i, j]
            norm.values[k] += norm.gram[k, i] * model.coef[0, 0, i]
    norm.gram[k, k] = self_value(block.kernel, model.norms[k])


@inner
def norm_add(norm, model, k, change):
    """Update values and norm after the coefficient of point k has changed by this much, without scale."""
    if norm.square.size == 0:
        return
    norm.square[0] += change * (2.0 * norm.values[k] + change * norm.gram[k, k])
    for i in range(model.size[0]):
        norm.values[i] += change * norm.gram[k, i]


@inner
def _sum_again(norm, model):
    """Recompute values and norm from the coefficients."""
    size = model.size[0]
    norm.square[0] = 0.0
    for i in range(size):
        value = 0.0
        for m in range(size):
            value += norm.gram[i, m] * model.coef[0, 0, m]
        norm.values[i] = value
        norm.square[0] += value * model.coef[0, 0, i]


@inner
def project_on_ball(norm, model, block, j, radius):
    """Scale the model so that its norm is at most the radius; to be called after every event."""
    scale = model.clock[SCALE]
    if scale == 1.0 or model.clock[EVENTS] % REFRESH == 0.0:  # a scale of 1: it was just moved into the coefficients
        _sum_again(norm, model)
    length = scale * np.sqrt(max(0.0, norm.square[0]))
    if length > radius:
        factor = radius / length
        scale_model(model, block, j, factor)
        norm.square[0] *= factor * factor
        for i in range(model.size[0]):
            norm.values[i] *= factor
