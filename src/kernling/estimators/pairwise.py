"""Classifiers that learn from pairs: ranking scores, and a threshold that converts scores to labels."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.run import Notes
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
        return self._threshold()

    def _threshold(self) -> np.ndarray:
        """Return the threshold of each output: what the method would note with the outputs of an event now."""
        outputs = self._problem.outputs
        row = np.empty(2 * outputs)
        notes = self.__dict__.get("_notes")
        if notes is None or notes.state is not self._state:
            loop: Any = self.learner.loop
            notes = self._notes = Notes(loop, self._params, self._state, row)
        notes.write(row)
        return row[outputs:]

    def _score_event(self, x):
        score, threshold = super()._score_event(x), self._threshold()
        return score - (threshold.item() if type(score) is float else threshold)

    def _offset(self):
        return -self._threshold()

    def _learn(self, X, y, weights, record=False):
        recorded = super()._learn(X, y, weights, record)
        outputs = self._problem.outputs
        return recorded[:, :outputs] - recorded[:, outputs:]

    def _widen(self, place, change):
        super()._widen(place, change)
        self._setup = self._setup._replace(notes=self._problem.outputs)
        self._drop_buffers()


class LinearPairwiseClassifier(MeanOrLast, RandomFeatures, PairwiseClassifier):
    """A classifier that was published for linear features and supports any features."""

    features: str = parameter(default="linear", doc="The columns themselves, as published, or random features of the kernel.")
