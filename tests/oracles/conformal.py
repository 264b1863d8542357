"""Adaptive conformal inference, event by event: sorted lists, and quantiles by their definition."""

from __future__ import annotations

import math

import numpy as np

LEVELS = (0.5, 0.8, 0.9, 0.95, 0.99)


class Thresholds:
    """The thresholds of errors of values, which have units, or of classes, which have none."""

    def __init__(self, of_values: bool):
        self.of_values = of_values
        self.errors: list[float] = []  # in units
        self.recent: list[float] = []  # the latest of them, in order
        self.said: list[float] = []
        self.centre, self.spread = 0.0, 0.0  # mean and deviation of what was said
        self.allowed = {level: 1.0 - level for level in LEVELS}
        self.mean = (0.0, 0.0)  # sum and weight of the latest errors
        self.bins = [[0.0, 0.0] for _ in range(16)]

    def bin_shares(self, said: float) -> dict[int, float]:
        """The two bins of a prediction, and its share in each."""
        z = (said - self.centre) / self.spread if self.spread > 0.0 else 0.0
        place = 15.0 * (math.tanh(0.8 * z) + 1.0) / 2.0
        left = min(int(place), 14)
        return {left: left + 1 - place, left + 1: place - left}

    def factor(self, said: float) -> float:
        ratios = [(total + 20.0) / (weight + 20.0) for total, weight in self.bins]
        return sum(share * ratios[one] for one, share in self.bin_shares(said).items())

    def unit(self, said: float) -> float:
        if not self.of_values:
            return 1.0
        total, weight = self.mean
        return (total / weight if weight else 0.0) * self.factor(said)

    def threshold(self, said: float, level: float) -> float:
        recent = self.recent
        if not recent:
            return math.inf
        n, share = len(recent), 1.0 - self.allowed[level]
        place = math.ceil(share * (n + 1))
        if place < 1:
            return 0.0
        if place > n:
            return self.unit(said) * recent[-1] * (1.0 + 50.0 * max(share - max(level, n / (n + 1)), 0.0))
        return self.unit(said) * recent[place - 1]

    def learn(self, said: float, error: float) -> None:
        for level in LEVELS:
            miss = 0.0 if error <= self.threshold(said, level) else 1.0
            moved = self.allowed[level] + 0.05 * (1.0 - level) * (1.0 - level - miss)
            self.allowed[level] = min(max(moved, -1.0), (2.0 - level) / 2.0)
        unit = self.unit(said)
        if not self.errors and self.of_values:
            self.errors.append(1.0)
        else:
            self.errors.append(min(error / unit, 100.0) if unit > 0.0 else 100.0 * (error > 0.0))
        self.recent = sorted(self.errors[-500:])
        if self.of_values:
            total, weight = self.mean
            latest = total / weight if weight else 0.0
            factor, shares = self.factor(said), self.bin_shares(said)
            ratio = min(error / latest, 8.0) if latest > 0.0 else 1.0
            for one, share in shares.items():
                kept = 1.0 - 0.001 * share
                self.bins[one] = [kept * self.bins[one][0] + share * ratio, kept * self.bins[one][1] + share]
            self.mean = (0.98 * total + error / factor, 0.98 * weight + 1.0)
        self.said.append(said)
        self.centre, self.spread = float(np.mean(self.said)), float(np.std(self.said))
