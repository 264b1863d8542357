"""Model files that are put together from others, by a seed, with correct checksums.

Each estimator has files of several sizes, numbers of classes and parameters.  A forgery takes one of them and gives it whole
parts, single arrays or header entries of another, or single numbers that would lead compiled code astray.  It is refused in one
sentence, or it is a model that predicts, learns, merges and can be saved again, with finite outputs.

A child process does the work, so that a crash is noticed; it says which seed it is about to try.
"""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import sys
import tempfile
import warnings
from collections import Counter
from functools import cache
from itertools import count
from typing import Any

import numpy as np
import safetensors.numpy

import checks
import forgery
import hostile
import kernling
from kernling import models
from kernling.estimators.base import OnlineEstimator
from kernling.tables import Encode, MinMax, Standardise
from oracles import CASES, stream

TIME = 120.0  # seconds for a forgery, code that must be compiled first included
SIZES = ("budget", "points", "max_points", "max_cells", "window", "memory", "buffer_size", "n_components", "batch_size", "rank")
WHOLE = [-(2**62), -7, -1, 0, 1, 2, 5, 100, 2**31, 2**53, 2**62]
FLOATS = [-1e300, -1e100, -1.0, -1e-9, 0.0, 1e-320, 1e-100, 0.5, 1.0, 7.0, 1e9, 1e60, 1e120, 1e300, np.nan, np.inf]
ENTRIES = [None, True, -1, 0, 0.0, 1, 2, 3, 7, 30, 1000, 10**6, 0.5, 1e-300, 1e300, "auto", "scale", "x", [], {}]


def pipelines() -> dict[str, Any]:
    """Pipelines of all steps that files hold."""
    classifier = ("model", kernling.AVMClassifier(gamma=1.0, delta=0.6, lam=0.05))
    regressor = ("model", kernling.KRLSRegressor(gamma=1.0, points=20))
    return {
        "scaled": kernling.StreamPipeline([("scale", Standardise()), classifier]),
        "stretched": kernling.StreamPipeline([("scale", MinMax(-1.0, 1.0)), regressor]),
        "table": kernling.StreamPipeline.auto(classifier[1], categorical=["x0"]),
        "calibrated": kernling.StreamPipeline.auto(kernling.SPARegressor(gamma=1.0, random_state=0, calibrate=True)),
        "sets": kernling.StreamPipeline(
            [("scale", Standardise()), ("model", kernling.KRLSClassifier(gamma=1.0, calibrate=True))]
        ),
        "hashed": kernling.StreamPipeline([("encode", Encode(["x0"], hash=5)), classifier]),
        "watched": kernling.StreamPipeline.auto(kernling.SPARegressor(gamma=1.0, random_state=0, watch=True), lags=[1]),
        "metric": kernling.StreamPipeline([("metric", kernling.AOGDMetric(random_state=0)), classifier]),
    }


def names() -> list[str]:
    """Everything of which there are files."""
    return [*(cls.__name__ for cls in checks.estimators()), *pipelines()]


@cache
def wholes(name: str) -> list[bytes]:
    """Sound files of an estimator or a pipeline that differ in columns, events, classes and parameters."""
    found = []
    for d, events, seed, changes in ((3, 60, 0, {}), (5, 90, 1, {}), (3, 60, 2, {"half": True}), (3, 70, 3, {"kinds": True})):
        model, kind = _unfitted(name, **changes)
        X, y = stream(kind, events, seed, d)
        if name in pipelines():
            X[:, 0] = np.round(X[:, 0])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found.append(models._packed(model.partial_fit(X, y)))
    return found


def _unfitted(name: str, half: bool = False, kinds: bool = False) -> tuple[Any, str]:
    """A model, with half the room or of more classes, and the kind of its stream."""
    if name in pipelines():
        return pipelines()[name], {
            "stretched": "regression",
            "calibrated": "regression",
            "watched": "regression",
            "metric": "multiclass",
            "sets": "multiclass",
        }.get(name, "binary")
    cls = next(cls for cls in checks.estimators() if cls.__name__ == name)
    case = CASES[name][0]
    model = checks.make(cls, case)
    given = model.get_params(deep=False)
    if half:
        model.set_params(**{size: max(1, given[size] // 2) for size in SIZES if type(given.get(size)) is int})
    kind = {"binary": "multiclass", "multiclass": "binary"}.get(case.stream, case.stream) if kinds else case.stream
    return model, kind


# ---------------------------------------------------------------------- forgeries


def forged(name: str, rng: np.random.Generator) -> tuple[bytes, str]:
    """A file put together from others, and what was done."""
    files = wholes(name)
    first, other = rng.choice(len(files), 2, replace=False)
    arrays, header = safetensors.numpy.load(files[first]), forgery.header_of(files[first])
    theirs, their_header = safetensors.numpy.load(files[other]), forgery.header_of(files[other])
    told = []
    for _ in range(int(rng.choice([1, 1, 1, 2, 3]))):
        kind = int(rng.integers(6))
        if kind == 0:
            told.append(_swap_part(arrays, theirs, rng))
        elif kind == 1:
            told.append(_swap_array(arrays, theirs, rng))
        elif kind == 2:
            told.append(_swap_entry(header, their_header, rng))
        elif kind == 3:
            told.append(_set_entry(header, rng))
        else:
            told.append(_set_number(arrays, rng))
    return forgery.signed(arrays, json.dumps(header)), "; ".join(told)


def _swap_part(arrays: dict, theirs: dict, rng: np.random.Generator) -> str:
    parts = sorted({name.rpartition(".")[0] for name in arrays})
    part = parts[int(rng.integers(len(parts)))]
    for name in arrays:
        if name.rpartition(".")[0] == part and name in theirs:
            arrays[name] = theirs[name]
    return f"part {part}"


def _swap_array(arrays: dict, theirs: dict, rng: np.random.Generator) -> str:
    name = list(arrays)[int(rng.integers(len(arrays)))]
    if name in theirs:
        arrays[name] = theirs[name]
    return f"array {name}"


def _swap_entry(header: dict, theirs: dict, rng: np.random.Generator) -> str:
    places = list(forgery.places(header))
    place = places[int(rng.integers(len(places)))]
    own, other = header, theirs
    try:
        for key in place[:-1]:
            own, other = own[key], other[key]
        own[place[-1]] = other[place[-1]]
    except (KeyError, IndexError, TypeError):
        return f"no entry {place}"
    return f"entry {place} is {own[place[-1]]!r:.60}"


def _set_entry(header: dict, rng: np.random.Generator) -> str:
    places = list(forgery.places(header))
    place = places[int(rng.integers(len(places)))]
    holder: Any = header
    for key in place[:-1]:
        holder = holder[key]
    holder[place[-1]] = value = ENTRIES[int(rng.integers(len(ENTRIES)))]
    return f"entry {place} is set to {value!r}"


def _set_number(arrays: dict, rng: np.random.Generator) -> str:
    filled = [name for name, array in arrays.items() if array.size]
    name = filled[int(rng.integers(len(filled)))]
    array = arrays[name] = arrays[name].copy()
    values = WHOLE if array.dtype.kind in "iu" else FLOATS
    value = values[int(rng.integers(len(values)))]
    place = int(rng.integers(array.size))
    with np.errstate(over="ignore"):
        if rng.random() < 0.2:
            array[...] = value
            return f"{name} is {value}"
        array.flat[place] = value
    return f"{name}.flat[{place}] is {value}"


# ---------------------------------------------------------------------- using them


def use(data: bytes, rng: np.random.Generator) -> str:
    """Load a file and do with it all that a service does; says whether it was refused, raised an error or was used."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            model = models.unpacked(data, "model.kern").model
        except ValueError as error:
            hostile.check_message(error)
            return "refused"
        try:
            _learn_and_predict(model, rng)
        except ValueError as error:
            hostile.check_message(error)
            return "raised"
    return "used"


def _learn_and_predict(model: Any, rng: np.random.Generator) -> None:
    X = rng.uniform(-1.0, 1.0, (20, model.n_features_in_))
    y = rng.choice(model.classes_, 20) if hasattr(model, "classes_") else rng.normal(size=20)
    hostile.check_result(checks.scores(model, X), 20)
    model.partial_fit(X, y)
    if hasattr(model, "learn_one"):
        for x, target in zip(X[:5], y[:5], strict=True):
            model.learn_one(x, target)
    hostile.check_result(checks.scores(model, X), 20)
    if hasattr(model, "predict_interval"):
        hostile.check_result(model.predict_interval(X), 20)
    if hasattr(model, "predict_set"):
        hostile.check_result(model.predict_set(X), 20)
    if hasattr(model, "alarms_"):
        hostile.check_result(np.array([alarm[2:5] for alarm in model.alarms_]))
    if hasattr(model, "rises_"):
        hostile.check_result(np.array([rise[:4] for rise in model.rises_]))
    if hasattr(model, "explain") and rng.random() < 0.1:
        hostile.check_result(model.explain(X[:2], X[2:6], samples=4).values)
    if hasattr(model, "predict_one"):
        hostile.check_result(np.array([model.predict_one(X[0])]))
    if rng.random() < 0.2 and isinstance(model, OnlineEstimator):
        hostile.check_result(checks.scores(kernling.merge([model, model]), X), 20)
    if rng.random() < 0.2:
        again = models.unpacked(models._packed(model), "model.kern").model  # what was learned and saved can be loaded
        np.testing.assert_array_equal(checks.scores(again, X), checks.scores(model, X))


def try_seeds(chosen: list[str], seed: int, forgeries: int) -> None:
    """Try forgeries, of each name in turn, and say of each what came of it."""
    for number in range(seed, seed + forgeries):
        name = chosen[number % len(chosen)]
        rng = np.random.default_rng([number, names().index(name)])
        data, told = forged(name, rng)
        print(json.dumps({"seed": number, "told": f"{name}: {told}"}), flush=True)
        try:
            came = use(data, rng)
        except Exception as error:
            came = f"broken: {type(error).__name__}: {error}"[:600]
        print(json.dumps({"came": came}), flush=True)


class Outcome:
    """How often each thing happened, and what must not happen."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.bad: list[str] = []


def run(chosen: list[str], seed: int, forgeries: int, **environment: str) -> Outcome:
    """Try so many forgeries of these estimators and pipelines in child processes."""
    outcome, following = Outcome(), seed
    while following < seed + forgeries:
        left = seed + forgeries - following
        following = _run_child(chosen, following, left, environment, outcome)
    return outcome


def _run_child(chosen: list[str], seed: int, forgeries: int, environment: dict[str, str], outcome: Outcome) -> int:
    """Run a child until it ends, crashes or hangs; returns the seed to go on with."""
    paths = os.pathsep.join(path for path in sys.path if path)
    program = "import sys; from fuzz import swaps; swaps.try_seeds(sys.argv[1].split(), int(sys.argv[2]), int(sys.argv[3]))"
    command = [sys.executable, "-c", program, " ".join(chosen), str(seed), str(forgeries)]
    with tempfile.TemporaryFile("w+") as errors:
        child = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=errors, text=True, env={**os.environ, "PYTHONPATH": paths, **environment}
        )
        last = {"seed": seed - 1, "told": "nothing yet"}
        for line in _lines(child):
            said = json.loads(line)
            if "came" in said:
                outcome.counts[said["came"].partition(":")[0]] += 1
                if said["came"].startswith("broken"):
                    outcome.bad.append(f"{last}: {said['came']}")
                last["done"] = True
            else:
                last = said
        code = child.wait()
        if code or not last.get("done"):
            errors.seek(0)
            what = "hang" if code == -9 else f"end with {code}"
            outcome.counts[what] += 1
            outcome.bad.append(f"{last}: {what}: {errors.read()[-800:]}")
    return last["seed"] + 1 if last["seed"] >= seed else seed + forgeries


def _lines(child: subprocess.Popen) -> Any:
    """Yield what a child says; one that says nothing for too long is killed."""
    assert child.stdout is not None
    with selectors.DefaultSelector() as selector:
        selector.register(child.stdout, selectors.EVENT_READ)
        for _ in count():
            if not selector.select(TIME):
                child.kill()
                return
            line = child.stdout.readline()
            if not line:
                return
            yield line


if __name__ == "__main__":  # python tests/fuzz/swaps.py 100 [first seed] [names ...]
    each, begin = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0
    total: Counter[str] = Counter()
    for one in sys.argv[3:] or names():
        result = run([one], begin, each)
        total += result.counts
        print(one, dict(result.counts), flush=True)
        for text in result.bad:
            print("   ", text, flush=True)
    print("all:", dict(total))
