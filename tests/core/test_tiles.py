"""Sums over columns: right, and the same to the last bit whatever other rows there are."""

import numpy as np
import pytest

from kernling.core.tiles import add_distances, add_products


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("d", [1, 3, 16, 37])
@pytest.mark.parametrize(("rows", "others"), [(1, 1), (3, 5), (8, 64), (18, 131)])
def test_products(rows, others, d, dtype):
    rng = np.random.default_rng(d)
    A, B, start = rng.normal(size=(d + 1, rows + 2)), rng.normal(size=(d, others + 3)).astype(dtype), rows // 3
    G = rng.normal(size=(rows, others))
    expected = A[:d, :rows].T @ B[:, :others]
    for sign in (1.0, -1.0):
        found = G.copy()
        add_products(sign, A, B, start, found)
        np.testing.assert_array_equal(found[:start], G[:start])
        np.testing.assert_allclose(found[start:], (G + sign * expected)[start:], atol=1e-12)
        one = G[-1:, others // 2 : others // 2 + 1].copy()
        add_products(sign, A[:, rows - 1 :], B[:, others // 2 :], 0, one)
        assert one[0, 0] == found[-1, others // 2]


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
