"""Descent on the pair with the last event of the other side."""

from __future__ import annotations

from typing import Any

import numpy as np

from .common import Case
from .pairs import Pairwise, pair_slope


class LastPointOGD(Pairwise):
    uniforms = 0

    def change(self, o: int, z: np.ndarray, sign: float, weight: float, u: Any) -> np.ndarray:
        p, w = self.params, self.history[o][-1]
        if not self.seen[o][-sign]:
            return w
        d = sign * (z - self.seen[o][-sign][-1])
        return w - p["eta"] * (weight * pair_slope(p["loss"], w @ d) * d + p["lam"] * w)


SETTINGS = {"gamma": 1.0, "n_components": 40, "random_state": 3}
CASES: dict[str, list[Case]] = {
    "LastPointOGDClassifier": [
        Case(LastPointOGD, "binary", {**SETTINGS, "loss": "squared", "eta": 0.1}),
        Case(
            LastPointOGD,
            "binary",
            {**SETTINGS, "loss": "hinge", "eta": 0.2, "lam": 0.01, "output": "last", "features": "fourier"},
        ),
        Case(LastPointOGD, "multiclass", {**SETTINGS, "loss": "logistic", "eta": 0.3}),
    ],
}
