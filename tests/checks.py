"""Checks that every registered learner must pass.  tests/test_checks.py runs them over the registry.

A check takes an estimator class and a ``Case`` (oracles.py).  ``check_oracle`` runs on every case of every estimator,
``CHECKS`` on two of each and in the long run on all; ``SAMPLED`` cost more and run, besides the long run, on one learner per
kind of state.  ``check_memory`` is for bounded cases only, and
``check_compiled`` takes all cases of an estimator at once.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

import joblib
import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone, is_classifier, is_outlier_detector

import kernling
from kernling import registry
from kernling.core.expansion import Expansion
from kernling.core.fourier import Linear
from kernling.core.kernels import ISOTROPIC
from kernling.core.state import trimmed
from kernling.driver import scoring
from kernling.estimators.contents import flatten
from kernling.estimators.mixed import Mixed
from oracles import CASES, Case, encoded, outputs, stream

EVENTS = 300
WEIGHTS = np.random.default_rng(2).choice([0.5, 1.0, 3.0], EVENTS)
WEIGHTS[100:200] = 1.0  # and these are not given
SAME = dict(rtol=1e-8, atol=1e-8)
PROBES = np.random.default_rng(99).uniform(-1.2, 1.2, size=(50, 3))


def estimators() -> list[type]:
    """The estimator classes of all registered methods."""
    return [cls for entry in registry.METHODS.values() for cls in entry.classes()]


def bounded_cases() -> list:
    """Estimators with each of their bounded cases, as parameters of a test; one that is skipped where there is none."""
    unbounded = pytest.mark.skip(reason="its points grow with the stream")
    found = []
    for cls in estimators():
        cases = [case for case in CASES.get(cls.__name__, []) if case.bounded]
        found += [pytest.param(cls, case) for case in cases] or [pytest.param(cls, None, marks=unbounded)]
    return found


@cache
def one_per_kind_of_state() -> set[type]:
    """The estimators of AVM, of mixtures, and of the first learner for every other type that a state begins with."""
    chosen: dict[type, str] = {Expansion: "avm", Mixed: "auto"}
    for cls in estimators():
        if cls.__name__ not in CASES:
            continue
        case = CASES[cls.__name__][0]
        X, y = stream(case.stream, EVENTS)
        model = cls(**case.params)
        model._begin(model.get_params(deep=False) | model.resolved(X), X.shape[1], outputs(case.stream, y))
        chosen.setdefault(type(model.state_[0]), cls.learner.name)
    return {cls for cls in estimators() if cls.learner.name in chosen.values()}


# ---------------------------------------------------------------------- tools


def make(cls: type, case: Case, **changes):
    return cls(**{**case.params, **changes})


def learn(model, X, y, classes=None, sample_weight=None):
    """partial_fit; classifiers are told the classes, so that outputs never change on the way."""
    known = {}
    if is_classifier(model):
        known = {"classes": classes if hasattr(model, "t_") else np.unique(y if classes is None else classes)}
    return model.partial_fit(X, y, sample_weight=sample_weight, **known)


def scores(model, X) -> np.ndarray:
    """Outputs, (rows,) or (rows, outputs); of a transformer, the rows it makes."""
    if hasattr(model, "transform"):
        rows = model.transform(X)
        return rows.toarray() if sparse.issparse(rows) else rows
    return model.decision_function(X) if hasattr(model, "decision_function") else model.predict(X)


def score_one(model, x):
    """The output for one event."""
    return model.score_one(x) if hasattr(model, "score_one") else scores(model, x[np.newaxis])[0]


def scores_then_learn(model, X, y, classes=None, sample_weight=None) -> np.ndarray:
    if not hasattr(model, "predict_then_learn"):
        return one_by_one(model, X, y, np.ones(len(y)) if sample_weight is None else sample_weight)
    known = {"method": "decision_function" if is_classifier(model) or is_outlier_detector(model) else "predict"}
    if is_classifier(model):
        known["classes"] = None if hasattr(model, "t_") else np.unique(y if classes is None else classes)
    return model.predict_then_learn(X, y, sample_weight=sample_weight, **known)


def one_by_one(model, X, y, weights) -> np.ndarray:
    """Outputs before each event, of a model that has no predict_then_learn."""
    model.partial_fit(X[:1], y[:1], sample_weight=[0.0])  # ready, but has learned nothing
    found = []
    for i in range(len(y)):
        row = slice(i, i + 1)
        found.append(scores(model, X[row])[0])
        learn(model, X[row], y[row], sample_weight=weights[row])
    return np.array(found)


def bound(model) -> float:
    """What the number of stored points cannot exceed; one that holds for the mean over random draws has its own check."""
    return model.t_ if model.learner.expected_bound(model._params) else model.learner.bound(model._params, model.t_)


def events_seen(model) -> int:
    """Rows learned, and rows that wait for a batch to fill."""
    return model.t_ + getattr(model, "n_waiting_", 0)


def allocated(model) -> int:
    """The size of the model's arrays in bytes, with spare room."""
    return sum(array.nbytes for array in flatten(model.state_).values())


def state_of(model) -> dict[str, np.ndarray]:
    """A copy of everything that learning changes, without spare room."""
    arrays = {name: array.copy() for name, array in flatten(trimmed(model.state_)).items()}
    if hasattr(model, "_counts"):
        arrays["counts"] = model._counts.copy()
    if getattr(model, "_target_scale", None) is not None:
        arrays["target_scale"] = np.array(model._target_scale)
    return arrays


def assert_identical(a, b) -> None:
    """Bit for bit the same model, random state included."""
    first, second = state_of(a), state_of(b)
    assert first.keys() == second.keys()
    for name in first:
        assert first[name].dtype == second[name].dtype
        assert first[name].tobytes() == second[name].tobytes(), name
    assert a._rng.bit_generator.state == b._rng.bit_generator.state


def replay(case: Case, model, X, y) -> tuple[object, np.ndarray]:
    """The oracle after the stream, and its outputs before each event."""
    oracle = case.oracle(model.get_params(deep=False), X.shape[1], outputs(case.stream, y))
    rng = getattr(oracle, "rng", np.random.default_rng(model.random_state))  # its own, where features were drawn first
    before = []
    for x, target, weight in zip(X, encoded(case.stream, y), WEIGHTS[: len(y)], strict=True):
        before.append(oracle.scores(x))
        draws = rng.random(oracle.uniforms)
        oracle.learn(x, target, weight, draws if len(draws) > 1 else draws.sum())
    return oracle, np.squeeze(before)


# ---------------------------------------------------------------------- checks of every case


def check_oracle(cls, case):
    """300 events of several weights agree with the slow reference: outputs before learning, the final function, the points."""
    X, y = stream(case.stream, EVENTS)
    published = {"standardise_target": False} if "standardise_target" in cls.parameters else {}
    open_stream = make(cls, case, **published)
    oracle, before = replay(case, open_stream, X, y)
    parts = [(slice(0, 100), WEIGHTS[:100]), (slice(100, 200), None), (slice(200, EVENTS), WEIGHTS[200:])]
    seen = np.concatenate([scores_then_learn(open_stream, X[rows], y[rows], y, weights) for rows, weights in parts])
    if case.params.get("output") == "suffix":  # an open stream may average somewhat more than the share asked for
        assert open_stream.n_stored_ == len(oracle.points)
        model = make(cls, case, **published).fit(X, y, sample_weight=WEIGHTS)
    else:
        np.testing.assert_allclose(seen, before, **SAME)
        model = open_stream
    expected = np.squeeze([oracle.scores(x) for x in PROBES])
    np.testing.assert_allclose(scores(model, PROBES), expected, **SAME)
    assert model.n_stored_ == len(oracle.points)
    assert events_seen(model) == EVENTS


def check_bound(cls, case):
    """The number of stored points never exceeds the declared bound."""
    X, y = stream(case.stream, EVENTS)
    model = learn(make(cls, case), X[:1], y[:1], np.unique(y))
    for x, label in zip(X[1:], y[1:], strict=True):
        model.learn_one(x, label)
        assert model.n_support_ <= model.n_stored_ <= bound(model)
    assert events_seen(model) == EVENTS
    if model.learner.expected_bound(model._params):
        expected = model.learner.bound(model._params, EVENTS)
        sizes = [make(cls, case, random_state=seed).fit(X, y).n_stored_ for seed in range(30)]
        assert np.mean(sizes) <= expected + 3.0 * np.sqrt(expected / 30)  # a sum of coins varies less than its mean


def check_memory(cls, case):
    """Once the space is covered, memory does not grow however long the stream is."""
    X, y = stream(case.stream, EVENTS)
    model = make(cls, case)
    for _ in range(4):
        learn(model, X, y)
    covered = allocated(model)
    for _ in range(20):
        learn(model, X, y)
        has_successor = isinstance(model, Mixed) and model.state_.successor.has_begun
        assert model.nbytes_ <= allocated(model)
        assert covered <= allocated(model) <= 2 * covered if has_successor else allocated(model) == covered


def check_chunks(cls, case):
    """The model does not depend on how the stream is cut, nor on whether events come one by one."""
    X, y = stream(case.stream, EVENTS)
    whole = make(cls, case).partial_fit(X, y)
    expected = scores(whole, PROBES)
    model = make(cls, case)
    for rows in np.split(np.arange(EVENTS), np.cumsum([1] * 30 + [7] * 20)):  # and the other 130
        model.partial_fit(X[rows], y[rows])
    np.testing.assert_allclose(scores(model, PROBES), expected, **SAME)
    assert model.n_stored_ == whole.n_stored_
    single = make(cls, case)
    for x, label in zip(X, y, strict=True):
        single.learn_one(x, label)
    np.testing.assert_allclose(scores(single, PROBES), expected, **SAME)
    np.testing.assert_allclose([score_one(single, x) for x in PROBES], expected, **SAME)
    assert (single.n_stored_, single.t_) == (whole.n_stored_, whole.t_)
    assert events_seen(whole) == events_seen(single) == EVENTS


def check_block_size(cls, case):
    """Blocks change speed only."""
    X, y = stream(case.stream, EVENTS)
    expected = scores(make(cls, case).fit(X, y), PROBES)
    for size in (1, 16, 1000):
        np.testing.assert_allclose(scores(make(cls, case, block_size=size).fit(X, y), PROBES), expected, **SAME)


def check_pure(cls, case):
    """Predicting changes nothing; learning and predicting take read-only arrays and leave them alone."""
    X, y = stream(case.stream, EVENTS)
    rows, probes = X.copy(), PROBES.copy()
    for array in (rows, probes, y):
        array.flags.writeable = False
    model = learn(make(cls, case), rows, y)
    before, random = state_of(model), model._rng.bit_generator.state
    scores(model, probes), score_one(model, probes[0])
    if hasattr(model, "predict"):
        model.predict(probes), model.predict_one(probes[0])
    if hasattr(model, "score"):
        model.score(rows, y)
    _ = getattr(model, "support_vectors_", None), getattr(model, "dual_coef_", None), model.n_support_, model.certificate()
    after = state_of(model)
    assert all(before[name].tobytes() == after[name].tobytes() for name in before)
    assert random == model._rng.bit_generator.state
    np.testing.assert_array_equal(rows, X)


def check_support(cls, case):
    """The output is the kernel against the support vectors, times their coefficients, and a linear function of features."""
    X, y = stream(case.stream, EVENTS)
    model = learn(make(cls, case), X, y)
    if hasattr(model, "transform"):
        return  # rows in, rows out
    if isinstance(model, Mixed):
        pytest.skip("a mixture is no expansion")
    total = np.zeros_like(scores(model, PROBES))
    for part in scoring.frozen_parts(model._setup, model._state):
        if isinstance(part, Linear):
            total += np.squeeze(features(part, PROBES) @ part.coef[0].T)
        else:
            kernel = kernling.kernel(model.kernel, model.gamma_, model.degree, model.coef0)
            total += kernel(PROBES, model.support_vectors_) @ model.dual_coef_
            assert len(model.support_vectors_) == model.n_support_
    of_support = model._scores(PROBES)[:, 0] if is_outlier_detector(model) else scores(model, PROBES)  # no distances yet
    total = getattr(model, "target_mean_", 0.0) + getattr(model, "target_spread_", 1.0) * total
    np.testing.assert_allclose(total - getattr(model, "threshold_", 0.0), of_support, **SAME)
    assert model.n_support_ <= model.n_stored_


def features(part: Linear, X: np.ndarray) -> np.ndarray:
    """Cosines and sines of the rows' products with the frequencies; without frequencies, the rows."""
    angles = X @ part.frequencies.T
    return np.hstack([np.cos(angles), np.sin(angles)]) / np.sqrt(len(part.phase)) if len(part.phase) else X


def check_interrupted(cls, case):
    """Pickled, memory-mapped or saved in mid-stream, a model goes on bit for bit as if nothing had happened."""
    X, y = stream(case.stream, EVENTS)
    half = EVENTS // 2
    model = learn(make(cls, case), X[:half], y[:half], np.unique(y))
    score_one(model, X[0])  # makes the buffers for single events, which no copy may share
    copies = [pickle.loads(pickle.dumps(model))]
    with tempfile.TemporaryDirectory() as folder:
        kernling.save(model, Path(folder) / "model.kern")
        copies.append(kernling.load(Path(folder) / "model.kern"))
        joblib.dump(model, Path(folder) / "model.joblib")
        copies.append(joblib.load(Path(folder) / "model.joblib", mmap_mode="r"))
        for copy in copies:
            assert_identical(copy, model)
            assert copy.get_params() == model.get_params()
        for each in (model, *copies):
            learn(each, X[half:-1], y[half:-1])
            each.learn_one(X[-1], y[-1])
        for copy in copies:
            assert_identical(copy, model)
            np.testing.assert_array_equal(scores(copy, PROBES), scores(model, PROBES))


def check_repeatable(cls, case):
    """The same seed gives the same model, also by clone and by fitting anew; another seed another one, if coins are tossed."""
    X, y = stream(case.stream, EVENTS)
    model = make(cls, case, random_state=7).fit(X, y)
    assert_identical(model, make(cls, case, random_state=7).fit(X, y))
    assert_identical(model, clone(model).fit(X, y))
    assert_identical(model, make(cls, case, random_state=7).fit(X[::-1], y[::-1]).fit(X, y))
    if model._needs.uniforms:
        other = make(cls, case, random_state=8).fit(X, y)
        assert np.abs(scores(other, PROBES) - scores(model, PROBES)).max() > 1e-6


def check_degenerate(cls, case):
    """Constant rows, repeated rows with labels that contradict each other, and rows of zeros leave everything finite."""
    X, y = stream(case.stream, EVENTS)
    for rows in (np.ones_like(X), np.repeat(X[:10], EVENTS // 10, axis=0), np.zeros_like(X)):
        model = learn(make(cls, case), rows, y)
        assert np.isfinite(scores(model, rows)).all()
        assert np.isfinite(scores(model, PROBES)).all()
        assert all(np.isfinite(array).all() for name, array in state_of(model).items() if not name.endswith("clock"))
        assert model.n_stored_ <= bound(model)


def check_before_learning(cls, case):
    """predict_then_learn returns what would have been predicted just before each row was learned."""
    X, y = stream(case.stream, 100)
    recorded = make(cls, case)
    seen = scores_then_learn(recorded, X, y)
    model = make(cls, case)
    known = {"classes": np.unique(y)} if is_classifier(model) else {}
    model.partial_fit(X[:1], y[:1], sample_weight=[0.0], **known)  # ready, but has learned nothing
    expected = []
    for i in range(len(X)):
        expected.append(scores(model, X[i : i + 1])[0])
        learn(model, X[i : i + 1], y[i : i + 1])
    np.testing.assert_allclose(seen, expected, **SAME)
    if is_classifier(recorded):
        labels = make(cls, case).predict_then_learn(X, y, classes=np.unique(y))
        best = seen.argmax(axis=1) if seen.ndim == 2 else (seen >= 0.0).astype(int)
        np.testing.assert_array_equal(labels, np.unique(y)[best])
    if hasattr(recorded, "predict_then_learn_one"):
        check_single_before_learning(cls, case)


def check_single_before_learning(cls, case):
    """predict_then_learn_one predicts as predict_one and learns as learn_one."""
    X, y = stream(case.stream, 100)
    weights = np.random.default_rng(3).choice([0.0, 0.5, 1.0], len(y)).tolist()
    weights[0] = 1.0
    once, twice = make(cls, case, random_state=0), make(cls, case, random_state=0)
    method = "decision_function" if "decision_function" in cls.single_methods else "predict"
    for i, (x, target, weight) in enumerate(zip(X, y, weights, strict=True)):
        if i % 2:
            found, expected = once.predict_then_learn_one(x, target, method, weight), score_one(twice, x)
            np.testing.assert_allclose(found, expected, **SAME)
        else:
            found, expected = once.predict_then_learn_one(x, target, sample_weight=weight), twice.predict_one(x)
            assert found == (expected if is_classifier(once) or expected is None else pytest.approx(expected))
        twice.learn_one(x, target, weight)
    assert_identical(once, twice)


def check_sample_weight(cls, case):
    """A row of weight 0 is as if it were not there, other weights matter, and learn_one takes them, too."""
    X, y = stream(case.stream, EVENTS)
    weights = np.random.default_rng(2).choice([0.0, 0.5, 1.0, 3.0], EVENTS)
    known = {"classes": np.unique(y)} if is_classifier(make(cls, case)) else {}
    whole, plain, single = (make(cls, case).partial_fit(X[:1], y[:1], sample_weight=[0.0], **known) for _ in range(3))
    assert whole.t_ == 0
    whole.partial_fit(X, y, sample_weight=weights)
    there = weights > 0.0
    expected = scores(whole, PROBES)
    without = make(cls, case).partial_fit(X[:1], y[:1], sample_weight=[0.0], **known)
    without.partial_fit(X[there], y[there], sample_weight=weights[there])
    np.testing.assert_allclose(scores(without, PROBES), expected, **SAME)
    assert events_seen(whole) == events_seen(without) == there.sum()
    for x, label, weight in zip(X, y, weights, strict=True):
        single.learn_one(x, label, sample_weight=weight)
    np.testing.assert_allclose(scores(single, PROBES), expected, **SAME)
    if cls.learner.name not in (
        "passive_aggressive",
        "spa",
    ):  # there a weight multiplies the cap of a step, which need not bind
        assert np.abs(scores(learn(plain, X[there], y[there]), PROBES) - expected).max() > 1e-6


CHECKS = [
    check_bound,
    check_chunks,
    check_block_size,
    check_pure,
    check_support,
    check_interrupted,
    check_repeatable,
    check_degenerate,
    check_before_learning,
    check_sample_weight,
]

# ---------------------------------------------------------------------- checks of one learner per kind of state


def check_float32(cls, case):
    """Single precision stays close to double precision, also far from the origin where rows can be centred."""
    X, y = stream(case.stream, EVENTS)
    for offset in (0.0, 100.0) if case.params.get("kernel", "rbf") in ISOTROPIC else (0.0,):
        rows, probes = ((table + offset).astype(np.float32) for table in (X, PROBES))
        double = learn(make(cls, case), rows.astype(np.float64), y)
        single = learn(make(cls, case, dtype="float32"), rows, y)
        expected = scores(double, probes.astype(np.float64))
        assert np.abs(scores(single, probes) - expected).max() <= 1e-3 * np.abs(expected).max()


def check_csr(cls, case):
    """CSR rows give the model that dense rows give."""
    X, y = stream(case.stream, EVENTS)
    X = np.where(np.random.default_rng(1).random(X.shape) < 0.4, 0.0, X)
    dense = learn(make(cls, case), X, y)
    for as_sparse in (sparse.csr_matrix, sparse.csr_array):
        model = learn(make(cls, case), as_sparse(X), y)
        np.testing.assert_allclose(scores(model, as_sparse(PROBES)), scores(dense, PROBES), **SAME)
        assert model.n_stored_ == dense.n_stored_
    mixed = learn(learn(make(cls, case), X[:150], y[:150], np.unique(y)), sparse.csr_array(X[150:]), y[150:])
    np.testing.assert_allclose(scores(mixed, sparse.csr_array(PROBES)), scores(dense, PROBES), **SAME)


SAMPLED = [check_float32, check_csr]


def traces(name: str) -> dict[str, np.ndarray]:
    """What all cases of an estimator predict before and after a few events."""
    cls = next(cls for cls in estimators() if cls.__name__ == name)
    found = {}
    for i, case in enumerate(CASES[name]):
        X, y = stream(case.stream, 40)
        for kind, rows in (("dense", X), ("csr", sparse.csr_array(X))):
            model = make(cls, case, block_size=8)
            found[f"{i} before {kind}"] = scores_then_learn(model, rows, y)
            found[f"{i} after {kind}"] = scores(model, PROBES[:5])
    return found


@cache
def plain_traces(learner: str) -> dict[str, dict[str, np.ndarray]]:
    """The traces of each estimator of a method in a process without the compiler, which takes long to begin."""
    names = [cls.__name__ for cls in estimators() if cls.learner.name == learner]
    program = "import sys, pickle, checks; pickle.dump([checks.traces(name) for name in sys.argv[2:]], open(sys.argv[1], 'wb'))"
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "traces"
        subprocess.run(
            [sys.executable, "-c", program, target, *names],
            check=True,
            cwd=Path(__file__).parent,
            env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        )
        return dict(zip(names, pickle.loads(target.read_bytes()), strict=True))


def check_compiled(cls):
    """Plain Python, without the compiler, gives the same numbers in all cases."""
    plain, compiled = plain_traces(cls.learner.name)[cls.__name__], traces(cls.__name__)
    assert plain.keys() == compiled.keys()
    for name in compiled:
        np.testing.assert_allclose(plain[name], compiled[name], **SAME)
