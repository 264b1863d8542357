"""Shapley values: what each column of a row contributes to what a function says of it.

L. S. Shapley: A Value for n-Person Games.  Contributions to the Theory of Games II (1953).
G. Owen: Multilinear Extensions of Games.  Management Science 18 (1972).

The game.  The players are columns, or groups of columns that belong together.  A coalition is worth what the function says on
average if its players have the values of the row, and each of the others those of a random row of the background, drawn for
each player on its own.  So the empty coalition is worth the mean score of such rows, the base, and all players together the
score.  Values sum to the difference, and a player that changes nothing has the value 0.

Drawing players on their own keeps products products: a term a k_1(x_1) .. k_p(x_p) of a kernel expansion is worth a times the
factors of the players that are there, times the means of the others' factors.  With t for the share of players that are
there, Owen's formula gives the value of player j,

    a (k_j - m_j) int_0^1 prod_{i != j} (t k_i + (1 - t) m_i) dt,

a polynomial of degree p - 1, which Gauss and Legendre integrate exactly with p / 2 nodes.  All factors are positive, so nothing
cancels.  Factors of 1 for absent columns (as in arXiv 2505.16516) would do without a background, but then the base is the sum
of all coefficients, which is far from any score where coefficients are large and of both signs.

Sums of functions of single columns have the obvious values.  Whatever else there is, such as neighbours, is sampled: columns
are added one by one in random orders (each followed by its reverse), to rows of the background.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from ..compiler import inline, jit
from ..core.vector import exp

STRIP = 64  # points whose factors are in fast memory at once
STARTS = 64  # rows over which the base is averaged if it is sampled, at least
WIDTH = 4.0  # nodes over the root of the players: more than that hardly change a digit
PRECISION = 3e-12  # relative error of an integral for which there are enough nodes
LINES = 3  # of numbers of a player: the mean of its factors if it is there and if not, half their difference, the ratio of both
HALF, RATIO = 1, 2
TINY = 1e-308  # added to means, which are 0 for players that are very far
RADIUS, RADII = 1.3, 16  # of ellipses that are tried: 1.3 and its powers
FREEDOM = 4  # changes for each function whose shares are known, from which on they are used
RIDGE = 1e-4  # of least squares on these, as a share of the trace: rounding in single precision is not magnified

Path = Callable[[int], np.ndarray]  # scores from starts to a row, (pairs, 2, 1 + players, outputs)


class Game(NamedTuple):
    """Rows to explain, the rows that absent columns come from, and the player of each column."""

    rows: np.ndarray  # (rows, columns)
    background: np.ndarray  # (others, columns)
    players: np.ndarray  # (columns,) from 0 on

    @property
    def size(self) -> int:
        """Number of players."""
        return int(self.players.max(initial=-1)) + 1

    def seen(self, view: Callable[[np.ndarray], np.ndarray]) -> Game:
        """Return the game with rows as a function of single columns sees them."""
        return self._replace(rows=view(self.rows), background=view(self.background))


class Shares(NamedTuple):
    """The values of players, (rows, players, outputs), and the base, (outputs,).

    If they are sampled, ``spread`` holds the differences of single estimates from their mean, (samples, rows, players,
    outputs); otherwise there are none.
    """

    values: np.ndarray
    base: np.ndarray
    spread: np.ndarray

    @property
    def error(self) -> np.ndarray:
        """The standard error of each value; 0 if it is exact."""
        n = max(len(self.spread), 2)
        return np.sqrt(np.square(self.spread).sum(axis=0) / (n * (n - 1)))

    @property
    def scores(self) -> np.ndarray:
        """What the function says of the rows, (rows, outputs)."""
        return self.base + self.values.sum(axis=1)

    def plus(self, other: Shares) -> Shares:
        """Return the shares of the sum of two functions; if both are sampled, independently."""
        spreads = [own.spread for own in (self, other) if len(own.spread)]
        if len(spreads) == 2:  # so that the squares of both errors are added
            n = sum(map(len, spreads))
            spreads = [own * math.sqrt(n * (n - 1) / (len(own) * (len(own) - 1))) for own in spreads]
        spread = np.concatenate(spreads) if spreads else self.spread
        return Shares(self.values + other.values, self.base + other.base, spread)

    def times(self, factor: float, shift: np.ndarray | float = 0.0) -> Shares:
        """Return the shares of ``shift`` plus ``factor`` times the function."""
        return Shares(factor * self.values, shift + factor * self.base, factor * self.spread)

    def of_outputs(self, first: int, last: int) -> Shares:
        """Return the shares in some of the outputs."""
        return Shares(self.values[..., first:last], self.base[first:last], self.spread[..., first:last])


def exact(values: np.ndarray, base: np.ndarray) -> Shares:
    """Return shares that are not sampled."""
    return Shares(values, base, np.zeros((0, *values.shape)))


def nothing(game: Game, outputs: int) -> Shares:
    """Return the shares of the function 0."""
    return exact(np.zeros((len(game.rows), game.size, outputs)), np.zeros(outputs))


# ---------------------------------------------------------------------- sums over columns


def additive(game: Game, features: Callable[[np.ndarray], np.ndarray], columns: np.ndarray, weights: np.ndarray) -> Shares:
    """Return the shares of weights (outputs, features) times features, each a function of one of the columns."""
    mean = features(game.background).mean(axis=0)
    owner = np.zeros((len(columns), game.size))
    owner[np.arange(len(columns)), game.players[columns]] = 1.0
    away = features(game.rows) - mean
    values = np.stack([(away * own) @ owner for own in weights], axis=2)
    return exact(values, weights @ mean)


def linear(game: Game, weights: np.ndarray) -> Shares:
    """Return the shares of the columns times weights, (outputs, columns).

    Examples
    --------
    >>> import numpy as np
    >>> from kernling.components.shapley import Game, linear
    >>> game = Game(np.array([[1.0, 5.0]]), np.array([[0.0, 1.0], [0.0, 3.0]]), np.arange(2))
    >>> found = linear(game, np.array([[10.0, 1.0]]))
    >>> print(found.values[0, :, 0], found.base)
    [10.  3.] [2.]
    """
    return additive(game, lambda rows: rows, np.arange(game.rows.shape[1]), weights)


# ---------------------------------------------------------------------- products over columns


class Products(NamedTuple):
    """Kernels that are products over columns: exp(-rate q), with q the squared distance, or the city-block distance."""

    points: np.ndarray  # (columns, points)
    coef: np.ndarray  # (outputs, points), or (powers, outputs, points)
    rate: float
    is_city: bool


def of_products(game: Game, terms: Products, means: np.ndarray | None = None) -> Shares:
    """Return the shares of a sum of products.

    Examples
    --------
    >>> import numpy as np
    >>> from kernling.components.shapley import Game, Products, of_products
    >>> game = Game(np.array([[0.0, 0.0]]), np.array([[0.0, 1.0]]), np.arange(2))
    >>> found = of_products(game, Products(np.zeros((2, 1)), np.ones((1, 1)), 1.0, False))
    >>> print(found.values[0, :, 0].round(4), found.base.round(4))
    [0.     0.6321] [0.3679]
    """
    return of_powers(game, terms._replace(coef=terms.coef[np.newaxis]), means)[0]


def of_powers(game: Game, terms: Products, means: np.ndarray | None = None) -> list[Shares]:
    """Return the shares of sums of products, of their fourth powers, of the fourth powers of these, and so on.

    ``means`` are those of ``means_of``, if they are known.
    """
    game, terms = _plain(game, terms)
    values, base = np.zeros((len(terms.coef), len(game.rows), game.size, terms.coef.shape[1])), np.zeros(terms.coef.shape[:2])
    write_products(game, terms, tables(game.size), means_of(game, terms) if means is None else means, values, base)
    return [exact(*own) for own in zip(values, base, strict=True)]


def means_of(game: Game, terms: Products) -> np.ndarray:
    """Return the means over the background of factors and their powers, (strips, powers of players, points)."""
    game, terms = _plain(game, terms)
    powers, even = len(terms.coef), game.size + game.size % 2
    means = np.empty((-(-terms.points.shape[1] // STRIP), powers * even, STRIP))
    write_means(game, terms, means)
    return means


def _plain(game: Game, terms: Products) -> tuple[Game, Products]:
    """Return both as compiled code takes them."""
    rows, background, points, coef = (
        np.ascontiguousarray(part, np.float64) for part in (game.rows, game.background, terms.points, terms.coef)
    )
    game = Game(rows, background, game.players.astype(np.int64))
    return game, Products(points, coef, float(terms.rate), bool(terms.is_city))


@lru_cache
def tables(players: int) -> np.ndarray:
    """Return nodes of the upper half from -1 to 1, and weights, (pairs, 2, most pairs), the last ones enough for all products.

    They are those of 1, 2, ... pairs of nodes.  A product of all but one of the factors of so many players is a sum of
    t^i (1 - t)^(players - 1 - i) with positive coefficients.  Half as many nodes as players are exact; where fewer will do, the
    relative error is at most 1e-11.
    """
    most = max(1, min(-(-players // 2), math.ceil(WIDTH * math.sqrt(players))))
    found = np.zeros((-(-most // 2), 2, -(-most // 2)))
    for place in range(len(found)):
        nodes, weights = np.polynomial.legendre.leggauss(2 * place + 2)
        found[place, :, : place + 1] = nodes[place + 1 :], weights[place + 1 :]
    return found


@lru_cache
def unit_nodes(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return so many nodes of Gauss and Legendre from 0 to 1, and their weights."""
    times, weights = np.polynomial.legendre.leggauss(count)
    return 0.5 * (times + 1.0), 0.5 * weights


@jit
def write_means(game, terms, means):
    """Write the means over the background of factors and their powers, (strips, powers of players, points)."""
    powers, points = terms.coef.shape[0], np.empty((terms.points.shape[0], STRIP))
    factors = np.ones((means.shape[1] // powers, STRIP))
    for strip in range(means.shape[0]):
        _copy_strip(terms.points, strip * STRIP, points)
        _average(game, terms, powers, points, factors, means[strip])


@inline
def _average(game, terms, powers, points, factors, means):
    """Write the means of a strip."""
    players, share = factors.shape[0], 1.0 / game.background.shape[0]
    for line in range(means.shape[0]):
        for k in range(STRIP):
            means[line, k] = 0.0
    for i in range(game.background.shape[0]):
        _write_factors(points, game.background[i], game.players, terms.rate, terms.is_city, factors)
        for power in range(powers):
            if power > 0:
                _raise_factors(factors)
            for p in range(players):
                own, mean = factors[p], means[power * players + p]
                for k in range(STRIP):
                    mean[k] += share * own[k]


@jit
def write_products(game, terms, nodes, means, values, base):
    """Add the Shapley values of sums of products and their powers, (powers, rows, players, outputs), and the bases."""
    powers, rows, _, outputs = values.shape
    even = means.shape[1] // powers  # one more player than there are, if that number is odd: its factors are 1
    points, coef = np.empty((terms.points.shape[0], STRIP)), np.empty((outputs, STRIP))
    factors, parts, tops = np.ones((even, STRIP)), np.empty((LINES * even, STRIP)), np.empty((2 * nodes.shape[0] + 4, STRIP))
    for strip in range(means.shape[0]):
        _copy_strip(terms.points, strip * STRIP, points)
        for power in range(powers):
            _copy_strip(terms.coef[power], strip * STRIP, coef)
            _add_base(coef, means[strip, power * even : (power + 1) * even], tops[0], base[power])
        for i in range(rows):
            _write_factors(points, game.rows[i], game.players, terms.rate, terms.is_city, factors)
            for power in range(powers):
                if power > 0:
                    _raise_factors(factors)
                _copy_strip(terms.coef[power], strip * STRIP, coef)
                place = _divide(factors, means[strip, power * even : (power + 1) * even], nodes, parts, tops)
                _multiply(nodes[place], place + 1, parts, tops)
                _add_shares(nodes[place], place + 1, coef, parts, tops, values[power, i])


@inline
def _copy_strip(table, first, strip):
    """Copy the columns of a table from ``first`` on; behind the last one there are zeros."""
    count = min(STRIP, table.shape[1] - first)
    for row in range(strip.shape[0]):
        for k in range(count):
            strip[row, k] = table[row, first + k]
        for k in range(count, STRIP):
            strip[row, k] = 0.0


@inline
def _add_base(coef, absent, products, sums):
    """Add the products of all factors of absent players, times coefficients."""
    for k in range(STRIP):
        products[k] = 1.0
    for p in range(absent.shape[0]):
        for k in range(STRIP):
            products[k] *= absent[p, k]
    for o in range(coef.shape[0]):
        total = 0.0
        for k in range(STRIP):
            total += coef[o, k] * products[k]
        sums[o] += total


@inline
def _write_factors(points, x, players, rate, is_city, factors):
    """Write the part of each player in the kernel values of a row."""
    for p in range(factors.shape[0]):
        for k in range(STRIP):
            factors[p, k] = 0.0
    for c in range(x.size):
        value, column, own = x[c], points[c], factors[players[c]]
        if is_city:
            for k in range(STRIP):
                own[k] += abs(value - column[k])
        else:
            for k in range(STRIP):
                own[k] += (value - column[k]) * (value - column[k])
    for p in range(factors.shape[0]):
        own = factors[p]
        for k in range(STRIP):
            own[k] = exp(-rate * own[k])


@inline
def _raise_factors(factors):
    """Replace factors by their fourth powers."""
    for p in range(factors.shape[0]):
        own = factors[p]
        for k in range(STRIP):
            square = own[k] * own[k]
            own[k] = square * square


@inline
def _divide(factors, absent, nodes, parts, work):
    """Write the mean of each factor and that of an absent player, half their difference, and its ratio to the mean.

    Return which nodes are enough for all products of a strip.
    """
    players = factors.shape[0]
    tilt, bend, first, last = work[0], work[1], work[2], work[3]
    for k in range(STRIP):
        tilt[k] = bend[k] = 0.0
        first[k] = last[k] = 1.0
    for p in range(players):
        own, m, mean, half, ratio = factors[p], absent[p], parts[LINES * p], parts[LINES * p + HALF], parts[LINES * p + RATIO]
        for k in range(STRIP):
            mean[k] = 0.5 * (own[k] + m[k])
            half[k] = 0.5 * (own[k] - m[k])
            v = half[k] / (mean[k] + TINY)
            ratio[k] = v
            tilt[k] += v
            bend[k] += v * v
            first[k] *= 1.0 - v
            last[k] *= 1.0 + v
    sides, bends, least = 0.0, 0.0, np.inf
    for k in range(STRIP):
        sides, bends, least = max(sides, abs(tilt[k])), max(bends, bend[k]), min(least, max(1.0, first[k], last[k]))
    return _enough(players, sides, bends, least, nodes.shape[0]) if nodes.shape[0] > 1 else 0


@inline
def _enough(players, tilt, bend, least, count):
    """Return how many pairs of nodes integrate a product up to a relative error of ``PRECISION``, less one.

    Over the mean of its ends, the factor of a player is 1 + v s for s from -1 to 1.  By the theorem of L. N. Trefethen,
    Approximation Theory and Approximation Practice (2013), 19.3, the error of n nodes is at most 64 / 15 M r^-2n / (1 - r^-2),
    with M the largest size of the product on the ellipse with foci -1 and 1 and half-axes a = (r + 1 / r) / 2 and a - 1 / r.
    There the square of a factor is at most 1 + 2 v x + v^2 a^2, with |x| <= a the same for all factors, so with p factors, by
    the concavity of the logarithm, log M is at most p / 2 log(1 + (2 a |tilt| + a^2 bend) / p), with tilt the sum of v and bend
    that of v^2.  The p-th root of a product is concave, so its integral is at least 2 / p times its value anywhere: ``least``
    is the largest at an end or in the middle.
    """
    place = count - 1
    radius = RADIUS
    for _ in range(RADII):
        axis = 0.5 * (radius + 1.0 / radius)
        size = 0.5 * players * np.log(1.0 + (2.0 * axis * tilt + axis * axis * bend) / players) - np.log(least)
        error = size + np.log(players * (32.0 / 15.0) / PRECISION / (1.0 - 1.0 / (radius * radius)))
        place = min(place, int(max(error / (4.0 * np.log(radius)), 0.0)))
        radius *= RADIUS
    return place


@inline
def _multiply(nodes, pairs, parts, tops):
    """Write the product of all factors at each node, times its weight: a line for s, and the next one for -s.

    The factors of two players are multiplied at once.
    """
    for q in range(pairs):
        s, up, down = nodes[0, q], tops[2 * q], tops[2 * q + 1]
        for k in range(STRIP):
            up[k] = down[k] = nodes[1, q]
        for p in range(0, parts.shape[0], 2 * LINES):
            mean, half, next_mean, next_half = parts[p], parts[p + HALF], parts[p + LINES], parts[p + LINES + HALF]
            for k in range(STRIP):
                step, next_step = s * half[k], s * next_half[k]
                up[k] *= (mean[k] + step) * (next_mean[k] + next_step)
                down[k] *= (mean[k] - step) * (next_mean[k] - next_step)


@inline
def _add_shares(nodes, pairs, coef, parts, tops, values):
    """Add the shares of players, times coefficients: with v the ratio, v times the sum of all products over 1 + v s.

    Two pairs of nodes are taken at once, with one division.
    """
    share = tops[2 * pairs]
    for p in range(values.shape[0]):
        ratio = parts[LINES * p + RATIO]
        for k in range(STRIP):
            share[k] = 0.0
        for q in range(0, pairs - 1, 2):
            s, t, a, b, c, d = nodes[0, q], nodes[0, q + 1], tops[2 * q], tops[2 * q + 1], tops[2 * q + 2], tops[2 * q + 3]
            for k in range(STRIP):
                v, w = s * ratio[k], t * ratio[k]
                one, other = (1.0 - v) * (1.0 + v), (1.0 - w) * (1.0 + w)
                above = (a[k] * (1.0 - v) + b[k] * (1.0 + v)) * other + (c[k] * (1.0 - w) + d[k] * (1.0 + w)) * one
                share[k] += above / (one * other)
        if pairs % 2 == 1:
            s, a, b = nodes[0, pairs - 1], tops[2 * pairs - 2], tops[2 * pairs - 1]
            for k in range(STRIP):
                v = s * ratio[k]
                share[k] += (a[k] * (1.0 - v) + b[k] * (1.0 + v)) / ((1.0 - v) * (1.0 + v))
        for o in range(values.shape[1]):
            total = 0.0
            for k in range(STRIP):
                total += coef[o, k] * ratio[k] * share[k]
            values[p, o] += total


# ---------------------------------------------------------------------- any function


class Orders(NamedTuple):
    """Random orders of players, each followed by its reverse, and the rows at which they begin."""

    starts: np.ndarray  # (starts, columns): those of the orders first
    ranks: np.ndarray  # (pairs, 2, players): when a player comes

    def split(self, pairs: int) -> tuple[Orders, Orders]:
        """Return the first pairs of orders, and the others."""
        return Orders(self.starts, self.ranks[:pairs]), Orders(np.roll(self.starts, -pairs, axis=0), self.ranks[pairs:])


def orders_of(game: Game, pairs: int, rng: np.random.Generator) -> Orders:
    """Return random orders: the players of a start come from different rows of the background."""
    others = len(game.background)
    turns = -(-max(pairs, STARTS) // others)  # each row of the background is drawn as often
    mixed = rng.permuted(np.tile(np.arange(others), (game.size, turns, 1)), axis=2).reshape(game.size, -1)
    starts = np.ascontiguousarray(game.background[mixed[game.players].T, np.arange(game.rows.shape[1])])
    ranks = rng.permuted(np.tile(np.arange(game.size), (pairs, 1)), axis=1)
    return Orders(starts, np.stack([ranks, game.size - 1 - ranks], axis=1))


def mixed_rows(row: np.ndarray, starts: np.ndarray, ranks: np.ndarray, players: np.ndarray) -> np.ndarray:
    """Return the rows from starts to a row, (pairs, 2, 1 + players, columns), in the orders of these ranks of players."""
    there = ranks[:, :, np.newaxis] < np.arange(ranks.shape[2] + 1)[:, np.newaxis]
    return np.where(there[..., players], row, starts[:, np.newaxis, np.newaxis])


def sampled(game: Game, score: Callable[[np.ndarray], np.ndarray], samples: int, rng: np.random.Generator) -> Shares:
    """Return estimates for any function of rows, which gives (rows, outputs), from so many orders of the players.

    The base is the mean over at least ``STARTS`` rows.
    """
    orders = orders_of(game, max(2, samples // 2), rng)
    return averaged(game, orders, score(orders.starts), score(np.ascontiguousarray(game.rows)), stepwise(game, orders, score))


def stepwise(game: Game, orders: Orders, score: Callable[[np.ndarray], np.ndarray]) -> Path:
    """Return how a function of rows changes from starts to a row."""

    def along(row: int) -> np.ndarray:
        rows = mixed_rows(game.rows[row], orders.starts[: len(orders.ranks)], orders.ranks, game.players)
        return score(rows.reshape(-1, rows.shape[3])).reshape(*rows.shape[:3], -1)

    return along


def averaged(
    game: Game, orders: Orders, at_starts: np.ndarray, scores: np.ndarray, along: Path, known: Shares | None = None
) -> Shares:
    """Return estimates for a function, given its scores of starts and rows, and of what is between a row and starts.

    The last outputs may be functions whose shares are known.  The first one is then estimated less combinations of them, those
    that leave the least: of its changes along orders for the values, and of its scores of starts for the base.  What the rows
    where orders began say more than the base is added to the values, most to the least certain, so that they sum to score
    minus base.
    """
    outputs = scores.shape[1] if known is None else 1
    values, spread = [], []
    pair, side, _ = np.ogrid[tuple(map(slice, orders.ranks.shape))]
    for i in range(len(game.rows)):
        gains = np.diff(along(i), axis=2)[pair, side, orders.ranks].mean(axis=1)  # (pairs, players, outputs)
        mean = gains.mean(axis=0)
        gains -= mean
        if known is not None:
            pull, doubt = _pull(gains[..., 0], gains[..., 1:])
            mean[:, 0] += (known.values[i] - mean[:, 1:]) @ pull
            gains[..., 0] = doubt * (gains[..., 0] - gains[..., 1:] @ pull)
        values.append(mean[:, :outputs])
        spread.append(gains[..., :outputs])
    base = at_starts.mean(axis=0)
    if known is not None:
        base = base[:1] + (known.base - base[1:]) @ _pull(*np.split(at_starts - base, [1], axis=1))[0]
    found = Shares(np.array(values), base, np.stack(spread, axis=1))
    doubts = np.square(found.error)
    total = doubts.sum(axis=1, keepdims=True)
    part = np.where(total > 0.0, doubts / np.where(total > 0.0, total, 1.0), 1.0 / game.size)
    return found._replace(values=found.values + part * (scores[:, :outputs] - found.scores)[:, np.newaxis])


def _pull(changes: np.ndarray, known: np.ndarray) -> tuple[np.ndarray, float]:
    """Return by which combination of known changes to explain others, (known,), and by how much the error then looks too small.

    Changes are less their means over the first axis.  Where there are few of them, nothing is explained.  What is left is too
    small by the root of a ratio, since it was made small, and the combination, which is not certain, adds as much.
    """
    count, freedom = known.shape[-1], (len(known) - 1) * math.prod(known.shape[1:-1])
    if freedom < FREEDOM * count:
        return np.zeros(count), 1.0
    table = known.reshape(-1, count)
    curvature = table.T @ table
    curvature[np.diag_indices(count)] += RIDGE * np.trace(curvature) + np.finfo(np.float64).tiny
    return np.linalg.solve(curvature, table.T @ changes.ravel()), freedom / (freedom - count)
