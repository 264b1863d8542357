"""Random features by their definition, and FOGD."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .common import Case, loss_gradient


def orthogonalised(rows: np.ndarray) -> np.ndarray:
    """Gram and Schmidt within each group of as many rows as there are columns, every row keeping its length."""
    out = np.empty_like(rows)
    d = rows.shape[1]
    for i, row in enumerate(rows):
        rest = row.copy()
        for done in out[i - i % d : i]:
            rest -= (rest @ done) / (done @ done) * done
        out[i] = rest * np.linalg.norm(row) / np.linalg.norm(rest)
    return out


class Features:
    """z(x), the cosines and then the sines of its products with random frequencies; or x itself."""

    def __init__(self, params: dict[str, Any], d: int):
        self.count = params["n_components"] // 2
        self.linear = params["features"] == "linear"
        self.width = d if self.linear else 2 * self.count
        rng = np.random.default_rng(params["random_state"])
        normals = np.zeros((0, d)) if self.linear else rng.standard_normal((self.count, d))
        if params["features"] == "orthogonal":
            normals = orthogonalised(normals)
        self.rng = rng  # whose next numbers belong to the events
        self.frequencies = normals * (1.0 if self.linear else self.widths(params, rng))

    def widths(self, params: dict[str, Any], rng: np.random.Generator) -> Any:
        kernel, gamma = params["kernel"], params["gamma"]
        if kernel == "rbf":
            return math.sqrt(2.0 * gamma)
        if kernel == "cauchy":
            mixing = 2.0 * gamma * rng.gamma(1.0, size=self.count)
        elif kernel == "rational_quadratic":
            mixing = 2.0 * gamma * rng.gamma(params["degree"], size=self.count) / params["degree"]
        else:
            nu = {"exponential": 1, "matern32": 3, "matern52": 5}[kernel]
            mixing = gamma**2 * nu / rng.chisquare(nu, size=self.count)
        return np.sqrt(mixing)[:, np.newaxis]

    def __call__(self, x: np.ndarray) -> np.ndarray:
        if self.linear:
            return x
        angles = self.frequencies @ x
        return np.concatenate([np.cos(angles), np.sin(angles)]) / math.sqrt(self.count)


class FOGD:
    """Fourier online gradient descent."""

    uniforms = 0

    def __init__(self, params: dict[str, Any], d: int, outputs: int):
        self.params = params
        self.z = Features(params, d)
        self.w = np.zeros((self.z.width, outputs))
        self.points: list[np.ndarray] = []

    def scores(self, x: np.ndarray) -> np.ndarray:
        return self.z(x) @ self.w

    def learn(self, x: np.ndarray, y: float, weight: float, u: float) -> None:
        gradient, _ = loss_gradient(self.params, self.scores(x), y)
        self.w -= self.params["eta"] * weight * np.outer(self.z(x), gradient)


def fogd(stream: str, loss: str, eta: float, **params) -> Case:
    return Case(FOGD, stream, {"loss": loss, "eta": eta, "gamma": 1.0, "n_components": 40, "random_state": 3, **params})


CASES: dict[str, list[Case]] = {
    "FOGDClassifier": [
        fogd("binary", "hinge", 0.5),
        fogd("binary", "logistic", 1.0, features="orthogonal", kernel="cauchy"),
        fogd("multiclass", "hinge", 0.3, kernel="matern52"),
        fogd("multiclass", "softmax", 0.8, kernel="rational_quadratic", degree=2),
        fogd("binary", "hinge", 0.1, features="linear"),
    ],
    "FOGDRegressor": [
        fogd("regression", "l2", 0.3, kernel="exponential"),
        fogd("regression", "epsilon_insensitive", 0.1, features="orthogonal"),
        fogd("regression", "l1", 0.1, kernel="matern32"),
    ],
}
