"""Descent on the pairs with a buffer of the other side."""

from __future__ import annotations

from typing import Any

import numpy as np

from .common import Case
from .pairs import Pairwise, pair_slope


class BufferedOGD(Pairwise):
    def __init__(self, params: dict[str, Any], d: int, outputs: int):
        super().__init__(params, d, outputs)
        self.uniforms = params["buffer_size"]
        self.buffer: list[dict[float, list[np.ndarray]]] = [{-1.0: [], 1.0: []} for _ in range(outputs)]

    def change(self, o: int, z: np.ndarray, sign: float, weight: float, u: Any) -> np.ndarray:
        p, w, t = self.params, self.history[o][-1], len(self.history[o])
        pairs = [sign * (z - other) for other in self.buffer[o][-sign]]
        if pairs:
            gradient = np.mean([weight * pair_slope(p["loss"], w @ d) * d for d in pairs], axis=0)
            w = w - p["eta"] / np.sqrt(t) * (gradient + p["lam"] * w)
            w = w * min(1.0, p["radius"] / max(np.linalg.norm(w), 1e-300))
        own, n = self.buffer[o][sign], len(self.seen[o][sign]) + 1
        if n <= p["buffer_size"]:
            own.append(z)
        else:
            self.buffer[o][sign] = [z if coin < 1.0 / n else old for old, coin in zip(own, u, strict=True)]
        return w


SETTINGS = {"gamma": 1.0, "n_components": 40, "random_state": 3}
CASES: dict[str, list[Case]] = {
    "BufferedOGDClassifier": [
        Case(BufferedOGD, "binary", {**SETTINGS, "loss": "squared", "eta": 0.5, "buffer_size": 10}),
        Case(
            BufferedOGD,
            "binary",
            {**SETTINGS, "loss": "hinge", "eta": 1.0, "lam": 0.01, "buffer_size": 5, "output": "last", "features": "fourier"},
        ),
        Case(BufferedOGD, "multiclass", {**SETTINGS, "loss": "logistic", "eta": 1.0, "radius": 0.5, "buffer_size": 7}),
    ],
}
