"""A model that is the centre of a ball in feature space, with its norm and that of the average of all centres.

With N = ||f_{T+1}||^2, B = ||fbar_T||^2 and P = <fbar_T, f_{T+1}> after T events, counting a centre into the mean and
moving the centre towards a point, f <- (1 - r) f + r Phi(x), change all three by a few multiplications.  B and P stay 0 if
the model keeps no average.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from ..compiler import inline, inner
from ..core.block import point_values
from ..core.expansion import EVENTS, SCALE, TOTAL
from ..core.matrices import function_products
from ..core.updates import add, insert, scale_model

if TYPE_CHECKING:
    from ..merging.rules import Merging

CENTRE, MEAN, BOTH = range(3)  # N, B and P above


def new_ball() -> np.ndarray:
    """Return the norms of a centre at the origin."""
    return np.zeros(3)


def merged_ball(merging: Merging, name: str) -> np.ndarray:
    """Return the norms of the merged model and of its average, from kernel values; 0 if there is no ball."""
    model = merging.model
    norms = new_ball()
    if merging.params.task.radius > 0.0:
        centre = model.clock[SCALE] * model.coef[0]
        norms[CENTRE] = function_products(merging.kernel, model.points, centre, centre)[0]
        if len(model.coef) > 1:
            mean = (model.clock[TOTAL] * model.coef[0] - model.coef[1]) / max(model.clock[EVENTS], 1.0)
            norms[MEAN] = function_products(merging.kernel, model.points, mean, mean)[0]
            norms[BOTH] = function_products(merging.kernel, model.points, mean, centre)[0]
    return norms


@inline
def keeps_average(model):
    return model.coef.shape[0] > 1


@inline
def output_norm(ball, model):
    """Return the squared norm of the average, or of the centre if there is no average."""
    return ball[MEAN] if keeps_average(model) else ball[CENTRE]


@inline
def output_before(model, block, j):
    """The score of event j before it began: that of the average, or of the last model where no average is kept."""
    clock = model.clock
    if not keeps_average(model) or clock[EVENTS] == 1.0:
        return clock[SCALE] * block.scores[0, 0, j]
    return ((clock[TOTAL] - clock[SCALE]) * block.scores[0, 0, j] - block.scores[1, 0, j]) / (clock[EVENTS] - 1.0)


@inline
def count_centre(ball, model):
    """Add the current centre to the mean, at the start of an event."""
    if keeps_average(model):
        t = model.clock[EVENTS]
        before = t - 1.0
        ball[MEAN] = (before * before * ball[MEAN] + 2.0 * before * ball[BOTH] + ball[CENTRE]) / (t * t)
        ball[BOTH] = (before * ball[BOTH] + ball[CENTRE]) / t


@inline
def centre_distance(ball, f, k_xx):
    """Return ||f - Phi(x)|| for the current centre, whose score of x is f."""
    return math.sqrt(max(0.0, ball[CENTRE] - 2.0 * f + k_xx))


@inline
def move_centre(ball, model, block, j, f, k_xx, r):
    """f <- (1 - r) f + r Phi(x_j)."""
    if keeps_average(model):
        mean = (model.clock[TOTAL] * block.scores[0, 0, j] - block.scores[1, 0, j]) / model.clock[EVENTS]
        ball[BOTH] = (1.0 - r) * ball[BOTH] + r * mean
    ball[CENTRE] = (1.0 - r) ** 2 * ball[CENTRE] + 2.0 * r * (1.0 - r) * f + r * r * k_xx
    scale_model(model, block, j, 1.0 - r)
    k = insert(model, block, j, model.clock[EVENTS])
    block.g[0] = 1.0
    add(model, block, j, k, r, block.g)


@inner
def note_projection(ball, model, block, p, count, gap):
    """Update the norms before the term of point p is moved to other points, see ``move_to_nearest`` in neighbours.py.

    With D the projection of Phi(p) minus Phi(p), whose squared norm is gap, f changes by a D and fbar by b D.
    """
    clock = model.clock
    averaged = keeps_average(model)
    a = clock[SCALE] * model.coef[0, 0, p]
    b = (clock[TOTAL] * model.coef[0, 0, p] - model.coef[1, 0, p]) / clock[EVENTS] if averaged else 0.0
    with_centre = with_mean = 0.0  # <f, D> and <fbar, D>
    values = block.work[2]
    for n in range(count + 1):
        point_values(model, block.kernel, p if n == count else int(block.work[1, n]), values)
        share = -1.0 if n == count else block.work[0, n]
        first = second = 0.0
        for k in range(model.size[0]):
            first += model.coef[0, 0, k] * values[k]
            if averaged:
                second += model.coef[1, 0, k] * values[k]
        with_centre += share * clock[SCALE] * first
        if averaged:
            with_mean += share * (clock[TOTAL] * first - second) / clock[EVENTS]
    ball[CENTRE] += 2.0 * a * with_centre + a * a * gap
    ball[MEAN] += 2.0 * b * with_mean + b * b * gap
    ball[BOTH] += a * with_mean + b * with_centre + a * b * gap
