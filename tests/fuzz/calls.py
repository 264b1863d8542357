"""Random sequences of public calls on models and pipelines, by a seed.

A call gives finite results, or raises ValueError or TypeError in one sentence and leaves the model bit for bit as it was.
"""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas
from scipy import sparse
from sklearn.base import clone

import hostile
import kernling
from kernling.core.kernels import KINDS
from kernling.tables import Encode, MinMax, Standardise

HOSTILE = [np.nan, np.inf, -np.inf, 5e-324, 1e-300, 1e15, 1e38, 1e49, 1e51, 1e149, 1e151, 1e300, -1.7e308]
MOST = 20  # failures in one report
LENGTHS = [0, 1, 1, 2, 3, 17, 60, 130]
COLUMNS = 3
LEARNING = (*("partial_fit",) * 2, *("predict_then_learn",) * 2, "fit")  # a model that is fitted anew forgets what went before
LEARNING_ONE = ("learn_one", "predict_then_learn_one")
SINGLE = (*LEARNING_ONE, "predict_one", "score_one")
LABELS: list[Any] = [0, 1, 2, -1, 7.0, 7.5, "a", "b", "", None, True, np.nan, np.datetime64(3, "D"), b"x", (1,), 2**70]


def pick(rng: np.random.Generator, options: Any) -> Any:
    return options[int(rng.integers(len(options)))]


def numbers(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Mostly tame; one table in four has something hostile in it."""
    X = rng.normal(size=shape) * pick(rng, [1.0, 1.0, 1e-3, 30.0])
    if X.size and rng.random() < 0.25:
        X.flat[rng.integers(X.size, size=int(rng.integers(1, 3)))] = pick(rng, HOSTILE)
    return X


def broken(X: np.ndarray, rng: np.random.Generator) -> sparse.csr_array:
    """CSR rows with an index outside of the table, or with starts that make no sense."""
    rows = sparse.csr_array(X)
    part = pick(rng, [rows.indices, rows.indptr])
    if part.size:
        part[rng.integers(part.size)] = pick(rng, [-1, 10**6, COLUMNS])
    return rows


FORMS: list[Callable[[np.ndarray, np.random.Generator], Any]] = [
    *(lambda X, rng: X,) * 8,
    *(lambda X, rng: sparse.csr_array(np.where(np.abs(X) < 0.7, 0.0, X)),) * 4,
    lambda X, rng: X.astype(np.float32),
    lambda X, rng: np.nan_to_num(X, posinf=9, neginf=9).clip(-1e9, 1e9).astype(np.int64),
    lambda X, rng: X > 0,
    lambda X, rng: X.tolist(),
    lambda X, rng: np.asfortranarray(X)[::-1],
    lambda X, rng: X.astype(object),
    lambda X, rng: pandas.DataFrame(X, columns=[f"c{i}" for i in range(X.shape[1])]),
    lambda X, rng: sparse.csc_matrix(X),
    lambda X, rng: sparse.coo_array(X),
    lambda X, rng: np.ma.masked_less(X, 0.0),
    lambda X, rng: X.astype(complex),
    lambda X, rng: X.astype(str),
    lambda X, rng: X[:, :0],
    lambda X, rng: X.ravel(),
    lambda X, rng: X[np.newaxis],
    lambda X, rng: pick(rng, [None, 7, "rows", {}, [], [[1.0, 2.0], [3.0]]]),
    broken,
]


def rows(rng: np.random.Generator) -> Any:
    columns = COLUMNS if rng.random() < 0.93 else int(rng.integers(0, 6))
    return pick(rng, FORMS)(numbers(rng, (pick(rng, LENGTHS), columns)), rng)


def targets(rng: np.random.Generator, X: Any, kind: str) -> Any:
    n = X.shape[0] if hasattr(X, "shape") and len(X.shape) else len(X) if isinstance(X, (list, str)) else 3
    n = n if rng.random() < 0.97 else n + 1
    roll = rng.random()
    if roll < 0.06:
        return [pick(rng, LABELS) for _ in range(n)]
    if roll < 0.08:
        return pick(rng, [None, 3, "labels", np.zeros((n, 2)), np.zeros(n, complex)])
    if kind == "regression":
        return numbers(rng, (n,))
    return rng.integers(0, pick(rng, [1, 2, 2, 2, 3, 5]), n)


def weights(rng: np.random.Generator, n: int) -> Any:
    roll = rng.random()
    if roll < 0.75:
        return None
    return numbers(rng, (n,)) if roll < 0.85 else rng.choice([0.0, 0.5, 1.0, 1e9, 1e11], n)


def event(rng: np.random.Generator) -> Any:
    """One event: an array, mostly, or something like it."""
    x = numbers(rng, (COLUMNS if rng.random() < 0.95 else 2,))
    roll = rng.random()
    if roll < 0.7:
        return x
    if roll < 0.9:
        named = {f"c{i}": value for i, value in enumerate(x.tolist())}
        return named if rng.random() < 0.8 else named | {"c1": pick(rng, [None, "word", 10**400, [1], True])}
    return pick(rng, [x.tolist(), x.astype(np.float32), x.astype(str), None, 3.0, x[np.newaxis], [], "event"])


class Session:
    """One model, or a pipeline around it, and the calls that it gets."""

    def __init__(self, rng: np.random.Generator, classes: list[type]):
        self.rng = rng
        self.cls: Any = pick(rng, classes)
        params: dict[str, Any] = {"random_state": 0, "dtype": pick(rng, ["float64", "float64", "float32"])}
        if "kernel" in self.cls.parameters and rng.random() < 0.5:
            params["kernel"] = pick(rng, list(KINDS))
        if rng.random() < 0.5:
            params["gamma"] = float(10.0 ** rng.uniform(-3, 3))
        if rng.random() < 0.3:
            params["block_size"] = int(pick(rng, [1, 7, 128]))
        self.params = {name: value for name, value in params.items() if name in self.cls.parameters}
        self.kind = getattr(self.cls, "task", "classification")
        self.model = self._wrapped(self.cls(**self.params))
        self.learning, self.reading, self.single = (
            [name for name in names if hasattr(self.model, name)] for names in (LEARNING, hostile.READING, SINGLE)
        )
        self.calls = 0
        self.before: dict[str, Any] | None = None  # contents of the model, if no call has changed it since
        self.last: tuple[Any, ...] = ()  # what was called; written out only on failure, since that is slower than most calls

    def _wrapped(self, model: Any) -> Any:
        first = pick(self.rng, [None, None, None, Standardise(), MinMax(), Encode(scale=Standardise(), missing="impute")])
        return model if first is None else kernling.StreamPipeline([("first", first), ("model", model)])

    def run(self, calls: int) -> None:
        """Make so many calls; raises Broken with what was called last."""
        for _ in range(calls):
            self.last = ()
            try:
                with np.errstate(over="ignore"):  # of numbers made for float32
                    self._call()
            except Exception as error:
                error.add_note(f"{self.model!r}: call {self.calls}, " + " ".join(f"{part!r:.300}" for part in self.last))
                raise
            self.calls += 1

    def _call(self) -> None:
        rng = self.rng
        roll = rng.random()
        if roll < 0.35:
            name = pick(rng, self.learning)
            X = rows(rng)
            y = targets(rng, X, self.kind)
            weight = weights(rng, len(y) if hasattr(y, "__len__") else 1)
            self._make(name, X, y, **({} if weight is None else {"sample_weight": weight}))
        elif roll < 0.55:
            name = pick(rng, self.reading)
            X = rows(rng)
            self._make(name, X)
        elif roll < 0.95:
            name = pick(rng, self.single)
            x = event(rng)
            y = targets(rng, [0], self.kind)
            label = y[0] if isinstance(y, (list, np.ndarray)) and len(y) else y
            arguments = (x, label) if name in LEARNING_ONE else (x,)
            self._make(name, *arguments)
        else:
            self.before = None
            self._replace(pick(rng, ["pickle", "copy", "file", "clone", "parameter"]))

    def _make(self, name: str, *arguments: Any, **options: Any) -> None:
        """Make a call; one that does not learn, or raises, changes nothing."""
        self.last = (name, arguments, options)
        model = self.model
        before = hostile.contents(model) if self.before is None else self.before
        self.before = None
        result = hostile.attempt(model, lambda: getattr(model, name)(*arguments, **options), before)
        hostile.check_result(result)
        if not isinstance(result, Exception):
            if name in (*LEARNING, *LEARNING_ONE):
                return
            hostile.check_unchanged(model, before)
        self.before = before

    def _replace(self, way: str) -> None:
        """Go on with a copy of the model, or with another parameter."""
        self.last = (way,)
        fitted = hasattr(self.model, "t_")
        if way == "pickle":
            self.model = pickle.loads(pickle.dumps(self.model))
        elif way == "copy":
            self.model = copy.deepcopy(self.model)
        elif way == "clone" and self.rng.random() < 0.2:
            self.model = clone(self.model)
        elif way == "file" and fitted:
            contents = self.model.to_contents()
            self.model = type(self.model).from_contents(contents.header, contents.arrays)
        elif way == "parameter" and not fitted and not hasattr(self.model, "steps"):
            name = pick(self.rng, sorted(self.cls.parameters))
            value = pick(self.rng, [0, -1, 1, 0.5, 1e300, np.nan, "auto", "scale", None, True, [1]])
            if name not in ("random_state", "verbose", "n_jobs") and not (name in ("passes", "block_size") and value == 1e300):
                trial = copy.deepcopy(self.model).set_params(**{name: value})
                X = np.random.default_rng(0).normal(size=(20, COLUMNS))
                y = X[:, 0] if self.kind == "regression" else (X[:, 0] > 0).astype(int)
                self.last = (trial, "fit")
                hostile.call(trial, "fit", X, y)


def run(seed: int, classes: list[type], calls: int, each: int = 50) -> int:
    """Make so many calls in sessions of ``each``; returns how many were made, or raises all that went wrong."""
    made = 0
    failures: list[Exception] = []
    while made < calls and len(failures) < MOST:
        try:
            Session(np.random.default_rng([seed, made]), classes).run(each)
        except Exception as error:
            error.add_note(f"seed {[seed, made]}")
            failures.append(error)
        made += each
    if failures:
        raise ExceptionGroup(f"{len(failures)} of {made // each} sessions of {classes}", failures)
    return made
