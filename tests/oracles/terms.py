"""Models as plain lists of terms, for methods that forget points, and what their references share."""

from __future__ import annotations

from typing import Any

import numpy as np

from .common import kernel_values, loss_gradient


class Terms:
    """f(x) = sum_k coef[k] K(points[k], x); ``births`` says at which event each point came."""

    uniforms = 0

    def __init__(self, params: dict[str, Any], d: int, outputs: int):
        usual = "epsilon_insensitive" if "epsilon" in params else "hinge"
        self.params = {"loss": usual, **params}
        self.outputs = outputs
        self.points: list[np.ndarray] = []
        self.coef: list[np.ndarray] = []
        self.births: list[int] = []
        self.t = 0
        self.known: dict[tuple[bytes, bytes], float] = {}

    def learn(self, x: np.ndarray, y: float, weight: float, u: float) -> None:
        self.t += 1
        self.weight = weight
        f = self.scores(x)
        gradient, margin = loss_gradient(self.params, f, y)
        self.step(x, f, -weight * gradient, margin, u)

    def step(self, x, f, direction, margin, u) -> None:
        """Learn an event with scores f; direction is minus the gradient."""
        raise NotImplementedError

    def K(self, a: np.ndarray, b: np.ndarray) -> float:
        pair = a.tobytes(), b.tobytes()
        if pair not in self.known:
            self.known[pair] = kernel_values(self.params, a[np.newaxis], b)[0]
        return self.known[pair]

    def row(self, x: np.ndarray) -> np.ndarray:
        return kernel_values(self.params, np.reshape(self.points, (-1, len(x))), x)

    def gram(self) -> np.ndarray:
        return np.array([self.row(p) for p in self.points])

    def scores(self, x: np.ndarray) -> np.ndarray:
        return self.row(x) @ np.reshape(self.coef, (-1, self.outputs))

    def scale(self, factor: float) -> None:
        self.coef = [factor * c for c in self.coef]

    def append(self, x: np.ndarray, c: np.ndarray) -> None:
        self.points.append(x.copy())
        self.coef.append(np.array(c, float))
        self.births.append(self.t)

    def replace(self, k: int, x: np.ndarray, c: np.ndarray) -> None:
        self.points[k], self.coef[k], self.births[k] = x.copy(), np.array(c, float), self.t

    def remove(self, k: int) -> None:
        del self.points[k], self.coef[k], self.births[k]

    def full(self) -> bool:
        return self.params["budget"] is not None and len(self.points) >= self.params["budget"]

    def oldest(self) -> int:
        return int(np.argmin(self.births))

    def lightest(self) -> int:
        weights = np.array([np.sum(c**2) * self.K(p, p) for c, p in zip(self.coef, self.points, strict=True)])
        equal = np.flatnonzero(weights <= weights.min() * (1.0 + 1e-9))
        return int(min(equal, key=lambda k: self.births[k]))

    def mistaken(self, direction: np.ndarray, margin: float) -> bool:
        return bool(direction.any()) and ("epsilon" in self.params or margin <= 0.0)

    @property
    def columns(self) -> int:
        """How many columns a step changes."""
        return 1 if self.outputs == 1 else 2
