"""Facts about AOGD and learning from pairs."""

from itertools import product

import numpy as np
import pytest
from sklearn.metrics import balanced_accuracy_score, roc_auc_score

import checks
from kernling import AOGDClassifier, AOGDMetric, AOGDRanker, kernel
from kernling.baselines import LastPointOGDClassifier, OPAUCClassifier
from kernling.components.threshold import RECENT
from kernling.driver.scoring import frozen_parts
from kernling.evaluate import AUC, Batch
from kernling.papers import dataset
from oracles import stream
from oracles.pairs import Recent

PAPER = {"output": "average", "mean_events": None}  # means of all events, and of all models
LINEAR = {"features": "linear", "output": "last", "mean_events": None}


def features(model, X):
    (part,) = frozen_parts(model._setup, model._state)
    return checks.features(part, X)


def weights(model):
    return model.state_.model.coef[0, 0].copy()


# ---------------------------------------------------------------------- the two steps


@pytest.mark.parametrize(("eta", "second_eta"), [(0.1, 0.03), (0.05, 0.0), (0.0, 0.2)])
def test_constant_classes_have_a_closed_form(eta, second_eta):
    positive, negative = np.array([1.0, 0.5, -0.3]), np.array([0.2, -0.4, 0.1])
    d = positive - negative
    q = d @ d
    for t in (1, 2, 3, 10, 41):
        X = np.array([positive if i % 2 else negative for i in range(t)])
        y = np.arange(t) % 2
        model = AOGDClassifier(eta=eta, second_eta=second_eta, **LINEAR).partial_fit(X, y, classes=[0, 1])
        expected = (1.0 - ((1.0 - eta * q) * (1.0 - second_eta * q)) ** (t - 1)) * d / q
        np.testing.assert_allclose(weights(model), expected, atol=1e-14)


def rare(n, seed):
    """Events of which about one in ten is positive."""
    X, y = stream("binary", n, seed=seed)
    kept = (y == 0) | (np.arange(n) % 9 == 0)
    return X[kept], y[kept]


@pytest.mark.parametrize("weighting", ["pairs", "events"])
def test_the_squared_loss_is_an_affine_recursion_on_batch_means(weighting):
    X, y = rare(400, seed=1)
    eta, second_eta = 0.3, 0.1
    w = np.zeros(3)
    for t in range(len(y)):
        other = X[:t][y[:t] != y[t]]
        if len(other):
            weight = min(1.0, 2.0 * len(other) / t) if weighting == "pairs" else 1.0
            for s, partner in ((eta, other.mean(axis=0)), (second_eta, other[-1])):
                d = (2 * y[t] - 1) * (X[t] - partner)
                w = (np.eye(3) - weight * s * np.outer(d, d)) @ w + weight * s * d
    model = AOGDClassifier(eta=eta, second_eta=second_eta, refresh=1.0, weighting=weighting, **LINEAR).fit(X, y)
    np.testing.assert_allclose(weights(model), w, atol=1e-12)


def test_pairs_weigh_like_events_if_classes_take_turns():
    X, y = stream("binary", 300, seed=1)
    y = np.arange(300) % 2
    pairs, events = (AOGDClassifier(weighting=weighting, random_state=0).fit(X, y) for weighting in ("pairs", "events"))
    np.testing.assert_array_equal(pairs.rank_scores(X), events.rank_scores(X))


def test_pairs_rank_rare_positives_better_than_events():
    """A line in ten columns, one event in a hundred positive: steps of one size follow the noise in the mean of positives."""
    gains = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(12_000, 10))
        logit = X @ rng.normal(size=10) / 3.0
        y = rng.random(12_000) < 0.01 * np.exp(logit) / np.mean(np.exp(logit))
        areas = {}
        for weighting in ("pairs", "events"):
            model = AOGDClassifier(weighting=weighting, n_components=400, random_state=seed)
            scores = model.predict_then_learn(X, y, method="decision_function", classes=[False, True])
            areas[weighting] = roc_auc_score(y[2000:], scores[2000:])
        gains.append(areas["pairs"] - areas["events"])
    assert min(gains) > 0.02


def test_more_than_two_classes_are_weighted_by_events():
    X, y = stream("multiclass", 300, seed=1)
    pairs, events = (AOGDClassifier(weighting=weighting, random_state=0).fit(X, y) for weighting in ("pairs", "events"))
    np.testing.assert_array_equal(pairs.rank_scores(X), events.rank_scores(X))


@pytest.mark.parametrize("settings", [LINEAR, {"gamma": 1.0, "n_components": 60, "random_state": 0, **PAPER}])
def test_moving_means_are_batch_means(settings):
    X, y = stream("binary", 1000, seed=2)
    model = AOGDClassifier(**settings)
    for part in np.array_split(np.arange(1000), 7):
        model.partial_fit(X[part], y[part])
    sides = model.state_.sides
    Z = features(model, X)
    for side in (0, 1):
        np.testing.assert_allclose(sides.means[0, side], Z[y == side].mean(axis=0), atol=1e-13)
        assert sides.counts[0, side] == np.count_nonzero(y == side)


def test_a_refresh_of_1_keeps_the_last_example_and_without_means_is_last_point_descent():
    X, y = stream("binary", 500, seed=3)
    for loss, output in product(("squared", "hinge", "logistic"), ("last", "average")):
        common = {"loss": loss, "output": output, "lam": 0.01, "gamma": 1.0, "features": "fourier", "n_components": 100}
        common["random_state"] = 5
        model = AOGDClassifier(eta=0.0, second_eta=0.2, refresh=1.0, weighting="events", **common).fit(X, y)
        last = LastPointOGDClassifier(eta=0.2, **common).fit(X, y)
        np.testing.assert_allclose(model.rank_scores(X), last.rank_scores(X), atol=1e-11)
        np.testing.assert_array_equal(model.state_.sides.examples, last.state_.sides.examples)


def test_a_refresh_of_0_keeps_the_first_example():
    X, y = stream("binary", 500, seed=3)
    model = AOGDClassifier(refresh=0.0, **LINEAR).fit(X, y)
    np.testing.assert_array_equal(model.state_.sides.examples[0], [X[y == side][0] for side in (0, 1)])


def test_without_variance_one_pass_opauc_takes_the_step_against_the_mean():
    rng = np.random.default_rng(4)
    y = rng.integers(2, size=50)
    X = np.array([[1.0, 0.2], [-0.5, 0.7]])[y]
    first = AOGDClassifier(eta=0.1, second_eta=0.0, lam=0.05, weighting="events", **LINEAR).fit(X, y)
    exact = OPAUCClassifier(eta=0.1, lam=0.05, features="linear", output="last").fit(X, y)
    np.testing.assert_allclose(weights(first), weights(exact), atol=1e-13)


@pytest.mark.parametrize("loss", ["squared", "hinge", "logistic"])
def test_the_loss_against_the_mean_is_at_most_the_mean_loss(loss):
    value = {
        "squared": lambda m: 0.5 * (1.0 - m) ** 2,
        "hinge": lambda m: np.maximum(0.0, 1.0 - m),
        "logistic": lambda m: np.log1p(np.exp(-m)),
    }[loss]
    X, y = stream("binary", 400, seed=5)
    model = AOGDClassifier(loss=loss, gamma=1.0, output="last", mean_events=None, random_state=0).fit(X, y)
    f, f_means = model.rank_scores(X), model.state_.sides.means[0] @ weights(model)
    gaps = []
    for t in range(400):
        sign, other = 2 * y[t] - 1, y != y[t]
        gaps.append(value(sign * (f[t] - f[other])).mean() - value(sign * (f[t] - f_means[1 - y[t]])))
    assert min(gaps) >= -1e-12
    assert max(gaps) > 1e-3


# ---------------------------------------------------------------------- features


def test_the_kernel_of_pairs_errs_at_most_four_times_as_much_as_that_of_points():
    X, y = stream("binary", 40, seed=6)
    exact = kernel("rbf", 1.0)(X, X)
    errors = {}
    for components in (100, 400, 1600):
        squares = []
        for seed in range(5):
            model = AOGDClassifier(gamma=1.0, n_components=components, random_state=seed).fit(X, y)
            Z = features(model, X)
            pointwise = Z @ Z.T - exact
            D = (Z[:, None] - Z[None]).reshape(-1, components)
            pairs = D @ D.T
            square = exact[:, None, :, None] + exact[None, :, None, :] - exact[:, None, None, :] - exact[None, :, :, None]
            assert np.abs(pairs - square.reshape(pairs.shape)).max() <= 4.0 * np.abs(pointwise).max()
            squares.append(np.mean(pointwise**2))
        errors[components] = np.sqrt(np.mean(squares))
    assert 1.6 < errors[100] / errors[400] < 2.5
    assert 1.6 < errors[400] / errors[1600] < 2.5


# ---------------------------------------------------------------------- scores, thresholds, classes


def test_no_monotone_change_of_the_scores_changes_the_area():
    X, y = stream("binary", 2000, seed=7)
    model = AOGDClassifier(gamma=1.0, random_state=0).fit(X, y)
    scores = model.rank_scores(X)
    area = roc_auc_score(y, scores)
    assert area > 0.9
    for changed in (model.decision_function(X), np.exp(3.0 * scores), scores**3, np.arctan(scores) - 7.0):
        assert roc_auc_score(y, changed) == pytest.approx(area, abs=1e-12)
        running = AUC()
        running.update(Batch(y, model.predict(X), score=changed))
        assert running.value == pytest.approx(area, abs=running.error_bound + 1e-12)
        assert running.error_bound < 0.01


@pytest.mark.parametrize("output", ["auto", "average", "last"])
def test_the_threshold_is_half_way_between_the_means_of_both_classes(output):
    X, y = stream("binary", 3000, seed=8)
    model = AOGDClassifier(gamma=1.0, random_state=0, mean_events=None, output=output).fit(X, y)
    scores = model.rank_scores(X)
    assert model.threshold_[0] == pytest.approx((scores[y == 0].mean() + scores[y == 1].mean()) / 2.0, abs=1e-12)
    best = max(balanced_accuracy_score(y, scores >= place) for place in np.quantile(scores, np.linspace(0.01, 0.99, 99)))
    assert balanced_accuracy_score(y, model.predict(X)) > best - 0.02
    shift = AOGDClassifier(gamma=1.0, random_state=0, eta=0.0, second_eta=0.0).fit(X, y)
    assert shift.threshold_[0] == 0.0  # all scores are 0


def test_the_threshold_of_baselines_parts_the_recent_scores_best_and_forgets():
    X, y = stream("binary", 3000, seed=8)
    model = LastPointOGDClassifier(gamma=1.0, features="fourier", random_state=0).fit(X, y)
    scores = model.rank_scores(X)
    best = max(balanced_accuracy_score(y, scores >= place) for place in np.quantile(scores, np.linspace(0.01, 0.99, 99)))
    assert balanced_accuracy_score(y, model.predict(X)) > best - 0.02
    recent, expected = model.state_.recent, Recent()
    for t in range(3000):
        expected.see(2.0 * y[t] - 1.0, scores[t], t + 1)
    for side in (0, 1):  # the average hardly moves at the end, so what was kept is nearly what it says now
        times, last = zip(*expected.kept[2.0 * side - 1.0][-RECENT:], strict=True)
        assert np.abs(np.sort(recent.ring[0, side]) - np.sort(last)).max() < 0.1 * np.ptp(scores)
        assert recent.times[0, side] == times[-1]
    held = recent.scores[0]
    assert (np.diff(held) >= 0.0).all()
    np.testing.assert_array_equal(held, np.sort(recent.ring[0].ravel()))


def test_votes_follow_the_output_that_is_right():
    X, y = stream("binary", 4000, seed=13)
    still = AOGDClassifier(gamma=1.0, random_state=0).fit(X, y)
    moved = AOGDClassifier(gamma=1.0, random_state=0).fit(X, np.where(np.arange(4000) < 2000, y, 1 - y))
    assert sum(moved.output_weights_.values()) == pytest.approx(1.0)
    assert moved.output_weights_["average"] < 0.1 < still.output_weights_["average"]
    assert AOGDClassifier(output="last").fit(X[:10], y[:10]).output_weights_ == {"last": 1.0, "average": 0.0, "suffix": 0.0}


def test_means_follow_the_latest_events():
    X, y = stream("binary", 2000, seed=14)
    X[1000:] += 3.0
    model = AOGDClassifier(features="linear", mean_events=50).fit(X, y)
    np.testing.assert_allclose(
        model.state_.sides.means[0] + model.state_.model.centre,
        [X[1900:][y[1900:] == s].mean(axis=0) for s in (0, 1)],
        atol=0.5,
    )


def test_several_classes_are_binary_problems_with_the_same_coins():
    X, y = stream("multiclass", 600, seed=9)
    settings = {"gamma": 1.0, "random_state": 3, "refresh": 0.3, "output": "average"}  # votes are for all outputs
    model = AOGDClassifier(**settings).fit(X, y)
    assert model.decision_function(X).shape == (600, 4)
    for c in range(4):
        binary = AOGDClassifier(weighting="events", **settings).fit(X, (y == c).astype(int))
        np.testing.assert_allclose(model.decision_function(X)[:, c], binary.decision_function(X), atol=1e-10)
    assert roc_auc_score(np.eye(4)[y], model.rank_scores(X), average="macro") > 0.9


@pytest.mark.parametrize("cls", [AOGDClassifier, OPAUCClassifier])
def test_what_is_known_of_the_sides_does_not_depend_on_when_classes_were_announced(cls):
    X, y = stream("multiclass", 400, seed=10)
    y = np.where(np.arange(400) < 100, np.where(y < 2, 3, y), y)  # two classes at first, and two late ones below them
    settings = {"features": "linear", "random_state": 0} | ({"mean_events": None} if cls is AOGDClassifier else {})
    known = cls(**settings).partial_fit(X, y, classes=[0, 1, 2, 3])
    late = cls(**settings).partial_fit(X, y)
    a, b = known.state_[1], late.state_[1]
    for name in ("counts", "means", "covariances") if cls is OPAUCClassifier else ("counts", "means"):
        np.testing.assert_allclose(getattr(a, name), getattr(b, name), atol=1e-12)
    assert roc_auc_score(y[100:] == 0, late.rank_scores(X[100:])[:, 0]) > 0.8


def test_pairwise_scores_are_no_probabilities():
    X, y = stream("binary", 50)
    model = AOGDClassifier(loss="logistic").fit(X, y)
    assert not hasattr(model, "predict_proba")
    with pytest.raises(AttributeError, match="predict_proba"):
        model.predict_then_learn(X, y, method="predict_proba")


# ---------------------------------------------------------------------- values and metrics


def test_ranking_finds_the_direction_of_linear_values():
    rng = np.random.default_rng(11)
    X = rng.normal(size=(3000, 4))
    direction = np.array([1.0, -2.0, 0.0, 0.5])
    y = X @ direction + 100.0  # an offset that pairs do not see
    model = AOGDRanker(eta=0.05, second_eta=0.02, features="linear", output="last").fit(X, y)
    np.testing.assert_allclose(weights(model), direction, atol=1e-6)
    assert model.score(X, y) == pytest.approx(1.0)
    assert model.score(X, -y) == pytest.approx(-1.0)
    assert model.score(X, np.ones(3000)) == 0.0


def test_a_metric_weighs_the_columns_that_tell_classes_apart():
    rng = np.random.default_rng(12)
    y = rng.integers(3, size=3000)
    X = rng.normal(size=(3000, 5))
    X[:, 2] = 0.3 * X[:, 2] + 2.0 * y
    model = AOGDMetric(random_state=0).fit(X, y)
    assert (model.weights_ >= 0.0).all()
    assert model.weights_[2] > 5.0 * np.delete(model.weights_, 2).max()
    Z = model.transform(X[:50])
    square = ((Z[:, None] - Z[None]) ** 2).sum(axis=2)
    same = y[:50, None] == y[:50]
    assert np.mean((square < 1.0) == same) > 0.9
    late = AOGDMetric(random_state=0)
    for part in np.array_split(np.argsort(y, kind="stable")[::-1], 5):
        late.partial_fit(X[part], y[part])
    assert late.classes_.tolist() == [0, 1, 2]
    np.testing.assert_allclose(late.state_.classes.means, [X[y == c].mean(axis=0) for c in range(3)], atol=1e-12)


# ---------------------------------------------------------------------- published numbers


@pytest.mark.parametrize(
    ("name", "rows", "settings", "paper", "reached"),
    [
        ("diabetes", 768, {"gamma": 0.25, "eta": 0.25, "passes": 5}, 0.819, 0.81),
        ("ijcnn1", 49_990, {"gamma": 2.0, "eta": 0.5, "second_eta": 0.5, "n_components": 1000}, 0.923, 0.97),
    ],
)
def test_published_areas_are_reached(data_folder, name, rows, settings, paper, reached):
    X, y = dataset(name).load("train")
    order = np.random.default_rng(0).permutation(len(y))
    X, y, cut = X[order], y[order], len(y) * 4 // 5
    assert len(y) == rows
    model = AOGDClassifier(random_state=0, **{"n_components": 200, "second_eta": 0.0625, **PAPER, **settings}).fit(
        X[:cut], y[:cut]
    )
    area = roc_auc_score(y[cut:], model.rank_scores(X[cut:]))
    assert area > max(reached, paper - 0.03)


def test_a_metric_on_random_features_weighs_the_kernel_of_pairs():
    """Equation 10: with weights of 1 the squared distance is k((x, x'), (x, x')) = 2 - 2 G(x, x')."""
    X, y = stream("multiclass", 60)
    model = AOGDMetric.published(gamma=0.5, eta=0.2, second_eta=0.1, refresh=0.2, n_components=20_000, random_state=1).fit(X, y)
    angles = X @ model.state_.model.frequencies.T
    r = np.hstack([np.cos(angles), np.sin(angles)]) / np.sqrt(10_000)
    square = (r[:, None] - r) ** 2
    G = kernel("rbf", 0.5)(X, X)
    pairs = G.diagonal()[:, None] + G.diagonal() - G - G.T
    np.testing.assert_allclose(square.sum(axis=2), pairs, atol=0.1)
    out = model.transform(X)
    np.testing.assert_allclose(((out[:, None] - out) ** 2).sum(axis=2), square @ model.weights_, atol=1e-10)
    assert 0.0 < model.weights_.min() < 0.1 * model.weights_.max()
    names = model.get_feature_names_out()
    assert (len(names), names[0], names[-1]) == (20_000, "aogdmetric0", "aogdmetric19999")


def test_a_metric_on_random_features_helps_where_columns_cannot():
    """Classes inside and outside of a ring: no weights of the columns separate them."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 2))
    y = (np.linalg.norm(X, axis=1) > 1.2).astype(int)

    def contrast(rows):
        apart = ((rows[:, None] - rows) ** 2).sum(axis=2)
        same = y[1000:, None] == y[1000:]
        return apart[~same].mean() / apart[same].mean()

    steps = {"eta": 0.05, "second_eta": 0.05, "random_state": 0}
    columns = AOGDMetric(**steps).fit(X[:1000], y[:1000]).transform(X[1000:])
    features = AOGDMetric(features="fourier", gamma=0.5, n_components=200, **steps).fit(X[:1000], y[:1000]).transform(X[1000:])
    assert contrast(features) > contrast(columns)


@pytest.mark.parametrize("labels", [[0, 1], ["b", "a", "c"]])
def test_one_mean_of_all_events_survives_new_classes(labels):
    """Learned in pieces in which classes appear one by one, and from a file."""
    X, _ = stream("binary", 120)
    y = np.random.default_rng(3).choice(labels, 120)
    y[:40] = labels[0]
    settings = {**dict(gamma=1.0, eta=0.3, second_eta=0.1, refresh=0.2, n_components=30), "random_state": 0}
    known = AOGDClassifier.published(**settings).partial_fit(X, y, classes=labels)
    late = AOGDClassifier.published(**settings)
    for first in range(0, 120, 20):
        late.partial_fit(X[first : first + 20], y[first : first + 20])
    np.testing.assert_array_equal(late.state_.sides.latest, known.state_.sides.latest)
    if len(labels) == 3:
        assert late.decision_function(X).shape == (120, 3)
