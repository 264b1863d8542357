"""Model files: they come back as they went, are written whole or not at all, and damaged ones are refused."""

import json
import os

import numpy as np
import pandas
import pytest
import safetensors.numpy
from scipy import sparse

import kernling
from checks import assert_identical
from kernling import models
from oracles import stream

X, y = stream("binary", 200)
NAMES = np.array(["no", "yes"])[y]
COIN = {"approximate": "bernoulli", "beta": 5.0}
SETTINGS = {"gamma": 1.0, "delta": 0.6, "lam": 0.05}


def classifier(**params):
    return kernling.AVMClassifier(**{**SETTINGS, **params})


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.kern"


def round_trip(model, path):
    kernling.save(model, path)
    return kernling.load(path)


def assert_same(copy, model, rows=X):
    assert type(copy) is type(model)
    assert_identical(copy, model)
    for name in ("gamma_", "delta_", "n_features_in_", "t_", "n_stored_", "n_support_"):
        assert getattr(copy, name) == getattr(model, name)
    np.testing.assert_array_equal(copy.predict(rows), model.predict(rows))
    assert copy.certificate() == model.certificate()


# ---------------------------------------------------------------------- there and back


TEXT = np.array(["no", "yes"])


@pytest.mark.parametrize("labels", [TEXT, TEXT.astype(object), *map(np.array, ([False, True], [-3, 8], [0.0, 1.0]))], ids=str)
def test_labels(labels, path):
    model = classifier().fit(X, labels[y])
    copy = round_trip(model, path)
    assert_same(copy, model)
    assert copy.classes_.dtype == model.classes_.dtype
    assert copy.predict(X).dtype == model.predict(X).dtype
    for each in (model, copy):
        each.learn_one(X[0], labels[1])
    assert_same(copy, model)


def test_a_class_that_comes_after_loading(path):
    model = classifier(class_weight="balanced", output="average").partial_fit(X, NAMES)
    copy = round_trip(model, path)
    for each in (model, copy):
        each.partial_fit(X, np.where(X[:, 0] > 0.5, "perhaps", NAMES))
    assert copy.classes_.tolist() == ["no", "perhaps", "yes"]
    assert_same(copy, model)


def test_feature_names(path):
    frame = pandas.DataFrame(X, columns=["width", "height", "größe"])
    model = classifier().fit(frame, y)
    copy = round_trip(model, path)
    assert copy.feature_names_in_.tolist() == ["width", "height", "größe"]
    assert copy.feature_names_in_.dtype == model.feature_names_in_.dtype
    assert_same(copy, model, frame)
    with pytest.raises(ValueError, match="feature names"):
        copy.partial_fit(frame.rename(columns={"width": "depth"}), y)


@pytest.mark.parametrize("weights", [{"no": 2.0, "yes": 0.5}, "balanced"])
def test_class_weight(weights, path):
    model = classifier(class_weight=weights).partial_fit(X, NAMES)
    copy = round_trip(model, path)
    assert copy.class_weight == weights
    assert_same(copy.partial_fit(X, NAMES), model.partial_fit(X, NAMES))


def test_class_weight_of_whole_numbers(path):
    model = classifier(class_weight={0: 2, 1: 3}).fit(X, y)
    assert round_trip(model, path).class_weight == {0: 2, 1: 3}


@pytest.mark.parametrize("dtype", ["float32", np.float32, np.dtype("float32")])
def test_single_precision(dtype, path):
    model = classifier(dtype=dtype).partial_fit(X, y)
    copy = round_trip(model, path)
    assert copy.state_.model.points.dtype == np.float32
    assert_same(copy.partial_fit(X, y), model.partial_fit(X, y))


@pytest.mark.parametrize(
    "seed", [None, 3, np.random.default_rng(4), np.random.RandomState(5)], ids=["none", "int", "rng", "state"]
)
def test_random_state(seed, path):
    model = classifier(random_state=seed, **COIN).partial_fit(X, y)
    copy = round_trip(model, path)
    assert_same(copy.partial_fit(X, y), model.partial_fit(X, y))


def test_a_generator_that_cannot_be_saved(path):
    model = classifier(random_state=np.random.Generator(np.random.MT19937(0)), **COIN).fit(X, y)
    with pytest.raises(TypeError, match="random_state"):
        kernling.save(model, path)
    assert not path.exists()


@pytest.mark.parametrize("output", ["last", "average", "suffix"])
@pytest.mark.parametrize("loss", ["epsilon_insensitive", "l2"])
def test_regressors(output, loss, path):
    X, y = stream("regression", 200)
    model = kernling.AVMRegressor(loss=loss, lam=0.5, output=output, max_cells=30).partial_fit(sparse.csr_array(X), y)
    copy = round_trip(model, path)
    assert copy.delta == "auto"
    assert copy.gamma == "scale"
    assert_same(copy.partial_fit(X, y), model.partial_fit(X, y))


def test_the_header_says_what_it_is(path):
    kernling.save(classifier().fit(X, y), path)
    with safetensors.safe_open(path, "numpy") as file:
        header = json.loads(file.metadata()["kernling"])
    assert header["format"] == models.FORMAT
    assert header["estimator"] == "AVMClassifier"
    assert header["params"]["delta"] == 0.6
    assert header["versions"]["numpy"] == np.__version__


def test_a_model_that_has_learned_nothing(path):
    with pytest.raises(ValueError, match="not fitted"):
        kernling.save(classifier(), path)
    assert not path.exists()


# ---------------------------------------------------------------------- written whole or not at all


@pytest.mark.parametrize("failing", ["fsync", "replace"])
def test_a_write_that_fails_leaves_the_old_file(failing, path, monkeypatch):
    old = classifier().fit(X, y)
    kernling.save(old, path)

    def full_disk(*arguments):
        raise OSError("no space left on device")

    monkeypatch.setattr(os, failing, full_disk)
    with pytest.raises(OSError, match="no space"):
        kernling.save(classifier(lam=0.5).fit(X, y), path)
    monkeypatch.undo()
    assert_same(kernling.load(path), old)
    assert os.listdir(path.parent) == ["model.kern"]


def test_saving_replaces(path):
    kernling.save(classifier().fit(X, y), path)
    model = round_trip(classifier(lam=0.5).fit(X, y), str(path))
    assert model.lam == 0.5
    assert os.listdir(path.parent) == ["model.kern"]
