"""Damaged and forged files of pipelines: what holds for models holds for them, and for the scales and encodings in them."""

import itertools

import numpy as np
import pytest
import safetensors.numpy
from sklearn.base import clone

import forgery
import kernling
from costs import little_memory
from kernling.tables import Encode, MinMax, Standardise
from oracles import stream

CLASSIFIER = ("model", kernling.AVMClassifier(gamma=1.0, delta=0.6, lam=0.05))
REGRESSOR = ("model", kernling.AVMRegressor(gamma=1.0, delta=0.6, lam=0.05))
PIPELINES = {
    "classifier": ("binary", kernling.StreamPipeline([("scale", Standardise()), CLASSIFIER])),
    "regressor": ("regression", kernling.StreamPipeline([("scale", MinMax(-1.0, 1.0)), REGRESSOR])),
    "encoder": ("binary", kernling.StreamPipeline([("encode", Encode(["x0"])), ("scale", MinMax()), CLASSIFIER])),
    "table": ("binary", kernling.StreamPipeline.auto(CLASSIFIER[1], categorical=["x0"])),
    "hashes": ("binary", kernling.StreamPipeline([("encode", Encode(["x0"], hash=5)), CLASSIFIER])),
    "metric": ("multiclass", kernling.StreamPipeline([("metric", kernling.AOGDMetric(random_state=0)), CLASSIFIER])),
}
SOONER = ["regressor", *(pytest.param(name, marks=pytest.mark.long) for name in PIPELINES if name != "regressor")]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.kern"


@pytest.fixture
def saved(path):
    """A function that gives the bytes of a sound file, and what to go on with."""

    def save(name):
        kind, pipeline = PIPELINES[name]
        X, y = stream(kind, 80)
        X[:, 0] = np.round(X[:, 0])  # three categories
        kernling.save(clone(pipeline).partial_fit(X, y), path)
        return path.read_bytes(), X[:20], y[:20]

    return save


def test_damaged_files(saved, path):
    forgery.refuse_damaged(saved("regressor")[0], path, 200)


@pytest.mark.long
@pytest.mark.parametrize("name", PIPELINES)
def test_thousands_of_damaged_files(saved, path, name):
    forgery.refuse_damaged(saved(name)[0], path, 2000)


@pytest.mark.parametrize("name", SOONER)
@pytest.mark.parametrize("ways", [forgery.evil, forgery.misshapen], ids=lambda ways: ways.__name__)
def test_forged_arrays(saved, path, name, ways):
    whole, X, y = saved(name)
    forgery.use_all(whole, forgery.of_arrays(whole, ways), path, X, y)


def use_forged_headers(saved, path, name, every=1):
    whole, X, y = saved(name)
    with little_memory(30 * 10**6):
        forgery.use_all(whole, itertools.islice(forgery.of_headers(whole), 0, None, every), path, X, y)


@pytest.mark.parametrize("name", ["regressor", "encoder", "table"])
def test_some_forged_headers(saved, path, name):
    use_forged_headers(saved, path, name, every=23)  # no divisor of the number of ways to change an entry


@pytest.mark.long
@pytest.mark.parametrize("name", PIPELINES)
def test_forged_headers(saved, path, name):
    use_forged_headers(saved, path, name)


@pytest.mark.parametrize(("name", "widths"), [("classifier", "3 columns.* takes 4"), ("table", r"\d columns.* takes \d")])
def test_steps_of_different_widths(path, name, widths):
    """The scale of three columns before a model of four."""
    kind, pipeline = PIPELINES[name]
    files = []
    for d in (3, 4):
        X, y = stream(kind, 80, d=d)
        X[:, 0] = np.round(X[:, 0])
        kernling.save(clone(pipeline).partial_fit(X, y), path)
        files.append(path.read_bytes())
    theirs, their_header = safetensors.numpy.load(files[1]), forgery.header_of(files[1])

    def swap(header, arrays):
        header["steps"][-1] = their_header["steps"][-1]
        arrays.update(theirs)

    path.write_bytes(forgery.forged(files[0], swap))
    with pytest.raises(ValueError, match=widths):
        kernling.load(path)
