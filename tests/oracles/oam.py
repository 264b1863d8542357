"""OAM by its definition."""

from __future__ import annotations

from typing import Any

import numpy as np

from .common import Case
from .pairs import Pairwise


class OAM(Pairwise):
    """Online AUC maximisation."""

    def __init__(self, params: dict[str, Any], d: int, outputs: int):
        super().__init__(params, d, outputs)
        self.buffer: list[dict[float, list[np.ndarray]]] = [{-1.0: [], 1.0: []} for _ in range(outputs)]

    def change(self, o: int, z: np.ndarray, sign: float, weight: float, u: Any) -> np.ndarray:
        p, w = self.params, self.history[o][-1]
        cap = weight * p["C"] * max(1.0, len(self.seen[o][-sign]) / p["buffer_size"])
        pairs = [sign * (z - other) for other in self.buffer[o][-sign]]
        if p["mode"] == "gra":
            w = w + cap / 2.0 * sum((d for d in pairs if w @ d < 1.0), np.zeros_like(w))
        else:
            for d in pairs:
                w = w + min(cap, max(0.0, 1.0 - w @ d) / (d @ d)) * d
        n = len(self.seen[o][sign]) + 1
        if n <= p["buffer_size"]:
            self.buffer[o][sign].append(z)
        elif u * n < p["buffer_size"]:
            self.buffer[o][sign][int(u * n)] = z
        return w


SETTINGS = {"gamma": 1.0, "n_components": 40, "random_state": 3}
CASES: dict[str, list[Case]] = {
    "OAMClassifier": [
        Case(OAM, "binary", {**SETTINGS, "mode": "seq", "C": 0.05, "buffer_size": 10}),
        Case(OAM, "binary", {**SETTINGS, "mode": "gra", "C": 0.02, "buffer_size": 6, "output": "last", "features": "fourier"}),
        Case(OAM, "multiclass", {**SETTINGS, "mode": "seq", "C": 0.1, "buffer_size": 5, "features": "orthogonal"}),
    ],
}
