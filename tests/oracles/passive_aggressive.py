"""Passive-aggressive learning by its definition, for all tasks; SPA, which tosses a coin before each step, builds on it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .common import Case, Models, kernel_values

ONE_CLASS = "oneclass"


def self_value(params: dict[str, Any], x: np.ndarray) -> float:
    """K(x, x)."""
    return float(kernel_values(params, x[np.newaxis], x)[0])


class PassiveAggressive(Models):
    """PA, PA-I and PA-II."""

    uniforms = 0

    def __init__(self, params: dict[str, Any], d: int, outputs: int):
        super().__init__({"output": "last", **params}, outputs)
        self.is_ball = params.get("mode") == "ball"

    def norm2(self, w: np.ndarray) -> float:
        """||f||^2 by the Gram matrix."""
        return (w.T @ self.gram()[: len(w), : len(w)] @ w).item() if len(w) else 0.0

    def distance(self, w: np.ndarray, x: np.ndarray) -> float:
        """||f - Phi(x)||."""
        return math.sqrt(max(0.0, self.norm2(w) - 2.0 * self.value(w, x)[0] + self_value(self.params, x)))

    def loss(self, w: np.ndarray, x: np.ndarray, y: float) -> tuple[float, np.ndarray]:
        """The loss, and what a step adds to the coefficients of x (none for a ball)."""
        if self.is_ball:
            return max(0.0, self.distance(w, x) - self.params["radius"]), np.zeros(1)
        f = self.value(w, x)
        if "epsilon" in self.params:
            return max(0.0, abs(f[0] - y) - self.params["epsilon"]), np.array([np.sign(y - f[0])])
        if len(f) == 1:
            return max(0.0, 1.0 - y * f[0]), np.array([y])
        label = int(y)
        rival = max((c for c in range(len(f)) if c != label), key=lambda c: (f[c], -c))
        direction = np.zeros(len(f))
        direction[label], direction[rival] = 1.0, -1.0
        return max(0.0, 1.0 - f[label] + f[rival]), direction

    def steepness(self, x: np.ndarray, direction: np.ndarray) -> float:
        """By how much a step of size 1 lowers the loss."""
        return 1.0 if self.is_ball else float((direction**2).sum()) * self_value(self.params, x)

    def size(self, loss: float, steep: float, weight: float, u: float) -> float | None:
        """tau, or None for no step."""
        C = weight * self.params["C"]
        return {"PA": loss / steep, "PA-I": min(C, loss / steep), "PA-II": loss / (steep + 0.5 / C)}[self.params["variant"]]

    def learn(self, x: np.ndarray, y: float, weight: float, u: float) -> None:
        self.vote(x, y, weight)
        w = self.history[-1]
        loss, direction = self.loss(w, x, y)
        tau = self.size(loss, self.steepness(x, direction), weight, u) if loss > 0.0 else None
        if tau is None:
            self.history.append(w)
            return
        r = tau / self.distance(w, x) if self.is_ball else 0.0
        self.points.append(x.copy())
        self.history.append(np.vstack([(1.0 - r) * w, [r] if self.is_ball else tau * direction]))

    def scores(self, x: np.ndarray) -> np.ndarray:
        w = self.output()
        if self.is_ball:
            return np.array([self.params["radius"] - self.distance(w, x)])
        return self.value(w, x) - (1.0 if "mode" in self.params else 0.0)


def case(stream: str, **params) -> Case:
    return Case(PassiveAggressive, stream, {"gamma": 1.0, **params}, bounded=False)


CASES: dict[str, list[Case]] = {
    "PassiveAggressiveClassifier": [
        case("binary", variant="PA"),
        case("binary", variant="PA-I", C=0.3, gamma=2.0),
        case("binary", variant="PA-I", C=0.1, kernel="poly", gamma=0.5, degree=2, coef0=1.0),
        case("multiclass", variant="PA-I", C=0.2, kernel="cauchy"),
        case("multiclass", variant="PA-II", C=0.5),
        case("multiclass", variant="PA"),
    ],
    "PassiveAggressiveRegressor": [
        case("regression", variant="PA", epsilon=0.2),
        case("regression", variant="PA-I", C=0.1, epsilon=0.05),
        case("regression", variant="PA-II", C=0.5, kernel="linear"),
    ],
    "PassiveAggressiveOneClass": [
        case(ONE_CLASS, contamination=None, variant="PA", mode="ball", radius=0.6),
        case(ONE_CLASS, contamination=None, variant="PA-I", mode="ball", C=0.05, radius=0.5),
        case(
            ONE_CLASS, contamination=None, variant="PA-II", mode="ball", C=0.4, radius=1.2, kernel="poly", degree=2, coef0=1.0
        ),
        case(ONE_CLASS, contamination=None, variant="PA-I", mode="halfspace", C=0.2),
    ],
}
