"""Pipelines on a stream: what a row is scaled by, all calls, files, and what an error leaves behind."""

import copy
import json
import pickle

import numpy as np
import pandas
import polars
import pytest
from scipy import sparse
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.decomposition import IncrementalPCA
from sklearn.metrics import r2_score
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer, StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks
from typer.testing import CliRunner

import kernling
from checks import assert_identical
from kernling import evaluate, models, papers
from kernling.cli.commands import app
from kernling.estimators.ranges import GAMMA
from kernling.io import stream as rows_of
from kernling.tables import Encode, MinMax, Standardise, part_from_state
from oracles import stream

SCALES = np.array([1.0, 50.0, 0.01])
X, LABELS = stream("binary", 300)
X = X * SCALES + 7.0
VALUES = 1000.0 + 30.0 * stream("regression", 300)[1]
AVM = kernling.AVMClassifier(loss="logistic", gamma=1.0, delta=0.5, lam=0.05, random_state=0)
REGRESSOR = kernling.AVMRegressor(loss="l2", gamma=1.0, delta=0.5, lam=0.1, random_state=0)
BY_NAME = "columns are found by name, in any order"
BY_WEIGHT = "in one pass, a row of weight k is one large step and not k small ones"


def kinds(pipeline):
    return "-".join(type(step).__name__ for _, step in pipeline.steps) if hasattr(pipeline, "steps") else None


def classifier(*parts, model=AVM):
    parts = parts or (Standardise(),)
    return kernling.StreamPipeline([*((f"part{i}", part) for i, part in enumerate(parts)), ("model", model)])


def regressor():
    return kernling.StreamPipeline([("scale", MinMax(-1.0, 1.0)), ("model", REGRESSOR)])


def metric(model=None):
    """Ends in a transformer that learns from targets, or has it in the middle."""
    steps = [("scale", Standardise()), ("metric", kernling.AOGDMetric(random_state=0))]
    return kernling.StreamPipeline([*steps, ("model", model)] if model else steps)


@parametrize_with_checks(
    [
        classifier(),
        classifier(model=kernling.AVMClassifier()),
        classifier(StandardScaler(), MinMax()),
        kernling.StreamPipeline([("scale", MinMax()), ("model", kernling.AVMRegressor())]),
        metric(),
        kernling.StreamPipeline([("scale", Standardise()), ("model", kernling.SPAOneClass(random_state=0))]),
        Standardise(),
        MinMax(),
        Encode(),
    ],
    expected_failed_checks=lambda estimator: (
        {
            "check_sample_weight_equivalence_on_dense_data": BY_WEIGHT,
            "check_sample_weight_equivalence_on_sparse_data": BY_WEIGHT,
        }
        | ({"check_dataframe_column_names_consistency": BY_NAME} if isinstance(estimator, Encode) else {})
    ),
)
def test_scikit_learn(estimator, check):
    check(estimator)


# ---------------------------------------------------------------------- what a row is scaled by


@pytest.mark.parametrize("chunk", [1, 7, 300])
def test_a_stream_is_scaled_row_by_row_itself_included(chunk):
    pipeline, part, model = classifier(), Standardise(), clone(AVM)
    for first in range(0, 300, chunk):
        pipeline.partial_fit(X[first : first + chunk], LABELS[first : first + chunk], classes=[0, 1])
    model.partial_fit(part.learn_transform(X), LABELS, classes=[0, 1])
    np.testing.assert_allclose(pipeline.decision_function(X), model.decision_function(part.transform(X)), atol=1e-9)
    np.testing.assert_array_equal(pipeline.steps_[0][1].mean_, part.mean_)
    assert pipeline.t_ == model.t_ == 300


def test_the_command_lines_parts_give_the_same_model():
    part, model = Standardise(), clone(AVM)
    for rows, y in rows_of(X, LABELS, chunk=64).through(part):
        model.partial_fit(rows, y)
    assert_identical(
        classifier().partial_fit(X, LABELS).model_, clone(AVM).partial_fit(Standardise().learn_transform(X), LABELS)
    )
    np.testing.assert_allclose(
        classifier().partial_fit(X, LABELS).decision_function(X), model.decision_function(part.transform(X)), atol=1e-9
    )


def test_predictions_before_learning_know_the_rows_features_and_not_its_target():
    pipeline = classifier()
    before = pipeline.predict_then_learn(X, LABELS, method="decision_function", classes=[0, 1])
    other = classifier()
    changed = LABELS.copy()
    changed[200] = 1 - changed[200]
    again = other.predict_then_learn(X, changed, method="decision_function", classes=[0, 1])
    np.testing.assert_allclose(again[:201], before[:201], atol=1e-12)
    assert np.abs(again[201:] - before[201:]).max() > 1e-6
    expected = clone(AVM).predict_then_learn(
        Standardise().learn_transform(X), LABELS, method="decision_function", classes=[0, 1]
    )
    np.testing.assert_allclose(before, expected, atol=1e-9)
    labels = classifier().predict_then_learn(X, LABELS, classes=[0, 1])
    np.testing.assert_array_equal(labels, (before >= 0.0).astype(int))
    assert classifier().predict_then_learn(X, LABELS, method="predict_proba", classes=[0, 1]).shape == (300, 2)


def test_fit_is_what_scikit_learns_pipeline_does():
    ours = classifier(StandardScaler()).fit(X, LABELS)
    theirs = make_pipeline(StandardScaler(), clone(AVM)).fit(X, LABELS)
    assert_identical(ours.model_, theirs[-1])
    np.testing.assert_array_equal(ours.predict_proba(X), theirs.predict_proba(X))
    assert ours.score(X, LABELS) == theirs.score(X, LABELS) > 0.8
    own = classifier().fit(X, LABELS)
    np.testing.assert_allclose(own.decision_function(X), ours.decision_function(X), atol=1e-6)


def test_a_scaled_target_is_learned():
    far = regressor().predict_then_learn(X, VALUES)[200:] - VALUES[200:]
    assert np.abs(far).mean() < 0.6 * np.abs(VALUES - VALUES.mean()).mean()
    model = regressor().fit(X, VALUES)
    assert model.score(X, VALUES) == pytest.approx(r2_score(VALUES, model.predict(X)), rel=1e-9)
    assert model.score(X, VALUES) > 0.5


def test_a_step_that_learns_from_targets_does_not_tell_them_to_the_next():
    before = metric(AVM).predict_then_learn(X, LABELS, method="decision_function", classes=[0, 1])
    changed = LABELS.copy()
    changed[-1] = 1 - changed[-1]
    again = metric(AVM).predict_then_learn(X, changed, method="decision_function", classes=[0, 1])
    np.testing.assert_array_equal(before, again)
    learned = metric(AVM).partial_fit(X, LABELS)
    assert learned.steps_[1][1].t_ == 300
    assert learned.partial_fit(X, LABELS).steps_[1][1].t_ == 600


def test_transformers_of_scikit_learn():
    pipeline = classifier(StandardScaler(), IncrementalPCA(2), Normalizer())
    for first in range(0, 300, 100):
        pipeline.partial_fit(X[first : first + 100], LABELS[first : first + 100])
    assert pipeline.steps_[0][1].n_samples_seen_ == 300
    assert pipeline.model_.n_features_in_ == 2
    np.testing.assert_allclose(np.linalg.norm(pipeline.model_.support_vectors_, axis=1), 1.0)


# ---------------------------------------------------------------------- single events


def pipelines():
    encoded = kernling.StreamPipeline([("encode", Encode(["x0"], hash=4)), ("model", AVM)])
    return [classifier(), classifier(StandardScaler()), regressor(), metric(AVM), encoded]


@pytest.mark.parametrize("pipeline", pipelines(), ids=kinds)
def test_events_one_by_one(pipeline):
    y = VALUES if is_regressor(pipeline) else LABELS
    known = {"classes": [0, 1]} if is_classifier(pipeline) else {}
    assert pipeline.predict_one(X[0]) is None
    assert pipeline.score_one(X[0]) == 0.0
    single = clone(pipeline).partial_fit(X[:1], y[:1], **known)
    rows = clone(pipeline).partial_fit(X[:1], y[:1], **known)
    for x, target in zip(X[1:60], y[1:60], strict=True):
        single.learn_one(x, target)
        rows.partial_fit(x[None], [target])
    assert single.t_ == 60
    np.testing.assert_allclose([single.predict_one(x) for x in X[60:80]], rows.predict(X[60:80]), rtol=1e-9)
    if not is_regressor(pipeline):
        np.testing.assert_allclose([single.score_one(x) for x in X[60:80]], rows.decision_function(X[60:80]), atol=1e-9)
    weighted = clone(single).partial_fit(X[:1], y[:1], **known).learn_one(X[1], y[1], sample_weight=0.0)
    assert weighted.t_ == 1


@pytest.mark.parametrize("pipeline", pipelines(), ids=kinds)
def test_an_event_is_predicted_and_learned_by_one_call(pipeline):
    y, known = (VALUES, {}) if is_regressor(pipeline) else (LABELS, {"classes": [0, 1]})
    once, rows = clone(pipeline), clone(pipeline)
    assert once.predict_then_learn_one(X[0], y[0]) is None
    once, rows = (model.partial_fit(X[:1], y[:1], **known) for model in (clone(pipeline), clone(pipeline)))
    method = "predict" if is_regressor(pipeline) else "decision_function"
    for i in range(1, 60):
        found, expected = (
            once.predict_then_learn_one(X[i], y[i], method),
            rows.predict_then_learn(X[i : i + 1], y[i : i + 1], method),
        )
        np.testing.assert_allclose(found, expected[0], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(once.predict(X), rows.predict(X), rtol=1e-9)
    assert once.t_ == 60
    with pytest.raises(ValueError, match="method must be one of 'predict'"):
        once.predict_then_learn_one(X[0], y[0], "transform")
    assert once.t_ == 60


# ---------------------------------------------------------------------- tables


@pytest.mark.parametrize("frame", [pandas.DataFrame, polars.DataFrame])
def test_categories_in_tables(frame, tmp_path):
    place = np.where(X[:, 0] > X[:, 0].mean(), "north", "south")
    table = frame({"place": place, "b": X[:, 1], "c": X[:, 2]})
    steps = [("encode", Encode(["place"])), ("scale", Standardise()), ("model", AVM)]
    pipeline = kernling.StreamPipeline(steps).partial_fit(table, LABELS)
    assert pipeline.feature_names_in_.tolist() == ["place", "b", "c"]
    assert pipeline.model_.n_features_in_ == 5
    event = {"place": "north", "b": X[0, 1], "c": X[0, 2]}
    one = frame({name: [value] for name, value in event.items()})
    assert pipeline.predict_one(event) == pipeline.predict(one)[0]
    assert pipeline.score_one(event) == pytest.approx(pipeline.decision_function(one)[0])
    assert pipeline.learn_one(event, 1).t_ == 301
    with pytest.raises(ValueError, match="there is no column 'b'; the columns are 'place', 'z', 'c'"):
        pipeline.predict(frame({"place": place, "z": X[:, 1], "c": X[:, 2]}))
    shuffled = frame({"c": X[:, 2], "label": LABELS, "place": place, "b": X[:, 1]})
    dictionaries = [dict(zip(("place", "b", "c"), row, strict=True)) for row in zip(place, X[:, 1], X[:, 2], strict=True)]
    for other in (shuffled, dictionaries, dict(zip(("place", "b", "c"), (place, X[:, 1], X[:, 2]), strict=True))):
        np.testing.assert_array_equal(pipeline.decision_function(other), pipeline.decision_function(table))
    by_place = np.column_stack([place.astype(object), X[:, 1:]])
    np.testing.assert_array_equal(pipeline.decision_function(by_place), pipeline.decision_function(table))
    kernling.save(pipeline, tmp_path / "p.kern")
    again = kernling.load(tmp_path / "p.kern")
    np.testing.assert_array_equal(again.decision_function(table), pipeline.decision_function(table))
    assert again.feature_names_in_.tolist() == ["place", "b", "c"]


@pytest.mark.parametrize("part", [Standardise(), MinMax(-1.0, 1.0)])
def test_a_scale_inside_of_encode_leaves_categories_alone(part):
    place = np.where(X[:, 0] > X[:, 0].mean(), "north", "south")
    place[0] = "pole"
    table = pandas.DataFrame({"b": X[:, 1], "place": place, "c": X[:, 2]})
    encode = Encode(["place"], scale=part)
    rows = np.vstack([encode.learn_transform(table[:100]), encode.learn_transform(table[100:])])
    np.testing.assert_array_equal(rows[:, [0, 5]], clone(part).learn_transform(X[:, 1:]))
    np.testing.assert_array_equal(rows[:, 1:5], np.column_stack([place == one for one in ("north", "pole", "south", "?")]))
    np.testing.assert_array_equal(encode.transform(table)[:, [0, 5]], clone(part).fit_transform(X[:, 1:]))
    hashed = Encode(["place"], hash=8, scale=part).fit_transform(table)
    np.testing.assert_array_equal(hashed[:, :2].toarray(), clone(part).fit_transform(X[:, 1:]))
    again = part_from_state(json.loads(json.dumps(encode.to_state())))
    np.testing.assert_array_equal(again.learn_transform(table), encode.learn_transform(table))


def test_what_the_first_rows_decide_can_be_settled_before():
    place = np.where(np.arange(300) < 100, "north", "south")
    table = pandas.DataFrame({"place": place, "b": X[:, 1], "c": X[:, 2]})
    steps = [("encode", Encode(["place"], scale=Standardise())), ("model", kernling.AVMClassifier(random_state=0))]
    whole = kernling.StreamPipeline(steps).partial_fit(table, LABELS)
    begun = kernling.StreamPipeline(steps).begin(table, LABELS)
    assert begun.t_ == 0
    for first in range(0, 300, 100):
        begun.partial_fit(table[first : first + 100], LABELS[first : first + 100])
    assert (begun.model_.gamma_, begun.model_.delta_) == (whole.model_.gamma_, whole.model_.delta_)
    assert begun.steps_[0][1].to_state() == whole.steps_[0][1].to_state()
    np.testing.assert_allclose(begun.decision_function(table), whole.decision_function(table), atol=1e-9)


def test_categories_given():
    encode = Encode({"x0": ["a", "b"]})
    np.testing.assert_array_equal(encode.fit_transform([["a", 1.0], ["c", 2.0]]), [[1, 0, 0, 1], [0, 0, 1, 2]])
    assert sparse.issparse(Encode(["x0"], hash=3).fit_transform([["a", 1.0], ["c", 2.0]]))
    with pytest.raises(ValueError, match="row 1 has no value in column 'x0'"):
        Encode().fit([[np.nan]])
    with pytest.raises(ValueError, match="the categories of 'x0' must be distinct"):
        Encode({"x0": [1, "1"]}).fit([["1"]])
    with pytest.raises(ValueError, match="X has 1 features, but Encode is expecting 2"):
        encode.transform([["a"]])
    with pytest.raises(TypeError, match=r"scale must be Standardise\(\) or MinMax\(\)"):
        Encode(scale=StandardScaler()).fit([[1.0]])


# ---------------------------------------------------------------------- files, copies, search, evaluation


@pytest.mark.parametrize("pipeline", [classifier(), regressor(), metric(AVM), metric()], ids=kinds)
def test_one_file_goes_on_bit_for_bit(pipeline, tmp_path):
    y = VALUES if is_regressor(pipeline) else LABELS
    pipeline = clone(pipeline).partial_fit(X[:200], y[:200])
    kernling.save(pipeline, tmp_path / "p.kern")
    copies = [kernling.load(tmp_path / "p.kern"), pickle.loads(pickle.dumps(pipeline)), copy.deepcopy(pipeline)]
    pipeline.partial_fit(X[200:], y[200:])
    for each in copies:
        assert type(each) is kernling.StreamPipeline
        assert str(each) == str(pipeline)
        each.partial_fit(X[200:], y[200:])
        assert_identical(each.model_, pipeline.model_)
        for (_, one), (_, other) in zip(each.steps_[:1], pipeline.steps_[:1], strict=True):
            assert one.to_state() == other.to_state()


def test_what_a_file_cannot_hold(tmp_path):
    path = tmp_path / "p.kern"
    with pytest.raises(TypeError, match="StandardScaler, which cannot be stored in a model file"):
        kernling.save(classifier(StandardScaler()).fit(X, LABELS), path)
    with pytest.raises(TypeError, match="StreamPipeline, which cannot be stored in a model file"):
        kernling.save(kernling.StreamPipeline([("p", classifier())]).fit(X, LABELS), path)
    with pytest.raises(ValueError, match="not fitted"):
        kernling.save(classifier(), path)
    assert not path.exists()


@pytest.mark.parametrize(
    "change",
    [
        lambda header: header["steps"].reverse(),
        lambda header: header["steps"].clear(),
        lambda header: header["steps"][0][1].update(part="os.system"),
        lambda header: header["steps"][0][1].update(mean=[0.0]),
        lambda header: header["steps"][1][1].update(learner="os", estimator="system"),
        lambda header: header["steps"][1][1].update(estimator="StreamPipeline", steps=[]),
        lambda header: header.pop("steps"),
        lambda header: header.update(steps=7),
    ],
)
def test_files_whose_steps_do_not_fit(change, tmp_path, monkeypatch):
    pipeline = classifier().fit(X, LABELS)
    contents = pipeline.to_contents()
    change(contents.header)
    monkeypatch.setattr(kernling.StreamPipeline, "to_contents", lambda self: contents)
    kernling.save(pipeline, tmp_path / "p.kern")
    with pytest.raises(ValueError, match=r"p\.kern"):
        kernling.load(tmp_path / "p.kern")


def test_parameters_of_steps_can_be_searched():
    search = GridSearchCV(classifier(), {"model__gamma": [1e-6, 1.0]}, cv=2).fit(X, LABELS)
    assert search.best_params_ == {"model__gamma": 1.0}
    assert classifier().set_params(part0=MinMax()).steps[0][1].high == 1.0


def test_evaluation_and_running_again():
    rows = evaluate.online(classifier(), (X, LABELS), permutations=2)
    assert evaluate.summary(rows)[0]["permutations"] == 2
    assert evaluate.model_of(rows[0]).steps[1][1].gamma == 1.0
    assert papers.run_again(rows[1], (X, LABELS))[-1]["mistakes"] == rows[1]["mistakes"] < 0.4
    logged = evaluate.online(classifier(), (X, LABELS), metrics=["log_loss", "auc"])
    assert logged[-1]["auc"] > 0.8
    values = evaluate.online(regressor(), (X, VALUES))
    assert values[-1]["n_stored"] > 0


def test_search_for_the_last_steps_parameters():
    found = evaluate.search(classifier(model=kernling.AVMClassifier()), rows_of(X, LABELS), candidates=4, first=100, factor=2)
    assert sorted(found.params) == ["model__delta", "model__eta", "model__gamma", "model__lam", "model__output"]
    assert found.model.t_ == 300
    given, *drawn = (json.loads(row["params"])["gamma"] for row in found.rows)
    assert given == "scale"  # the first candidate is the estimator as it is
    assert all(0.01 < gamma < 100.0 for gamma in drawn)  # scaled rows
    with pytest.raises(ValueError, match="no parameter 'gamma'"):
        evaluate.search(classifier(), rows_of(X, LABELS), ranges={"gamma": GAMMA})


def test_the_command_line_takes_a_pipelines_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    kernling.save(classifier().partial_fit(X, LABELS), "p.kern")
    pandas.DataFrame(X).assign(y=LABELS).to_csv("rows.csv", index=False)
    run = CliRunner().invoke
    told = run(app, ["info", "p.kern"], env={"COLUMNS": "200"}).output
    assert "part0: Standardise" in told
    assert "AVMClassifier" in told
    predicted = run(app, ["predict", "p.kern", "rows.csv", "--target", "y", "--output", "out.txt"])
    assert predicted.exit_code == 0, predicted.output
    np.testing.assert_array_equal(np.loadtxt("out.txt"), kernling.load("p.kern").predict(X))
    went_on = run(app, ["run", "rows.csv", "--target", "y", "--resume", "p.kern", "--save", "q.kern"])
    assert went_on.exit_code == 0, went_on.output
    assert models.read("q.kern").model.t_ == 600


def test_a_notebook_shows_its_facts():
    assert "kernling-facts" not in classifier()._repr_html_()
    assert "points stored" in classifier().fit(X, LABELS)._repr_html_()


# ---------------------------------------------------------------------- errors


def nan_at_the_end():
    rows = X.copy()
    rows[-1, 0] = np.nan
    return rows


@pytest.mark.parametrize("pipeline", [classifier(), classifier(StandardScaler()), metric(AVM)], ids=kinds)
@pytest.mark.parametrize(
    "call",
    [
        lambda p: p.partial_fit(nan_at_the_end(), LABELS),
        lambda p: p.partial_fit(X, LABELS[:-1]),
        lambda p: p.partial_fit(X, np.where(LABELS, "a", "b")),
        lambda p: p.partial_fit(X[:, :2], LABELS),
        lambda p: p.partial_fit(X, LABELS, sample_weight=-np.ones(300)),
        lambda p: p.predict_then_learn(X, LABELS, method="guess"),
        lambda p: p.learn_one(X[0], "a"),
        lambda p: p.learn_one(X[0, :2], 1),
        lambda p: p.learn_one(X[0] * np.nan, 1),
        lambda p: p.learn_one(X[0], 1, sample_weight=-1.0),
        lambda p: p.fit(X, None),
        lambda p: p.predict(nan_at_the_end()),
    ],
)
def test_a_call_that_raises_leaves_all_steps_as_they_were(pipeline, call):
    pipeline = clone(pipeline).partial_fit(X, LABELS)
    before = copy.deepcopy(pipeline)
    with pytest.raises((ValueError, TypeError)) as caught:
        call(pipeline)
    assert "\n" not in str(caught.value) or "Reshape" in str(caught.value)
    for (_, one), (_, other) in zip(pipeline.steps_[:-1], before.steps_[:-1], strict=True):
        np.testing.assert_array_equal(one.transform(X), other.transform(X))
    assert_identical(pipeline.model_, before.model_)
    assert_identical(pipeline.partial_fit(X, LABELS).model_, before.partial_fit(X, LABELS).model_)


def test_a_first_call_that_raises_leaves_it_new():
    pipeline = classifier()
    with pytest.raises(ValueError, match="NaN"):
        pipeline.partial_fit(nan_at_the_end(), LABELS)
    assert vars(pipeline).keys() - {"_turns"} == {"steps"}


@pytest.mark.parametrize(
    ("steps", "words"),
    [
        ([], "at least a model"),
        ([("model", AVM), ("scale", Standardise())], "step 'model' must be a transformer"),
        ([("scale", MinMax(1.0, 0.0)), ("model", AVM)], "low must be below high"),
        ([("scale", make_pipeline(StandardScaler())), ("model", AVM)], "no partial_fit"),
        ([("scale", Standardise()), ("model", make_pipeline(StandardScaler()))], "no partial_fit"),
        ([("a", Standardise()), ("a", AVM)], "not unique"),
    ],
)
def test_steps_that_make_no_pipeline(steps, words):
    with pytest.raises((ValueError, TypeError), match=words):
        kernling.StreamPipeline(steps).fit(X, LABELS)


def test_numbers_are_scaled_once():
    """By the pipeline or by the model, however the pipeline is made."""
    rows = {"km": [1.0, 2.0]}
    for given in ((), (kernling.AutoClassifier(),)):
        assert not kernling.StreamPipeline.auto(*given, task="classification").steps[1][1].standardise
        assert not kernling.StreamPipeline.auto(*given).partial_fit(rows, [0, 1]).model_.standardise
        assert kernling.StreamPipeline.auto(*given, scale=None).partial_fit(rows, [0, 1]).model_.standardise


def test_numbers_that_share_a_scale_are_not_scaled_for_auto():
    """As in histograms: Auto leaves them as they are, in a pipeline as in an array."""
    X = np.random.default_rng(0).dirichlet(np.ones(5), size=200)
    y = (X[:, 0] > X[:, 1]).astype(int)
    alone = kernling.AutoClassifier().partial_fit(X[:150], y[:150])
    piped = kernling.StreamPipeline.auto(task="classification").partial_fit(X[:150], y[:150])
    np.testing.assert_allclose(piped.predict_proba(X[150:]), alone.predict_proba(X[150:]), rtol=1e-9)


@pytest.mark.parametrize("scale", [Standardise(clip=5.0), None])
def test_clipped_rows_are_counted_whoever_scales_and_shown(scale):
    X = np.random.default_rng(0).normal(size=(100, 2))
    y = X[:, 0] > 0.0
    X[60:63, 1] = 1e6
    model = kernling.StreamPipeline.auto(task="classification", scale=scale).partial_fit(X, y)
    assert model.clipped_ == 3
    assert "rows with clipped numbers" in model._repr_html_()
