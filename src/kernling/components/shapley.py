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
PRECISION = 1e-13  # relative error of an integral for which there are enough nodes
LINES = 5  # of numbers of a player: factors, how far they are from those of absent players, shares, and two products
OWN, AWAY, SHARE, BEHIND = range(4)
RADIUS, RADII = 1.3, 16  # of ellipses that are tried: 1.3 and its powers


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
        """Return the shares of the sum of two functions, of which at most one is sampled."""
        spread = self.spread if len(self.spread) else other.spread
        return Shares(self.values + other.values, self.base + other.base, spread)

    def times(self, factor: float, shift: np.ndarray | float = 0.0) -> Shares:
        """Return the shares of ``shift`` plus ``factor`` times the function."""
        return Shares(factor * self.values, shift + factor * self.base, factor * self.spread)


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


def of_products(game: Game, terms: Products) -> Shares:
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
    return of_powers(game, terms._replace(coef=terms.coef[np.newaxis]))[0]


def of_powers(game: Game, terms: Products) -> list[Shares]:
    """Return the shares of sums of products, of their fourth powers, of the fourth powers of these, and so on."""
    rows, background, points, coef = (
        np.ascontiguousarray(part, np.float64) for part in (game.rows, game.background, terms.points, terms.coef)
    )
    game = Game(rows, background, game.players.astype(np.int64))
    terms = Products(points, coef, float(terms.rate), bool(terms.is_city))
    values, base = np.zeros((len(coef), len(rows), game.size, coef.shape[1])), np.zeros(coef.shape[:2])
    write_products(game, terms, tables(game.size), values, base)
    return [exact(*own) for own in zip(values, base, strict=True)]


@lru_cache
def tables(players: int) -> np.ndarray:
    """Return nodes and weights from 0 to 1, (counts, 2, most), for 2, 4, ... of them, the last ones enough for all products.

    A product of all but one of the factors of so many players is a sum of t^i (1 - t)^(players - 1 - i) with positive
    coefficients.  Half as many nodes as players are exact; where fewer will do, the relative error is at most 1e-11.
    """
    most = max(1, min(-(-players // 2), math.ceil(WIDTH * math.sqrt(players))))
    most += most % 2
    found = np.zeros((most // 2, 2, most))
    for place in range(most // 2):
        times, weights = unit_nodes(2 * place + 2)
        found[place, :, : len(times)] = times, weights
    return found


@lru_cache
def unit_nodes(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return so many nodes of Gauss and Legendre from 0 to 1, and their weights."""
    times, weights = np.polynomial.legendre.leggauss(count)
    return 0.5 * (times + 1.0), 0.5 * weights


@jit
def write_products(game, terms, nodes, values, base):
    """Add the Shapley values of sums of products and their powers, (powers, rows, players, outputs), and the bases."""
    powers, rows, players, outputs = values.shape
    points, coef = np.empty((terms.points.shape[0], STRIP)), np.empty((outputs, STRIP))
    absent = np.empty((powers * players, STRIP))
    work = np.empty((LINES * players + 2, STRIP))  # lines of each player, and two more
    for first in range(0, terms.points.shape[1], STRIP):
        _copy_strip(terms.points, first, points)
        _write_means(game, terms, points, work, absent)
        for power in range(powers):
            _copy_strip(terms.coef[power], first, coef)
            _add_base(coef, absent[power * players : (power + 1) * players], work[0], base[power])
        for i in range(rows):
            _write_factors(points, game.rows[i], game.players, terms.rate, terms.is_city, work)
            for power in range(powers):
                if power > 0:
                    _raise_factors(work)
                _copy_strip(terms.coef[power], first, coef)
                _write_shares(absent[power * players :], nodes, work)
                _add_terms(coef, work, values[power, i])


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
def _add_terms(coef, work, values):
    """Add the shares of players, times coefficients."""
    for p in range(values.shape[0]):
        for o in range(values.shape[1]):
            total = 0.0
            for k in range(STRIP):
                total += coef[o, k] * work[LINES * p + SHARE, k]
            values[p, o] += total


@inline
def _write_factors(points, x, players, rate, is_city, work):
    """Write the part of each player in the kernel values of a row."""
    for p in range(work.shape[0] // LINES):
        for k in range(STRIP):
            work[LINES * p + OWN, k] = 0.0
    for c in range(x.size):
        value, column, own = x[c], points[c], work[LINES * players[c] + OWN]
        if is_city:
            for k in range(STRIP):
                own[k] += abs(value - column[k])
        else:
            for k in range(STRIP):
                own[k] += (value - column[k]) * (value - column[k])
    for p in range(work.shape[0] // LINES):
        own = work[LINES * p + OWN]
        for k in range(STRIP):
            own[k] = exp(-rate * own[k])


@inline
def _raise_factors(work):
    """Replace factors by their fourth powers."""
    for p in range(work.shape[0] // LINES):
        own = work[LINES * p + OWN]
        for k in range(STRIP):
            square = own[k] * own[k]
            own[k] = square * square


@inline
def _write_means(game, terms, points, work, means):
    """Write the means over the background of factors and their powers, (powers players, points)."""
    players, others = work.shape[0] // LINES, game.background.shape[0]
    for line in range(means.shape[0]):
        for k in range(STRIP):
            means[line, k] = 0.0
    for i in range(others):
        _write_factors(points, game.background[i], game.players, terms.rate, terms.is_city, work)
        for power in range(means.shape[0] // players):
            if power > 0:
                _raise_factors(work)
            for p in range(players):
                own, mean = work[LINES * p + OWN], means[power * players + p]
                for k in range(STRIP):
                    mean[k] += own[k] / others


@inline
def _write_shares(absent, nodes, work):
    """Write the Shapley values of products of factors, given the means of the factors of absent players, (players, points).

    The product of all factors but one is that of those before it times that of those behind it.  Two nodes are taken at once.
    """
    players = work.shape[0] // LINES
    place = _place_of_nodes(absent, nodes, work)
    one, other = work[LINES * players], work[LINES * players + 1]
    for q in range(0, 2 * place + 2, 2):
        s, t, v, w = nodes[place, 0, q], nodes[place, 0, q + 1], nodes[place, 1, q], nodes[place, 1, q + 1]
        for k in range(STRIP):
            one[k] = v
            other[k] = w
        for p in range(players - 1, -1, -1):
            m, away = absent[p], LINES * p
            for k in range(STRIP):
                work[away + BEHIND, k] = one[k]
                work[away + BEHIND + 1, k] = other[k]
                one[k] *= m[k] + s * work[away + AWAY, k]
                other[k] *= m[k] + t * work[away + AWAY, k]
        for k in range(STRIP):
            one[k] = 1.0
            other[k] = 1.0
        for p in range(players):
            m, away = absent[p], LINES * p
            for k in range(STRIP):
                work[away + SHARE, k] += one[k] * work[away + BEHIND, k] + other[k] * work[away + BEHIND + 1, k]
                one[k] *= m[k] + s * work[away + AWAY, k]
                other[k] *= m[k] + t * work[away + AWAY, k]
    for p in range(players):
        for k in range(STRIP):
            work[LINES * p + SHARE, k] *= work[LINES * p + AWAY, k]


@inline
def _place_of_nodes(absent, nodes, work):
    """Return which nodes are enough for all products of a strip; write how far factors are from those of absent players."""
    players = work.shape[0] // LINES
    tilt, bend, first, last = work[SHARE], work[BEHIND], work[LINES * players], work[LINES * players + 1]
    for k in range(STRIP):
        tilt[k] = bend[k] = 0.0
        first[k] = last[k] = 1.0
    for p in range(players):
        own, away, m = work[LINES * p + OWN], work[LINES * p + AWAY], absent[p]
        for k in range(STRIP):
            away[k] = own[k] - m[k]
            v = away[k] / (own[k] + m[k])
            tilt[k] += v
            bend[k] += v * v
            first[k] *= 1.0 - v
            last[k] *= 1.0 + v
    sides, bends, least = 0.0, 0.0, np.inf
    for k in range(STRIP):
        sides, bends, least = max(sides, abs(tilt[k])), max(bends, bend[k]), min(least, max(1.0, first[k], last[k]))
    for p in range(players):
        for k in range(STRIP):
            work[LINES * p + SHARE, k] = 0.0
    return _enough(players, sides, bends, least, nodes.shape[0]) if nodes.shape[0] > 1 else 0


@inline
def _enough(players, tilt, bend, least, count):
    """Return half of how many nodes integrate a product up to a relative error of ``PRECISION``, less one.

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


# ---------------------------------------------------------------------- any function


def mixed_rows(row: np.ndarray, starts: np.ndarray, ranks: np.ndarray, players: np.ndarray) -> np.ndarray:
    """Return the rows from starts to a row, (pairs, 2, 1 + players, columns), in the orders of these ranks of players."""
    there = ranks[:, :, np.newaxis] < np.arange(ranks.shape[2] + 1)[:, np.newaxis]
    return np.where(there[..., players], row, starts[:, np.newaxis, np.newaxis])


def sampled(
    game: Game,
    score: Callable[[np.ndarray], np.ndarray],
    samples: int,
    rng: np.random.Generator,
    along: Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray] | None = None,
) -> Shares:
    """Return estimates for any function of rows, which gives (rows, outputs), from so many orders of the players.

    An order and its reverse begin at the same row, whose players come from different rows of the background.  The base is the
    mean over at least ``STARTS`` such rows.  What the rows where orders began say more than that is added to the values, most
    to the least certain, so that they sum to score minus base.  ``along`` gives the scores of ``mixed_rows`` of a row, starts
    and ranks, (pairs, 2, 1 + players, outputs), where there is a faster way to them, up to rounding.
    """
    pairs, count, d = max(2, samples // 2), game.size, game.rows.shape[1]
    others = len(game.background)
    turns = -(-max(pairs, STARTS) // others)  # each row of the background is drawn as often
    mixed = np.array([np.concatenate([rng.permutation(others) for _ in range(turns)]) for _ in range(count)])
    starts = np.ascontiguousarray(game.background[mixed[game.players].T, np.arange(d)])
    at_starts = score(starts)
    ranks = np.array([rng.permutation(count) for _ in range(pairs)])
    ranks = np.stack([ranks, count - 1 - ranks], axis=1)  # (pairs, 2, players)
    values, spread = [], []
    scores = score(np.ascontiguousarray(game.rows))
    for row, said in zip(game.rows, scores, strict=True):
        if along is not None:
            path = along(row, starts[:pairs], ranks)
        else:
            path = np.empty((pairs, 2, count + 1, len(said)))
            path[:, :, 0], path[:, :, -1] = at_starts[:pairs, np.newaxis], said
        if along is None and count > 1:
            rows = mixed_rows(row, starts[:pairs], ranks, game.players)[:, :, 1:-1]
            path[:, :, 1:-1] = score(rows.reshape(-1, d)).reshape(*rows.shape[:3], len(said))
        gains = np.take_along_axis(np.diff(path, axis=2), ranks[..., np.newaxis], axis=2).mean(axis=1)
        values.append(gains.mean(axis=0))
        spread.append(gains - values[-1])
    base = at_starts.mean(axis=0)
    found = Shares(np.array(values), base, np.stack(spread, axis=1))
    doubt = np.square(found.error)
    total = doubt.sum(axis=1, keepdims=True)
    part = np.where(total > 0.0, doubt / np.where(total > 0.0, total, 1.0), 1.0 / count)
    return found._replace(values=found.values + part * (scores - found.scores)[:, np.newaxis])
