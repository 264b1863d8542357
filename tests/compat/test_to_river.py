"""Estimators as River models: River's own checks, features that come and go, and equality with the estimator itself."""

import itertools
import pickle
import warnings
from collections import deque

import numpy as np
import pandas
import polars
import pytest
from river import anomaly, checks, datasets, evaluate, linear_model, metrics, preprocessing
from sklearn.base import clone

import kernling
import kernling.baselines
from checks import assert_identical, estimators
from kernling.compat import to_river
from kernling.compat.names import Vocabulary
from kernling.tables import Standardise

LOGISTIC = kernling.AVMClassifier(loss="logistic", gamma=0.1, delta=0.5, lam=0.01, random_state=0)
REGRESSOR = kernling.AVMRegressor(gamma=0.1, delta=0.5, lam=0.01, random_state=0)
ROWS = list(datasets.Phishing().take(300))


def type_name(model):
    return type(model).__name__


class CreditCard:
    """In place of River's data set of this name, which has to be downloaded: outliers are three times as wide."""

    def take(self, n):
        rng = np.random.default_rng(0)
        for _ in range(n):
            odd = rng.random() < 0.05
            yield dict(enumerate((rng.standard_normal(8) * (3.0 if odd else 1.0)).tolist())), int(odd)


def at_defaults():
    """All estimators, for the long run."""
    for model in (cls() for cls in estimators()):
        marks = [pytest.mark.long]
        if model.task == "metric":
            marks = [pytest.mark.skip(reason="it transforms rows by what labels say, which River has no models for")]
        elif type_name(model) in EXPECTED:
            error, reason = EXPECTED[type_name(model)]
            marks.append(pytest.mark.xfail(raises=error, strict=True, reason=reason))
        yield pytest.param(model, marks=marks)


QUICK = [kernling.AVMClassifier(loss="logistic"), pytest.param(kernling.SPAOneClass(), marks=pytest.mark.long)]
DIVERGES = "its steps are linear in columns, which reach 250 in one of River's data sets: as they come it diverges, and says so"
GROWS = "of columns that are not scaled every row is far from all others and is stored, and kernel values fill a square"
EXPECTED = {
    "LastPointOGDClassifier": (ValueError, DIVERGES),
    "SPAMNetClassifier": (ValueError, DIVERGES),
    "OPAUCClassifier": (ValueError, DIVERGES),
    "POLKClassifier": (AssertionError, GROWS),
    "ProjectronRegressor": (AssertionError, GROWS),
}
THESE = [
    kernling.baselines.LastPointOGDClassifier(eta=0.01),
    kernling.baselines.SPAMNetClassifier(eta=0.01),
    kernling.baselines.OPAUCClassifier(eta=0.01),
    kernling.POLKClassifier(gamma=0.01),
    kernling.baselines.ProjectronRegressor(gamma=0.01),
]
SCALED = [kernling.StreamPipeline([("scale", Standardise()), ("model", model)]) for model in THESE]
PIPELINE = kernling.StreamPipeline([("scale", Standardise()), ("model", kernling.AVMRegressor())])


def pass_rivers_checks(model, monkeypatch):
    monkeypatch.setattr(datasets, "CreditCard", CreditCard)
    wrapped = to_river(model, seed=0)
    assert not wrapped._unit_test_skips()
    checks.check_estimator(wrapped)


@pytest.mark.contract("river")
@pytest.mark.parametrize("model", [*QUICK, *at_defaults()], ids=type_name)
def test_rivers_own_checks(model, monkeypatch):
    pass_rivers_checks(model, monkeypatch)


@pytest.mark.parametrize("model", [PIPELINE, *(pytest.param(model, marks=pytest.mark.long) for model in SCALED)])
def test_rivers_own_checks_of_pipelines(model, monkeypatch):
    pass_rivers_checks(model, monkeypatch)


# ---------------------------------------------------------------------- what is learned


@pytest.mark.parametrize(("model", "data"), [(LOGISTIC, datasets.Phishing()), (REGRESSOR, datasets.TrumpApproval())])
def test_it_is_the_estimator_on_rows_of_its_columns(model, data):
    rows = list(data.take(200))
    names = sorted(rows[0][0])
    wrapped, own = to_river(model, columns=20), clone(model)
    table = np.zeros((200, 20))
    table[:, : len(names)] = [[x[name] for name in names] for x, _ in rows]
    said = []
    for x, y in rows:
        said.append(wrapped.predict_one(x))
        wrapped.learn_one(x, y)
    targets = np.array([y for _, y in rows])
    expected = own.predict_then_learn(table, targets)
    np.testing.assert_allclose(np.array(said[2:], dtype=float), expected[2:].astype(float), rtol=1e-9)
    assert wrapped.learned.t_ == own.t_ == 200
    assert not hasattr(model, "t_")


def test_unused_columns_change_nothing():
    narrow, wide = to_river(LOGISTIC, columns=9), to_river(LOGISTIC, columns=500)
    for x, y in ROWS:
        narrow.learn_one(x, y)
        wide.learn_one(x, y)
    for x, _ in ROWS[:50]:
        for label, p in narrow.predict_proba_one(x).items():
            assert wide.predict_proba_one(x)[label] == pytest.approx(p, abs=1e-9)


def test_weights():
    wrapped, plain = to_river(LOGISTIC), to_river(LOGISTIC)
    for x, y in ROWS:
        wrapped.learn_one(x, y, w=2.0 if y else 0.0)
        if y:
            plain.learn_one(x, y, w=2.0)
    assert wrapped.learned.t_ == plain.learned.t_ == sum(y for _, y in ROWS)


def test_the_width_goes_by_the_features_of_the_first_row():
    wrapped = to_river(kernling.AVMClassifier(), columns=64)
    wrapped.learn_one({"a": 1.0, "b": 2.0, "c": 0.0, "d": 1.0}, True)
    assert wrapped.learned.gamma_ == 0.25
    assert wrapped.clone().learned.gamma == "scale"
    detector = to_river(kernling.SPAOneClass(), columns=64)
    detector.learn_one({"a": 1.0, "b": 2.0})
    assert detector.learned.gamma_ == 32.0 / 2.0


def test_a_model_that_has_learned_goes_on():
    frame = pandas.DataFrame([x for x, _ in ROWS])
    model = kernling.AVMClassifier(loss="logistic", gamma=0.1, delta=0.5).fit(frame, [y for _, y in ROWS])
    wrapped = to_river(model)
    x, y = ROWS[0]
    assert wrapped.predict_one(x) == model.predict(frame[:1])[0]
    wrapped.learn_one(dict(reversed(x.items())), y)
    assert (wrapped.learned.t_, model.t_) == (301, 300)
    assert wrapped.clone().predict_one(x) is None
    labels = [y for _, y in ROWS]
    nameless = to_river(kernling.AVMClassifier(loss="logistic", gamma=0.1, delta=0.5).fit(frame.to_numpy(), labels))
    numbered = dict(enumerate(x.values()))
    assert nameless.predict_proba_one(numbered) == to_river(model).predict_proba_one(x)


@pytest.mark.parametrize("frame", [pandas.DataFrame, polars.DataFrame])
def test_many_rows_at_once(frame):
    one, many = to_river(LOGISTIC), to_river(LOGISTIC)
    X, y = frame([x for x, _ in ROWS]), [y for _, y in ROWS]
    series = type(X[X.columns[0]])(y)
    assert list(many.predict_many(X)) == [None] * 300
    for x, label in ROWS:
        one.learn_one(x, label)
    many.learn_many(X[:100], series[:100])
    many.learn_many(X[100:], series[100:])
    assert list(many.predict_many(X)) == [one.predict_one(x) for x, _ in ROWS]
    p = many.predict_proba_many(X)
    assert type(p) is type(X)
    expected = [one.predict_proba_one(x)[True] for x, _ in ROWS]
    np.testing.assert_allclose(p.to_numpy()[:, 1], expected, atol=1e-9)
    assert_identical(many.learned, pickle.loads(pickle.dumps(many)).learned)


# ---------------------------------------------------------------------- features that come and go


def test_names_share_columns_once_these_are_taken():
    names = Vocabulary(4)
    np.testing.assert_array_equal(names.row({"c": 3.0, "a": 1.0}, learning=True), [1.0, 3.0, 0.0, 0.0])
    np.testing.assert_array_equal(names.row({"z": 5.0}, learning=False), [0.0, 0.0, 0.0, 0.0])
    np.testing.assert_array_equal(names.row({"b": 2.0, "a": None}, learning=True), [0.0, 0.0, 2.0, 0.0])
    with pytest.warns(UserWarning, match="all 4 columns are taken, so 'e' and all further names share them"):
        first = names.row({"d": 4.0, "f": 7.0, "e": 0.0}, learning=True)
    assert first.sum() == 11.0
    assert list(names.place) == ["a", "c", "b", "d"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again = names.row({"f": 7.0}, learning=False)
        np.testing.assert_array_equal(names.row({"f": 7.0}, learning=True), again)
    table = names.rows({"a": np.array([1.0, np.nan]), "f": np.array([np.nan, 7.0])}, 2, learning=True)
    np.testing.assert_array_equal(table, [[1.0, 0.0, 0.0, 0.0], again])


def test_text_is_a_feature_of_its_own():
    names = Vocabulary(5)
    np.testing.assert_array_equal(names.row({"from": "JFK", "km": 3}, learning=True), [1.0, 3.0, 0.0, 0.0, 0.0])
    np.testing.assert_array_equal(names.row({"from": "EWR", "km": True}, learning=True), [0.0, 1.0, 1.0, 0.0, 0.0])
    model = to_river(kernling.AVMClassifier(gamma=2.0, delta=0.1))
    model.learn_many(pandas.DataFrame({"from": ["JFK", "EWR"], "km": [1.0, 2.0]}), pandas.Series(["late", "early"]))
    assert list(model._names.place) == ["from=JFK", "km", "from=EWR"]
    assert model.predict_one({"from": "JFK", "km": 1.0}) == "late"
    with pytest.raises(TypeError, match="feature 'x' must be a number or text"):
        model.learn_one({"x": [1.0]}, "late")


def test_memory_does_not_grow_with_the_vocabulary():
    model = to_river(LOGISTIC, columns=16)
    with pytest.warns(UserWarning, match="share them") as caught:
        deque(model.learn_one({f"word{i}": 1.0, f"word{i % 7}": 1.0}, i % 7 > 3) for i in range(300))
    assert len(caught) == 1
    assert model.learned.n_features_in_ == len(model._names.place) == 16
    assert model.predict_one({"word1": 1.0}) is False
    assert model.predict_one({"word6": 1.0}) is True


@pytest.mark.parametrize("learned", [0, 20])
@pytest.mark.parametrize(
    "call",
    [
        lambda model: model.learn_one({"new": np.nan, "newer": 1.0}, True),
        lambda model: model.learn_one({"new": 1.0}, np.nan),
        lambda model: model.learn_one({"new": 1.0}, True, w=-1.0),
        lambda model: model.learn_many(pandas.DataFrame({"new": [1.0, np.inf]}), pandas.Series([True, False])),
        lambda model: model.learn_many(pandas.DataFrame({"new": [1.0, 2.0]}), pandas.Series([True])),
    ],
)
def test_a_call_that_raises_leaves_no_trace(call, learned):
    model = to_river(kernling.AVMClassifier(loss="logistic", delta=0.5, random_state=0))
    for x, y in ROWS[:learned]:
        model.learn_one(x, y)
    names = dict(model._names.place)
    before = pickle.dumps(model.learned) if learned else None
    with pytest.raises((ValueError, TypeError)):
        call(model)
    assert model._names.place == names
    if learned:
        assert pickle.dumps(model.learned) == before
    model.learn_one(*ROWS[0])
    assert model.learned.gamma_ == 1.0 / len(ROWS[0][0])
    assert model.learned.t_ == learned + 1


# ---------------------------------------------------------------------- River's evaluation


def test_progressive_validation():
    scaler = preprocessing.StandardScaler
    ours = evaluate.progressive_val_score(datasets.Phishing(), scaler() | to_river(LOGISTIC), metrics.Accuracy())
    assert ours.get() > 0.85
    trees = evaluate.progressive_val_score(datasets.Phishing(), scaler() | to_river(LOGISTIC), metrics.ROCAUC())
    assert trees.get() > 0.9
    values = evaluate.progressive_val_score(datasets.TrumpApproval(), to_river(PIPELINE), metrics.MAE())
    linear = evaluate.progressive_val_score(datasets.TrumpApproval(), scaler() | linear_model.LinearRegression(), metrics.MAE())
    assert values.get() < linear.get()


def test_several_classes_in_a_pipeline():
    model = preprocessing.StandardScaler() | to_river(kernling.POLKClassifier(loss="softmax", eta=2.0, parsimony=1e-3))
    score = evaluate.progressive_val_score(datasets.ImageSegments().take(1000), model, metrics.Accuracy())
    assert score.get() > 0.6
    assert set(model.predict_proba_one(next(iter(datasets.ImageSegments()))[0])) == {
        y for _, y in datasets.ImageSegments().take(1000)
    }


def test_an_anomaly_detector():
    detector = to_river(kernling.SPAOneClass(random_state=0))
    rows = list(CreditCard().take(1000))
    assert detector.score_one(rows[0][0]) == 0.0
    auc = evaluate.progressive_val_score(rows, detector, metrics.ROCAUC())
    assert auc.get() > 0.9
    x = rows[0][0]
    row = np.zeros((1, 128))
    row[0, :8] = [x[name] for name in range(8)]
    more_normal = detector.learned.recent_scores_ > detector.learned.score_samples(row)[0]
    assert detector.score_one(x) == pytest.approx(more_normal.mean(), abs=2.0 / len(more_normal))  # rounding may undo a tie
    assert detector.score_one(dict.fromkeys(range(8), 50.0)) == 1.0
    filtered = anomaly.QuantileFilter(detector.clone(), q=0.95)
    for x, _ in itertools.islice(rows, 50):
        filtered.learn_one(x)


def test_no_probabilities_where_the_loss_gives_none():
    model = to_river(kernling.AVMClassifier())
    with pytest.raises(NotImplementedError, match="loss='softmax'"):
        model.predict_proba_one({"a": 1.0})


@pytest.mark.parametrize("model", [kernling.AOGDMetric(), Standardise(), linear_model.LogisticRegression(), None])
def test_what_is_no_model_for_river(model):
    with pytest.raises(TypeError, match="to_river takes"):
        to_river(model)
    with pytest.raises(ValueError, match="columns must be at least 1"):
        to_river(LOGISTIC, columns=0)
