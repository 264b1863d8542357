"""Sums over columns: right, and the same to the last bit whatever other rows there are."""

import numpy as np
import pytest

from kernling.core.tiles import add_distances, add_products, subtract_products


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("d", [1, 3, 16, 37])
@pytest.mark.parametrize(("rows", "others"), [(1, 1), (3, 5), (8, 64), (18, 131)])
def test_products(rows, others, d, dtype):
    rng = np.random.default_rng(d)
    A, B, start = rng.normal(size=(d + 1, rows + 2)), rng.normal(size=(d, others + 3)).astype(dtype), rows // 3
    G = rng.normal(size=(rows, others))
    products, more, less = A[:d, :rows].T @ B[:, :others], G.copy(), G.copy()
    add_products(A, B, more)
    subtract_products(A, B, start, less)
    np.testing.assert_allclose(more, G + products, atol=1e-12)
    np.testing.assert_allclose(less[start:], (G - products)[start:], atol=1e-12)
    np.testing.assert_array_equal(less[:start], G[:start])
    one = np.full((2, 1, 1), G[-1, others // 2])
    add_products(A[:, rows - 1 :], B[:, others // 2 :], one[0])
    subtract_products(A[:, rows - 1 :], B[:, others // 2 :], 0, one[1])
    assert tuple(one.ravel()) == (more[-1, others // 2], less[-1, others // 2])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("d", [1, 3, 16, 37])
@pytest.mark.parametrize(("rows", "others"), [(1, 1), (3, 5), (8, 64), (18, 131)])
def test_distances(rows, others, d, dtype):
    rng = np.random.default_rng(d)
    X, B, shares = rng.normal(size=(rows, d)), rng.normal(size=(d, others + 3)).astype(dtype), rng.random(d)
    G, H, alone = np.zeros((rows, others)), np.zeros((rows, others)), np.zeros((rows, others))
    add_distances(X.T, B, shares, G, H)
    gaps = abs(X[:, :, np.newaxis] - B[:, :others])
    np.testing.assert_allclose(G, gaps.sum(axis=1), atol=1e-12)
    np.testing.assert_allclose(H, (gaps * shares[:, np.newaxis]).sum(axis=1), atol=1e-12)
    add_distances(X.T, B, shares, alone, H[:0])
    np.testing.assert_array_equal(alone, G)
    one, other = np.zeros((2, 1, 1))
    add_distances(X[-1:].T, B[:, others // 2 :], shares, one, other)
    assert (one, other) == (G[-1, others // 2], H[-1, others // 2])
