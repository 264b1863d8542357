"""OPAUC by its definition: all pairs, one by one."""

from __future__ import annotations

from typing import Any

import numpy as np

from .common import Case
from .pairs import Pairwise


class OPAUC(Pairwise):
    """One-pass AUC optimisation."""

    uniforms = 0

    def change(self, o: int, z: np.ndarray, sign: float, weight: float, u: Any) -> np.ndarray:
        p, w = self.params, self.history[o][-1]
        pairs = [sign * (z - other) for other in self.seen[o][-sign]]
        if not pairs:
            return w
        return w - p["eta"] * (weight * np.mean([(w @ d - 1.0) * d for d in pairs], axis=0) + p["lam"] * w)


SETTINGS = {"gamma": 1.0, "n_components": 40, "random_state": 3}
CASES: dict[str, list[Case]] = {
    "OPAUCClassifier": [
        Case(OPAUC, "binary", {**SETTINGS, "eta": 0.1}),
        Case(OPAUC, "binary", {**SETTINGS, "eta": 0.3, "lam": 0.01, "output": "last", "features": "fourier"}),
        Case(OPAUC, "multiclass", {**SETTINGS, "eta": 0.2, "features": "orthogonal"}),
    ],
}
