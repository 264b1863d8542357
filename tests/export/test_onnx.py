"""ONNX graphs say what the models say that they were written from."""

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("onnxruntime")

import onnx
import onnxruntime

import kernling as kl
from benchmarks.onnx_runs import Exported
from checks import EVENTS, PROBES, estimators
from export.tables import AGES, TASKS, exported_cases, mixture, mixture_rows, table
from kernling.baselines import PerceptronClassifier
from kernling.core.kernels import KINDS
from kernling.export.graph import OPSET
from kernling.papers import dataset
from kernling.tables import Encode, MinMax, Standardise
from oracles import stream

LIMITS = {"float64": 1e-10, "float32": 1e-4}
ROWS = np.random.default_rng(0).normal(size=(400, 3))
LABELS = np.where(ROWS[:, 0] * ROWS[:, 1] > 0.0, "b", "a")


def assert_same(model, X, folder, limit=None):
    limit = limit or LIMITS[np.dtype(getattr(model, "model_", model).dtype).name]
    found = Exported(model, folder).agreement(X)
    assert found.error <= limit
    assert found.labels == 0
    assert found.probability <= limit


def learned(cls, case, dtype):
    X, y = stream(case.stream, EVENTS)
    return cls(**{**case.params, "dtype": dtype}).fit(X, y)


# ---------------------------------------------------------------------- estimators


@pytest.mark.parametrize("cls", estimators())
def test_every_estimator(cls, tmp_path):
    """No registered method needs code of its own for export: each of its cases is written as it is."""
    for case in exported_cases(cls):
        assert_same(learned(cls, case, "float64"), PROBES, tmp_path)


@pytest.mark.parametrize("cls", [kl.AVMClassifier, kl.AutoRegressor])
def test_single_precision(cls, tmp_path):
    assert_same(learned(cls, exported_cases(cls)[0], "float32"), PROBES.astype(np.float32), tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("cls", estimators())
def test_single_precision_of_every_estimator(cls, tmp_path):
    for case in exported_cases(cls):
        assert_same(learned(cls, case, "float32"), PROBES.astype(np.float32), tmp_path)


@pytest.mark.parametrize("name", KINDS)
def test_every_kernel(name, tmp_path):
    """On rows that are no points: there exp(-gamma r) makes 1e-8 of the rounding error of r^2 = 0, wherever."""
    model = PerceptronClassifier(kernel=name, gamma=0.3, degree=5, coef0=1.0).fit(ROWS, LABELS)
    assert_same(model, PROBES, tmp_path)


@pytest.mark.parametrize("features", ["points", "fourier", "linear"])
@pytest.mark.parametrize("classes", [2, 4])
def test_every_kind_of_feature(features, classes, tmp_path):
    """A whitened model is written by its points, waves and columns; of one output, a wave is one cosine."""
    y = np.arange(len(ROWS)) % classes
    assert_same(kl.KRLSClassifier(features=features, points=40, random_state=0).fit(ROWS, y), ROWS, tmp_path)


@pytest.mark.parametrize("output", ["last", "average", "suffix"])
def test_the_output_that_is_chosen(output, tmp_path):
    assert_same(kl.AVMClassifier(delta=0.5, output=output).fit(ROWS, LABELS), ROWS, tmp_path)


@pytest.mark.parametrize("labels", [[3, 7], [False, True], [1.0, 2.0], ["no", "yes"], ["a", "b", "c"]])
@pytest.mark.parametrize("loss", ["hinge", "logistic"])
def test_labels_keep_their_type(labels, loss, tmp_path):
    y = np.array(labels)[np.arange(len(ROWS)) % len(labels)]
    assert_same(kl.AVMClassifier(delta=0.5, loss=loss).fit(ROWS, y), ROWS, tmp_path)


def test_numbers_are_not_rounded_on_the_way(tmp_path):
    """onnxruntime would round a number beside a MatMul to single precision: with one column, a scale is such a number."""
    X = ROWS[:, :1]
    steps = [("scale", Standardise()), ("model", kl.KRLSRegressor(features="linear"))]
    assert_same(kl.StreamPipeline(steps).partial_fit(X, X[:, 0] / 3.0), X, tmp_path)


@pytest.mark.parametrize("model", [kl.AVMClassifier(delta=0.5, loss="logistic"), kl.AutoClassifier(memory=0)])
def test_one_class_so_far(model, tmp_path):
    assert_same(model.partial_fit(ROWS, np.full(len(ROWS), 3)), ROWS, tmp_path)


@pytest.mark.parametrize("model", [kl.AVMClassifier(), kl.AutoClassifier(memory=0), kl.AutoRegressor(memory=0)])
def test_a_model_that_has_learned_nothing(model, tmp_path):
    given = {"classes": ["a", "b"]} if hasattr(model, "decision_function") else {}
    y = LABELS if given else ROWS[:, 0]
    assert_same(model.partial_fit(ROWS, y, sample_weight=np.zeros(len(ROWS)), **given), ROWS, tmp_path)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("events", AGES)
@pytest.mark.parametrize("task", TASKS)
def test_mixtures_of_every_age(task, events, dtype, tmp_path):
    assert_same(mixture(task, events, dtype=dtype), mixture_rows(dtype), tmp_path)


def test_mixtures_of_rows_in_the_unit_interval(tmp_path):
    """Nothing is scaled while all numbers are in [0, 1], but for rows with another one."""
    X = np.random.default_rng(0).uniform(size=(300, 3))
    model = kl.AutoClassifier(memory=0).partial_fit(X, X[:, 0] > X[:, 1])
    assert_same(model, np.vstack([X[:50], X[:50] + np.eye(50, 3)]), tmp_path)


def test_a_mixture_of_rows_that_lie_on_an_edge(tmp_path):
    """A step is behind its edge."""
    model = kl.AutoClassifier(memory=0).partial_fit(ROWS, (ROWS[:, 0] > 0.3) | (ROWS[:, 1] > 0.5))
    bins = model.state_.bins
    rows = np.repeat(ROWS[:1], len(bins.edges), axis=0)
    rows[np.arange(len(rows)), bins.columns] = bins.edges
    assert np.abs(model.decision_function(rows) - model.decision_function(np.nextafter(rows, np.inf))).max() > 1e-3
    assert_same(model, rows, tmp_path)


def test_a_mixture_on_wide_rows(tmp_path):
    """Above 512 columns, linear experts have a diagonal matrix, and the kernel expert no columns."""
    X = np.random.default_rng(0).normal(size=(60, 600))
    assert_same(kl.AutoRegressor(memory=0).partial_fit(X, X[:, 0]), X, tmp_path)


@pytest.mark.parametrize("task", TASKS)
def test_the_memory_is_left_out_and_that_is_said(task, tmp_path):
    X = np.random.default_rng(0).normal(size=(600, 2))
    product = X[:, 0] * X[:, 1]
    y = {"two classes": product > 0.0, "three classes": np.digitize(product, [-0.5, 0.5]), "values": product}[task]
    model = (kl.AutoRegressor if task == "values" else kl.AutoClassifier)(points=30, window=50).fit(X, y)
    with pytest.warns(UserWarning, match="leaves out the memory of past events"):
        kl.to_onnx(model, tmp_path / "model.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx")
    if task == "values":
        assert np.abs(session.run(["value"], {"rows": X})[0] - y).mean() < 0.3 * np.abs(y).mean()
    else:
        assert (session.run(["label"], {"rows": X})[0] == y).mean() > 0.85


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_the_nearest_of_equal_neighbours(dtype, tmp_path):
    """Of events that are as near as the fifth up to rounding, those stored first count."""
    X = np.random.default_rng(0).integers(2, size=(400, 12)).astype(np.float64)
    y = np.random.default_rng(1).normal(size=400)
    assert_same(kl.AutoRegressor(memory=0, dtype=dtype).partial_fit(X, y), np.roll(X, 1, axis=1), tmp_path)


def test_far_from_the_origin(tmp_path):
    """Distances are those of rows minus the centre, so single precision stays right where the origin is far away."""
    X = (1000.0 + ROWS).astype(np.float32)
    model = kl.AVMClassifier(gamma=1.0, delta=0.5, dtype="float32").fit(X, LABELS)
    assert_same(model, X, tmp_path)


def test_standard_operators_only(tmp_path):
    pipeline = kl.StreamPipeline.auto(kl.AVMClassifier(loss="logistic")).partial_fit(*table(200))
    kl.to_onnx(pipeline, tmp_path / "model.onnx")
    model = onnx.load(tmp_path / "model.onnx")
    assert [(each.domain, each.version) for each in model.opset_import] == [("", OPSET)]
    assert {node.domain for node in model.graph.node} == {""}
    onnx.checker.check_model(model, full_check=True)  # types and shapes, too


# ---------------------------------------------------------------------- pipelines


def avm(dtype):
    return kl.AVMClassifier(delta=1.0, loss="logistic", dtype=dtype)


def auto(dtype):
    return kl.AutoClassifier(memory=0, dtype=dtype)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("scale", [None, MinMax(-1.0, 2.0), Standardise(clip=1.0)])
@pytest.mark.parametrize("given", [avm, auto])
def test_tables_as_one_graph(given, dtype, scale, tmp_path):
    """Scaling, encoding and imputation are in the graph; its inputs are the columns, by name and type."""
    X, y = table(300)
    model = kl.StreamPipeline.auto(given(dtype), scale=scale).partial_fit(X, y)
    assert_same(model, X, tmp_path)
    later, _ = table(500, seed=1)  # a city that is new, and gaps elsewhere
    later.loc[::5, "city"] = "Lima"
    later.loc[::9, "height"] = np.nan
    assert_same(model, later, tmp_path)
    types = {each.name: each.type for each in Exported(model, tmp_path).session.get_inputs()}
    assert types == {
        "city": "tensor(string)",
        "open": "tensor(bool)",
        "width": "tensor(double)",
        "when": "tensor(int64)",
        "height": "tensor(double)",
        "day": "tensor(int64)",
    }


def test_booleans_that_may_be_missing_are_numbers(tmp_path):
    X = pd.DataFrame({"a": [True, None, False, True] * 50, "b": np.arange(200.0)})
    model = kl.StreamPipeline.auto(kl.AVMClassifier()).partial_fit(X, np.arange(200) % 3)
    assert_same(model, X, tmp_path)
    assert Exported(model, tmp_path).session.get_inputs()[0].type == "tensor(double)"


@pytest.mark.parametrize("standardise_target", [True, False])
def test_values_come_back_on_their_own_scale(standardise_target, tmp_path):
    steps = [("scale", Standardise()), ("model", kl.AVMRegressor(delta=0.5, standardise_target=standardise_target))]
    assert_same(kl.StreamPipeline(steps).partial_fit(ROWS, 1000.0 + 50.0 * ROWS[:, 0]), ROWS, tmp_path)


def test_steps_one_after_the_other(tmp_path):
    steps = [("scale", MinMax()), ("metric", kl.AOGDMetric()), ("again", Standardise()), ("model", kl.AVMClassifier(delta=0.5))]
    assert_same(kl.StreamPipeline(steps).partial_fit(ROWS, LABELS), ROWS, tmp_path)


def test_a_pipeline_that_ends_in_a_transformer(tmp_path):
    model = kl.StreamPipeline([("scale", MinMax()), ("metric", kl.AOGDMetric())]).partial_fit(ROWS, LABELS)
    assert_same(model, ROWS, tmp_path)


# ---------------------------------------------------------------------- real data


@pytest.mark.parametrize("name", ["a9a", "ijcnn1", "casp", pytest.param("mnist", marks=pytest.mark.long)])
def test_real_data(name, data_folder, tmp_path):
    X, y = next(iter(dataset(name).stream("train", chunk=2000)))
    X = X.toarray() if hasattr(X, "toarray") else np.asarray(X, np.float64)
    model = kl.AVMRegressor() if name == "casp" else kl.AVMClassifier(loss="logistic")
    scale = Standardise() if name == "casp" else MinMax()
    pipeline = kl.StreamPipeline([("scale", scale), ("model", model)])
    assert_same(pipeline.partial_fit(X[:1000], y[:1000]), X[1000:], tmp_path)


def test_flights_as_they_are(data_folder, tmp_path):
    flights = pd.read_csv(data_folder / "nycflights13_flights.csv.xz", nrows=2000)
    late = flights.pop("arr_delay").fillna(0.0).to_numpy() > 0.0
    known = flights.drop(columns=["dep_time", "dep_delay", "arr_time", "air_time"])
    named = {"dest": sorted(known["dest"][:1000].unique())}  # otherwise hashed, since new ones keep coming
    model = kl.StreamPipeline.auto(kl.AVMClassifier(), categorical=named, ignore=["tailnum"], limit=128)
    model.partial_fit(known[:1000], late[:1000])
    assert {column.treatment for column in model.steps_[0][1].schema_} == {"number", "category", "date", "ignore"}
    assert_same(model, known[1000:], tmp_path)


# ---------------------------------------------------------------------- refusals


class Unusual(kl.AVMClassifier):
    """A model with a way of its own to scores."""

    def _scores(self, X):
        return 2.0 * super()._scores(X)


def refused():
    """Models that cannot be exported, with words of the sentence that says so."""
    from sklearn.linear_model import SGDClassifier
    from sklearn.preprocessing import StandardScaler

    frame = pd.DataFrame({"word": [f"word {i % 90}" for i in range(400)]})
    model = kl.AVMClassifier(delta=0.5)
    yield SGDClassifier().fit(ROWS, LABELS), "a SGDClassifier cannot be exported"
    yield Unusual(delta=0.5).fit(ROWS, LABELS), "Unusual"
    yield kl.StreamPipeline([("a", StandardScaler()), ("b", model)]).fit(ROWS, LABELS), "StandardScaler .* kernling's own steps"
    yield kl.StreamPipeline([("a", Standardise()), ("b", SGDClassifier())]).fit(ROWS, LABELS), "SGDClassifier"
    yield kl.StreamPipeline([("a", Encode(hash=8)), ("b", model)]).fit(frame, LABELS), "leave hash out"
    yield kl.StreamPipeline.auto(model).fit(frame, LABELS), "'word' has categories that are hashed.* name its categories"


def test_what_cannot_be_exported_says_so(tmp_path):
    for model, words in refused():
        with pytest.raises(TypeError, match=words) as caught:
            kl.to_onnx(model, tmp_path / "model.onnx")
        assert "\n" not in str(caught.value)
    assert not list(tmp_path.iterdir())


def test_columns_and_outputs_need_different_names(tmp_path):
    model = kl.StreamPipeline.auto(kl.AVMClassifier()).partial_fit(pd.DataFrame({"score": ROWS[:, 0]}), LABELS)
    with pytest.raises(ValueError, match=r"the column 'score' has the name of an output.*rename"):
        kl.to_onnx(model, tmp_path / "model.onnx")
