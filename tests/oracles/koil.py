"""KOIL by its definition."""

from __future__ import annotations

from typing import Any

import numpy as np

from .common import Case, kernel_values
from .pairs import Recent


class KOIL:
    """Coefficients (points, outputs) of the points kept of all classes."""

    def __init__(self, params: dict[str, Any], d: int, outputs: int):
        self.params, self.outputs, self.t = params, outputs, 0
        self.uniforms = int(params["eviction"] == "reservoir")
        self.points: list[np.ndarray] = []
        self.targets: list[float] = []
        self.births: list[int] = []
        self.alpha = np.zeros((0, outputs))
        self.seen: dict[float, int] = {}
        self.recent = [Recent() for _ in range(outputs)]

    def sign(self, y: float, o: int) -> float:
        return float(y) if self.outputs == 1 else (1.0 if int(y) == o else -1.0)

    def f(self, x: np.ndarray) -> np.ndarray:
        return kernel_values(self.params, np.reshape(self.points, (-1, len(x))), x) @ self.alpha

    def scores(self, x: np.ndarray) -> np.ndarray:
        return self.f(x) - [recent.threshold for recent in self.recent]

    def learn(self, x: np.ndarray, y: float, weight: float, u: float) -> None:
        p, f = self.params, self.f(x)
        self.t += 1
        self.seen[y] = self.seen.get(y, 0) + 1
        like = kernel_values(p, np.reshape(self.points, (-1, len(x))), x)
        step = p["eta"] * p["C"] * weight
        changed = np.vstack([(1.0 - p["eta"]) * self.alpha, np.zeros(self.outputs)])
        violated = 0
        for o in range(self.outputs):
            sign = self.sign(y, o)
            self.recent[o].see(sign, f[o], self.t)
            others = [i for i in range(len(self.points)) if self.sign(self.targets[i], o) != sign]
            nearest = sorted(others, key=lambda i: (-like[i], i))[: p["neighbours"]]
            V = [i for i in nearest if 1.0 - sign * (f[o] - self.f(self.points[i])[o]) > 0.0]
            changed[V, o] -= step * sign
            changed[-1, o] = step * sign * len(V)
            violated += len(V)
        self.alpha = changed
        self.points.append(x)
        self.targets.append(y)
        self.births.append(self.t)
        own = [i for i, target in enumerate(self.targets) if target == y]
        if len(own) > p["buffer_size"]:
            self.forget(self.leaving(own, self.seen[y], u) if violated else len(self.points) - 1)

    def leaving(self, own: list[int], n: int, u: float) -> int:
        if self.params["eviction"] == "oldest":
            return min(own, key=lambda i: self.births[i])
        return own[min(int(u * n), len(own) - 1)]

    def forget(self, r: int) -> None:
        if self.params["compensate"]:
            values = kernel_values(self.params, np.array(self.points), self.points[r])
            heirs = [i for i in range(len(self.points)) if i != r and self.targets[i] == self.targets[r]]
            c = max(heirs, key=lambda i: (values[i], -i))
            k_cc = kernel_values(self.params, self.points[c][np.newaxis], self.points[c])[0]
            self.alpha[c] += self.alpha[r] * values[c] / k_cc
        for part in (self.points, self.targets, self.births):
            part[r] = part[-1]  # type: ignore[index]
            part.pop()
        self.alpha[r] = self.alpha[-1]
        self.alpha = self.alpha[:-1]


SETTINGS = {"gamma": 1.0, "random_state": 3, "neighbours": 5}
CASES: dict[str, list[Case]] = {
    "KOILClassifier": [
        Case(KOIL, "binary", {**SETTINGS, "eta": 0.02, "C": 5.0, "buffer_size": 10}),
        Case(KOIL, "binary", {**SETTINGS, "eta": 0.05, "C": 2.0, "buffer_size": 15, "eviction": "oldest"}),
        Case(KOIL, "multiclass", {**SETTINGS, "eta": 0.02, "C": 3.0, "buffer_size": 8, "compensate": False}),
        Case(KOIL, "multiclass", {**SETTINGS, "eta": 0.05, "C": 1.0, "buffer_size": 6, "kernel": "cauchy"}),
    ],
}
