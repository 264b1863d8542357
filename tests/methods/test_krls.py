"""KRLS: what ridge regression promises, its limits, and what is peculiar to this method."""

from functools import partial
from itertools import pairwise

import numpy as np
import pytest
from scipy import sparse

import checks
import kernling as kl
from kernling.components.least_squares import BLOCK, EVENTS, RHO, WAITING
from kernling.core.state import trimmed
from oracles import CASES, encoded, stream
from oracles.krls import KRLS

Published = partial(kl.KRLSRegressor, standardise_target=False)
PROBES = np.random.default_rng(1).uniform(-1.2, 1.2, size=(40, 3))
SMALL = dict(gamma=1.0, points=30)


def ridge_solution(Z, T, ridge, s=None):
    s = np.ones(len(Z)) if s is None else s
    return np.linalg.solve(ridge * np.eye(Z.shape[1]) + (Z.T * s) @ Z, (Z.T * s) @ T)


def with_one(X):
    return np.column_stack([np.ones(len(X)), X])


# ---------------------------------------------------------------------- limits


@pytest.mark.parametrize("ridge", [1e-6, 0.1, 30.0])
def test_linear_features_are_ridge_regression_on_all_rows(ridge):
    X, y = stream("regression", 500)
    model = Published(features="linear", ridge=ridge).fit(X, y)
    w = ridge_solution(with_one(X), y, ridge)
    np.testing.assert_allclose(model.predict(PROBES), with_one(PROBES) @ w, rtol=1e-9)
    assert model.n_stored_ == model.n_support_ == 0


@pytest.mark.parametrize("ridge", [1e-4, 0.1])
def test_with_all_points_stored_it_is_kernel_ridge_regression(ridge):
    """Of the kernel k(x, x') + 1 + gamma <x, x'>: none of the events is approximated."""
    X, y = stream("regression", 200)
    model = Published(gamma=8.0, points=300, novelty=0.0, ridge=ridge).fit(X, y)
    assert model.n_stored_ == 200
    whole = lambda A, B: kl.kernel("rbf", 8.0)(A, B) + 1.0 + 8.0 * A @ B.T  # noqa: E731
    dual = np.linalg.solve(whole(X, X) + ridge * np.eye(200), y)
    np.testing.assert_allclose(model.predict(PROBES), whole(PROBES, X) @ dual, rtol=1e-6, atol=1e-6)


def test_wide_rows_are_no_features_beside_the_points():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 600))
    model = Published(points=10).fit(X, X[:, 0])
    assert model.state_.squares.count == 11
    assert not model.state_.linear.coef.any()
    assert Published(features="linear").fit(X, X[:, 0]).state_.squares.count == 601
    assert Published(features="fourier", points=6).fit(X, X[:, 0]).state_.squares.count == 7


def test_fourier_features_need_a_kernel_of_the_distance():
    X, y = stream("binary", 20)
    with pytest.raises(ValueError, match="kernel of the distance"):
        kl.KRLSClassifier(features="fourier", kernel="poly").fit(X, y)


# ---------------------------------------------------------------------- what the theory promises


@pytest.mark.parametrize("kind", ["binary", "multiclass", "regression"])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_identity_and_the_regret_bound(kind, weighted):
    """The sum of e^2 / d is the least regularised loss, and clipped errors exceed it by no more than the certificate says."""
    X, y = stream(kind, 300)
    s = np.random.default_rng(3).choice([0.5, 1.0, 4.0], 300) if weighted else np.ones(300)
    cls = Published if kind == "regression" else kl.KRLSClassifier
    method = "predict" if kind == "regression" else "decision_function"
    known = {} if kind == "regression" else {"classes": np.unique(y)}
    model = cls(ridge=0.5, **SMALL)
    before = model.predict_then_learn(X, y, method=method, sample_weight=s, **known).reshape(300, -1)
    oracle = KRLS(model.get_params(deep=False), 3, before.shape[1])
    for x, target, weight in zip(X, encoded(kind, y), s, strict=True):
        oracle.learn(x, target, weight, 0.0)
    T, Z = np.array(oracle.targets), np.array(oracle.rows)
    least = 0.5 * np.sum(oracle.W**2) + np.sum(s[:, None] * (T - Z @ oracle.W) ** 2)
    found = model.certificate()
    assert found["least_loss"] == pytest.approx(least, rel=1e-9)
    largest = np.abs(T).max()
    grown = np.linalg.slogdet(np.eye(Z.shape[1]) + (Z.T * s) @ Z / 0.5)[1]
    clipped = np.sum(s[:, None] * (T - np.clip(before, -largest, largest)) ** 2)
    assert clipped <= found["least_loss"] + found["regret_bound"]
    if not weighted:
        assert found["regret_bound"] == pytest.approx(4.0 * largest**2 * grown * T.shape[1])


def test_targets_chosen_by_an_opponent_do_not_break_the_bound():
    X, _ = stream("binary", 400)
    model = Published(ridge=0.1, **SMALL)
    model.partial_fit(X[:1], [0.0], sample_weight=[0.0])
    lost = 0.0
    for x in X:
        f = model.predict_one(x)
        y = -1.0 if f >= 0.0 else 1.0
        lost += (y - np.clip(f, -1.0, 1.0)) ** 2
        model.learn_one(x, y)
    found = model.certificate()
    assert lost <= found["least_loss"] + found["regret_bound"] * (1.0 + 1e-9)
    assert found["regret_bound"] < lost  # it says something


def test_nothing_is_promised_of_what_is_forgotten():
    X, y = stream("regression", 50)
    assert set(Published(forget=20.0, **SMALL).fit(X, y).certificate()) == {"points", "points_bound"}


# ---------------------------------------------------------------------- weights, classes, forgetting


def test_a_weight_is_so_many_events_at_once():
    X, y = stream("regression", 120)
    counts = np.random.default_rng(0).integers(1, 4, 120)
    weighted = Published(**SMALL).fit(X, y, sample_weight=counts)
    repeated = Published(**SMALL).fit(np.repeat(X, counts, axis=0), np.repeat(y, counts))
    np.testing.assert_allclose(weighted.predict(PROBES), repeated.predict(PROBES), rtol=1e-8)


@pytest.mark.parametrize("rows", [1, 2])  # a single event has its own way
def test_an_event_that_weighs_next_to_nothing_changes_nothing(rows):
    X, y = stream("regression", 120)
    model = Published(**SMALL).fit(X, y)
    before = model.predict(PROBES)
    model.partial_fit(X[:rows], y[:rows] + 1.0, sample_weight=[5e-324] * rows)
    np.testing.assert_allclose(model.predict(PROBES), before, rtol=1e-10)
    assert np.isfinite(model.certificate()["regret_bound"])


@pytest.mark.parametrize("forget", [None, 50.0])
def test_classes_that_come_late_are_as_if_they_had_been_known(forget):
    X, y = stream("multiclass", 400)
    order = np.argsort(y * 60 + np.random.default_rng(0).uniform(0, 150, 400))  # new classes come one after the other
    X, y = X[order], np.array(list("cadb"))[y[order]]
    late, known = kl.KRLSClassifier(forget=forget, **SMALL), kl.KRLSClassifier(forget=forget, **SMALL)
    known.partial_fit(X[:1], y[:1], classes=list("abcd"))
    for first in range(0, 400, 37):
        late.partial_fit(X[first : first + 37], y[first : first + 37])
        known.partial_fit(X[max(first, 1) : first + 37], y[max(first, 1) : first + 37])
        if len(late.classes_) > 2:
            met = np.isin(list("abcd"), late.classes_)
            np.testing.assert_allclose(late.decision_function(PROBES), known.decision_function(PROBES)[:, met], atol=1e-8)
    np.testing.assert_array_equal(late.classes_, list("abcd"))
    own, expected = (trimmed(model.state_).squares for model in (late, known))
    if not forget:  # a ridge that comes back adds to the loss
        np.testing.assert_allclose(own.losses, expected.losses, rtol=1e-8)
    assert own.size[WAITING] == expected.size[WAITING]  # events are not folded because of a class
    np.testing.assert_allclose(own.folded().moments, expected.folded().moments, atol=1e-8)


@pytest.mark.parametrize("forget", [None, 100.0])
@pytest.mark.parametrize("points", [20, 60])
def test_losses_of_late_classes_are_those_of_known_ones(points, forget):
    """Also where events wait; at most until a forgotten ridge comes back."""
    X, y = np.random.default_rng(0).normal(size=(90, 3)), np.r_[np.arange(60) % 2, np.arange(30) % 7]
    late, known = (kl.KRLSClassifier(gamma=1.0, points=points, forget=forget) for _ in range(2))
    late.partial_fit(X, y)
    known.partial_fit(X, y, classes=np.arange(7))
    own, expected = late.state_.squares, known.state_.squares
    assert len(own.losses) > 7 == len(expected.losses)  # there is room for another
    np.testing.assert_allclose(own.losses[own.places], expected.losses, rtol=1e-9)
    assert own.noise == pytest.approx(expected.noise, rel=1e-9)


def test_forgetting_follows_what_moves():
    X, _ = stream("regression", 3000)
    y = np.where(np.arange(3000) < 1500, 1.0, -1.0) * np.sin(2.0 * X[:, 0])
    errors = [np.abs(Published(forget=h, **SMALL).predict_then_learn(X, y) - y)[2000:].mean() for h in (None, 100.0)]
    assert errors[1] < 0.1 * errors[0]


@pytest.mark.parametrize("forget", [1.0, 5.0, 300.0])
def test_the_ridge_comes_back_at_fixed_counts_whatever_the_calls(forget):
    X, y = stream("regression", 700)
    models = []
    for cuts in (range(0, 701, 700), range(0, 701, 7), [0, 1, 130, 131, 400, 700]):
        model = Published(forget=forget, **SMALL)
        for first, last in pairwise(cuts):
            model.partial_fit(X[first:last], y[first:last])
        models.append(model)
    since = 700 % max(16, int(forget))
    for model in models:
        assert model.state_.squares.rho == pytest.approx(0.1 * 0.5 ** (since / forget))
        np.testing.assert_allclose(model.predict(PROBES), models[0].predict(PROBES), rtol=1e-6, atol=1e-6)


# ---------------------------------------------------------------------- how sure it is


@pytest.mark.parametrize("forget", [None, 40.0])
@pytest.mark.parametrize("rows", [1, 300])  # one by one, or in blocks
def test_deviations_are_those_of_the_posterior(forget, rows):
    """With forgetting, errors count less the older they are, and so does the ridge until it comes back."""
    X, y = stream("regression", 300)
    model = Published(ridge=0.3, forget=forget, **SMALL)
    for first in range(0, 300, rows):
        model.partial_fit(X[first : first + rows], y[first : first + rows])
    oracle, keep = KRLS(model.get_params(deep=False), 3, 1), 0.5 ** (1.0 / forget) if forget else 1.0
    noise = []
    for x, target in zip(X, y, strict=True):
        e, ridge = target - oracle.scores(x)[0], 0.3 * keep**oracle.since
        known = oracle.A if oracle.rows else np.zeros((0, 0))
        oracle.learn(x, target, 1.0, 0.0)
        z = oracle.rows[-1]
        A = ridge * np.eye(len(z))
        A[: len(known), : len(known)] = known
        noise.append(e**2 / (1.0 + z @ np.linalg.solve(keep * A, z)))
    noise = np.average(noise, weights=keep ** np.arange(299.0, -1.0, -1.0))
    probes = np.array([*PROBES, np.full(3, 30.0)])
    spread = [oracle.features(x) @ np.linalg.solve(oracle.A, oracle.features(x)) for x in probes]
    unseen = [(1.0 - np.sum(oracle.z(x) ** 2)) / (0.3 * keep**oracle.since) for x in probes]
    values, deviations = model.predict(probes, return_std=True)
    np.testing.assert_array_equal(values, model.predict(probes))
    np.testing.assert_allclose(deviations, np.sqrt(noise * (1.0 + np.array(spread) + unseen)), rtol=1e-7)


def test_deviations_cover_the_errors_and_grow_away_from_the_data():
    X, y = stream("regression", 4000)
    model = Published(gamma=1.0, points=100).fit(X[:3000], y[:3000])
    values, deviations = model.predict(X[3000:], return_std=True)
    assert 0.62 < np.mean(np.abs(y[3000:] - values) <= deviations) < 0.74  # 0.683 of a normal distribution
    assert 0.09 < deviations.mean() < 0.12  # the noise is 0.1
    assert model.predict([[9.0, 9.0, 9.0]], return_std=True)[1][0] > 3.0 * deviations.max()
    rows = sparse.csr_array(X[3000:])
    np.testing.assert_allclose(model.predict(rows, return_std=True)[1], deviations, rtol=1e-9)


def test_nothing_is_known_before_the_first_event():
    model = Published(**SMALL).partial_fit(PROBES, np.zeros(40), sample_weight=np.zeros(40))
    assert np.isinf(model.predict(PROBES, return_std=True)[1]).all()


# ---------------------------------------------------------------------- merging


@pytest.mark.parametrize("params", [dict(features="linear"), dict(features="fourier", points=20, random_state=1)])
@pytest.mark.parametrize("kind", ["regression", "multiclass"])
def test_sums_of_the_same_features_add_up(kind, params):
    X, y = stream(kind, 900)
    cls = Published if kind == "regression" else kl.KRLSClassifier
    parts = [cls(gamma=1.0, **params).fit(X[i : i + 300], y[i : i + 300]) for i in (0, 300, 600)]
    whole = cls(gamma=1.0, **params).fit(X, y)
    merged = kl.merge(parts)
    np.testing.assert_allclose(merged._scores(PROBES), whole._scores(PROBES), rtol=1e-8)
    heavier = cls(gamma=1.0, **params).fit(X[:600], y[:600], sample_weight=np.repeat([1.5, 0.5], 300))
    np.testing.assert_allclose(kl.merge(parts[:2], [3.0, 1.0])._scores(PROBES), heavier._scores(PROBES), rtol=1e-8)
    more = stream(kind, 100, seed=5)
    np.testing.assert_allclose(merged.partial_fit(*more)._scores(PROBES), whole.partial_fit(*more)._scores(PROBES), rtol=1e-8)


def test_sums_on_the_same_points_add_up():
    X, y = stream("multiclass", 900)
    start = kl.KRLSClassifier(**SMALL).partial_fit(X[:300], y[:300], classes=range(4))
    assert start.n_stored_ == 30  # there is no room for others
    parts = [kl.merge([start]).partial_fit(X[i : i + 300], y[i : i + 300]) for i in (300, 600)]
    merged = kl.merge(parts, start=start)
    whole = kl.KRLSClassifier(**SMALL).partial_fit(X, y, classes=range(4))
    np.testing.assert_allclose(merged.decision_function(PROBES), whole.decision_function(PROBES), rtol=1e-7, atol=1e-9)
    assert merged.t_ == 900
    assert merged.n_stored_ == 30


def test_models_with_points_of_their_own_make_the_mean_and_go_on():
    X, y = stream("regression", 4000)
    parts = [Published(**SMALL).fit(X[i : i + 1000], y[i : i + 1000]) for i in (0, 1000)]
    merged = kl.merge(parts)
    assert merged.n_stored_ == 30
    mean = sum(model.predict(PROBES) for model in parts) / 2.0
    error = merged.certificate()["merge_error"]
    assert 0.0 < np.abs(merged.predict(PROBES) - mean).max() <= error
    before = np.mean((merged.predict(X[3000:]) - y[3000:]) ** 2)
    merged.partial_fit(X[2000:3000], y[2000:3000])
    assert np.mean((merged.predict(X[3000:]) - y[3000:]) ** 2) < before
    assert drift(merged.state_.squares) < 1e-8


# ---------------------------------------------------------------------- numbers


def drift(squares) -> float:
    """How far factor and weights are from what the sums say."""
    n = squares.count
    R, upper = (np.triu(flat[: n * n].reshape(n, n)) for flat in (squares.factor, squares.squares))
    A = upper + np.triu(upper, 1).T + squares.record[RHO] * np.eye(n)
    W = np.linalg.solve(A, squares.moments[:, :n].T).T
    return max(np.abs(R.T @ R - A).max() / np.abs(A).max(), np.abs(squares.weights[:, :n] - W).max() / np.abs(W).max())


@pytest.mark.parametrize("n", [200_000, pytest.param(10_000_000, marks=pytest.mark.long)])
@pytest.mark.parametrize("forget", [None, 1000.0])
def test_rounding_does_not_pile_up(n, forget):
    rng = np.random.default_rng(0)
    model = Published(gamma=1.0, points=25, ridge=1e-3, forget=forget)
    sizes = set()
    for _ in range(0, n, 50_000):
        X = rng.uniform(-1.0, 1.0, size=(50_000, 3))
        model.partial_fit(X, np.sin(2.0 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.normal(size=50_000))
        sizes.add(model.nbytes_)
    squares = model.state_.squares
    assert model.t_ == squares.record[EVENTS] == n
    assert len(sizes) == 1
    assert drift(squares) < 1e-7


@pytest.mark.parametrize("rows", [1, 8, 300])  # one by one, a few at a time, in blocks
def test_a_spoilt_factor_is_computed_anew_from_the_sums(rows):
    X, y = stream("regression", 3000)
    model, sound = (Published(**SMALL).fit(X[:900], y[:900]) for _ in range(2))
    model._state.squares.factor[:] *= 1.001  # spoilt on purpose
    assert drift(model.state_.squares) > 1e-4
    for first in range(900, 2100, rows):
        model.partial_fit(X[first : first + rows], y[first : first + rows])
    sound.partial_fit(X[900:2100], y[900:2100])
    assert drift(model.state_.squares) < 1e-9
    np.testing.assert_allclose(model.predict(PROBES), sound.predict(PROBES), rtol=1e-8)


@pytest.mark.parametrize("size", [1e3, 1e8, 1e20])
def test_huge_rows_and_targets_leave_a_finite_model(size):
    X, y = stream("regression", 300)
    rows = np.repeat(X[:100] * size, 3, axis=0)
    model = Published(features="linear").fit(rows, y * size)
    assert np.isfinite(model.predict(rows)).all()
    assert np.isfinite(model.predict(rows, return_std=True)[1]).all()


# ---------------------------------------------------------------------- rows of all kinds


@pytest.mark.parametrize("check", checks.SAMPLED)
@pytest.mark.parametrize("name", ["KRLSClassifier", "KRLSRegressor"])
def test_kinds_of_rows(check, name):
    check(getattr(kl, name), CASES[name][0])


def test_memory_is_bounded_by_the_number_of_points():
    rng = np.random.default_rng(0)
    model = Published(points=100)
    for _ in range(10):
        X = rng.normal(size=(500, 10))
        model.partial_fit(X, X[:, 0])
    n = 111
    assert model.n_stored_ == 100
    assert model.state_.squares.factor.nbytes == model.state_.squares.squares.nbytes == 8 * n * n
    waiting = 8 * (2 * n * BLOCK + BLOCK * BLOCK)
    assert model.nbytes_ < 8 * (2 * n * n + 100 * 100) + 8 * 10 * 500 + waiting + 20_000
