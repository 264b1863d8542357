"""Random features: their kernel is the kernel, their norm is 1, orthogonal ones vary less; dense and CSR rows agree."""

import numpy as np
import pytest
from scipy import sparse

import kernling
from kernling.baselines import FOGDClassifier, FOGDRegressor
from kernling.core.fourier import draw_frequencies, new_linear
from kernling.core.kernels import ISOTROPIC, KINDS, Kernel
from kernling.estimators.learner import Problem

DISTANCES = np.linspace(0.1, 2.5, 8)


def kernel_of(name: str) -> Kernel:
    return Kernel(KINDS[name], 0.7, 2, 0.0)


def mean_kernel(name: str, count: int, d: int, orthogonal: bool, seed: int) -> np.ndarray:
    """The features' kernel at some distances along a diagonal."""
    frequencies = draw_frequencies(kernel_of(name), count, d, orthogonal, np.random.default_rng(seed))
    steps = DISTANCES[:, np.newaxis] * np.full(d, d**-0.5)
    return np.cos(steps @ frequencies.T).mean(axis=1)


def exact_kernel(name: str, d: int) -> np.ndarray:
    rows = DISTANCES[:, np.newaxis] * np.full(d, d**-0.5)
    return kernling.kernel(name, 0.7, 2, 0.0)(rows, np.zeros((1, d)))[:, 0]


@pytest.mark.parametrize("orthogonal", [False, True])
@pytest.mark.parametrize("name", ISOTROPIC)
def test_spectral_distribution(name, orthogonal):
    """The mean of L cosines is within 5 standard deviations, at most 5 / sqrt(2 L), of the kernel."""
    count = 60_000
    error = np.abs(mean_kernel(name, count, 4, orthogonal, seed=0) - exact_kernel(name, 4))
    assert error.max() <= 5.0 / np.sqrt(2.0 * count)


def test_the_gaussian_frequencies_come_first_and_can_be_replayed():
    drawn = draw_frequencies(kernel_of("rbf"), 7, 3, False, np.random.default_rng(5))
    np.testing.assert_array_equal(drawn, np.random.default_rng(5).standard_normal((7, 3)) * np.sqrt(2.0 * 0.7))


def test_orthogonal_frequencies():
    """Orthogonal within groups of d, each as long as the normal draw it comes from."""
    d, count = 5, 13
    drawn = draw_frequencies(kernel_of("rbf"), count, d, True, np.random.default_rng(0))
    plain = draw_frequencies(kernel_of("rbf"), count, d, False, np.random.default_rng(0))
    np.testing.assert_allclose(np.linalg.norm(drawn, axis=1), np.linalg.norm(plain, axis=1))
    for first in range(0, count, d):
        gram = drawn[first : first + d] @ drawn[first : first + d].T
        np.testing.assert_allclose(gram, np.diag(np.diag(gram)), atol=1e-12)


def test_orthogonal_frequencies_vary_less():
    d = 16
    exact = exact_kernel("rbf", d)
    errors = {kind: np.mean([(mean_kernel("rbf", d, d, kind, s) - exact) ** 2 for s in range(300)]) for kind in (False, True)}
    assert errors[True] < 0.8 * errors[False]


def test_an_odd_number_of_features_is_one_more():
    problem = Problem({}, "regression", 3, 1, np.float64, kernel_of("rbf"))
    widths = [new_linear(problem, "fourier", n, np.random.default_rng(0)).coef.shape[2] for n in (1, 2, 7, 8)]
    assert widths == [2, 2, 8, 8]


@pytest.mark.parametrize("features", ["fourier", "orthogonal", "linear"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_csr_rows(features, dtype):
    rng = np.random.default_rng(0)
    X = np.where(rng.random((200, 6)) < 0.6, 0.0, rng.standard_normal((200, 6)))
    y = (X[:, 0] > 0.0).astype(int)
    dense, csr = (
        FOGDClassifier(gamma=0.3, features=features, random_state=0, dtype=dtype).fit(rows, y).decision_function(rows)
        for rows in (X, sparse.csr_array(X))
    )
    np.testing.assert_allclose(csr, dense, rtol=0.0, atol=1e-10 if dtype == "float64" else 1e-4 * np.abs(dense).max())


def test_a_model_on_the_columns_is_linear():
    """Adaline: w <- w - eta (w.x - y) x."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 4))
    y = X @ [1.0, -2.0, 0.5, 0.0]
    w = np.zeros(4)
    for x, target in zip(X, y, strict=True):
        w -= 0.05 * (w @ x - target) * x
    model = FOGDRegressor(features="linear", eta=0.05, standardise_target=False).fit(X, y)
    np.testing.assert_allclose(model.predict(np.eye(4)), w, atol=1e-12)
