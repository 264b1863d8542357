"""Any table in: ``StreamPipeline.auto`` finds treatments and task, and takes rows as people have them."""

import collections

import numpy as np
import pandas
import polars
import pyarrow
import pytest

import kernling
from kernling.estimators.task_choice import task_of
from kernling.evaluate import batch, search, test_then_train
from kernling.io import stream

N = 600
RNG = np.random.default_rng(1)
FRAME = pandas.DataFrame(
    {
        "hour": RNG.integers(0, 24, N).astype(float),
        "city": RNG.choice(["Oslo", "Rome", "Lima"], N),
        "rain": RNG.random(N) < 0.5,
    }
)
LATE = np.where((FRAME["hour"] > 12) == (FRAME["city"] == "Oslo"), "late", "on time")
MINUTES = 1e4 + 500.0 * (FRAME["hour"] > 12) * (FRAME["city"] == "Oslo") + RNG.normal(size=N)
ROWS = FRAME.to_dict("records")


@pytest.mark.parametrize(
    ("targets", "task"),
    [
        (["a", "b"], "classification"),
        ([True, False], "classification"),
        (np.array([True, None], dtype=object), "classification"),
        ([1.0, 2.0, np.nan], "classification"),
        (np.arange(20), "classification"),
        (np.arange(21), "regression"),
        ([0.5, 1.0], "regression"),
    ],
)
def test_the_task_is_found(targets, task):
    assert task_of(targets) == task


def test_a_mixed_table_is_learned_without_a_word():
    model = kernling.StreamPipeline.auto()
    before = model.predict_then_learn(FRAME, LATE)
    assert model.task == "classification"
    assert np.mean(before[300:] == LATE[300:]) > 0.85
    values = kernling.StreamPipeline.auto()
    said = values.predict_then_learn(FRAME, MINUTES)
    assert values.task == "regression"
    assert np.mean((said[300:] - MINUTES[300:]) ** 2) < 0.2 * np.var(MINUTES[300:])


@pytest.mark.parametrize(("targets", "task", "metric"), [(LATE, "classification", "mistakes"), (MINUTES, "regression", "rmse")])
def test_the_task_is_found_in_evaluation(targets, task, metric):
    rows = stream(FRAME.assign(target=targets), target="target")
    progressive = test_then_train(kernling.StreamPipeline.auto(), rows, linear=True)
    named = test_then_train(kernling.StreamPipeline.auto(task=task), rows, linear=True)
    assert progressive[-1] | {"seconds": 0.0} == named[-1] | {"seconds": 0.0}
    held = batch(kernling.StreamPipeline.auto(), rows, linear=True)[-1]
    for row in (progressive[-1], held):
        assert row[metric] < row[f"{metric}_linear"] < 1.1 * row[f"{metric}_constant"]
    with pytest.raises(ValueError, match="no results before the first rows"):
        test_then_train(kernling.StreamPipeline.auto(), rows.take(0))
    with pytest.raises(AttributeError, match="pass task="):
        search(kernling.StreamPipeline.auto(), rows)


def test_what_is_said_wins_over_what_is_found():
    counts = (FRAME["hour"] // 8).to_numpy()
    assert kernling.StreamPipeline.auto(task="regression").partial_fit(FRAME, counts).task == "regression"
    own = kernling.StreamPipeline.auto(kernling.SPAClassifier(random_state=0), ignore=["rain"]).partial_fit(FRAME, LATE)
    assert isinstance(own.model_, kernling.SPAClassifier)
    assert own.model_.n_features_in_ == 5
    with pytest.raises(ValueError, match="the model is chosen when the first targets are learned"):
        kernling.StreamPipeline.auto().partial_fit(FRAME)


def test_settled_before_learning_and_fitted():
    begun = kernling.StreamPipeline.auto().begin(FRAME).partial_fit(FRAME, LATE)
    assert np.mean(begun.predict(FRAME) == LATE) > 0.85
    fitted = kernling.StreamPipeline.auto().fit(FRAME, LATE)
    assert np.mean(fitted.predict(FRAME) == LATE) > 0.85
    assert fitted.fit(FRAME, MINUTES).task == "regression"  # fit forgets, the task too


@pytest.mark.parametrize("targets", [LATE, MINUTES.to_numpy()], ids=["labels", "values"])
def test_dictionaries_one_by_one_are_the_table(targets, tmp_path):
    table = kernling.StreamPipeline.auto().begin(FRAME, targets).partial_fit(FRAME, targets)
    single = kernling.StreamPipeline.auto().begin(FRAME, targets)
    for row, target in zip(ROWS, targets, strict=True):
        single.learn_one(row, target)
    said = table.predict(FRAME[:50])
    one_by_one = [single.predict_one(row) for row in ROWS[:50]]
    kernling.save(single, tmp_path / "m.kern")
    again = kernling.load(tmp_path / "m.kern")
    for other in (one_by_one, single.predict(ROWS[:50]), again.predict(FRAME[:50])):
        if targets is LATE:
            assert list(other) == said.tolist()
        else:
            np.testing.assert_allclose(other, said, rtol=1e-6)
    assert again.steps_[0][1].schema_ == table.steps_[0][1].schema_


def test_rows_of_frames():
    model = kernling.StreamPipeline.auto().partial_fit(FRAME, LATE)
    expected = model.predict_one(ROWS[0])
    event = collections.namedtuple("Event", FRAME.columns)(**ROWS[0])
    arrow = pyarrow.Table.from_pandas(FRAME)
    for row in (FRAME.iloc[0], event, polars.from_pandas(FRAME).row(0, named=True), arrow.slice(0, 1).to_pylist()[0]):
        assert model.predict_one(row) == expected
        assert model.learn_one(row, "late").t_ > N
    for table in (polars.from_pandas(FRAME), arrow, ROWS):
        assert model.predict(table).tolist() == model.predict(FRAME).tolist()


@pytest.mark.filterwarnings("error")
def test_a_lazy_frame_is_refused_by_a_sentence():
    model, frame = kernling.StreamPipeline.auto().partial_fit(FRAME, LATE), polars.from_pandas(FRAME)
    plain = kernling.AVMClassifier().fit(frame.select("hour"), LATE)
    calls = {
        "X": [model.predict, plain.predict, lambda X: kernling.StreamPipeline.auto().partial_fit(X, LATE)],
        "y": [lambda y: plain.partial_fit(frame.select("hour"), y), lambda y: kernling.StreamPipeline.auto().fit(frame, y)],
        "source": [stream, lambda frame: list(stream([frame]))],
    }
    for name, refusing in calls.items():
        for call in refusing:
            with pytest.raises(TypeError, match=rf"{name} is a LazyFrame, .* before it is collected: pass {name}\.collect\(\)"):
                call(frame.lazy())


def test_a_row_that_lacks_a_column_or_a_value():
    model = kernling.StreamPipeline.auto().partial_fit(FRAME, LATE)
    assert model.predict_one({"city": "Oslo"}) == model.predict_one({"city": "Oslo", "hour": None, "rain": None})
    with pytest.raises(ValueError, match=r"there are no columns .*; the columns are 'snow'"):
        model.learn_one({"snow": 1.0}, "late")
    assert model.t_ == N
    assert model.predict_one({"city": None, "hour": None, "rain": None}) in ("late", "on time")
    assert model.learn_one({"city": "Paris", "hour": float("nan"), "rain": True}, "late").t_ == N + 1
    with pytest.warns(UserWarning, match="the columns 'snow' were not present in the first rows and are ignored"):
        model.predict_one(ROWS[0] | {"snow": 1})


def test_a_model_of_arrays_names_what_takes_dictionaries():
    with pytest.raises(TypeError, match=r"StreamPipeline.auto\(model\) learns from dictionaries"):
        kernling.AVMClassifier().learn_one({"hour": 8}, "late")
