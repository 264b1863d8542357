"""SPA by its definition: passive-aggressive steps, each taken with a probability that grows with the loss."""

from __future__ import annotations

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


def spa(stream: str, seed: int, **params) -> Case:
    return Case(SPA, stream, {"gamma": 1.0, "random_state": seed, **params}, bounded=False)


CASES: dict[str, list[Case]] = {
    "SPAClassifier": [
        spa("binary", 1, eta=0.3, beta=3.0),
        spa("binary", 2, eta=0.1, alpha=0.5, beta=2.0, output="last", kernel="poly", gamma=0.5, degree=2, coef0=1.0),
        spa("multiclass", 3, eta=0.2, beta=2.0, kernel="cauchy"),
        spa("binary", 12, eta=0.3, beta=3.0, output="suffix", suffix=0.3),
        spa("multiclass", 4, eta=1.0, budget=100, horizon=300, output="last"),
    ],
    "SPARegressor": [
        spa("regression", 5, eta=0.2, alpha=0.5, beta=1.0, epsilon=0.05),
        spa("regression", 13, eta=0.2, alpha=0.5, beta=1.0, output="suffix", kernel="cauchy"),
        spa("regression", 6, eta=0.5, beta=1.5, output="last", kernel="linear"),
    ],
    "SPAOneClass": [
        spa(ONE_CLASS, 7, contamination=None, mode="ball", eta=0.1, alpha=0.2, beta=0.5, radius=0.6),
        spa(ONE_CLASS, 8, contamination=None, mode="ball", eta=0.1, alpha=0.2, beta=0.4, radius=0.5, output="last"),
        spa(ONE_CLASS, 9, contamination=None, mode="ball", eta=0.3, beta=2.0, radius=0.8, kernel="poly", degree=2, coef0=1.0),
        spa(ONE_CLASS, 10, contamination=None, mode="halfspace", eta=0.2, beta=2.0),
        spa(ONE_CLASS, 11, contamination=None, mode="halfspace", eta=0.2, beta=2.0, output="last"),
    ],
}
