"""exp and sincos against 40-digit arithmetic, within the bounds that their module states."""

import mpmath
import numpy as np
import pytest

from kernling.compiler import jit
from kernling.core.fourier import _cosines_and_sines
from kernling.core.kernels import KINDS, Kernel, transform_values
from kernling.core.vector import exp, sincos32, sincos64


@jit
def one_exp(x):
    return exp(x)


BOUNDS = {np.float64: (-708.0, 4e-16), np.float32: (-87.0, 3e-7)}


def worst_error(x, values):
    with mpmath.workdps(40):
        exact = [mpmath.exp(mpmath.mpf(float(v))) for v in x]
        return max(float(abs(mpmath.mpf(float(v)) - e) / e) for v, e in zip(values, exact, strict=True))


def arguments(dtype):
    low = BOUNDS[dtype][0]
    rng = np.random.default_rng(0)
    halves = -np.log(2.0) * (np.arange(0, int(-low / np.log(2.0))) + 0.5)  # where rounding changes its mind
    x = np.concatenate([rng.uniform(low, 0.0, 1500), -(10.0 ** rng.uniform(-18, 1, 500)), halves, halves + 1e-9, [0.0, low]])
    return x.clip(low, 0.0).astype(dtype)


@pytest.mark.parametrize("dtype", BOUNDS)
def test_one_by_one(dtype):
    x = arguments(dtype)
    assert worst_error(x, [one_exp(v) for v in x]) <= BOUNDS[dtype][1]


@pytest.mark.parametrize("dtype", BOUNDS)
def test_inside_a_loop_that_may_be_reordered(dtype):
    x = arguments(dtype)
    values = -x
    transform_values(Kernel(KINDS["rbf"], 1.0, 3, 0.0), values)
    assert worst_error(x, values) <= BOUNDS[dtype][1]


@pytest.mark.parametrize("dtype", BOUNDS)
def test_below_the_range(dtype):
    low = BOUNDS[dtype][0]
    lowest = one_exp(dtype(low))
    assert 0.0 < lowest < 1e-37
    assert one_exp(dtype(10.0 * low)) == one_exp(dtype(-np.inf)) == lowest
    assert one_exp(dtype(0.0)) == 1.0


@jit
def one_sincos64(x):
    return sincos64(x)


@jit
def one_sincos32(x):
    return sincos32(x)


SINCOS = {np.float64: (1e6, 5e-16, one_sincos64), np.float32: (1e3, 3e-7, one_sincos32)}


def angles(dtype):
    high = SINCOS[dtype][0]
    rng = np.random.default_rng(1)
    quarters = np.pi / 4.0 * np.arange(1, 1200)  # odd ones: where rounding changes its mind; even ones: zeros
    far = np.pi / 4.0 * np.floor(rng.uniform(0.0, high, 300) / (np.pi / 4.0))
    x = np.concatenate(
        [rng.uniform(-high, high, 1000), 10.0 ** rng.uniform(-12, 1, 300), quarters, -quarters, far, [0.0, high]]
    )
    return x.clip(-high, high).astype(dtype)


def worst_sincos(x, sines, cosines):
    with mpmath.workdps(40):
        points = [mpmath.mpf(float(v)) for v in x]
        errors = [abs(mpmath.mpf(float(s)) - mpmath.sin(p)) for p, s in zip(points, sines, strict=True)]
        errors += [abs(mpmath.mpf(float(c)) - mpmath.cos(p)) for p, c in zip(points, cosines, strict=True)]
        return float(max(errors))


@pytest.mark.parametrize("dtype", SINCOS)
def test_sincos_one_by_one(dtype):
    x = angles(dtype)
    _, bound, sincos = SINCOS[dtype]
    assert worst_sincos(x, *zip(*(sincos(v) for v in x), strict=True)) <= bound


@jit
def features_of(rows, phase, Z):
    _cosines_and_sines(rows, phase, phase.copy(), Z)


@pytest.mark.parametrize("dtype", SINCOS)
def test_sincos_inside_a_loop_that_may_be_reordered(dtype):
    x = angles(dtype)
    Z = np.empty((len(x), 2), dtype)  # one frequency: features are divided by 1
    features_of(x[:, np.newaxis].copy(), np.zeros(1), Z)
    assert worst_sincos(x, Z[:, 1], Z[:, 0]) <= SINCOS[dtype][1]
    wide = np.empty((1, 2 * len(x)), dtype)  # many frequencies: by vector instructions
    features_of(x[np.newaxis].copy(), np.zeros(len(x)), wide)
    cosines, sines = np.split(wide[0].astype(np.float64) * np.sqrt(len(x)), 2)
    rounding = 4.0 * np.finfo(dtype).eps  # of dividing by the root and back
    assert worst_sincos(x, sines, cosines) <= SINCOS[dtype][1] + rounding
