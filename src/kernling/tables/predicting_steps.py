"""Prediction by pipelines: rows and events pass through all steps, which learn nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..estimators.base import OnlineEstimator
from ..estimators.checking import checked
from ..estimators.turns import predicting
from .encode import Encode
from .frames import named_row, one_row
from .steps import Steps, dense, last_has, present


def _scores(name: str, what: str):
    """Return a method that transforms rows and calls a method of the last step."""

    def method(self, X):
        return getattr(self._learned(), name)(self.passed(X))

    method.__name__, method.__doc__ = name, what
    return last_has(name)(predicting(method))


class PredictsRows(Steps):
    """What a pipeline predicts: the methods of its last step, for rows that pass through the steps before it."""

    _turns: Any

    predict = _scores("predict", "Predict the label or value of each row.")
    decision_function = _scores("decision_function", "Return the last step's scores of the rows.")
    score_samples = _scores("score_samples", "Return how similar each row is to the learned events.")
    predict_proba = _scores("predict_proba", "Return the probability of each class, (rows, classes).")
    rank_scores = _scores("rank_scores", "Return the ranking scores, without subtracting a threshold.")
    transform = _scores("transform", "Transform the rows by all steps.")

    @last_has("predict_interval")
    @predicting
    def predict_interval(self, X, coverage=0.9):
        """Return an interval for the value of each row, (rows, 2), that contains this share of the values in the long run."""
        return self._learned().predict_interval(self.passed(X), coverage)

    @last_has("predict_set")
    @predicting
    def predict_set(self, X, coverage=0.9):
        """Return which labels each row may have, (rows, classes): its own is one of them with this share in the long run."""
        return self._learned().predict_set(self.passed(X), coverage)

    @last_has("fit_predict")
    def fit_predict(self, X, y=None):
        """Fit to the rows and predict which are outliers."""
        return self.fit(X).predict(X)

    @last_has("transform")
    def fit_transform(self, X, y=None, **options):
        """Fit to the rows and transform them."""
        return self.fit(X, y, **options).transform(X)

    @last_has("score")
    @predicting
    def score(self, X, y=None, sample_weight=None):
        """Return the last step's score."""
        return self._learned().score(self.passed(X), y, **present(sample_weight=sample_weight))

    @last_has("predict_one")
    def predict_one(self, x):
        """Predict the label or value of one event; None before any learning."""
        with self._turns.lock:
            last, x = self._passed_one(x)
            return None if last is None else last.predict_one(x)

    @last_has("predict_interval_one")
    def predict_interval_one(self, x, coverage=0.9):
        """Predict an interval for the value of one event: a pair, or None before any learning."""
        with self._turns.lock:
            last, x = self._passed_one(x)
            return None if last is None else last.predict_interval_one(x, coverage)

    @last_has("predict_proba_one")
    def predict_proba_one(self, x):
        """Predict the probability of each class for one event: a dictionary, which is empty before any learning."""
        with self._turns.lock:
            last, x = self._passed_one(x)
            return {} if last is None else last.predict_proba_one(x)

    @last_has("score_one")
    def score_one(self, x):
        """Return the last step's score of one event; 0 before any learning."""
        with self._turns.lock:
            last, x = self._passed_one(x)
            return 0.0 if last is None else last.score_one(x)

    def passed(self, X) -> Any:
        """Return the rows as the last step receives them, without learning."""
        self._learned()
        X = self._rows(X, reset=False)
        for _, part in self.steps_[:-1]:
            X = part.transform(X)
        return X

    def _passed_one(self, x) -> tuple[Any, Any]:
        """Return the last step and an event as it receives it; None before any learning."""
        encode, last = self._quick_steps()
        found = None if encode is None else encode.scaled_numbers(x)
        if found is not None:
            return last, found
        if "steps_" not in self.__dict__:
            return None, x
        *parts, (_, last) = self.steps_
        if not self._is_quick:
            return last, dense(self.passed(one_row(x)))[0]
        x = named_row(x)
        for _, part in parts:
            x = part.transform_one(x)
        return last, x

    def _quick_steps(self) -> tuple[Any, Any]:
        """Return an ``Encode`` and the estimator after it, if these are all steps; otherwise None and None."""
        steps = self.__dict__.get("steps_", ())
        if len(steps) == 2:
            (_, encode), (_, last) = steps
            if type(encode) is Encode and isinstance(last, OnlineEstimator):  # others may keep the event, which is in a buffer
                return encode, last
        return None, None

    @property
    def _is_quick(self) -> bool:
        """Whether all steps have fast paths for single events."""
        return all(hasattr(part, "transform_one") and not getattr(part, "hash", None) for _, part in self.steps_[:-1])

    @property
    def _last(self) -> Any:
        return (self.__dict__.get("steps_") or self.steps)[-1][1]

    def _learned(self) -> Any:
        check_is_fitted(self, "steps_")
        return self.steps_[-1][1]

    def _rows(self, X, reset: bool) -> Any:
        """Validate rows; tables are returned unchanged if the first step takes them."""
        if getattr(self.steps_[0][1], "takes_tables", False):
            return X
        return checked(self, X, reset=reset, dtype=np.float64)
