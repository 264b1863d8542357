"""Bad days: every estimator meets the fixed lists of hostile.py, and random sequences of calls with random settings."""

import os

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import sparse

import checks
import hostile
from kernling.estimators.constraints import InstanceOf, OneOf, Real, Weights, Whole
from oracles import CASES

ESTIMATORS = checks.estimators()
FIRST = [(cls, CASES[cls.__name__][0]) for cls in ESTIMATORS]
CHEAP = ("AVMRegressor", "POLKClassifier", "AOGDMetric")


def long_unless(cheap: bool, *values):
    return pytest.param(*values, marks=[] if cheap else pytest.mark.long)


def name(value) -> str:
    return getattr(value, "__name__", "").removeprefix("check_")


@pytest.mark.contract
@pytest.mark.parametrize(("cls", "case"), FIRST, ids=name)
@pytest.mark.parametrize("check", hostile.QUICK, ids=name)
def test_hostile_input(check, cls, case):
    check(cls, case)


@pytest.mark.contract
@pytest.mark.parametrize(("cls", "case"), [long_unless(cls.__name__ in CHEAP, cls, case) for cls, case in FIRST], ids=name)
@pytest.mark.parametrize("check", hostile.THOROUGH, ids=name)
def test_hostile_input_thoroughly(check, cls, case):
    check(cls, case)


# ---------------------------------------------------------------------- at random

SIZES = [hostile.TINY, 1e-160, 1e-8, 1.0, 1e4, 1e20, 1e60, 1e149]
SPECIAL = [np.nan, np.inf, -np.inf, 1e308, -1e150, 1e16, -0.0, hostile.TINY]


@st.composite
def rows(draw, length):
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    X = rng.uniform(-1.0, 1.0, size=(length, 3)) * draw(st.sampled_from(SIZES))
    if draw(st.booleans()):
        X = X[rng.integers(0, max(1, length // 3), size=length)]  # many rows twice
    if draw(st.integers(0, 4)) == 0:
        X[rng.integers(length), rng.integers(3)] = draw(st.sampled_from(SPECIAL))
    dress = draw(st.sampled_from(["plain", "float32", "csr", "object"]))
    with np.errstate(over="ignore"):
        return {"plain": X, "float32": X.astype(np.float32), "csr": sparse.csr_array(X), "object": X.astype(object)}[dress]


@st.composite
def targets(draw, length, kind):
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    if kind == "regression":
        y = rng.normal(size=length) * draw(st.sampled_from([1.0, 1e-300, 1e10, 1e49, 1e60]))
        if draw(st.integers(0, 4)) == 0:
            y[rng.integers(length)] = draw(st.sampled_from(SPECIAL))
        return y
    return rng.integers(0, draw(st.sampled_from([1, 2, 2, 3])), size=length)


@st.composite
def weights(draw, length):
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    found = rng.choice([0.0, 1.0, draw(st.sampled_from([0.5, 1e10, 1e-300, 1e11, -1.0]))], size=length)
    return draw(st.sampled_from([None, None, found]))


def value_of(rule):
    """Values that a rule admits, most of them near its limits."""
    if isinstance(rule, OneOf):
        return st.sampled_from(rule.values)
    if isinstance(rule, Real):
        found = [sign * 10.0**e for e in (-15, -6, -2, -1, 0, 0.5, 2, 6, 15) for sign in (1.0, -1.0)]
        return st.sampled_from([number for number in (0.0, rule.low, rule.high, *found) if rule.admits(number)])
    if isinstance(rule, Whole):
        return st.sampled_from([number for number in (1, 2, 3, 7, 20) if rule.admits(number)])
    if isinstance(rule, Weights):
        return st.just({0: 1e10, 1: 0.0})
    assert isinstance(rule, InstanceOf)
    return st.booleans()


FIXED = {"random_state": 0, "verbose": False, "passes": 1, "n_jobs": None}


@st.composite
def parameters(draw, cls):
    found = {}
    for name, declared in cls.parameters.items():
        if name not in FIXED:
            found[name] = draw(draw(st.sampled_from([value_of(rule) for rule in declared.allowed])))
    return found | {key: value for key, value in FIXED.items() if key in cls.parameters}


@st.composite
def calls(draw, kind):
    method = draw(
        st.sampled_from(["fit", "partial_fit", "partial_fit", "predict_then_learn", "learn_one", "read", "score_one"])
    )
    n = draw(st.sampled_from([1, 2, 30]))
    return method, draw(rows(n)), draw(targets(n, kind)), draw(weights(n))


def one_after_another(data, cls, case):
    """Random settings and calls: after each, a good error and no change, or a sound model and finite results."""
    model = cls(**data.draw(parameters(cls)))
    for method, X, y, weight in data.draw(st.lists(calls(case.stream), min_size=1, max_size=6)):
        if method in ("learn_one", "score_one"):
            x = X.toarray()[0] if sparse.issparse(X) else X[0]
            hostile.call(model, method, *([x, y[0]] if method == "learn_one" else [x]))
        elif method == "read":
            for reading in hostile.READING:
                if "_state" in vars(model):
                    hostile.call(model, reading, X)
        else:
            hostile.call(model, method, X, y, sample_weight=weight)


EXAMPLES = int(os.environ.get("KERNLING_EXAMPLES", "300"))
QUIETLY = dict(deadline=None, database=None, suppress_health_check=list(HealthCheck))


@pytest.mark.contract("random_calls")
@pytest.mark.parametrize(("cls", "case"), [long_unless(cls.__name__ in CHEAP, cls, case) for cls, case in FIRST], ids=name)
def test_random_calls(cls, case):
    settings(**QUIETLY, max_examples=5, derandomize=True)(given(st.data())(lambda data: one_after_another(data, cls, case)))()


@pytest.mark.long
@pytest.mark.parametrize(("cls", "case"), FIRST, ids=name)
def test_many_random_calls(cls, case):
    settings(**QUIETLY, max_examples=EXAMPLES)(given(st.data())(lambda data: one_after_another(data, cls, case)))()
