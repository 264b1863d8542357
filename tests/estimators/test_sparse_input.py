"""Sparse rows whose indices point outside of the matrix are refused before anybody follows them."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.preprocessing import MaxAbsScaler

import kernling as kl
from kernling.tables import Encode

ROWS = sparse.random_array((40, 6), density=0.5, rng=np.random.default_rng(0), format="csr")
LABELS = np.arange(40) % 2
CALLS = ["predict", "decision_function", "partial_fit", "fit", "predict_then_learn"]


@pytest.fixture(scope="module")
def model():
    return kl.AVMClassifier(gamma=1.0, delta=1.0).fit(ROWS, LABELS)


def broken(form, what):
    """ROWS in a format, with one part of it damaged in a way that SciPy does not notice."""
    X = ROWS.asformat(form, copy=True)
    if form == "coo":
        coordinate = X.coords[0 if what.startswith("row") else 1]
        coordinate[7] = {"above": 1_000_000, "below": -1}.get(what.split()[-1], 0)
        return X
    if what == "index above":
        X.indices[3] = 1_000_000
    elif what == "index just above":
        X.indices[3] = X.shape[1 if form != "csc" else 0]
    elif what == "index below":
        X.indices[3] = -1
    elif what == "starts beyond the end":
        X.indptr[-1] = 10**6
    elif what == "starts decrease":
        X.indptr[2] = X.indptr[-1] + 5
    elif what == "starts are short":
        X.indptr = X.indptr[:-3]
    elif what == "few values":
        X.data = X.data[:5]
    return X


COMPRESSED = ["index above", "index just above", "index below", "starts beyond the end", "starts decrease"]
CASES = [
    *((form, what) for form in ("csr", "csc") for what in [*COMPRESSED, "starts are short", "few values"]),
    *(("coo", what) for what in ("row above", "row below", "column above", "column below")),
]


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize(("form", "what"), CASES)
def test_indices_outside_are_refused(model, call, form, what):
    X = broken(form, what)
    model = model if call in ("predict", "decision_function") else kl.AVMClassifier(gamma=1.0, delta=1.0)
    arguments = (X,) if call in ("predict", "decision_function") else (X, LABELS)
    with pytest.raises(ValueError, match="X is not a valid"):
        getattr(model, call)(*arguments)
    assert not vars(model).keys() & {"_state"} or model.t_ == 40


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "bsr", "lil", "dok", "dia"])
@pytest.mark.parametrize("make", [sparse.csr_array, sparse.csr_matrix])
def test_sound_rows_of_every_format_are_the_same(model, form, make):
    X = make(ROWS).asformat(form)
    np.testing.assert_array_equal(model.decision_function(X), model.decision_function(ROWS))


def test_wide_indices_duplicates_and_unsorted_columns(model):
    X = ROWS.copy()
    wide = sparse.csr_array((X.data, X.indices.astype(np.int64), X.indptr.astype(np.int64)), shape=X.shape)
    reverse = sparse.csr_array((X.data.copy(), X.indices.copy(), X.indptr), shape=X.shape)
    for first, last in zip(X.indptr[:-1], X.indptr[1:], strict=True):
        reverse.indices[first:last] = reverse.indices[first:last][::-1]
        reverse.data[first:last] = reverse.data[first:last][::-1]
    reverse.has_sorted_indices = False
    doubled = sparse.csr_array((np.repeat(X.data / 2.0, 2), np.repeat(X.indices, 2), 2 * X.indptr), shape=X.shape)
    for rows in (wide, reverse, doubled):
        np.testing.assert_allclose(model.decision_function(rows), model.decision_function(ROWS), rtol=1e-12)


def test_one_dimension_is_no_table(model):
    with pytest.raises(ValueError, match="but 2 are required"):
        model.predict(sparse.coo_array(np.ones(6)))


class Untouched(MaxAbsScaler):
    """A transformer that fails whenever rows reach it."""

    def partial_fit(self, X, y=None):
        raise AssertionError("rows that were not checked have reached a step")

    transform = partial_fit


@pytest.mark.parametrize(("form", "what"), CASES)
@pytest.mark.parametrize("first", [Untouched(), MaxAbsScaler(), Encode(), None], ids=lambda first: type(first).__name__)
def test_pipelines_check_sparse_rows_before_their_steps_see_them(model, form, what, first):
    steps = [] if first is None else [("first", first)]
    pipeline = kl.StreamPipeline([*steps, ("model", clone(model))])
    X = broken(form, what)
    for call in ("partial_fit", "fit", "predict_then_learn"):
        with pytest.raises((ValueError, TypeError), match=r"X is not a valid|[Ss]parse"):
            getattr(pipeline, call)(X, LABELS)
        assert not hasattr(pipeline, "steps_")
    if isinstance(first, (MaxAbsScaler, type(None))) and not isinstance(first, Untouched):
        pipeline.fit(ROWS, LABELS)
        with pytest.raises(ValueError, match="X is not a valid"):
            pipeline.predict(X)
