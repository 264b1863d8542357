"""The mixture by its definition, one event at a time: every expert learns, the weights follow; nothing is done in blocks."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from .common import Case, kernel_values
from .krls import KRLS

SETTLE = (16, 64, 256, 1024)


class Restored(KRLS):
    """Kernel least squares whose ridge, which forgetting eats up, is restored after fixed counts of events."""

    def __init__(self, params: dict[str, Any], d: int, outputs: int, keep: float = 1.0, period: int = 0):
        self.keep, self.period = keep, period
        super().__init__(params | {"forget": np.log(0.5) / np.log(keep) if keep < 1.0 else None}, d, outputs)

    def learn(self, x, y, weight, u):
        super().learn(x, y, weight, u)
        forgotten = len(self.rows) % self.period if self.period else 0
        self.since = forgotten


class Stretched(Restored):
    """The same with a kernel that sees each column times a factor."""

    def __init__(self, params: dict[str, Any], d: int, outputs: int, stretch: np.ndarray, of_classes: bool):
        self.stretch = stretch
        self.fold = (256 if 1 + d + params["points"] > 32 else 1024) if of_classes else 0
        super().__init__(params, d, outputs)

    def learn(self, x, y, weight, u):
        super().learn(x, y, weight, u)
        if self.fold and len(self.rows) % self.fold == 0:
            shares = 0.5 + 0.5 * np.average(self.targets, axis=0, weights=self.weights)
            shares = np.array([1.0 - shares[0], shares[0]]) if len(shares) == 1 else shares
            self.params = self.params | {"ridge": 0.1 / max(evenness(shares), 0.01)}
            self.changed()

    def k(self, P, x):
        return super().k(P * self.stretch, x * self.stretch)

    def gradient(self, x: np.ndarray) -> np.ndarray:
        """By differences, (columns, outputs)."""
        steps = 1e-3 * np.eye(len(x))
        pairs = [[self.scores(x + n * h) - self.scores(x - n * h) for n in (1, 2)] for h in steps]
        return np.array([(8.0 * one - two) / 12e-3 for one, two in pairs])


class Logistic:
    """Logistic regression on the features of the kernel expert; events that say much are kept, and learned later."""

    def __init__(self, kernel: Stretched, d: int, outputs: int):
        self.d = d
        self.features, self.outputs, self.scale = kernel.features, outputs, 1.0 if outputs == 1 else 2.0
        self.weights, self.curvature = np.zeros((outputs, 0)), np.zeros((0, 0))
        self.kept: list[tuple[np.ndarray, int, float]] = []
        self.folded, self.events, self.mean, self.credit = 0, 0, 0.25, 0.0

    def scores(self, x: np.ndarray) -> np.ndarray:
        z = self.features(x)[: self.weights.shape[1]]
        return self.weights[:, : len(z)] @ z

    def probabilities(self, f: np.ndarray) -> np.ndarray:
        f = np.concatenate([-f, f]) / 2.0 if self.outputs == 1 else f
        return np.exp(f - f.max()) / np.exp(f - f.max()).sum()

    def consider(self, x: np.ndarray, y: float, weight: float, f: np.ndarray) -> None:
        """Once the kernel expert has learned the event, which had the scores f before."""
        label = int(y) if self.outputs > 1 else int(y > 0)
        p = self.probabilities(f)
        says = ((1.0 - p[label]) ** 2 + (p * (1.0 - p)).max()) / 2.0
        self.events += 1
        self.mean += (says - self.mean) * max(1.0 / self.events, 0.001)
        if len(self.kept) == 256:
            return
        chance = np.clip(says / (4.0 * self.mean + 16.0 * self.mean**2), 0.001, 1.0)
        self.credit += chance
        if self.credit >= 1.0:
            self.credit -= 1.0
            self.kept.append((self.features(x), label, weight / chance))

    def settle(self) -> None:
        if not self.kept or (len(self.kept) < 192 and 8 * len(self.kept) < self.folded):
            return
        old, n = self.weights.shape[1], len(self.features(np.zeros(self.d)))
        W0, H = np.pad(self.weights, ((0, 0), (0, n - old))), np.pad(self.curvature, (0, n - old))
        Z = np.array([np.pad(z, (0, n - len(z))) for z, _, _ in self.kept])
        labels, parts = (np.array([event[i] for event in self.kept]) for i in (1, 2))
        A, own = H + 0.3 * self.scale * np.eye(n), np.eye(max(2, self.outputs))[labels]

        def all_of(W: np.ndarray) -> np.ndarray:
            return np.array([self.probabilities(f) for f in Z @ W.T])

        def loss(W: np.ndarray) -> float:
            return np.sum((W - W0) @ A * (W - W0)) / 2.0 - parts @ np.log((all_of(W) * own).sum(axis=1))

        def bend(W: np.ndarray) -> np.ndarray:
            p = all_of(W)
            return self.scale * (Z.T * (parts * (p * (1.0 - p)).max(axis=1))) @ Z

        W = W0
        for _ in range(30):  # Newton steps, halved and doubled; tests/components/test_logistic.py checks the minimum
            slope = (W - W0) @ A + (parts[:, np.newaxis] * (all_of(W) - own))[:, -self.outputs :].T @ Z
            step, size = -np.linalg.solve(A + bend(W), slope.T).T, 1.0
            while loss(W + size * step) > loss(W) and size > 1e-6:
                size /= 2.0
            while loss(W + 2.0 * size * step) < loss(W + size * step):
                size *= 2.0
            gain = loss(W) - loss(W + size * step)
            W = W + size * step if gain > 0.0 else W
            if gain <= 1e-7 * loss(W):
                break
        self.weights, self.curvature = W, H + bend(W)
        self.folded += len(self.kept)
        self.kept = []


class Window:
    """The latest events, with columns of coefficients for each power of the two kernels."""

    def __init__(self, params: dict[str, Any], powers: int, columns: int):
        self.params, self.powers, self.columns = params, powers, columns
        self.rows: list[np.ndarray] = []
        self.coef: list[np.ndarray] = []

    def sums(self, x: np.ndarray) -> np.ndarray:
        """(views, columns)"""
        if not self.rows:
            return np.zeros((2 * self.powers, self.columns))
        k = kernel_values(self.params, np.array(self.rows), x)
        city = np.exp(-0.25 * np.sqrt(self.params["gamma"]) * np.abs(np.array(self.rows) - x).sum(axis=1))
        views = [values ** (4.0**p) for values in (k, city) for p in range(self.powers)]
        return np.array([np.tensordot(values, np.array(self.coef)[:, v], 1) for v, values in enumerate(views)])

    def nearest(self, x: np.ndarray, stretch: np.ndarray) -> float:
        """The mean target of the five nearest events, over the squares of their distances."""
        if not self.rows:
            return 0.0
        far = 0.25 * np.sqrt(self.params["gamma"]) * np.abs((np.array(self.rows) - x) / stretch).sum(axis=1)
        near = np.argsort(far, kind="stable")[:5]
        _, total, weight = (far[near] ** 2 + 1e-6) ** -1.0 @ np.array(self.coef)[near, 0]
        return total / weight

    def enter(self, x: np.ndarray, entry: np.ndarray) -> None:
        self.rows = [*self.rows, x][-self.params["window"] :]
        self.coef = [*self.coef, entry][-self.params["window"] :]


class Stored(NamedTuple):
    """An event of the memory."""

    row: np.ndarray
    y: float
    weight: float
    time: int


class Archive:
    """Events in cells, lists that are searched one by one; rows and cores are rounded to single precision."""

    def __init__(self, budget: int, d: int, outputs: int):
        self.outputs, self.time = outputs, 0  # no outputs: values
        self.room = max(8, math.isqrt(budget // (3 * (4 * d + 24))))
        self.most = budget // ((self.room + 1) * (4 * d + 24))
        self.cores: list[np.ndarray] = []
        self.cells: list[list[Stored]] = []

    def by_distance(self, rows: list[np.ndarray], x: np.ndarray) -> np.ndarray:
        return np.argsort(np.square(np.array(rows, float).reshape(-1, len(x)) - x).sum(axis=1), kind="stable")

    def neighbours(self, x: np.ndarray) -> list[Stored]:
        near = [event for cell in self.by_distance(self.cores, x)[:3] for event in self.cells[cell]]
        return [near[i] for i in self.by_distance([event.row for event in near], x)[:10]]

    def label(self, y: float) -> int:
        return int(y) if self.outputs > 1 else int(y > 0)

    def shares(self, x: np.ndarray) -> np.ndarray:
        """By distance, and by distance and age: (views, classes), or (views, 1) for means of values."""
        found = self.neighbours(x)
        sums = np.zeros((2, max(2, self.outputs) if self.outputs else 1))
        total = np.zeros((2, 1))
        for event in found:
            weight = event.weight / (np.square(event.row.astype(float) - x).sum() + 1e-9)
            both = np.array([weight, weight / (self.time - event.time) ** 2])
            sums[:, self.label(event.y) if self.outputs else 0] += both * (1.0 if self.outputs else event.y)
            total[:, 0] += both
        return sums / total if found else sums

    def scores(self, x: np.ndarray) -> np.ndarray:
        """(views, outputs), or (views, 1) for values."""
        if not self.outputs:
            return self.shares(x)
        logs = np.log(self.shares(x) + 0.02)
        return logs[:, 1:] - logs[:, :1] if self.outputs == 1 else logs

    def learn(self, x: np.ndarray, y: float, weight: float) -> None:
        if not (self.outputs and self.cells) or self.shares(x)[0, self.label(y)] < 0.9:
            self.store(Stored(x, y, weight, self.time))
        self.time += 1

    def store(self, event: Stored) -> None:
        if not self.cells:
            self.cores, self.cells = [event.row], [[]]
        near = self.by_distance(self.cores, event.row)[0]
        if len(self.cells[near]) == self.room and len(self.cells) < self.most:
            self.divide(near)
            near = min(near, len(self.cells) - 1, key=lambda cell: np.square(self.cores[cell] - event.row, dtype=float).sum())
        cell = self.cells[near]
        if len(cell) == self.room:
            cell[min(range(len(cell)), key=lambda i: cell[i].time)] = event
        else:
            cell.append(event)

    def divide(self, near: int) -> None:
        """Two means, which begin at two events far from each other."""
        events = self.cells[near]
        rows = np.array([event.row for event in events], float)
        one = np.square(rows - self.cores[near]).sum(axis=1).argmax()
        other = np.square(rows - rows[one]).sum(axis=1).argmax()
        cores = rows[[other, one]]
        for turn in range(3):
            moves = np.square(rows - cores[1]).sum(axis=1) < np.square(rows - cores[0]).sum(axis=1)
            if turn < 2:
                cores = np.array([rows[~moves].mean(axis=0), rows[moves].mean(axis=0)], np.float32).astype(float)
        self.cores[near] = cores[0].astype(np.float32)
        self.cores.append(cores[1].astype(np.float32))
        self.cells[near] = [event for event, move in zip(events, moves, strict=True) if not move]
        self.cells.append([event for event, move in zip(events, moves, strict=True) if move])


def passive_aggressive(f: np.ndarray, y: float, weight: float) -> np.ndarray:
    """The coefficients of an event with these scores."""
    if len(f) == 1:
        loss = 1.0 - y * f[0]
        return np.array([y * min(2.0 * weight, loss)]) if loss > 0.0 else np.zeros(1)
    label = int(y)
    rival = max((k for k in range(len(f)) if k != label), key=lambda k: (f[k], -k))
    loss = 1.0 - f[label] + f[rival]
    step = np.zeros(len(f))
    if loss > 0.0:
        step[[label, rival]] = min(2.0 * weight, loss) / 2.0 * np.array([1.0, -1.0])
    return step


class Running:
    """Mean and deviation of the rows so far, far numbers counting as five deviations away."""

    def __init__(self):
        self.rows: list[np.ndarray] = []
        self.near: list[np.ndarray] = []

    def learn(self, x: np.ndarray) -> None:
        near = x
        if len(self.near) >= 30:
            mean, far = np.mean(self.near, axis=0), 5.0 * np.std(self.near, axis=0)
            stays = self.stays(np.array([*self.rows, x])) | (far == 0.0)
            near = np.where(stays, x, np.clip(x, mean - far, mean + far))
        self.rows.append(x)
        self.near.append(near)

    def scaled(self, x: np.ndarray) -> np.ndarray:
        """A row by the rows so far and itself."""
        return self.by(x, np.array([*self.near, x]), np.array([*self.rows, x]))

    def known(self, x: np.ndarray) -> np.ndarray:
        """A row by the rows so far."""
        return self.by(x, np.array(self.near), np.array(self.rows))

    def by(self, x: np.ndarray, near: np.ndarray, rows: np.ndarray) -> np.ndarray:
        alike = (near == near[0]).all(axis=0)
        z = np.where(alike, 0.0, (x - near.mean(axis=0)) / np.where(alike, 1.0, near.std(axis=0)))
        return np.where(self.stays(rows), x, np.clip(z, -5.0, 5.0))

    @staticmethod
    def stays(rows: np.ndarray) -> np.ndarray:
        binary = np.isin(rows, (0.0, 1.0)).all(axis=0)
        return np.ones_like(binary) if ((rows >= 0.0) & (rows <= 1.0)).all() else binary


def quantile_edges(rows: np.ndarray) -> list[tuple[int, float]]:
    """Pairs of a column and an edge, by the most bins of each column for which there is room."""
    for bins in range(16, 1, -1):
        edges = [
            (c, (value + column[column > value].min()) / 2.0)
            for c, column in enumerate(rows.T)
            for value in np.unique(np.quantile(column, np.arange(1, bins) / bins, method="inverted_cdf"))
            if value < column.max()
        ]
        if len(edges) <= min(15 * rows.shape[1], 128):
            return edges
    return []


class Auto:
    """The experts of both tasks, and how they begin anew."""

    uniforms = 0
    powers: int

    def __init__(self, params: dict[str, Any], d: int, outputs: int):
        self.params, self.d, self.outputs = params, d, outputs
        self.gamma = 1.0 / d if params["gamma"] == "scale" else params["gamma"]
        self.running = Running()
        self.events: list[tuple[np.ndarray, float, float]] = []
        self.edges: list[tuple[int, float]] = []
        self.stretch = np.ones(d)
        self.begin()

    @property
    def points(self) -> list[np.ndarray]:
        return self.kernel_squares.points

    def begin(self) -> None:
        o = self.params | {"gamma": self.gamma, "novelty": 0.02, "features": "points", "ridge": 0.1}
        self.kernel_squares = Stretched(o, self.d, self.outputs, self.stretch, self.powers == 2)
        linear = Restored(o | {"features": "linear", "ridge": 1.0}, self.d, self.outputs)
        linear_recent = Restored(o | {"features": "linear"}, self.d, self.outputs, 0.998, 1000)
        binned = Restored(o | {"features": "linear", "ridge": 1.0}, len(self.edges), self.outputs, 0.998, 1000)
        self.squares = [self.kernel_squares, linear, linear_recent, binned]
        self.window = Window(o, self.powers, self.columns())
        self.archive = Archive(self.params["memory"], self.d, self.outputs if self.powers == 2 else 0)

    def seen(self, x: np.ndarray) -> np.ndarray:
        return self.running.scaled(x) if self.params["standardise"] else x

    def stored(self, z: np.ndarray) -> np.ndarray:
        """The row as the memory sees it."""
        return z.astype(np.float32) * self.stretch.astype(np.float32)

    def rows_for_squares(self, x: np.ndarray, z: np.ndarray) -> list[np.ndarray]:
        """The row as each of the experts by least squares sees it."""
        return [z, z, z, np.array([float(x[c] > edge) for c, edge in self.edges])]

    def square_scores(self, x: np.ndarray, z: np.ndarray) -> list[np.ndarray]:
        return [expert.scores(row) for expert, row in zip(self.squares, self.rows_for_squares(x, z), strict=True)]

    def learn(self, x, y, weight, u):
        z = self.seen(x)
        self.mix(x, z, y, weight)
        self.experts_learn(x, z, self.target(y), weight)
        self.running.learn(x)
        self.events.append((x, y, weight))
        self.learned(y)
        if len(self.events) in SETTLE:
            self.settle()

    def settle(self) -> None:
        rows = [self.running.known(x) if self.params["standardise"] else x for x, _, _ in self.events]
        self.stretch = self.relevance(np.array(rows))
        if self.params["gamma"] == "scale":
            self.gamma = 1.0 / (self.d * np.var(rows))
        self.edges = quantile_edges(np.array([x for x, _, _ in self.events]))
        self.begin()
        for z, (x, y, weight) in zip(rows, self.events, strict=True):
            self.experts_learn(x, z, self.known_target(y), weight)

    def relevance(self, rows: np.ndarray) -> np.ndarray:
        """Factors of the columns: roots of how much the kernel expert changes along each; distances keep their size."""
        gradients = np.array([self.kernel_squares.gradient(x) for x in rows[:: int(np.ceil(len(rows) / 256))]])
        change = np.sqrt((gradients**2).sum(axis=2).mean(axis=0))
        return np.clip(np.sqrt(change * rows.var(axis=0).sum() / (change @ rows.var(axis=0))), 1.0 / 8.0, 8.0)

    def target(self, y: float) -> float:
        return y

    known_target = target

    def remembered(self, z: np.ndarray, y: float) -> float:
        """What the memory learns of a target."""
        return y

    def learned(self, y: float) -> None:
        pass

    def experts_learn(self, x: np.ndarray, z: np.ndarray, y: float, weight: float) -> None:
        entry = self.entry(self.window.sums(z * self.stretch), y, weight)
        self.archive.learn(self.stored(z), self.remembered(z, y), weight)
        for expert, row in zip(self.squares, self.rows_for_squares(x, z), strict=True):
            expert.learn(row, y, weight, 0.0)
        if entry.any():
            self.window.enter(z * self.stretch, entry)


class AutoClasses(Auto):
    powers = 2

    def begin(self) -> None:
        super().begin()
        self.logistic = Logistic(self.kernel_squares, self.d, self.outputs)

    def __init__(self, params, d, outputs):
        super().__init__(params, d, outputs)
        K, M = max(2, outputs), 11
        self.mean, self.spread = np.zeros((M, K)), np.ones(M)
        self.stacks = [Stack(fade, range(M), K) for fade in (0.06, 0.02, 0.001)]
        self.stacks += [Stack(0.001, range(M), K, 100.0), Stack(0.001, [1], K)]
        for stack in self.stacks[:3]:
            stack.pull = np.full(M, 0.1)
        self.stacks[3].pull = np.array([0.5, 0.5, 0.0, 0.0, 1.0] + [0.0] * (M - 5))
        self.trust, self.labels = np.full(5, 1 / 5), np.ones(K)

    def columns(self) -> int:
        return self.outputs

    def entry(self, sums, y, weight):
        return np.array([passive_aggressive(f, y, weight) for f in sums])

    def experts_learn(self, x, z, y, weight):
        said = self.logistic.scores(z)
        super().experts_learn(x, z, y, weight)
        self.logistic.consider(z, y, weight, said)
        if self.logistic.events % 256 == 0:
            self.fold()

    def settle(self) -> None:
        super().settle()
        self.fold()

    def fold(self) -> None:
        if evenness(self.labels) < (0.6 if self.logistic.folded else 0.5):
            self.logistic.settle()
        elif self.logistic.folded:
            self.logistic = Logistic(self.kernel_squares, self.d, self.outputs)

    def opinions(self, x: np.ndarray, z: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Scores of the experts, their distances from the usual ones, and log probabilities of the stacks."""
        local = [*self.window.sums(z * self.stretch), *self.archive.scores(self.stored(z))]
        scores = np.array([*self.square_scores(x, z), self.logistic.scores(z), *local])
        scores = np.hstack([-scores, scores]) if self.outputs == 1 else scores
        away = scores - np.where(np.arange(len(scores)) == 4, 0.0, self.mean.T).T  # the fifth are log odds
        away -= away.mean(axis=1, keepdims=True)
        seen = compressed(away, self.spread, self.outputs)
        said = [stack.noisy(stack.probabilities(seen), self.frequency()) for stack in self.stacks]
        return scores, away, np.log(said)

    def frequency(self) -> np.ndarray:
        return self.labels / self.labels.sum()

    def scores(self, x: np.ndarray) -> np.ndarray:
        said = np.log(self.trust @ np.exp(self.opinions(x, self.seen(x))[2]))
        return said[1:] - said[:1] if self.outputs == 1 else said

    def mix(self, x, z, y, weight):
        label = int(y) if self.outputs > 1 else int(y > 0)
        scores, away, said = self.opinions(x, z)
        for stack in self.stacks:
            stack.learn(compressed(away, self.spread, self.outputs), label, weight, self.frequency(), len(self.events))
        trust = self.trust * np.exp(min(weight, 1.0) * said[:, label])
        share = 0.001 * evenness(self.labels)
        self.trust = (1.0 - share) * trust / trust.sum() + share / 5
        self.labels[label] += 1.0
        rate = max(0.0001, 1.0 / (len(self.events) + 2.0))
        self.spread = (1.0 - rate) * self.spread + rate * np.maximum((away**2).mean(axis=1), 1e-9)
        self.mean = (1.0 - rate) * self.mean + rate * scores


def evenness(labels: np.ndarray) -> float:
    """The variance of classes over that of equally frequent ones."""
    shares = labels / labels.sum()
    return (shares @ (1.0 - shares)) / (1.0 - 1.0 / len(labels))


def compressed(away: np.ndarray, spread: np.ndarray, outputs: int) -> np.ndarray:
    log_odds = np.arange(len(away)) == 4
    z = away / np.where(log_odds, 2.0 if outputs == 1 else 1.0, np.sqrt(spread))[:, np.newaxis]
    return np.where(log_odds[:, np.newaxis], z, z / np.sqrt(1.0 + np.abs(z)))


class Stack:
    """Softmax of a weighted sum of scores of some experts, by Newton steps; half of a curvature is that of the own gradient."""

    def __init__(self, fade: float, experts: Iterable[int], classes: int, ridge: float = 10.0):
        self.experts, self.ridge = list(experts), ridge
        n = len(self.experts)
        self.fade, self.pull, self.bias = fade, np.full(n, 1.0 / n), np.zeros(classes)
        self.squares, self.bias_squares, self.noise = np.zeros((n, n)), np.zeros(classes), 0.01

    def probabilities(self, seen: np.ndarray) -> np.ndarray:
        powers = np.exp(self.bias + self.pull @ seen[self.experts])
        return powers / powers.sum()

    def noisy(self, p: np.ndarray, frequency: np.ndarray) -> np.ndarray:
        """The same if a share of the labels is noise."""
        return (1.0 - self.noise) * p + self.noise * frequency

    def learn(self, seen: np.ndarray, label: int, weight: float, frequency: np.ndarray, events: int) -> None:
        p = self.probabilities(seen)
        is_noise = self.noise * frequency[label] / self.noisy(p, frequency)[label]
        weight = weight * (1.0 - is_noise)
        self.noise = max(1e-5, self.noise + max(0.001, 1.0 / (events + 100.0)) * (is_noise - self.noise))
        slope, seen = p - (np.arange(len(p)) == label), seen[self.experts]
        gradient, hessian = seen @ slope, seen @ (np.diag(p) - np.outer(p, p)) @ seen.T
        kept = 1.0 - self.fade * (1.0 - p @ p)
        self.squares = kept * self.squares + weight * (np.outer(gradient, gradient) + hessian) / 2.0
        self.bias_squares = kept * self.bias_squares + weight * (slope**2 + p * (1.0 - p)) / 2.0
        self.pull = self.pull - weight * np.linalg.solve(self.squares + self.ridge * np.eye(len(gradient)), gradient)
        self.bias = self.bias - weight * slope / (self.bias_squares + 2.0)


class AutoValues(Auto):
    powers = 3

    def __init__(self, params, d, outputs):
        super().__init__(params, d, outputs)
        self.values = Running()
        self.seen_predictions: list[np.ndarray] = []
        self.seen_targets: list[float] = []
        self.seen_weights: list[float] = []
        self.v = np.zeros(19)

    def columns(self) -> int:
        return 3

    def target(self, y: float) -> float:
        values = np.array([*self.values.rows, y])
        return 0.0 if (values == values[0]).all() else (y - values.mean()) / values.std()

    def known_target(self, y: float) -> float:
        return (y - np.mean(self.values.rows)) / np.std(self.values.rows)

    def learned(self, y: float) -> None:
        self.values.rows.append(y)

    def entry(self, sums, y, weight):
        return np.array([[(1.0 - 0.7**weight) * (y - lms), weight * y, weight] for lms, _, _ in sums])

    def remembered(self, z, y):
        return y - self.kernel_squares.scores(z)[0]

    def predictions(self, x: np.ndarray, z: np.ndarray) -> np.ndarray:
        sums, nearest = self.window.sums(z * self.stretch), self.window.nearest(z * self.stretch, self.stretch)
        squares = np.concatenate(self.square_scores(x, z))
        around = sums[:, 1] / (sums[:, 2] + 1e-3)
        corrected = squares[0] + self.archive.scores(self.stored(z))[:, 0]
        return np.clip(np.concatenate([squares, sums[:, 0], around, [nearest], corrected]), -5.0, 5.0)

    def scores(self, x: np.ndarray) -> np.ndarray:
        values = self.values.rows or [0.0]
        p = self.predictions(x, self.seen(x))
        return np.array([np.mean(values) + np.std(values) * np.clip(p.mean() + p @ self.v, -5.0, 5.0)])

    def mix(self, x, z, y, weight):
        p = self.predictions(x, z)
        self.seen_predictions.append(p)
        self.seen_targets.append(self.target(y) - p.mean())
        self.seen_weights.append(weight)
        P, n = np.array(self.seen_predictions), len(self.seen_targets)
        s = np.array(self.seen_weights) * 0.998 ** np.arange(n - 1.0, -1.0, -1.0)
        ridge = 10.0 * 0.998 ** (n % 1000)
        self.v = np.linalg.solve(ridge * np.eye(len(p)) + (P.T * s) @ P, (P.T * s) @ np.array(self.seen_targets))


class Adwin:
    """Buckets of 1, 2, 4, ... numbers, five of each at most, whose means are compared at every border, every 32 numbers."""

    def __init__(self):
        self.numbers: list[float] = []
        self.rows: list[list[float]] = [[]]

    def rises(self, number: float) -> tuple[bool, float, float]:
        """Whether the mean has risen, and the means before and after; the window is emptied if it has changed at all."""
        self.numbers.append(number)
        self.rows[0].append(number)
        for r in range(60):
            if len(self.rows[r]) < 6:
                break
            self.rows += [[]] if r + 1 == len(self.rows) else []
            self.rows[r + 1].append(sum(self.rows[r][:2]))
            del self.rows[r][:2]
        n = len(self.numbers)
        if n % 32:
            return False, 0.0, 0.0
        buckets = [(2**r, total) for r, row in reversed(list(enumerate(self.rows))) for total in row]
        doubt = np.log(2.0 * np.log(n) / 0.002)
        clearest, means = doubt, (0.0, 0.0)
        for size, total in np.cumsum(buckets, axis=0)[:-1]:
            if min(size, n - size) >= 5:
                share = 1.0 / (size - 4.0) + 1.0 / (n - size - 4.0)
                sides = total / size, (np.sum(self.numbers) - total) / (n - size)
                # how large the doubt may be: its root solves this equation
                polynomial = [2.0 / 3.0 * share, np.sqrt(2.0 * share * np.var(self.numbers)), -abs(sides[0] - sides[1])]
                allowed = max(np.roots(polynomial)) ** 2
                if allowed > clearest:
                    clearest, means = allowed, sides
        if clearest > doubt:
            self.__init__()
        return means[1] > means[0], *means


class Succeeding:
    """A mixture and, after a rise of its losses, another one that learns beside it; each is a mixture by its definition.

    How rare classes are ranked is not watched: tests/components/test_ranks.py has that.
    """

    def __init__(self, make, delay: int, decide: int, young: int, life: int, has_values: bool):
        self.make, self.delay, self.decide, self.young, self.life = make, delay, decide, young, life
        self.current, self.heir, self.adwin = make(), None, Adwin()
        self.events, self.begun, self.heir_begun, self.pending = 0, 0, 0, 0
        self.unit, self.lead, self.sums = 0.0, 0.0, np.zeros(4)
        self.has_values, self.labels = has_values, np.ones(max(2, self.current.outputs))
        self.alarms: list[tuple[int, float, float, int | None]] = []

    @property
    def heir_leads(self) -> bool:
        return bool(self.heir) and self.lead > 0.0

    @property
    def answering(self):
        return self.heir if self.heir_leads else self.current

    def scores(self, x):
        return self.answering.scores(x)

    def loss(self, f: np.ndarray, y: float) -> float:
        if self.has_values:
            return min((f[0] - y) ** 2 / (9.0 * self.unit), 1.0) if self.unit else 0.0
        f = np.array([-f[0] / 2.0, f[0] / 2.0]) if len(f) == 1 else f
        return min(np.log(np.exp(f).sum()) - f[self.label(f, y)], 4.0)

    def label(self, f: np.ndarray, y: float) -> int:
        return int(y > 0.0) if self.current.outputs == 1 else int(y)

    def watched(self, f: np.ndarray, y: float) -> float:
        """The loss that is watched: a mistake, or the clipped squared error over the mean of those before."""
        if self.has_values:
            loss, error = self.loss(f, y), (f[0] - y) ** 2
            share = max(1e-4, min(1.0, 4.0 / (self.events + 1.0)))
            self.unit += share * (min(error, 100.0 * self.unit if self.events >= 100 else np.inf) - self.unit)
            return loss
        return float((f[0] >= 0.0) != (y > 0.0) if len(f) == 1 else np.argmax(f) != y)

    def learn(self, x, y, weight, u):
        said = self.scores(x)
        if self.heir:
            losses = [self.loss(one.scores(x), y) for one in (self.current, self.heir)]
            lead, speed = losses[0] - losses[1], min(1.0, 2.0 * evenness(self.labels))
            self.lead += speed / 256.0 * (lead - self.lead)
            self.sums = (1.0 - speed / 1024.0) * self.sums + [lead, lead**2, 1.0, losses[0]]
        loss = self.watched(said, y)
        for one in filter(None, (self.current, self.heir)):
            one.learn(x, y, weight, u)
        self.events += 1
        if not self.has_values:
            self.labels[self.label(said, y)] += 1.0
        rises, before, after = self.adwin.rises(loss)
        if rises:
            self.alarms.append((self.events, before, after, None))
            if self.events >= (self.heir_begun if self.heir else self.begun) + self.young and not self.pending:
                self.pending = self.events + self.delay
        self.settle()

    def settle(self) -> None:
        age = self.events - self.heir_begun
        if self.heir and age % self.decide == 0 and age >= self.young:
            if self.is_better():
                self.succeed()
                self.pending = self.events
            elif age >= self.life * min(4.0, 1.0 / min(1.0, 2.0 * evenness(self.labels))):
                self.heir = None
        if self.pending == self.events:
            if self.heir_leads:
                self.succeed()
            self.heir, self.heir_begun, self.pending, self.lead, self.sums = self.make(), self.events, 0, 0.0, np.zeros(4)

    def is_better(self) -> bool:
        total, squares, weight, own = self.sums
        mean = total / weight
        return mean > 3.0 * np.sqrt((squares / weight - mean**2) / weight) and total > 0.05 * own

    def succeed(self) -> None:
        self.current, self.begun, self.heir = self.heir, self.heir_begun, None
        self.alarms[-1] = (*self.alarms[-1][:3], self.alarms[-1][3] or self.events)


class Restarting(Succeeding):
    """The same of KRLS: squared errors are compared, and a successor answers only once it has taken over."""

    @property
    def answering(self):
        return self.current

    def loss(self, f: np.ndarray, y: float) -> float:
        if self.has_values:
            return super().loss(f, y)
        wanted = [y] if len(f) == 1 else np.where(np.arange(len(f)) == y, 1.0, -1.0)
        return min(np.mean((f - wanted) ** 2), 4.0)


def auto(oracle: type, stream: str, **params) -> Case:
    return Case(oracle, stream, {"points": 40, "window": 60, "memory": 2000, **params})


CASES: dict[str, list[Case]] = {
    "AutoClassifier": [
        auto(AutoClasses, "binary", gamma=0.4),
        auto(AutoClasses, "multiclass", points=15),
        auto(AutoClasses, "rare", points=20),
        auto(AutoClasses, "rare multiclass", gamma=0.4, points=25),
        auto(AutoClasses, "multiclass", standardise=False, kernel="cauchy", gamma=0.6),
    ],
    "AutoRegressor": [
        auto(AutoValues, "regression", gamma=0.4),
        auto(AutoValues, "regression", standardise=False, points=12),
    ],
}
