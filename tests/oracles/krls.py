"""Kernel least squares by their definition: after every event, the ridge regression on the features of all events so far."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

import numpy as np

from .common import Case, decay_of, kernel_values
from .fogd import Features

WIDE = 512


class KRLS:
    """Least squares on [1, Fourier features, columns, whitened kernel values]; points not stored yet are 0 in a row."""

    uniforms = 0

    def __init__(self, params: dict[str, Any], d: int, outputs: int):
        self.params = params
        self.outputs = outputs
        self.points: list[np.ndarray] = []
        self.L = np.zeros((0, 0))
        self.waves = Features({**params, "n_components": params["points"]}, d) if params["features"] == "fourier" else None
        self.rows: list[np.ndarray] = []
        self.targets: list[np.ndarray] = []
        self.weights: list[float] = []
        self.since = 0  # events since the ridge was full

    def k(self, P: np.ndarray, x: np.ndarray) -> np.ndarray:
        return kernel_values(self.params, P, x)

    def z(self, x: np.ndarray) -> np.ndarray:
        """Whitened kernel values of the points so far."""
        if not self.points:
            return np.zeros(0)
        P = np.array(self.points)
        if len(self.L) < len(P):
            self.L = np.linalg.cholesky(np.array([self.k(P, p) for p in P]))
        return np.linalg.solve(self.L, self.k(P, x))

    def features(self, x: np.ndarray) -> np.ndarray:
        waves = self.waves(x) if self.waves else np.zeros(0)
        columns = x * math.sqrt(self.params["gamma"]) if len(x) <= WIDE else np.zeros(0)
        if self.params["features"] == "linear":
            columns = x
        return np.concatenate([[1.0], waves, columns, self.z(x)])

    @cached_property
    def system(self) -> tuple[np.ndarray, np.ndarray]:
        """A = rho I + S, and the right side."""
        beta = decay_of(self.params)
        Z, T = np.array(self.rows), np.array(self.targets)
        s = np.array(self.weights) * beta ** np.arange(len(Z) - 1.0, -1.0, -1.0)
        return self.params["ridge"] * beta**self.since * np.eye(Z.shape[1]) + (Z.T * s) @ Z, (Z.T * s) @ T

    @property
    def A(self) -> np.ndarray:
        return self.system[0]

    @cached_property
    def W(self) -> np.ndarray:
        return np.linalg.solve(*self.system)

    def changed(self) -> None:
        """Solve anew, when the solution is needed."""
        vars(self).pop("system", None)
        vars(self).pop("W", None)

    def scores(self, x: np.ndarray) -> np.ndarray:
        return self.features(x)[: len(self.W)] @ self.W if self.rows else np.zeros(self.outputs)

    def learn(self, x: np.ndarray, y: float, weight: float, u: float) -> None:
        o = self.params
        if o["features"] == "points" and len(self.points) < o["points"]:
            own = self.k(x[np.newaxis], x)[0]
            if own - np.sum(self.z(x) ** 2) > o["novelty"] * own:
                self.points.append(x.copy())
                self.rows = [np.append(row, 0.0) for row in self.rows]  # the point was not there yet
        self.rows.append(self.features(x))
        self.targets.append(np.array([y]) if self.outputs == 1 else np.where(np.arange(self.outputs) == int(y), 1.0, -1.0))
        self.weights.append(weight)
        self.since += 1
        if o["forget"] and len(self.rows) % max(16, math.ceil(o["forget"])) == 0:
            self.since = 0
        self.changed()


def krls(stream: str, **params) -> Case:
    return Case(KRLS, stream, {"gamma": 1.0, "points": 40, **params})


CASES: dict[str, list[Case]] = {
    "KRLSClassifier": [
        krls("binary"),
        krls("multiclass", points=15, ridge=1.0, gamma=0.6),
        krls("binary", forget=40.0, kernel="matern32", novelty=0.1),
        krls("multiclass", features="fourier", points=30, random_state=2),
        krls("multiclass", restart=True, points=15),
        krls("multiclass", features="linear", gamma=3.0),
        krls("binary", kernel="poly", degree=2, coef0=1.0, points=8),
    ],
    "KRLSRegressor": [
        krls("regression"),
        krls("regression", forget=7.5, points=12, kernel="cauchy"),
        krls("regression", features="fourier", points=20, random_state=3, forget=100.0),
        krls("regression", features="linear", ridge=0.01),
        krls("regression", restart=True, points=12),
        krls("regression", kernel="linear", novelty=0.001),
    ],
}
