"""Nystrom features: landmarks with kernel matrix V diag(s) V' make z(x) = M k(x), M = diag(s_k)^-1/2 V_k'.

A linear model w on them is stored as an expansion of the landmarks, alpha = M' w: the same function.
"""

from __future__ import annotations

import math

import numpy as np

from ..core.block import point_values
from ..core.jit import jit


@jit
def landmark_features(gram, cutoff, M):
    """Write M from the kernel matrix of the landmarks; return V_k'.  Eigenvalues below the cutoff give rows of zeros."""
    rank, size = M.shape
    values, vectors = np.linalg.eigh(gram)
    chosen = np.zeros((rank, size))
    for r in range(rank):
        i = size - 1 - r  # the largest come last
        if values[i] > cutoff * values[-1]:
            for k in range(size):
                chosen[r, k] = vectors[k, i]
                M[r, k] = vectors[k, i] / math.sqrt(values[i])
    return chosen


@jit
def compress(model, kernel, K, scores, j, cutoff, M):
    """Write M, and replace the coefficients by those of w = alpha pinv(M), which are V_k V_k' alpha."""
    size = M.shape[1]
    gram = np.empty((size, size))
    row = np.empty(size, model.points.dtype)
    for k in range(size):
        point_values(model, kernel, k, row)
        gram[k] = row
    chosen = landmark_features(gram, cutoff, M)
    number = K.dtype.type
    for o in range(model.coef.shape[1]):
        alpha = model.coef[0, o]
        kept = _folded(chosen, alpha)
        for k in range(size):
            change = number(kept[k] - alpha[k])
            alpha[k] = kept[k]
            for i in range(j + 1, K.shape[1]):
                scores[0, o, i] += change * K[k, i]


@jit
def feature_step(M, coef, K, scores, j, change):
    """w <- w + change z(x_j): in terms of the landmarks' coefficients and the scores of the events ahead."""
    number = K.dtype.type
    direction = _folded(M, K[:, j])  # M' z
    ahead = np.zeros(K.shape[1], K.dtype)
    for k in range(direction.size):
        c = number(direction[k])
        for i in range(j + 1, ahead.size):
            ahead[i] += c * K[k, i]
    for o in range(change.size):
        if change[o] != 0.0:
            for k in range(direction.size):
                coef[o, k] += change[o] * direction[k]
            for i in range(j + 1, ahead.size):
                scores[o, i] += number(change[o]) * ahead[i]


@jit
def _folded(A, values):
    """Return A' A values for the first values."""
    rank, size = A.shape
    first = np.empty(size)
    for k in range(size):
        first[k] = values[k]
    out = np.zeros(size)
    for r in range(rank):
        z = 0.0
        for k in range(size):
            z += A[r, k] * first[k]
        for k in range(size):
            out[k] += z * A[r, k]
    return out
