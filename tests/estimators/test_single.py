"""Single events and small batches take short cuts, and give the same as rows that do not."""

import copy
import re

import numpy as np
import pytest
from sklearn.base import clone

import checks
import kernling
from kernling import baselines
from kernling.core.limits import Diverged
from oracles import stream

X, Y = stream("binary", 300)


def fitted(cls, **options):
    return cls(**{"gamma": 1.0, "random_state": 0} | options).partial_fit(X[:200], Y[:200])


WEIGHTS = np.random.default_rng(5).choice([0.0, 0.5, 1.0, 3.0], 300)


def text(y):
    return np.where(y > 0, "yes", "no")


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["alike", "weighted"])
@pytest.mark.parametrize("kind", ["binary", "multiclass", "text", "objects", "regression"])
@pytest.mark.parametrize("dtype", ["float64", pytest.param("float32", marks=pytest.mark.long)])
@pytest.mark.parametrize("method", ["AVM", "SPA", "DualSVRG", "AOGD", "POLK"])
def test_one_call_and_small_batches_and_single_events_learn_the_same(method, kind, dtype, weights, monkeypatch):
    rows, y = stream({"text": "binary", "objects": "binary"}.get(kind, kind), 300)
    if kind in ("text", "objects"):
        y = text(y).astype(object if kind == "objects" else "U3")
    regression = kind == "regression"
    name = f"{method}{'Regressor' if regression and method != 'AOGD' else 'Ranker' if regression else 'Classifier'}"
    cls = getattr(kernling, name)
    rows = rows.astype(dtype)

    def new():
        model = cls(gamma=1.0, random_state=0, dtype=dtype)
        return model.partial_fit(rows[:100], y[:100], **({} if regression else {"classes": np.unique(y)}))

    def given(part):
        return {} if weights is None else {"sample_weight": weights[part]}

    whole, careful, quick, single = (new() for _ in range(4))
    whole.partial_fit(rows[100:], y[100:], **given(slice(100, None)))
    for first in range(100, 300, 20):
        part = slice(first, first + 20)
        careful.partial_fit(rows[part].tolist(), y[part].tolist(), **given(part))
        for i in range(first, first + 20):
            single.learn_one(rows[i], y[i], **({} if weights is None else {"sample_weight": weights[i]}))
    with monkeypatch.context() as only:
        only.setattr(cls, "_stream", None)
        for first in range(100, 300, 20):
            part = slice(first, first + 20)
            quick.partial_fit(rows[part], y[part], **given(part))
    near = {"rtol": 1e-3, "atol": 1e-4} if dtype == "float32" else {"rtol": 1e-9, "atol": 1e-9}
    expected = checks.scores(whole, rows)
    for model in (careful, quick, single):
        assert model.t_ == whole.t_
        assert model._rng.bit_generator.state == whole._rng.bit_generator.state
        np.testing.assert_allclose(checks.scores(model, rows), expected, **near)
        if regression:
            assert model.predict_one(rows[0]) == pytest.approx(model.predict(rows[:1])[0], rel=1e-3)


@pytest.mark.parametrize("method", ["AVMClassifier", "DualSVRGRegressor", "AOGDClassifier", "SPAOneClass"])
def test_few_rows_are_predicted_as_any_rows(method, monkeypatch):
    cls = getattr(kernling, method)
    y = X[:, 0] - X[:, 1] if method.endswith("Regressor") else Y
    model = cls(gamma=1.0, random_state=0).partial_fit(X[:200], y[:200])
    for first in range(200, 300, 20):
        part = slice(first, first + 20)
        model.partial_fit(X[part], y[part])
        expected = checks.scores(model, X)[part]
        with monkeypatch.context() as only:
            only.setattr(cls, "_many_scores", None)
            np.testing.assert_allclose(checks.scores(model, X[part]), expected, rtol=1e-9, atol=1e-9)
            labels = model.predict(X[part])
        np.testing.assert_array_equal(labels, model.predict(X[part].tolist()))
        model.learn_one(X[0], y[0])


def test_a_class_that_appears_late_in_a_small_batch():
    labels = Y.copy()
    labels[250:] = 7
    whole, batches, single = fitted(kernling.AVMClassifier), fitted(kernling.AVMClassifier), fitted(kernling.AVMClassifier)
    whole.partial_fit(X[200:], labels[200:])
    for first in range(200, 300, 20):
        batches.partial_fit(X[first : first + 20], labels[first : first + 20])
    for i in range(200, 300):
        single.learn_one(X[i], labels[i])
    expected = checks.scores(whole, X)
    assert expected.shape == (300, 3)
    for model in (batches, single):
        np.testing.assert_allclose(checks.scores(model, X), expected, atol=1e-9)
        np.testing.assert_array_equal(model.predict(X[:40]), whole.predict(X)[:40])


def _with(array, place, value):
    changed = array.astype(object if isinstance(value, str) else array.dtype)
    changed[place] = value
    return changed


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (lambda X, y, w: (_with(X, (3, 1), np.nan), y, w), "NaN"),
        (lambda X, y, w: (_with(X, (3, 1), np.inf), y, w), "infinity"),
        (lambda X, y, w: (_with(X, (3, 1), 1e200), y, w), "above"),
        (lambda X, y, w: (X[:, :-1].copy(), y, w), "features"),
        (lambda X, y, w: (X, y[:-1], w), "inconsistent"),
        (lambda X, y, w: (X, y, w[:-1]), "shape"),
        (lambda X, y, w: (X, y, -w), "not negative"),
        (lambda X, y, w: (X, y, _with(w, 2, np.nan)), "finite"),
        (lambda X, y, w: (X, text(y), w), "cannot be combined"),
        (lambda X, y, w: (X, y.astype(object), w), "Unknown label type"),
        (lambda X, y, w: (X, y.astype("m8[s]"), w), "durations"),
        (lambda X, y, w: (X, y.astype(complex), w), "complex"),
        (lambda X, y, w: (X, _with(y.astype(float), 2, np.nan), w), "NaN"),
    ],
)
def test_what_is_wrong_with_a_small_batch_is_said_as_ever_and_changes_nothing(change, match):
    model = fitted(kernling.SPAClassifier)
    rows, y, weights = X[200:220], np.sign(Y[200:220]).astype(int), np.ones(20)
    model.partial_fit(rows, y, sample_weight=weights)
    before = copy.deepcopy(model)
    bad_rows, bad_y, bad_weights = change(rows, y, weights)
    with pytest.raises(ValueError, match=match) as ordinary:
        copy.deepcopy(model)._stream(bad_rows, bad_y, bad_weights)
    with pytest.raises(ordinary.type, match=f"^{re.escape(str(ordinary.value))}$"):
        model.partial_fit(bad_rows, bad_y, sample_weight=bad_weights)
    checks.assert_identical(model, before)
    if bad_rows is not rows:
        with pytest.raises(ValueError, match=match):
            model.predict(bad_rows)
    model.set_params(eta=-1.0)
    with pytest.raises(ValueError, match="eta"):
        model.partial_fit(rows, y)


def test_small_batches_with_gaps_in_memory_and_read_only_ones():
    wide, double = np.repeat(X, 2, axis=1)[:, ::2], np.repeat(Y, 2)[::2]
    fixed = X.copy()
    fixed.flags.writeable = False
    gaps, plain, read_only = (fitted(kernling.AVMClassifier) for _ in range(3))
    for first in range(200, 300, 20):
        part = slice(first, first + 20)
        gaps.partial_fit(wide[part], double[part], sample_weight=np.ones(40)[::2])
        plain.partial_fit(X[part], Y[part])
        read_only.partial_fit(fixed[part], Y[part])
        np.testing.assert_array_equal(gaps.decision_function(wide[part]), plain.decision_function(X[part]))
    checks.assert_identical(gaps, plain)
    checks.assert_identical(read_only, plain)


@pytest.mark.parametrize("shared", [False, True], ids=["own", "shared"])
def test_single_events_draw_the_same_numbers(shared):
    model = fitted(kernling.SPAClassifier, random_state=np.random.default_rng(0) if shared else 0)
    twin = copy.deepcopy(model)
    for x, label in zip(X[200:], Y[200:], strict=True):
        model.learn_one(x, label)
        with pytest.raises(ValueError, match="NaN"):
            model.learn_one(np.full_like(x, np.nan), label)
        twin.partial_fit(x[np.newaxis], [label], sample_weight=[1.0])
    assert model._rng.bit_generator.state == twin._rng.bit_generator.state
    np.testing.assert_allclose(checks.scores(model, X), checks.scores(twin, X), atol=1e-9)


def test_rows_with_gaps_and_other_types():
    wide = np.repeat(X, 2, axis=1)[:, ::2]
    model, twin = fitted(kernling.AVMClassifier), fitted(kernling.AVMClassifier)
    for i in range(200, 250):
        model.learn_one(wide[i], Y[i])
        twin.learn_one(X[i].tolist(), Y[i])
        assert model.score_one(wide[i]) == twin.score_one(X[i])
    checks.assert_identical(model, twin)


DIVERGES = {
    "features": kernling.AOGDClassifier(features="linear", loss="squared", eta=2.0, second_eta=2.0, random_state=0),
    "waiting": kernling.POLKRegressor(kernel="linear", loss="l2", eta=300.0, lam=0.0, batch_size=3),
    "points": baselines.BOGDRegressor(kernel="linear", loss="l2", eta=3.0, budget=9999, random_state=0),
}


@pytest.mark.parametrize("kind", ["batch", "event", "both"])
@pytest.mark.parametrize("name", DIVERGES)
def test_a_batch_that_diverges_changes_nothing(name, kind):
    rows = 1 if kind == "event" else 32
    model = clone(DIVERGES[name])
    model.partial_fit(X[:4], Y[:4], **({"classes": np.unique(Y)} if name == "features" else {}))

    def learn(first):
        if kind == "event" or (kind == "both" and first % 64):
            model.learn_one(X[first], Y[first])
        else:
            model.partial_fit(X[first : first + rows], Y[first : first + rows])

    for first in list(range(0, 300 - rows, rows)) * 20:
        before = copy.deepcopy(model)
        try:
            learn(first)
        except Diverged:
            break
    else:
        pytest.fail("it never diverges")
    checks.assert_identical(model, before)


def test_a_copy_of_a_pipeline_does_not_see_later_events():
    rows = [dict(zip("abc", row, strict=False)) for row in X[:, :3].tolist()]
    pipeline = kernling.StreamPipeline.auto(kernling.AVMClassifier(gamma=1.0)).partial_fit(rows[:100], Y[:100])
    pipeline.learn_one(rows[100], Y[100])
    encode = pipeline.steps_[0][1]
    held, state = copy.copy(encode), encode.to_state()
    other = pipeline.with_model(copy.deepcopy(pipeline.model_))
    scale = encode.scale_
    mean = scale.mean_.copy()
    for i in range(101, 104):
        pipeline.learn_one(rows[i], Y[i])
    assert held.to_state() == other.steps_[0][1].to_state() == state
    np.testing.assert_array_equal(scale.mean_, mean)
    assert not np.array_equal(encode.scale_.mean_, mean)


@pytest.mark.parametrize(
    "model",
    [
        kernling.POLKClassifier(gamma=1.0, max_points=None, parsimony=0.0, batch_size=7),
        kernling.AVMClassifier(gamma=1.0, delta=0.0, max_cells=None, zero_cells=True),
    ],
    ids=["POLK", "AVM"],
)
def test_a_model_that_grows_with_small_batches(model, monkeypatch):
    rows, y = stream("binary", 800)
    whole, batches = (clone(model).partial_fit(rows[:50], y[:50], classes=np.unique(y)) for _ in range(2))
    whole.partial_fit(rows[50:], y[50:])
    monkeypatch.setattr(type(model), "_stream", None)
    for first in range(50, 800, 125):
        batches.partial_fit(rows[first : first + 125], y[first : first + 125])
    assert batches.n_stored_ == whole.n_stored_ > 100
    np.testing.assert_allclose(checks.scores(batches, rows), checks.scores(whole, rows), rtol=1e-7, atol=1e-7)


def test_another_block_size_in_between_does_not_matter():
    rows, y = stream("binary", 3000)
    model, twin = (kernling.AVMClassifier(gamma=1.0, block_size=16).partial_fit(rows[:50], y[:50]) for _ in range(2))
    model.partial_fit(rows[50:60], y[50:60]).set_params(block_size=4096)
    twin.partial_fit(rows[50:60], y[50:60])
    np.testing.assert_array_equal(model.partial_fit(rows, y).predict(rows), twin.partial_fit(rows, y).predict(rows))
