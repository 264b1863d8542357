"""Damaged and forged model files: each is refused with a clear error, and none does any harm."""

import itertools
import json
import os
import pickle
import tracemalloc

import numpy as np
import pytest
import safetensors.numpy

import checks
import forgery
import hostile
import kernling
from costs import little_memory
from forgery import forged, refuse, refuse_damaged, signed
from kernling import models, registry
from kernling.baselines import BPANNClassifier
from oracles import CASES, stream

X, y = stream("binary", 200)
NAMES = np.array(["no", "yes"])[y]
ESTIMATORS = checks.estimators()


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.kern"


# ---------------------------------------------------------------------- damage


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The bytes of a sound file."""
    path = tmp_path_factory.mktemp("whole") / "model.kern"
    settings = {"gamma": 1.0, "delta": 0.6, "lam": 0.05, "approximate": "bernoulli", "beta": 5.0, "output": "suffix"}
    kernling.save(kernling.AVMClassifier(**settings, random_state=1, calibrate=True).fit(X, NAMES), path)
    return path.read_bytes()


def test_damaged_files(whole, path):
    refuse_damaged(whole, path, 300)


@pytest.mark.long
def test_ten_thousand_damaged_files(whole, path):
    refuse_damaged(whole, path, 10_000)


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
    "an output that has no coefficients": set_array("model.places", [1]),
    "no tags": set_array("model.tags", np.zeros((0, 5))),
    "a row of tags too few": cut("state.model.tags", 0),
    "classes out of order": set_header(classes=["yes", "no"]),
    "a class twice": set_header(classes=["no", "no"]),
    "a narrow centre": set_array("model.centre", np.zeros(2)),
    "a short clock": set_array("model.clock", np.zeros(3)),
    "events before the first": set_array("model.clock", [1.0, 0.0, -1.0, 0.0, -1.0]),
    "half an event": set_array("model.clock", [1.0, 0.0, 0.5, 0.0, -1.0]),
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


@pytest.mark.parametrize(("features", "far"), [("fourier", 1e149), ("fourier", 1e13), ("linear", 1.0)])
def test_a_centre_of_features_where_no_row_can_be(path, features, far):
    X = np.random.default_rng(0).normal(size=(60, 3))
    kernling.save(kernling.AOGDClassifier(gamma=1.0, features=features).partial_fit(X, X[:, 0] > 0.0), path)
    whole = path.read_bytes()
    assert np.isfinite(kernling.load(path).decision_function(X)).all()
    refuse(forged(whole, set_array("model.centre", [far, 0.0, 0.0])), path)


@pytest.mark.parametrize("text", ["[]", "7", "null", '"text"', "{}"])
def test_headers_of_another_kind(path, text):
    arrays = {"state": np.zeros(3)}
    refuse(signed(arrays, text), path)


def test_a_file_of_another_program(path):
    refuse(safetensors.numpy.save({"weights": np.zeros(3)}, {"format": "pt"}), path)
    refuse(safetensors.numpy.save({"weights": np.zeros(3)}), path)


@pytest.mark.parametrize(("step", "cure"), [(1, "upgrade kernling"), (-1, "train the model again")])
def test_another_format(whole, path, step, cure):
    number = models.FORMAT + step
    path.write_bytes(forged(whole, set_header(format=number, versions={"kernling": "9.8.7"})))
    message = rf"format {number}, written by kernling 9\.8\.7; this version reads format {models.FORMAT}: {cure}"
    with pytest.raises(ValueError, match=message):
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
    text = json.dumps(
        {"format": models.FORMAT, "learner": "avm", "estimator": "AVMClassifier", "params": {"loss": bomb.decode("latin1")}}
    )
    arrays = {"state": np.frombuffer(bomb, np.uint8)}
    refuse(signed(arrays, text), path)
    assert not target.exists()
    pickle.loads(bomb)
    assert target.exists()


# ---------------------------------------------------------------------- parts of models of different sizes


def krls(path, points, rows):
    """The file of a KRLS model with this limit of points, of which it has all."""
    X = np.random.default_rng(0).normal(size=(rows, 4))
    kernling.save(kernling.KRLSRegressor(points=points, novelty=0.0).partial_fit(X, X[:, 0]), path)
    return path.read_bytes()


def test_a_limit_of_points_below_those_that_are_stored(path):
    """Learning would write a hundred features where there is room for thirty."""
    large = krls(path, 100, 150)

    def shrink(header, arrays):
        header["params"]["points"] = header["resolved"]["points"] = 30

    path.write_bytes(forged(large, shrink))
    with pytest.raises(ValueError, match=r"state\.model\.size is \[100\], but the parameters allow from 0 to 30 points"):
        kernling.load(path)


@pytest.mark.parametrize("part", ["whitening", "squares", "model", "waves", "linear"])
def test_parts_of_another_size(path, part):
    """Parts that are sound by themselves, of a larger model: the message names the array, its shape and the right one."""
    large, small = krls(path, 100, 150), krls(path, 30, 150)
    theirs = safetensors.numpy.load(large)

    def swap(header, arrays):
        arrays.update({name: array for name, array in theirs.items() if name.startswith(f"state.{part}.")})

    path.write_bytes(forged(small, swap))
    if part in ("waves", "linear"):  # of the same size
        kernling.load(path)
    else:
        with pytest.raises(ValueError, match=r"state\.\w+\.\w+ (has the shape .* but .* fits|is \[.* but)"):
            kernling.load(path)


def test_merged_models_are_verified(monkeypatch):
    """A merge that made arrays of the wrong shape would be noticed before anything is learned."""
    X = np.random.default_rng(0).normal(size=(60, 3))
    parts = [BPANNClassifier(gamma=1.0, budget=n).partial_fit(X[:n], X[:n, 0] > 0.0) for n in (20, 20)]
    parts[1].partial_fit(X[20:], X[20:, 0] > 0.0)
    n = kernling.merge(parts).n_stored_
    monkeypatch.setattr("kernling.components.eviction.Pairs.merged", lambda self, other, start, merging: self.trimmed(3))
    with pytest.raises(ValueError, match=rf"state\.pairs\.matrix has the shape \(3, 3\), but \({n}, {n}\)"):
        kernling.merge(parts)


HEADERS = {
    "names of other columns": (set_header(names=["a", "b"]), "there are 2 names for 3 columns"),
    "names that are numbers": (set_header(names=[1, 2, 3]), "must be a list of text"),
    "an even increment": (lambda header, arrays: header["random"]["state"].update(inc=2), "random generator"),
    "a random number below 0": (lambda header, arrays: header["random"]["state"].update(state=-1), "random generator"),
    "an error of a merge that is no number": (set_header(merged=[float("nan"), 3]), "merged="),
    "an error of a merge alone": (set_header(merged=1.0), "must be of type list"),
    "more cells than core points": (lambda header, arrays: arrays["state.stats"].__setitem__(0, 3.0), "3 cells, but"),
    "norms of other points": (
        lambda header, arrays: arrays.update({"state.model.norms": arrays["state.model.norms"] + 1.0}),
        "norms are not the squared norms",
    ),
}


@pytest.mark.parametrize("name", HEADERS)
def test_contents_that_contradict_each_other(whole, path, name):
    change, message = HEADERS[name]
    path.write_bytes(forged(whole, change))
    with pytest.raises(ValueError, match=message):
        kernling.load(path)


# ---------------------------------------------------------------------- forged arrays, for every estimator


def saved(cls, path):
    """The bytes of a model in mid-stream, and what comes next."""
    case = CASES[cls.__name__][0]
    X, y = stream(case.stream, 100)
    kernling.save(checks.learn(checks.make(cls, case), X[:60], y[:60], np.unique(y)), path)
    return path.read_bytes(), X[60:], y[60:]


MAIN = [entry.classes()[0] for entry in registry.METHODS.values() if entry.is_main]
FEW, SOME = 31, 7  # primes, so that all ways to forge have their turn
FORGED = [pytest.param(cls, FEW if "Auto" in cls.__name__ else SOME, id=cls.__name__) for cls in MAIN]  # Auto has 170 arrays
FORGED += [pytest.param(cls, 1, marks=pytest.mark.long, id=f"{cls.__name__}, all") for cls in ESTIMATORS]


@pytest.mark.contract("forged_files")
@pytest.mark.parametrize(("cls", "every"), FORGED)
@pytest.mark.parametrize("ways", [forgery.evil, forgery.misshapen], ids=lambda ways: ways.__name__)
def test_forged_arrays(cls, every, ways, path):
    whole, X, y = saved(cls, path)
    forgery.use_all(whole, itertools.islice(forgery.of_arrays(whole, ways), 0, None, every), path, X, y)


def test_a_factor_that_makes_infinite_outputs(path):
    """No part contradicts another, but the smallest numbers there are cannot be divided by."""
    whole, X, _ = saved(kernling.AutoRegressor, path)
    path.write_bytes(forged(whole, lambda _header, arrays: arrays["state.whitening.factor"].fill(1e-320)))
    model = kernling.load(path)
    for predict in (lambda: model.predict(X), lambda: model.predict_one(X[0])):
        with pytest.raises(ValueError, match="overflow"):
            predict()


CHANGES = {"kernel": "linear", "dtype": "float32", "block_size": 7, "points": 100, "standardise_target": False, "ridge": 9.0}


@pytest.mark.parametrize("name", CHANGES)
def test_parameters_that_were_changed_since_the_first_event(path, name):
    """They apply to the next fit, before saving and after it."""
    X, y = stream("regression", 120)
    model = kernling.KRLSRegressor(points=30).partial_fit(X[:60], y[:60]).set_params(**{name: CHANGES[name]})
    kernling.save(model, path)
    again = kernling.load(path)
    assert again.get_params()[name] == CHANGES[name]
    for part in (slice(0, 0), slice(60, 120)):
        if len(X[part]):
            model.partial_fit(X[part], y[part])
            again.partial_fit(X[part], y[part])
        np.testing.assert_array_equal(again.predict(X), model.predict(X))


@pytest.mark.long
@pytest.mark.parametrize("cls", MAIN)
def test_forged_headers(cls, path):
    whole, X, y = saved(cls, path)
    with little_memory(30 * 10**6):
        forgery.use_all(whole, forgery.of_headers(whole), path, X, y)


@pytest.mark.contract("false_claims")
@pytest.mark.parametrize("cls", [*MAIN, *(pytest.param(cls, marks=pytest.mark.long) for cls in ESTIMATORS if cls not in MAIN)])
def test_claims_that_the_file_does_not_cover(cls, path):
    """A small file that says it is a huge model is refused before memory is taken for it."""
    whole, _, _ = saved(cls, path)
    claims = [set_header(columns=10**7), set_header(outputs=10**7), set_header(classes=list(range(10**4)))]
    for name, value in checks.make(cls, CASES[cls.__name__][0]).get_params(deep=False).items():
        if type(value) is int and name not in ("random_state", "passes", "verbose"):
            claims += [set_param(**{name: 10**7}), lambda header, arrays, name=name: header["resolved"].update({name: 10**7})]
    tracemalloc.start()
    for claim in claims:
        path.write_bytes(forged(whole, claim))
        before = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()
        try:
            kernling.load(path)
        except ValueError as error:
            hostile.check_message(error)
        assert tracemalloc.get_traced_memory()[1] - before < 30 * 10**6
    tracemalloc.stop()
