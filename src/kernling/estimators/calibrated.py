"""Intervals and sets of labels that contain a given share of the targets, from the errors before learning."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ..components.conformal import INSIDE, LEVELS, SIZE, follow, levels
from ..core.state import copied
from .available import there_if
from .constraints import SWITCH, short
from .parameters import parameter
from .turns import predicting


class Calibration(NamedTuple):
    """How intervals, or sets of labels, did so far: each is compared with the target before the event is learned."""

    inside: float  # share of the targets that were inside
    size: float  # mean width of intervals, or number of labels in a set


def _follows_errors(self) -> bool:
    if self._errors is not None or (self.calibrate and "_state" not in vars(self)):
        return True
    raise AttributeError("intervals and sets need calibrate=True, before the first event is learned")


class Calibrated:
    """Mixin of models that follow their errors before learning (components/conformal.py)."""

    calibrate: bool = parameter(
        default=False,
        allowed=SWITCH,
        doc="Whether to keep track of prediction errors, for ``predict_interval`` and ``predict_set``.",
    )
    _errors: Any  # an Errors, or None
    _fitted: Callable[[], Any]

    @property
    def calibration_(self) -> dict[float, Calibration]:
        """For each of five coverages, the share of targets inside so far, and the mean size of intervals or sets."""
        _follows_errors(self)
        self._fitted()
        return {level: Calibration(*found) for level, *found in self._errors.summary}

    def _followed(self, said: np.ndarray, found: np.ndarray) -> tuple[Any, np.ndarray]:
        """Return a copy that has followed these errors, and the thresholds before each, (events, levels)."""
        thresholds = np.empty((len(found), len(LEVELS)))
        errors = copied(self._errors)  # the old ones are restored if the call fails
        follow(errors, levels(), np.ascontiguousarray(said), np.ascontiguousarray(found), thresholds)
        return errors, thresholds

    def _thresholds(self, said: np.ndarray, coverage: float) -> np.ndarray:
        """Return the threshold of errors of these predictions."""
        if not isinstance(coverage, (float, np.floating)) or not LEVELS[0] <= coverage <= LEVELS[-1]:
            raise ValueError(f"coverage must be a number from {LEVELS[0]} to {LEVELS[-1]}, not {short(coverage)}")
        thresholds = np.empty((len(said), len(LEVELS)))
        follow(self._errors, levels(), np.ascontiguousarray(said, np.float64), np.empty(0), thresholds)
        last = int(np.searchsorted(LEVELS[1:-1], coverage)) + 1
        share = (coverage - LEVELS[last - 1]) / (LEVELS[last] - LEVELS[last - 1])
        low, high = thresholds[:, last - 1], thresholds[:, last]
        return np.where(np.isfinite(high), low + share * (high - low), np.inf)


class GivesIntervals(Calibrated):
    """Mixin of regressors."""

    predict: Callable
    predict_one: Callable
    _turns: Any

    def _follow(self, said, y, weights, is_new=False):
        learned = weights > 0.0
        self._errors, _ = self._followed(said[learned, 0], np.abs(y - said[:, 0])[learned])

    @there_if(_follows_errors)
    @predicting
    def predict_interval(self, X, coverage=0.9):
        """Predict an interval for the value of each row, (rows, 2), which contains this share of the values in the long run.

        Needs ``calibrate=True``.  Intervals follow the errors of the latest events: they widen after a change, and where the
        model is usually wrong.  ``coverage`` is from 0.5 to 0.99; those between the ones of ``calibration_`` are interpolated.
        """
        return self.interval_around(self.predict(X), coverage)

    @there_if(_follows_errors)
    def predict_interval_one(self, x, coverage=0.9):
        """Predict an interval for the value of one event, a 1-D array: a pair, or None before any learning."""
        with self._turns.lock:
            said = self.predict_one(x)
            return None if said is None else tuple(self.interval_around(np.array([said]), coverage)[0].tolist())

    @there_if(_follows_errors)
    def interval_around(self, predicted, coverage=0.9):
        """Return the intervals of values that this model predicts now, (rows, 2)."""
        self._fitted()
        half = self._thresholds(predicted, coverage)
        return np.column_stack([predicted - half, predicted + half])


class GivesSets(Calibrated):
    """Mixin of classifiers."""

    classes_: np.ndarray
    _scores: Callable[[Any], np.ndarray]

    def _follow(self, said, y, weights, is_new=False):
        learned = weights > 0.0
        losses, label = losses_of(said[learned], len(self.classes_)), np.searchsorted(self.classes_, y[learned])
        own, is_best = losses[np.arange(len(label)), label], likeliest(losses) == label
        if is_new and learned[0]:  # its label could be in no set
            own[0], is_best[0] = np.inf, False
        errors, thresholds = self._followed(np.zeros(len(own)), own)
        known = np.isfinite(thresholds[:, 0])  # all but the very first event
        for level, threshold in enumerate(thresholds.T):
            sizes = np.maximum((losses <= threshold[:, np.newaxis]).sum(axis=1), 1)
            errors.tally[level, SIZE] += sizes[known].sum()
            errors.tally[level, INSIDE] += np.count_nonzero(known & (own > threshold) & is_best)
        self._errors = errors

    @there_if(_follows_errors)
    @predicting
    def predict_set(self, X, coverage=0.9):
        """Predict which labels each row may have, (rows, classes) of booleans: this share of the true labels are among them.

        Needs ``calibrate=True``.  The most probable label is always in the set.  So a classifier that is right more often than
        ``coverage``, which is from 0.5 to 0.99, gives sets of one label, which contain the true one as often as it is right.
        """
        scores = self._scores(X)  # first: it raises if nothing has been learned
        return self.set_among(losses_of(scores, len(self.classes_)), coverage)

    @there_if(_follows_errors)
    def set_among(self, losses, coverage=0.9):
        """Return the sets of rows for which the model gives these losses, -log of the probability of each class."""
        self._fitted()
        within = losses <= self._thresholds(np.zeros(len(losses)), coverage)[:, np.newaxis]
        within[np.arange(len(losses)), likeliest(losses)] = True
        return within


def losses_of(scores: np.ndarray, classes: int) -> np.ndarray:
    """Return -log of the softmax of scores, (rows, classes), whether or not the method gives probabilities."""
    if classes == 1:
        return np.zeros((len(scores), 1))
    if scores.shape[1] == 1:
        return np.logaddexp(0.0, np.hstack([scores, -scores]))
    return np.logaddexp.reduce(scores, axis=1, keepdims=True) - scores


def likeliest(losses: np.ndarray) -> np.ndarray:
    """Return the index of the label that is predicted, also of those that are equally likely (labels.py)."""
    return (losses[:, 1] <= losses[:, 0]).astype(np.intp) if losses.shape[1] == 2 else losses.argmin(axis=1)
