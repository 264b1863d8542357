"""AOGD by its definition."""

from __future__ import annotations

from typing import Any

import numpy as np

from .common import Case, decay_of
from .fogd import Features
from .pairs import Pairwise, pair_slope


class AOGD(Pairwise):
    """A step against the mean of the other side, then one against its example."""

    def __init__(self, params: dict[str, Any], d: int, outputs: int):
        super().__init__(params, d, outputs)
        self.example: list[dict[float, np.ndarray]] = [{} for _ in range(outputs)]
        self.votes = np.full(3, 1.0 / 3.0)
        self.means = [{sign: [np.zeros(self.z.width)] for sign in (-1.0, 1.0)} for _ in range(outputs)]  # after each event
        self.latest = [[np.zeros(self.z.width)] for _ in range(outputs)]  # after each model

    def mean(self, o: int, sign: float) -> np.ndarray:
        """Of all events of a side, or of about its latest ones."""
        seen, means = self.seen[o][sign], self.means[o][sign]
        for count, z in enumerate(seen[len(means) - 1 :], len(means)):
            means.append(means[-1] + (z - means[-1]) / min(count, self.params["mean_events"] or count))
        return means[-1]

    def middle(self, o: int) -> np.ndarray:
        return (self.mean(o, -1.0) + self.mean(o, 1.0)) / 2.0

    def choices(self, o: int, count: int) -> list[np.ndarray]:
        """The three models that are voted on: the last, the mean of the first ones, and that of the latest of these."""
        models, latest = self.history[o][: max(1, count)], self.latest[o]
        for t, w in enumerate(models[len(latest) :], len(latest) + 1):
            latest.append(latest[-1] + max(2.0 / (t + 1.0), 1e-3) * (w - latest[-1]))
        return [self.history[o][-1], np.mean(models, axis=0), latest[len(models) - 1]]

    def output(self, o: int, count: int) -> np.ndarray:
        return self.votes @ self.choices(o, count) if self.params["output"] == "auto" else super().output(o, count)

    def learn(self, x: np.ndarray, y: float, weight: float, u: Any) -> None:
        if self.params["output"] == "auto":
            self.vote(self.z(x), y, weight)
        super().learn(x, y, weight, u)

    def vote(self, z: np.ndarray, y: float, weight: float) -> None:
        losses = np.zeros(3)
        for o in range(len(self.history)):
            sign, count = self.sign(o, y), {side: len(self.seen[o][side]) for side in (-1.0, 1.0)}
            if min(count.values()) > 0:
                scores = np.array([w @ (z - self.middle(o)) for w in self.choices(o, len(self.history[o]))])
                rarity = sum(count.values()) / (2.0 * count[sign])
                losses += ((scores >= 0.0) != (sign > 0.0)) * min(rarity, 20.0) / len(self.history)
        self.votes = self.votes * np.exp(-0.1 * weight * losses)
        self.votes = 0.999 * self.votes / self.votes.sum() + 0.001 / 3.0

    def scores(self, x: np.ndarray) -> np.ndarray:
        T = len(self.history[0]) - 1
        return np.array([self.output(o, T) @ (self.z(x) - self.middle(o)) for o in range(len(self.history))])

    def change(self, o: int, z: np.ndarray, sign: float, weight: float, u: float) -> np.ndarray:
        p, w, others = self.params, self.history[o][-1], self.seen[o][-sign]
        if p["weighting"] == "pairs" and len(self.history) == 1:
            pairs, earlier = len(others), len(others) + len(self.seen[o][sign])
            weight *= min(1.0, 2.0 * pairs / max(1, earlier))
        if p["means"] == "single":
            return decay_of(p) * self.listed(o, z, sign, weight, u)
        if others:
            for step, partner in ((p["eta"], self.mean(o, -sign)), (p["second_eta"], self.example[o][-sign])):
                d = sign * (z - partner)
                w = w - step * (weight * pair_slope(p["loss"], w @ d) * d + p["lam"] * w)
        if sign not in self.example[o] or u < p["refresh"]:
            self.example[o][sign] = z
        return decay_of(p) * w

    def listed(self, o: int, z: np.ndarray, sign: float, weight: float, u: float) -> np.ndarray:
        """Algorithm 1 line by line: one mean of everything, taken for the other class, and one example with its label."""
        p, w = self.params, self.history[o][-1]
        everything = self.seen[o][-1.0] + self.seen[o][1.0]
        if everything:
            d = sign * (z - np.mean(everything, axis=0))
            w = w - p["eta"] * (weight * pair_slope(p["loss"], w @ d) * d + p["lam"] * w)
            (label, example), *_ = self.example[o].items()
            if label != sign:
                d = sign * (z - example)
                w = w - p["second_eta"] * (weight * pair_slope(p["loss"], w @ d) * d + p["lam"] * w)
        if not everything or u < p["refresh"]:
            self.example[o] = {sign: z}
        return w


class AOGDRank:
    """The same for values: the mean and the example are of all events."""

    uniforms = 1

    def __init__(self, params: dict[str, Any], d: int, outputs: int):
        self.params, self.z = params, Features(params, d)
        self.rng = self.z.rng
        self.history = [np.zeros(self.z.width)]
        self.seen: list[tuple[np.ndarray, float]] = []
        self.example: tuple[np.ndarray, float] | None = None
        self.points: list[np.ndarray] = []

    def learn(self, x: np.ndarray, y: float, weight: float, u: float) -> None:
        p, w, z = self.params, self.history[-1], self.z(x)
        if self.seen:
            mean = np.mean([r for r, _ in self.seen], axis=0), np.mean([v for _, v in self.seen])
            for step, (r, value) in ((p["eta"], mean), (p["second_eta"], self.example)):
                w = w - step * (weight * (w @ (z - r) - (y - value)) * (z - r) + p["lam"] * w)
        if not self.seen or u < p["refresh"]:
            self.example = z, y
        self.seen.append((z, y))
        self.history.append(decay_of(p) * w)

    def scores(self, x: np.ndarray) -> np.ndarray:
        return np.atleast_1d(output(self.params, self.history) @ self.z(x))


class AOGDMetric:
    """Weights of columns or random features; the outputs are the stretched rows."""

    uniforms = 1

    def __init__(self, params: dict[str, Any], d: int, outputs: int):
        self.params, self.z = params, Features(params, d)
        self.rng = self.z.rng
        self.history = [np.zeros(self.z.width)]
        self.seen: dict[float, list[np.ndarray]] = {}
        self.example: dict[float, np.ndarray] = {}
        self.points: list[np.ndarray] = []

    def learn(self, x: np.ndarray, y: float, weight: float, u: float) -> None:
        p, w, labels, x = self.params, self.history[-1], sorted(self.seen), self.z(x)
        partners = [(p["eta"], label, np.mean(self.seen[label], axis=0)) for label in labels]
        partners += [(p["second_eta"], label, self.example[label]) for label in labels]
        for step, label, partner in partners:
            s = 1.0 if label == y else -1.0
            square = (x - partner) ** 2
            w = w - step * (-s * weight * pair_slope(p["loss"], s * (1.0 - w @ square)) * square + p["lam"] * w)
        self.history.append(np.maximum(w, 0.0))
        if y not in self.seen or u < p["refresh"]:
            self.example[y] = x
        self.seen.setdefault(y, []).append(x)

    def scores(self, x: np.ndarray) -> np.ndarray:
        return self.z(x) * np.sqrt(output(self.params, self.history))


def output(params: dict[str, Any], history: list[np.ndarray]) -> np.ndarray:
    return history[-1] if params["output"] == "last" or len(history) == 1 else np.mean(history[:-1], axis=0)


def aogd(stream: str, loss: str, eta: float, second_eta: float, refresh: float, **params) -> Case:
    settings = {"loss": loss, "eta": eta, "second_eta": second_eta, "refresh": refresh}
    return Case(AOGD, stream, {**settings, "gamma": 1.0, "n_components": 40, "random_state": 3, **params})


LISTING = {"output": "last", "mean_events": None, "means": "single", "weighting": "events"}
STEPS = {"eta": 0.1, "second_eta": 0.05, "refresh": 0.2, "random_state": 3}
CASES: dict[str, list[Case]] = {
    "AOGDClassifier": [
        aogd("binary", "squared", 0.5, 0.2, 0.1, output="average", mean_events=None, weighting="events"),  # the paper, averaged
        aogd("binary", "squared", 0.5, 0.2, 0.1, mean_events=20, forget=100.0),
        aogd("binary", "hinge", 0.3, 0.1, 0.5, lam=0.01, output="last", features="orthogonal"),
        aogd("binary", "logistic", 0.2, 0.1, 0.3, features="linear", lam=1e-3, mean_events=50),
        aogd("multiclass", "squared", 0.4, 0.3, 0.2, kernel="cauchy", mean_events=10),
        aogd("multiclass", "logistic", 1.0, 0.3, 0.05, output="last"),
        aogd("binary", "squared", 0.5, 0.2, 0.1, **LISTING),
        aogd("binary", "logistic", 0.5, 0.2, 0.1, output="last", mean_events=None, means="single", lam=0.01),
        aogd("multiclass", "hinge", 0.4, 0.3, 0.2, output="average", mean_events=None, means="single", lam=0.01),
    ],
    "AOGDRanker": [
        Case(AOGDRank, "regression", {**STEPS, "gamma": 1.0, "n_components": 40}),
        Case(AOGDRank, "regression", {**STEPS, "gamma": 1.0, "n_components": 40, "forget": 50.0}),
        Case(AOGDRank, "regression", {**STEPS, "lam": 0.01, "output": "last", "features": "linear", "gamma": 1.0}),
    ],
    "AOGDMetric": [
        Case(AOGDMetric, "multiclass", {**STEPS, "loss": "hinge"}),
        Case(AOGDMetric, "binary", {**STEPS, "loss": "squared", "lam": 0.01, "output": "last"}),
        Case(AOGDMetric, "multiclass", {**STEPS, "loss": "logistic", "refresh": 0.5}),
        Case(AOGDMetric, "multiclass", {**STEPS, "loss": "hinge", "features": "fourier", "gamma": 1.0, "n_components": 40}),
        Case(AOGDMetric, "binary", {**STEPS, "features": "fourier", "gamma": 0.5, "n_components": 30, "kernel": "cauchy"}),
    ],
}
