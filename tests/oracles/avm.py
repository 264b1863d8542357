"""AVM by its definition."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .common import Case, Models, annealed, loss_gradient


class AVM(Models):
    """Approximation Vector Machine."""

    def __init__(self, params: dict[str, Any], d: int, outputs: int):
        super().__init__(params, outputs)
        self.uniforms = int(params["approximate"] == "bernoulli")
        self.is_core: list[bool] = []
        self.visited: list[int] = []
        self.y_max = 0.0
        self.half_side = params["delta"] / math.sqrt(d) / (1.0 if params["coverage"] == "printed_box" else 2.0)

    def cell(self, x: np.ndarray) -> int | None:
        cores = [k for k in range(len(self.points)) if self.is_core[k]]
        if self.params["coverage"] != "sphere":
            return next((k for k in cores if np.abs(x - self.points[k]).max() < self.half_side), None)
        nearest = min(cores, key=lambda k: np.linalg.norm(x - self.points[k]), default=None)
        if nearest is None or np.linalg.norm(x - self.points[nearest]) >= self.params["delta"] / 2.0:
            return None
        return nearest

    def store(self, x: np.ndarray, is_core: bool) -> int:
        self.points.append(x.copy())
        self.is_core.append(is_core)
        self.visited.append(0)
        return len(self.points) - 1

    def open_cell(self, x: np.ndarray) -> int | None:
        if sum(self.is_core) < (self.params["max_cells"] or math.inf):
            return self.store(x, is_core=True)
        if self.params["when_full"] == "drop":
            return None
        k = min((k for k in range(len(self.points)) if self.is_core[k]), key=lambda k: self.visited[k])
        self.project(k)
        self.points[k] = x.copy()
        self.known = np.zeros((0, 0))
        return k

    def approximates(self, margin: float, t: int, u: float) -> bool:
        rule = self.params["approximate"]
        if rule == "bernoulli":
            return u < max(0.0, 1.0 - self.params["beta"] / t ** self.params["rho"])
        return rule == "always" or margin >= 1.0

    def learn(self, x: np.ndarray, y: float, weight: float, u: float) -> None:
        self.vote(x, y, weight)
        o, t, w = self.params, len(self.history), self.history[-1]
        gradient, margin = loss_gradient(o, self.value(w, x), y)
        c: int | None = None
        if self.approximates(margin, t, u):
            c = self.cell(x)
            if c is None and (o["zero_cells"] or gradient.any()):
                c = self.open_cell(x)
            if c is not None:
                self.visited[c] = t
        elif gradient.any():
            c = self.store(x, is_core=False)
        w = self.history[-1]  # without the core that was replaced, if any
        new = np.zeros((len(self.points), self.outputs))
        delay = max(0.0, 1.0 / (o["eta"] * o["lam"]) - 1.0) if o["eta"] else 0.0
        shrink = annealed({**o, "eta": None}, t + delay)  # eta is the largest step here, not a constant one
        t = max(shrink, delay)
        new[: len(w)] = (shrink - 1) / shrink * w
        if c is not None:
            new[c] -= weight * gradient / (o["lam"] * t)
        self.y_max = max(self.y_max, abs(y))
        if o["loss"] == "l2" and o["lam"] <= 1.0:
            radius = (o["y_max"] or self.y_max) / math.sqrt(o["lam"])
            norm = math.sqrt(max(0.0, (new.T @ self.gram() @ new).item())) if len(new) else 0.0
            if norm > radius:
                new *= radius / norm
        self.history.append(new)


def avm(stream: str, loss: str, lam: float, delta: float, **params) -> Case:
    bounded = params.get("approximate", "always") == "always"  # the other rules keep points outside of their cells
    return Case(AVM, stream, {"loss": loss, "lam": lam, "delta": delta, "gamma": 1.0, "output": "last", **params}, bounded)


CASES: dict[str, list[Case]] = {
    "AVMClassifier": [
        avm("binary", "hinge", 0.05, 0.6, gamma=2.0, eta=None, zero_cells=True),  # as in the paper
        avm("binary", "logistic", 0.02, 0.8, coverage="box", output="average"),
        avm("binary", "logistic", 0.1, 1.0, approximate="margin"),
        avm("binary", "hinge", 0.05, 0.5, output="auto"),
        avm("binary", "hinge", 0.05, 0.7, output="average", forget=8.0, eta=None),  # the scale falls below 1e-6
        avm("binary", "smooth_hinge", 0.05, 0.5, tau=0.7, kernel="cauchy", output="suffix", suffix=0.3),
        avm("multiclass", "hinge", 0.05, 0.7, max_cells=15, when_full="drop", output="average"),
        avm("multiclass", "hinge", 0.05, 0.7, max_cells=15, output="average"),
        avm("multiclass", "hinge", 0.05, 0.7, max_cells=15, output="auto"),
        avm("binary", "logistic", 0.01, 0.6, max_cells=10, eta=None, zero_cells=True, output="suffix"),
        avm("multiclass", "smooth_hinge", 0.05, 0.6, kernel="matern32", output="suffix", suffix=0.6),
        avm(
            "multiclass",
            "logistic",
            0.02,
            0.8,
            kernel="rational_quadratic",
            degree=2,
            approximate="bernoulli",
            beta=3.0,
            rho=0.7,
            random_state=4,
        ),
    ],
    "AVMRegressor": [
        avm("regression", "epsilon_insensitive", 0.05, 0.5),
        avm("regression", "epsilon_insensitive", 0.1, 0.9, coverage="box", approximate="margin"),
        avm("regression", "epsilon_insensitive", 0.05, 0.7, output="auto", forget=50.0),
        avm(
            "regression",
            "l1",
            0.05,
            0.6,
            kernel="exponential",
            output="average",
            approximate="bernoulli",
            beta=2.0,
            random_state=5,
        ),
        avm("regression", "l2", 0.3, 0.5, kernel="matern52"),
        avm("regression", "l2", 0.3, 0.5, forget=7.5),
        avm("regression", "l2", 0.5, 0.6, y_max=1.0, output="suffix", suffix=0.4, max_cells=12, when_full="drop"),
        avm("regression", "l2", 0.5, 0.6, output="average", max_cells=12, coverage="box"),
        avm("regression", "l2", 0.4, 0.6, output="average", approximate="bernoulli", beta=2.0, random_state=6),
        avm("regression", "l2", 1.5, 0.5),
    ],
}
