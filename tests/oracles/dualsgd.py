"""DualSGD by its definition."""

from __future__ import annotations

from typing import Any

import numpy as np

from .common import Case, annealed, kernel_values, loss_gradient
from .fogd import Features


class DualSGD:
    """Pegasos steps on a kernel part and a part on random features."""

    uniforms = 0

    def __init__(self, params: dict[str, Any], d: int, outputs: int):
        self.params = params
        self.z = Features(params, d)
        self.points: list[np.ndarray] = []
        self.alpha = np.zeros((0, outputs))
        self.w = np.zeros((self.z.width, outputs))
        self.t = 0

    def scores(self, x: np.ndarray) -> np.ndarray:
        row = kernel_values(self.params, np.reshape(self.points, (-1, len(x))), x)
        return row @ self.alpha + self.z(x) @ self.w

    def learn(self, x: np.ndarray, y: float, weight: float, u: float) -> None:
        o = self.params
        gradient, _ = loss_gradient(o, self.scores(x), y)
        self.t += 1
        t = annealed(o, self.t)
        self.alpha *= (t - 1) / t
        self.w *= (t - 1) / t
        if gradient.any():
            self.points.append(x.copy())
            self.alpha = np.vstack([self.alpha, -weight * gradient / (o["lam"] * t)])
        if len(self.points) > o["budget"]:
            for _ in range(min(o["n_leaving"], len(self.points))):
                norms = np.linalg.norm(self.alpha, axis=1)
                k = int(np.flatnonzero(norms <= norms.min() * (1.0 + 1e-9))[0])  # the oldest
                if o["maintain"] == "merge":
                    self.w += np.outer(self.z(self.points[k]), self.alpha[k])
                del self.points[k]
                self.alpha = np.delete(self.alpha, k, axis=0)


def dualsgd(stream: str, loss: str, maintain: str, **params) -> Case:
    usual = {"lam": 0.02, "gamma": 1.0, "budget": 12, "n_leaving": 3, "n_components": 30, "random_state": 4}
    return Case(DualSGD, stream, {"loss": loss, "maintain": maintain, **usual, **params})


CASES: dict[str, list[Case]] = {
    "DualSGDClassifier": [
        dualsgd("binary", "hinge", "merge"),
        dualsgd("binary", "hinge", "merge", forget=50.0),
        dualsgd("binary", "logistic", "merge", kernel="matern32", features="orthogonal"),
        dualsgd("binary", "hinge", "remove", n_leaving=20),
        dualsgd("multiclass", "hinge", "merge", n_leaving=1, kernel="cauchy"),
        dualsgd("multiclass", "logistic", "remove"),
        dualsgd("multiclass", "logistic", "merge", features="linear"),
        dualsgd("multiclass", "softmax", "merge", eta=0.3),
    ],
    "DualSGDRegressor": [
        dualsgd("regression", "epsilon_insensitive", "merge"),
        dualsgd("regression", "l1", "remove", kernel="exponential"),
    ],
}
