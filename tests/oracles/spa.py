"""SPA by its definition: passive-aggressive steps, each taken with a probability that grows with the loss."""

from __future__ import annotations

import numpy as np

from .common import Case
from .passive_aggressive import ONE_CLASS, PassiveAggressive


class SPA(PassiveAggressive):
    """Sparse passive-aggressive learning."""

    uniforms = 1

    def size(self, loss: float, steep: float, weight: float, u: float) -> float | None:
        o = self.params
        beta = (o["beta"] or o["alpha"]) if o["budget"] is None else o["alpha"] * o["horizon"] / o["budget"]
        rho = min(o["alpha"], loss) / beta
        return min(weight * o["eta"] / rho, loss / steep) if u < rho else None

    def learn(self, x: np.ndarray, y: float, weight: float, u: float) -> None:
        super().learn(x, y, weight, u)
        if len(self.points) > (self.params["max_points"] or np.inf):
            self.project_one()

    def project_one(self) -> None:
        """Project the last point on its five nearest if it is near their span, else the lightest one, in all models so far."""
        K, p = self.gram(), len(self.points) - 1
        near, shares = self.projection(p)
        if K[p, p] - shares @ K[near, p] > 0.3 * K[p, p]:
            w = self.history[-1]
            p = int(np.argmin((w[:p] ** 2).sum(axis=1) * K.diagonal()[: len(w[:p])]))
        self.project(p)
        self.history = [np.delete(w, p, axis=0) for w in self.history]
        del self.points[p]
        self.known = np.zeros((0, 0))


def spa(stream: str, seed: int, max_points: int | None = None, output: str = "average", **params) -> Case:
    settings = {"gamma": 1.0, "random_state": seed, "max_points": max_points, "output": output, **params}
    return Case(SPA, stream, settings, bounded=max_points is not None)


CASES: dict[str, list[Case]] = {
    "SPAClassifier": [
        spa("binary", 1, eta=0.3, beta=3.0),
        spa("binary", 2, eta=0.1, alpha=0.5, beta=2.0, output="last", kernel="poly", gamma=0.5, degree=2, coef0=1.0),
        spa("multiclass", 3, eta=0.2, beta=2.0, kernel="cauchy"),
        spa("binary", 12, eta=0.3, beta=3.0, output="suffix", suffix=0.3),
        spa("multiclass", 4, eta=1.0, budget=100, horizon=300, output="last"),
        spa("binary", 14, max_points=20, gamma=4.0),
        spa("multiclass", 15, max_points=30, gamma=4.0, output="suffix"),
        spa("binary", 19, beta=2.0, output="auto"),
        spa("multiclass", 20, max_points=30, gamma=4.0, output="auto"),
    ],
    "SPARegressor": [
        spa("regression", 5, eta=0.2, alpha=0.5, beta=1.0, epsilon=0.05),
        spa("regression", 13, eta=0.2, alpha=0.5, beta=1.0, output="suffix", kernel="cauchy"),
        spa("regression", 6, eta=0.5, beta=1.5, output="last", kernel="linear"),
        spa("regression", 16, max_points=25, eta=0.2, alpha=0.5, gamma=4.0),
        spa("regression", 21, max_points=25, gamma=4.0, output="auto", suffix=0.3),
    ],
    "SPAOneClass": [
        spa(ONE_CLASS, 7, contamination=None, mode="ball", eta=0.1, alpha=0.2, beta=0.5, radius=0.6),
        spa(ONE_CLASS, 8, contamination=None, mode="ball", eta=0.1, alpha=0.2, beta=0.4, radius=0.5, output="last"),
        spa(ONE_CLASS, 9, contamination=None, mode="ball", eta=0.3, beta=2.0, radius=0.8, kernel="poly", degree=2, coef0=1.0),
        spa(ONE_CLASS, 10, contamination=None, mode="halfspace", eta=0.2, beta=2.0),
        spa(ONE_CLASS, 11, contamination=None, mode="halfspace", eta=0.2, beta=2.0, output="last"),
        spa(ONE_CLASS, 17, max_points=12, contamination=None, mode="ball", eta=0.3, radius=0.6, gamma=2.0),
        spa(ONE_CLASS, 18, max_points=12, contamination=None, mode="ball", eta=0.3, radius=0.6, gamma=2.0, output="last"),
    ],
}
