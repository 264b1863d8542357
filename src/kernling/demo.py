"""The demonstration: test-then-train evaluation of all classifiers and a linear one on two small streams."""

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
from .io import stream

CHUNK = 500  # events between progress updates


class Stream(NamedTuple):
    """Rows in order of arrival, with features on similar scales."""

    name: str
    X: np.ndarray
    y: np.ndarray

    @property
    def majority(self) -> float:
        """Mistake rate of always predicting the majority class."""
        return 1.0 - float(np.unique(self.y, return_counts=True)[1].max()) / len(self.y)


class LinearBaseline(SGDClassifier):
    """Linear classifier with the interface of our estimators that predicts and learns a few events at a time."""

    task = "classification"
    step = 10  # with single events, scikit-learn would spend most of the time on validation

    def predict_then_learn(self, X, y):
        """Learn the rows in small batches; return the predictions made before learning each batch.

        The first call must contain all labels, since scikit-learn requires them in advance.
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
    """Yield the streams of the demonstration, each with at most this number of events."""
    yield clusters(events)
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))[:events]
    yield Stream("digits", X[order] / 16.0, y[order])


def clusters(events: int, columns: int = 8, centres: int = 60, noise: float = 0.05) -> Stream:
    """Generate clusters of two classes that are not linearly separable, with a fraction of wrong labels."""
    rng = np.random.default_rng(0)
    centre = rng.standard_normal((centres, columns))
    label = np.arange(centres) % 2
    which = rng.integers(centres, size=events)
    X = centre[which] + 0.3 * rng.standard_normal((events, columns))
    return Stream("clusters", X, label[which] ^ (rng.random(events) < noise))


def contenders(everything: bool = False) -> dict[str, Callable[[], Any]]:
    """Return constructors of the main classifiers, or of all, by name."""
    found: dict[str, Callable[[], Any]] = {"linear baseline": partial(LinearBaseline, random_state=0)}
    for name, entry in registry.METHODS.items():
        if everything or entry.is_main:
            for cls in filter(lambda cls: is_classifier(cls()), entry.classes()):
                found[name] = partial(cls, random_state=1)  # not the streams' seed, which would correlate with the data
    return found


def run(model: Any, data: Stream, advance: Callable[[int], None] = lambda events: None) -> ProgressiveRun:
    """Evaluate a model test-then-train on a stream; ``advance`` is called with the number of events so far."""
    evaluation = ProgressiveRun(model, {"source": data.name})
    feed(evaluation, stream(data.X, data.y, chunk=CHUNK), after=lambda: advance(evaluation.events))
    return evaluation
