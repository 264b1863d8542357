"""Labels: classes that arrive late, weights, probabilities."""

import numpy as np
import pytest
from scipy.special import expit

import checks
import kernling
from kernling import AVMClassifier, AVMRegressor, SPAClassifier
from kernling.estimators import labels
from kernling.estimators.tasks import OnlineWithClasses
from kernling.tables import Standardise
from oracles import stream
from oracles.avm import AVM

SETTINGS = {"gamma": 1.0, "delta": 0.6, "lam": 0.05}
COIN = {"approximate": "bernoulli", "beta": 30.0, "random_state": 1}
RULES = pytest.mark.parametrize("rule", [{}, COIN], ids=["always", "bernoulli"])
PROBES = stream("binary", 40, seed=77)[0]


def classifier(**params):
    return AVMClassifier(**{**SETTINGS, **params})


# ---------------------------------------------------------------------- late classes


@pytest.mark.parametrize(
    ("known", "late"), [((1, 2), 0), ((0, 2), 1), ((0, 1), 2), (("b", "d"), "c"), (("a", "b"), "long name")]
)
@pytest.mark.parametrize("output", ["last", "average", "suffix"])
def test_two_classes_become_three_by_halves(known, late, output):
    X, y = stream("binary", 200)
    model = classifier(output=output).partial_fit(X, np.array(known)[y])
    f = model.decision_function(PROBES)
    before = model.predict(PROBES)
    row = model.predict_then_learn(PROBES[:1], [late], method="decision_function")[0]
    assert model.classes_.tolist() == sorted([*known, late])
    place = sorted([*known, late]).index(late)
    np.testing.assert_allclose(row, np.insert([-f[0] / 2.0, f[0] / 2.0], place, 0.0), atol=1e-12)
    quiet = classifier(output=output).partial_fit(X, np.array(known)[y])
    quiet.partial_fit(PROBES[:1] + 1e3, [late])  # far away from all else: the others keep their labels
    np.testing.assert_array_equal(quiet.predict(PROBES), before)


def test_three_classes_become_four():
    X, y = stream("multiclass", 300)
    model = classifier().partial_fit(X, 2 * y, classes=[0, 2, 4, 6])
    before = model.decision_function(PROBES)
    row = model.predict_then_learn(PROBES[:1], [3], method="decision_function")[0]
    assert model.classes_.tolist() == [0, 2, 3, 4, 6]
    np.testing.assert_allclose(row, np.insert(before[0], 2, 0.0), atol=1e-12)


@pytest.mark.parametrize("second", [0, 2])
def test_one_class_becomes_two(second):
    X, _ = stream("binary", 50)
    model = classifier().partial_fit(X, np.ones(50, int))
    np.testing.assert_array_equal(model.predict(PROBES), 1)
    model.learn_one(X[0] + 1e3, second)
    assert model.classes_.tolist() == sorted([1, second])
    np.testing.assert_array_equal(model.predict(PROBES), 1)
    reference = classifier().partial_fit(X[:1], [1], classes=[1, second])
    reference.partial_fit(X[1:], np.ones(49, int)).learn_one(X[0] + 1e3, second)
    np.testing.assert_allclose(model.decision_function(PROBES), reference.decision_function(PROBES), atol=1e-12)


@pytest.mark.parametrize("rows", [1, 40])
def test_a_call_that_fails_after_late_classes_leaves_the_model_as_it_was(rows):
    """In a block, outputs are added in the memory of those that are there; a single event leaves that as it is."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 3)), rng.permutation(60)

    class Fails(AVMClassifier):
        def _learn_segment(self, learn, X, y, weights, record, part):
            if len(self.classes_) == 20 + rows and self.fails:  # the last class has its output, and no event of it is learned
                raise ArithmeticError
            return super()._learn_segment(learn, X, y, weights, record, part)

    model = Fails(gamma=0.5, delta=0.1)
    model.fails = False
    model.partial_fit(X[:20], y[:20])
    before, model.fails = model.decision_function(X), True
    with pytest.raises(ArithmeticError):
        model.partial_fit(X[20 : 20 + rows], y[20 : 20 + rows])
    np.testing.assert_array_equal(model.decision_function(X), before)
    model.fails = False
    again = AVMClassifier(gamma=0.5, delta=0.1).partial_fit(X, y)
    np.testing.assert_array_equal(model.partial_fit(X[20:], y[20:]).decision_function(X), again.decision_function(X))


def test_a_single_event_of_a_late_class_copies_nothing_but_what_has_outputs():
    """The points stay where they are: learning one event changes all or nothing."""
    X, y = stream("multiclass", 60)
    model = classifier().partial_fit(X, y)
    points = model.state_.model.points
    assert model.state_.model.has_room(1)
    model.learn_one(X[0] + 3.0, 17)
    assert model.classes_[-1] == 17
    assert np.shares_memory(model.state_.model.points, points)
    assert model.state_.model.outputs == len(model.classes_)


@pytest.mark.parametrize("cls", [AVMClassifier, SPAClassifier])
def test_late_classes_copy_the_coefficients_rarely(cls):
    """Room for further outputs and points grows with their number, so that all copies together are linear in it."""
    X = np.random.default_rng(0).normal(size=(120, 2))
    model, copies = cls(gamma=0.5).partial_fit(X[:20], np.arange(20) % 2), 0
    for label, x in enumerate(X[20:], start=2):
        before = model._state.model.coef
        model.learn_one(x, label)
        copies += not np.shares_memory(model._state.model.coef, before)
    assert len(model.classes_) == 102
    assert copies < 20


@pytest.mark.parametrize(
    "cls", [cls for cls in checks.estimators() if issubclass(cls, OnlineWithClasses)], ids=lambda cls: cls.__name__
)
def test_where_late_classes_are_in_memory_changes_nothing(cls, tmp_path):
    """Coefficients are in the order in which classes appeared, and from a file in that of the labels."""
    X = np.random.default_rng(0).normal(size=(120, 3))
    y = np.array([4, 7, 1, 8, 0, 5, 2, 6, 3])[np.minimum(np.arange(120) % 9, np.arange(120) // 8)]
    model = cls(**checks.CASES[cls.__name__][0].params).partial_fit(X[:60], y[:60])
    kernling.save(model, tmp_path / "model")
    copy = kernling.load(tmp_path / "model")
    checks.assert_identical(copy, model)
    for each in (model, copy):
        each.partial_fit(X[60:100], y[60:100])
        for x, label in zip(X[100:], y[100:], strict=True):
            each.learn_one(x, label)
    checks.assert_identical(copy, model)
    np.testing.assert_array_equal(checks.scores(copy, X), checks.scores(model, X))


@pytest.mark.parametrize("name", ["AVM", "POLK", "AOGD"])
@pytest.mark.parametrize("kind", ["int", "U9", "float"])
def test_a_single_event_of_a_late_class_is_learned_as_in_a_batch(name, kind):
    X, labels = np.random.default_rng(0).normal(size=(60, 3)), np.random.default_rng(1).permutation(30)
    labels = np.r_[labels, labels].astype(kind)
    one, batch = (
        getattr(kernling, f"{name}Classifier")(gamma=1.0, random_state=0).partial_fit(X[:1], labels[:1]) for _ in "ab"
    )
    for i in range(1, 60):
        one.learn_one(X[i], labels[i].item() if i % 2 else labels[i])
        batch._stream(X[i : i + 1], labels[i : i + 1], [1.0])
        assert one.classes_.dtype == batch.classes_.dtype
        np.testing.assert_array_equal(one.classes_, batch.classes_)
    checks.assert_identical(one, batch)


def test_a_late_class_whose_event_cannot_be_learned_is_not_added():
    X, y = stream("multiclass", 60)
    model = classifier().partial_fit(X, y)
    before = checks.state_of(model)
    for wrong in (np.full(X.shape[1], np.nan), np.full(X.shape[1], 1e300)):
        with pytest.raises(ValueError, match="x contains NaN or infinity, or numbers above"):
            model.learn_one(wrong, 17)
    with pytest.raises(ValueError, match="NUL"):
        classifier().partial_fit(X, y.astype(str)).learn_one(X[0], "17\0")
    assert model.classes_.tolist() == [0, 1, 2, 3]
    assert all(before[name].tobytes() == array.tobytes() for name, array in checks.state_of(model).items())
    assert model.learn_one(X[0], 17).classes_[-1] == 17


def test_predictions_on_the_way_know_only_the_classes_seen():
    X, y = stream("multiclass", 300)
    y = np.sort(y)[::-1]  # classes come one after the other, the last one first
    predicted = classifier().predict_then_learn(X, y)
    for i in range(1, 300):
        assert predicted[i] in y[:i] or predicted[i] == y[i]  # a class joins at its first row, before that row is predicted
    scores = classifier().predict_then_learn(X, y, method="decision_function")
    assert scores.shape == (300, 4)
    first_of_last = int(np.flatnonzero(y == 0)[0])
    np.testing.assert_array_equal(scores[:first_of_last, 0], 0.0)
    assert np.abs(scores[first_of_last + 1 :, 0]).min() > 0.0


def test_without_classes_the_stream_decides_and_fit_knows_them_all():
    X, y = stream("multiclass", 300)
    told = classifier(output="last").partial_fit(X, y, classes=[0, 1, 2, 3])  # a suffix mean also depends on the length
    whole = classifier(output="last").fit(X, y)
    np.testing.assert_allclose(whole.decision_function(PROBES), told.decision_function(PROBES), atol=1e-12)
    late = classifier().partial_fit(X, y)
    assert late.classes_.tolist() == [0, 1, 2, 3]
    assert (late.predict(X) == y).mean() > 0.6


@pytest.mark.parametrize("types", [(int,), (float,), ("U4",), ("U4", object)], ids=str)
@pytest.mark.parametrize("count", [1, 2, 3, labels.A_FEW, labels.A_FEW + 1, labels.FEW + 1])
def test_labels_are_found_and_encoded_however_many_there_are(types, count):
    index = np.random.default_rng(count).permutation(np.arange(3 * count) % count)
    y = index + 1000
    for kind in types:
        y = y.astype(kind)
    classes = labels.distinct(y)
    np.testing.assert_array_equal(classes, np.unique(y))
    np.testing.assert_array_equal(labels.encode(classes, y), index if count > 2 else 2.0 * index - 1.0)
    late = sorted({int(np.flatnonzero(index == c)[0]) for c in range(1, count)})
    assert labels.first_appearances(classes[:1], y) == late


@pytest.mark.parametrize("names", [("no", "yes"), (False, True), (-7, 7), (0.0, 1.0)])
def test_labels_of_any_type_come_back(names):
    X, y = stream("binary", 300)
    named = np.array(names)[y]
    model = classifier().fit(X, named)
    assert model.predict(X).dtype == named.dtype
    np.testing.assert_array_equal(model.predict(X), np.array(names)[(model.decision_function(X) >= 0.0).astype(int)])
    assert model.predict_one(X[0]) == model.predict(X[:1])[0]


@pytest.mark.filterwarnings("error")
def test_many_classes_are_no_reason_for_a_warning():
    y = np.arange(600) % 30
    X = np.column_stack([np.cos(y), np.sin(y)])
    model = AVMClassifier(gamma=100.0, delta=0.01).partial_fit(X[:500], y[:500], classes=np.arange(30))
    assert model.fit(X[:500], y[:500]).score(X[500:], y[500:]) > 0.9


def test_score_zero_is_the_second_class():
    X, _ = stream("binary", 10)
    model = classifier()
    assert model.predict_one(X[0]) is None
    assert model.score_one(X[0]) == 0.0
    assert model.predict_then_learn(X[:1], [0], classes=[0, 1]).tolist() == [1]
    assert classifier().predict_then_learn(X[:1], [2], classes=[0, 1, 2]).tolist() == [0]


# ---------------------------------------------------------------------- weights


def weighted_oracle(model, X, targets, weights, outputs):
    oracle = AVM(model.get_params(), X.shape[1], outputs)
    rng = np.random.default_rng(model.random_state)
    for x, y, weight in zip(X, targets, weights, strict=True):
        if weight > 0.0:
            oracle.learn(x, y, weight, rng.random() if oracle.uniforms else 0.0)
    return np.squeeze([oracle.scores(x) for x in PROBES])


@pytest.mark.parametrize(
    "rule", [{}, {"approximate": "bernoulli", "beta": 3.0, "random_state": 1}], ids=["always", "bernoulli"]
)
@pytest.mark.parametrize("kind", ["binary", "multiclass", "regression"])
@pytest.mark.parametrize("output", ["last", "average"])
def test_weights_multiply_the_gradient_and_zero_skips_the_row(rule, kind, output):
    X, y = stream(kind, 200)
    weights = np.random.default_rng(5).choice([0.0, 0.5, 1.0, 3.0], 200)
    params = {**SETTINGS, **rule, "output": output}
    if kind == "regression":
        model, targets = AVMRegressor(loss="l2", standardise_target=False, **{**params, "lam": 0.5}), y
    else:
        model, targets = AVMClassifier(loss="logistic", **params), 2 * y - 1 if kind == "binary" else y
    expected = weighted_oracle(model, X, targets, weights, 4 if kind == "multiclass" else 1)
    model.fit(X, y, sample_weight=weights)
    found = model.predict(PROBES) if kind == "regression" else model.decision_function(PROBES)
    np.testing.assert_allclose(found, expected, atol=1e-9)
    assert model.t_ == np.count_nonzero(weights)


def running_balance(y):
    """t / (K_t n_y(t)), by its definition."""
    return np.array([(t + 1) / (len(set(y[: t + 1])) * np.sum(y[: t + 1] == y[t])) for t in range(len(y))])


@pytest.mark.parametrize("kind", ["binary", "multiclass"])
def test_balanced_weights_of_a_stream_come_from_the_counts_so_far(kind):
    X, y = stream(kind, 200)
    classes = np.unique(y)
    plain = classifier().partial_fit(X, y, classes=classes, sample_weight=running_balance(y))
    expected = plain.decision_function(PROBES)
    whole = classifier(class_weight="balanced").partial_fit(X, y, classes=classes)
    np.testing.assert_allclose(whole.decision_function(PROBES), expected, atol=1e-9)
    chunks = classifier(class_weight="balanced").partial_fit(X[:1], y[:1], classes=classes)
    for first in range(1, 100, 9):
        chunks.partial_fit(X[first : first + 9], y[first : first + 9])
    for i in range(100, 200):
        chunks.learn_one(X[i], y[i])
    np.testing.assert_allclose(chunks.decision_function(PROBES), expected, atol=1e-9)


def test_balanced_weights_of_late_classes():
    X, y = stream("multiclass", 200)
    plain = classifier().partial_fit(X, y, sample_weight=running_balance(y))
    balanced = classifier(class_weight="balanced").partial_fit(X, y)
    np.testing.assert_allclose(balanced.decision_function(PROBES), plain.decision_function(PROBES), atol=1e-9)


def test_balanced_weights_of_fit_come_from_the_totals():
    X, y = stream("multiclass", 200)
    weights = 200.0 / (4.0 * np.bincount(y)[y])
    plain = classifier().fit(X, y, sample_weight=weights)
    balanced = classifier(class_weight="balanced").fit(X, y)
    np.testing.assert_allclose(balanced.decision_function(PROBES), plain.decision_function(PROBES), atol=1e-9)


@pytest.mark.parametrize(
    "rule", [{}, {"approximate": "bernoulli", "beta": 30.0, "random_state": 1}], ids=["always", "bernoulli"]
)
@pytest.mark.parametrize("weights", [{0: 2.0, 1: 0.25}, {1: 5.0}, {0: 0.0}, {"unknown": 3.0}], ids=str)
def test_class_weights_by_name(rule, weights):
    X, y = stream("binary", 200)
    by_row = np.array([weights.get(label, 1.0) for label in y.tolist()])
    plain = classifier(**rule).partial_fit(X, y, classes=[0, 1], sample_weight=by_row)
    named = classifier(class_weight=weights, **rule).partial_fit(X, y, classes=[0, 1])
    np.testing.assert_allclose(named.decision_function(PROBES), plain.decision_function(PROBES), atol=1e-12)
    single = classifier(class_weight=weights, **rule).partial_fit(X[:1], y[:1], classes=[0, 1])
    for x, label in zip(X[1:], y[1:], strict=True):
        single.learn_one(x, label)
    np.testing.assert_allclose(single.decision_function(PROBES), plain.decision_function(PROBES), atol=1e-9)
    assert single.t_ == plain.t_ == np.count_nonzero(by_row)


# ---------------------------------------------------------------------- probabilities


def test_probabilities_of_two_classes():
    X, y = stream("binary", 300)
    model = classifier(loss="logistic").fit(X, y)
    p = model.predict_proba(PROBES)
    np.testing.assert_allclose(p[:, 1], expit(model.decision_function(PROBES)), atol=1e-14)
    np.testing.assert_allclose(p.sum(axis=1), 1.0, atol=1e-14)
    before = classifier(loss="logistic").predict_then_learn(X, y, method="predict_proba", classes=[0, 1])
    scores = classifier(loss="logistic").predict_then_learn(X, y, method="decision_function", classes=[0, 1])
    np.testing.assert_allclose(before, np.column_stack([expit(-scores), expit(scores)]), atol=1e-14)


@pytest.mark.parametrize(
    ("kind", "make"),
    [
        ("binary", lambda: classifier(loss="logistic")),
        ("binary", lambda: kernling.AutoClassifier(points=20, window=30)),
        ("multiclass", lambda: kernling.AutoClassifier(points=20, window=30)),
    ],
)
def test_probabilities_of_one_event(kind, make):
    X, y = stream(kind, 300)
    names = np.array(["a", "b", "c", "d"])[y]
    for model in (make(), kernling.StreamPipeline([("scale", Standardise()), ("model", make())])):
        assert model.predict_proba_one(X[0]) == {}
        model.partial_fit(X, names)
        for x, expected in zip(PROBES, model.predict_proba(PROBES), strict=True):
            found = model.predict_proba_one(x)
            assert list(found) == model.classes_.tolist()
            np.testing.assert_allclose(list(found.values()), expected, atol=1e-12)


def test_no_probabilities_where_the_loss_gives_none():
    X, y = stream("multiclass", 100)
    assert not hasattr(classifier(loss="hinge"), "predict_proba")
    assert not hasattr(classifier(loss="logistic").fit(X, y), "predict_proba")
