"""Running metrics equal scikit-learn's on everything seen, and over the window on what is in it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cdist
from sklearn import metrics as sk

import kernling as kl
from kernling.estimators.risk import regularised_risk, squared_norm
from kernling.evaluate import AUC, Batch, LogLoss, Window, batch, held_out, metric, online, test_then_train
from kernling.evaluate.metrics import METRICS
from kernling.io import stream, synthetic
from kernling.tables import Standardise
from oracles import stream as events

LABELS = {
    "mistakes": lambda y, p: 1 - sk.accuracy_score(y, p),
    "accuracy": sk.accuracy_score,
    "f1": lambda y, p: sk.f1_score(y, p, average="macro", zero_division=0.0),
    "rmse": sk.root_mean_squared_error,
    "mae": sk.mean_absolute_error,
}


def recall_of_what_came(y, p):
    return np.nan if len(np.unique(y)) < 2 else np.mean([(p[y == label] == label).mean() for label in np.unique(y)])


def cuts(n, seed):
    return np.split(np.arange(n), np.sort(np.random.default_rng(seed).integers(0, n, 5)))


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(3, 6), st.integers(1, 90), st.sampled_from(["int", "str"]))
def test_labels(seed, classes, window, kind):
    rng = np.random.default_rng(seed)
    y, p = rng.integers(classes, size=(2, 80))
    y[:3] = p[:3] = range(3)  # at least three classes
    if kind == "str":
        y, p = (np.array([f"class {'x' * v}{v}" for v in part], dtype=object) for part in (y, p))
    recent = Window(window)
    running = {name: metric(name) for name in ("mistakes", "accuracy", "f1", "balanced_accuracy")}
    for part in cuts(80, seed):
        batch = Batch(y[part], p[part])
        recent.update(batch)
        for one in running.values():
            one.update(batch)
    for name in ("mistakes", "accuracy", "f1"):
        assert running[name].value == pytest.approx(LABELS[name](y, p), abs=1e-12)
    for name in ("mistakes", "accuracy"):
        assert recent.value(METRICS[name]) == pytest.approx(LABELS[name](y[-window:], p[-window:]), abs=1e-12)
    assert running["balanced_accuracy"].value == pytest.approx(recall_of_what_came(y, p))
    last = recent.value(METRICS["balanced_accuracy"])
    assert last == pytest.approx(recall_of_what_came(y[-window:], p[-window:]), nan_ok=True)
    assert running["accuracy"].majority == max(np.unique(y, return_counts=True)[1]) / 80


def test_balanced_accuracy_and_f1_of_two_classes_are_scikit_learns():
    rng = np.random.default_rng(0)
    y, p = np.where(rng.random((2, 500)) < 0.2, 1, -1)
    for name, expected in [("balanced_accuracy", sk.balanced_accuracy_score), ("f1", sk.f1_score)]:
        one = metric(name)
        one.update(Batch(y[:77], p[:77]))
        one.update(Batch(y[77:], p[77:]))
        assert one.value == pytest.approx(expected(y, p), abs=1e-12)


def test_f1_of_one_class_alone_is_none():
    one = metric("f1")
    one.update(Batch(np.zeros(5), np.zeros(5)))
    assert np.isnan(one.value)  # nobody knows yet whether this is the positive class
    one.update(Batch(np.zeros(1), np.ones(1)))
    assert one.value == 0.0


@pytest.mark.parametrize("classes", [(-1, 1), ("no", "perhaps", "yes")])
def test_a_window_has_the_classes_of_the_whole_stream(classes):
    rng = np.random.default_rng(1)
    y = rng.choice(np.array(classes), 200, p=[1 / len(classes)] * len(classes))
    y[100:] = classes[0]
    p = np.where(rng.random(200) < 0.8, y, rng.permutation(y))
    p[-20:] = y[-20:]
    whole, recent = metric("f1").counts, Window(20)
    for part in np.array_split(np.arange(200), 10):
        whole.update(Batch(y[part], p[part]))
        recent.update(Batch(y[part], p[part]))
        t = slice(max(part[-1] - 19, 0), part[-1] + 1)
        average = {"average": "macro"} if len(classes) > 2 else {"pos_label": classes[-1]}
        expected = sk.f1_score(y[t], p[t], labels=classes, zero_division=np.nan, **average)
        lately = recent.counts(whole.classes)
        assert metric("f1", lately).value == pytest.approx(expected, nan_ok=True)
    assert np.isnan(metric("f1", lately).value) == (len(classes) == 2)
    assert np.isnan(metric("balanced_accuracy", lately).value)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 100))
def test_regression(seed, window):
    rng = np.random.default_rng(seed)
    y, p = rng.standard_normal((2, 80)) * 10.0 ** rng.integers(-3, 4)
    for name in ("rmse", "mae"):
        one, recent = metric(name), Window(window)
        for part in cuts(80, seed):
            one.update(Batch(y[part], p[part]))
            recent.update(Batch(y[part], p[part]))
        assert one.value == pytest.approx(LABELS[name](y, p))
        assert recent.value(METRICS[name]) == pytest.approx(LABELS[name](y[-window:], p[-window:]))


def test_log_loss():
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(4), 300)
    y = rng.integers(4, size=300)
    p[0] = np.eye(4)[(y[0] + 1) % 4]  # what came true had probability 0
    one, recent = LogLoss(), Window(50)
    for part in cuts(300, 1):
        batch = Batch(y[part], y[part], probability=p[part, y[part]])
        one.update(batch)
        recent.update(batch)
    assert one.value == pytest.approx(sk.log_loss(y, p), rel=1e-9)
    assert recent.value(LogLoss) == pytest.approx(sk.log_loss(y[-50:], p[-50:], labels=range(4)))


@settings(max_examples=80, deadline=None)
@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from([1e-12, 1e-6, 1.0, 1e6, 1e12]),
    st.sampled_from([0.0, 1.0, 100.0]),
    st.booleans(),
    st.integers(2, 400),
)
def test_auc_is_within_its_bound(seed, scale, offset, ties, n):
    rng = np.random.default_rng(seed)
    y = rng.integers(2, size=n)
    y[:2] = 0, 1
    score = (rng.standard_normal(n) + y + offset) * scale
    if ties:
        score = np.round(score / scale) * scale
    one = AUC()
    for part in cuts(n, seed):
        one.update(Batch(y[part], y[part], score=score[part]))
    assert abs(one.value - sk.roc_auc_score(y, score)) <= one.error_bound + 1e-12
    assert one._two.counts.nbytes < 3e6


def test_auc_of_many_scores_is_precise():
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=300_000)
    score = rng.standard_normal(300_000) + y
    one, recent = AUC(), Window(1000)
    for part in np.array_split(np.arange(300_000), 40):
        one.update(Batch(y[part], y[part], score=score[part]))
        recent.update(Batch(y[part], y[part], score=score[part]))
    assert one.error_bound < 1e-3
    assert one.value == pytest.approx(sk.roc_auc_score(y, score), abs=1e-5)
    assert recent.value(AUC) == pytest.approx(sk.roc_auc_score(y[-1000:], score[-1000:]), abs=1e-3)


def test_auc_when_the_second_class_comes_first():
    one = AUC()
    one.update(Batch(np.array([1, 1]), np.array([1, 1]), score=np.array([2.0, 3.0])))
    assert np.isnan(one.value)
    one.update(Batch(np.array([-1]), np.array([1]), score=np.array([2.5])))
    assert one.value == 0.5
    with pytest.raises(ValueError, match="two classes, but there are 3"):
        one.update(Batch(np.array([7]), np.array([1]), score=np.array([2.5])))


def test_memory_does_not_grow():
    recent, one = Window(100), metric("accuracy")
    for i in range(500):
        batch = Batch(np.arange(30) % 3, np.full(30, i % 3))
        recent.update(batch)
        one.update(batch)
    assert sum(len(part.y) for part in recent._last) == 100
    assert all(part.y.base is None for part in recent._last)  # no chunk is kept alive by a view of it
    assert len(one.counts.came) == 3


def test_errors():
    with pytest.raises(ValueError, match="a metric must be one of"):
        metric("kappa")
    with pytest.raises(ValueError, match="at least 1 row"):
        Window(0)
    with pytest.raises(ValueError, match="AUC needs the scores"):
        AUC().update(Batch(np.zeros(1), np.zeros(1)))
    with pytest.raises(ValueError, match="log loss needs probabilities"):
        LogLoss().update(Batch(np.zeros(1), np.zeros(1)))
    assert all(np.isnan(make().value) for make in METRICS.values())


def test_auc_of_several_classes_is_the_mean_of_each_against_the_rest():
    rng = np.random.default_rng(4)
    y = rng.choice(np.array(["a", "b", "c"]), p=[0.6, 0.3, 0.1], size=3000)
    classes = np.unique(y)
    table = (y[:, np.newaxis] == classes) + rng.standard_normal((3000, 3))
    one, recent = AUC(), Window(1000)
    for part in np.array_split(np.arange(3000), 7):
        batch = Batch(y[part], y[part], score=table[part], classes=classes)
        one.update(batch)
        recent.update(batch)
    expected = [np.mean([sk.roc_auc_score(y[n:] == c, table[n:, k]) for k, c in enumerate(classes)]) for n in (0, 2000)]
    assert abs(one.value - expected[0]) <= one.error_bound < 0.01
    assert recent.value(AUC) == pytest.approx(expected[1], abs=0.01)


def test_auc_when_a_third_class_comes_late():
    """Its area counts the rows from then on; those of a part that had one score for two classes count for none."""
    X, y = synthetic("multidist", 1200, seed=0).load()
    late = np.argsort(y == 3, kind="stable")  # class 3 comes at the end
    X, y = X[late], y[late]
    (row,) = test_then_train(kl.AVMClassifier(gamma=2.0, delta=0.3), stream(X, y), metrics=["auc", "mistakes"])
    assert 0.7 < row["auc"] <= 1.0


# ---------------------------------------------------------------------- risk


def slow_risk(model, X, y):
    """Mean loss plus lam / 2 ||f||^2, from the points and coefficients of the output."""
    gram = np.exp(-model.gamma_ * cdist(model.support_vectors_, model.support_vectors_, "sqeuclidean"))
    coef = model.dual_coef_.reshape(len(gram), -1)
    f = np.exp(-model.gamma_ * cdist(X, model.support_vectors_, "sqeuclidean")) @ coef
    if f.shape[1] == 1:
        m = np.where(y == model.classes_[1], 1.0, -1.0) * f[:, 0]
    else:
        own = np.searchsorted(model.classes_, y)
        rows = np.arange(len(y))
        if model.loss == "softmax":
            losses = np.log(np.exp(f).sum(axis=1)) - f[rows, own]
        wrong = f.copy()
        wrong[rows, own] = -np.inf
        m = f[rows, own] - wrong.max(axis=1)
    if model.loss != "softmax" or f.shape[1] == 1:
        values = {"hinge": np.maximum(0.0, 1.0 - m), "squared_hinge": np.maximum(0.0, 1.0 - m) ** 2 / 2.0}
        losses = values.get(model.loss, np.log1p(np.exp(-m)))
    return losses.mean() + model.lam / 2.0 * np.einsum("ko,kl,lo->", coef, gram, coef)


@pytest.mark.parametrize("kind", ["binary", "multiclass"])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic", "softmax"])
def test_risk_is_the_mean_loss_plus_the_regulariser(kind, loss):
    X, y = events(kind, 400)
    data, test = (X[:300], y[:300]), (X[300:], y[300:])
    model = kl.POLKClassifier(gamma=2.0, eta=0.8, lam=0.05, loss=loss)
    row = batch(model, data, test=test, metrics=["mistakes", "risk"])[0]
    order = np.random.default_rng(0).permutation(300)
    fitted = model.fit(X[order], y[order])
    assert row["risk"] == pytest.approx(slow_risk(fitted, *test), rel=1e-9)
    assert row["risk"] == regularised_risk(fitted, *test)
    assert "risk_constant" not in row


def test_risk_of_a_pipeline_and_of_both_parts_of_a_model():
    X, y = events("binary", 300)
    scaled = kl.StreamPipeline([("scale", Standardise()), ("model", kl.AVMClassifier(gamma=1.0))])
    row = held_out(scaled, (X[:200], y[:200]), (X[200:], y[200:]), metrics=["risk"])[0]
    assert row["risk"] > 0.0
    dual = kl.DualSVRGClassifier(gamma=1.0, lam=0.1, oracle="budget", budget=5, random_state=0).fit(X, y)
    points, free = dual.state_.model, dual.state_.linear
    coef = points.clock[0] * points.coef[0, 0, :5]
    gram = np.exp(-cdist(points.points[:5], points.points[:5], "sqeuclidean"))
    assert squared_norm(dual) == pytest.approx(coef @ gram @ coef + free.coef[0, 0] @ free.coef[0, 0])


def test_risk_where_there_is_none():
    X, y = events("binary", 50)
    with pytest.raises(ValueError, match="risk is of one model on held-out rows"):
        online(kl.AVMClassifier(), (X, y), metrics=["risk"])
    with pytest.raises(TypeError, match="which a AOGDClassifier is not"):
        batch(kl.AOGDClassifier(), (X, y), metrics=["risk"])
    with pytest.raises(ValueError, match="y has the label"):
        regularised_risk(kl.AVMClassifier().fit(X, y), X[:2], [0, 7])
