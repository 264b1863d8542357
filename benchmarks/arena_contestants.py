"""The contestants of benchmarks/arena.py, with their defaults: our methods, River, CapyMOA, and refitted boosted trees."""

import os
import pickle
import shutil
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import river
import sklearn
from river import compose, forest, linear_model, multiclass, preprocessing, stats, tree
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

from benchmarks.peer_contestants import FIRST, PATIENCE, Answers, Contestant, Learner, of_shares, run
from benchmarks.peer_contestants import River as PeerRiver
from benchmarks.peer_contestants import ours as peers_of_ours
from benchmarks.peer_streams import Events
from kernling import StreamPipeline, registry

BOTH = ("classification", "regression")
TIMES = 20  # that boosted trees are fitted in a stream
MOST_KINDS = 255  # categories of a column in scikit-learn
JVM = "-Xmx8g -Xss10M -XX:+UseSerialGC"  # CapyMOA's defaults, and one thread


# ------------------------------------------------------------------ ours


class Ours(Learner):
    """An estimator in a pipeline that encodes text and scales; Auto, which scales by itself, takes numbers as they are."""

    def __init__(self, method: str, events: Events, classes: int, seed: int):
        model = registry.estimator_for(method, "classification" if classes else "regression")(random_state=seed)
        scales = method == "auto" and isinstance(events.X, np.ndarray)
        self.model: Any = model if scales else StreamPipeline.auto(model)
        clone(self.model).predict_then_learn(events.X[:FIRST], events.y[:FIRST])  # compilation is not timed
        self.classes = classes
        self.has_shares = bool(classes) and hasattr(model, "predict_proba")

    def answer_then_learn(self, X, y):
        if not self.has_shares:
            return Answers(self.model.predict_then_learn(X, y))
        shares = np.zeros((len(y), self.classes))
        said = self.model.predict_then_learn(X, y, method="predict_proba")
        shares[:, self.model.classes_] = said
        return of_shares(shares)

    def nbytes(self):
        return int(self.model.nbytes_)

    def points(self):
        return int(self.model.n_stored_)


def ours() -> Iterator[Contestant]:
    for one in peers_of_ours(baselines=False):
        yield one._replace(run=partial(run, partial(Ours, one.name)))


# ------------------------------------------------------------------ River


class River(PeerRiver):
    """A River model; rows are dictionaries of numbers and text."""

    def prepare(self, X):
        return X.to_dict("records") if isinstance(X, pd.DataFrame) else super().prepare(X)


def linear(classes: int, seed: int) -> Any:
    """Return a linear model on scaled numbers and encoded text."""
    numbers = compose.SelectType(int, float) | preprocessing.StandardScaler()
    text = compose.SelectType(str) | preprocessing.OneHotEncoder()
    if not classes:
        return (numbers + text) | preprocessing.TargetStandardScaler(linear_model.LinearRegression())
    model = linear_model.LogisticRegression()
    return (numbers + text) | (model if classes == 2 else multiclass.OneVsRestClassifier(model))


def river_forest(classes: int, seed: int) -> Any:
    return (forest.ARFClassifier if classes else forest.ARFRegressor)(seed=seed)


def river_tree(classes: int, seed: int) -> Any:
    return (tree.HoeffdingAdaptiveTreeClassifier if classes else tree.HoeffdingAdaptiveTreeRegressor)(seed=seed)


RIVER = {
    "river-linear": ("River linear", linear),
    "river-hat": ("River HAT", river_tree),
    "river-arf": ("River ARF", river_forest),
}


# ------------------------------------------------------------------ CapyMOA


CLASSIFIERS = {
    "capymoa-arf": ("CapyMOA ARF", "AdaptiveRandomForestClassifier"),
    "capymoa-srp": ("CapyMOA SRP", "StreamingRandomPatches"),
    "capymoa-levbag": ("CapyMOA LevBag", "LeveragingBagging"),
    "capymoa-sgbt": ("CapyMOA SGBT", "StreamingGradientBoostedTrees"),
    "capymoa-samknn": ("CapyMOA SAMkNN", "SAMkNN"),
    "capymoa-hat": ("CapyMOA HAT", "HoeffdingAdaptiveTree"),
}
REGRESSORS = {
    "capymoa-arf": ("CapyMOA ARF", "AdaptiveRandomForestRegressor"),
    "capymoa-soknl": ("CapyMOA SOKNL", "SOKNL"),
}


class CapyMOA(Learner):
    """A learner of MOA, by CapyMOA, which reads the stream from a file of its own."""

    chunk = PATIENCE

    def __init__(self, events: Events, classes: int, seed: int, name: str):
        os.environ.setdefault("CAPYMOA_JVM_ARGS", JVM)
        from capymoa import classifier, regressor
        from capymoa.stream import ARFFStream

        self.folder = tempfile.TemporaryDirectory()
        path = Path(self.folder.name) / "stream.arff"
        write_arff(path, events, classes)
        self.stream = ARFFStream(str(path))
        made = getattr(classifier if classes else regressor, (CLASSIFIERS if classes else REGRESSORS)[name][1])
        self.before = heap()
        self.model = made(schema=self.stream.get_schema(), random_seed=seed + 1)  # its seeds begin with 1
        self.classes = classes

    def prepare(self, X):
        return [self.stream.next_instance() for _ in range(len(X))]

    def answer_then_learn(self, X, y):
        said = []
        answer = self.model.predict_proba if self.classes else self.model.predict
        nothing = np.zeros(self.classes) if self.classes else 0.0  # before the first row
        for instance in X:
            one = answer(instance)
            said.append(nothing if one is None else one)
            self.model.train(instance)
        return of_shares(np.array(said)) if self.classes else Answers(np.array(said, dtype=np.float64))

    def nbytes(self):
        return heap() - self.before


def heap() -> int:
    """Return the bytes of all that is alive in Java; it knows no size of a single model without an agent."""
    from jpype import java

    java.lang.System.gc()
    runtime = java.lang.Runtime.getRuntime()
    return int(runtime.totalMemory() - runtime.freeMemory())


def write_arff(path: Path, events: Events, classes: int) -> None:
    """Write a stream in Weka's format, with text as nominal columns."""
    table = events.X if isinstance(events.X, pd.DataFrame) else pd.DataFrame(events.X).add_prefix("x")
    with path.open("w") as file:
        file.write("@relation stream\n")
        for name, column in table.items():
            is_number = pd.api.types.is_numeric_dtype(column.dtype)
            file.write(f"@attribute {name} {'numeric' if is_number else '{' + ','.join(sorted(column.unique())) + '}'}\n")
        file.write(f"@attribute y {'{' + ','.join(map(str, range(classes))) + '}' if classes else 'numeric'}\n@data\n")
        table.assign(y=events.y).to_csv(file, header=False, index=False)


def capymoa() -> Iterator[Contestant]:
    """Yield CapyMOA's learners, if the package and Java are there."""
    if find_spec("capymoa") is None or shutil.which("java") is None:
        print("CapyMOA is skipped: the package capymoa or java was not found")
        return
    from importlib.metadata import version

    for name, (title, _) in (CLASSIFIERS | REGRESSORS).items():
        tasks = tuple(task for task, known in zip(BOTH, (CLASSIFIERS, REGRESSORS), strict=True) if name in known)
        made = partial(run, partial(CapyMOA, name=name))
        yield Contestant(name, title, "moa", tasks, f"capymoa {version('capymoa')}", made)


# ------------------------------------------------------------------ what people do at night instead, and constants


class Refitted(Learner):
    """Boosted trees, fitted again to all rows so far at every twentieth of the stream; before that, constant answers.

    Texts are categories, or numbers if there are more than the trees can tell apart.
    """

    def __init__(self, events: Events, classes: int, seed: int):
        self.chunk = -(-len(events.y) // TIMES)
        self.classes = classes
        self.made = partial(
            HistGradientBoostingClassifier if classes else HistGradientBoostingRegressor,
            random_state=seed,
            categorical_features="from_dtype",
        )
        self.model: Any = None
        self.X, self.y, self.seen = events.X, events.y, 0
        if isinstance(self.X, pd.DataFrame):
            kinds = {name: self.X[name].astype("category") for name in self.X.select_dtypes(exclude="number")}
            few = {name: kind if len(kind.cat.categories) <= MOST_KINDS else kind.cat.codes for name, kind in kinds.items()}
            self.X = self.X.assign(**few)

    def answer_then_learn(self, X, y):
        X = self.X[self.seen : self.seen + len(y)]
        said = self._constant(y) if self.model is None else self._predicted(X)
        self.seen += len(y)
        self.model = self.made().fit(self.X[: self.seen], self.y[: self.seen])
        return said

    def _constant(self, y: np.ndarray) -> Answers:
        if not self.classes:
            return Answers(np.concatenate([[0.0], np.cumsum(y)[:-1] / np.arange(1, len(y))]))
        counts = np.cumsum(np.eye(self.classes)[y], axis=0)
        return of_shares(np.concatenate([np.zeros((1, self.classes)), counts[:-1] / np.arange(1, len(y))[:, np.newaxis]]))

    def _predicted(self, X: Any) -> Answers:
        if not self.classes:
            return Answers(self.model.predict(X))
        shares = np.zeros((len(X), self.classes))
        shares[:, self.model.classes_] = self.model.predict_proba(X)
        return of_shares(shares)

    def nbytes(self):
        rows = self.X[: self.seen]
        data = rows.memory_usage(deep=True).sum() if isinstance(rows, pd.DataFrame) else rows.nbytes
        return len(pickle.dumps(self.model)) + int(data)


class NoChange(Learner):
    """The last label or value again."""

    def __init__(self, events: Events, classes: int, seed: int):
        self.classes = classes
        self.last = -1 if classes else 0.0

    def answer_then_learn(self, X, y):
        said = np.concatenate([[self.last], y[:-1]])
        self.last = y[-1]
        return Answers(said)

    def nbytes(self):
        return 8


class Constant(Learner):
    """The shares of the labels so far, or the mean so far."""

    def __init__(self, events: Events, classes: int, seed: int):
        self.classes = classes
        self.counts = np.zeros(classes)
        self.mean = stats.Mean()

    def answer_then_learn(self, X, y):
        if not self.classes:
            said = []
            for value in y.tolist():
                said.append(self.mean.get())
                self.mean.update(value)
            return Answers(np.array(said))
        counts = self.counts + np.cumsum(np.eye(self.classes)[y], axis=0)
        before = np.concatenate([self.counts[np.newaxis], counts[:-1]])
        self.counts = counts[-1]
        return of_shares(before / np.maximum(before.sum(axis=1, keepdims=True), 1.0))

    def nbytes(self):
        return 8 * max(1, self.classes)


def contestants() -> list[Contestant]:
    """Return all that can run here."""
    simple: dict[str, tuple[str, Callable]] = {"constant": ("constant", Constant), "no-change": ("last label", NoChange)}
    found = [Contestant(name, title, "constant", BOTH, "1", partial(run, made)) for name, (title, made) in simple.items()]
    found += ours()
    for name, (title, made) in RIVER.items():
        found.append(Contestant(name, title, "river", BOTH, f"river {river.__version__}", partial(run, partial(River, made))))
    found += capymoa()
    version = f"scikit-learn {sklearn.__version__}"
    found.append(Contestant("hgb-refitted", "boosted trees, refitted", "sklearn", BOTH, version, partial(run, Refitted)))
    return found
