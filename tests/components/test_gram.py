"""The inverse Gram matrix through long lives, hard kernels and damage."""

import math

import numpy as np
import pytest

import kernling as kl
from kernling import kernel
from kernling.compiler import by_address, jit
from kernling.components import gram as grams
from kernling.components.gram import Gram
from kernling.components.pruning import PROBE, Pruning, add_and_prune
from kernling.core.expansion import Expansion, new_expansion
from kernling.core.shapes import verify
from oracles.polk import permutation, projections, pruned


@jit
def change(model, gram, work, X, norms, eps, most, u):
    """The function for compiled code, called from Python."""
    return add_and_prune(model, gram, work, X, norms, eps, most, u)


class Points:
    """A model of points that are known by their numbers, and by their kernel values."""

    def __init__(self, K, coef, room=16):
        n = len(K)
        model = new_expansion(1, np.shape(coef)[1], np.float64).grown(n + room)
        self.model: Expansion = model
        model.points[:n, 0] = range(n)
        model.coef[0, :, :n] = np.transpose(coef)
        model.size[0] = n
        self.gram: Gram = grams.of_points(np.array(K, np.float64)).grown(n + room)

    @property
    def who(self) -> np.ndarray:
        return self.model.points[: self.model.size[0], 0].astype(int)

    @property
    def coef(self) -> np.ndarray:
        return self.model.coef[0, :, : self.model.size[0]].T

    def add(self, values, who, coef, eps=0.0, most=math.inf, u=-1.0) -> float:
        """Add points with these numbers and coefficients, and prune; ``values`` are the kernel values of all numbers."""
        m = len(who)
        work = Pruning(len(self.model.points), m, self.model.coef.shape[1])
        cross = values[np.ix_(self.who, who)].ravel()
        work.cross[: len(cross)] = cross
        work.own[:] = values[np.ix_(who, who)].ravel()
        work.new[:] = coef
        X = np.array(who, np.float64).reshape(m, 1)
        return change(*map(by_address, (self.model, self.gram, work)), X, X.ravel(), eps, most, u)


def drift(gram: Gram, n: int) -> float:
    """|K G - I|, from all of it."""
    return np.abs(gram.matrix[:n, :n] @ gram.inverse[:n, :n] - np.eye(n)).max()


def replace(points: Points, values, new, out) -> None:
    """Append points, and remove those in ``out``: they cost nothing, and nothing else fits."""
    n = points.model.size[0]
    points.model.coef[0, 0, :n] = 1.0
    points.model.coef[0, 0, out] = 0.0
    left = {*points.who, *new} - {*points.who[out]}
    points.add(values, new, np.ones((len(new), 1)), eps=1e-15)
    assert {*points.who} == left


class Life:
    """Points drawn at random come and go; their kernel has a condition number of about 1e6."""

    def __init__(self, size: int = 40):
        rng = self.rng = np.random.default_rng(0)
        self.rows = rng.standard_normal((400, 12)) * np.geomspace(1.0, 1e-3, 12)
        self.values = self.rows @ self.rows.T + 1e-6 * np.eye(400)  # linear, on more points than dimensions
        self.values /= np.sqrt(np.outer(self.values.diagonal(), self.values.diagonal()))
        self.points = Points(self.values[:size, :size], np.zeros((size, 1)))
        self.gram = self.points.gram

    def step(self, count: int) -> None:
        """So many come, as many go."""
        free = np.setdiff1d(np.arange(400), self.points.who)
        new = self.rng.choice(free, count, replace=False)
        out = self.rng.choice(len(self.points.who), count, replace=False)
        replace(self.points, self.values, new, out)
        who = self.points.who
        np.testing.assert_array_equal(self.gram.matrix[: len(who), : len(who)], self.values[np.ix_(who, who)])


def live(steps: int, count: int = 8) -> None:
    life = Life()
    condition = []
    for i in range(steps):
        life.step(count)
        assert drift(life.gram, 40) <= 1e-6
        if i % max(1, steps // 20) == 0:
            condition.append(np.linalg.cond(life.gram.matrix[:40, :40]))
    assert np.median(condition) > 3e5


def test_many_appends_and_removals():
    live(1500)


@pytest.mark.long
def test_a_million_appends_and_removals():
    live(62_500)


def some_points(n: int, m: int, d: int = 3):
    rng = np.random.default_rng(1)
    X = rng.uniform(-1.0, 1.0, size=(n + m, d))
    return kernel("rbf", 2.0)(X, X), rng.standard_normal((n + m, 2))


@pytest.mark.parametrize("u", [-1.0, 0.0, 0.3, 0.99])
def test_pursuit_equals_brute_force(u):
    K, coef = some_points(20, 10)
    points = Points(K[:20, :20], coef[:20])
    expected, expected_coef = pruned(K, coef, 1.5, np.inf, permutation(u, 30) if u >= 0.0 else None)
    error = points.add(K, range(20, 30), coef[20:], eps=1.5, u=u)
    assert len(expected) < 30 - (3 if u < 0.0 else 0)
    order = np.argsort(points.who)
    np.testing.assert_array_equal(points.who[order], expected)
    np.testing.assert_allclose(points.coef[order], expected_coef, atol=1e-9)
    assert error**2 == pytest.approx(projections(K, coef, np.array([expected]))[1][0], abs=1e-10)


def test_at_most_so_many_points_remain():
    K, coef = some_points(20, 10)
    points = Points(K[:20, :20], coef[:20])
    points.add(K, range(20, 30), coef[20:], eps=1.5, most=7.0)
    assert sorted(points.who) == pruned(K, coef, 1.5, 7)[0]


def test_random_orders_are_uniform():
    """Each place of each point equally often, and every order of four."""
    orders = [tuple(permutation(u, 4)) for u in np.random.default_rng(0).uniform(size=24_000)]
    counts = [orders.count(order) for order in {*orders}]
    assert len(counts) == 24
    assert max(abs(np.array(counts) - 1000)) < 150


def test_a_point_in_the_span_is_projected():
    K, coef = some_points(20, 3)
    again = [4, *range(20, 23), 21]  # a stored point, three new ones, and one of them twice
    points = Points(K[:20, :20], coef[:20])
    error = points.add(K, again, coef[again])
    assert points.who.tolist() == [*range(23)]
    assert error < 1e-6
    expected = coef.copy()
    expected[4] += coef[4]
    expected[21] += coef[21]
    np.testing.assert_allclose(K @ points.coef, K @ expected, atol=1e-9)


def test_what_a_projection_costs_is_counted():
    """A point very near to a stored one: the error is what the projection really changed."""
    X = np.array([[-6.0], [0.0], [6.0], [5e-5]])
    K = kernel("rbf", 1.0)(X, X)
    points = Points(K[:3, :3], np.zeros((3, 1)))
    error = points.add(K, [3], [[2.0]], most=3.0)
    assert points.who.tolist() == [0, 1, 2]
    change = np.vstack([points.coef, [[-2.0]]])
    assert error**2 == pytest.approx((change.T @ K @ change).item(), rel=1e-4)
    assert error**2 == pytest.approx(2.0 * 5e-5**2 * 4.0, rel=1e-3)  # 1 - k^2 = 2 gamma delta^2, times the coefficient's square


def test_damage_is_noticed_and_repaired():
    life = Life()
    life.gram.inverse[3, 5] += 0.1
    assert drift(life.gram, 40) > 1e-3
    for _ in range(PROBE):
        replace(life.points, life.values, [], [])
    assert life.gram.record[grams.RENEWED] == 1
    assert life.gram.record[grams.WORST] > 1e-3
    assert drift(life.gram, 40) <= 1e-6


def test_a_well_conditioned_matrix_is_never_renewed():
    K, _ = some_points(200, 200, d=10)
    points, rng = Points(K[:200, :200], np.zeros((200, 1))), np.random.default_rng(0)
    for _ in range(100):
        new = rng.choice(np.setdiff1d(np.arange(400), points.who), 5, replace=False)
        replace(points, K, new, rng.choice(200, 5, replace=False))
    assert points.gram.record[grams.RENEWED] == 0
    assert drift(points.gram, 200) < 1e-10


@pytest.mark.parametrize("n", [1, 63, 64, 65, 300])
def test_the_inverse_is_computed_in_bands(n):
    X = np.random.default_rng(0).uniform(size=(n, 6))
    K = kernel("exponential", 1.0)(X, X)
    gram = grams.of_points(K)
    np.testing.assert_allclose(gram.inverse, np.linalg.inv(K), rtol=1e-8, atol=1e-8)
    assert gram.record[grams.LAST] == gram.record[grams.FLOOR] < 1e-10


def test_single_precision_makes_no_matrix_asymmetric():
    """Products computed in another order differ in the last digits: the inverse could not fit both halves."""
    X = np.random.default_rng(0).uniform(size=(300, 784)).astype(np.float32)
    model = kl.POLKClassifier(parsimony=0.0, max_points=None, gamma=1 / 32, batch_size=32, dtype="float32")
    model.partial_fit(X, np.arange(300) % 2)
    assert model.n_stored_ == 288
    assert drift(model.state_.gram, model.n_stored_) < 1e-11


def test_a_singular_matrix_gets_a_ridge():
    """Kernel values of single precision need not be positive definite; what comes out is still finite and symmetric."""
    rng = np.random.default_rng(3)
    X = rng.uniform(-1.0, 1.0, size=(60, 1))
    gram = grams.of_points(kernel("rbf", 1.0)(X, X).astype(np.float32).astype(np.float64))
    inverse = gram.inverse[:60, :60]
    assert np.isfinite(inverse).all()
    np.testing.assert_array_equal(inverse, inverse.T)
    assert (inverse.diagonal() >= 0.9).all()


def test_shapes_are_checked():
    gram, empty = grams.of_points(np.eye(3)), grams.new_gram()
    verify(gram, empty, {"stored": 3})
    roomy = gram.grown(5)
    for wrong in (gram._replace(inverse=np.eye(2)), gram._replace(record=np.zeros(2)), empty, roomy):
        with pytest.raises(ValueError, match="has the shape"):
            verify(wrong, empty, {"stored": 3})
