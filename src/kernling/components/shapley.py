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

from ..compiler import jit, shaped
from ..core.vector import exp

STRIP = 32  # points whose factors are in the fastest memory at once
STARTS = 64  # rows over which the base is averaged if it is sampled, at least
WIDTH = 4.0  # nodes over the root of the players: more than that hardly change a digit


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
    coef: np.ndarray  # (outputs, points)
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
    points = np.ascontiguousarray(terms.points, np.float64)
    n, players, rate, is_city = points.shape[1], game.players.astype(np.int64), float(terms.rate), bool(terms.is_city)
    own, absent, shares = np.empty((3, game.size, n))
    times, weights = nodes(game.size)
    mean_factors(points, np.ascontiguousarray(game.background, np.float64), players, rate, is_city, own, absent)
    values = np.empty((len(game.rows), game.size, len(terms.coef)))
    for i, row in enumerate(np.ascontiguousarray(game.rows, np.float64)):
        write_factors(points, row, players, rate, is_city, own)
        write_shares(own, absent, times, weights, shares)
        values[i] = shares @ terms.coef.T
    return exact(values, terms.coef @ absent.prod(axis=0))


def nodes(players: int) -> tuple[np.ndarray, np.ndarray]:
    """Return nodes and weights that integrate the products of all but one of so many players from 0 to 1.

    These are sums of t^i (1 - t)^(players - 1 - i) with positive coefficients.  Half as many nodes as players are exact; where
    fewer will do, the relative error of each of these integrals is at most 1e-11.
    """
    return unit_nodes(max(1, min(-(-players // 2), math.ceil(WIDTH * math.sqrt(players)))))


@lru_cache
def unit_nodes(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return so many nodes of Gauss and Legendre from 0 to 1, and their weights."""
    times, weights = np.polynomial.legendre.leggauss(count)
    return 0.5 * (times + 1.0), 0.5 * weights


@jit
def write_factors(points, x, players, rate, is_city, factors):
    """Write the part of each player in the kernel values of a row, (players, points)."""
    for p in range(factors.shape[0]):
        for k in range(factors.shape[1]):
            factors[p, k] = 0.0
    for c in range(x.size):
        value, column, own = x[c], points[c], factors[players[c]]
        if is_city:
            for k in range(column.size):
                own[k] += abs(value - column[k])
        else:
            for k in range(column.size):
                own[k] += (value - column[k]) * (value - column[k])
    flat = shaped(factors, (factors.size,))
    for i in range(flat.size):
        flat[i] = exp(-rate * flat[i])


@jit
def mean_factors(points, rows, players, rate, is_city, work, means):
    """Write the means of the factors over rows."""
    for p in range(means.shape[0]):
        for k in range(means.shape[1]):
            means[p, k] = 0.0
    for i in range(rows.shape[0]):
        write_factors(points, rows[i], players, rate, is_city, work)
        for p in range(means.shape[0]):
            for k in range(means.shape[1]):
                means[p, k] += work[p, k] / rows.shape[0]


@jit
def write_shares(own, absent, times, weights, shares):
    """Write the Shapley values of products of factors, given the means of the factors of absent players, (players, points).

    The product of all factors but one is that of those before it times that of those behind it.
    """
    players, n = own.shape
    before, behind = np.empty(STRIP), np.empty((players, STRIP))
    for first in range(0, n, STRIP):
        b = min(STRIP, n - first)
        for p in range(players):
            for k in range(b):
                shares[p, first + k] = 0.0
        for q in range(times.size):
            there, away = times[q], 1.0 - times[q]
            for k in range(b):
                before[k], behind[players - 1, k] = 1.0, weights[q]
            for p in range(players - 1, 0, -1):
                a, m, last, product = own[p, first:], absent[p, first:], behind[p], behind[p - 1]
                for k in range(b):
                    product[k] = last[k] * (there * a[k] + away * m[k])
            for p in range(players):
                a, m, share, rest = own[p, first:], absent[p, first:], shares[p, first:], behind[p]
                for k in range(b):
                    share[k] += before[k] * rest[k]
                    before[k] *= there * a[k] + away * m[k]
        for p in range(players):
            for k in range(b):
                shares[p, first + k] *= own[p, first + k] - absent[p, first + k]


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
