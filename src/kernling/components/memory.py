"""A memory of the last events with their gradients at a snapshot, for variance-reduced steps.

An event of the memory is stored in the expansion (it has a slot there) or represented by its random features.  The sum of all
gradients is maintained in both places as events enter and leave: group ``GRADIENT`` of the expansion and ``features_sum``.  The
gradients change only when the snapshot does, so a step costs the same whatever the size of the memory.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import zip_longest
from typing import TYPE_CHECKING, Annotated, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from ..compiler import inline, inner, shaped
from ..core import kernels, losses
from ..core.block import as_distances, fill, inner_product, products
from ..core.expansion import check_room
from ..core.fourier import feature_score
from ..core.limits import faded
from ..core.shapes import declared
from ..core.state import Widening, recoded
from ..core.updates import add_column

if TYPE_CHECKING:
    from ..merging.rules import Merging

SNAPSHOT, GRADIENT = 2, 3  # groups of the expansion; the snapshot has the same place in the linear model
COUNT, OLDEST, FIRST_STORED, STORED, STALE = range(5)  # what ring holds


@declared()
class Memory(NamedTuple):
    X: Annotated[np.ndarray, "rows: events columns"]  # rows minus the centre
    Z: Annotated[np.ndarray, "coefficients: events features"]
    targets: Annotated[np.ndarray, "targets: events"]
    weights: Annotated[np.ndarray, "weights: events"]
    # index of the stored event, -1 if it is represented by its features
    slots: Annotated[np.ndarray, "index of stored or -1: events"]
    gradients: Annotated[np.ndarray, "coefficients: events outputs"]  # at the snapshot
    stored: Annotated[np.ndarray, "index of events: events"]  # which events of the memory are stored, a queue
    features_sum: Annotated[np.ndarray, "coefficients: outputs features"]
    # size, oldest, the queue's first and length, whether the gradients are out of date
    ring: Annotated[np.ndarray, "counts", "index of events", "index of events", "counts", "0..1"]

    def check(self, dimensions: Mapping[str, int]) -> None:
        """Raise unless the queue has all events that are stored as points, from the oldest on."""
        m, (count, oldest, first, stored, _) = len(self.targets), self.ring.tolist()
        ages = (oldest + np.arange(m)) % m
        if count > m or (oldest and count < m):
            raise ValueError(f"a memory of {m} events cannot hold {count} from {oldest} on")
        queue = self.stored[(first + np.arange(min(stored, m))) % m]
        if stored > m or not np.array_equal(queue, ages[self.slots[ages] >= 0]) or (self.slots[ages[count:]] >= 0).any():
            raise ValueError("the queue of stored events does not match the memory")

    def widened(self, change: Widening) -> Memory:
        """Convert to the outputs of ``change``; the gradients are recomputed at the next event."""
        ring = self.ring.copy()
        ring[STALE] = 1
        return self._replace(
            targets=recoded(self.targets, change),
            gradients=np.zeros((len(self.targets), change.outputs)),
            features_sum=np.zeros((change.outputs, self.features_sum.shape[1])),
            ring=ring,
        )

    def merged(self, other: Memory, start: Memory | None, merging: Merging) -> Memory:
        """Return the newest events of both, each once; their gradients at the merged snapshot are computed at the next event.

        An event whose point was removed, or is shared with another event, is represented by its features.
        """
        turns = zip_longest(self._newest_first(), other._newest_first())
        events = [(memory, e) for turn in turns for memory, e in zip((self, other), turn, strict=True) if e is not None]
        known: dict[tuple[bytes, float], tuple] = {}
        for memory, e in events:
            x = memory.X[e] + (0.0 if memory is self else merging.shift)
            slot = int(memory.slots[e])
            place = -1 if slot < 0 else int(merging.places[slot if memory is self else merging.a.model.stored + slot])
            known.setdefault((x.tobytes(), float(memory.targets[e])), (x, memory, e, place))
        outputs, width = self.features_sum.shape
        both = new_memory(len(self.targets), self.X.shape[1], width, outputs, self.X.dtype)
        chosen = list(known.values())[: len(self.targets)][::-1]
        taken: set[int] = set()
        for i, (x, memory, e, place) in enumerate(chosen):
            both.X[i], both.Z[i], both.targets[i], both.weights[i] = x, memory.Z[e], memory.targets[e], memory.weights[e]
            if place >= 0 and place not in taken:
                both.slots[i] = place
                both.stored[len(taken)] = i
                taken.add(place)
        both.ring[[COUNT, STORED, STALE]] = len(chosen), len(taken), 1
        return both

    def _newest_first(self) -> list[int]:
        count, oldest = int(self.ring[COUNT]), int(self.ring[OLDEST])
        return [(oldest + n) % len(self.targets) for n in reversed(range(count))]


def new_memory(m: int, d: int, width: int, outputs: int, dtype: DTypeLike) -> Memory:
    """Return an empty memory."""
    check_room(m, max(d, width), "events in memory")
    return Memory(
        X=np.zeros((m, d), dtype),
        Z=np.zeros((m, width), dtype),
        targets=np.zeros(m),
        weights=np.zeros(m),
        slots=np.full(m, -1, np.int64),
        gradients=np.zeros((m, outputs)),
        stored=np.zeros(m, np.int64),
        features_sum=np.zeros((outputs, width)),
        ring=np.zeros(5, np.int64),
    )


@inline
def remember(memory, model, block, features, j, y, weight, slot, gradient):
    """Add event j with its gradient at the snapshot; remove the oldest if there is no room."""
    ring = memory.ring
    m = memory.targets.size
    if ring[COUNT] == m:
        e = ring[OLDEST]
        ring[OLDEST] = (e + 1) % m
        if memory.slots[e] >= 0:
            ring[FIRST_STORED] = (ring[FIRST_STORED] + 1) % m
            ring[STORED] -= 1
            _count_stored(memory, model, block, j, e, -1.0)
    else:
        e = ring[COUNT]  # an empty entry, whose gradient is 0
        ring[COUNT] += 1
    x, z, event, waves = memory.X[e], memory.Z[e], block.X[j], features.Z[j]
    for o in range(gradient.size):  # both changes at once, to read the long arrays as few times as possible
        leaving = memory.gradients[e, o] if memory.slots[e] < 0 else 0.0
        entering = gradient[o] if slot < 0 else 0.0
        memory.gradients[e, o] = gradient[o]
        if leaving != 0.0 or entering != 0.0:
            total = memory.features_sum[o]
            for i in range(total.size):
                total[i] += entering * np.float64(waves[i]) - leaving * np.float64(z[i])
    for c in range(x.size):
        x[c] = event[c]
    for i in range(z.size):
        z[i] = waves[i]
    memory.targets[e] = y
    memory.weights[e] = weight
    memory.slots[e] = slot
    if slot >= 0:
        memory.stored[(ring[FIRST_STORED] + ring[STORED]) % m] = e
        ring[STORED] += 1
        _count_stored(memory, model, block, j, e, 1.0)


@inline
def _count_stored(memory, model, block, j, e, sign):
    """Add the gradient of entry e, which is stored, to the sum, or subtract it."""
    for o in range(memory.gradients.shape[1]):
        change = sign * memory.gradients[e, o]
        if change != 0.0:
            add_column(model, block, j, memory.slots[e], GRADIENT, o, change)


@inline
def _count_features(memory, e):
    """Add the gradient of entry e, which is represented by its features, to the sum."""
    for o in range(memory.gradients.shape[1]):
        change = memory.gradients[e, o]
        if change != 0.0:
            total, z = memory.features_sum[o], memory.Z[e]
            for i in range(total.size):
                total[i] += change * np.float64(z[i])


@inline
def subtract_gradient(memory, model, block, j, factor, total):
    """v <- v - factor * (the expansion's part of the sum of gradients), with group 1 maintained for averages."""
    ring = memory.ring
    if ring[STORED] == 0:
        return
    m = memory.targets.size
    for q in range(ring[STORED]):
        k = memory.slots[memory.stored[(ring[FIRST_STORED] + q) % m]]
        for o in range(model.coef.shape[1]):
            change = factor * model.coef[GRADIENT, o, k]
            model.coef[0, o, k] -= change
            model.coef[1, o, k] -= change * total
    scores = block.scores
    number = scores.dtype.type
    for o in range(model.places.size):
        v, sums, gradients = scores[0, o], scores[1, o], scores[GRADIENT, o]
        for i in range(j + 1, block.size):
            change = number(factor) * gradients[i]
            v[i] -= change
            sums[i] -= change * number(total)


@inner
def refresh(memory, loss, model, linear, block, features, j):
    """Recompute all gradients at the current snapshot."""
    ring = memory.ring
    ring[STALE] = 0
    for o in range(model.places.size):
        fill(model.coef[GRADIENT, model.places[o], : model.size[0]], 0.0)
        fill(block.scores[GRADIENT, o, j + 1 :], block.scores.dtype.type(0.0))
        fill(memory.features_sum[o], 0.0)
    for first in range(0, ring[COUNT], block.norms.size):
        last = min(first + block.norms.size, ring[COUNT])
        _snapshot_scores(memory, model, block, features, first, last)
        for e in range(first, last):
            for o in range(features.f.size):
                features.f[o] = memory.gradients[e, o] + feature_score(linear.coef[SNAPSHOT, linear.places[o]], memory.Z[e])
            losses.gradient(loss, features.f, memory.targets[e], features.g)
            for o in range(features.f.size):
                memory.gradients[e, o] = memory.weights[e] * features.g[o]
            if memory.slots[e] >= 0:
                _count_stored(memory, model, block, j, e, 1.0)
            else:
                _count_features(memory, e)


@inner
def _snapshot_scores(memory, model, block, features, first, last):
    """Write the expansion's scores of entries first .. last - 1 at the snapshot where their gradients will be."""
    size, b = model.size[0], last - first
    outputs = model.places.size
    for e in range(first, last):
        for o in range(outputs):
            memory.gradients[e, o] = 0.0
    if size == 0:
        return
    K = shaped(features.spare, (size, b))
    norms = features.spare_norms
    X = memory.X[first:last]
    products(model.points[:size], X, K)
    if kernels.is_isotropic(block.kernel):
        for j in range(b):
            norms[j] = inner_product(X[j], X[j])
        as_distances(K, model.norms, norms)
    block.transform(block.kernel, features.spare[: size * b])
    for k in range(size):
        for o in range(outputs):
            c = model.coef[SNAPSHOT, model.places[o], k]
            if c != 0.0:
                gradients, row = memory.gradients[first:last, o], K[k]
                for j in range(b):
                    gradients[j] += c * np.float64(row[j])


@inner
def average_columns(columns, first, last, total, sign, period):
    """u and w become (total w + sign s) / period, s the sum over the period, which is reset."""
    for o in range(columns.shape[1]):
        for i in range(first, last):
            mean = faded((total * columns[0, o, i] + sign * columns[1, o, i]) / period)
            columns[SNAPSHOT, o, i] = mean
            columns[0, o, i] = mean
            columns[1, o, i] = 0.0
