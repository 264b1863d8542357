"""Classifiers that learn from pairs: ranking scores, and a threshold that converts scores to labels."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..driver.loops import Notes
from .options import MeanOrLast, RandomFeatures
from .parameters import parameter
from .tasks import BaseOnlineClassifier
from .turns import predicting


class PairwiseClassifier(BaseOnlineClassifier):
    """A classifier whose learner has a threshold of the scores, one per output."""

    pairwise = True
    class_weight = None  # each pair has one event of each class: there is nothing to balance

    @predicting
    def rank_scores(self, X):
        """Return the scores without subtracting the threshold: (rows,) for two classes, (rows, classes) for more."""
        decision = self.decision_function(X)
        return decision + (self.threshold_ if decision.ndim == 2 else self.threshold_[0])

    @property
    def threshold_(self) -> np.ndarray:
        """Threshold of each output that ``decision_function`` subtracts."""
        self._fitted()
        return self._notes().noted

    def _notes(self) -> Notes:
        """Return the thresholds, which are what the method would note with the outputs of an event now."""
        loop: Any = self.learner.loop
        return Notes(loop, self._setup, self._params, self._state)

    def _offset(self):
        return -self.threshold_

    def _recorded(self, scores):
        outputs = self._problem.outputs
        return scores[..., :outputs] - scores[..., outputs:]

    def _reader(self, x):
        read, is_single = super()._reader(x), self._problem.outputs == 1
        return lambda: self._recorded(read()).item() if is_single else self._recorded(read())

    def _widen(self, place, change):
        super()._widen(place, change)
        self._setup = self._setup._replace(notes=self._problem.outputs)
        self._drop_buffers()


class LinearPairwiseClassifier(MeanOrLast, RandomFeatures, PairwiseClassifier):
    """A classifier that was published for linear features and supports any features."""

    features: str = parameter(default="linear", doc="The columns themselves, as published, or random features of the kernel.")
