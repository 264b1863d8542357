"""The front end against Python: the same functions, compiled and not."""

import math

import numpy as np
import pytest

from kernling.compiler import COMPILED, add_product, inline, inner, jit
from kernling.compiler.fast_backend import link_once

pytestmark = pytest.mark.skipif(not COMPILED, reason="nothing is compiled")


@inner
def two(x):
    return x + 1.0, 3


@inline
def clipped(x, low):
    if x < low:
        return low
    return x


@inner
def slow(x):
    total = 0
    while True:
        total += 1
        if x * total > 10.0:
            return total


@jit
def numbers(x, i, out):
    """Write what arithmetic gives."""
    k = 0
    for value in range(7, -8, -3):
        k += value // i + value % i
    out[0] = k
    out[1] = x % 3.0 + (-x) % 3.0
    out[2] = max(x, 1, -2.5) - min(i, 0.5) + abs(-i) + abs(x)
    out[3] = x**2 + i**3 + x**0.5 + (1 / 2)
    out[4] = int(x) + (i << 2) + (i & 1)
    out[5] = np.sign(-x) + np.sign(x - x) + math.sqrt(x) + np.log1p(x) + np.ceil(x)
    out[6] = 1.0 if 0.0 < x <= 10.0 and not (i > 5 or x == i) else 2.0
    a, b = two(x)
    out[7] = a * b + clipped(x, 100) + slow(x)
    c = -1
    if x > 0.0:
        c = x
    out[-1] = c


@jit
def divided(a, b, x, y, out):
    """Write quotients and remainders of whole numbers, and remainders of others."""
    for i in range(a.size):
        out[i, 0] = a[i] // b[i]
        out[i, 1] = a[i] % b[i]
        out[i, 2] = x[i] % y[i]
        out[i, 3] = a[i] % 3 + a[i] // 3
        out[i, 4] = a[i] % -3 + a[i] // -3


@jit
def arrays(table, out):
    """Write what indices, slices and new arrays give."""
    n, m = table.shape
    sums = np.zeros(m)
    order = np.empty(n, np.int64)
    for r in range(n):
        order[r] = n - 1 - r
    for r in range(n):
        if r == 1:
            continue
        if r == 4:
            break
        row = table[order[r]]
        for c in range(m):
            sums[c] += row[c]
        sums[-1] -= row[-2]
    total = table.dtype.type(0.0)
    part = table[1:, 2]
    for r in range(part.size):
        total += part[r]
    middle = table[:-1][1, 1:9]
    turned = table.T
    np.dot(table, turned, out)
    out[0, 0] = total + middle.size + turned[2, 1] + table[2:1].shape[0]
    out[1, : m - 1][0] = sums[0]
    for c in range(m):
        out[2, c] = sums[c]


@jit
def products(a, b, out):
    """Add products of parts of tables, which BLAS computes."""
    add_product(a, b, 2.0, out)
    add_product(a[1:, :2], b[1:, 1:3], -0.5, out[2:4, 3:5])


@pytest.mark.parametrize(("x", "i"), [(0.75, 2), (3.5, 7), (9.0, 4)])
def test_numbers(x, i):
    found, expected = np.full(9, np.nan), np.full(9, np.nan)
    numbers(x, i, found)
    uncompiled(numbers)(x, i, expected)
    np.testing.assert_allclose(found, expected, rtol=1e-14)


def test_division_rounds_towards_minus_infinity_whatever_the_signs():
    a, b = (pairs.ravel() for pairs in np.meshgrid(np.arange(-7, 8), [-7, -3, -2, -1, 1, 2, 3, 7]))
    found, expected = np.full((len(a), 5), np.nan), np.full((len(a), 5), np.nan)
    divided(a, b, 0.5 * a, 0.75 * b, found)
    uncompiled(divided)(a, b, 0.5 * a, 0.75 * b, expected)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_arrays(dtype):
    table = np.random.default_rng(0).normal(size=(6, 4)).astype(dtype)
    found, expected = np.zeros((6, 6), dtype), np.zeros((6, 6), dtype)
    arrays(table, found)
    uncompiled(arrays)(table, expected)
    np.testing.assert_allclose(found, expected, rtol=1e-5 if dtype == np.float32 else 1e-13)


def test_products():
    rng = np.random.default_rng(0)
    a, b, found = rng.normal(size=(6, 4)), rng.normal(size=(6, 5)), rng.normal(size=(4, 5))
    expected = found.copy()
    products(a, b, found)
    uncompiled(products)(a, b, expected)
    np.testing.assert_allclose(found, expected, rtol=1e-13)


@pytest.fixture(autouse=True)
def alone(monkeypatch):
    """Without Numba's front end; the programs below are other processes."""

    def refuse(_compiler):
        raise AssertionError("not part of the language")

    monkeypatch.setattr(link_once.Compiler, "_compile_core", refuse)


def uncompiled(compiled):
    """The same function in Python, and so are those that it calls."""
    function = compiled.py_func
    names = {name: getattr(value, "py_func", value) for name, value in function.__globals__.items()}
    return type(function)(function.__code__, names)
