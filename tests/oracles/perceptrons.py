"""The perceptron and its descendants on a budget, by their definitions."""

from __future__ import annotations

import numpy as np

from .common import Case
from .terms import Terms


class Perceptron(Terms):
    def step(self, x, f, direction, margin, u):
        if self.mistaken(direction, margin):
            self.append(x, self.params.get("eta", 1.0) * direction)


class RBP(Terms):
    uniforms = 1

    def step(self, x, f, direction, margin, u):
        if self.mistaken(direction, margin):
            c = self.params.get("eta", 1.0) * direction
            if self.full():
                self.replace(int(u * len(self.points)), x, c)
            else:
                self.append(x, c)


class Forgetron(Terms):
    """phi by bisection on Psi, which rises where it is asked."""

    mistakes, damage = 0, 0.0

    def psi(self, phi: float, r: int) -> float:
        eta = self.params.get("eta", 1.0)
        a, p = self.coef[r] / eta, self.points[r]
        return phi**2 * (a @ a) * self.K(p, p) + 2.0 * phi * (np.abs(a).max() - phi * (a @ self.scores(p)) / eta)

    def step(self, x, f, direction, margin, u):
        if not self.mistaken(direction, margin):
            return
        self.mistakes += 1
        overflow = self.full()
        self.append(x, self.params.get("eta", 1.0) * direction)
        if overflow:
            r = self.oldest()
            room = 15.0 / 32.0 * self.mistakes - self.damage
            low, high = 0.0, 1.0
            if self.psi(1.0, r) > room:
                while high - low > 1e-16 * high and low < (low + high) / 2.0 < high:
                    middle = (low + high) / 2.0
                    low, high = (middle, high) if self.psi(middle, r) <= room else (low, middle)
                high = low
            self.damage += self.psi(high, r)
            self.scale(high)
            last = len(self.points) - 1
            self.points[r], self.coef[r], self.births[r] = self.points[last], self.coef[last], self.births[last]
            self.remove(last)


class BudgetPerceptron(Terms):
    """All margins are computed anew at every overflow."""

    def step(self, x, f, direction, margin, u):
        if margin > self.params["beta"]:
            return
        overflow = self.full()
        self.append(x, direction)
        if overflow:
            K, coef = self.gram(), np.array(self.coef)
            without = K @ coef - np.diag(K)[:, np.newaxis] * coef
            if self.outputs == 1:
                margins = np.sign(coef[:, 0]) * without[:, 0]
            else:
                own = coef.argmax(axis=1)
                rows = np.arange(len(own))
                wrong = without.copy()
                wrong[rows, own] = -np.inf
                margins = without[rows, own] - wrong.max(axis=1)
            self.remove(int(np.argmax(margins[:-1])))


class Projectron(Terms):
    """The projection by least squares."""

    def project(self, x: np.ndarray) -> tuple[np.ndarray, float]:
        """Coefficients of the projection of x on the span of the points, and the squared distance from it."""
        if not self.points:
            return np.zeros(0), self.K(x, x)
        k = self.row(x)
        shares = np.linalg.lstsq(self.gram(), k, rcond=1e-14)[0]
        return shares, max(0.0, self.K(x, x) - k @ shares)

    def spread(self, shares: np.ndarray, c: np.ndarray) -> None:
        self.coef = [old + share * c for old, share in zip(self.coef, shares, strict=True)]

    def learn_mistake(self, x: np.ndarray, c: np.ndarray) -> None:
        shares, gap = self.project(x)
        if self.full() or np.sqrt(gap) <= self.params["threshold"]:
            self.spread(shares, c)
        else:
            self.append(x, c)

    def step(self, x, f, direction, margin, u):
        if self.mistaken(direction, margin):
            self.learn_mistake(x, self.params.get("eta", 1.0) * direction)


class ProjectronPlusPlus(Projectron):
    def step(self, x, f, direction, margin, u):
        if margin <= 0.0:
            self.learn_mistake(x, direction)
        elif margin < 1.0:
            shares, gap = self.project(x)
            loss, norm = 1.0 - margin, self.columns * (self.K(x, x) - gap)
            excess = loss - np.sqrt(gap) / self.params["threshold"]
            if excess >= 0.0:
                self.spread(shares, min(loss / norm, 2.0 * excess / norm, 1.0) * direction)


def case(oracle: type, stream: str, bounded: bool = True, **params) -> Case:
    return Case(oracle, stream, {"gamma": 1.0, **params}, bounded)


CASES: dict[str, list[Case]] = {
    "PerceptronClassifier": [
        case(Perceptron, "binary", False),
        case(Perceptron, "multiclass", False, kernel="poly", degree=2, coef0=1.0),
    ],
    "PerceptronRegressor": [case(Perceptron, "regression", False, eta=0.3, epsilon=0.2, kernel="matern52")],
    "RBPClassifier": [
        case(RBP, "binary", budget=12, random_state=3),
        case(RBP, "multiclass", budget=25, kernel="poly", degree=2, coef0=1.0, random_state=4),
    ],
    "RBPRegressor": [case(RBP, "regression", budget=25, eta=0.3, epsilon=0.05, random_state=5)],
    "ForgetronClassifier": [
        case(Forgetron, "binary", budget=12),
        case(Forgetron, "multiclass", budget=25, kernel="cauchy"),
    ],
    "ForgetronRegressor": [case(Forgetron, "regression", budget=25, eta=0.3, epsilon=0.05)],
    "BudgetPerceptronClassifier": [
        case(BudgetPerceptron, "binary", budget=12, beta=0.5),
        case(BudgetPerceptron, "multiclass", budget=25, kernel="poly", degree=2, coef0=1.0),
    ],
    "ProjectronClassifier": [
        case(Projectron, "binary", threshold=0.3),
        case(Projectron, "multiclass", threshold=0.1, budget=20, kernel="exponential"),
    ],
    "ProjectronRegressor": [case(Projectron, "regression", threshold=0.2, eta=0.3, epsilon=0.05, kernel="matern32")],
    "ProjectronPlusPlusClassifier": [
        case(ProjectronPlusPlus, "binary", threshold=0.3),
        case(ProjectronPlusPlus, "multiclass", threshold=0.2, budget=30, kernel="exponential"),
    ],
}
