"""Online coverage of the input space by cells around core points.

Core points have tag 0 (``model.tags[CORE]``); any other stored point has a positive tag and no cell.
If cells can be replaced, ``model.tags[VISITED]`` is the last event in each.
Equal distances are common in binary data, and distances computed in different ways differ in the last digits.  So a core
must be nearer by more than ``TIE`` of the squared radius to win over an earlier one, and a point is outside a cell as soon
as its squared distance is the squared radius minus that tolerance: then all ways of computing distances agree.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from ..compiler import inline, inner
from ..core.block import squared_distance
from ..core.kernels import Kernel, transform_values

CORE, VISITED = range(2)  # in tags
SPHERE, BOX = range(2)
KINDS = {"sphere": SPHERE, "box": BOX, "printed_box": BOX}


class Coverage(NamedTuple):
    kind: int
    radius: float  # of a sphere; half the side of a box
    tolerance: float  # in squared distance

    @classmethod
    def of(cls, name: str, delta: float, d: int, dtype: DTypeLike) -> Coverage:
        """Return a coverage by cells of diameter delta: spheres, or boxes with sides delta / sqrt(d), if printed twice that."""
        kind = KINDS[name]
        half = delta if name == "printed_box" else delta / 2.0
        radius = half if kind == SPHERE else half / math.sqrt(d)
        tie = 1e-9 if np.dtype(dtype) == np.float64 else 1e-5
        return cls(kind, radius, tie * radius**2)


@inline
def find_cell(coverage, model, block, j):
    """Return the index of the core point whose cell contains event j, -1 if there is none."""
    if coverage.kind == BOX:
        return _find_box(coverage, model, block, j)
    k = int(block.nearest[j])
    if k < 0:
        return -1
    q = np.float64(block.distance[j])
    edge = coverage.radius * coverage.radius - coverage.tolerance
    if abs(q - edge) < 1e-6 * (block.norms[j] + model.norms[k]):  # products may have lost digits: use differences
        q = squared_distance(model, block, j, k)
    return -1 if q >= edge else k


@inline
def cell_distance(coverage, model, block, j, k):
    """Return the squared distance of event j from core point k, whose cell contains it."""
    return np.float64(block.distance[j]) if coverage.kind == SPHERE else squared_distance(model, block, j, k)


@inner
def reassign(model, block, j, k):
    """Find the nearest other core of those events ahead whose nearest core is k, which is about to be replaced."""
    for i in range(j + 1, block.size):
        if block.nearest[i] == k:
            block.nearest[i], block.distance[i] = -1.0, np.inf
            for c in range(model.size[0]):
                if c != k and model.tags[CORE, c] == 0.0:
                    q = squared_distance(model, block, i, c)
                    if q < block.distance[i] - block.tolerance:
                        block.nearest[i], block.distance[i] = c, q


@inner
def least_recent_core(model):
    """Return the core whose cell has not been visited for longest."""
    oldest = -1
    for k in range(model.size[0]):
        if model.tags[CORE, k] == 0.0 and (oldest < 0 or model.tags[VISITED, k] < model.tags[VISITED, oldest]):
            oldest = k
    return oldest


@inner
def _find_box(coverage, model, block, j):
    """Return the first core, in the order of insertion, whose box contains event j."""
    x = block.X[j]
    for k in range(model.size[0]):
        if model.tags[CORE, k] == 0.0:
            p = model.points[k]
            inside = True
            for c in range(x.size):
                if abs(x[c] - p[c]) >= coverage.radius:
                    inside = False
                    break
            if inside:
                return k
    return -1


def feature_distance(kernel: Kernel, distance: float) -> float:
    """Return ||Phi(x) - Phi(z)|| for two points at this distance, for a kernel of the distance."""
    value = np.array([distance**2])
    transform_values(kernel, value)
    return math.sqrt(2.0 * max(0.0, 1.0 - float(value[0])))
