"""Settings of the code around a step."""

from __future__ import annotations

from typing import NamedTuple

from ..compiler import inline
from .kernels import Kernel


class Setup(NamedTuple):
    """Settings of the code around a step."""

    kernel: Kernel
    block_size: int
    tolerance: float  # of the nearest core point, in squared distance; negative if not needed
    dense: bool  # the step reads whole rows
    output: int  # averages.LAST, AVERAGE, SUFFIX or AUTO
    fraction: float  # of a suffix
    numeric: bool  # targets are numbers, not labels
    growth: float  # between snapshots
    uniforms: int  # random numbers per event
    room: int  # points that one call of the step may add, if more than the block
    notes: int  # numbers recorded with the outputs of each event
    decay: float  # factor by which the model is multiplied after each event; 1 without forgetting


@inline
def mix_scores(mix, scores, j, row):
    """Write the outputs of event j: the weighted sum of the scores of all groups."""
    for o in range(scores.shape[1]):
        row[o] = 0.0
        for g in range(mix.size):
            row[o] += mix[g] * scores[g, o, j]
