"""SOLAM by its definition."""

from __future__ import annotations

from typing import Any

import numpy as np

from .common import Case
from .pairs import Pairwise


class SOLAM(Pairwise):
    """Stochastic online AUC maximisation."""

    uniforms = 0

    def __init__(self, params: dict[str, Any], d: int, outputs: int):
        super().__init__(params, d, outputs)
        self.saddle = np.zeros((outputs, 3))

    def change(self, o: int, z: np.ndarray, sign: float, weight: float, u: Any) -> np.ndarray:
        w, eta, R = self.history[o][-1], weight * self.params["eta"] / np.sqrt(len(self.history[o])), self.params["radius"]
        if not self.seen[o][-sign]:
            return w
        positives = len(self.seen[o][1.0]) + (sign > 0.0)
        p = positives / len(self.history[o])
        a, b, al = self.saddle[o]
        f = w @ z
        if sign > 0.0:
            down = [2.0 * (1.0 - p) * (f - a) * z - 2.0 * (1.0 + al) * (1.0 - p) * z, -2.0 * (1.0 - p) * (f - a), 0.0]
            up = -2.0 * (1.0 - p) * f - 2.0 * p * (1.0 - p) * al
        else:
            down = [2.0 * p * (f - b) * z + 2.0 * (1.0 + al) * p * z, 0.0, -2.0 * p * (f - b)]
            up = 2.0 * p * f - 2.0 * p * (1.0 - p) * al
        w = w - eta * down[0]
        moved = [a - eta * down[1], b - eta * down[2], al + eta * up]
        self.saddle[o] = np.clip(moved, [-R, -R, -2.0 * R], [R, R, 2.0 * R])
        return w * min(1.0, R / max(np.linalg.norm(w), 1e-300))


SETTINGS = {"gamma": 1.0, "n_components": 40, "random_state": 3}
CASES: dict[str, list[Case]] = {
    "SOLAMClassifier": [
        Case(SOLAM, "binary", {**SETTINGS, "eta": 1.0, "features": "fourier"}),
        Case(SOLAM, "binary", {**SETTINGS, "eta": 1.0, "radius": 1.0, "output": "last", "features": "orthogonal"}),
        Case(SOLAM, "multiclass", {**SETTINGS, "eta": 2.0, "features": "fourier"}),
    ],
}
