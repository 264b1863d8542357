"""Cells that are opened on the fly around core points, at most a given number.

The learner's state has a model, its ``norm`` and ``stats``; its parameters have ``max_cells``, ``replace`` and ``coverage``.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from ..compiler import inline
from ..core.updates import insert, replace
from .coverage import VISITED, least_recent_core, reassign
from .eviction import point_value
from .neighbours import add_projection, point_row, project_on_nearest
from .norm import norm_add, norm_insert

if TYPE_CHECKING:
    from ..merging.rules import Merging

STATS = (
    7  # cells; events that found no room; the largest squared distance of an event from its core; the largest absolute target
)
# and weight; points that merging has projected on others; merged models
CELLS, OVERFLOWS, FARTHEST, LARGEST_Y, LARGEST_WEIGHT, PROJECTED, MERGES = range(STATS)


@inline
def open_cell(params, state, block, j):
    """Return the core of a new cell for event j; -1 if there is no room."""
    if state.stats[CELLS] < params.max_cells:
        state.stats[CELLS] += 1
        return store(state, block, j, 0.0)
    state.stats[OVERFLOWS] += 1
    return replace_core(state, block, j) if params.replace else -1


@inline
def replace_core(state, block, j):
    """Replace the core whose cell has not been visited for longest by event j; return its index."""
    model = state.model
    c = least_recent_core(model)
    point_row(model, block, c)
    count, _ = project_on_nearest(model, block, point_value(model, block.kernel, c), c)
    for n in range(count):
        norm_add(state.norm, model, int(block.work[1, n]), block.work[0, n] * model.coef[0, 0, c])
    add_projection(model, block, j, c, count)
    norm_add(state.norm, model, c, -model.coef[0, 0, c])
    reassign(model, block, j, c)
    replace(model, block, j, c, 0.0)
    norm_insert(state.norm, model, block, j, c)
    return c


@inline
def store(state, block, j, tag):
    """Store event j as a point, a core if its tag is 0; return its index."""
    c = insert(state.model, block, j, tag)
    state.model.tags[VISITED, c] = 0.0
    norm_insert(state.norm, state.model, block, j, c)
    return c


def merged_stats(merging: Merging, name: str) -> np.ndarray:
    """Return the statistics of a merged model: cores have moved by some distance, and points may have been projected."""
    own, other = getattr(merging.a, name), getattr(merging.b, name)
    stats = np.maximum(own, other)
    stats[CELLS] = np.count_nonzero(merging.model.tags[0] == 0.0)
    stats[OVERFLOWS] = merging.total(lambda state: getattr(state, name)[OVERFLOWS])
    stats[FARTHEST] = (math.sqrt(stats[FARTHEST]) + merging.moved) ** 2
    stats[PROJECTED] = own[PROJECTED] + other[PROJECTED] + merging.projected
    stats[MERGES] = own[MERGES] + other[MERGES] + 1.0
    return stats
