"""SPAM-NET by its definition."""

from __future__ import annotations

from typing import Any

import numpy as np

from .common import Case
from .pairs import Pairwise


class SPAMNet(Pairwise):
    """Stochastic proximal AUC maximisation."""

    uniforms = 0

    def change(self, o: int, z: np.ndarray, sign: float, weight: float, u: Any) -> np.ndarray:
        p, w, eta = self.params, self.history[o][-1], self.params["eta"] / np.sqrt(len(self.history[o]))
        events = {side: [*rows, z] if side == sign else rows for side, rows in self.seen[o].items()}
        if not events[-sign]:
            return w
        share = len(events[1.0]) / (len(events[1.0]) + len(events[-1.0]))
        a, b = (w @ np.mean(events[side], axis=0) for side in (1.0, -1.0))
        if sign > 0.0:
            gradient = 2.0 * (1.0 - share) * (w @ z - a) * z - 2.0 * (1.0 + b - a) * (1.0 - share) * z
        else:
            gradient = 2.0 * share * (w @ z - b) * z + 2.0 * (1.0 + b - a) * share * z
        w = w - eta * weight * gradient
        return np.sign(w) * np.maximum(0.0, np.abs(w) - eta * p["l1"]) / (1.0 + eta * p["l2"])


SETTINGS = {"gamma": 1.0, "n_components": 40, "random_state": 3}
CASES: dict[str, list[Case]] = {
    "SPAMNetClassifier": [
        Case(SPAMNet, "binary", {**SETTINGS, "eta": 0.5, "features": "fourier"}),
        Case(SPAMNet, "binary", {**SETTINGS, "eta": 1.0, "l1": 0.01, "l2": 0.05, "output": "last", "features": "orthogonal"}),
        Case(SPAMNet, "multiclass", {**SETTINGS, "eta": 1.0, "l1": 0.001, "features": "fourier"}),
    ],
}
