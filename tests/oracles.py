"""Slow and obvious references, event by event in NumPy: every model w_1, w_2, ... is kept, every average is a mean of them.

An oracle is made from an estimator's parameters, the number of columns and the number of outputs.  It has

- ``uniforms``: random numbers per event;
- ``learn(x, y, weight, u)``: one event; y is -1 or +1, the index of a class, or a number;
- ``scores(x)``: the output for one row, an array with one number per output;
- ``points``: the rows stored so far.

``CASES`` lists, for every estimator class, the settings in which it must agree with its oracle.
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
    if loss == "logistic":
        return -1.0 / (1.0 + math.exp(m)) if m < 700.0 else 0.0
    raise KeyError(loss)


def residual_slope(loss: str, e: float, epsilon: float) -> float:
    """Derivative of a regression loss at e = f - y."""
    if loss == "l2":
        return e
    if loss == "l1" or abs(e) > epsilon:
        return float(np.sign(e))
    return 0.0


def loss_gradient(params: dict[str, Any], f: np.ndarray, y: float) -> tuple[np.ndarray, float]:
    """Gradient with respect to the scores, and the margin (of a regression: epsilon less the residual, plus 1)."""
    if "epsilon" in params:
        e = f[0] - y
        return np.array([residual_slope(params["loss"], e, params["epsilon"])]), 1.0 + params["epsilon"] - abs(e)
    if len(f) == 1:
        m = y * f[0]
        return np.array([y * margin_slope(params["loss"], m, params["tau"])]), m
    label = int(y)
    wrong = [c for c in range(len(f)) if c != label]
    rival = max(wrong, key=lambda c: (f[c], -c))
    m = f[label] - f[rival]
    row = np.zeros(len(f))
    row[label] = margin_slope(params["loss"], m, params["tau"])
    row[rival] = -row[label]
    return row, m


class Models:
    """All models so far as full coefficient arrays (points, outputs), and the output made from them."""

    def __init__(self, params: dict[str, Any], outputs: int):
        self.params = params
        self.outputs = outputs
        self.points: list[np.ndarray] = []
        self.history = [np.zeros((0, outputs))]

    def kernel_row(self, x: np.ndarray) -> np.ndarray:
        return kernel_values(self.params, np.reshape(self.points, (-1, len(x))), x)

    def gram(self) -> np.ndarray:
        return np.array([self.kernel_row(p) for p in self.points])

    def value(self, w: np.ndarray, x: np.ndarray) -> np.ndarray:
        return self.kernel_row(x)[: len(w)] @ w

    def mean(self, first: int, last: int) -> np.ndarray:
        """Mean of the models w_first .. w_last, counted from 1."""
        total = np.zeros((len(self.points), self.outputs))
        for w in self.history[first - 1 : last]:
            total[: len(w)] += w
        return total / (last - first + 1)

    def output(self) -> np.ndarray:
        """The coefficients of the model that predicts."""
        T = len(self.history) - 1
        kind = self.params["output"]
        if kind == "last" or T == 0:
            return self.history[-1]
        if kind == "average":
            return self.mean(1, T)
        alpha = self.params["suffix"]
        return self.mean(min(T, math.ceil((1.0 - alpha) * T - 1e-9) + 1), T)

    def scores(self, x: np.ndarray) -> np.ndarray:
        return self.value(self.output(), x)


class AVM(Models):
    """Approximation Vector Machine."""

    def __init__(self, params: dict[str, Any], d: int, outputs: int):
        super().__init__(params, outputs)
        self.uniforms = int(params["approximate"] == "bernoulli")
        self.is_core: list[bool] = []
        self.y_max = 0.0
        self.half_side = params["delta"] / (2.0 * math.sqrt(d))

    def cell(self, x: np.ndarray) -> int | None:
        cores = [k for k in range(len(self.points)) if self.is_core[k]]
        if self.params["coverage"] == "box":
            return next((k for k in cores if np.abs(x - self.points[k]).max() < self.half_side), None)
        nearest = min(cores, key=lambda k: np.linalg.norm(x - self.points[k]), default=None)
        if nearest is None or np.linalg.norm(x - self.points[nearest]) >= self.params["delta"] / 2.0:
            return None
        return nearest

    def store(self, x: np.ndarray, is_core: bool) -> int:
        self.points.append(x.copy())
        self.is_core.append(is_core)
        return len(self.points) - 1

    def approximates(self, margin: float, t: int, u: float) -> bool:
        rule = self.params["approximate"]
        if rule == "bernoulli":
            return u < max(0.0, 1.0 - self.params["beta"] / t ** self.params["rho"])
        return rule == "always" or margin >= 1.0

    def learn(self, x: np.ndarray, y: float, weight: float, u: float) -> None:
        o, t, w = self.params, len(self.history), self.history[-1]
        gradient, margin = loss_gradient(o, self.value(w, x), y)
        c: int | None = None
        if self.approximates(margin, t, u):
            c = self.cell(x)
            room = o["max_cells"] is None or sum(self.is_core) < o["max_cells"]
            if c is None and room and (o["zero_cells"] or gradient.any()):
                c = self.store(x, is_core=True)
        elif gradient.any():
            c = self.store(x, is_core=False)
        new = np.zeros((len(self.points), self.outputs))
        new[: len(w)] = (t - 1) / t * w
        if c is not None:
            new[c] -= weight * gradient / (o["lam"] * t)
        self.y_max = max(self.y_max, abs(y))
        if o["loss"] == "l2" and o["lam"] <= 1.0:
            radius = (o["y_max"] or self.y_max) / math.sqrt(o["lam"])
            norm = math.sqrt(max(0.0, (new.T @ self.gram() @ new).item())) if len(new) else 0.0
            if norm > radius:
                new *= radius / norm
        self.history.append(new)


class Case(NamedTuple):
    """A setting of an estimator."""

    oracle: type
    stream: str  # "binary", "multiclass" or "regression"
    params: dict[str, Any]
    bounded: bool = True  # whether memory stops growing once the space is covered


def avm(stream: str, loss: str, lam: float, delta: float, **params) -> Case:
    bounded = params.get("approximate", "always") == "always"  # the other rules keep points outside of their cells
    return Case(AVM, stream, {"loss": loss, "lam": lam, "delta": delta, "gamma": 1.0, **params}, bounded)


CASES: dict[str, list[Case]] = {
    "AVMClassifier": [
        avm("binary", "hinge", 0.05, 0.6, gamma=2.0),
        avm("binary", "logistic", 0.02, 0.8, coverage="box", output="average"),
        avm("binary", "logistic", 0.1, 1.0, approximate="margin"),
        avm("binary", "smooth_hinge", 0.05, 0.5, tau=0.7, kernel="cauchy", output="suffix", suffix=0.3),
        avm("multiclass", "hinge", 0.05, 0.7, max_cells=15, zero_cells=False, output="average"),
        avm("multiclass", "smooth_hinge", 0.05, 0.6, kernel="matern32", output="suffix", suffix=0.6),
        avm(
            "multiclass",
            "logistic",
            0.02,
            0.8,
            kernel="rational_quadratic",
            degree=2,
            approximate="bernoulli",
            beta=3.0,
            rho=0.7,
            random_state=4,
        ),
    ],
    "AVMRegressor": [
        avm("regression", "epsilon_insensitive", 0.05, 0.5),
        avm("regression", "epsilon_insensitive", 0.1, 0.9, coverage="box", approximate="margin"),
        avm(
            "regression",
            "l1",
            0.05,
            0.6,
            kernel="exponential",
            output="average",
            approximate="bernoulli",
            beta=2.0,
            random_state=5,
        ),
        avm("regression", "l2", 0.3, 0.5, kernel="matern52"),
        avm("regression", "l2", 0.5, 0.6, y_max=1.0, output="suffix", suffix=0.4, max_cells=12),
        avm("regression", "l2", 0.4, 0.6, output="average", approximate="bernoulli", beta=2.0, random_state=6),
        avm("regression", "l2", 1.5, 0.5),
    ],
}


def stream(kind: str, n: int, seed: int = 0, d: int = 3) -> tuple[np.ndarray, np.ndarray]:
    """Events with a curved border or surface, and the labels or values that go with them."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.0, 1.0, size=(n, d))
    height = np.sin(2.0 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.normal(size=n)
    if kind == "regression":
        return X, height
    if kind == "binary":
        return X, (height > 0.1).astype(int)
    return X, np.digitize(height, [-0.5, 0.1, 0.6])


def encoded(kind: str, y: np.ndarray) -> np.ndarray:
    """Labels as a learner sees them."""
    return 2.0 * y - 1.0 if kind == "binary" else y.astype(float)


def outputs(kind: str, y: np.ndarray) -> int:
    """How many outputs a model of this stream has."""
    return len(np.unique(y)) if kind == "multiclass" else 1
