"""Triangular systems: right, and the same to the last bit for one vector and for many."""

import numpy as np
import pytest

from kernling.compiler import jit_exact
from kernling.components.whitened import coefficients
from kernling.core.tiles import add_product, add_products
from kernling.core.triangles import solve, write_scores


@pytest.mark.parametrize("n", [1, 2, 5, 8, 67])
def test_a_vector_is_solved_for_as_if_it_were_alone(n):
    rng = np.random.default_rng(n)
    A = rng.normal(size=(n, 2 * n))
    L, X = np.linalg.cholesky(A @ A.T), rng.normal(size=(n, 131))
    T, whole = np.ascontiguousarray(L.T), X.copy()
    solve(T, whole, n)
    np.testing.assert_allclose(L @ whole, X, atol=1e-9)
    for first, last in ((0, 1), (3, 5), (60, 130)):
        part = X[:, first:last].copy()
        solve(T, part, n)
        np.testing.assert_array_equal(part, whole[:, first:last])


@pytest.mark.parametrize("n", [1, 3, 4, 6, 67])
def test_systems_are_solved_backwards_as_well(n):
    rng = np.random.default_rng(n)
    A, room = rng.normal(size=(n, 2 * n)), np.full((n + 2, n + 2), np.nan)
    L, W = np.linalg.cholesky(A @ A.T), rng.normal(size=(2, n))
    room[:n, :n] = np.where(np.tri(n, dtype=bool), L, np.nan).T  # nothing else may be read
    np.testing.assert_allclose(coefficients(room, W) @ L, W, atol=1e-9)


@pytest.mark.parametrize("n", [1, 7, 8, 67])
def test_products_and_scores_are_those_of_each_vector_alone(n):
    rng = np.random.default_rng(n)
    A, B, W = rng.normal(size=(n + 2, 140)), rng.normal(size=(n, 33)), rng.normal(size=(2, n))
    G, scores = np.zeros((137, 33)), np.empty((2, 33))
    add_products(A, B, G)
    write_scores(W, n, B, scores)
    np.testing.assert_allclose(scores, W @ B, atol=1e-12)
    for j in (0, 32):
        g, f, b = np.zeros(137), np.empty((2, 1)), B[:, j : j + 1].copy()
        product_alone(A, B, j, g)
        write_scores(W, n, b, f)
        np.testing.assert_array_equal(g, G[:, j])
        np.testing.assert_array_equal(f[:, 0], scores[:, j])


@jit_exact
def product_alone(A, B, e, g):
    add_product(A, g.size, B, e, g)
