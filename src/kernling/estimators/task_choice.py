"""Inference of the task from the first targets, and a placeholder for the model until then."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError

from .. import registry
from .checking import refuse_lazy

CLASSES = 20  # integers with at most this many distinct values are labels


def task_of(y: Any) -> str:
    """Infer the task: classification for text, booleans and integers with at most 20 distinct values, else regression.

    Examples
    --------
    >>> from kernling.estimators.task_choice import task_of
    >>> task_of(["late", "on time"]), task_of([0, 1, 1]), task_of([0.5, 2.0])
    ('classification', 'classification', 'regression')
    """
    refuse_lazy("y", y)
    y = np.asarray(y)
    if y.dtype.kind == "O" and not any(isinstance(value, (str, bytes)) for value in y.tolist()):
        y = np.array([np.nan if value is None else value for value in y.tolist()])
    if y.dtype.kind not in "iuf":
        return "classification"
    values = np.unique(y[np.isfinite(y)])
    return "classification" if len(values) <= CLASSES and np.array_equal(values, np.floor(values)) else "regression"


def scales_itself(model: Any) -> bool:
    """Return whether a model standardises its columns, as Auto does."""
    return bool(getattr(model, "standardise", False))


def without_own_scales(model: Any) -> Any:
    """Return the model without its own standardisation, if it has one: an earlier step scales the columns."""
    return clone(model).set_params(standardise=False) if scales_itself(model) else model


def _not_yet(name: str) -> Callable[..., Any]:
    def method(self, *args, **kwargs):
        raise NotFittedError("the model is chosen when the first targets are learned: call fit or partial_fit first")

    method.__name__, method.__doc__ = name, "Not available before the first targets."
    return method


class TaskDeferred(BaseEstimator):
    """Placeholder that becomes the classifier or the regressor of a method at the first targets; see :func:`task_of`.

    Parameters
    ----------
    learner : str
        Name of the method.
    standardise : bool
        Whether it standardises columns by itself, if it can.
    calibrate, watch : bool
        Whether it follows its errors, and watches for changes.
    """

    def __init__(self, learner: str = registry.DEFAULT, standardise: bool = True, calibrate: bool = False, watch: bool = False):
        self.learner = learner
        self.standardise = standardise
        self.calibrate = calibrate
        self.watch = watch

    def model_for(self, y: Any) -> Any:
        """Return a new model for these targets."""
        return self.model_of(task_of(y))

    def model_of(self, task: str) -> Any:
        """Return a new model for a task."""
        model = registry.estimator_for(self.learner, task)(calibrate=self.calibrate, watch=self.watch)
        return model if self.standardise else without_own_scales(model)

    @property
    def task(self) -> str:
        """Not known before the first targets."""
        raise AttributeError("the task is inferred from the first targets: pass task= if it must be known earlier")

    fit = _not_yet("fit")
    partial_fit = _not_yet("partial_fit")
    predict_then_learn = _not_yet("predict_then_learn")
    learn_one = _not_yet("learn_one")
    predict_then_learn_one = _not_yet("predict_then_learn_one")
    predict = _not_yet("predict")
    predict_one = _not_yet("predict_one")
    decision_function = _not_yet("decision_function")
    score_one = _not_yet("score_one")
    score = _not_yet("score")
