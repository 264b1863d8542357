"""Learning from pairs: what all of these methods share."""

from __future__ import annotations

from typing import Any

import numpy as np

from .fogd import Features

RECENT, PERIOD = 128, 32


def pair_slope(loss: str, m: float) -> float:
    """Derivative of a loss of the margin between two events."""
    return {"squared": m - 1.0, "hinge": -1.0 if m < 1.0 else 0.0, "logistic": -1.0 / (1.0 + np.exp(min(m, 700.0)))}[loss]


def best_threshold(negative: list[float], positive: list[float]) -> float:
    """Of all places between two scores, and the lowest score, the first one with the largest balanced accuracy."""
    scores = np.unique([*negative, *positive])
    places = np.concatenate([scores[:1], (scores[:-1] + scores[1:]) / 2.0])
    right = [
        (np.array(negative) < places[:, np.newaxis]).sum(axis=1),
        (np.array(positive) >= places[:, np.newaxis]).sum(axis=1),
    ]
    return float(places[np.argmax(right[0] * len(positive) + right[1] * len(negative))])


class Recent:
    """Scores of both sides, and the threshold that parts the last ones best."""

    def __init__(self) -> None:
        self.kept: dict[float, list[tuple[int, float]]] = {-1.0: [], 1.0: []}
        self.threshold = 0.0

    def see(self, sign: float, score: float, t: int) -> None:
        own = self.kept[sign]
        if not own or t - own[-1][0] >= min(PERIOD, t / (2 * RECENT)):
            own.append((t, score))
            negative, positive = ([score for _, score in self.kept[side][-RECENT:]] for side in (-1.0, 1.0))
            if negative and positive:
                self.threshold = best_threshold(negative, positive)


class Pairwise:
    """One binary problem per output.  A method says how a model changes: ``change(o, z, sign, weight, u)`` gives the new w."""

    uniforms = 1

    def __init__(self, params: dict[str, Any], d: int, outputs: int):
        self.params = params
        self.z = Features(params, d)
        self.rng = self.z.rng
        self.history = [[np.zeros(self.z.width)] for _ in range(outputs)]
        self.seen: list[dict[float, list[np.ndarray]]] = [{-1.0: [], 1.0: []} for _ in range(outputs)]
        self.recent = [Recent() for _ in range(outputs)]
        self.points: list[np.ndarray] = []

    def change(self, o: int, z: np.ndarray, sign: float, weight: float, u: Any) -> np.ndarray:
        raise NotImplementedError

    def output(self, o: int, count: int) -> np.ndarray:
        """The mean of the first models, or the last one."""
        if self.params["output"] == "last":
            return self.history[o][-1]
        return np.mean(self.history[o][: max(1, count)], axis=0)

    def sign(self, o: int, y: float) -> float:
        """The side of output o that a target belongs to."""
        return float(y) if len(self.history) == 1 else (1.0 if int(y) == o else -1.0)

    def learn(self, x: np.ndarray, y: float, weight: float, u: Any) -> None:
        z, t = self.z(x), len(self.history[0])
        for o in range(len(self.history)):
            sign = self.sign(o, y)
            self.recent[o].see(sign, self.output(o, t) @ z, t)
            self.history[o].append(self.change(o, z, sign, weight, u))
            self.seen[o][sign].append(z)

    def scores(self, x: np.ndarray) -> np.ndarray:
        T = len(self.history[0]) - 1
        return np.array([self.output(o, T) @ self.z(x) - recent.threshold for o, recent in enumerate(self.recent)])
