"""Reduction of the united points of two expansions to what the method allows: cells, an error, a budget.

The columns are functions on the union of the points.  The coefficients of a point in the cell of a heavier one are moved to it;
then destructive matching pursuit (pruning.py) removes points, the cheapest first, refitting the rest, while the error allows or
the budget requires it.  The resulting error is the norm of the difference for the column that changed most.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ..compiler import by_address, jit
from ..components.coverage import BOX, Coverage
from ..components.gram import DEPENDENT, DEPENDENT_32
from ..components.pruning import Pruning, pursue
from ..core.matrices import function_products, own_matrix, squared_norms


class Reduction(NamedTuple):
    """The conditions that a method's points must satisfy; none by default."""

    coverage: Coverage | None = None  # no cell contains another core
    eps: float | None = None  # points are removed while the function changes by at most this
    budget: float = math.inf  # points, or points of each kind
    kinds: tuple[np.ndarray, np.ndarray] | None = None  # of the points of either model, where each kind has its own budget
    independent: bool = False  # no point is in the span of others


class Union(NamedTuple):
    points: np.ndarray  # (size, d)
    columns: np.ndarray  # (columns, outputs, size)
    tags: np.ndarray  # (tags, size)
    places: np.ndarray  # (points of the first and of the second model,) index of each in the union, -1 if it was removed
    moved: float  # the largest distance over which coefficients were moved to a core
    error: float  # the norm of what changed in the column that changed most
    projected: int  # points that were removed by projecting their terms on others


def united(kernel: Any, points: np.ndarray, columns: np.ndarray, tags: np.ndarray, rule: Reduction) -> Union:
    """Reduce points, their columns (columns, outputs, points) and tags; exact duplicates are always united."""
    first, copy_of = _distinct(points, tags)
    points, tags = points[first], tags[:, first]
    whole = np.zeros((*columns.shape[:2], len(first)))
    np.add.at(whole, (slice(None), slice(None), copy_of), columns)  # type: ignore[arg-type]
    kept, reduced, moved = np.arange(len(first)), whole, 0.0
    if rule.coverage is not None:
        kept, reduced, moved = _covered(rule.coverage, points, tags, whole)
    covered = len(kept)
    if rule.kinds is not None:
        kind = np.concatenate(rule.kinds)[first][kept]
        parts = [_pursued(kernel, points, kept[kind == k], reduced[:, :, kind == k], rule) for k in np.unique(kind)]
        kept = np.concatenate([part[0] for part in parts])
        reduced = np.concatenate([part[1] for part in parts], axis=2)
    else:
        kept, reduced = _pursued(kernel, points, kept, reduced, rule)
    order = np.argsort(kept)
    kept, reduced = kept[order], np.ascontiguousarray(reduced[:, :, order])
    place = np.full(len(points), -1)
    place[kept] = np.arange(len(kept))
    error = 0.0
    if len(kept) < len(points):
        change = -whole
        change[:, :, kept] += reduced
        error = math.sqrt(max(0.0, *(function_products(kernel, points, column, column).sum() for column in change)))
    tags, projected = np.ascontiguousarray(tags[:, kept]), covered - len(kept)
    return Union(points[kept], reduced, tags, place[copy_of], moved, error, projected)


def _distinct(points: np.ndarray, tags: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the first index of each distinct point, and the inverse; a core is never a duplicate of another point."""
    known: dict[tuple[bytes, bool], int] = {}
    is_core = tags[0] == 0.0 if len(tags) else np.ones(len(points), np.bool_)
    keys = zip((row.tobytes() for row in points + 0.0), is_core.tolist(), strict=True)  # -0 is 0
    copy_of = np.array([known.setdefault(key, len(known)) for key in keys], np.intp)
    return np.unique(copy_of, return_index=True)[1], copy_of


def _covered(
    coverage: Coverage, points: np.ndarray, tags: np.ndarray, columns: np.ndarray
) -> tuple[np.ndarray, np.ndarray, float]:
    """Move points to the cells of heavier cores; points without a cell are left unchanged."""
    cores = np.flatnonzero(tags[0] == 0.0)
    weights = np.square(columns[0][:, cores]).sum(axis=0)
    order = cores[np.argsort(-weights, kind="stable")]
    owner = np.arange(len(points))
    farthest = cover(points, order, coverage.kind == BOX, coverage.radius, coverage.tolerance, owner)
    kept = np.unique(owner)
    reduced = np.zeros_like(columns)
    np.add.at(reduced, (slice(None), slice(None), owner), columns)  # type: ignore[arg-type]
    return kept, reduced[:, :, kept], math.sqrt(farthest)


@jit
def cover(points, order, box, radius, tolerance, owner):
    """Assign points, in order, to the nearest earlier core whose cell contains them; return the largest squared distance."""
    cores = np.empty(order.size, np.int64)
    count = 0
    farthest = 0.0
    for n in range(order.size):
        i = order[n]
        best = -1
        least = np.inf
        for m in range(count):
            k = cores[m]
            total = 0.0
            widest = 0.0
            for c in range(points.shape[1]):
                z = np.float64(points[i, c]) - np.float64(points[k, c])
                total += z * z
                widest = max(widest, abs(z))
            inside = widest < radius if box else total < radius * radius - tolerance
            if inside and total < least - tolerance:
                best = k
                least = total
        if best < 0:
            cores[count] = i
            count += 1
        else:
            owner[i] = best
            farthest = max(farthest, least)
    return farthest


def _pursued(
    kernel: Any, points: np.ndarray, chosen: np.ndarray, columns: np.ndarray, rule: Reduction
) -> tuple[np.ndarray, np.ndarray]:
    """Return the points that remain after matching pursuit, and their columns."""
    if rule.eps is None and not rule.independent and len(chosen) <= rule.budget:
        return chosen, columns
    order = np.argsort(-np.square(columns).sum(axis=(0, 1)), kind="stable")  # heavy points are not projected on light ones
    X = np.ascontiguousarray(points[chosen[order]])
    n, coef = len(chosen), columns.reshape(-1, len(chosen))
    work = Pruning(n, n, len(coef))
    work.own[:] = own_matrix(kernel, X, squared_norms(X)).ravel()
    work.new[:] = coef.T[order]
    dependent = DEPENDENT_32 if X.dtype == np.float32 else DEPENDENT
    least, allowed = (int(min(n, rule.budget)), math.inf) if rule.eps is None else (0, rule.eps**2)
    coef = np.empty(coef.shape)
    count = pursue(by_address(work), n, coef, np.arange(len(coef)), dependent, allowed, least)
    kept, coef, alive = work.kept, coef[:, :count].T, work.alive[:count]
    left = np.flatnonzero(alive)
    if len(left) > rule.budget and rule.eps is not None:
        places = chosen[order[np.flatnonzero(kept)[left]]]
        return _pursued(kernel, points, places, _as_columns(coef[left], columns), rule._replace(eps=None))
    if len(left) > rule.budget:  # rounding errors have stopped the pursuit: keep the heaviest
        left = np.sort(left[np.argsort(-np.square(coef[left]).sum(axis=1), kind="stable")[: int(rule.budget)]])
    return chosen[order[np.flatnonzero(kept)[left]]], _as_columns(coef[left], columns)


def _as_columns(coef: np.ndarray, like: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(coef.T).reshape(*like.shape[:2], len(coef))
