"""Slow and obvious references, event by event in NumPy: every model w_1, w_2, ... is kept, every average is a mean of them.

An oracle is made from an estimator's parameters, the number of columns and the number of outputs.  It has

- ``uniforms``: random numbers per event;
- ``learn(x, y, weight, u)``: one event; y is -1 or +1, the index of a class, or a number;
- ``scores(x)``: the output for one row, an array with one number per output;
- ``points``: the rows stored so far.

A module of this package holds the oracle of one method and ``CASES``: for each of its estimator classes, the settings in
which it must agree with the oracle.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np


def kernel_values(params: dict[str, Any], P: np.ndarray, x: np.ndarray) -> np.ndarray:
    """The kernel of each row of P with x, by its formula."""
    name, gamma, degree = params["kernel"], params["gamma"], params["degree"]
    q = np.sum((P - x) ** 2, axis=1)
    r = np.sqrt(q)
    if name == "rbf":
        return np.exp(-gamma * q)
    if name == "exponential":
        return np.exp(-gamma * r)
    if name == "matern32":
        return (1.0 + math.sqrt(3.0) * gamma * r) * np.exp(-math.sqrt(3.0) * gamma * r)
    if name == "matern52":
        s = math.sqrt(5.0) * gamma * r
        return (1.0 + s + s**2 / 3.0) * np.exp(-s)
    if name == "rational_quadratic":
        return (1.0 + gamma * q / degree) ** -degree
    if name == "cauchy":
        return 1.0 / (1.0 + gamma * q)
    if name == "poly":
        return (gamma * (P @ x) + params["coef0"]) ** degree
    if name == "linear":
        return P @ x
    raise KeyError(name)


def margin_slope(loss: str, m: float, tau: float) -> float:
    """Derivative of a margin loss."""
    if loss == "hinge":
        return -1.0 if m < 1.0 else 0.0
    if loss == "smooth_hinge":
        if m > 1.0:
            return 0.0
        return -1.0 if m < 1.0 - tau else (m - 1.0) / tau
    if loss == "squared_hinge":
        return -max(0.0, 1.0 - m)
    if loss in ("logistic", "softmax"):  # the same for one output
        return -1.0 / (1.0 + math.exp(m)) if m < 700.0 else 0.0
    raise KeyError(loss)


def residual_slope(loss: str, e: float, epsilon: float, tau: float) -> float:
    """Derivative of a regression loss at e = f - y."""
    if loss == "l2":
        return e
    if loss == "huber":
        return float(np.clip(e, -tau, tau))
    if loss == "smooth_epsilon":
        return float(np.sign(e) * np.clip((abs(e) - epsilon) / tau, 0.0, 1.0))
    if loss == "l1" or abs(e) > epsilon:
        return float(np.sign(e))
    return 0.0


def loss_gradient(params: dict[str, Any], f: np.ndarray, y: float) -> tuple[np.ndarray, float]:
    """Gradient with respect to the scores, and the margin (of a regression: epsilon less the residual, plus 1)."""
    tau = params.get("tau", math.nan)
    if "epsilon" in params:
        e = f[0] - y
        return np.array([residual_slope(params["loss"], e, params["epsilon"], tau)]), 1.0 + params["epsilon"] - abs(e)
    if len(f) == 1:
        m = y * f[0]
        return np.array([y * margin_slope(params["loss"], m, tau)]), m
    label = int(y)
    wrong = [c for c in range(len(f)) if c != label]
    rival = max(wrong, key=lambda c: (f[c], -c))
    m = f[label] - f[rival]
    row = np.zeros(len(f))
    if params["loss"] == "softmax":
        row = np.exp(f) / np.exp(f).sum()
        row[label] -= 1.0
        return row, m
    row[label] = margin_slope(params["loss"], m, tau)
    row[rival] = -row[label]
    return row, m


def decay_of(params: dict[str, Any]) -> float:
    """What one event leaves of the coefficients, so that ``forget`` events leave half."""
    return 0.5 ** (1.0 / params["forget"]) if params["forget"] else 1.0


def annealed(params: dict[str, Any], t: int) -> float:
    """The t of a step 1 / (lam t), which stops where 1 - 1 / t is the kept share, or is that of a constant step."""
    if params.get("eta"):
        return 1.0 / (params["eta"] * params["lam"])
    return min(t, 1.0 / (1.0 - decay_of(params))) if params["forget"] else t


class Models:
    """All models so far as full coefficient arrays (points, outputs), and the output made from them."""

    def __init__(self, params: dict[str, Any], outputs: int):
        self.params = params
        self.outputs = outputs
        self.points: list[np.ndarray] = []
        self.known = np.zeros((0, 0))
        self.history = [np.zeros((0, outputs))]
        self.votes = np.full(3, 1.0 / 3.0)
        self.marks = [0]
        self.means: dict[tuple[int, int, int], np.ndarray] = {}

    def kernel_row(self, x: np.ndarray) -> np.ndarray:
        return kernel_values(self.params, np.reshape(self.points, (-1, len(x))), x)

    def gram(self) -> np.ndarray:
        """The kernel of each point with each, of which those of the first points may be known."""
        old, P = len(self.known), np.array(self.points)
        if old < len(P):
            new = np.array([kernel_values(self.params, P, p) for p in P[old:]])
            self.known = np.block([[self.known, new[:, :old].T], [new]])
        return self.known

    def projection(self, p: int) -> tuple[np.ndarray, np.ndarray]:
        """The five points nearest to point p, and the coefficients of the projection of K(p, .) on their span."""
        K = self.gram()
        distances = K.diagonal() - 2.0 * K[p]
        distances[p] = np.inf
        near = np.argsort(distances, kind="stable")[: min(5, len(K) - 1)]
        return near, np.linalg.lstsq(K[np.ix_(near, near)], K[near, p], rcond=1e-14)[0]

    def project(self, p: int) -> None:
        """Replace the term of point p by its projection in all models."""
        near, shares = self.projection(p)
        self.history = [np.vstack([w, np.zeros((len(self.points) - len(w), w.shape[1]))]) for w in self.history]
        for w in self.history:
            w[near] += np.outer(shares, w[p])
            w[p] = 0.0

    def value(self, w: np.ndarray, x: np.ndarray) -> np.ndarray:
        return self.kernel_row(x)[: len(w)] @ w

    def mean(self, first: int, last: int) -> np.ndarray:
        """Mean of the models w_first .. w_last, counted from 1; computed once between two events."""
        which = first, last, len(self.history)
        if which not in self.means:
            total = np.zeros((len(self.points), self.outputs))
            for w in self.history[first - 1 : last]:
                total[: len(w)] += w
            self.means = {one: mean for one, mean in self.means.items() if one[2] == len(self.history)}
            self.means[which] = total / (last - first + 1)
        return self.means[which]

    def output(self) -> np.ndarray:
        """The coefficients of the model that predicts."""
        kind = self.params["output"]
        if kind != "auto":
            return self.of_kind(kind)
        total = np.zeros((len(self.points), self.outputs))
        for vote, w in zip(self.votes, self.choices(), strict=True):
            total[: len(w)] += vote * w
        return total

    def of_kind(self, kind: str) -> np.ndarray:
        T = len(self.history) - 1
        if kind == "last" or T == 0:
            return self.history[-1]
        if kind == "average":
            return self.mean(1, T)
        left_out = min(T - 1, math.ceil((1.0 - self.params["suffix"]) * T - 1e-9))
        if self.params["output"] == "auto":  # on an open stream it starts where a snapshot was taken
            left_out = max(mark for mark in self.marks if mark <= left_out)
        return self.mean(left_out + 1, T)

    def choices(self) -> list[np.ndarray]:
        """The three models between which "auto" weighs."""
        return [self.of_kind(kind) for kind in ("last", "average", "suffix")]

    @staticmethod
    def label_loss(f: np.ndarray, y: float) -> float:
        """1 for a wrong label; 1/2 if two labels are equally likely."""
        if len(f) > 1:
            return float(np.argmax(f > f.max() - 1e-10) != y)
        return 0.5 if abs(f[0]) <= 1e-10 else float(np.sign(f[0]) != y)

    def vote(self, x: np.ndarray, y: float, weight: float) -> None:
        """Before an event is learned: weigh the outputs by their losses, and note the times of snapshots."""
        if self.params["output"] != "auto":
            return
        scores = [self.value(w, x) for w in self.choices()]
        if "epsilon" in self.params:
            squares = np.array([(f[0] - y) ** 2 for f in scores])
            losses = squares / max(1e-10, squares.max())
        else:
            losses = np.array([self.label_loss(f, y) for f in scores])
        self.votes = self.votes * np.exp(-0.1 * weight * losses)
        self.votes = 0.999 * self.votes / self.votes.sum() + 0.001 / 3.0
        q = min(2.0, (1.0 - self.params["suffix"]) / (1.0 - 1.25 * self.params["suffix"]))
        count = len(self.history) - 1
        if count == max(self.marks[-1] + 1, math.ceil(self.marks[-1] * q)):
            self.marks.append(count)

    def scores(self, x: np.ndarray) -> np.ndarray:
        return self.value(self.output(), x)


class Case(NamedTuple):
    """A setting of an estimator."""

    oracle: type
    stream: str  # "binary", "rare", "multiclass", "rare multiclass", "regression" or "oneclass"
    params: dict[str, Any]
    bounded: bool = True  # whether memory stops growing once the space is covered


def stream(kind: str, n: int, seed: int = 0, d: int = 3) -> tuple[np.ndarray, np.ndarray]:
    """Events with a curved border or surface, and the labels or values that go with them (1 where nobody asks)."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.0, 1.0, size=(n, d))
    height = np.sin(2.0 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.normal(size=n)
    if kind == "oneclass":
        return X, np.ones(n)
    if kind == "regression":
        return X, height
    if kind in ("binary", "rare"):
        return X, (height > (0.1 if kind == "binary" else 1.1)).astype(int)
    return X, np.digitize(height, [-0.5, 0.1, 0.6] if kind == "multiclass" else [0.9, 1.15])


def encoded(kind: str, y: np.ndarray) -> np.ndarray:
    """Labels as a learner sees them."""
    return 2.0 * y - 1.0 if kind in ("binary", "rare") else y.astype(float)


def outputs(kind: str, y: np.ndarray) -> int:
    """How many outputs a model of this stream has."""
    return len(np.unique(y)) if kind.endswith("multiclass") else 1
