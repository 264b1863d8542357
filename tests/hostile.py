"""Input of bad days, and what every estimator must do about it.

Each call gets either a clear ValueError or TypeError, after which the model is bit for bit what it was, or a right result; and
no number that a model holds is ever NaN or infinite.  ``ROWS``, ``TARGETS``, ``WEIGHTS`` and ``EVENTS`` are fixed lists that
all estimators meet; tests/test_hostile.py draws many more at random.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas
import polars
from scipy import sparse
from sklearn.base import is_classifier

from checks import learn, make, state_of
from kernling.core.state import is_finite
from kernling.estimators import single
from oracles import Case, stream

LENGTH = 40
BUFFERS = {*single.BUFFERS, "_turns"}  # made when first needed, and never part of the model
OF_SCIKIT_LEARN = ("Reshape your data", "The feature names should match")  # its own checks want these at length
TINY = 5e-324  # the smallest positive number


# ---------------------------------------------------------------------- what may not happen


class Broken(AssertionError):
    """A promise that was not kept."""


def contents(model) -> dict[str, Any]:
    """Everything that a call may not change when it raises."""
    if hasattr(model, "steps"):
        return _contents_of_steps(model)
    found: dict[str, Any] = {name: repr(getattr(model, name)) for name in model.parameters if name != "random_state"}
    if "_state" in vars(model):
        found |= {name: (array.dtype.str, array.shape, array.tobytes()) for name, array in state_of(model).items()}
        found["random"] = repr(model._rng.bit_generator.state)
    for name in ("classes_", "n_features_in_", "feature_names_in_", "gamma_", "delta_"):
        value = getattr(model, name, None)
        found[name] = value.tolist() if isinstance(value, np.ndarray) else value  # repr of an array takes longer than learning
    found["names"] = sorted(vars(model).keys() - BUFFERS)
    return found


def _contents_of_steps(model) -> dict[str, Any]:
    if not hasattr(model, "steps_"):
        return {"fitted": False, "names": sorted(vars(model).keys() - BUFFERS)}
    if not hasattr(model, "t_"):
        return {"steps": repr([(name, vars(step)) for name, step in model.steps_])}
    found = {"columns": repr((model.n_features_in_, getattr(model, "feature_names_in_", None)))}
    for name, step in model.steps_:
        found[name] = repr(step.to_state()) if hasattr(step, "to_state") else contents(step)
    return found


def attempt(model, call: Callable[[], Any], before: dict[str, Any] | None = None) -> Any:
    """Make the call; returns what it gives, or the error, once that has proved to be a good one."""
    before = contents(model) if before is None else before
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = call()
    except (ValueError, TypeError) as error:
        check_message(error)
        check_unchanged(model, before)
        return error
    except AttributeError as error:  # a method that this estimator does not have
        if "has no attribute" in str(error) or "predict_proba" in str(error):
            return error
        raise
    check_sound(model)
    return result


def check_unchanged(model, before: dict[str, Any]) -> None:
    """The model has these contents still."""
    after = contents(model)
    changed = [name for name in before | after if before.get(name) != after.get(name)]
    if changed:
        raise Broken(f"the call changed {changed}")


def check_message(error: Exception) -> None:
    """One sentence, not too long, that is no accident of some inner function."""
    text = str(error)
    if any(words in text for words in OF_SCIKIT_LEARN):
        return
    if not text or "\n" in text or len(text) > 400:
        raise Broken(f"not a clear message: {text!r}") from error
    accidents = (
        "unhashable",
        "not subscriptable",
        "has no len",
        "object is not",
        "ufunc",
        "NoneType",
        "cannot unpack",
        "broadcast",
    )
    if any(words in text for words in accidents):
        raise Broken(f"an accident, not a message: {text!r}") from error


def check_sound(model) -> None:
    """No NaN and no infinity in the model."""
    model = getattr(model, "steps_", [(None, model)])[-1][1]
    if "_state" in vars(model) and not is_finite(model._state):
        bad = [name for name, array in state_of(model).items() if array.dtype.kind == "f" and not np.isfinite(array).all()]
        raise Broken(f"the state holds NaN or infinity in {bad}")


def check_result(result: Any, rows: int | None = None) -> None:
    """Numbers that are finite, one for each row."""
    if isinstance(result, Exception) or result is None or hasattr(result, "get_params"):
        return
    values = result.toarray() if sparse.issparse(result) else np.asarray(result)
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        raise Broken(f"the result holds NaN or infinity: {values.ravel()[:5]}")
    if rows is not None and len(values) != rows:
        raise Broken(f"{len(values)} results for {rows} rows")


# ---------------------------------------------------------------------- the lists


def table(change: Callable[[np.ndarray], Any]) -> Callable[[np.ndarray], Any]:
    """A copy of the rows, changed in place."""

    def make_table(X):
        X = X.copy()
        X[13, 1] = change(X)
        return X

    return make_table


def scattered(X: np.ndarray) -> sparse.coo_array:
    """Every entry as two that add up, and explicit zeros: duplicates as a COO matrix may have them."""
    i, j = np.indices(X.shape).reshape(2, -1)
    values = np.concatenate([0.25 * X.ravel(), 0.75 * X.ravel(), np.zeros(X.size)])
    return sparse.coo_array((values, (np.tile(i, 3), np.tile(j, 3))), shape=X.shape)


def unsorted(X: np.ndarray) -> sparse.csr_array:
    """CSR whose columns are in descending order, with an explicit zero and a duplicate in each row."""
    n, d = X.shape
    columns = np.tile(np.concatenate([np.arange(d)[::-1], [0, 0]]), (n, 1))
    data = np.hstack([X[:, ::-1], np.full((n, 1), 0.5), np.full((n, 1), -0.5)])
    return sparse.csr_array((data.ravel(), columns.ravel(), np.arange(n + 1) * (d + 2)), shape=(n, d))


def read_only(X: np.ndarray) -> np.ndarray:
    X = X.copy()
    X.flags.writeable = False
    return X


SAME_ROWS: dict[str, Callable[[np.ndarray], Any]] = {  # the same numbers in another dress
    "list": lambda X: X.tolist(),
    "Fortran order": np.asfortranarray,
    "every other column": lambda X: np.repeat(X, 2, axis=1)[:, ::2],
    "negative strides": lambda X: X[::-1, ::-1].copy()[::-1, ::-1],
    "read-only": read_only,
    "objects": lambda X: X.astype(object),
    "big-endian": lambda X: X.astype(">f8"),
    "pandas": lambda X: pandas.DataFrame(X),
    "polars": lambda X: polars.DataFrame(X, schema=[f"c{i}" for i in range(X.shape[1])]),
    "matrix transposed twice": lambda X: np.ascontiguousarray(X.T).T,
    "COO with duplicates": scattered,
    "CSR unsorted, with duplicates": unsorted,
    **{
        f"{name} array": lambda X, name=name: getattr(sparse, f"{name}_array")(X)
        for name in ("csc", "bsr", "lil", "dok", "dia")
    },
    "CSR with 64-bit indices": lambda X: sparse.csr_array(
        (
            X.ravel(),
            np.tile(np.arange(X.shape[1]), len(X)).astype(np.int64),
            np.arange(len(X) + 1, dtype=np.int64) * X.shape[1],
        ),
        shape=X.shape,
    ),
}
ROWS: dict[str, Callable[[np.ndarray], Any]] = {
    "NaN": table(lambda X: np.nan),
    "infinity": table(lambda X: np.inf),
    "minus infinity in CSC": lambda X: sparse.csc_array(table(lambda X: -np.inf)(X)),
    "1e308": table(lambda X: 1e308),
    "1e149": table(lambda X: -1e149),
    "1e20": table(lambda X: 1e20),
    "all 1e100": lambda X: X * 1e100,
    "all 1e-200": lambda X: X * 1e-200,
    "denormal": lambda X: np.full_like(X, TINY),
    "constant columns": lambda X: np.broadcast_to(X[0], X.shape),
    "zeros": np.zeros_like,
    "minus zero": lambda X: -np.zeros_like(X),
    "one row": lambda X: X[:1],
    "no rows": lambda X: X[:0],
    "no columns": lambda X: X[:, :0],
    "too few rows": lambda X: X[:7],
    "one column": lambda X: X[:, :1],
    "one vector": lambda X: X[0],
    "three dimensions": lambda X: X[None],
    "a number": lambda X: 3.0,
    "nothing": lambda X: None,
    "text": lambda X: "rows",
    "words": lambda X: [["a", "b", "c"]] * len(X),
    "mixed objects": lambda X: [[1.0, "b", None]] * len(X),
    "ragged": lambda X: [[1.0], *[[1.0, 2.0, 3.0]] * (len(X) - 1)],
    "dicts": lambda X: [{"a": 1.0}] * len(X),
    "complex": lambda X: X + 1j,
    "dates": lambda X: np.full(X.shape, np.datetime64("2020-01-01")),
    "huge integers": lambda X: [[10**400, 1, 2]] * len(X),
    "booleans": lambda X: X > 0.0,
    "small integers": lambda X: (3.0 * X).astype(np.int8),
    "half precision": lambda X: X.astype(np.float16),
    "long double": lambda X: X.astype(np.longdouble),
    "set": lambda X: {1.0, 2.0},
    "generator": lambda X: (row for row in X),
    "structured": lambda X: np.zeros(len(X), dtype=[("a", float), ("b", float)]),
    "masked": lambda X: np.ma.masked_array(X, mask=X > 0.9),
    "20,000 columns": lambda X: sparse.csr_array((np.ones(3), ([0, 1, 2], [0, 5, 19_999])), shape=(len(X), 20_000)),
    "empty CSR": lambda X: sparse.csr_array(X.shape),
}
TARGETS: dict[str, Callable[[np.ndarray], Any]] = {
    "NaN": lambda y: np.where(np.arange(len(y)) == 7, np.nan, y),
    "infinity": lambda y: np.where(np.arange(len(y)) == 7, np.inf, y),
    "1e308": lambda y: np.where(np.arange(len(y)) == 7, 1e308, y),
    "1e60": lambda y: 1e60 * y,
    "1e30": lambda y: 1e30 * y,
    "denormal": lambda y: TINY * y,
    "constant": lambda y: np.full_like(y, y[0]),
    "nothing": lambda y: None,
    "too few": lambda y: y[:7],
    "none": lambda y: y[:0],
    "table": lambda y: np.column_stack([y, y]),
    "column": lambda y: y[:, None],
    "list": lambda y: y.tolist(),
    "objects": lambda y: y.astype(object),
    "words": lambda y: np.where(y > y.mean(), "high", "low"),
    "bytes": lambda y: np.where(y > y.mean(), b"high", b"low"),
    "mixed": lambda y: np.array(["a", 1] * (len(y) // 2), dtype=object),
    "None among them": lambda y: [None, *y.tolist()[1:]],
    "lists": lambda y: [[1], *[[1, 2]] * (len(y) - 1)],
    "complex": lambda y: y + 1j,
    "dates": lambda y: np.full(len(y), np.datetime64("2020-01-01")),
    "huge integers": lambda y: [10**400] * len(y),
    "large labels": lambda y: (y > y.mean()).astype(np.uint64) + np.uint64(2**63),
    "booleans": lambda y: y > y.mean(),
    "all different": lambda y: np.arange(len(y)),
    "sparse": lambda y: sparse.csr_array(y[:, None]),
    "pandas categories": lambda y: pandas.Series(np.where(y > y.mean(), "high", "low"), dtype="category"),
    "text": lambda y: "targets",
    "a number": lambda y: 1.0,
}
WEIGHTS: dict[str, Callable[[np.ndarray], Any]] = {
    "zeros": np.zeros_like,
    "one zero": lambda w: np.where(np.arange(len(w)) == 7, 0.0, w),
    "negative": lambda w: -w,
    "NaN": lambda w: np.where(np.arange(len(w)) == 7, np.nan, w),
    "infinity": lambda w: np.where(np.arange(len(w)) == 7, np.inf, w),
    "1e308": lambda w: 1e308 * w,
    "1e10": lambda w: 1e10 * w,
    "denormal": lambda w: TINY * w,
    "too few": lambda w: w[:7],
    "table": lambda w: w[:, None],
    "a number": lambda w: 2.0,
    "words": lambda w: ["a"] * len(w),
    "text": lambda w: "balanced",
    "complex": lambda w: w + 1j,
    "booleans": lambda w: w > 0.0,
    "None among them": lambda w: [None, *w.tolist()[1:]],
    "lists": lambda w: [[1], *[[1, 2]] * (len(w) - 1)],
    "sparse": lambda w: sparse.csr_array(w[:, None]),
}
EVENTS: dict[str, Any] = {
    "NaN": [0.0, np.nan, 0.0],
    "infinity": [0.0, -np.inf, 0.0],
    "1e308": [0.0, 1e308, 0.0],
    "1e149": [0.0, 1e149, 0.0],
    "1e20": [0.0, 1e20, 0.0],
    "denormal": [TINY, TINY, TINY],
    "list": [0.1, 0.2, 0.3],
    "integers": [1, 0, 1],
    "objects": np.array([0.1, 0.2, 0.3], dtype=object),
    "words": ["a", "b", "c"],
    "table": [[0.1, 0.2, 0.3]],
    "too short": [0.1, 0.2],
    "too long": [0.1, 0.2, 0.3, 0.4],
    "empty": [],
    "a number": 1.0,
    "nothing": None,
    "text": "abc",
    "complex": [1j, 0.0, 0.0],
    "None among them": [None, 0.1, 0.2],
    "huge integer": [10**400, 0, 0],
    "ragged": [[1.0], 2.0, 3.0],
    "dict": {"a": 1.0},
    "sparse": sparse.csr_array([[0.1, 0.0, 0.3]]),
    "dates": np.full(3, np.datetime64("2020-01-01")),
}
LABELS: dict[str, Any] = {
    "NaN": np.nan,
    "infinity": np.inf,
    "1e308": 1e308,
    "list": [1, 0],
    "array": np.array([1, 0]),
    "array of one": np.array([1]),
    "no dimension": np.array(1),
    "nothing": None,
    "word": "a",
    "bytes": b"a",
    "dict": {},
    "set": {1},
    "complex": 1j,
    "tuple": (1, 2),
    "huge integer": 10**400,
    "boolean": True,
    "NumPy number": np.int8(1),
    "date": np.datetime64("2020-01-01"),
}


# ---------------------------------------------------------------------- checks


def learned(cls, case: Case):
    """A model in mid-stream, and what it has learned."""
    X, y = stream(case.stream, 60)
    return learn(make(cls, case), X, y), X[:LENGTH], y[:LENGTH]


def fresh(model):
    return type(model)(**model.get_params(deep=False))


LEARNING = ("fit", "partial_fit", "predict_then_learn")
READING = ("predict", "decision_function", "predict_proba", "transform", "score_samples", "rank_scores")


def call(model, method: str, *arguments, **options) -> Any:
    """Attempt a method; its result is checked."""
    if not hasattr(model, method):
        return AttributeError(method)
    result = attempt(model, lambda: getattr(model, method)(*arguments, **options))
    check_result(result)
    return result


def check_rows(cls, case):
    """Hostile rows for every call that takes a table."""
    model, X, y = learned(cls, case)
    for name, make_rows in ROWS.items():
        for method in LEARNING:
            for each in (copy.deepcopy(model), fresh(model)):
                with_name(name, method, lambda: call(each, method, make_rows(X), y))  # noqa: B023
        for method in READING:
            with_name(name, method, lambda: call(model, method, make_rows(X)))  # noqa: B023


def check_same_rows(cls, case):
    """Rows in another dress give the model and the outputs that plain rows give."""
    model, X, y = learned(cls, case)
    if case.params.get("kernel", "rbf") != "linear":
        X = np.round(X, 3)
    plain = {method: call(fresh(model), method, X, y) for method in LEARNING}
    read = {method: call(model, method, X) for method in READING}
    for name, make_rows in SAME_ROWS.items():
        rows = make_rows(X)
        for method in LEARNING:
            again = with_name(name, method, lambda: call(fresh(model), method, rows, y))  # noqa: B023
            if isinstance(again, Exception):
                assert type(again) is type(plain[method])
                continue
            if hasattr(again, "get_params"):
                again, expected = (call(each, found(model), X) for each in (again, plain[method]))
            else:
                expected = plain[method]
            with_name(name, method, lambda: np.testing.assert_allclose(again, expected, rtol=1e-7, atol=1e-7))  # noqa: B023
        for method, expected in read.items():
            result = with_name(name, method, lambda: call(model, method, rows))  # noqa: B023
            if isinstance(expected, Exception):
                assert type(result) is type(expected)
                continue
            result, expected = (each.toarray() if sparse.issparse(each) else each for each in (result, expected))
            with_name(name, method, lambda: np.testing.assert_allclose(result, expected, rtol=1e-7, atol=1e-7))  # noqa: B023


def found(model) -> str:
    """The first of these methods that it has."""
    return next(method for method in ("decision_function", "predict", "transform") if hasattr(model, method))


def check_targets(cls, case):
    """Hostile targets for every call that learns."""
    model, X, y = learned(cls, case)
    for name, make_targets in TARGETS.items():
        for method in LEARNING:
            for each in (copy.deepcopy(model), fresh(model)):
                with_name(name, method, lambda: call(each, method, X, make_targets(y.astype(float))))  # noqa: B023


def check_weights(cls, case):
    """Hostile sample weights for every call that learns."""
    model, X, y = learned(cls, case)
    for name, make_weights in WEIGHTS.items():
        for method in LEARNING:
            for each in (copy.deepcopy(model), fresh(model)):
                with_name(name, method, lambda: call(each, method, X, y, sample_weight=make_weights(np.ones(LENGTH))))  # noqa: B023


def check_events(cls, case):
    """Hostile single events and labels."""
    model, X, y = learned(cls, case)
    for name, x in EVENTS.items():
        for each in (copy.deepcopy(model), fresh(model)):
            with_name(name, "learn_one", lambda: call(each, "learn_one", x, y[0]))  # noqa: B023
            for method in ("predict_one", "score_one"):
                with_name(name, method, lambda: call(each, method, x))  # noqa: B023
    for name, label in LABELS.items():
        for each in (copy.deepcopy(model), fresh(model)):
            with_name(name, "learn_one", lambda: call(each, "learn_one", X[0], label))  # noqa: B023


NUMBERS = [0, 1, -1, 2**31, 2**63, 10**400, 0.0, 1e308, -1e308, 1e-308, TINY, 1e15, 1e-15, 1e200, np.inf, np.nan]
OTHERS = [None, True, "a", "", [], [1.0], {}, {0: 1.0}, np.array([1.0]), 1j, object, np.float32(1.0), np.int64(1), b"a"]


def check_parameters(cls, case):
    """Hostile values of every parameter, in calls that go on and calls that begin."""
    model, X, y = learned(cls, case)
    for name, usual in model.get_params(deep=False).items():
        for value in [*NUMBERS, *OTHERS]:
            if name == "verbose" or (name in ("passes", "n_jobs") and isinstance(value, (int, float)) and value > 100):
                continue  # as asked, it would take for ever
            for each in (copy.deepcopy(model), fresh(model)):

                def go_on(each=each, value=value, name=name, usual=usual):
                    try:
                        each.set_params(**{name: value}).partial_fit(X, y)
                        if is_classifier(each):
                            each.predict(X)
                    finally:
                        each.set_params(**{name: usual})

                with_name(f"{name}={value!r:.40}", "partial_fit", lambda: attempt(each, go_on))  # noqa: B023


def with_name(name: str, method: str, action: Callable[[], Any]) -> Any:
    """Run it; say which input it was if a promise is broken."""
    try:
        return action()
    except Exception as error:
        error.add_note(f"input: {name}; method: {method}")
        raise


QUICK = [check_events]
THOROUGH = [check_rows, check_same_rows, check_targets, check_weights, check_parameters]
