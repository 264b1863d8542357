"""The main job on two small streams: classifiers of all kinds, and a linear one, tested and taught event by event."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import is_classifier
from sklearn.datasets import load_digits
from sklearn.linear_model import SGDClassifier

from . import registry
from .evaluate import ProgressiveRun, feed
from .streams import stream

CHUNK = 500  # events between two signs of progress


class Stream(NamedTuple):
    """Rows in the order in which they arrive, on scales that differ little."""

    name: str
    X: np.ndarray
    y: np.ndarray

    @property
    def majority(self) -> float:
        """Share of mistakes of always answering with the majority class."""
        return 1.0 - float(np.unique(self.y, return_counts=True)[1].max()) / len(self.y)


class LinearBaseline(SGDClassifier):
    """Linear classification in the shape of our estimators, testing and learning a few events at a time."""

    task = "classification"
    step = 10  # one by one, scikit-learn would spend its time on checking arguments

    def predict_then_learn(self, X, y):
        """Learn the rows; returns what was predicted for each few before they were learned.

        The labels of the first call are all that there are: scikit-learn wants to know them beforehand.
        """
        classes = self.classes_ if hasattr(self, "classes_") else np.unique(y)
        labels = np.full_like(y, classes[0])
        for first in range(0, len(y), self.step):
            part = slice(first, first + self.step)
            if hasattr(self, "coef_"):
                labels[part] = self.predict(X[part])
            self.partial_fit(X[part], y[part], classes=classes)
        return labels


def streams(events: int) -> Iterator[Stream]:
    """The streams of the demonstration, each cut to this many events."""
    yield clusters(events)
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))[:events]
    yield Stream("digits", X[order] / 16.0, y[order])


def clusters(events: int, columns: int = 8, centres: int = 60, noise: float = 0.05) -> Stream:
    """Clusters of one of two classes each, which no plane can tell apart; a share of the labels is wrong."""
    rng = np.random.default_rng(0)
    centre = rng.standard_normal((centres, columns))
    label = np.arange(centres) % 2
    which = rng.integers(centres, size=events)
    X = centre[which] + 0.3 * rng.standard_normal((events, columns))
    return Stream("clusters", X, label[which] ^ (rng.random(events) < noise))


def contenders(everything: bool = False) -> dict[str, Callable[[], Any]]:
    """Return a constructor for each learner that takes part, by name: the main methods that classify, or all that do."""
    found: dict[str, Callable[[], Any]] = {"linear baseline": partial(LinearBaseline, random_state=0)}
    for name, entry in registry.METHODS.items():
        if everything or entry.is_main:
            for cls in filter(lambda cls: is_classifier(cls()), entry.classes()):
                found[name] = partial(cls, random_state=1)  # not the seed of the streams: coins would go with the data
    return found


def run(model: Any, data: Stream, advance: Callable[[int], None] = lambda events: None) -> ProgressiveRun:
    """Test and teach a model on a stream; ``advance`` hears how many events it has learned."""
    evaluation = ProgressiveRun(model, {"source": data.name})
    feed(evaluation, stream(data.X, data.y, chunk=CHUNK), after=lambda: advance(evaluation.events))
    return evaluation
