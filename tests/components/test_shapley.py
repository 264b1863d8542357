"""Shapley values: those of all coalitions (tests/oracles/shapley.py), and of the package shap where it is installed."""

from math import comb

import numpy as np
import pytest

from kernling.components.shapley import (
    Game,
    Products,
    additive,
    averaged,
    linear,
    of_powers,
    of_products,
    orders_of,
    sampled,
    stepwise,
    tables,
)
from oracles.shapley import shapley

OUTPUTS = 2


def problem(seed: int, columns: int, others: int, players=None) -> Game:
    rng = np.random.default_rng(seed)
    groups = np.arange(columns) if players is None else np.array(players)
    return Game(rng.normal(size=(3, columns)), rng.normal(size=(others, columns)), groups)


def products(seed: int, columns: int, *, is_city: bool, points: int = 70) -> Products:
    rng = np.random.default_rng(seed)
    return Products(rng.normal(size=(columns, points)), rng.normal(size=(OUTPUTS, points)), 0.3, is_city)


def said_by(terms: Products):
    """The function itself."""

    def score(rows: np.ndarray) -> np.ndarray:
        gaps = rows[:, :, np.newaxis] - terms.points
        size = np.abs(gaps).sum(axis=1) if terms.is_city else np.square(gaps).sum(axis=1)
        return np.exp(-terms.rate * size) @ terms.coef.T

    return score


def compare(found, game: Game, score) -> None:
    for row, values, said in zip(game.rows, found.values, found.scores, strict=True):
        expected, base = shapley(score, row, game.background, game.players.tolist())
        np.testing.assert_allclose(values, expected, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(found.base, base, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(said, score(row[np.newaxis])[0], rtol=1e-9, atol=1e-12)
    assert not found.error.any()


@pytest.mark.parametrize("is_city", [False, True])
@pytest.mark.parametrize(
    ("columns", "others", "players"), [(10, 1, None), (5, 3, None), (7, 2, [0, 1, 1, 2, 0, 3, 3]), (1, 2, None)]
)
def test_products_have_the_values_of_all_coalitions(columns, others, players, is_city):
    game, terms = problem(1, columns, others, players), products(2, columns, is_city=is_city)
    compare(of_products(game, terms), game, said_by(terms))


def test_sums_over_columns_have_the_values_of_all_coalitions():
    game = problem(3, 4, 3, [0, 1, 1, 2])
    weights = np.random.default_rng(4).normal(size=(OUTPUTS, 4))
    compare(linear(game, weights), game, lambda rows: rows @ weights.T)
    columns, edges = np.array([0, 0, 2, 3]), np.array([-1.0, 0.5, 0.0, 0.2])
    steps = lambda rows: (rows[:, columns] > edges).astype(float)  # noqa: E731
    compare(additive(game, steps, columns, weights), game, lambda rows: steps(rows) @ weights.T)


def test_few_nodes_are_enough_for_many_players():
    """Each integral of t^i (1 - t)^(p - 1 - i), of which all others are sums, is 1 / (p binomial(p - 1, i))."""
    for players in (2, 9, 54, 90, 300, 784):
        upper, weights = tables(players)[-1]
        times, weights = 0.5 + 0.5 * np.concatenate([-upper, upper]), 0.5 * np.tile(weights, 2)
        degree = players - 1
        for i in range(players):
            with np.errstate(under="ignore"):
                logs = i * np.log(times) + (degree - i) * np.log1p(-times)
            scaled = weights @ np.exp(logs + np.log(float(players)) + _log_binomial(degree, i))
            assert scaled == pytest.approx(1.0, rel=1e-11), (players, i)


@pytest.mark.parametrize("rate", [1e-3, 0.02, 0.1, 0.5, 3.0, 40.0])
@pytest.mark.parametrize("columns", [2, 3, 11, 54, 120])
def test_fewer_nodes_say_the_same_of_products_that_hardly_change(columns, rate):
    """Points near to rows, far from them, and between them: each value of each point is that of all nodes."""
    rng = np.random.default_rng(columns)
    game = Game(rng.normal(size=(2, columns)), rng.normal(size=(5, columns)), np.arange(columns))
    points = np.vstack([game.rows[0] + 0.1 * rng.normal(size=(20, columns)), rng.normal(size=(80, columns))])
    points[50:] += rng.uniform(-4.0, 4.0, size=(50, 1))
    times, weights = np.polynomial.legendre.leggauss(columns)
    factors = lambda X, point: np.exp(-rate * np.square(X - point))  # noqa: E731
    for point in points:
        absent, own = factors(game.background, point).mean(axis=0), factors(game.rows, point)
        parts = absent + 0.5 * (times + 1.0)[:, np.newaxis, np.newaxis] * (own - absent)  # (nodes, rows, columns)
        rest = np.stack([np.delete(parts, c, axis=2).prod(axis=2) for c in range(columns)], axis=2)
        integrals = np.tensordot(0.5 * weights, rest, 1)
        found = of_products(game, Products(point[:, np.newaxis], np.ones((1, 1)), rate, False))
        error = np.abs(found.values[..., 0] - (own - absent) * integrals)
        assert (error <= (1e-11 * np.abs(own - absent) + 1e-14 * np.maximum(own, absent)) * integrals + 1e-300).all()


@pytest.mark.parametrize("is_city", [False, True])
def test_powers_of_products_are_products_of_higher_rates(is_city):
    game, terms = problem(9, 6, 4), products(10, 6, is_city=is_city)
    coef = np.random.default_rng(11).normal(size=(3, OUTPUTS, 70))
    for power, found in enumerate(of_powers(game, terms._replace(coef=coef))):
        expected = of_products(game, terms._replace(coef=coef[power], rate=terms.rate * 4.0**power))
        np.testing.assert_allclose(found.values, expected.values, rtol=1e-10, atol=1e-14)
        np.testing.assert_allclose(found.base, expected.base, rtol=1e-10, atol=1e-14)


def _log_binomial(n: int, k: int) -> float:
    whole = comb(n, k)
    shift = max(whole.bit_length() - 60, 0)
    return float(np.log(whole >> shift) + shift * np.log(2.0))


def test_distant_points_count_nothing():
    game = Game(np.full((1, 40), 50.0), np.zeros((1, 40)), np.arange(40))
    found = of_products(game, Products(np.zeros((40, 1)), np.ones((1, 1)), 1.0, False))
    assert np.isfinite(found.values).all()
    np.testing.assert_allclose(found.values[0, :, 0], -1.0 / 40.0, rtol=1e-9)


def test_samples_are_right_within_their_errors():
    game, terms = problem(5, 6, 4), products(6, 6, is_city=False)
    right = of_products(game, terms)
    found = sampled(game, said_by(terms), 200, np.random.default_rng(0))
    np.testing.assert_allclose(found.scores, right.scores, rtol=1e-9)
    assert (np.abs(found.values - right.values) < 5.0 * found.error).all()
    fewer = sampled(game, said_by(terms), 20, np.random.default_rng(0))
    assert 2.0 < fewer.error.mean() / found.error.mean() < 5.0
    one = sampled(Game(game.rows, game.background, np.zeros(6, int)), said_by(terms), 4, np.random.default_rng(0))
    np.testing.assert_allclose(one.values[:, 0] + one.base, right.scores, rtol=1e-9)


@pytest.mark.parametrize("samples", [8, 32])
def test_errors_next_to_known_functions_are_not_understated(samples):
    """A sum of two known functions and a little more, over many random orders.  Starts are balanced, which errors leave out."""
    game, terms, little = problem(5, 6, 60), products(6, 6, is_city=False), products(7, 6, is_city=True)
    known, own = of_products(game, terms), of_products(game, little)

    def whole(rows: np.ndarray) -> np.ndarray:
        said = said_by(terms)(rows)
        return np.column_stack([said @ [1.0, -3.0] + 0.1 * said_by(little)(rows)[:, 0], said])

    right = known.values @ [[1.0], [-3.0]] + 0.1 * own.values[..., :1]
    deviations, errors, plain = [], [], []
    for seed in range(60):
        orders = orders_of(game, samples // 2, np.random.default_rng(seed))
        path = stepwise(game, orders, whole)
        found = averaged(game, orders, whole(orders.starts), whole(game.rows), path, known)
        np.testing.assert_allclose(found.scores, whole(game.rows)[:, :1], rtol=1e-9)
        deviations.append(found.values - right)
        errors.append(found.error)
        plain.append(averaged(game, orders, whole(orders.starts), whole(game.rows), path).error[..., :1])
    assert 0.5 < np.std(deviations) / np.sqrt(np.mean(np.square(errors))) < 1.1
    assert np.mean(errors) < 0.2 * np.mean(plain)


def test_squares_of_independent_errors_are_added():
    game = problem(5, 6, 4)
    one = sampled(game, said_by(products(6, 6, is_city=False)), 16, np.random.default_rng(0))
    other = sampled(game, said_by(products(7, 6, is_city=True)), 6, np.random.default_rng(1))
    np.testing.assert_allclose(one.plus(other).error, np.sqrt(one.error**2 + other.error**2))


def test_values_are_those_of_the_package_shap():
    shap = pytest.importorskip("shap")
    game, terms = problem(7, 6, 1), products(8, 6, is_city=False)
    explainer = shap.ExactExplainer(said_by(terms), shap.maskers.Independent(game.background))
    np.testing.assert_allclose(of_products(game, terms).values, explainer(game.rows).values, rtol=1e-6, atol=1e-9)


def by_many_nodes(game: Game, terms: Products) -> np.ndarray:
    """Owen's formula with a hundred nodes: values of columns, (rows, columns, outputs)."""
    times, weights = np.polynomial.legendre.leggauss(100)
    times, weights = 0.5 * (times + 1.0), 0.5 * weights
    own = np.exp(-terms.rate * np.square(game.rows[:, :, np.newaxis] - terms.points))
    absent = np.exp(-terms.rate * np.square(game.background[:, :, np.newaxis] - terms.points)).mean(axis=0)
    found = np.empty((*game.rows.shape, len(terms.coef)))
    for j in range(game.size):
        rest = np.delete(np.arange(game.size), j)
        factors = absent[rest] + times[:, np.newaxis, np.newaxis, np.newaxis] * (own[:, rest] - absent[rest])
        shares = (own[:, j] - absent[j]) * np.tensordot(weights, factors.prod(axis=2), (0, 0))
        found[:, j] = shares @ terms.coef.T
    return found


@pytest.mark.parametrize("far", ["rows", "background"])
def test_there_are_enough_nodes_where_all_factors_are_on_one_side(far):
    """All players make terms smaller, or all larger."""
    rng = np.random.default_rng(5)
    near, distant = (0.05 * rng.normal(size=(2, 200)) + place for place in (0.0, 1.4))
    game = Game(*((distant, near) if far == "rows" else (near, distant)), np.arange(200))
    terms = Products(0.05 * rng.normal(size=(200, 5)), rng.random((OUTPUTS, 5)), 0.3, False)
    np.testing.assert_allclose(of_products(game, terms).values, by_many_nodes(game, terms), rtol=1e-10)
