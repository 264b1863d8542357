"""Bad days at the entrance: rows, targets and options that make no sense give a clear error or the right chunks."""

import warnings

import numpy as np
import pandas
import pytest

import hostile
from kernling.io import stream
from kernling.tables import MinMax, Standardise
from oracles import stream as events

X, y = events("binary", hostile.LENGTH)
FRAME = pandas.DataFrame(X, columns=["a", "b", "c"])
OPTIONS = {
    "chunk": [0, -1, 1.5, "a", None],
    "target": ["nothing", 5, 1.5, []],
    "features": ["a", ["nothing"], 5],
    "categorical": ["a", 5, {"a": 1}],
    "hash": [0, -1, "a", 2.5, 2**70],
    "missing": ["x", None, 3],
    "format": ["x", 3],
    "n_features": [0, -1, "a"],
    "columns": [5, "a"],
}


def refuse_or_load(make_stream):
    """A clear error, or chunks."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            make_stream().load()
    except (ValueError, TypeError) as error:
        hostile.check_message(error)


@pytest.mark.parametrize("name", hostile.ROWS)
def test_rows(name):
    make_rows = hostile.ROWS[name]
    refuse_or_load(lambda: stream(make_rows(X), y))
    for part in (Standardise, MinMax):
        refuse_or_load(lambda: stream(make_rows(X), y).through(part()))  # noqa: B023


@pytest.mark.parametrize("name", hostile.SAME_ROWS)
def test_the_same_rows_in_another_dress(name):
    rows = hostile.SAME_ROWS[name](X)
    if isinstance(rows, (list, pandas.DataFrame)) or not hasattr(rows, "shape") or hasattr(rows, "columns"):
        pytest.skip("a table without targets")
    found, targets = stream(rows, y, dense=True).load()
    np.testing.assert_allclose(found, X, rtol=1e-15)
    np.testing.assert_array_equal(targets, y)


@pytest.mark.parametrize("name", hostile.TARGETS)
def test_targets(name):
    refuse_or_load(lambda: stream(X, hostile.TARGETS[name](y.astype(float))))


@pytest.mark.parametrize(("option", "value"), [(option, value) for option, values in OPTIONS.items() for value in values])
def test_options(option, value, tmp_path):
    text, pairs = tmp_path / "rows.csv", tmp_path / "rows.libsvm"
    text.write_text("a,b,c\n1,2,3\n4,5,6\n")
    pairs.write_text("1 1:2 3:4\n-1 2:1\n")
    refuse_or_load(lambda: stream(X, y, **{option: value}))
    refuse_or_load(lambda: stream(FRAME, **{"target": "a", option: value}))
    refuse_or_load(lambda: stream(text, **{"target": "a", option: value}))
    refuse_or_load(lambda: stream(pairs, **{option: value}))


@pytest.mark.parametrize("source", [["a", 5], [{"a": 1.0}], b"rows", {"a": [1.0]}, 5, [5]], ids=str)
def test_sources_that_are_none(source):
    with pytest.raises(TypeError, match="cannot stream a"):
        stream(source).load()
