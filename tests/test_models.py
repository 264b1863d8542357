"""Model files: they come back as they went, are written whole or not at all, and damaged ones are refused."""

import json
import os
import pickle

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
    assert copy._state.model.points.dtype == np.float32
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
    model = kernling.AVMRegressor(loss, lam=0.5, output=output, max_cells=30).partial_fit(sparse.csr_array(X), y)
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


# ---------------------------------------------------------------------- damage


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The bytes of a sound file."""
    path = tmp_path_factory.mktemp("whole") / "model.kern"
    kernling.save(classifier(output="suffix", random_state=1, **COIN).fit(X, NAMES), path)
    return path.read_bytes()


def refuse(data, path):
    path.write_bytes(data)
    with pytest.raises(ValueError, match=r"model\.kern"):
        kernling.load(path)


@pytest.mark.parametrize("seed", range(10))
def test_changed_bytes(whole, path, seed):
    rng = np.random.default_rng(seed)
    header = 8 + int.from_bytes(whole[:8], "little")
    for i in range(40):
        place = int(rng.integers(header if i % 2 else len(whole)))  # half of them in the header
        data = bytearray(whole)
        data[place] ^= int(rng.integers(1, 256)) if i % 4 else 1 << int(rng.integers(8))
        refuse(bytes(data), path)


def test_missing_and_additional_bytes(whole, path):
    rng = np.random.default_rng(0)
    for cut in [0, 1, 7, 8, 9, len(whole) - 1, *rng.integers(len(whole), size=60)]:
        refuse(whole[:cut], path)
    for extra in (b"\0", b" ", bytes(1000), whole):
        refuse(whole + extra, path)
        refuse(extra + whole, path)


@pytest.mark.parametrize("length", [0, 1, 2**31, 2**40, 2**63, 2**64 - 1])
def test_a_header_that_claims_another_length(whole, path, length):
    refuse(length.to_bytes(8, "little") + whole[8:], path)


@pytest.mark.parametrize("claim", ["[0,99999999999999]", "[-8,8]", "[8,0]", "[18446744073709551615,8]", "[0]", "null"])
def test_offsets_outside_of_the_file(whole, path, claim):
    size = int.from_bytes(whole[:8], "little")
    header = json.loads(whole[8 : 8 + size])
    header["state.model.points"]["data_offsets"] = json.loads(claim)
    text = json.dumps(header).encode()
    refuse(len(text).to_bytes(8, "little") + text + whole[8 + size :], path)


def test_a_shape_that_claims_more_than_memory(whole, path):
    size = int.from_bytes(whole[:8], "little")
    header = json.loads(whole[8 : 8 + size])
    for shape in ([2**40, 3], [2**62, 2**62], [-1, 3]):
        header["state.model.points"]["shape"] = shape
        text = json.dumps(header).encode()
        refuse(len(text).to_bytes(8, "little") + text + whole[8 + size :], path)


# ---------------------------------------------------------------------- sound files with unsound contents


def forged(whole, change):
    """The file after a change of its header and arrays, with the checksum that goes with it."""
    arrays = safetensors.numpy.load(whole)
    size = int.from_bytes(whole[:8], "little")
    header = json.loads(json.loads(whole[8 : 8 + size])["__metadata__"]["kernling"])
    change(header, arrays)
    text = json.dumps(header)
    return safetensors.numpy.save(arrays, {"kernling": text, "sha256": models._checksum(text, arrays)})


def test_forging_nothing_is_fine(whole, path):
    path.write_bytes(forged(whole, lambda header, arrays: None))
    assert kernling.load(path).t_ == 200


def set_array(name, value):
    def change(header, arrays):
        arrays[f"state.{name}"] = np.asarray(value, arrays[f"state.{name}"].dtype)

    return change


def drop(name):
    return lambda header, arrays: arrays.pop(name)


def cut(name, length):
    def change(header, arrays):
        arrays[name] = arrays[name][:length].copy()

    return change


def cast(name, dtype):
    def change(header, arrays):
        arrays[name] = arrays[name].astype(dtype)

    return change


def set_header(**entries):
    return lambda header, arrays: header.update(entries)


def set_param(**entries):
    return lambda header, arrays: header["params"].update(entries)


FORGERIES = {
    "more points than rows": set_array("model.size", [10**6]),
    "fewer points than none": set_array("model.size", [-1]),
    "no size": set_array("model.size", []),
    "two sizes": set_array("model.size", [1, 1]),
    "points of another width": set_array("model.points", np.zeros((5, 7))),
    "too few norms": set_array("model.norms", np.zeros(1)),
    "too few coefficients": set_array("model.coef", np.zeros((6, 1, 2))),
    "one group of coefficients": lambda header, arrays: arrays.update(
        {"state.model.coef": arrays["state.model.coef"][:1].copy()}
    ),
    "no tags": set_array("model.tags", np.zeros((0, 5))),
    "a row of tags too few": cut("state.model.tags", 0),
    "classes out of order": set_header(classes=["yes", "no"]),
    "a class twice": set_header(classes=["no", "no"]),
    "a narrow centre": set_array("model.centre", np.zeros(2)),
    "a short clock": set_array("model.clock", np.zeros(3)),
    "more marks than groups": set_array("model.marks", np.zeros(50)),
    "too few stats": set_array("stats", np.zeros(2)),
    "no stats": drop("state.stats"),
    "no counts": drop("counts"),
    "counts of other classes": lambda header, arrays: arrays.update({"counts": np.zeros(7)}),
    "whole-number points": cast("state.model.points", np.int64),
    "single precision": cast("state.model.points", np.float32),
    "a flat table": lambda header, arrays: arrays.update({"state.model.points": arrays["state.model.points"].ravel()}),
    "a norm that nobody asked for": set_array("norm.square", [1.0]),
    "an unknown learner": set_header(learner="os"),
    "an unknown estimator": set_header(estimator="system"),
    "another estimator": set_header(estimator="AVMRegressor"),
    "no estimator": lambda header, arrays: header.pop("estimator"),
    "no params": lambda header, arrays: header.pop("params"),
    "params that are a list": set_header(params=[1, 2]),
    "a parameter too many": set_param(command="rm"),
    "a parameter out of range": set_param(lam=-1.0),
    "another type of parameter": set_param(lam="small"),
    "a block without end": set_param(block_size=-5),
    "columns of another number": set_header(columns=2),
    "columns without end": set_header(columns=2**60),
    "no columns": set_header(columns=0),
    "outputs of another number": set_header(outputs=3),
    "outputs without end": set_header(outputs=2**60),
    "classes that do not fit": set_header(classes=["a", "b", "c"]),
    "no random state": set_header(random={}),
    "another random state": set_header(random={"bit_generator": "MT19937", "state": {}}),
    "a format that is no number": set_header(format="one"),
    "no format": lambda header, arrays: header.pop("format"),
    "a resolved width of nothing": lambda header, arrays: header["resolved"].update(gamma="x"),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_contents_that_do_not_fit(whole, path, name):
    refuse(forged(whole, FORGERIES[name]), path)


@pytest.mark.parametrize("text", ["[]", "7", "null", '"text"', "{}"])
def test_headers_of_another_kind(path, text):
    arrays = {"state": np.zeros(3)}
    refuse(safetensors.numpy.save(arrays, {"kernling": text, "sha256": models._checksum(text, arrays)}), path)


def test_a_file_of_another_program(path):
    refuse(safetensors.numpy.save({"weights": np.zeros(3)}, {"format": "pt"}), path)
    refuse(safetensors.numpy.save({"weights": np.zeros(3)}), path)


def test_a_newer_format(whole, path):
    path.write_bytes(forged(whole, set_header(format=models.FORMAT + 1)))
    with pytest.raises(ValueError, match="newer: upgrade kernling"):
        kernling.load(path)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError):
        kernling.load(tmp_path / "nothing.kern")


class Bomb:
    def __init__(self, target):
        self.target = target

    def __reduce__(self):
        return os.mkdir, (str(self.target),)


def test_nothing_in_a_file_is_executed(path, tmp_path):
    target = tmp_path / "executed"
    bomb = pickle.dumps(Bomb(target))
    refuse(bomb, path)
    text = json.dumps({"format": 1, "learner": "avm", "estimator": "AVMClassifier", "params": {"loss": bomb.decode("latin1")}})
    arrays = {"state": np.frombuffer(bomb, np.uint8)}
    refuse(safetensors.numpy.save(arrays, {"kernling": text, "sha256": models._checksum(text, arrays)}), path)
    assert not target.exists()
    pickle.loads(bomb)
    assert target.exists()
