"""POLK by its definition: gradient steps in function space, and every candidate projection solved for from scratch."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.special import softmax

from .common import Case, decay_of, kernel_values, loss_gradient


def projections(K: np.ndarray, target: np.ndarray, kept: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """For each row of kept points, the combination of them that is nearest to the target, and its squared distance."""
    coef = np.linalg.solve(K[kept[:, :, None], kept[:, None, :]], (K @ target)[kept])
    rest = np.repeat(target[None], len(kept), axis=0)
    rest[np.arange(len(kept))[:, None], kept] -= coef
    return coef, np.sum(rest * (K @ rest), axis=(1, 2))


def pruned(
    K: np.ndarray, target: np.ndarray, eps: float, most: float, order: list[int] | None = None
) -> tuple[list[int], np.ndarray]:
    """Which points stay, and their coefficients: the cheapest removal first, or removals in a given order."""
    kept = list(range(len(target)))
    coef = target
    for turn in range(len(target)):
        tries = kept if order is None else [int(order[turn])]
        without = np.array([[k for k in kept if k != j] for j in tries], int)
        found, distances = projections(K, target, without)
        best = int(np.argmin(distances))
        if distances[best] > eps**2 and len(kept) <= most:
            break
        coef = found[best]
        kept.remove(tries[best])
    return kept, coef


def permutation(u: float, n: int) -> list[int]:
    """The random order that a uniform number stands for: a shuffle by the minimal standard generator."""
    order, seed = list(range(n)), 1 + int(u * (2**31 - 2))
    for last in reversed(range(1, n)):
        seed = 48271 * seed % (2**31 - 1)
        place = seed % (last + 1)
        order[last], order[place] = order[place], order[last]
    return order


class POLK:
    """Parsimonious online learning with kernels."""

    def __init__(self, params: dict[str, Any], d: int, outputs: int):
        self.params = {"tau": 0.0, **params}
        self.uniforms = int(params["prune"] == "random")
        self.points: list[np.ndarray] = []
        self.coef = np.zeros((0, outputs))
        self.waiting: list[tuple[np.ndarray, float, float, float]] = []
        self.t = 0

    def scores(self, x: np.ndarray) -> np.ndarray:
        return kernel_values(self.params, np.reshape(self.points, (-1, len(x))), x) @ self.coef

    def learn(self, x: np.ndarray, y: float, weight: float, u: float) -> None:
        self.waiting.append((x, y, weight, u))
        if len(self.waiting) == self.params["batch_size"]:
            self.learn_waiting()

    def learn_waiting(self) -> None:
        o = self.params
        eta = o["eta"] / (self.t + 1) if o["step"] == "diminishing" else o["eta"]
        eps = o["parsimony"] * (eta**2 if o["step"] == "diminishing" else eta**1.5)
        gradients = [weight * self.gradient(self.scores(x), y) for x, y, weight, _ in self.waiting]
        lossy = [b for b, g in enumerate(gradients) if g.any()]
        points = self.points + [self.waiting[b][0] for b in lossy]
        steps = [-eta / len(self.waiting) * gradients[b] for b in lossy]
        target = np.vstack([decay_of(o) ** len(self.waiting) * (1.0 - eta * o["lam"]) * self.coef, *steps])
        K = np.array([kernel_values(o, np.array(points), p) for p in points])
        order = None
        if self.uniforms:
            order = permutation(self.waiting[0][3], len(points))
        kept, coef = pruned(K, target, eps, o["max_points"] or math.inf, order)
        places = self.places(kept)
        self.points = [points[k] for k in places]
        self.coef = np.array([coef[kept.index(k)] for k in places]).reshape(-1, self.coef.shape[1])
        self.waiting = []
        self.t += 1

    @staticmethod
    def places(kept: list[int]) -> list[int]:
        """The order of the points from now on, which random order depends on: the last ones fill the holes."""
        n = len(kept)
        fillers = iter([k for k in kept if k >= n])
        return [k if k in kept else next(fillers) for k in range(n)]

    def gradient(self, f: np.ndarray, y: float) -> np.ndarray:
        if self.params["loss"] != "softmax":
            return loss_gradient(self.params, f, y)[0]
        if len(f) == 1:
            return loss_gradient({**self.params, "loss": "logistic"}, f, y)[0]
        return softmax(f) - np.eye(len(f))[int(y)]


def polk(stream: str, loss: str, eta: float, parsimony: float, bounded: bool = False, **params) -> Case:
    """A setting; with constant steps and greedy pruning sizes settle, which two cases are enough to show."""
    settings = {"loss": loss, "eta": eta, "parsimony": parsimony, "lam": 1e-3, "gamma": 2.0, "batch_size": 8, **params}
    return Case(POLK, stream, settings, bounded)


CASES: dict[str, list[Case]] = {
    "POLKClassifier": [
        polk("binary", "hinge", 3.0, 0.1, bounded=True, batch_size=16),
        polk("binary", "hinge", 3.0, 0.1, forget=40.0),
        polk("multiclass", "hinge", 3.0, 0.01, bounded=True, max_points=12),
        polk("binary", "logistic", 4.0, 0.03, prune="random", random_state=1),
        polk("binary", "softmax", 5.0, 0.15, step="diminishing", kernel="cauchy", batch_size=20),
        polk("multiclass", "hinge", 2.0, 0.4, kernel="matern32", gamma=1.0, batch_size=1),
        polk("multiclass", "logistic", 4.0, 0.1, kernel="poly", degree=4, coef0=1.0, gamma=0.5),
        polk("multiclass", "softmax", 5.0, 0.05, batch_size=16),
        polk("multiclass", "hinge", 4.0, 0.05, prune="random", batch_size=16, random_state=2),
        polk("multiclass", "squared_hinge", 0.8, 0.1),
    ],
    "POLKRegressor": [
        polk("regression", "l2", 2.0, 0.05, bounded=True),
        polk("regression", "l2", 3.0, 0.5, step="diminishing", kernel="exponential", batch_size=20),
        polk("regression", "epsilon_insensitive", 1.0, 0.1, prune="random", random_state=3),
        polk("regression", "l1", 1.0, 0.1, kernel="matern52", gamma=1.0, batch_size=20),
    ],
}
