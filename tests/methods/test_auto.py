"""Auto: what the mixture promises beyond the checks of every method; tests/oracles/auto.py has its slow version."""

import copy

import numpy as np
import pytest
from scipy import sparse
from sklearn.metrics import balanced_accuracy_score, log_loss, roc_auc_score

import kernling as kl
from kernling.components import experts, least_squares, line
from kernling.components import mixture as mixtures
from kernling.components.bins import MOST, NEVER, new_bins, place_edges, write_features
from kernling.components.early import SETTLE, new_early, next_settling
from kernling.components.experts import BINNED, CLASSIFIERS, LINEAR_RECENT
from kernling.components.logistic import FOLDED
from kernling.components.mixture import FADES, LOGISTIC, new_mixture
from kernling.components.pending import COUNT
from kernling.components.relevance import column_factors
from kernling.components.scaling import Scales, new_scales, rows_as_known, scale
from kernling.core import state as states
from kernling.core.kernels import KINDS, Kernel
from kernling.estimators.contents import flatten
from oracles.auto import Running

SMALL = {"points": 30, "window": 50}


def features(bins, X):
    Z = np.empty((1 + len(bins.edges), len(X)))
    write_features(bins, X, Z)
    return Z


def scaled_rows(scales, X, weights):
    """Return scaled rows, and the scales after them."""
    after, out = Scales(*(part.copy() for part in scales)), np.empty(X.shape)
    scale(X, weights, *after, out)
    return out, after


def learn_mixed(mixture, scores, targets, weights):
    out = np.empty(scores.shape[1:])
    mixtures.learn_mixed(mixture, np.array(FADES), scores, targets, weights, out)
    return out


def mixed(mixture, scores):
    return learn_mixed(mixture, scores, np.zeros(scores.shape[2]), np.zeros(scores.shape[2]))


def moving(n: int, seed: int = 0, d: int = 4) -> tuple[np.ndarray, np.ndarray]:
    """Rows on scales that differ a lot, and labels by a line that turns."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    angle = np.linspace(0.0, 6.0, n)
    y = (np.cos(angle) * X[:, 0] + np.sin(angle) * X[:, 1] > 0.2).astype(int)
    return X * 10.0 ** np.arange(d) + 5.0, y


@pytest.mark.parametrize("cls", [kl.AutoClassifier, kl.AutoRegressor])
def test_events_one_by_one_lead_to_the_model_of_one_call(cls):
    X, y = moving(SETTLE[-1] + 60)
    whole = cls(**SMALL).fit(X, y)
    single = cls(**SMALL)
    for x, label in zip(X, y, strict=True):
        single.learn_one(x, label)
    assert single.gamma_ == pytest.approx(whole.gamma_, rel=1e-12)
    np.testing.assert_allclose(single._scores(X[:50]), whole._scores(X[:50]), rtol=1e-6, atol=1e-6)
    assert single.n_stored_ == whole.n_stored_


@pytest.mark.parametrize("options", [{"dtype": "float32", "window": 11}, {"window": 150}], ids=str)
@pytest.mark.parametrize(("cls", "classes"), [(kl.AutoClassifier, 2), (kl.AutoClassifier, 3), (kl.AutoRegressor, 0)])
def test_calls_of_any_length_lead_to_the_same_bits(cls, classes, options):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(900, 37))
    values = X[:, 0] * X[:, 1] + X[:, 2]
    y = np.digitize(values, np.linspace(-0.5, 0.5, classes)[: classes - 1]) if classes else values
    weights = rng.choice([0.0, 0.5, 1.0, 1.0, 3.0], size=len(X))
    more = {"classes": np.unique(y)} if classes else {}

    def learned(lengths):
        model, first = cls(points=70, memory="1MB", **options), 0
        for length in lengths:
            part = slice(first, first + length)
            model.partial_fit(X[part], y[part], sample_weight=weights[part], **more)
            first += length
        assert first == len(X)
        return flatten(states.trimmed(model._state))

    whole = learned([900])
    for lengths in ([1] * 900, [2, 3, 4, 5, 6, 7, 8, 9, 16] * 15, [64, 65, 70, 1, 200, 300, 100, 100]):
        other = learned(lengths)
        assert whole.keys() == other.keys()
        for name, array in whole.items():
            np.testing.assert_array_equal(other[name], array, err_msg=f"{name}, {lengths[:3]}")


def test_memory_is_constant_from_the_first_event_on():
    X, y = moving(3000)
    model = kl.AutoClassifier(**SMALL).partial_fit(X[:1], y[:1], classes=[0, 1])

    def allocated() -> int:
        return sum(array.nbytes for array in flatten(model.state_).values())

    first = allocated()
    for part in np.array_split(np.arange(1, 3000), 7):
        model.partial_fit(X[part], y[part])
        assert allocated() == first
    assert model.nbytes_ <= first


def test_gamma_is_that_of_scaled_rows_and_stays_once_it_has_settled():
    X, y = moving(1500)
    model = kl.AutoClassifier(**SMALL).fit(X[: SETTLE[-1]], y[: SETTLE[-1]])
    settled = model.gamma_
    assert settled == pytest.approx(1.0 / X.shape[1])  # four columns of variance 1
    assert model.partial_fit(100.0 * X, y).gamma_ == settled


def test_it_follows_a_border_that_turns():
    X, y = moving(6000)
    model = kl.AutoClassifier(points=60, window=200)
    mistakes = (model.predict_then_learn(X, y) != y).sum()
    assert mistakes < 0.4 * (kl.KRLSClassifier(features="linear").predict_then_learn(X, y) != y).sum()  # never forgets
    weights = model.expert_weights_
    assert weights["linear_recent"] > 0.5 > weights["linear"]


@pytest.mark.parametrize("heavy", [1.0, 3.0])
def test_the_log_loss_is_at_most_what_is_certified(heavy):
    X, y = moving(2000)
    weights = np.random.default_rng(0).choice([0.5, 1.0, heavy], 2000)
    model = kl.AutoClassifier(**SMALL)
    said = model.predict_then_learn(X, y, method="predict_proba", classes=[0, 1], sample_weight=weights)
    found = model.certificate()
    assert found["log_loss"] == pytest.approx(-np.minimum(weights, 1.0) @ np.log(said[np.arange(2000), y]))
    assert found["log_loss_bound"] == pytest.approx(found["best_stack_log_loss"] + np.log(5.0) - 2000 * np.log1p(-0.001))
    assert found["best_stack_log_loss"] < 2.0 * found["log_loss"]
    assert found["log_loss"] <= found["log_loss_bound"]


def test_means_and_spreads_of_scores_are_those_of_ten_thousand_events_and_then_follow_the_latest():
    rng = np.random.default_rng(0)
    scores = 2.0 + rng.normal(size=(5, 1, 13000)) * np.where(np.arange(13000) < 6000, 1.0, 5.0)
    labels, weights = rng.choice([-1.0, 1.0], 13000), rng.choice([0.5, 1.0, 3.0], 13000)
    mixture = new_mixture(5, 1)
    learn_mixed(mixture, scores, labels, weights)
    mean, spread = np.zeros(5), np.ones(5)
    for t in range(13000):
        share, away = max(1.0 / (t + 2.0), 0.0001), scores[:, 0, t] - mean
        spread += share * (away**2 - spread)
        mean += share * away
    np.testing.assert_allclose(mixture.mean[:, 0], mean)
    np.testing.assert_allclose(mixture.spread[:LOGISTIC], spread[:LOGISTIC])  # its scores are log odds, in no need of a unit


def test_a_heavy_event_moves_the_weights_within_bounds():
    """Whatever its weight, and however wrong the stacks were: half of the curvature is that of the event's own gradient."""
    rng = np.random.default_rng(1)
    mixture = new_mixture(5, 1)
    scores = rng.normal(size=(5, 1, 500))
    learn_mixed(mixture, scores, np.sign(scores[0, 0]), np.ones(500))
    before = mixture.pull.copy()
    learn_mixed(mixture, np.full((5, 1, 1), 50.0), np.array([-1.0]), np.array([1e9]))
    assert np.abs(mixture.pull - before).max() < 5.0
    assert np.isfinite(mixture.bias).all()


@pytest.mark.parametrize("seed", [1, 4, 135, 319])
def test_heavy_events_bend_no_bias_downwards(seed):
    """Probabilities and shares of noise are rounded to a little more than 1; a file with a negative curvature is refused."""
    rng = np.random.default_rng(seed)
    outputs = int(rng.choice([1, 3, 5]))
    mixture, scores = new_mixture(5, outputs), rng.normal(size=(5, outputs, 40)) * 10.0 ** rng.uniform(-1.0, 3.0)
    labels = np.where(rng.random(40) < 0.1, 2.0, 1.0)
    scores[:, 1] += 20.0
    for i in range(40):
        learn_mixed(mixture, scores[:, :, i : i + 1].copy(), labels[i : i + 1], 10.0 ** rng.uniform(-3.0, 10.0, 1))
        assert mixture.bias_curvature.min() >= 0.0


def rare(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Rows of eight columns and a class of two per cent behind a curved border."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 8))
    f = X[:, 0] + 0.8 * X[:, 1] ** 2 + 0.7 * X[:, 2] * X[:, 3] - 0.6 * X[:, 4]
    return X, (rng.random(n) < 1.0 / (1.0 + np.exp(6.0 - f))).astype(int)


def test_a_rare_class_is_ranked_as_well_as_by_the_best_expert():
    X, y = rare(8000)
    model = kl.AutoClassifier(points=100)
    said = model.predict_then_learn(X, y, method="predict_proba")[:, 1]
    alone = kl.KRLSClassifier(points=100).predict_then_learn(X, y, method="decision_function")
    own, other = (roc_auc_score(y[1000:], scores[1000:]) for scores in (said, alone))
    assert own > other - 0.005
    assert own > 0.75
    rate = y.mean()
    assert log_loss(y, said) < -rate * np.log(rate) - (1.0 - rate) * np.log1p(-rate)
    assert len(np.unique(said[1000:])) > 6990  # an order, not bins


def test_the_logistic_expert_learns_while_classes_are_uneven_and_ranks_best():
    X, y = rare(8000)
    model = kl.AutoClassifier(points=100, memory=0).partial_fit(X[:4000], y[:4000])
    assert model._fitted().logistic.size[FOLDED] > 100
    assert model.expert_weights_["logistic"] > 0.2
    areas = dict(zip(CLASSIFIERS, (roc_auc_score(y[4000:], s) for s in model._expert_scores(X[4000:])[:, :, 0].T), strict=True))
    assert max(areas, key=areas.get) == "logistic"
    assert areas["logistic"] > areas["kernel"] + 0.01
    frequent = X[:6000, 0] > 0.0
    model.partial_fit(X[:6000], frequent.astype(int))  # half of these, and about a third of all
    assert model._fitted().logistic.size[FOLDED] == 0
    np.testing.assert_array_equal(model._expert_scores(X[:100])[:, CLASSIFIERS.index("logistic")], 0.0)
    assert model.expert_weights_["logistic"] == 0.0


def test_models_of_a_rare_class_that_went_on_for_long_are_merged():
    """Experts that forget have little left of the common start, which is only counted once."""
    X, y = rare(12_000)
    new, labels = rare(8000, seed=5)
    start = kl.AutoClassifier(points=60, memory=0).partial_fit(X[:2000], y[:2000])
    models = [kl.merge([start]).partial_fit(X[part], y[part]) for part in (slice(2000, 7000), slice(7000, 12_000))]
    merged = kl.merge(models, start=start)
    held = [model._fitted().logistic for model in (*models, merged)]
    assert all(one.size[FOLDED] > 100 for one in held)
    areas = [
        roc_auc_score(labels, model._expert_scores(new)[:, CLASSIFIERS.index("logistic"), 0]) for model in (*models, merged)
    ]
    assert areas[2] > max(areas[:2])
    assert roc_auc_score(labels, merged.predict_proba(new)[:, 1]) > 0.8
    for part in (merged._fitted().linear_recent, merged._fitted().bins.sums):
        assert part.record[COUNT] == pytest.approx(2.0 * models[0]._fitted().linear_recent.record[COUNT], rel=0.01)  # 500 each


def test_what_the_logistic_expert_has_forgotten_can_be_saved(tmp_path):
    X, y = rare(4000)
    model = kl.AutoClassifier(**SMALL, memory=0).partial_fit(X[:1000], y[:1000])
    held, event = model._fitted().logistic, 1000
    assert held.size[FOLDED] > 0
    while model._fitted().logistic.size[FOLDED]:
        model.learn_one(X[event], int(X[event, 0] > 0.0))
        event += 1
    kl.save(model, tmp_path / "model.kern")
    loaded = kl.load(tmp_path / "model.kern")
    for each in (model, loaded):
        each.partial_fit(X[event : event + 300], y[event : event + 300])
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))


def test_predictions_while_points_join_change_no_bit_of_later_ones():
    """The coefficients of points are only computed when the logistic expert's weights have changed."""
    X, y = rare(500)
    asked = kl.AutoClassifier(points=300, window=20, memory=0)
    for n, (row, label) in enumerate(zip(X, y, strict=True), 1):
        asked.learn_one(row, label)
        if len(asked.classes_) == 2:
            said = asked._expert_scores(X[:20])
        if n >= 300 and n % 25 == 0:
            other = kl.AutoClassifier(points=300, window=20, memory=0).partial_fit(X[:n], y[:n])
            np.testing.assert_array_equal(said, other._expert_scores(X[:20]))


@pytest.mark.filterwarnings("ignore:the columns' ranges differ")
def test_merged_models_of_even_classes_have_no_logistic_expert():
    """Some of their first events have waited all the time."""
    X, y = rare(4000)
    even = (X[:, 0] > 0.0).astype(int)
    a, b, uneven = (
        kl.AutoClassifier(**SMALL, memory=0).fit(X[part], labels[part])
        for part, labels in ((slice(400), even), (slice(2000, 4000), even), (slice(2000), y))
    )
    place = CLASSIFIERS.index("logistic")
    np.testing.assert_array_equal(kl.merge([a, b])._expert_scores(X)[:, place], 0.0)
    found = kl.merge([a, uneven])._fitted().logistic
    assert found.size[FOLDED] == uneven._fitted().logistic.folded().size[FOLDED]
    first = kl.AutoClassifier(**SMALL, memory=0).fit(X[:100], np.zeros(100, int))  # a class alone is as uneven as can be
    assert first._fitted().logistic.size[FOLDED] > 0
    np.testing.assert_array_equal(kl.merge([a, first])._expert_scores(X)[:, place], 0.0)


@pytest.mark.filterwarnings("ignore:the columns' ranges differ")
def test_merged_models_of_rare_classes_predict_and_go_on():
    X, y = rare(4000)
    labels = np.where(y > 0, 1 + (X[:, 1] > 0.0), 0)
    start = kl.AutoClassifier(**SMALL, memory=0).fit(X[:1000], labels[:1000])
    parts = [copy.deepcopy(start).partial_fit(X[i : i + 800], labels[i : i + 800]) for i in (1000, 2000)]
    merged = kl.merge(parts)
    worst = max(log_loss(labels[3000:], part.predict_proba(X[3000:])) for part in parts)
    assert log_loss(labels[3000:], merged.predict_proba(X[3000:])) < 1.05 * worst
    assert np.ptp(merged._expert_scores(X)[:, CLASSIFIERS.index("logistic")]) > 2.0
    merged.partial_fit(X[3000:], labels[3000:])


@pytest.mark.parametrize("cls", [kl.AutoClassifier, kl.AutoRegressor])
@pytest.mark.parametrize("d", [2, 4])
def test_single_events_find_memory_after_loading_a_model_of_few_points(tmp_path, cls, d):
    """Its least squares do not wait, its window is full, and as many events as fit wait for logistic regression."""
    X = np.random.default_rng(0).normal(size=(3010, d))
    y = X[:, 0] + X[:, 1] ** 2 if cls is kl.AutoRegressor else (X[:, 0] > 0.0).astype(int)
    model = cls(points=4, window=20, memory=200_000).partial_fit(X[:3000], y[:3000])
    kl.save(model, tmp_path / "model.kern")
    loaded = kl.load(tmp_path / "model.kern")
    for each in (model, loaded):
        for row, target in zip(X[3000:], y[3000:], strict=True):
            each.learn_one(row, target)
    state = loaded._fitted()
    assert len(state.archive.points) == len(model._fitted().archive.points)
    assert len(state.early.X) == len(model._fitted().early.X)
    kl.save(loaded, tmp_path / "model.kern")
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))


def test_a_rare_class_behind_a_line_is_ranked_nearly_as_well_as_by_a_linear_expert():
    """With two hundred events of it, ten weights must not cost more than they bring."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(16_000, 10))
    f = X @ rng.normal(size=10) * 0.8 / np.sqrt(10.0)
    y = (rng.random(16_000) < 1.0 / (1.0 + np.exp(4.6 - f))).astype(int)
    said = kl.AutoClassifier(**SMALL, memory=100_000).predict_then_learn(X, y, method="predict_proba")[:, 1]
    line = kl.KRLSClassifier(features="linear", ridge=1.0).predict_then_learn(X, y, method="decision_function")
    own, other = (roc_auc_score(y[2000:], scores[2000:]) for scores in (said, line))
    assert own > other - 0.012


@pytest.mark.parametrize("positives", [128, 32, 1, 0])
def test_the_ridge_of_the_kernel_expert_is_larger_if_a_class_is_rare(positives):
    X, _ = rare(256)
    y = np.where(np.arange(256) < positives, 1, 0)
    model = kl.AutoClassifier(points=40).partial_fit(X, y, classes=[0, 1])
    evenness = 4.0 * y.mean() * (1.0 - y.mean())
    assert model._fitted().kernel_squares.rho == pytest.approx(0.1 / max(evenness, 0.01))


@pytest.mark.parametrize("weights", ["balanced", {0: 0.5, 1: 3.0, 2: 40.0}], ids=str)
@pytest.mark.parametrize("classes", [2, 3])
def test_class_weights_multiply_probabilities(classes, weights):
    X, y = rare(700)
    y = np.where(y == 1, 1, np.where(X[:, 5] > 1.5, 2, 0) if classes == 3 else 0)
    plain, weighted = (kl.AutoClassifier(**SMALL, class_weight=given) for given in (None, weights))
    before = plain.predict_then_learn(X, y, method="predict_proba", classes=range(classes))
    counts = np.array([[np.sum(y[:i] == c) for c in range(classes)] for i in range(len(y) + 1)])
    factors = (
        1.0 / np.maximum(counts, 1)
        if weights == "balanced"
        else np.array([[weights[c] for c in range(classes)]] * (len(y) + 1))
    )
    expected = before * factors[:-1] / (before * factors[:-1]).sum(axis=1, keepdims=True)
    cut = 300
    first = weighted.predict_then_learn(X[:cut], y[:cut], method="predict_proba", classes=range(classes))
    np.testing.assert_allclose(first, expected[:cut], atol=1e-12)
    for x, label in zip(X[cut : cut + 50], y[cut : cut + 50], strict=True):
        weighted.learn_one(x, label)
    np.testing.assert_allclose(
        weighted.predict_then_learn(X[cut + 50 :], y[cut + 50 :], method="predict_proba"), expected[cut + 50 :], atol=1e-12
    )
    after = plain.predict_proba(X) * factors[-1]
    np.testing.assert_allclose(weighted.predict_proba(X), after / after.sum(axis=1, keepdims=True), atol=1e-12)
    assert weighted.predict_one(X[0]) == weighted.predict(X[:1])[0] == np.argmax(after[0])


def test_balanced_classes_are_found_and_ranked_as_before():
    X, y = rare(8000)
    plain, balanced = (kl.AutoClassifier(points=100, class_weight=given) for given in (None, "balanced"))
    said = [model.predict_then_learn(X, y, method="predict_proba")[1000:, 1] for model in (plain, balanced)]
    assert abs(roc_auc_score(y[1000:], said[0]) - roc_auc_score(y[1000:], said[1])) < 0.005
    found = [balanced_accuracy_score(y[1000:], one > 0.5) for one in said]
    assert found[1] > found[0] + 0.1


def test_probabilities_increase_strictly_with_the_scores_of_experts():
    rng = np.random.default_rng(2)
    mixture = new_mixture(5, 1)
    scores = np.repeat(rng.normal(size=(1, 1, 2000)) - 1.0, 5, axis=0)
    learn_mixed(mixture, scores, np.where(rng.random(2000) < 0.05 * np.exp(scores[0, 0]), 1.0, -1.0), np.ones(2000))
    said = mixed(mixture, np.repeat(np.linspace(-10.0, 10.0, 2001)[np.newaxis, np.newaxis], 5, axis=0))
    assert (np.diff(said[0]) > 0.0).all()


def test_labels_are_the_argmax_of_scores_and_of_probabilities():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(900, 3))
    y = np.digitize(X[:, 0] * X[:, 1], [-0.3, 0.3]) + 5
    model = kl.AutoClassifier(**SMALL).fit(X, y)
    proba, labels = model.predict_proba(X), model.predict(X)
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)
    np.testing.assert_array_equal(model.classes_[proba.argmax(axis=1)], labels)
    np.testing.assert_array_equal(model.classes_[model.decision_function(X).argmax(axis=1)], labels)


def test_a_class_that_comes_late_is_learned():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(1500, 2))
    y = np.where(X[:, 0] > 0.0, "right", "left").astype(object)
    y[700:][X[700:, 1] > 1.0] = "above"
    model = kl.AutoClassifier(**SMALL).partial_fit(X[:700], y[:700])
    said = model.predict_then_learn(X[700:], y[700:])
    assert list(model.classes_) == ["above", "left", "right"]
    assert (said != y[700:])[300:].mean() < 0.15


def test_targets_of_any_size_are_predicted():
    rng = np.random.default_rng(2)
    X = rng.uniform(-2.0, 2.0, size=(1500, 2))
    y = 1e6 + 3e4 * np.sin(2.0 * X[:, 0]) + 100.0 * rng.normal(size=1500)
    said = kl.AutoRegressor(points=60, window=100).predict_then_learn(X, y)
    assert np.sqrt(np.mean((said - y)[500:] ** 2)) < 0.1 * y.std()


@pytest.mark.parametrize("cls", [kl.AutoClassifier, kl.AutoRegressor])
def test_wide_sparse_rows_give_the_model_of_dense_ones(cls):
    rng = np.random.default_rng(3)
    X = np.where(rng.random((120, 600)) < 0.03, rng.normal(size=(120, 600)), 0.0)
    y = (X[:, :300].sum(axis=1) > 0.0).astype(int)
    dense, wide = cls(**SMALL).fit(X, y), cls(**SMALL).fit(sparse.csr_array(X), y)
    np.testing.assert_allclose(wide._scores(X), dense._scores(X), rtol=1e-8, atol=1e-8)
    assert dense.state_.linear.squares.shape == (601,)  # the diagonal only


def test_wide_lines_take_steps_on_the_diagonal():
    """Each column has its own sum of squares, which forgets; a weight is that of the event in the sum, and of its step."""
    rng = np.random.default_rng(4)
    Z, T, weights = rng.normal(size=(601, 50)), rng.normal(size=(2, 50)), rng.choice([0.0, 0.5, 1.0, 3.0], 50)
    wide = line.new_line(LINEAR_RECENT, 600, 2)
    said = np.empty(T.shape)
    assert line.learn(wide, LINEAR_RECENT.ridge, LINEAR_RECENT.keep, Z, T, weights, said)
    W, squares = np.zeros((2, 601)), np.zeros(601)
    for z, target, weight, before in zip(Z.T, T.T, weights, said.T, strict=True):
        np.testing.assert_allclose(before, W @ z)
        if weight > 0.0:
            step = z / (0.1 + squares)
            W += np.outer(target - before, step) / (1.0 / weight + step @ z)
            squares = 0.998 * squares + weight * z**2
    np.testing.assert_allclose(wide.weights @ Z, W @ Z)


def test_a_young_model_can_be_saved(tmp_path):
    X, y = moving(3, d=54)
    model = kl.AutoClassifier().partial_fit(X, y)
    kl.save(model, tmp_path / "young.kern")
    assert kl.load(tmp_path / "young.kern").t_ == 3


def test_columns_of_one_scale_stay_as_they_are():
    rng = np.random.default_rng(4)
    X = np.column_stack([rng.random(50), rng.integers(0, 2, 50)])
    scaled, scales = scaled_rows(new_scales(2), X, np.ones(50))
    np.testing.assert_array_equal(scaled, X)
    X[-1, 0] = 1.5  # now the columns differ: only the one of 0 and 1 stays
    scaled, scales = scaled_rows(new_scales(2), X, np.ones(50))
    np.testing.assert_array_equal(scaled[:-1], X[:-1])
    assert scaled[-1, 0] == pytest.approx((1.5 - X[:, 0].mean()) / X[:, 0].std())
    np.testing.assert_allclose(rows_as_known(scales, X)[:, 0], (X[:, 0] - X[:, 0].mean()) / X[:, 0].std())
    np.testing.assert_array_equal(rows_as_known(scales, X)[:, 1], X[:, 1])


@pytest.mark.parametrize("order", [1, -1])
def test_merged_scales_are_those_of_all_rows(order):
    rng = np.random.default_rng(4)
    narrow, wide = rng.integers(0, 2, (50, 2)).astype(float), rng.normal(1.0, 0.7, size=(70, 2))
    wide[:, 1] = rng.integers(0, 2, 70)
    one, other = (scaled_rows(new_scales(2), X, np.ones(len(X)))[1] for X in (narrow, wide)[::order])
    _, whole = scaled_rows(new_scales(2), np.vstack([narrow, wide]), np.ones(120))
    merged = one.merged(other, None, None)
    np.testing.assert_allclose(rows_as_known(merged, wide), rows_as_known(whole, wide))
    np.testing.assert_array_equal(merged.stays(), [False, True])


def test_wide_rows_settle_as_often_as_there_is_room():
    for d, last in ((10, 1024), (10_000, 256), (50_000, 64), (10_000_000, 0)):
        early, ends = new_early(1.0, d, "float32"), [n for n in SETTLE if n <= last]
        assert [next_settling(early, events) for events in (0, *ends)] == [*ends, 0]
        assert [next_settling(early, n - 1) for n in ends] == ends


@pytest.mark.filterwarnings("ignore:the columns' ranges differ")
def test_models_that_settled_apart_do_not_merge():
    X, y = moving(100)
    models = [kl.AutoClassifier(standardise=False, **SMALL).fit(factor * X, y) for factor in (1.0, 2.0)]
    with pytest.raises(ValueError, match="give a number, or begin both from one model"):
        kl.merge(models)


@pytest.mark.filterwarnings("ignore:the columns' ranges differ")
def test_least_squares_of_merged_models_are_those_of_all_events():
    X, y = moving(400)
    start = kl.AutoRegressor(standardise=False, gamma=0.1, **SMALL).fit(X[:200], y[:200])
    parts = [kl.merge([start]).partial_fit(X[part], y[part]) for part in (slice(200, 300), slice(300, 400))]
    merged = kl.merge(parts, start=start)
    assert merged.t_ == 400
    assert np.isfinite(merged.predict(X)).all()
    kept, *sums = (np.triu(model.state_.linear.squares[:25].reshape(5, 5)) for model in (start, *parts, merged))
    np.testing.assert_allclose(sums[2], sums[0] + sums[1] - kept)


@pytest.mark.filterwarnings("ignore:the columns' ranges differ")
def test_losses_of_merged_mixtures_add_up():
    X, y = moving(600)
    start = kl.AutoClassifier(**SMALL).fit(X[:200], y[:200])
    parts = [kl.merge([start]).partial_fit(X[part], y[part]) for part in (slice(200, 350), slice(350, 600))]
    merged = kl.merge(parts, start=start)
    found, begun, *others = (model.certificate()["log_loss"] for model in (merged, start, *parts))
    assert found == pytest.approx(sum(others) - begun)
    found, begun, *others = (model.state_.mixture.losses for model in (merged, start, *parts))
    np.testing.assert_allclose(found, sum(others) - begun)
    assert merged.certificate()["log_loss_bound"] == pytest.approx(found.min() + np.log(5.0) - 600 * np.log1p(-0.001))
    np.testing.assert_array_equal(merged.state_.mixture.seen, 1 + np.bincount(y))
    twice = kl.merge([start, start])  # without a start, all events of both count
    np.testing.assert_array_equal(twice.state_.mixture.seen, 1 + 2 * np.bincount(y[:200]))


def test_a_merged_window_holds_the_latest_events_of_both_and_the_oldest_go_first():
    X = np.random.default_rng(0).normal(size=(60, 2))
    y = X[:, 0] + X[:, 1]
    start = kl.AutoRegressor(points=10, window=6, standardise=False, gamma=1.0).fit(X[:20], y[:20])
    parts = [kl.merge([start]).partial_fit(X[rows], y[rows]) for rows in (slice(20, 31), slice(40, 53))]
    merged = kl.merge(parts, start=start)

    def latest() -> set[int]:
        state = merged.state_
        rows = state.window.columns.T[: state.window.stored] / state.early.stretch + state.model.centre
        return {int(np.abs(X - row).sum(axis=1).argmin()) for row in rows}

    assert latest() == {28, 29, 30, 50, 51, 52}
    assert merged.state_.early.count[0] == 20 + 11 + 13  # events of the common start are kept once
    merged.partial_fit(X[54:56], y[54:56])
    assert latest() == {29, 30, 51, 52, 54, 55}


def test_single_events_go_on_from_a_young_file(tmp_path):
    X, y = np.random.default_rng(0).normal(size=(60, 3)), np.arange(60) % 2
    whole, cut = kl.AutoClassifier(dtype="float32"), kl.AutoClassifier(dtype="float32")
    for model in (whole, cut):
        for x, label in zip(X[:2], y[:2], strict=True):
            model.learn_one(x, label)
    kl.save(cut, tmp_path / "young.kern")
    cut = kl.load(tmp_path / "young.kern")
    for model in (whole, cut):
        for x, label in zip(X[2:], y[2:], strict=True):
            model.learn_one(x, label)
    np.testing.assert_array_equal(cut.predict_proba(X), whole.predict_proba(X))


def boxes(n: int, seed: int = 0, d: int = 6) -> tuple[np.ndarray, np.ndarray]:
    """Rows, and labels by two borders along the axes, for which only two columns matter."""
    X = np.random.default_rng(seed).normal(size=(n, d))
    return X, ((X[:, 0] > 0.5) ^ (X[:, 1] > 0.3)).astype(int)


def test_edges_are_quantiles_and_fit_into_the_room():
    rng = np.random.default_rng(5)
    X = np.column_stack([rng.normal(size=1000), rng.integers(0, 2, 1000), np.full(1000, 7.0)])
    steps = new_bins(BINNED, 3, 1)
    place_edges(steps, X)
    used = steps.edges < NEVER
    np.testing.assert_array_equal(steps.columns[used], [0] * 15 + [1])  # none for a column that is constant
    np.testing.assert_array_equal(np.diff(np.sort(np.r_[0, (X[:, :1] <= steps.edges[:15]).sum(axis=0), 1000])), [63, 62] * 8)
    Z = features(steps, X)
    np.testing.assert_array_equal(Z[0], 1.0)
    np.testing.assert_array_equal(Z[16], X[:, 1] > 0.0)
    np.testing.assert_array_equal(Z[17:], 0.0)
    wide = new_bins(BINNED, 60, 1)
    place_edges(wide, rng.normal(size=(300, 60)))
    assert (wide.edges < NEVER).sum() == MOST // 60 * 60
    too_wide = new_bins(BINNED, MOST + 1, 1)
    place_edges(too_wide, rng.normal(size=(300, MOST + 1)))
    assert (too_wide.edges == NEVER).all()


def test_edges_are_not_decided_by_rounding():
    """They lie halfway between values, and values that differ by rounding only have no edge between them."""
    rng = np.random.default_rng(6)
    X = np.column_stack([rng.integers(0, 4, 900), 1e3 + rng.integers(0, 2, 900)]).astype(float)
    noise = 1e-13 * rng.normal(size=X.shape)
    exact, noisy = new_bins(BINNED, 2, 1), new_bins(BINNED, 2, 1)
    place_edges(exact, X)
    place_edges(noisy, X * (1.0 + noise))
    np.testing.assert_array_equal(exact.edges[:4], [0.5, 1.5, 2.5, 1000.5])
    np.testing.assert_array_equal(noisy.columns, exact.columns)
    np.testing.assert_allclose(noisy.edges, exact.edges, rtol=1e-12)
    np.testing.assert_array_equal(features(exact, X), features(exact, X * (1.0 - noise)))


def test_steps_move_to_the_nearest_edge_of_their_column():
    rng = np.random.default_rng(7)
    own, common = new_bins(BINNED, 2, 1).grown(0), new_bins(BINNED, 2, 1)
    place_edges(own, rng.normal(size=(200, 2)))
    place_edges(common, rng.normal(0.3, 1.5, size=(200, 2)))
    Z, targets = features(own, rng.normal(size=(50, 2))), rng.normal(size=(1, 50))
    assert least_squares.learn(own.sums, Z, targets, np.ones(50), np.empty((1, 50))) == 0
    expected = np.zeros(31)
    expected[0] = own.sums.moments[0, 0]
    for moment, column, edge in zip(own.sums.moments[0, 1:31], own.columns, own.edges, strict=True):
        far = np.where(common.columns == column, np.abs(common.edges - edge), np.inf)
        expected[1 + far.argmin()] += moment
    np.testing.assert_allclose(own.moved(common).sums.moments[0], expected)


def test_borders_along_the_axes_are_found():
    X, y = boxes(4000)
    additive = ((X[:, 0] > 0.5) | (X[:, 1] > 0.3)).astype(int)
    model = kl.AutoClassifier(points=60, window=300).fit(X, additive)
    weights = model.expert_weights_
    assert weights["bins"] > 0.5 > weights["linear"]
    model = kl.AutoClassifier(points=60, window=300).fit(X, y)
    weights = model.expert_weights_
    assert weights["window_cityblock_narrow"] > 0.5 > weights["window_narrow"]


def test_columns_that_do_not_matter_count_less():
    X, y = boxes(3000)
    model = kl.AutoClassifier(points=60, window=300)
    said = model.predict_then_learn(X, y)
    stretch = model.state_.early.stretch
    assert stretch[:2].min() > 1.5 * stretch[2:].max()
    assert np.square(stretch).mean() == pytest.approx(1.0, rel=0.05)  # distances keep their size
    plain = kl.AutoClassifier(points=60, window=300)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(experts, "relevance", lambda parts, kernel, X: np.ones_like(parts.early.stretch))
        before = plain.predict_then_learn(X, y)
    assert (said != y).sum() < 0.8 * (before != y).sum()


@pytest.mark.parametrize("name", ["rbf", "exponential", "matern32", "matern52", "rational_quadratic", "cauchy"])
def test_factors_are_roots_of_mean_gradients(name):
    rng = np.random.default_rng(8)
    X, points, coef, slopes = (rng.normal(size=shape) for shape in ((40, 3), (7, 3), (2, 7), (2, 3)))
    stretch = np.array([0.5, 1.0, 2.0])
    kernel = Kernel(KINDS[name], 0.7, 3, 0.0)
    value = kl.kernel(name, 0.7)

    def function(rows: np.ndarray) -> np.ndarray:
        return value(rows * stretch, points) @ coef.T + rows @ slopes.T

    change = np.sqrt([np.square((function(X + h) - function(X - h)) / 2e-5).sum(axis=1).mean() for h in 1e-5 * np.eye(3)])
    found = column_factors(kernel, stretch, X * stretch, points, coef, slopes)
    np.testing.assert_allclose(found**2 / (found**2)[0], change / change[0], rtol=1e-6)
    assert found**2 @ X.var(axis=0) == pytest.approx(X.var(axis=0).sum())


def test_constant_columns_and_functions_have_the_factor_one():
    rng = np.random.default_rng(9)
    X, points = (np.column_stack([rng.normal(size=(n, 2)), np.zeros(n)]) for n in (40, 7))
    kernel, stretch = Kernel(KINDS["rbf"], 0.5, 3, 0.0), np.ones(3)
    found = column_factors(kernel, stretch, X, points, rng.normal(size=(1, 7)), np.zeros((1, 3)))
    assert found[2] == 1.0
    assert found[0] != 1.0
    np.testing.assert_array_equal(column_factors(kernel, stretch, X, points, np.zeros((1, 7)), np.zeros((1, 3))), 1.0)


@pytest.mark.parametrize("first", [300, 1100])  # events of the common start: edges differ afterwards, or are final
def test_a_merged_mixture_predicts_almost_as_well_as_the_whole(first):
    X, y = boxes(4500)
    test = slice(3500, 4500)
    whole = kl.AutoClassifier(points=60, window=300).fit(X[:3500], y[:3500])
    start = kl.AutoClassifier(points=60, window=300).fit(X[:first], y[:first])
    cuts = np.array_split(np.arange(first, 3500), 2)
    merged = kl.merge([kl.merge([start]).partial_fit(X[part], y[part]) for part in cuts], start=start)
    assert merged.t_ == 3500
    errors = [(model.predict(X[test]) != y[test]).mean() for model in (whole, merged, start)]
    assert errors[1] < 1.25 * errors[0] + 0.01
    assert errors[1] < errors[2]


@pytest.mark.long
def test_twenty_million_events_leave_memory_and_errors_as_they_are():
    rng = np.random.default_rng(0)
    model = kl.AutoClassifier(points=16, window=32, memory=0)  # which fills slowly: tests/components/test_archive.py
    sizes, errors = [], []
    for _ in range(200):
        X = rng.normal(size=(102_400, 4))  # after which none waits to be folded
        y = (X[:, 0] * X[:, 1] > 0.0).astype(int)
        errors.append((model.predict_then_learn(X, y) != y).mean())
        sizes.append(model.nbytes_)
    assert model.t_ == 20_480_000
    room = sum(array.nbytes for array in flatten(kl.AutoClassifier(points=16, window=32, memory=0).fit(X, y).state_).values())
    assert max(sizes) <= 2 * room  # while there is a successor after a false alarm, and otherwise
    assert np.median(sizes) <= room
    assert max(errors) < 0.15  # with 16 points


def test_one_absurd_number_spoils_neither_its_column_nor_the_model():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 3)) * [1.0, 10.0, 0.1] + 5.0
    y = X[:, 0] > 5.0
    X[100, 0], X[200, 1] = 1e12, -1e9
    oracle, (scaled, scales) = Running(), scaled_rows(new_scales(3), X, np.ones(600))
    for x, z in zip(X, scaled, strict=True):
        np.testing.assert_allclose(z, oracle.scaled(x), rtol=1e-9, atol=1e-9)
        oracle.learn(x)
    np.testing.assert_allclose(rows_as_known(scales, X), [oracle.known(x) for x in X], atol=1e-9)
    assert scales.clipped[0] == sum((row != near).any() for row, near in zip(X, oracle.near, strict=True)) >= 2
    model = kl.AutoClassifier(**SMALL)
    said = model.predict_then_learn(X, y)
    assert np.mean(said[250:] != y[250:]) < 0.05
    assert model.clipped_ == scales.clipped[0]


def test_a_file_holds_only_what_is_needed_to_go_on(tmp_path):
    X = np.random.default_rng(0).normal(size=(SETTLE[-1] + 40, 3))
    model = kl.AutoClassifier(points=30, window=40, memory=2000).partial_fit(X[:-40], X[:-40, 0] > 0.0)
    arrays = model.to_contents().arrays
    n, points = model.state_.kernel_squares.count, model.n_stored_
    assert arrays["state.early.X"].shape == (0, 3)  # all is settled
    assert arrays["state.kernel_squares.squares"].shape == (n * (n + 1) // 2,)
    assert arrays["state.whitening.factor"].shape == (points * (points + 1) // 2,)
    kl.save(model, tmp_path / "model.kern")
    other = kl.load(tmp_path / "model.kern")
    for each in (model, other):
        each.partial_fit(X[-40:], X[-40:, 0] > 0.0)
    held, again = (flatten(states.trimmed(one.state_)) for one in (model, other))
    for name, array in held.items():
        np.testing.assert_array_equal(array, again[name], err_msg=name)
    with pytest.raises(ValueError, match="no triangle"):
        kl.AutoClassifier.from_contents(*model.to_contents()._replace(arrays=arrays | {"state.whitening.factor": np.ones(5)}))
