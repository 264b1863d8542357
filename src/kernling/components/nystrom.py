"""Nystrom features: landmarks with kernel matrix V diag(s) V' make z(x) = M k(x), M = diag(s_k)^-1/2 V_k'.

A linear model w on them is stored as an expansion of the landmarks, alpha = M' w: the same function.
"""

from __future__ import annotations

import math

import numpy as np

from ..compiler import inner, jit
from ..core.block import point_values


@jit
def landmark_features(gram, cutoff, M, chosen):
    """Write M from the kernel matrix of the landmarks, and V_k'.  Eigenvalues below the cutoff give rows of zeros."""
    rank, size = M.shape
    values, vectors = np.linalg.eigh(gram)
    for r in range(rank):
        i = size - 1 - r  # the largest come last
        if values[i] > cutoff * values[-1]:
            for k in range(size):
                chosen[r, k] = vectors[k, i]
                M[r, k] = vectors[k, i] / math.sqrt(values[i])


@inner
def compress(model, kernel, K, scores, j, cutoff, M):
    """Write M, and replace the coefficients by those of w = alpha pinv(M), which are V_k V_k' alpha."""
    rank, size = M.shape
    gram, chosen, kept = np.empty((size, size)), np.zeros((rank, size)), np.empty(size)
    row = np.empty(size, model.points.dtype)
    for k in range(size):
        point_values(model, kernel, k, row)
        for i in range(size):
            gram[k, i] = row[i]
    landmark_features(gram, cutoff, M, chosen)
    number = K.dtype.type
    for o in range(model.places.size):
        alpha = model.coef[0, model.places[o]]
        _fold(chosen, alpha, kept)
        for k in range(size):
            change = number(kept[k] - alpha[k])
            alpha[k] = kept[k]
            for i in range(j + 1, K.shape[1]):
                scores[0, o, i] += change * K[k, i]


@inner
def feature_step(M, model, K, scores, j, change):
    """w <- w + change z(x_j): in terms of the landmarks' coefficients and the scores of the events ahead."""
    number = K.dtype.type
    size = M.shape[1]
    values, direction, ahead = np.empty(size), np.empty(size), np.zeros(K.shape[1], K.dtype)
    for k in range(size):
        values[k] = K[k, j]
    _fold(M, values, direction)  # M' z
    for k in range(size):
        c = number(direction[k])
        for i in range(j + 1, ahead.size):
            ahead[i] += c * K[k, i]
    for o in range(change.size):
        if change[o] != 0.0:
            alpha = model.coef[0, model.places[o]]
            for k in range(size):
                alpha[k] += change[o] * direction[k]
            for i in range(j + 1, ahead.size):
                scores[0, o, i] += number(change[o]) * ahead[i]


@inner
def _fold(A, values, out):
    """Write A' A values, for as many values as A has columns."""
    rank, size = A.shape
    for k in range(size):
        out[k] = 0.0
    for r in range(rank):
        row = A[r]
        z = 0.0
        for k in range(size):
            z += row[k] * values[k]
        for k in range(size):
            out[k] += z * row[k]
