"""Operations by which a step changes a model; they also update the scores of the events ahead in the block.

So no step ever sums over the model, and nothing is approximated.
"""

from __future__ import annotations

from ..compiler import inline, inner
from .block import fill_row, set_column
from .expansion import EVENTS, SCALE, TOTAL
from .limits import faded
from .rows import centred_row


@inner
def store(model, block, j, k):
    """Write event j into slot k and compute its kernel values for the events ahead."""
    point = model.points[k]
    if block.X.shape[0] == 0:
        centred_row(block.rows, block.start + j, model.centre, point)
        set_column(block.transposed, k, point)
    else:
        x = block.X[j]
        for c in range(point.size):
            point[c] = x[c]
    model.norms[k] = block.norms[j]
    fill_row(model, block, k, j + 1)


@inner
def insert(model, block, j, tag):
    """Store event j as a new point with coefficient 0 and this tag; return its index."""
    k = model.size[0]
    model.size[0] = k + 1
    for g in range(model.coef.shape[0]):
        for o in range(model.coef.shape[1]):
            model.coef[g, o, k] = 0.0
    if model.tags.shape[0] > 0:
        model.tags[0, k] = tag
    store(model, block, j, k)
    return k


@inner
def clear(model, block, j, k):
    """Set all coefficients of point k to 0."""
    row = block.K[k]
    number = row.dtype.type
    for g in range(model.coef.shape[0]):
        for o in range(model.places.size):
            own = model.coef[g, model.places[o]]
            c = number(own[k])
            own[k] = 0.0
            if c != 0.0:
                f = block.scores[g, o]
                for i in range(j + 1, block.size):
                    f[i] -= c * row[i]


@inner
def replace(model, block, j, k, tag):
    """Replace point k by event j, with coefficient 0 and this tag."""
    clear(model, block, j, k)
    if model.tags.shape[0] > 0:
        model.tags[0, k] = tag
    store(model, block, j, k)


@inner
def remove(model, block, j, k):
    """Remove point k; the last point moves to its index."""
    clear(model, block, j, k)
    last = model.size[0] - 1
    model.size[0] = last
    if k == last:
        return
    for c in range(model.points.shape[1]):
        model.points[k, c] = model.points[last, c]
    if block.X.shape[0] == 0:
        set_column(block.transposed, k, model.points[k])
    model.norms[k] = model.norms[last]
    for g in range(model.coef.shape[0]):
        for o in range(model.coef.shape[1]):
            model.coef[g, o, k] = model.coef[g, o, last]
            model.coef[g, o, last] = 0.0
    for i in range(model.tags.shape[0]):
        model.tags[i, k] = model.tags[i, last]
    own, moved = block.K[k], block.K[last]
    for i in range(j, block.size):
        own[i] = moved[i]


@inline
def add_column(model, block, j, k, g, o, value):
    model.coef[g, model.places[o], k] += value
    row = block.K[k]
    f = block.scores[g, o]
    c = row.dtype.type(value)
    for i in range(j + 1, block.size):
        f[i] += c * row[i]


@inline
def add(model, block, j, k, factor, values):
    """f <- f + factor * values * K(p_k, .): values has one number per output."""
    scale = model.clock[SCALE]
    averaged = model.coef.shape[0] > 1
    for o in range(values.size):
        if values[o] != 0.0:
            u = factor * values[o] / scale
            add_column(model, block, j, k, 0, o, u)
            if averaged:  # group 1 is needed for the average, see averages.py
                add_column(model, block, j, k, 1, o, u * model.clock[TOTAL])


@inline
def read_scores(model, block, j, f):
    """Write the current model's scores of event j."""
    for o in range(f.size):
        f[o] = model.clock[SCALE] * block.scores[0, o, j]


@inner
def scale_model(model, block, j, factor):
    """f <- factor * f, applied to the coefficients immediately; the sums for averages are unchanged."""
    _scale_columns(model.coef, 0, factor, model.clock[TOTAL])
    _scale_columns(block.scores, j + 1, factor, model.clock[TOTAL])


@inner
def _scale_columns(columns, first, factor, total):
    number = columns.dtype.type
    averaged = columns.shape[0] > 1
    shrink = number(factor)
    shift = number((factor - 1.0) * total)
    for o in range(columns.shape[1]):
        for i in range(first, columns.shape[2]):
            if averaged:
                columns[1, o, i] += shift * columns[0, o, i]
            columns[0, o, i] = faded(shrink * columns[0, o, i])


@inline
def renormalise(model, block, j):
    """Move a scale that has become small or large into the coefficients, before digits are lost."""
    if not 1e-6 < model.clock[SCALE] < 1e6:
        scale_model(model, block, j, model.clock[SCALE])
        model.clock[SCALE] = 1.0


@inline
def forget(model, block, j, decay):
    """f <- decay * f."""
    model.clock[SCALE] *= decay
    renormalise(model, block, j)


@inline
def anneal(model, block, j, delay, horizon):
    """f <- (1 - 1/T) f, where T = t + delay at event t, at most the horizon; return T, for steps of size 1 / (lam T).

    Up to the horizon f = v / (T - 1), so v is unchanged.  If the delay exceeds it, steps are those of the delay.
    """
    t = model.clock[EVENTS] + delay
    if t <= horizon:
        model.clock[SCALE] = 1.0 / t
        return t
    forget(model, block, j, 1.0 - 1.0 / horizon)
    return max(horizon, delay)
