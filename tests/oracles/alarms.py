"""Alarms, event by event: lists of all that came, and statistics by their definitions."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
from scipy.stats import f as f_distribution

from kernling.components.adwin import AFTER, BEFORE, new_adwin, watch  # compared with River's in tests/components


class Rises:
    """Alarms of errors: shares of mistakes, or squared errors over a running mean."""

    def __init__(self, of_values: bool):
        self.of_values, self.adwin, self.unit, self.events = of_values, new_adwin(), 0.0, 0
        self.shares: list[float] = []
        self.means: list[float] = []  # of windows of 200 events
        self.quiet: list[list[float]] = []  # windows in which nothing seemed to change
        self.held: list[float] = []  # of those since ADWIN found a rise
        self.tries = 0
        self.excess = 0.0  # variance of windows before the last alarm, over that of independent mistakes
        self.alarms: list[tuple[int, float, float]] = []

    def learn(self, error: float) -> None:
        self.events += 1
        share, scale = float(error != 0.0), 1.0
        if self.of_values:
            scale = 9.0 * self.unit
            share = min(error**2 / scale, 1.0) if self.unit > 0.0 else 0.0
        self.shares.append(share)
        found = np.zeros(3)
        if watch(self.adwin, np.array([share]), 0, found) == 0 and found[AFTER] > found[BEFORE]:
            self.tries = 3
        if self.events % 200 == 0:
            self.end_window(scale)
        if self.of_values:
            most = 100.0 * self.unit if self.events > 100 else math.inf
            self.unit += max(1e-4, min(1.0, 4.0 / self.events)) * (min(error**2, most) - self.unit)

    def end_window(self, scale: float) -> None:
        mean = sum(self.shares[-200:]) / 200.0
        if not self.tries:
            self.add(mean)
            self.quiet.append(self.shares[-200:])
            return
        self.tries -= 1
        self.held.append(mean)
        if len(self.means) >= (3 if self.excess else 8):
            usual, variance, weight = self.usual()
            excess = self.excess
            if len(self.means) < 8:
                variance = max(variance, excess * self.chance(usual))
            else:
                excess = variance / self.chance(usual)
            after = self.risen(usual, max(variance, 1.0 / 200**2), weight)
            if after is not None:
                pair = usual * scale, after * scale
                self.alarms.append((self.events, *(map(math.sqrt, pair) if self.of_values else pair)))
                self.means, self.held, self.tries, self.excess = [], [], 0, excess
                return
        if not self.tries or len(self.held) == 3:
            for one in self.held:
                self.add(one)
            self.held = []

    def usual(self):
        weights = 0.93 ** np.arange(len(self.means))[::-1]
        usual = np.average(self.means, weights=weights)
        return usual, np.average(np.square(self.means - usual), weights=weights), weights.sum()

    def chance(self, level):
        return max(level * (1.0 - level), 1.0 / 200.0) / 200.0

    def add(self, mean):
        """Soon after an alarm, forget the windows before one that is lower than chance."""
        if self.means and len(self.means) < 8 and self.excess:
            level = self.usual()[0]
            if mean < level - 2.0 * math.sqrt(self.excess * self.chance(level)):
                self.means = []
        self.means.append(mean)

    def risen(self, usual, variance, weight):
        """The mean of the latest window that is too high, if as many as are needed are high."""
        needed = min(1 + int(max(self.likeness(), 0.0) / 0.03), 3)
        for n in range(1, len(self.held) + 1):
            spread = math.sqrt(variance * (1.0 / n + 1.0 / weight))
            if n < needed and self.held[-n] - usual <= 2.0 * spread:
                return None
            after = np.mean(self.held[-n:])
            if n >= min(needed, 2) and after - usual > (4.0 if n >= needed else 12.0) * spread:
                return after
        return None

    def likeness(self):
        """The correlation of errors with those before them in the same window, over windows that are forgotten slowly."""
        if not self.quiet:
            return 0.0
        windows = np.array(self.quiet)
        weights = 0.98 ** np.arange(len(windows))[::-1]
        together = (windows[:, 1:] * windows[:, :-1]).mean(axis=1) - windows.mean(axis=1) ** 2
        return weights @ together / max(weights @ windows.var(axis=1), 1e-300)


class AgainstConstant:
    """Alarms of a model that is no better than the constant answer in a thousand events."""

    def __init__(self, of_values: bool):
        self.of_values, self.counts, self.total, self.losses = of_values, Counter(), 0.0, []
        self.has_failed, self.alarms = False, []

    def constant(self):
        if self.of_values:
            return self.total / max(self.counts.total(), 1)
        most = max(self.counts.values())
        return min(label for label, count in self.counts.items() if count == most)

    def learn(self, target, error: float, first_class=None) -> None:
        answer = self.constant() if self.counts or self.of_values else first_class
        own = error**2 if self.of_values else float(error != 0.0)
        usual = (target - answer) ** 2 if self.of_values else float(target != answer)
        self.losses.append((own, usual))
        self.counts[target] += 1
        self.total += target
        n = len(self.losses)
        if n % 1000:
            return
        own, usual = np.transpose(self.losses[-1000:])
        spread = (own - usual).std() / math.sqrt(1000)
        if n > 1000 and own.mean() >= usual.mean() and own.mean() > 0.0:
            if not self.has_failed:
                self.alarms.append((n, usual.mean(), own.mean()))
                self.has_failed = True
        elif own.mean() - usual.mean() < -3.0 * spread and own.mean() < 0.8 * usual.mean():
            self.has_failed = False


class ColumnWatch:
    """Alarms of one of several columns."""

    def __init__(self, columns: int):
        self.columns, self.values, self.past, self.edges = columns, [], [], None
        self.statistics: list[float] = []
        self.length = 1  # windows of 400 events that are taken as one
        self.alarms: list[tuple[int, float]] = []
        self.events = 0

    def learn(self, value: float) -> None:
        self.events += 1
        self.values.append(value)
        if len(self.values) < 400 * self.length:
            return
        window, self.values = self.values, []
        if not self.past:
            ordered = sorted(1e308 if math.isnan(one) else one for one in window)
            self.edges = [ordered[math.ceil(400 * k / 10) - 1] for k in range(1, 10)]
            self.past = window
            return
        bins = sorted({self.bin_of(one) for one in window + self.past}, key=str)
        now, before = Counter(map(self.bin_of, window)), Counter(map(self.bin_of, self.past))
        n, total, terms, freedom = len(window), len(self.past), 0.0, -1.0
        for one in bins:
            expected = n * (now[one] + before[one]) / (n + total)
            terms += (now[one] - expected) ** 2 / max(expected, 5.0)
            freedom += min(expected / 5.0, 1.0)
        statistic = terms * (1.0 + n / total) / max(freedom, 1.0)
        share = 0.5 * sum(abs(now[one] / n - before[one] / total) for one in bins)
        is_large = len(self.statistics) >= 8 and statistic > (4.0 if self.length == 1 else 6.0) * max(self.statistics)
        if is_large and self.chance(statistic) * self.columns < 1e-4:
            self.alarms.append((self.events, share))
            self.past, self.statistics, self.length = [], [], 1
        else:
            self.statistics.append(statistic)
            self.past = self.past + window
            if self.length == 1 and len(self.statistics) == 8 and np.mean(self.statistics) > 5.0:
                self.length = math.ceil(min(np.mean(self.statistics) / 5.0, 8.0))
                self.statistics = []

    def bin_of(self, value: float):
        """Below the lowest decile, at one, or between two; or none at all."""
        if math.isnan(value):
            return None
        below, at = sum(edge < value for edge in self.edges), value in self.edges
        return (below, at)

    def chance(self, statistic: float) -> float:
        k, mean, variance = len(self.statistics), np.mean(self.statistics), np.var(self.statistics)
        if mean == 0.0:
            return float(statistic == 0.0)
        freedom = min(max(2.0 * mean**2 / variance if variance > 0.0 else 9.0, 1.0), 9.0)
        return f_distribution.sf(statistic / mean, freedom, k * freedom)
