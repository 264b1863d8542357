"""exp against 40-digit arithmetic, within the bounds that its docstring states."""

import mpmath
import numpy as np
import pytest

from kernling.core.kernels import KINDS, Kernel, transform
from kernling.core.vector import exp32, exp64

BOUNDS = {np.float64: (-708.0, 4e-16, exp64), np.float32: (-87.0, 3e-7, exp32)}


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
    _, bound, exp = BOUNDS[dtype]
    assert worst_error(x, [exp(v) for v in x]) <= bound


@pytest.mark.parametrize("dtype", BOUNDS)
def test_inside_a_loop_that_may_be_reordered(dtype):
    x = arguments(dtype)
    values = -x
    transform(Kernel(KINDS["rbf"], 1.0, 3, 0.0), values)
    assert worst_error(x, values) <= BOUNDS[dtype][1]


@pytest.mark.parametrize("dtype", BOUNDS)
def test_below_the_range(dtype):
    low, _, exp = BOUNDS[dtype]
    lowest = exp(dtype(low))
    assert 0.0 < lowest < 1e-37
    assert exp(dtype(10.0 * low)) == exp(dtype(-np.inf)) == lowest
    assert exp(dtype(0.0)) == 1.0
