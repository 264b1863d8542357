"""Passive-aggressive learning on a budget, by its definitions: every point that could go is tried."""

from __future__ import annotations

import numpy as np

from .common import Case
from .terms import Terms


class BPAS(Terms):
    """The term of the point that goes is projected on the new event."""

    def step(self, x, f, direction, margin, u):
        loss = 1.0 - margin if "epsilon" not in self.params else max(0.0, 1.0 - margin)
        if not direction.any() or self.K(x, x) <= 0.0:
            return
        direction = direction / self.weight  # which multiplies the largest step, not each
        tau = min(self.weight * self.params["C"], loss / (self.columns * self.K(x, x)))
        if not self.full():
            self.append(x, tau * direction)
            return
        r, stand_ins, shares = min((self.without(r, x) for r in range(len(self.points))), key=lambda found: found[0])[1:]
        for k, share in zip(stand_ins, shares[1:], strict=True):
            self.coef[k] = self.coef[k] + share * self.coef[r]
        self.replace(r, x, shares[0] * self.coef[r] + tau * direction)

    def neighbours(self, r: int) -> list[int]:
        """Which points besides the event stand in for point r."""
        return []

    def without(self, r: int, x: np.ndarray) -> tuple[float, int, list[int], np.ndarray]:
        """What it costs to project the term of point r, and the projection: on the event first, then on neighbours."""
        near = self.neighbours(r)
        span = [x, *(self.points[k] for k in near)]
        K = np.array([[self.K(a, b) for a in span] for b in span])
        k = np.array([self.K(a, self.points[r]) for a in span])
        shares = np.linalg.solve(K, k)
        return self.coef[r] @ self.coef[r] * (self.K(self.points[r], self.points[r]) - k @ shares), r, near, shares


class BPANN(BPAS):
    """The same with the nearest other point, in feature space, beside the event."""

    def neighbours(self, r):
        others = [k for k in range(len(self.points)) if k != r]
        p = self.points
        return [min(others, key=lambda k: self.K(p[k], p[k]) - 2.0 * self.K(p[k], p[r]))]


def case(oracle: type, stream: str, **params) -> Case:
    return Case(oracle, stream, {"gamma": 1.0, **params})


def cases(name: str, oracle: type) -> dict[str, list[Case]]:
    return {
        f"{name}Classifier": [
            case(oracle, "binary", C=0.5, budget=12),
            case(oracle, "multiclass", C=1.0, budget=25, kernel="poly", degree=2, coef0=1.0),
        ],
        f"{name}Regressor": [case(oracle, "regression", C=0.5, budget=25, epsilon=0.05, kernel="matern32")],
    }


CASES: dict[str, list[Case]] = {**cases("BPAS", BPAS), **cases("BPANN", BPANN)}
