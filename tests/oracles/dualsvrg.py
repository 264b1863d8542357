"""DualSVRG by its definition: every model of a period is kept, every gradient at the snapshot is summed at every step."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .common import Case, decay_of, kernel_values, loss_gradient
from .fogd import Features

SMOOTHNESS = {"logistic": 1.0, "softmax": 0.5, "l2": 1.0, "huber": 1.0}


class DualSVRG:
    """Stochastic variance-reduced gradient descent in the kernel's space and in that of random features."""

    uniforms = 0

    def __init__(self, params: dict[str, Any], d: int, outputs: int):
        self.params = params
        self.z = Features(params, d)
        self.points: list[np.ndarray] = []
        self.w = self.zero(outputs)
        self.u = self.zero(outputs)
        self.period: list[tuple[np.ndarray, np.ndarray]] = []
        self.memory: list[list[Any]] = []  # x, y, weight, where it is stored (or None), gradient at the snapshot
        self.t = 0
        self.eta = params["eta"] or 1.0 / (76.0 * SMOOTHNESS.get(params["loss"], 1.0 / params["tau"]))

    def zero(self, outputs: int) -> tuple[np.ndarray, np.ndarray]:
        """A model: coefficients of the points and of the features."""
        return np.zeros((len(self.points), outputs)), np.zeros((self.z.width, outputs))

    def kernel(self, points: list[np.ndarray], x: np.ndarray) -> np.ndarray:
        return kernel_values(self.params, np.reshape(points, (-1, len(x))), x)

    def value(self, model: tuple[np.ndarray, np.ndarray], x: np.ndarray) -> np.ndarray:
        stored, free = model
        return self.kernel(self.points[: len(stored)], x) @ stored + self.z(x) @ free

    def scores(self, x: np.ndarray) -> np.ndarray:
        return self.value(self.w, x)

    def gradient(self, model: tuple[np.ndarray, np.ndarray], x: np.ndarray, y: float, weight: float) -> np.ndarray:
        return weight * loss_gradient(self.params, self.value(model, x), y)[0]

    def stores(self, x: np.ndarray) -> bool:
        if self.params["oracle"] == "coverage":
            room = len(self.points) < (self.params["max_points"] or math.inf)
            return room and all(np.linalg.norm(x - p) > self.params["theta"] for p in self.points)
        return self.params["oracle"] == "budget" and len(self.points) < self.params["budget"]

    def refresh(self) -> None:
        """Compute the memory's gradients anew."""
        for entry in self.memory:
            entry[4] = self.gradient(self.u, *entry[:3])

    def learn(self, x: np.ndarray, y: float, weight: float, u: float) -> None:
        o = self.params
        self.t += 1
        own, at_snapshot = self.gradient(self.w, x, y, weight), self.gradient(self.u, x, y, weight)
        place = None
        if self.stores(x):
            place = len(self.points)
            self.points.append(x.copy())
        self.memory = [*self.memory, [x.copy(), y, weight, place, at_snapshot]][-o["memory"] :]
        stored, free = self.zero(len(own))
        stored[: len(self.w[0])] = self.w[0]
        free += self.w[1]
        steps = [(place, x, own - at_snapshot)]
        steps += [(entry[3], entry[0], entry[4] / len(self.memory)) for entry in self.memory]
        for k, row, gradient in steps:
            if k is None:
                free -= self.eta * np.outer(self.z(row), gradient)
            else:
                stored[k] -= self.eta * gradient
        shrink = 1.0 / (1.0 + self.eta * o["lam"])
        self.w = stored * shrink, free * shrink
        self.period.append(self.w)
        if self.t % o["period"] == 0:
            self.u = self.mean()
            self.w = self.u
            self.period = []
            self.refresh()
        self.w = self.w[0] * decay_of(o), self.w[1] * decay_of(o)

    def mean(self) -> tuple[np.ndarray, np.ndarray]:
        """Of the period's models."""
        stored, free = self.zero(self.w[0].shape[1])
        for kept, linear in self.period:
            stored[: len(kept)] += kept
            free += linear
        return stored / len(self.period), free / len(self.period)


def dualsvrg(stream: str, loss: str, oracle: str, **params) -> Case:
    usual = {"eta": 0.5, "lam": 0.01, "theta": 0.7, "budget": 20, "memory": 15, "period": 20, "n_components": 30, "gamma": 1.0}
    return Case(DualSVRG, stream, {"loss": loss, "oracle": oracle, "random_state": 2, **usual, **params})


CASES: dict[str, list[Case]] = {
    "DualSVRGClassifier": [
        dualsvrg("binary", "smooth_hinge", "coverage"),
        dualsvrg("binary", "smooth_hinge", "coverage", forget=15.0),
        dualsvrg("multiclass", "smooth_hinge", "coverage", max_points=10),
        dualsvrg("binary", "smooth_hinge", "budget", features="orthogonal", tau=0.8),
        dualsvrg("binary", "logistic", "always", eta=None, kernel="matern32"),
        dualsvrg("binary", "logistic", "coverage", lam=4.0, period=40, memory=50),  # the scale falls below 1e-6 in a period
        dualsvrg("multiclass", "smooth_hinge", "coverage", kernel="cauchy", eta=None),
        dualsvrg("multiclass", "softmax", "budget", memory=1, period=7),
        dualsvrg("multiclass", "logistic", "always", memory=400, period=150),
        dualsvrg("multiclass", "softmax", "coverage", eta=None, theta=0.4, features="linear"),
    ],
    "DualSVRGRegressor": [
        dualsvrg("regression", "l2", "coverage", kernel="rational_quadratic", degree=2),
        dualsvrg("regression", "huber", "budget", tau=0.3, kernel="matern52"),
        dualsvrg("regression", "smooth_epsilon", "always", tau=0.2, epsilon=0.05, kernel="exponential"),
        dualsvrg("regression", "huber", "always", tau=0.3, eta=None, features="linear"),
    ],
}
