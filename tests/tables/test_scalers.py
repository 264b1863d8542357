"""Running scaling agrees with NumPy, does not depend on chunks, and survives JSON."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from kernling.io import stream
from kernling.tables import MinMax, Standardise, part_from_state

PARTS = [Standardise, MinMax, lambda: MinMax(-1.0, 1.0)]


def rows(n=500, offset=0.0, seed=0):
    return np.random.default_rng(seed).standard_normal((n, 3)) * (1.0, 10.0, 0.0) + offset


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 2**32 - 1), st.floats(-1e9, 1e9), st.integers(1, 60))
def test_welford_is_numpys_mean_and_variance(seed, offset, chunk):
    X = rows(200, offset, seed)
    part = Standardise()
    stream(X, chunk=chunk).through(part).load()
    centred = X - offset  # exact enough to judge by, however far the data lie from 0
    assert np.allclose(part.mean_ - offset, centred.mean(axis=0), rtol=0, atol=1e-9 + 4e-16 * abs(offset) * 200)
    assert np.allclose(part.variance_, X.var(axis=0), rtol=1e-6, atol=1e-9)


def test_far_from_zero_the_sum_of_squares_would_fail():
    X = rows(1000, 1e8)
    part = Standardise()
    part.learn_transform(X)
    naive = (X**2).mean(axis=0) - X.mean(axis=0) ** 2
    assert np.allclose(part.variance_[:2], X[:, :2].var(axis=0), rtol=1e-6)
    assert not np.allclose(naive[:2], X[:, :2].var(axis=0), rtol=1e-2)


@pytest.mark.parametrize("make", PARTS)
def test_each_row_is_scaled_by_what_was_known(make):
    X = rows(50)
    whole = make().learn_transform(X)
    for chunk in (1, 7, 50):
        assert np.array_equal(stream(X, chunk=chunk).through(make()).load()[0], whole)
    for t in (1, 2, 20, 50):
        part = make()
        part.learn_transform(X[:t])
        assert np.allclose(part.transform(X[t - 1 : t]), whole[t - 1 : t], atol=1e-12)


def test_the_range_is_kept():
    out = MinMax(-1.0, 1.0).learn_transform(rows())
    assert out.min() == -1.0
    assert out.max() == 1.0
    assert np.all(out[:, 2] == -1.0)  # a constant column sits at the lower end
    assert np.all(Standardise().learn_transform(rows())[:, 2] == 0.0)


@pytest.mark.parametrize("make", PARTS)
def test_rows_can_be_scaled_back(make):
    X = rows(300)
    part = make().fit(X)
    np.testing.assert_allclose(part.inverse_transform(part.transform(X)), X, atol=1e-9)


@pytest.mark.parametrize("make", PARTS)
def test_the_state_is_data(make):
    X = rows(300)
    part = make()
    part.learn_transform(X[:100])
    again = part_from_state(json.loads(json.dumps(part.to_state(), allow_nan=False)))
    assert type(again) is type(part)
    assert np.array_equal(again.learn_transform(X[100:]), part.learn_transform(X[100:]))
    assert again.to_state() == part.to_state()


def test_errors():
    part = Standardise()
    part.learn_transform(rows())
    with pytest.raises(ValueError, match="2 columns, but this Standardise has learned from 3"):
        part.learn_transform(np.ones((1, 2)))
    with pytest.raises(ValueError, match="2 features, but Standardise is expecting 3"):
        part.transform(np.ones((1, 2)))
    with pytest.raises(ValueError, match="dense=True"):
        part.transform(sparse.eye(3, format="csr"))
    with pytest.raises(ValueError, match="NaN"):
        part.learn_transform(np.full((1, 3), np.nan))
    assert part.count_ == 500
    with pytest.raises(ValueError, match="low must be below high"):
        MinMax(1.0, 1.0).learn_transform(rows())
    with pytest.raises(ValueError, match="not of 'MinMax'"):
        MinMax.from_state(part.to_state())
    with pytest.raises(ValueError, match="part must be one of"):
        part_from_state({"part": "os.system"})


@pytest.mark.parametrize("part", [Standardise(), MinMax()], ids=lambda part: type(part).__name__)
def test_numbers_whose_squares_overflow_are_refused_and_change_nothing(part):
    part = part.partial_fit(np.eye(3))
    before = part.to_state()
    for value in (1e300, -1.7e308, 1e71):
        with pytest.raises(ValueError, match="numbers above 1e\\+70"):
            part.learn_transform(np.full((2, 3), value))
    assert part.to_state() == before
    part.learn_transform(np.array([[1e70, -1e70, 0.0]] * 1000))
    assert part_from_state(part.to_state()).to_state() == part.to_state()
