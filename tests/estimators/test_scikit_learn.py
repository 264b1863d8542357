"""Estimators inside scikit-learn's own tools, and with tables whose columns have names."""

from xml.etree import ElementTree

import numpy as np
import pandas
import polars
import pytest
import sklearn
from joblib import Parallel, delayed
from sklearn.base import clone, is_regressor
from sklearn.calibration import CalibratedClassifierCV
from sklearn.model_selection import GridSearchCV, cross_val_score, cross_validate
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags

import checks
import kernling
from checks import assert_identical
from kernling.tables import Standardise
from oracles import stream

X, LABELS = stream("binary", 200)
SEVERAL = stream("multiclass", 200)
VALUES = stream("regression", 200)
CLASSIFIER = kernling.AVMClassifier(gamma=1.0, delta=0.5, lam=0.05, random_state=0)
REGRESSOR = kernling.AVMRegressor(gamma=1.0, delta=0.5, lam=0.05, random_state=0)
METRIC = kernling.AOGDMetric(random_state=0)
KINDS = [cls(random_state=0) for cls in sorted(checks.one_per_kind_of_state(), key=lambda cls: cls.__name__)]
NAMES = ["width", "height", "größe"]
FRAMES = {
    "pandas": lambda rows, names=NAMES: pandas.DataFrame(rows, columns=names),
    "polars": lambda rows, names=NAMES: polars.DataFrame(rows, schema=names),
}


# ---------------------------------------------------------------------- tools that fit, clone and search


@pytest.mark.parametrize(("model", "data"), [(CLASSIFIER, (X, LABELS)), (REGRESSOR, VALUES)], ids=["classifier", "regressor"])
def test_a_grid_search_finds_the_width_that_cross_validation_likes_best(model, data):
    widths = [1e-6, 1.0]
    search = GridSearchCV(model, {"gamma": widths}, cv=3).fit(*data)
    by_hand = [cross_val_score(clone(model).set_params(gamma=gamma), *data, cv=3).mean() for gamma in widths]
    assert search.best_params_["gamma"] == widths[int(np.argmax(by_hand))]
    assert by_hand[0] != by_hand[1]
    np.testing.assert_array_equal(
        search.predict(data[0]), clone(model).set_params(**search.best_params_).fit(*data).predict(data[0])
    )


def test_a_pipeline_scales_first():
    far = X * [1.0, 100.0, 0.01] + 5.0
    pipeline = make_pipeline(StandardScaler(), clone(CLASSIFIER)).fit(far, LABELS)
    by_hand = clone(CLASSIFIER).fit(StandardScaler().fit_transform(far), LABELS)
    assert_identical(pipeline[-1], by_hand)
    searched = GridSearchCV(pipeline, {"avmclassifier__lam": [0.01, 0.1]}, cv=2).fit(far, LABELS)
    assert searched.best_estimator_[-1].t_ == len(X)


def test_calibration_gives_probabilities_where_the_loss_gives_none():
    assert not hasattr(CLASSIFIER, "predict_proba")
    calibrated = CalibratedClassifierCV(CLASSIFIER, cv=3).fit(X, LABELS)
    p = calibrated.predict_proba(X)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    assert p[LABELS == 1, 1].mean() > p[LABELS == 0, 1].mean() + 0.2


def test_one_against_the_rest():
    rows, labels = SEVERAL
    model = OneVsRestClassifier(CLASSIFIER).fit(rows, labels)
    for k, one in enumerate(model.estimators_):
        assert_identical(one, clone(CLASSIFIER).fit(rows, (labels == model.classes_[k]).astype(int)))
    streamed = OneVsRestClassifier(CLASSIFIER).partial_fit(rows[:50], labels[:50], classes=np.unique(labels))
    streamed.partial_fit(rows[50:], labels[50:])
    assert all(one.t_ == len(rows) for one in streamed.estimators_)


# ---------------------------------------------------------------------- in parallel


def test_models_learn_in_parallel_processes_and_threads():
    models = [clone(CLASSIFIER).set_params(lam=lam) for lam in (0.01, 0.1)]
    alone = [clone(model).fit(X, LABELS) for model in models]
    for backend in ("loky", "threading"):
        together = Parallel(n_jobs=2, backend=backend)(delayed(clone(model).fit)(X, LABELS) for model in models)
        for one, other in zip(alone, together, strict=True):
            assert_identical(one, other)


@pytest.mark.parametrize("n_jobs", [2, -1])
@pytest.mark.parametrize("cls", [kernling.AVMClassifier, kernling.DualSVRGClassifier])
def test_n_jobs_changes_no_score(cls, n_jobs):
    model = cls(gamma=1.0, random_state=0).fit(X, LABELS)
    rows = np.tile(X, (30, 1))
    one = model.decision_function(rows)
    np.testing.assert_array_equal(model.set_params(n_jobs=n_jobs).decision_function(rows), one)


# ---------------------------------------------------------------------- names of columns


@pytest.mark.parametrize("kind", FRAMES)
@pytest.mark.parametrize("model", KINDS, ids=lambda model: type(model).__name__)
def test_names_are_kept_and_must_stay(model, kind):
    frame = FRAMES[kind]
    y = VALUES[1] if is_regressor(model) else LABELS
    nameless = clone(model).partial_fit(X, y).partial_fit(X, y)
    model = clone(model).partial_fit(frame(X), y)
    assert model.feature_names_in_.tolist() == NAMES
    assert_identical(model.partial_fit(frame(X), y), nameless)
    calls = [lambda rows: model.partial_fit(rows, y), getattr(model, "predict", None) or model.transform]
    if hasattr(model, "predict_then_learn"):
        calls.append(lambda rows: model.predict_then_learn(rows, y))
    for names in (["width", "depth", "größe"], NAMES[::-1]):
        for call in calls:
            with pytest.raises(ValueError, match="feature names should match"):
                call(frame(X, names))
    assert model.t_ + getattr(model, "n_waiting_", 0) == 2 * len(X)
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        model.partial_fit(X, y)


@pytest.mark.parametrize("kind", FRAMES)
def test_set_output_gives_tables(kind):
    frame = FRAMES[kind]
    model = clone(METRIC).set_output(transform=kind).fit(frame(X), LABELS)
    out = model.transform(frame(X))
    assert type(out) is type(frame(X))
    assert list(out.columns) == NAMES == model.get_feature_names_out().tolist()
    np.testing.assert_array_equal(out.to_numpy(), clone(METRIC).fit(X, LABELS).transform(X))
    pipeline = make_pipeline(clone(METRIC), clone(CLASSIFIER)).set_output(transform=kind).fit(frame(X), LABELS)
    assert pipeline[-1].feature_names_in_.tolist() == NAMES


# ---------------------------------------------------------------------- pipelines, as scikit-learn's own


TABLE = pandas.DataFrame(X, columns=NAMES).assign(town=["Oslo", "Rome"] * 100)


def test_steps_are_found_by_place_and_name():
    model = kernling.StreamPipeline([("scale", Standardise()), ("model", clone(CLASSIFIER))])
    assert model[0] is model["scale"] is model.named_steps.scale is model.steps[0][1]
    assert len(model) == 2
    model.fit(X, LABELS)
    assert model[-1] is model["model"] is model.steps_[-1][1]
    with pytest.raises(KeyError):
        model["nothing"]


def test_names_of_the_columns_that_a_model_gets():
    model = kernling.StreamPipeline.auto(clone(CLASSIFIER)).partial_fit(TABLE, LABELS)
    names = model[:-1].get_feature_names_out().tolist()
    assert names == [*NAMES, "town=Oslo", "town=Rome", "town=?"]
    np.testing.assert_array_equal(model[:-1].transform(TABLE), model.passed(TABLE))
    with pytest.raises(AttributeError, match=r"use pipeline\[:-1\]"):
        model.get_feature_names_out()


def test_a_part_of_a_pipeline_keeps_the_scale_of_its_targets():
    model = kernling.StreamPipeline([("scale", Standardise()), ("model", clone(REGRESSOR))]).fit(*VALUES)
    np.testing.assert_array_equal(model[1:].predict(model[:1].transform(VALUES[0])), model.predict(VALUES[0]))


def test_tags_of_pipelines_are_those_of_their_ends():
    model = kernling.StreamPipeline.auto(clone(CLASSIFIER))
    tags = get_tags(model)
    assert tags.estimator_type == "classifier"
    assert all([tags.input_tags.string, tags.input_tags.categorical, tags.input_tags.allow_nan])
    tags = get_tags(kernling.StreamPipeline([("scale", Standardise()), ("model", clone(REGRESSOR))]))
    assert tags.estimator_type == "regressor"
    assert tags.target_tags.required
    assert not any([tags.input_tags.string, tags.input_tags.allow_nan, tags.input_tags.sparse])


def test_a_notebook_shows_the_steps_one_below_the_other():
    steps = [("scale", Standardise()), ("model", clone(CLASSIFIER))]
    shown = kernling.StreamPipeline(steps)._repr_html_()
    expected = Pipeline(steps)._repr_html_()
    assert shown.count("sk-serial") == expected.count("sk-serial")
    assert shown.index("<div>Standardise</div>") < shown.index("<div>AVMClassifier</div>")


# ---------------------------------------------------------------------- weights by request


def test_weights_are_routed():
    weights = np.random.default_rng(0).uniform(0.1, 3.0, size=len(X))
    with sklearn.config_context(enable_metadata_routing=True):
        asks = clone(CLASSIFIER).set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        pipeline = make_pipeline(StandardScaler().set_fit_request(sample_weight=False), asks)
        pipeline.fit(X, LABELS, sample_weight=weights)
        assert_identical(pipeline[-1], clone(CLASSIFIER).fit(StandardScaler().fit_transform(X), LABELS, sample_weight=weights))
        heard = cross_validate(asks, X, LABELS, cv=2, params={"sample_weight": weights}, return_estimator=True)
        unheard = cross_validate(clone(CLASSIFIER), X, LABELS, cv=2, return_estimator=True)
    assert (heard["test_score"] != unheard["test_score"]).any()
    for one, other in zip(heard["estimator"], unheard["estimator"], strict=True):
        assert not np.array_equal(one.decision_function(X), other.decision_function(X))
    with pytest.raises(sklearn.exceptions.UnsetMetadataPassedError), sklearn.config_context(enable_metadata_routing=True):
        cross_validate(clone(CLASSIFIER), X, LABELS, cv=2, params={"sample_weight": weights})


# ---------------------------------------------------------------------- in a notebook


@pytest.mark.parametrize("model", KINDS, ids=lambda model: type(model).__name__)
def test_a_notebook_shows_events_points_and_certificate(model):
    assert "kernling-facts" not in model._repr_html_()
    model = clone(model).fit(X, VALUES[1] if is_regressor(model) else LABELS)
    for html in (model._repr_html_(), model._repr_mimebundle_()["text/html"]):
        text = html[html.index('<table class="kernling-facts"') : html.rindex("</table>") + len("</table>")]
        table = dict(tuple(cell.text for cell in line) for line in ElementTree.fromstring(text))
        assert table["events learned"].replace(",", "") == str(model.t_)
        assert table["points stored"].replace(",", "") == str(model.n_stored_)
        certificate = model.certificate()
        assert certificate.pop("points", model.n_stored_) == model.n_stored_  # shown once
        for name, value in certificate.items():
            assert float(table[name.replace("_", " ")]) == pytest.approx(value, rel=1e-4, nan_ok=True)
    with sklearn.config_context(display="text"):
        assert "text/html" not in model._repr_mimebundle_()
