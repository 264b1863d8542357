"""Columns of any size: what was fitted and saved can be loaded, and predicts the same."""

import warnings

import numpy as np
import pytest

import checks
import hostile
import kernling
from kernling.core.limits import GAMMA
from kernling.estimators.resolve import scale_gamma
from oracles import CASES, stream

SCALES = [1e-300, 1e-160, 1e-100, 1.0, 1e75, 1e150]
MORE_SCALES = [1e-200, 1e-162, 1e-161, 1e-158, 1e-155, 1e-150, 1e-140, 1e-20, 1e-3, 1e3, 1e20, 1e24, 1e49, 1e100, 1e149]
OPTIONS = {"gamma", "delta", "theta"}  # of the data


def of_the_data(cls):
    """A model whose parameters follow from the data wherever they can."""
    case = CASES[cls.__name__][0]
    return cls(**{name: value for name, value in case.params.items() if name not in OPTIONS}), case.stream


@pytest.mark.parametrize("cls", checks.estimators(), ids=lambda cls: cls.__name__)
@pytest.mark.parametrize("scales", [SCALES, pytest.param(MORE_SCALES, marks=pytest.mark.long)], ids=["some", "more"])
def test_what_was_fitted_and_saved_can_be_loaded(cls, scales, tmp_path):
    path = tmp_path / "model.kern"
    fitted = 0
    for scale in scales:
        model, kind = of_the_data(cls)
        X, y = stream(kind, 80)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                model.fit(scale * X, y)
            except ValueError as error:  # too large for this kernel or these features, which fit says
                hostile.check_message(error)
                continue
        fitted += 1
        kernling.save(model, path)
        again = kernling.load(path)
        np.testing.assert_array_equal(checks.scores(again, scale * X), checks.scores(model, scale * X))
        assert np.isfinite(checks.scores(model, scale * X)).all()
    assert fitted >= 4


@pytest.mark.parametrize("scale", [1e-158, 1e-160, 1e-162, 1e-200, 1e-300])
def test_gamma_of_columns_that_hardly_vary(scale):
    X = scale * np.random.default_rng(0).normal(size=(100, 3))
    with pytest.warns(UserWarning, match="vary so little"):
        assert scale_gamma(X, {"gamma": "scale"}) == GAMMA


def test_gamma_of_constant_columns():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert scale_gamma(np.ones((100, 3)), {"gamma": "scale"}) == 1.0
        assert scale_gamma(np.zeros((100, 3)), {"gamma": "scale"}) == 1.0
