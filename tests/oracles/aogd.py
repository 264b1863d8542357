"""AOGD by its definition."""

from __future__ import annotations

from typing import Any

import numpy as np

from .common import Case
from .pairs import Pairwise, pair_slope


class AOGD(Pairwise):
    """A step against the mean of the other side, then one against its example."""

    def __init__(self, params: dict[str, Any], d: int, outputs: int):
        super().__init__(params, d, outputs)
        self.example: list[dict[float, np.ndarray]] = [{} for _ in range(outputs)]

    def change(self, o: int, z: np.ndarray, sign: float, weight: float, u: float) -> np.ndarray:
        p, w, others = self.params, self.history[o][-1], self.seen[o][-sign]
        if others:
            for step, partner in ((p["eta"], np.mean(others, axis=0)), (p["second_eta"], self.example[o][-sign])):
                d = sign * (z - partner)
                w = w - step * (weight * pair_slope(p["loss"], w @ d) * d + p["lam"] * w)
        if sign not in self.example[o] or u < p["refresh"]:
            self.example[o][sign] = z
        return w


def aogd(stream: str, loss: str, eta: float, second_eta: float, refresh: float, **params) -> Case:
    settings = {"loss": loss, "eta": eta, "second_eta": second_eta, "refresh": refresh}
    return Case(AOGD, stream, {**settings, "gamma": 1.0, "n_components": 40, "random_state": 3, **params})


CASES: dict[str, list[Case]] = {
    "AOGDClassifier": [
        aogd("binary", "squared", 0.5, 0.2, 0.1),
        aogd("binary", "hinge", 0.3, 0.1, 0.5, lam=0.01, output="last", features="orthogonal"),
        aogd("binary", "logistic", 0.2, 0.1, 0.3, features="linear", lam=1e-3),
        aogd("multiclass", "squared", 0.4, 0.3, 0.2, kernel="cauchy"),
        aogd("multiclass", "logistic", 1.0, 0.3, 0.05, output="last"),
    ],
}
