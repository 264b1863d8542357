"""Gradient descent with and without a budget, by its definitions."""

from __future__ import annotations

import math

import numpy as np
from scipy.interpolate import RegularGridInterpolator

from kernling.components.point_merging import TABLE

from .common import Case, annealed, decay_of
from .terms import Terms


class OGD(Terms):
    def step(self, x, f, direction, margin, u):
        if direction.any():
            self.append(x, self.params["eta"] * direction)


class NORMA(Terms):
    def step(self, x, f, direction, margin, u):
        o = self.params
        eta = o["eta"] / math.sqrt(self.t) if o["step"] == "diminishing" else o["eta"]
        self.scale(1.0 - eta * o["lam"])
        if direction.any():
            if self.full():
                self.remove(self.oldest())
            self.append(x, eta * direction)
        self.scale(decay_of(o))


class Pegasos(Terms):
    def step(self, x, f, direction, margin, u):
        t = annealed(self.params, self.t)
        self.scale((t - 1) / t)
        if direction.any():
            self.append(x, direction / (self.params["lam"] * t))


class BOGD(Terms):
    uniforms = 1

    def step(self, x, f, direction, margin, u):
        self.descend(x, direction, u)
        self.scale(decay_of(self.params))

    def descend(self, x, direction, u):
        o = self.params
        self.scale(1.0 - o["eta"] * o["lam"])
        if not direction.any():
            return
        c = o["eta"] * direction
        if not self.full():
            self.append(x, c)
            return
        stays = self.chances_to_stay()
        victim = int(np.searchsorted(np.cumsum(1.0 - stays), u, side="right"))
        self.coef = [old / stay for old, stay in zip(self.coef, stays, strict=True)]
        self.replace(victim, x, c)
        top = np.abs(self.coef).max()
        self.scale(min(1.0, o["eta"] * o["clip"] / top))

    def chances_to_stay(self) -> np.ndarray:
        B = len(self.points)
        if self.params["removal"] == "uniform":
            return np.full(B, (B - 1) / B)
        weights = np.array([np.linalg.norm(c) * math.sqrt(self.K(p, p)) for c, p in zip(self.coef, self.points, strict=True)])
        low, high = 0.0, B / weights.min()
        for _ in range(200):
            factor = (low + high) / 2.0
            low, high = (factor, high) if np.minimum(1.0, factor * weights).sum() < B - 1 else (low, factor)
        return np.minimum(1.0, factor * weights)


class BSGD(Pegasos):
    """The norms that decide are computed from kernel values of all points concerned."""

    def step(self, x, f, direction, margin, u):
        super().step(x, f, direction, margin, u)
        if len(self.points) > self.params["budget"]:
            p = self.lightest()
            if self.params["maintenance"] == "projection":
                others = [k for k in range(len(self.points)) if k != p]
                K = self.gram()
                shares = np.linalg.lstsq(K[np.ix_(others, others)], K[others, p], rcond=1e-14)[0]
                for k, share in zip(others, shares, strict=True):
                    self.coef[k] = self.coef[k] + share * self.coef[p]
            elif self.params["maintenance"] == "merging":
                self.merge(p)
            self.remove(p)

    def merge(self, p: int) -> None:
        """Merge p into its best partner; nothing changes if forgetting p costs no more."""
        own, least, best = self.coef[p] @ self.coef[p], np.inf, None
        for q in range(len(self.points)):
            if q == p or self.coef[p] @ self.coef[q] <= 0.0:
                continue
            h = self.share(np.linalg.norm(self.coef[p]), np.linalg.norm(self.coef[q]), self.K(self.points[p], self.points[q]))
            z = h * self.points[p] + (1.0 - h) * self.points[q]
            merged = self.K(z, self.points[p]) * self.coef[p] + self.K(z, self.points[q]) * self.coef[q]
            other = self.coef[q] @ self.coef[q]
            both = self.coef[p] @ self.coef[q] * self.K(self.points[p], self.points[q])
            cost = own + other + 2.0 * both - merged @ merged
            if cost < least:
                least, best = cost, (q, z, merged)
        if best and least < own:
            q, self.points[best[0]], self.coef[best[0]] = best

    def share(self, p: float, q: float, kappa: float) -> float:
        """h for coefficients p <= q, interpolated in the table, whose entries tests/baselines/test_baselines.py checks."""
        grid = np.arange(len(TABLE)) / (len(TABLE) - 1)
        return RegularGridInterpolator((grid / 2.0, grid), TABLE)((min(0.5, p / (p + q)), kappa)).item()


class NPBSGD(Terms):
    uniforms = 1

    def step(self, x, f, direction, margin, u):
        o = self.params
        t = annealed(o, self.t)
        self.scale((t - 1) / t)
        if not direction.any():
            return
        c = direction / (o["lam"] * t)
        if not self.points or u < o["beta"] / self.t:
            if self.full():
                self.replace(self.lightest(), x, c)
            else:
                self.append(x, c)
            return
        distances = [self.K(p, p) - 2.0 * self.K(p, x) for p in self.points]
        near = np.argsort(distances)[:5]
        shares = np.linalg.lstsq(self.gram()[np.ix_(near, near)], self.row(x)[near], rcond=1e-14)[0]
        for k, share in zip(near, shares, strict=True):
            self.coef[k] = self.coef[k] + share * c


def case(oracle: type, stream: str, bounded: bool = True, **params) -> Case:
    return Case(oracle, stream, {"gamma": 1.0, **params}, bounded)


CASES: dict[str, list[Case]] = {
    "OGDClassifier": [
        case(OGD, "binary", False, eta=0.3),
        case(OGD, "multiclass", False, loss="softmax", eta=0.5, kernel="poly", degree=2, coef0=1.0),
    ],
    "OGDRegressor": [case(OGD, "regression", False, eta=0.3, epsilon=0.05)],
    "NORMAClassifier": [
        case(NORMA, "binary", eta=0.3, lam=0.1, budget=30),
        case(NORMA, "multiclass", False, loss="logistic", eta=0.9, lam=1.0, step="constant"),
        case(NORMA, "binary", eta=0.5, lam=0.01, budget=30, forget=50.0),
    ],
    "NORMARegressor": [
        case(NORMA, "regression", eta=0.5, lam=0.1, loss="l2", step="diminishing", budget=40, kernel="matern32")
    ],
    "PegasosClassifier": [
        case(Pegasos, "binary", False, lam=0.02),
        case(Pegasos, "multiclass", False, lam=0.05),
        case(Pegasos, "binary", False, lam=0.05, forget=40.0),
    ],
    "PegasosRegressor": [case(Pegasos, "regression", False, lam=0.05, epsilon=0.05)],
    "BOGDClassifier": [
        case(BOGD, "binary", eta=0.3, lam=0.1, budget=20, clip=3.0, random_state=1),
        case(BOGD, "binary", eta=0.3, lam=0.02, budget=20, removal="weighted", random_state=2),
        case(BOGD, "binary", eta=0.3, lam=0.02, budget=20, forget=30.0, random_state=6),
        case(
            BOGD,
            "multiclass",
            eta=0.4,
            lam=0.01,
            loss="logistic",
            budget=15,
            kernel="poly",
            degree=2,
            coef0=1.0,
            random_state=3,
        ),
        case(BOGD, "multiclass", eta=0.4, lam=0.01, budget=30, removal="weighted", clip=5.0, random_state=4),
    ],
    "BOGDRegressor": [case(BOGD, "regression", eta=0.3, lam=0.01, budget=30, random_state=5)],
    "BSGDClassifier": [
        case(BSGD, "binary", lam=0.02, budget=15, maintenance="removal"),
        case(BSGD, "binary", lam=0.05, budget=15, maintenance="merging", forget=60.0),
        case(BSGD, "binary", lam=0.02, budget=15, maintenance="projection"),
        case(BSGD, "binary", lam=0.02, budget=15, maintenance="merging"),
        case(BSGD, "multiclass", lam=0.02, budget=20, maintenance="removal", kernel="poly", degree=2, coef0=1.0),
        case(BSGD, "multiclass", lam=0.02, budget=20, maintenance="projection", kernel="exponential"),
        case(BSGD, "multiclass", lam=0.02, budget=20, maintenance="merging"),
        case(BSGD, "multiclass", lam=0.02, budget=20, maintenance="merging", eta=0.4),
    ],
    "BSGDRegressor": [
        case(BSGD, "regression", lam=0.02, budget=20, maintenance="merging"),
        case(BSGD, "regression", lam=0.02, budget=20, maintenance="projection", kernel="matern32"),
    ],
    "NPBSGDClassifier": [
        case(NPBSGD, "binary", False, lam=0.02, beta=10.0, random_state=1),
        case(NPBSGD, "binary", False, lam=0.05, beta=10.0, forget=60.0, random_state=4),
        case(NPBSGD, "multiclass", lam=0.02, beta=20.0, budget=20, kernel="matern32", random_state=2),
        case(NPBSGD, "multiclass", lam=0.02, beta=20.0, budget=20, eta=0.4, loss="softmax", random_state=5),
        case(NPBSGD, "binary", lam=0.02, beta=20.0, budget=20, eta=0.4, loss="logistic", random_state=6),
    ],
    "NPBSGDRegressor": [case(NPBSGD, "regression", lam=0.02, beta=15.0, budget=25, epsilon=0.05, random_state=3)],
}
