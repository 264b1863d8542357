"""The contestants of benchmarks/peers.py with their defaults.

No parameter is set for a stream.  Data-dependent parameters are derived from the X of the first 1,000 rows, without their
targets: gamma and delta of our methods, the points of scikit-learn's Nystroem.
"""

import pickle
import subprocess
import time
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import river
import sklearn
from river import compose, feature_extraction, forest, linear_model, multiclass, neighbors, tree
from sklearn.base import clone
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.linear_model import SGDClassifier, SGDRegressor

from benchmarks.peer_streams import Events
from kernling import registry

FIRST = 1_000  # rows whose X may be used in advance
BATCH = 20  # rows that scikit-learn predicts and learns at once
PATIENCE = 20  # rows of River between checks of the time limit
SOURCE = Path(__file__).parents[1] / "src" / "kernling"


class Answers(NamedTuple):
    """Predictions for rows before they were learned."""

    predicted: np.ndarray  # labels or values
    score: np.ndarray | None = None  # of the second of two classes
    shares: np.ndarray | None = None  # (rows, classes) probabilities


def of_shares(shares: np.ndarray) -> Answers:
    """Return the likeliest labels; without any probabilities, as before the first row, -1, which is a mistake."""
    best = np.where(shares.any(axis=1), shares.argmax(axis=1), -1)
    return Answers(best, shares[:, 1] if shares.shape[1] == 2 else None, shares)


class Run(NamedTuple):
    answers: Answers
    seconds: float  # of the processor
    nbytes: int | None
    points: int | None = None


class Contestant(NamedTuple):
    """``run(events, classes, seed, limit)`` processes a stream until its end or the limit in seconds."""

    name: str
    title: str
    family: str  # "ours", "baselines", "river", "sklearn", "neighbours", "constant" or "moa"
    tasks: tuple[str, ...]
    version: str
    run: Callable[[Events, int, int, float], Run]


class Learner:
    """A model that predicts some rows, then learns them."""

    chunk = FIRST

    def prepare(self, X: np.ndarray) -> Any:
        """Convert rows to the input format of the model; not timed."""
        return X

    def answer_then_learn(self, X: Any, y: np.ndarray) -> Answers:
        raise NotImplementedError

    def nbytes(self) -> int:
        raise NotImplementedError

    def points(self) -> int | None:
        return None


def run(make: Callable[[Events, int, int], Learner], events: Events, classes: int, seed: int, limit: float) -> Run:
    """Test-then-train, chunk by chunk, until the limit."""
    learner = make(events, classes, seed)
    parts: list[Answers] = []
    seconds = 0.0
    for first in range(0, len(events.y), learner.chunk):
        part = slice(first, first + learner.chunk)
        X, y = learner.prepare(events.X[part]), events.y[part]
        begun = time.process_time()
        parts.append(learner.answer_then_learn(X, y))
        seconds += time.process_time() - begun
        if seconds > limit:
            break
    sides = (None if side[0] is None else np.concatenate(side) for side in zip(*parts, strict=True))
    return Run(Answers(*sides), seconds, learner.nbytes(), learner.points())


# ------------------------------------------------------------------ ours


class Ours(Learner):
    """A kernling estimator with its defaults, unless parameters are given."""

    def __init__(self, method: str, events: Events, classes: int, seed: int, **params: Any):
        task = "classification" if classes else "regression"
        self.model: Any = registry.estimator_for(method, task)(random_state=seed, **params)
        compiled = clone(self.model)
        compiled.predict_then_learn(events.X[:FIRST], events.y[:FIRST])  # compilation is not timed
        self.kind = "predict"
        if classes and hasattr(compiled, "predict_proba"):
            self.kind = "predict_proba"
        elif classes == 2:
            self.kind = "decision_function"
        self.classes = classes
        self.first = events.y[0]
        self.both_met = False  # whether both of two labels have occurred

    def answer_then_learn(self, X, y):
        said = self.model.predict_then_learn(X, y, method=self.kind)
        if self.kind == "predict":
            return Answers(said)
        if self.kind == "decision_function":
            return Answers(np.where(self._know_both(y), said >= 0.0, self.first).astype(np.int64), said)
        shares = np.zeros((len(y), self.classes))
        shares[:, self.model.classes_] = said  # the labels that have occurred
        return of_shares(shares)

    def _know_both(self, y: np.ndarray) -> np.ndarray:
        """Return whether both labels occurred before each row; until then a model always predicts the known one."""
        met = np.logical_or.accumulate(np.concatenate([[self.both_met], y != self.first]))
        self.both_met = bool(met[-1])
        return met[:-1]

    def nbytes(self):
        return int(self.model.nbytes_)

    def points(self):
        return int(self.model.n_stored_)


@cache
def commit() -> str:
    """Return the commit that last changed the package, with a plus sign if there are uncommitted changes."""

    def git(*arguments: str) -> str:
        return subprocess.run(["git", *arguments], cwd=SOURCE, capture_output=True, text=True, check=True).stdout.strip()

    return git("log", "-1", "--format=%h", "--", ".") + ("+" if git("status", "--porcelain", "--", ".") else "")


def ours(baselines: bool) -> Iterator[Contestant]:
    """Yield the methods of the registry: the main ones, or the baselines."""
    for name, entry in registry.METHODS.items():
        stems = {}  # by task; a ranker's scores are not values of the target
        for cls in entry.classes():
            for task, ending in (("classification", "Classifier"), ("regression", "Regressor")):
                if cls.__name__.endswith(ending):
                    stems[task] = cls.__name__.removesuffix(ending)
        if stems and entry.is_main is not baselines:
            yield our(name, next(iter(stems.values())), "baselines" if baselines else "ours", tuple(stems))


def our(name: str, title: str, family: str = "ours", tasks: tuple[str, ...] = (), **params: Any) -> Contestant:
    """Return a method of ours as a contestant."""
    return Contestant(name, title, family, tasks, commit(), partial(run, partial(Ours, name, **params)))


# ------------------------------------------------------------------ River


class River(Learner):
    """A River model that learns row by row."""

    chunk = PATIENCE

    def __init__(self, make: Callable[[int, int], Any], events: Events, classes: int, seed: int):
        self.model = make(classes, seed)
        self.classes = classes

    def prepare(self, X):
        return [dict(enumerate(row)) for row in X.tolist()]

    def answer_then_learn(self, X, y):
        targets = y.tolist() if self.classes != 2 else (y == 1).tolist()
        said = []
        answer = self.model.predict_proba_one if self.classes else self.model.predict_one
        for row, target in zip(X, targets, strict=True):
            said.append(answer(row))
            self.model.learn_one(row, target)
        if not self.classes:
            return Answers(np.array(said))
        shares = np.array([[one.get(label, 0.0) for label in range(self.classes)] for one in said])  # True is 1
        return of_shares(shares)

    def nbytes(self):
        return int(self.model._raw_memory_usage)


def several(model: Any, classes: int) -> Any:
    """Convert a binary model to one for any number of classes."""
    return multiclass.OneVsRestClassifier(model) if classes > 2 else model


RIVER: dict[str, tuple[str, Callable[[int, int], Any]]] = {
    "river-linear": (
        "River linear",
        lambda k, seed: several(linear_model.LogisticRegression(), k) if k else linear_model.LinearRegression(),
    ),
    "river-hat": (
        "River HAT",
        lambda k, seed: (tree.HoeffdingAdaptiveTreeClassifier if k else tree.HoeffdingAdaptiveTreeRegressor)(seed=seed),
    ),
    "river-arf": ("River ARF", lambda k, seed: (forest.ARFClassifier if k else forest.ARFRegressor)(seed=seed)),
    "river-knn": ("River KNN", lambda k, seed: neighbors.KNNClassifier() if k else neighbors.KNNRegressor()),
    "river-pa": ("River PA", lambda k, seed: several(linear_model.PAClassifier(), k) if k else linear_model.PARegressor()),
    "river-rbf": (
        "River RBF linear",
        lambda k, seed: compose.Pipeline(
            feature_extraction.RBFSampler(seed=seed),
            several(linear_model.LogisticRegression(), k) if k else linear_model.LinearRegression(),
        ),
    ),
}


# ------------------------------------------------------------------ scikit-learn


class ScikitLearn(Learner):
    """Stochastic gradient descent of scikit-learn, optionally on features, in small batches."""

    chunk = BATCH

    def __init__(self, features: Callable[[int], Any] | None, events: Events, classes: int, seed: int):
        self.classes = np.arange(classes)
        self.model = (SGDClassifier if classes else SGDRegressor)(random_state=seed)
        self.features = features(seed).fit(events.X[:FIRST]) if features else None

    def answer_then_learn(self, X, y):
        Z = self.features.transform(X) if self.features else X
        fitted = hasattr(self.model, "coef_")
        predicted = self.model.predict(Z) if fitted else np.zeros(len(y), dtype=y.dtype)
        score = None
        if len(self.classes) == 2:
            score = self.model.decision_function(Z) if fitted else np.zeros(len(y))
        self.model.partial_fit(Z, y, **({"classes": self.classes} if len(self.classes) else {}))
        return Answers(predicted, score)

    def nbytes(self):
        return len(pickle.dumps((self.features, self.model)))


SKLEARN: dict[str, tuple[str, Callable[[int], Any] | None]] = {
    "sklearn-sgd": ("SGD", None),
    "sklearn-rbf": ("SGD RBFSampler", lambda seed: RBFSampler(random_state=seed)),
    "sklearn-nystroem": ("SGD Nystroem", lambda seed: Nystroem(random_state=seed)),
}


class Neighbours(Learner):
    """The 5 nearest of the last 1,000 rows, weighted by inverse distance, like River's default."""

    window, nearest = 1_000, 5
    same = 1e-12  # smaller squared distances are rounding errors

    def __init__(self, events: Events, classes: int, seed: int):
        self.classes = classes
        self.X = np.zeros((self.window, events.X.shape[1]))
        self.squares = np.full(self.window, np.inf)  # squared norms; infinite for empty entries
        self.y = np.zeros((self.window, classes or 1))
        self.seen = 0

    def answer_then_learn(self, X, y):
        said = np.zeros((len(y), self.y.shape[1]))
        for i, (row, target) in enumerate(zip(X, y, strict=True)):
            count = min(self.nearest, self.seen)
            if count:
                squares = row @ row + self.squares - 2.0 * (self.X @ row)
                near = np.argpartition(squares, count - 1)[:count]
                said[i] = np.average(self.y[near], axis=0, weights=1.0 / np.sqrt(np.maximum(squares[near], self.same)))
            place = self.seen % self.window
            self.X[place], self.squares[place] = row, row @ row
            self.y[place] = np.arange(self.classes) == target if self.classes else target
            self.seen += 1
        if not self.classes:
            return Answers(said[:, 0])
        return of_shares(said)

    def nbytes(self):
        return self.X.nbytes + self.squares.nbytes + self.y.nbytes


# ------------------------------------------------------------------ constant prediction


class Constant(Learner):
    """The majority class so far, or the mean so far, which is 0 on the scale of the targets."""

    def __init__(self, events: Events, classes: int, seed: int):
        self.counts = np.zeros(classes, np.int64)

    def answer_then_learn(self, X, y):
        if not len(self.counts):
            return Answers(np.zeros(len(y)))
        predicted = np.empty(len(y), np.int64)
        for i, label in enumerate(y):
            predicted[i] = self.counts.argmax()
            self.counts[label] += 1
        return Answers(predicted)

    def nbytes(self):
        return self.counts.nbytes


def contestants() -> list[Contestant]:
    """Return all contestants but MOA's."""
    both = ("classification", "regression")
    found = [Contestant("constant", "constant", "constant", both, "1", partial(run, Constant))]
    found += ours(baselines=False)
    for name, (title, make) in RIVER.items():
        found.append(Contestant(name, title, "river", both, f"river {river.__version__}", partial(run, partial(River, make))))
    for name, (title, features) in SKLEARN.items():
        made = partial(run, partial(ScikitLearn, features))
        found.append(Contestant(name, title, "sklearn", both, f"scikit-learn {sklearn.__version__}", made))
    made = partial(run, Neighbours)
    found.append(Contestant("window-knn", "window kNN", "neighbours", both, "1", made))
    found += ours(baselines=True)
    return found
