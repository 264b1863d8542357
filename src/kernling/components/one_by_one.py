"""Least squares of so few features that events do not wait: each updates the factor and the weights (see least_squares.py)."""

from __future__ import annotations

import math

import numpy as np

from ..compiler import inline_exact, inner_exact, jit_exact
from ..core.limits import SCORE
from .pending import BASE, COUNT, EVENTS, FEATURES, KEEP, LARGEST, REGRET, RHO

UNHEARD = 1e200  # noise of an event that is only scored


@jit_exact
def learn_each(sums, Z, targets, weights, scores):
    """Learn events one by one; return whether all scores are within their limit."""
    n, keep = Z.shape[0], sums.record[KEEP]
    z, left, gain = np.empty(n), np.empty(n), np.empty(n)
    for e in range(weights.size):
        for i in range(n):
            z[i] = Z[i, e]
        for o in range(scores.shape[0]):
            total = 0.0
            for i in range(n):
                total += sums.weights[sums.places[o], i] * z[i]
            scores[o, e] = total
            if weights[e] > 0.0 and not abs(total) <= SCORE:
                return False
        if weights[e] > 0.0:
            _learn_event(sums, keep, z, targets[:, e], scores[:, e], weights[e], left, gain)
    return True


@inline_exact
def _learn_event(sums, keep, z, targets, scores, weight, left, gain):
    """One step of recursive least squares.

    While z is solved for, row by row, the factor is updated with the same numbers: P. E. Gill, G. H. Golub, W. Murray,
    M. A. Saunders, Methods for Modifying Matrix Factorizations, 1974.  ``left`` is what the rows so far leave of z, ``gain``
    becomes A^-1 z / (noise + z'A^-1 z).
    """
    n = z.size
    R, S, record = sums.factor, sums.squares, sums.record
    noise = keep / max(weight, 1.0 / UNHEARD)
    spread, rest, root = 0.0, 1.0, math.sqrt(keep)
    for i in range(n):
        left[i] = z[i]
    for i in range(n):
        p, r, push = left[i], R[i * n + i], weight * z[i]
        share = rest * p / noise
        new = math.sqrt(r * r + share * p)
        step, stretch, add = p / r, root * new / r, root * share / new
        spread += step * step
        rest *= (r / new) ** 2
        gain[i] = add
        R[i * n + i] = root * new
        S[i * n + i] = keep * S[i * n + i] + push * z[i]
        for j in range(i + 1, n):
            left[j] -= step * R[i * n + j]
            R[i * n + j] = stretch * R[i * n + j] + add * left[j]
            S[i * n + j] = keep * S[i * n + j] + push * z[j]
    for i in range(n - 1, -1, -1):
        total = 0.0
        for j in range(i + 1, n):
            total += R[i * n + j] * gain[j]
        gain[i] = (gain[i] - total) / R[i * n + i]
    d = noise + spread
    for o in range(targets.size):
        error, place = targets[o] - scores[o], sums.places[o]
        for i in range(n):
            sums.weights[place, i] += error * gain[i]
            sums.moments[place, i] = keep * sums.moments[place, i] + weight * targets[o] * z[i]
        sums.losses[place] = keep * (sums.losses[place] + error * error / d)
        record[LARGEST] = max(record[LARGEST], abs(targets[o]))
    record[RHO] *= keep
    record[COUNT] = keep * record[COUNT] + 1.0
    record[EVENTS] += 1.0
    record[REGRET] += weight * math.log(max(1.0, weight * d / keep))


@jit_exact
def widen_sums(sums, n):
    """Add features that have been 0 so far to the sums: only their ridge is known."""
    known = sums.size[BASE]
    if n > known:
        _widen(sums.factor, known, n)
        _widen(sums.squares, known, n)
        for i in range(known, n):
            sums.factor[i * n + i] = math.sqrt(sums.record[RHO])
        sums.size[BASE] = n


@inner_exact
def _widen(flat, known, n):
    for i in range(known - 1, -1, -1):
        for j in range(known - 1, -1, -1):
            flat[i * n + j] = flat[i * known + j]
    for i in range(n):
        for j in range(0 if i >= known else known, n):
            flat[i * n + j] = 0.0


@jit_exact
def save(sums, to):
    """Copy sums of events that do not wait."""
    for i in range(sums.size[BASE] * sums.size[BASE]):
        to.factor[i], to.squares[i] = sums.factor[i], sums.squares[i]
    for o in range(sums.losses.size):
        to.losses[o] = sums.losses[o]
        for k in range(sums.size[FEATURES]):
            to.weights[o, k], to.moments[o, k] = sums.weights[o, k], sums.moments[o, k]
    for i in range(sums.size.size):
        to.size[i] = sums.size[i]
    for i in range(sums.record.size):
        to.record[i] = sums.record[i]
