"""Bad input raises before anything is learned, says in one sentence what is wrong, and leaves the model as it was."""

import copy

import numpy as np
import pytest
from scipy import sparse

import kernling
from checks import assert_identical
from kernling.estimators import single
from oracles import stream

X, LABELS = stream("binary", 20)
VALUES = stream("regression", 20)[1]
CLASSIFIER = kernling.AVMClassifier(
    gamma=1.0, delta=0.5, approximate="bernoulli", beta=2.0, random_state=0, class_weight="balanced"
)
REGRESSOR = kernling.AVMRegressor(gamma=1.0, delta=0.5, approximate="bernoulli", beta=2.0, random_state=0)
BUFFERS = {*single.BUFFERS, "_turns"}  # made when first needed, and never part of the model
MODELS = [(CLASSIFIER, LABELS), (REGRESSOR, VALUES)]
BOTH = pytest.mark.parametrize(("model", "y"), MODELS, ids=["classifier", "regressor"])
FITTED = pytest.mark.parametrize("fitted", [False, True], ids=["fresh", "fitted"])


def with_value(value):
    table = X.copy()
    table[13, 1] = value
    return table


def assert_refused(model, y, fitted, call, words):
    """The call raises, says these words, and changes nothing."""
    model = copy.deepcopy(model)
    if fitted:
        model.partial_fit(X, y)
    before = copy.deepcopy(model)
    with pytest.raises((ValueError, TypeError), match=words) as caught:
        call(model)
    message = str(caught.value)
    if "Reshape your data" not in message:  # scikit-learn's own checks want that one at length
        assert "\n" not in message
        assert len(message) < 400
    assert vars(model).keys() - BUFFERS == vars(before).keys()
    if fitted:
        assert_identical(model, before)
        assert model.n_features_in_ == before.n_features_in_
        np.testing.assert_array_equal(getattr(model, "classes_", 0), getattr(before, "classes_", 0))
        assert_identical(model.partial_fit(X, y), before.partial_fit(X, y))


ROWS = {
    "NaN": (with_value(np.nan), "X contains NaN"),
    "NaN in CSR": (sparse.csr_array(with_value(np.nan)), "X contains NaN"),
    "infinity": (with_value(-np.inf), "X contains infinity"),
    "no rows": (X[:0], r"0 sample\(s\)"),
    "no columns": (X[:, :0], r"0 feature\(s\)"),
    "one row as a vector": (X[0], "Reshape your data"),
    "three dimensions": (X[None], "dim 3"),
    "strings": ([["a", "b", "c"]] * 20, "could not convert string to float.*StreamPipeline.auto"),
    "too few rows": (X[:5], r"inconsistent numbers of samples: \[5, 20\]"),
}


@BOTH
@FITTED
@pytest.mark.parametrize("method", ["fit", "partial_fit", "predict_then_learn"])
@pytest.mark.parametrize("rows", ROWS)
def test_rows(model, y, fitted, method, rows):
    table, words = ROWS[rows]
    targets = y[:0] if rows == "no rows" else y
    assert_refused(model, y, fitted, lambda m: getattr(m, method)(table, targets), words)


@BOTH
@pytest.mark.parametrize("table", [X[:, :2], sparse.csr_array(X[:, :2]), np.hstack([X, X])], ids=["2", "2, CSR", "6"])
def test_number_of_columns(model, y, table):
    for method in ("partial_fit", "predict_then_learn"):
        assert_refused(model, y, True, lambda m, method=method: getattr(m, method)(table, y), "features, but .* is expecting 3")
    assert_refused(model, y, True, lambda m: m.predict(table), "features, but .* is expecting 3")


@BOTH
@pytest.mark.parametrize("rows", ["NaN", "NaN in CSR", "infinity", "no columns", "strings"])
def test_rows_to_predict(model, y, rows):
    assert_refused(model, y, True, lambda m: m.predict(ROWS[rows][0]), ROWS[rows][1])


TARGETS = {
    "NaN": (np.where(np.arange(20) == 7, np.nan, LABELS), "y contains NaN"),
    "infinity": (np.where(np.arange(20) == 7, np.inf, LABELS), "infinity"),
    "nothing": (None, "y to be passed"),
    "table": (X, "1d array"),
    "None among them": ([None, *LABELS[1:].tolist()], "y"),
    "too few": (LABELS[:5], "inconsistent numbers"),
}


@BOTH
@FITTED
@pytest.mark.parametrize("method", ["fit", "partial_fit", "predict_then_learn"])
@pytest.mark.parametrize("targets", TARGETS)
def test_targets(model, y, fitted, method, targets):
    wrong, words = TARGETS[targets]
    assert_refused(model, y, fitted, lambda m: getattr(m, method)(X, wrong), words)


@FITTED
def test_values_that_are_no_labels(fitted):
    assert_refused(CLASSIFIER, LABELS, fitted, lambda m: m.partial_fit(X, VALUES), "continuous")


@FITTED
def test_labels_that_mix_numbers_and_strings(fitted):
    mixed = np.array(["a", 1] * 10, dtype=object)
    assert_refused(CLASSIFIER, LABELS, fitted, lambda m: m.partial_fit(X, mixed), "y mixes")


def test_labels_that_cannot_join():
    assert_refused(
        CLASSIFIER, LABELS, True, lambda m: m.partial_fit(X, ["a", "b"] * 10), "labels of type <U1 cannot be combined"
    )
    assert_refused(CLASSIFIER, LABELS, True, lambda m: m.learn_one(X[0], "a"), "cannot be combined")
    assert_refused(
        CLASSIFIER, LABELS, True, lambda m: m.partial_fit(X, LABELS, classes=[0, 1, 2]), "differ from those of earlier calls"
    )


def test_labels_that_are_not_among_the_classes_given():
    assert_refused(CLASSIFIER, LABELS, False, lambda m: m.partial_fit(X, LABELS, classes=[1, 2]), "not among")
    assert_refused(CLASSIFIER, LABELS, False, lambda m: m.partial_fit(X, LABELS, classes=["a", "b"]), "not among")


@FITTED
def test_strings_as_values(fitted):
    assert_refused(REGRESSOR, VALUES, fitted, lambda m: m.partial_fit(X, ["a"] * 20), "could not convert string to float")


WEIGHTS = {
    "negative": (-np.ones(20), "sample_weight must be finite and not negative"),
    "NaN": (np.full(20, np.nan), "sample_weight must be finite and not negative"),
    "infinity": (np.full(20, np.inf), "sample_weight must be finite and not negative"),
    "too few": (np.ones(3), r"sample_weight has shape \(3,\), but there are 20 rows"),
    "strings": (["a"] * 20, "could not convert string to float"),
}


@BOTH
@FITTED
@pytest.mark.parametrize("weights", WEIGHTS)
def test_weights(model, y, fitted, weights):
    wrong, words = WEIGHTS[weights]
    assert_refused(model, y, fitted, lambda m: m.partial_fit(X, y, sample_weight=wrong), words)


@BOTH
@FITTED
def test_fit_with_no_weight_at_all(model, y, fitted):
    assert_refused(model, y, fitted, lambda m: m.fit(X, y, sample_weight=np.zeros(20)), "all sample weights are zero")


@pytest.mark.parametrize("wrong", [{0: -1.0}, {0: np.nan}, {0: "a"}, "even", 3.0], ids=str)
@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_class_weight(wrong, method):
    model = kernling.AVMClassifier(gamma=1.0, delta=0.5, class_weight=wrong)
    assert_refused(
        model, LABELS, False, lambda m: getattr(m, method)(X, LABELS), "class_weight must be None, or 'balanced', or a dict"
    )


EVENTS = {
    "NaN": (with_value(np.nan)[13], "contains NaN"),
    "infinity": (with_value(np.inf)[13], "infinity"),
    "table": (X[:2], r"shape \(2, 3\)|dim 3"),
    "number": (1.0, r"shape \(\)|Expected 2D array"),
    "strings": (["a", "b", "c"], "could not convert string to float"),
}


@BOTH
@FITTED
@pytest.mark.parametrize("event", EVENTS)
def test_single_events(model, y, fitted, event):
    x, words = EVENTS[event]
    assert_refused(model, y, fitted, lambda m: m.learn_one(x, y[0]), words)
    if fitted:
        assert_refused(model, y, fitted, lambda m: m.predict_one(x), words)
        assert_refused(model, y, fitted, lambda m: m.score_one(x), words)


@BOTH
def test_single_events_of_another_width(model, y):
    assert_refused(model, y, True, lambda m: m.learn_one(X[0, :2], y[0]), r"x has shape \(2,\), but this model expects \(3,\)")
    assert_refused(model, y, True, lambda m: m.score_one(X[0, :2]), r"x has shape \(2,\), but this model expects \(3,\)")


@BOTH
@FITTED
@pytest.mark.parametrize("target", [np.nan, np.inf, None, [1, 0]], ids=str)
def test_single_targets(model, y, fitted, target):
    assert_refused(model, y, fitted, lambda m: m.learn_one(X[0], target), ".")


@BOTH
@FITTED
def test_method_of_predict_then_learn(model, y, fitted):
    assert_refused(model, y, fitted, lambda m: m.predict_then_learn(X, y, method="guess"), "method must be .*, not 'guess'")


PARAMETERS = {
    "loss": ["l3", None],
    "lam": [0.0, -1.0, np.nan, np.inf, "small", True],
    "delta": [-1.0, np.nan, "large"],
    "coverage": ["ball"],
    "approximate": ["never"],
    "beta": [-0.1],
    "rho": [0.0, -1.0],
    "output": ["mean"],
    "suffix": [0.0, 1.5],
    "max_cells": [0, -3, 2.5],
    "when_full": ["grow"],
    "zero_cells": [1.0, "yes"],
    "eta": [0.0, -1.0, "large"],
    "tau": [0.0, -1.0],
    "forget": [0.5, -1.0, "long"],
    "epsilon": [-0.1],
    "y_max": [0.0, -1.0],
    "standardise_target": [1.0, "yes"],
    "calibrate": [0.9, "yes"],
    "watch": [0.9, "yes"],
    "kernel": ["poly", "linear", "gauss"],
    "gamma": [0.0, -1.0, "auto"],
    "degree": [0, 1.5],
    "coef0": ["a"],
    "random_state": [-1, "a"],
    "dtype": ["float16", int, np.dtype("int32")],
    "block_size": [0, 1.5],
    "passes": [0],
    "shuffle": ["yes"],
    "n_jobs": [-2, "all"],
    "verbose": ["yes"],
    "class_weight": ["even"],
}


def test_every_parameter_is_tested():
    assert set(PARAMETERS) == {*CLASSIFIER.get_params(), *REGRESSOR.get_params()}


@FITTED
@pytest.mark.parametrize(
    ("model", "y", "name"), [(model, y, name) for model, y in MODELS for name in PARAMETERS if name in model.get_params()]
)
def test_parameters(model, y, fitted, name):
    for value in PARAMETERS[name]:

        def call(m, value=value):
            usual = m.get_params()[name]
            try:
                m.set_params(**{name: value}).partial_fit(X, y)
            finally:
                m.set_params(**{name: usual})

        assert_refused(model, y, fitted, call, f"{type(model).__name__}: {name} must be .*, not ")


def test_a_wrong_type_is_a_type_error_and_a_wrong_value_a_value_error():
    with pytest.raises(TypeError):
        kernling.AVMClassifier(lam="small").fit(X, LABELS)
    with pytest.raises(ValueError, match="lam must be a number greater than 0, not -1"):
        kernling.AVMClassifier(lam=-1).fit(X, LABELS)
