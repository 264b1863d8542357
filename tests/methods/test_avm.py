"""AVM: what the paper proves or prints, and the limit cases in which it is another method.

T. Le, T. D. Nguyen, V. Nguyen, D. Phung: Approximation Vector Machines for Large-scale Online Learning, JMLR 18, 2017.
"""

import lzma
import math
from functools import partial

import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import cdist
from scipy.special import expit, zeta
from sklearn.datasets import load_svmlight_file
from sklearn.metrics.pairwise import euclidean_distances, rbf_kernel

from kernling import AVMClassifier, AVMRegressor, kernel
from oracles import stream


def points_and_cores(model):
    """All stored points, and which of them are cores."""
    inside, n = model.state_.model, model.n_stored_
    return inside.points[:n] + inside.centre, inside.tags[0, :n] == 0.0


def norm(model):
    """||w||, over all outputs."""
    coef = model.dual_coef_.reshape(model.n_support_, -1)
    gram = kernel(model.kernel, model.gamma_, model.degree)(model.support_vectors_, model.support_vectors_)
    return math.sqrt(max(0.0, np.einsum("ko,kl,lo->", coef, gram, coef)))


# ---------------------------------------------------------------------- delta = 0: plain kernel SGD


def plain_sgd(X, y, gamma, lam, slope):
    """Scores at the rows of the models w_1 .. w_{T+1} of stochastic gradient descent with steps 1 / (lam t)."""
    K = rbf_kernel(X, gamma=gamma)
    models = [np.zeros(len(X))]
    for t in range(1, len(X) + 1):
        a = (t - 1) / t * models[-1]
        a[t - 1] -= slope(K[t - 1] @ models[-1], y[t - 1]) / (lam * t)
        models.append(a)
    return np.array(models) @ K


PAPER = {"output": "last", "lam": 1e-4, "eta": None, "zero_cells": True, "max_cells": None}
PublishedClassifier = partial(AVMClassifier, **PAPER)
PublishedRegressor = partial(AVMRegressor, standardise_target=False, **PAPER)
SLOPES = {
    "hinge": lambda f, y: -y if y * f < 1.0 else 0.0,
    "logistic": lambda f, y: -y * expit(-y * f),
}


@pytest.mark.parametrize("loss", SLOPES)
@pytest.mark.parametrize("coverage", ["sphere", "box"])
def test_without_cells_it_is_plain_sgd(loss, coverage):
    X, y = stream("binary", 300, seed=3)
    X[50:60] = X[:10]  # repeated rows stay rows of their own
    scores = plain_sgd(X, 2.0 * y - 1.0, 1.5, 0.02, SLOPES[loss])
    for output, expected in (
        ("last", scores[300]),
        ("average", scores[:300].mean(axis=0)),
        ("suffix", scores[300 - 75 : 300].mean(axis=0)),
    ):
        model = PublishedClassifier(
            loss=loss, lam=0.02, delta=0.0, gamma=1.5, coverage=coverage, output=output, suffix=0.25
        ).fit(X, y)
        np.testing.assert_allclose(model.decision_function(X), expected, atol=1e-10)
        assert model.n_stored_ == 300


@pytest.mark.parametrize("delta", [0.3, 1.0])
def test_the_margin_rule_with_the_hinge_loss_is_plain_sgd(delta):
    X, y = stream("binary", 400, seed=4)
    settings = {"lam": 0.02, "gamma": 1.5}
    model = PublishedClassifier(delta=delta, approximate="margin", **settings).fit(X, y)
    plain = PublishedClassifier(delta=0.0, **settings).fit(X, y)
    np.testing.assert_allclose(model.decision_function(X), plain.decision_function(X), atol=1e-10)
    assert model.n_support_ == plain.n_support_


def test_the_margin_rule_with_the_logistic_loss_approximates():
    X, y = stream("binary", 1000, seed=4)
    model = PublishedClassifier(loss="logistic", delta=0.8, approximate="margin", lam=0.005, gamma=1.5).fit(X, y)
    assert 0 < model.n_cells_ < model.n_stored_ < 900


# ---------------------------------------------------------------------- cells


@pytest.mark.parametrize("approximate", ["always", "bernoulli"])
@pytest.mark.parametrize("delta", [0.3, 0.7])
def test_spheres_are_apart_and_cover(approximate, delta):
    X, y = stream("binary", 1500, seed=5)
    model = PublishedClassifier(gamma=2.0, delta=delta, approximate=approximate, beta=5.0, random_state=0).fit(X, y)
    points, is_core = points_and_cores(model)
    cores = points[is_core]
    assert len(cores) == model.n_cells_
    distances = euclidean_distances(cores)
    assert distances[~np.eye(len(cores), dtype=bool)].min() >= delta / 2.0 - 1e-8
    farthest = model.certificate()["farthest"]
    assert 0.0 < farthest < delta / 2.0
    if approximate == "always":
        nearest = euclidean_distances(X, cores).min(axis=1)
        assert nearest.max() < delta / 2.0


@pytest.mark.parametrize("delta", [0.5, 1.2])
def test_boxes_are_apart_and_cover(delta):
    X, y = stream("binary", 1500, seed=5)
    model = PublishedClassifier(gamma=2.0, delta=delta, coverage="box").fit(X, y)
    cores, is_core = points_and_cores(model)
    assert is_core.all()
    half = delta / (2.0 * math.sqrt(3.0))
    sup = np.abs(cores[:, None] - cores[None]).max(axis=2)
    assert sup[~np.eye(len(cores), dtype=bool)].min() >= half
    assert np.abs(X[:, None] - cores[None]).max(axis=2).min(axis=1).max() < half
    assert 0.0 < model.certificate()["farthest"] < delta / 2.0


@pytest.mark.parametrize("coverage", ["sphere", "box"])
@pytest.mark.parametrize("kernel_name", ["rbf", "exponential", "matern32", "matern52", "rational_quadratic", "cauchy"])
def test_no_event_is_farther_in_feature_space_than_certified(coverage, kernel_name):
    X, y = stream("binary", 1000, seed=6)
    model = PublishedClassifier(gamma=2.0, delta=0.6, coverage=coverage, kernel=kernel_name).fit(X, y)
    certified = model.certificate()["delta_phi"]
    if kernel_name == "rbf":
        assert certified == pytest.approx(math.sqrt(2.0 * (1.0 - math.exp(-2.0 * 0.6**2 / 4.0))), rel=1e-9)
    cores, _ = points_and_cores(model)
    k = kernel(kernel_name, 2.0)(X, cores)
    if coverage == "box":
        inside = np.abs(X[:, None] - cores[None]).max(axis=2) < 0.6 / (2.0 * math.sqrt(3.0))
        k = k[np.arange(len(X)), inside.argmax(axis=1)]
    else:
        k = k.max(axis=1)
    distances = np.sqrt(2.0 * (1.0 - k))
    assert 0.5 * certified < distances.max() <= certified


@pytest.mark.parametrize("sides", [(1.0, 1.0), (2.0, 0.5, 1.0)])
@pytest.mark.parametrize("coverage", ["sphere", "box"])
@pytest.mark.parametrize("delta", [0.4, 1.0, 5.0])
def test_cells_number_at_most_the_grid_that_holds_one_core_each(sides, coverage, delta):
    rng = np.random.default_rng(7)
    X = rng.uniform(0.0, sides, size=(4000, len(sides)))
    model = PublishedClassifier(gamma=1.0, delta=delta, coverage=coverage).fit(X, rng.integers(0, 2, 4000))
    h = delta / (2.0 * math.sqrt(len(sides)))
    assert model.n_stored_ == model.n_cells_ <= math.prod(math.floor(side / h) + 1 for side in sides)


@pytest.mark.parametrize(
    ("beta", "rho", "kept"),
    [
        (8.0, 1.0, lambda T: 8.0 * (math.log(T) + 1.0)),
        (2.0, 0.5, lambda T: 2.0 * T**0.5 / 0.5),
        (6.0, 1.5, lambda T: 6.0 * zeta(1.5)),
    ],
)
def test_bernoulli_keeps_few_points_besides_its_cells(beta, rho, kept):
    T = 2000
    X, y = stream("binary", T, seed=8)
    sizes, cells = [], []
    for seed in range(30):
        rule = dict(approximate="bernoulli", beta=beta, rho=rho, random_state=seed)
        model = PublishedClassifier(loss="logistic", gamma=1.0, delta=0.8, **rule)
        model.fit(X, y)
        sizes.append(model.n_stored_)
        cells.append(model.n_cells_)
    t = np.arange(1, T + 1)
    q = np.minimum(1.0, beta / t**rho)
    outside = np.array(sizes) - cells
    error = 4.0 * math.sqrt((q * (1.0 - q)).sum() / 30)
    assert q.sum() <= kept(T)
    assert abs(outside.mean() - q.sum()) <= error  # the logistic loss has no flat part: every coin that falls so keeps a point
    assert np.mean(sizes) <= kept(T) + np.mean(cells)


def test_events_without_loss_open_no_cells_when_told_so():
    X, y = stream("binary", 2000, seed=9)
    settings = {"gamma": 1.0, "delta": 0.5, "lam": 0.001}
    model = PublishedClassifier(zero_cells=False, **settings)
    margins = (2.0 * y - 1.0) * model.predict_then_learn(X, y, method="decision_function", classes=[0, 1])
    assert model.n_cells_ < PublishedClassifier(**settings).fit(X, y).n_cells_
    cores, _ = points_and_cores(model)
    opened = (cdist(X, cores) < 1e-9).any(axis=1)
    assert opened.sum() == model.n_cells_
    assert margins[opened].max() < 1.0


def test_max_cells_drops_what_lies_outside():
    X, y = stream("binary", 1000, seed=10)
    free = PublishedClassifier(gamma=2.0, delta=0.6).fit(X, y)
    assert free.n_dropped_ == 0
    limited = PublishedClassifier(gamma=2.0, delta=0.6, max_cells=20, when_full="drop").fit(X, y)
    assert limited.n_stored_ == limited.n_cells_ == 20 < free.n_cells_
    cores, _ = points_and_cores(limited)
    complete = int(np.flatnonzero((cores[-1] == X).all(axis=1))[0])  # from here on no cell opens
    outside = euclidean_distances(X[complete + 1 :], cores).min(axis=1) >= 0.3
    assert limited.n_dropped_ == outside.sum() > 0
    assert limited.t_ == 1000


def test_at_the_limit_the_cell_not_visited_for_longest_goes():
    X = np.array([[0.0], [10.0], [20.0], [0.1], [30.0], [20.1]])
    model = AVMClassifier(gamma=1.0, delta=1.0, max_cells=3, zero_cells=True)
    model.partial_fit(X[:4], [0, 1, 0, 0]).partial_fit(X[4:], [1, 0])
    cores, _ = points_and_cores(model)
    assert sorted(cores[:, 0]) == [0.0, 20.0, 30.0]  # 10 was visited once, before 20 and the second visit of 0
    assert (model.n_cells_, model.n_replaced_, model.n_dropped_) == (3, 1, 0)


@pytest.mark.parametrize("as_rows", [np.array, sparse.csr_array])
@pytest.mark.parametrize("coverage", ["sphere", "box"])
def test_replaced_cells_do_not_depend_on_blocks(as_rows, coverage):
    X, y = stream("multiclass", 1500, seed=10)
    X = X.round(1)  # many equal distances
    settings = {"gamma": 2.0, "delta": 0.7, "max_cells": 30, "coverage": coverage}
    one, many = (AVMClassifier(block_size=size, **settings).fit(as_rows(X), y) for size in (1, 128))
    assert one.n_replaced_ == many.n_replaced_ > 100
    np.testing.assert_array_equal(one.support_vectors_, many.support_vectors_)
    np.testing.assert_allclose(one.decision_function(X), many.decision_function(X), atol=1e-9)


def test_a_limit_follows_a_stream_that_moves():
    rng = np.random.default_rng(21)
    centre = np.repeat(np.arange(20.0), 200)[:, np.newaxis] * 5.0  # a new place every 200 events
    X = centre + rng.uniform(-1.0, 1.0, (4000, 2))
    y = (X[:, 1] > centre[:, 0]).astype(int)
    replaced, dropped = (
        np.mean(AVMClassifier(gamma=1.0, delta=0.5, max_cells=60, when_full=when_full).predict_then_learn(X, y) != y)
        for when_full in ("replace", "drop")
    )
    assert replaced < 0.5 * dropped


def test_no_step_exceeds_eta():
    X, y = stream("binary", 500, seed=3)
    model = AVMClassifier(gamma=1.0, delta=0.0, lam=0.01, eta=0.5, max_cells=None, output="last").partial_fit(
        X[:1], y[:1], classes=[0, 1]
    )
    assert np.abs(model.dual_coef_).max() == pytest.approx(0.5)
    model.partial_fit(X[1:], y[1:])
    assert np.abs(model.dual_coef_).max() <= 0.5
    late = AVMClassifier(gamma=1.0, delta=0.5, lam=0.01, eta=1000.0).fit(X, y)  # more than 1 / lam: the paper's steps
    paper = AVMClassifier(gamma=1.0, delta=0.5, lam=0.01, eta=None).fit(X, y)
    np.testing.assert_array_equal(late.decision_function(X), paper.decision_function(X))


# ---------------------------------------------------------------------- norms


@pytest.mark.parametrize("loss", ["hinge", "smooth_hinge", "logistic"])
@pytest.mark.parametrize(("kind", "factor"), [("binary", 1.0), ("multiclass", math.sqrt(2.0))])
@pytest.mark.parametrize("lam", [0.01, 1.0])
def test_norm_of_lipschitz_classifiers(loss, kind, factor, lam):
    X, y = stream(kind, 150, seed=11)
    model = PublishedClassifier(loss=loss, gamma=1.0, delta=0.5, lam=lam)
    largest = 0.0
    for i in range(150):
        model.partial_fit(X[i : i + 1], y[i : i + 1], classes=np.unique(y))
        largest = max(largest, norm(model))
        assert norm(model) <= factor / lam * (1.0 + 1e-12)
    assert model.certificate()["norm_bound"] == pytest.approx(factor / lam)
    assert largest > 0.2 * factor / lam


@pytest.mark.parametrize("loss", ["l1", "epsilon_insensitive"])
def test_norm_of_lipschitz_regressors(loss):
    X, y = stream("regression", 150, seed=11)
    model = PublishedRegressor(loss=loss, gamma=1.0, delta=0.5, lam=0.1)
    for i in range(150):
        model.learn_one(X[i], y[i])
        assert norm(model) <= 10.0 * (1.0 + 1e-12)
    assert norm(PublishedRegressor(loss=loss, gamma=1.0, delta=0.5, lam=0.1).fit(X[:1], [5.0])) == pytest.approx(10.0)


@pytest.mark.parametrize("lam", [1.5, 4.0])
def test_norm_with_l2_and_a_strong_regulariser(lam):
    X, y = stream("regression", 300, seed=12)
    y_max = np.abs(y).max()
    model = PublishedRegressor(loss="l2", gamma=1.0, delta=0.5, lam=lam)
    for i in range(300):
        model.learn_one(X[i], y[i])
        assert norm(model) < y_max / (lam - 1.0)
    assert model.certificate()["norm_bound"] == pytest.approx(y_max / (lam - 1.0))


@pytest.mark.parametrize("lam", [0.05, 0.5, 1.0])
@pytest.mark.parametrize("y_max", [None, 2.0])
@pytest.mark.parametrize("approximate", ["always", "bernoulli"])
def test_norm_with_l2_and_the_ball(lam, y_max, approximate):
    X, y = stream("regression", 300, seed=12)
    rule = dict(approximate=approximate, beta=3.0, random_state=0)
    model = PublishedRegressor(loss="l2", gamma=1.0, delta=0.5, lam=lam, y_max=y_max, **rule)
    attained = 0
    for i in range(300):
        model.learn_one(X[i], y[i])
        radius = (y_max or np.abs(y[: i + 1]).max()) / math.sqrt(lam)
        assert norm(model) <= radius * (1.0 + 1e-9)
        attained += norm(model) >= radius * (1.0 - 1e-9)
    assert model.certificate()["norm_bound"] == pytest.approx(radius)
    assert attained > 0 or lam == 1.0 or y_max


@pytest.mark.parametrize("lam", [0.01, 0.25, 1.0])
def test_the_ball_is_reached_right_after_the_first_event(lam):
    y_max = 3.0
    for y in (math.sqrt(lam) * y_max * 1.01, -y_max):
        model = PublishedRegressor(loss="l2", gamma=1.0, delta=0.5, lam=lam, y_max=y_max).partial_fit([[0.3, 0.4]], [y])
        assert norm(model) == pytest.approx(y_max / math.sqrt(lam), rel=1e-12)
    model = PublishedRegressor(loss="l2", gamma=1.0, delta=0.5, lam=lam, y_max=y_max)
    inside = model.partial_fit([[0.3]], [0.9 * math.sqrt(lam) * y_max])
    assert norm(inside) == pytest.approx(0.9 * y_max / math.sqrt(lam), rel=1e-12)


def test_the_norm_does_not_drift_over_a_long_stream():
    X, y = stream("regression", 20_000, seed=13)
    model = PublishedRegressor(loss="l2", gamma=1.0, delta=0.5, lam=0.01).fit(X, y)
    kept = model.state_.model.clock[0] * math.sqrt(model.state_.norm.square[0])
    assert kept == pytest.approx(norm(model), rel=1e-9)


@pytest.mark.parametrize("output", ["last", "average", "suffix"])
@pytest.mark.parametrize("loss", ["hinge", "smooth_hinge", "logistic"])
def test_multiclass_coefficients_sum_to_zero(loss, output):
    X, y = stream("multiclass", 500, seed=14)
    model = PublishedClassifier(loss=loss, gamma=1.0, delta=0.5, lam=0.01, output=output).fit(X, y)
    rows = model.dual_coef_
    assert np.abs(rows).max() > 0.1
    np.testing.assert_allclose(rows.sum(axis=1), 0.0, atol=1e-10)


# ---------------------------------------------------------------------- the diameter from the data


@pytest.mark.parametrize("as_rows", [np.array, sparse.csr_array])
def test_auto_delta_opens_at_most_400_cells_and_no_smaller_one_does(as_rows):
    rng = np.random.default_rng(15)
    X = rng.normal(size=(3000, 5))
    y = rng.integers(0, 2, 3000)
    model = PublishedClassifier().fit(as_rows(X), y)
    found = PublishedClassifier(delta=model.delta_).fit(X[:1000], y[:1000])
    assert found.n_cells_ <= 400
    assert PublishedClassifier(delta=0.99 * model.delta_).fit(X[:1000], y[:1000]).n_cells_ > 400
    assert PublishedClassifier().partial_fit(X[:1000], y[:1000]).delta_ == pytest.approx(model.delta_)


def test_delta_and_gamma_of_few_rows():
    X, y = stream("binary", 10, seed=16)
    model = PublishedClassifier().partial_fit(X, y)
    variance = (30.0 * X.var() + 2.0) / 32.0
    assert model.gamma_ == pytest.approx(1.0 / (3.0 * variance))
    assert model.delta_ == pytest.approx(math.sqrt(0.5 * 3.0 * variance))
    flat = AVMClassifier().partial_fit(np.zeros((1, 4)), [0])  # as the first row of standardised columns
    assert flat.gamma_ == 0.25


def test_delta_and_gamma_are_resolved_once():
    X, y = stream("binary", 400, seed=16)
    model = PublishedClassifier().partial_fit(X[:200], y[:200])
    gamma, delta = model.gamma_, model.delta_
    assert gamma == pytest.approx(1.0 / (3.0 * X[:200].var()))
    model.partial_fit(10.0 * X[200:], y[200:])
    assert (model.gamma_, model.delta_) == (gamma, delta)


# ---------------------------------------------------------------------- published numbers


def shuffled_mistakes(X, y, **params):
    """Percentage of mistakes of one pass, and points stored: means over three orders of the rows."""
    rates, points = [], []
    for seed in range(3):
        order = np.random.default_rng(seed).permutation(len(y))
        model = PublishedClassifier(**params)
        predicted = model.predict_then_learn(X[order], y[order])
        rates.append(100.0 * np.mean(predicted != y[order]))
        points.append(model.n_stored_)
    return np.mean(rates), np.mean(points)


def both_parts(folder, name, n_features):
    parts = []
    for part in (f"{name}.xz", f"{name}.t.xz"):
        with lzma.open(folder / part) as file:
            parts.append(load_svmlight_file(file, n_features=n_features, zero_based=False))
    return sparse.csr_array(sparse.vstack([X for X, _ in parts])), np.concatenate([y for _, y in parts])


@pytest.mark.parametrize("coverage", ["sphere", "box", "printed_box"])
def test_sparse_rows_fall_into_the_same_cells(coverage):
    rng = np.random.default_rng(0)
    X = rng.random((300, 6)) * (rng.random((300, 6)) < 0.5)
    y = X[:, 0] + X[:, 1] > 0.5
    settings = {"gamma": 2.0, "lam": 1e-2, "delta": 0.7, "coverage": coverage}
    dense, thin = (AVMClassifier(**settings).fit(rows, y) for rows in (X, sparse.csr_array(X)))
    assert dense.n_cells_ == thin.n_cells_
    np.testing.assert_allclose(dense.decision_function(X), thin.decision_function(X), atol=1e-10)


@pytest.mark.parametrize(("output", "expected"), [("last", 17.51), ("average", 17.46)])
def test_a9a(data_folder, output, expected):
    X, y = both_parts(data_folder, "a9a", 123)
    assert X.shape == (48842, 123)
    rate, points = shuffled_mistakes(X, y, gamma=2.0**-4, lam=16.0 / len(y), delta=7.0, output=output)
    assert rate == pytest.approx(expected, abs=0.15)  # the paper: 17.46 +- 0.12 with 142 points
    assert points == pytest.approx(136, abs=10)


def test_ijcnn1(data_folder):
    X, y = both_parts(data_folder, "ijcnn1", 22)
    assert X.shape == (141691, 22)
    rate, points = shuffled_mistakes(X.toarray(), y, gamma=1.0, lam=1.7857e-5, delta=1.0, max_cells=500, when_full="drop")
    assert rate == pytest.approx(7.56, abs=0.15)  # the paper: 8.01
    assert points == 500
