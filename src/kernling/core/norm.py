"""The RKHS norm of a model with one output, kept while it changes.

It takes the Gram matrix of the stored points and the model's value at each of them: an addition to point k changes all
values by one row of the matrix.  Values and norm are those of v, without the model's scale.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .expansion import EVENTS, padded
from .jit import inner
from .kernels import self_value

REFRESH = 4096  # events after which values and norm are summed anew, so that rounding does not pile up


class Norm(NamedTuple):
    gram: np.ndarray  # (capacity, capacity)
    values: np.ndarray  # (capacity,)
    square: np.ndarray  # (1,), or empty when nobody asks for the norm

    def grown(self, capacity: int) -> Norm:
        """The same with room for more points."""
        if not len(self.square):
            return self
        return self._replace(gram=padded(padded(self.gram, 0, capacity), 1, capacity), values=padded(self.values, 0, capacity))

    def check(self, size: int, d: int, outputs: int) -> None:
        """Raise unless all shapes agree."""
        n = len(self.values)
        if not len(self.square) and n == 0 and self.gram.shape == (0, 0):
            return
        if n != size or self.gram.shape != (n, n) or self.square.shape != (1,):
            raise ValueError("the norm does not fit the model")

    def trimmed(self, size: int) -> Norm:
        """The same without spare room."""
        return self._replace(gram=self.gram[:size, :size].copy(), values=self.values[:size].copy())


def new_norm(used: bool) -> Norm:
    """The norm of the model without points; it takes no memory unless it is used."""
    return Norm(np.zeros((0, 0)), np.zeros(0), np.zeros(int(used)))


@inner
def norm_insert(norm, model, block, j, k):
    """Point k has just been stored: it is event j."""
    for i in range(k):
        norm.gram[i, k] = block.K[i, j]
        norm.gram[k, i] = block.K[i, j]
    norm.gram[k, k] = self_value(block.kernel, model.norms[k])
    norm.values[k] = block.scores[0, 0, j]


@inner
def norm_add(norm, model, k, change):
    """The coefficient of point k has grown by this much, without scale."""
    norm.square[0] += change * (2.0 * norm.values[k] + change * norm.gram[k, k])
    size = model.size[0]
    for i in range(size):
        norm.values[i] += change * norm.gram[k, i]
    if model.clock[EVENTS] % REFRESH == 0.0:
        norm.square[0] = 0.0
        for i in range(size):
            value = 0.0
            for m in range(size):
                value += norm.gram[i, m] * model.coef[0, 0, m]
            norm.values[i] = value
            norm.square[0] += value * model.coef[0, 0, i]


@inner
def norm_scale(norm, model, factor):
    """All coefficients have been multiplied by this factor."""
    norm.square[0] *= factor * factor
    for i in range(model.size[0]):
        norm.values[i] *= factor
