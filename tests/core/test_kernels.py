"""Kernels against scikit-learn's."""

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import Matern, RationalQuadratic
from sklearn.metrics import pairwise

import kernling
from kernling.core.kernels import ISOTROPIC, KINDS
from oracles.common import kernel_values

GAMMA = 0.7
REFERENCES = {
    "rbf": lambda X, Z: pairwise.rbf_kernel(X, Z, gamma=GAMMA),
    "exponential": Matern(1.0 / GAMMA, nu=0.5),
    "matern32": Matern(1.0 / GAMMA, nu=1.5),
    "matern52": Matern(1.0 / GAMMA, nu=2.5),
    "rational_quadratic": RationalQuadratic(np.sqrt(0.5 / GAMMA), alpha=4.0),
    "cauchy": RationalQuadratic(np.sqrt(0.5 / GAMMA), alpha=1.0),
    "poly": lambda X, Z: pairwise.polynomial_kernel(X, Z, degree=4, gamma=GAMMA, coef0=0.5),
    "linear": pairwise.linear_kernel,
}


@pytest.fixture
def tables():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 4))
    return X, np.vstack([rng.normal(size=(20, 4)), X[:3], X[:1] + 50.0])  # with equal rows, and one far away


@pytest.mark.parametrize("name", KINDS)
def test_values(name, tables):
    kernel = kernling.kernel(name, gamma=GAMMA, degree=4, coef0=0.5)
    np.testing.assert_allclose(kernel(*tables), REFERENCES[name](*tables), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("name", KINDS)
def test_oracle(name, tables):
    X, Z = tables
    params = {"kernel": name, "gamma": GAMMA, "degree": 4, "coef0": 0.5}
    expected = np.array([kernel_values(params, Z, x) for x in X])
    np.testing.assert_allclose(REFERENCES[name](X, Z), expected, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("name", ISOTROPIC)
def test_a_point_with_itself_is_one(name, tables):
    X = tables[0]
    np.testing.assert_array_equal(np.diag(kernling.kernel(name, gamma=GAMMA)(X, X)), 1.0)


@pytest.mark.parametrize("name", ISOTROPIC)
def test_models_use_the_same_values(name, tables):
    X, Z = tables
    model = kernling.AVMClassifier(kernel=name, gamma=GAMMA, degree=2, delta=0.1, lam=1.0).fit(X, np.arange(30) % 2)
    kernel = kernling.kernel(name, gamma=GAMMA, degree=2)
    np.testing.assert_allclose(model.decision_function(Z), kernel(Z, model.support_vectors_) @ model.dual_coef_, atol=1e-12)


def test_unknown_name():
    with pytest.raises(ValueError, match="there is no kernel 'gauss'; the kernels are rbf, "):
        kernling.kernel("gauss")
