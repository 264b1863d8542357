"""Running quantities against what they stand for, computed anew: how far have they drifted?

Learners keep kernel values between points, inverses, norms, scores of their own points and sums up to date by small
corrections.  ``drift`` computes each from the points and coefficients alone and returns the largest relative difference.
"""

from __future__ import annotations

import numpy as np

import kernling
from kernling.components.ball import CENTRE, MEAN
from kernling.components.eviction import Pairs, Values
from kernling.components.gram import Gram
from kernling.components.memory import COUNT, GRADIENT, STALE, Memory
from kernling.components.norm import Norm
from kernling.components.threshold import RECENT, Recent
from kernling.core.expansion import SCALE, Expansion
from kernling.core.state import trimmed
from kernling.driver import scoring


def relative(running, anew) -> float:
    """The largest difference, relative to the largest number."""
    running, anew = np.asarray(running, np.float64), np.asarray(anew, np.float64)
    return float(np.abs(running - anew).max(initial=0.0) / max(1e-12, np.abs(anew).max(initial=0.0)))


def drift(model) -> dict[str, float]:
    """The relative error of everything that the model keeps up to date."""
    state = trimmed(model.state_)
    found: dict[str, float] = {}
    expansion = next((part for part in state if isinstance(part, Expansion)), None)
    if expansion is not None:
        found["norms"] = relative(expansion.norms, (expansion.points.astype(np.float64) ** 2).sum(axis=1))
        kernel = kernling.kernel(model.kernel, model.gamma_, model.degree, model.coef0)
        K = kernel(expansion.points, expansion.points)
        coef = expansion.coef[0]
    for part in state:
        if isinstance(part, Norm) and len(part.square):
            values = K @ coef[0]
            found["gram"] = relative(part.gram, K)
            found["values"] = relative(part.values, values)
            found["square"] = relative(part.square[0], coef[0] @ values)
        elif isinstance(part, Gram) and len(part.record):
            found["matrix"] = relative(part.matrix, K)
            found["inverse"] = relative(part.matrix @ part.inverse, np.eye(len(K)))
        elif isinstance(part, Values):
            found["scores"] = relative(part.scores, coef @ K)
        elif isinstance(part, Pairs):
            found["pairs"] = relative(part.matrix, K)
        elif isinstance(part, Memory) and not part.ring[STALE]:
            found |= _memory(part, expansion)
        elif isinstance(part, Recent):
            found["recent"] = _recent(part)
    if getattr(model, "task", "") == "oneclass" and model._radius:
        found["centre"] = relative(state.ball[CENTRE], expansion.clock[SCALE] ** 2 * coef[0] @ K @ coef[0])
        if model._needs.output == "average":
            mean = scoring.frozen_parts(model._setup, state)[0].coef[0, 0]
            found["mean"] = relative(state.ball[MEAN], mean @ K @ mean)
    return found


def _memory(memory: Memory, expansion: Expansion) -> dict[str, float]:
    """The sums of the gradients of all events in memory, in the features and on the points."""
    sums, columns = np.zeros_like(memory.features_sum), np.zeros_like(expansion.coef[GRADIENT])
    for e in range(memory.ring[COUNT]):
        if memory.slots[e] >= 0:
            columns[:, memory.slots[e]] += memory.gradients[e]
        else:
            sums += np.outer(memory.gradients[e], memory.Z[e])
    scale = max(1.0, np.abs(memory.gradients).max())
    both = {"features_sum": (memory.features_sum, sums), "gradient": (expansion.coef[GRADIENT], columns)}
    return {name: float(np.abs(running - anew).max(initial=0.0) / scale) for name, (running, anew) in both.items()}


def _recent(recent: Recent) -> float:
    """The sorted scores are those of the two rings."""
    worst = 0.0
    for o in range(len(recent.threshold)):
        kept = [recent.ring[o, side, : int(min(RECENT, recent.counts[o, side]))] for side in range(2)]
        anew = np.sort(np.concatenate(kept))
        worst = max(worst, relative(recent.scores[o, : len(anew)], anew))
    return worst
