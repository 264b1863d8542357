"""Losses, chosen by integer: value and gradient with respect to the scores, for one output or several.

One output: the target y is -1 or +1 (margin losses, m = y f) or a number (regression losses, e = f - y).
Several outputs: the target is the index of the class, margin losses act on a = f_y - f_z with z the best wrong class
(the lowest index on ties), and softmax is cross-entropy.

``width`` is the loss's own constant: tau of the smooth losses, epsilon of the insensitive ones, the knee of Huber's.
smooth_epsilon has both, tau in ``width`` and epsilon in ``slack``.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ..compiler import inline, inner, jit

HINGE, SMOOTH_HINGE, SQUARED_HINGE, LOGISTIC, SOFTMAX, L2, L1, EPSILON_INSENSITIVE, HUBER, SMOOTH_EPSILON = range(10)
KINDS = {
    "hinge": HINGE,
    "smooth_hinge": SMOOTH_HINGE,
    "squared_hinge": SQUARED_HINGE,
    "logistic": LOGISTIC,
    "softmax": SOFTMAX,
    "l2": L2,
    "l1": L1,
    "epsilon_insensitive": EPSILON_INSENSITIVE,
    "huber": HUBER,
    "smooth_epsilon": SMOOTH_EPSILON,
}


class Loss(NamedTuple):
    kind: int
    width: float
    slack: float


@inline
def margin_value(loss, m):
    """Return a margin loss at margin m."""
    gap = 1.0 - m
    if loss.kind == HINGE:
        return max(0.0, gap)
    if loss.kind == SMOOTH_HINGE:
        if gap < 0.0:
            return 0.0
        if gap > loss.width:
            return gap - 0.5 * loss.width
        return 0.5 * gap * gap / loss.width
    if loss.kind == SQUARED_HINGE:
        return 0.5 * max(0.0, gap) ** 2
    return np.log1p(np.exp(-abs(m))) + max(0.0, -m)  # logistic; the sign of m decides which form does not overflow


@inline
def margin_slope(loss, m):
    """Return the derivative of a margin loss at margin m; never positive, and 0 at m = 1."""
    if loss.kind == HINGE:
        return -1.0 if m < 1.0 else 0.0
    if loss.kind == SMOOTH_HINGE:
        return -min(1.0, max(0.0, (1.0 - m) / loss.width))
    if loss.kind == SQUARED_HINGE:
        return -max(0.0, 1.0 - m)
    e = np.exp(-abs(m))
    return -(e if m > 0.0 else 1.0) / (1.0 + e)


@inline
def residual_value(loss, e):
    """Return a regression loss at residual e = f - y."""
    size = abs(e)
    if loss.kind == L2:
        return 0.5 * e * e
    if loss.kind == L1:
        return size
    if loss.kind == EPSILON_INSENSITIVE:
        return max(0.0, size - loss.width)
    if loss.kind == HUBER:
        return 0.5 * e * e if size <= loss.width else loss.width * (size - 0.5 * loss.width)
    over = max(0.0, size - loss.slack)
    return 0.5 * over * over / loss.width if over <= loss.width else over - 0.5 * loss.width


@inline
def residual_slope(loss, e):
    """Return the derivative of a regression loss at residual e = f - y; 0 at kinks."""
    if loss.kind == L2:
        return e
    if loss.kind == L1:
        return np.sign(e)
    if loss.kind == EPSILON_INSENSITIVE:
        return np.sign(e) if abs(e) > loss.width else 0.0
    if loss.kind == HUBER:
        return min(loss.width, max(-loss.width, e))
    return np.sign(e) * min(1.0, max(0.0, (abs(e) - loss.slack) / loss.width))


@inline
def is_regression(loss):
    return loss.kind >= L2


@inline
def largest(scores):
    top = scores[0]
    for c in range(1, scores.size):
        top = max(top, scores[c])
    return top


@inline
def runner_up(scores, label):
    """Return the best class other than the label."""
    best = 1 if label == 0 else 0
    for c in range(best + 1, scores.size):
        if c != label and scores[c] > scores[best]:
            best = c
    return best


@inline
def margin(scores, y):
    """Return y f for one output, f_y - f_z for several."""
    if scores.size == 1:
        return y * scores[0]
    label = int(y)
    return scores[label] - scores[runner_up(scores, label)]


@inner
def value(loss, scores, y):
    """Return the loss of these scores for target y."""
    if is_regression(loss):
        return residual_value(loss, scores[0] - y)
    if loss.kind == SOFTMAX and scores.size > 1:  # for one output it is the logistic loss
        top = largest(scores)
        total = 0.0
        for c in range(scores.size):
            total += np.exp(scores[c] - top)
        return np.log(total) + top - scores[int(y)]
    return margin_value(loss, margin(scores, y))


@inner
def gradient(loss, scores, y, row):
    """Write the gradient with respect to the scores into row; return whether any of it is nonzero."""
    if is_regression(loss):
        row[0] = residual_slope(loss, scores[0] - y)
        return row[0] != 0.0
    if scores.size == 1:
        row[0] = y * margin_slope(loss, y * scores[0])
        return row[0] != 0.0
    label = int(y)
    if loss.kind == SOFTMAX:
        top = largest(scores)
        total = 0.0
        for c in range(scores.size):
            row[c] = np.exp(scores[c] - top)
            total += row[c]
        for c in range(scores.size):
            row[c] /= total
        row[label] -= 1.0
        return True
    rival = runner_up(scores, label)
    slope = margin_slope(loss, scores[label] - scores[rival])
    for c in range(scores.size):
        row[c] = 0.0
    row[label] = slope
    row[rival] = -slope
    return slope != 0.0


@jit
def write_values(loss, scores, targets, out):
    """Write the loss of each row's scores for its target."""
    for i in range(out.size):
        out[i] = value(loss, scores[i], targets[i])


def lipschitz(loss: str, tau: float, outputs: int) -> float:
    """Return the Lipschitz constant of the loss; with several outputs, a step changes two, or all by as much in total."""
    if loss in ("l2", "squared_hinge"):
        return math.inf
    return (tau if loss == "huber" else 1.0) * (math.sqrt(2.0) if outputs > 1 else 1.0)


def smoothness(loss: str, tau: float, outputs: int = 1) -> float:
    """Return the Lipschitz constant of the gradient of the loss; infinite where the gradient jumps.

    That is the case at kinks and, with several outputs, where another class becomes the best wrong one.
    """
    if loss in ("hinge", "l1", "epsilon_insensitive") or (outputs > 1 and loss != "softmax"):
        return math.inf
    if loss in ("smooth_hinge", "smooth_epsilon"):
        return 1.0 / tau
    return 0.5 if loss == "softmax" else 1.0
