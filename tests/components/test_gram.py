"""The inverse Gram matrix through long lives, hard kernels and damage."""

import numpy as np
import pytest

import kernling as kl
from kernling import kernel
from kernling.components import gram as grams
from kernling.components.gram import Gram, extend, matching_pursuit, update
from oracles.polk import projection, pruned


def of_points(K) -> Gram:
    """The matrix of points with these kernel values, with some room."""
    n = len(K)
    gram = grams.new_gram().grown(n + 8)
    gram.matrix[:n, :n] = K
    grams.renew(gram, n)
    return gram


def drift(gram: Gram, n: int) -> float:
    """|K G - I|, from all of it."""
    return np.abs(gram.matrix[:n, :n] @ gram.inverse[:n, :n] - np.eye(n)).max()


def put(gram: Gram, n: int, cross, own, out) -> tuple[np.ndarray, int]:
    """Append points, then remove those in ``out``; returns who was appended and the new size."""
    coef = np.zeros((n + len(own), 1))
    kept, factor, _ = extend(gram, n, cross, own, coef[:n], coef[n:])
    total = n + len(factor)
    columns, alive = np.empty((total, total)), np.empty(total, np.bool_)
    order = np.array([*out, *np.setdiff1d(np.arange(total), out)])
    coef = np.ones((total, 1))
    coef[out] = 0.0  # they cost nothing, and nothing else fits
    removed, _ = matching_pursuit(gram.inverse[:n, :n], factor, coef[:total], 0.0, 1e-30, order, columns, alive)
    assert removed == len(out)
    update(gram, n, cross, own, kept, factor, columns[:removed], alive)
    return kept, total - removed


def moved(alive: np.ndarray) -> list[tuple[int, int]]:
    """Which of the last survivors fill which holes."""
    left = alive.sum()
    return list(zip(np.flatnonzero(~alive[:left]), left + np.flatnonzero(alive[left:]), strict=True))


class Life:
    """Points drawn at random come and go; their kernel has a condition number of about 1e6."""

    def __init__(self, size: int = 40):
        rng = self.rng = np.random.default_rng(0)
        self.rows = rng.standard_normal((400, 12)) * np.geomspace(1.0, 1e-3, 12)
        self.values = self.rows @ self.rows.T + 1e-6 * np.eye(400)  # linear, on more points than dimensions
        self.values /= np.sqrt(np.outer(self.values.diagonal(), self.values.diagonal()))
        self.who = list(range(size))
        self.gram = of_points(self.values[:size, :size])

    def step(self, count: int) -> None:
        """So many come, as many go."""
        n = len(self.who)
        free = np.setdiff1d(np.arange(400), self.who)
        new = self.rng.choice(free, count, replace=False)
        out = self.rng.choice(n, count, replace=False)
        kept, left = put(self.gram, n, self.values[np.ix_(self.who, new)], self.values[np.ix_(new, new)], out)
        assert kept.all()
        who = np.array([*self.who, *new])
        alive = np.ones(len(who), np.bool_)
        alive[out] = False
        for to, source in moved(alive):
            who[to] = who[source]
        self.who = who[:left].tolist()
        np.testing.assert_array_equal(self.gram.matrix[:left, :left], self.values[np.ix_(self.who, self.who)])


def live(steps: int, count: int = 8) -> None:
    life = Life()
    condition = []
    for i in range(steps):
        life.step(count)
        assert drift(life.gram, len(life.who)) <= 1e-6
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


@pytest.mark.parametrize("ordered", [False, True])
def test_pursuit_equals_brute_force(ordered):
    K, coef = some_points(20, 10)
    gram = of_points(K[:20, :20])
    order = np.random.default_rng(2).permutation(30) if ordered else np.empty(0, np.int64)
    expected, expected_coef = pruned(K, coef, 1.5, np.inf, order if ordered else None)
    kept, factor, error = extend(gram, 20, K[:20, 20:], K[20:, 20:], coef[:20].copy(), coef[20:].copy())
    found, columns, alive = coef.copy(), np.empty((30, 30)), np.empty(30, np.bool_)
    removed, error = matching_pursuit(gram.inverse[:20, :20], factor, found, error, 1.5**2, order, columns, alive)
    assert kept.all()
    assert removed > 3
    np.testing.assert_array_equal(np.flatnonzero(alive), expected)
    np.testing.assert_allclose(found[alive], expected_coef, atol=1e-9)
    assert error == pytest.approx(projection(K, coef, expected)[1], abs=1e-10)


def test_a_point_in_the_span_is_projected():
    K, coef = some_points(20, 3)
    again = [4, *range(20, 23), 21]  # a stored point, three new ones, and one of them twice
    gram = of_points(K[:20, :20])
    old, new = coef[:20].copy(), coef[again].copy()
    kept, factor, error = extend(gram, 20, K[:20, again], K[np.ix_(again, again)], old, new)
    assert kept.tolist() == [False, True, True, True, False]
    assert factor.shape == (3, 23)
    assert error < 1e-12
    expected = coef.copy()
    expected[20:] = coef[20:23]
    expected[4] += coef[4]
    expected[21] += coef[21]
    np.testing.assert_allclose(K @ np.vstack([old, new[kept]]), K @ expected, atol=1e-9)


def test_what_a_projection_costs_is_counted():
    """A point very near to a stored one: the error is what the projection really changed."""
    X = np.array([[-6.0], [0.0], [6.0], [5e-5]])
    K = kernel("rbf", 1.0)(X, X)
    old, new = np.zeros((3, 1)), np.full((1, 1), 2.0)
    kept, _, error = extend(of_points(K[:3, :3]), 3, K[:3, 3:], K[3:, 3:], old, new)
    assert not kept.any()
    change = np.vstack([old, -new])
    assert error == pytest.approx((change.T @ K @ change).item(), rel=1e-4)
    assert error == pytest.approx(2.0 * 5e-5**2 * 4.0, rel=1e-3)  # 1 - k^2 = 2 gamma delta^2, times the coefficient's square


def test_damage_is_noticed_and_repaired():
    life = Life()
    life.gram.inverse[3, 5] += 0.1
    assert drift(life.gram, 40) > 1e-3
    nobody = np.empty(0, np.int64)
    for _ in range(grams.PROBE):
        put(life.gram, 40, np.empty((40, 0)), np.empty((0, 0)), nobody)
    assert life.gram.record[grams.RENEWED] == 1
    assert life.gram.record[grams.WORST] > 1e-3
    assert drift(life.gram, 40) <= 1e-6


def test_a_well_conditioned_matrix_is_never_renewed():
    K, _ = some_points(200, 200, d=10)
    gram = of_points(K[:200, :200])
    who, rng = list(range(200)), np.random.default_rng(0)
    for _ in range(100):
        new = rng.choice(np.setdiff1d(np.arange(400), who), 5, replace=False)
        out = rng.choice(200, 5, replace=False)
        put(gram, 200, K[np.ix_(who, new)], K[np.ix_(new, new)], out)
        alive = np.ones(205, np.bool_)
        alive[out] = False
        who = [*who, *new]
        for to, source in moved(alive):
            who[to] = who[source]
        who = who[:200]
    assert gram.record[grams.RENEWED] == 0
    assert drift(gram, 200) < 1e-10


def test_single_precision_makes_no_matrix_asymmetric():
    """Products computed in another order differ in the last digits: the inverse could not fit both halves."""
    X = np.random.default_rng(0).uniform(size=(300, 784)).astype(np.float32)
    model = kl.POLKClassifier(parsimony=0.0, max_points=None, gamma=1 / 32, batch_size=32, dtype="float32")
    model.partial_fit(X, np.arange(300) % 2)
    assert model.n_stored_ == 288
    assert drift(model._state.gram, model.n_stored_) < 1e-11


def test_a_singular_matrix_gets_a_ridge():
    """Kernel values of single precision need not be positive definite; what comes out is still finite and symmetric."""
    rng = np.random.default_rng(3)
    X = rng.uniform(-1.0, 1.0, size=(60, 1))
    gram = of_points(kernel("rbf", 1.0)(X, X).astype(np.float32).astype(np.float64))
    inverse = gram.inverse[:60, :60]
    assert np.isfinite(inverse).all()
    np.testing.assert_array_equal(inverse, inverse.T)
    assert (inverse.diagonal() >= 0.9).all()


def test_shapes_are_checked():
    gram = of_points(np.eye(3)).trimmed(3)
    gram.check(3, 1, 1)
    roomy = gram.grown(5)
    for wrong in (gram._replace(inverse=np.eye(2)), gram._replace(record=np.zeros(2)), grams.new_gram(), roomy):
        with pytest.raises(ValueError, match="Gram matrix"):
            wrong.check(3, 1, 1)
