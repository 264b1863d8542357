"""OSKL by its definition."""

from __future__ import annotations

from typing import Any

import numpy as np

from .common import Case, Models, loss_gradient


class OSKL(Models):
    """Online sparse kernel learning."""

    uniforms = 1

    def __init__(self, params: dict[str, Any], d: int, outputs: int):
        super().__init__(params, outputs)

    def gradient(self, f: np.ndarray, y: float) -> np.ndarray:
        if "loss" in self.params:
            return loss_gradient(self.params, f, y)[0]
        over = abs(f[0] - y) - self.params["epsilon"]
        return np.array([np.sign(f[0] - y) * min(1.0, max(0.0, over) / self.params["tau"])])

    def learn(self, x: np.ndarray, y: float, weight: float, u: float) -> None:
        w = self.history[-1]
        gradient = self.gradient(self.value(w, x), y)
        if u < np.abs(gradient).max() / self.params["G"]:
            self.points.append(x.copy())
            w = np.vstack([w, -weight * self.params["eta"] * self.params["G"] * np.sign(gradient)])
        self.history.append(w)


def oskl(stream: str, seed: int, **params) -> Case:
    return Case(OSKL, stream, {"gamma": 1.0, "random_state": seed, **params}, bounded=False)


CASES: dict[str, list[Case]] = {
    "OSKLClassifier": [
        oskl("binary", 1, loss="logistic", eta=0.3, G=2.0),
        oskl("binary", 2, loss="smooth_hinge", eta=0.1, tau=0.7, output="last", kernel="poly", gamma=0.5, degree=2, coef0=1.0),
        oskl("multiclass", 3, loss="logistic", eta=0.5, G=1.5, kernel="cauchy", output="last"),
        oskl("multiclass", 4, loss="smooth_hinge", eta=0.2),
    ],
    "OSKLRegressor": [
        oskl("regression", 5, eta=0.1, G=2.0),
        oskl("regression", 6, eta=0.2, epsilon=0.0, tau=1.0, output="last"),
    ],
}
