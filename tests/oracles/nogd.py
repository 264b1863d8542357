"""NOGD by its definition, with the linear model w on the features z."""

from __future__ import annotations

from typing import Any

import numpy as np

from .common import Case, kernel_values, loss_gradient


class NOGD:
    """Nystrom online gradient descent."""

    uniforms = 0

    def __init__(self, params: dict[str, Any], d: int, outputs: int):
        self.params = params
        self.points: list[np.ndarray] = []
        self.alpha = np.zeros((0, outputs))
        self.M: np.ndarray | None = None

    def kernel_row(self, x: np.ndarray) -> np.ndarray:
        return kernel_values(self.params, np.reshape(self.points, (-1, len(x))), x)

    def scores(self, x: np.ndarray) -> np.ndarray:
        return self.kernel_row(x) @ self.alpha if self.M is None else (self.M @ self.kernel_row(x)) @ self.w

    def learn(self, x: np.ndarray, y: float, weight: float, u: float) -> None:
        o = self.params
        gradient, _ = loss_gradient(o, self.scores(x), y)
        if self.M is not None:
            self.w -= o["eta"] * weight * np.outer(self.M @ self.kernel_row(x), gradient)
        elif gradient.any():
            self.points.append(x.copy())
            self.alpha = np.vstack([self.alpha, -o["eta"] * weight * gradient])
            if len(self.points) == o["budget"]:
                self.compress()

    def compress(self) -> None:
        s, V = np.linalg.eigh([self.kernel_row(p) for p in self.points])
        rank = self.params["rank"] or max(1, len(self.points) // 5)
        largest = [i for i in np.argsort(-s)[:rank] if s[i] > 2e-8 * s.max()]
        self.M = np.diag(s[largest] ** -0.5) @ V[:, largest].T
        self.w = (self.alpha.T @ np.linalg.pinv(self.M)).T


def nogd(stream: str, loss: str, eta: float, budget: int, **params) -> Case:
    return Case(NOGD, stream, {"loss": loss, "eta": eta, "budget": budget, "gamma": 1.0, **params})


CASES: dict[str, list[Case]] = {
    "NOGDClassifier": [
        nogd("binary", "hinge", 0.5, 20),
        nogd("binary", "logistic", 0.3, 30, rank=9, kernel="matern32"),
        nogd("multiclass", "hinge", 0.5, 25, rank=60, kernel="exponential"),
        nogd("multiclass", "softmax", 0.5, 25, kernel="rational_quadratic", degree=2),
    ],
    "NOGDRegressor": [
        nogd("regression", "l2", 0.2, 20, rank=10),
        nogd("regression", "epsilon_insensitive", 0.1, 15, kernel="cauchy"),
        nogd("regression", "l1", 0.05, 400),
    ],
}
