"""Every registered learner passes the checks of checks.py and scikit-learn's own."""

import pytest
from sklearn.utils.estimator_checks import (
    check_sample_weight_equivalence_on_dense_data,
    check_sample_weight_equivalence_on_sparse_data,
    parametrize_with_checks,
)

import checks
import kernling
from oracles import CASES

ESTIMATORS = checks.estimators()
SAMPLE = checks.one_per_kind_of_state()
ALL_CASES = [(cls, case) for cls in ESTIMATORS for case in CASES.get(cls.__name__, [])]
OFTEN = {id(case) for cls in ESTIMATORS for case in CASES.get(cls.__name__, [])[:2]}  # checked in every way in every run
BY_WEIGHT = "in one pass, a row of weight k is one large step and not k small ones"
WEIGHTS = dict.fromkeys(
    ("check_sample_weight_equivalence_on_dense_data", "check_sample_weight_equivalence_on_sparse_data"), BY_WEIGHT
)
OF_THIS_NAME = "the check means scikit-learn's estimator of this name: it sets C = 0.01 and counts on a thousand passes"
BEFORE_LEARNING = "contamination is the share of new rows that are flagged: scores are taken before a row is learned"
OUTLIERS = dict.fromkeys(("check_outliers_train", "check_outliers_fit_predict"), BEFORE_LEARNING)
OLDEST = "half of the check's 200 rows do not fit into the budget, and the oldest are forgotten"
EXPECTED = {
    "ForgetronRegressor": {"check_regressors_train": OLDEST},
    "PassiveAggressiveRegressor": {"check_regressors_train": OF_THIS_NAME},
    "PassiveAggressiveOneClass": OUTLIERS,
    "SPAOneClass": OUTLIERS,
}


def case_name(value) -> str:
    if isinstance(value, type):
        return value.__name__
    if callable(value):
        return value.__name__.removeprefix("check_")
    if value is None:
        return "unbounded"
    return "-".join(str(v) for v in (value.stream, *value.params.values()) if isinstance(v, str))


def long_unless_sampled(cls, *values):
    return pytest.param(cls, *values, marks=[] if cls in SAMPLE else pytest.mark.long)


@pytest.mark.parametrize("cls", ESTIMATORS, ids=case_name)
def test_a_reference_exists(cls):
    assert CASES.get(cls.__name__), f"add a module to tests/oracles with a slow reference of {cls.__name__} and its CASES"


def often(cls, case):
    return pytest.param(cls, case, marks=[] if id(case) in OFTEN else pytest.mark.long)


@pytest.mark.contract("oracle")
@pytest.mark.parametrize(("cls", "case"), ALL_CASES, ids=case_name)
def test_oracle(cls, case):
    checks.check_oracle(cls, case)


@pytest.mark.contract
@pytest.mark.parametrize(("cls", "case"), [often(*pair) for pair in ALL_CASES], ids=case_name)
@pytest.mark.parametrize("check", checks.CHECKS, ids=case_name)
def test_learner(check, cls, case):
    check(cls, case)


@pytest.mark.contract("memory")
@pytest.mark.parametrize(
    ("cls", "case"),
    [one if one.marks else often(*one.values) for one in checks.bounded_cases()],
    ids=case_name,
)
def test_memory(cls, case):
    checks.check_memory(cls, case)


@pytest.mark.contract
@pytest.mark.parametrize(("cls", "case"), [long_unless_sampled(*pair) for pair in ALL_CASES], ids=case_name)
@pytest.mark.parametrize("check", checks.SAMPLED, ids=case_name)
def test_kind_of_state(check, cls, case):
    check(cls, case)


@pytest.mark.contract("compiled")
@pytest.mark.parametrize("cls", [long_unless_sampled(cls) for cls in ESTIMATORS if cls.__name__ in CASES], ids=case_name)
def test_compiled_equals_plain_python(cls):
    checks.check_compiled(cls)


@pytest.mark.contract("scikit_learn")
@parametrize_with_checks(
    [cls() for cls in ESTIMATORS],
    expected_failed_checks=lambda estimator: WEIGHTS | EXPECTED.get(type(estimator).__name__, {}),
)
def test_scikit_learn(estimator, check):
    check(estimator)


@pytest.mark.parametrize(
    "check", [check_sample_weight_equivalence_on_dense_data, check_sample_weight_equivalence_on_sparse_data]
)
@pytest.mark.parametrize(
    "model", [kernling.KRLSClassifier(gamma=0.1), kernling.KRLSRegressor(gamma=0.1, standardise_target=False)]
)
def test_weights_of_least_squares_are_exact(check, model):
    """A row of weight k is like k rows; ``gamma="scale"`` and the scale of targets ignore weights."""
    check(type(model).__name__, model)
