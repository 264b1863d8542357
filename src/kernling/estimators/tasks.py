"""Base classes for classification, regression and one-class learning."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.multiclass import check_classification_targets

from ..core.expansion import Expansion
from ..core.limits import TARGET
from ..core.state import Widening, widened
from ..driver import scoring
from ..driver.events import events_of
from ..text import check_texts
from . import labels
from .available import there_if
from .base import OnlineEstimator
from .calibrated import GivesIntervals, GivesSets
from .constraints import NOTHING, SWITCH, OneOf, Weights, short
from .contents import entry
from .explained import Explains
from .parameters import parameter
from .single import NONE, scalar
from .snapshot import Snapshot
from .target_scale import TargetScale
from .turns import predicting
from .watched import Watched

_ALIKE = {**dict.fromkeys("biuf", "biuf"), **dict.fromkeys("UO", "UO")}  # kinds of labels that can be compared with classes


def _gives_probabilities(self) -> bool:
    several = len(getattr(self, "classes_", ())) > 2
    loss = getattr(self, "loss", None)
    if not self.pairwise and (loss == "softmax" or (loss == "logistic" and not several)):
        return True
    raise AttributeError("predict_proba needs loss='softmax', or loss='logistic' with no more than two classes")


def _check_labels(y) -> None:
    """Raise for labels that cannot be stored, of lists before NumPy drops the NUL characters that they end in."""
    kind = getattr(getattr(y, "dtype", None), "kind", "O")
    if kind in "OU" and hasattr(y, "__iter__"):
        check_texts("the label", labels.distinct(y).tolist() if kind == "U" and len(y) else y)


class OnlineWithClasses(OnlineEstimator):
    """Base class for targets that are labels: encoding, new classes and class weights."""

    def _validated(self, X, y, sample_weight, fresh):
        _check_labels(y)
        X, y, weights = super()._validated(X, y, sample_weight, fresh)
        try:
            classes = labels.distinct(y)
            if not labels.are_plain(classes):  # scikit-learn's check is slow to import
                # Twice, so that many distinct labels are not taken for regression targets.
                check_classification_targets(y if len(classes) > labels.FEW else np.tile(classes, 2))
        except TypeError:
            raise TypeError("y mixes labels of different types, such as numbers and strings: use one type") from None
        if not fresh and (y.dtype.kind in "OUS") != (self.classes_.dtype.kind in "OUS"):
            raise ValueError(f"labels of type {y.dtype} cannot be combined with classes of type {self.classes_.dtype}")
        return X, y, weights

    def _begin_targets(self, y, classes=None):
        self.classes_ = present = labels.distinct(y)
        if classes is not None:
            _check_labels(classes)
            self.classes_ = np.unique(np.asarray(classes))
            unknown = np.setdiff1d(present, self.classes_)
            if len(unknown):
                raise ValueError(f"y has the label {unknown[0]!r}, which is not among the given classes")
        self._counts = np.zeros(len(self.classes_))
        self._forget_codes()
        return self._output_count()

    def _output_count(self) -> int:
        return labels.output_count(len(self.classes_))

    def _take_classes(self, header, arrays):
        check_texts("the label", entry(header, "classes", list))
        self.classes_ = labels.from_plain(entry(header, "classes", list), entry(header, "class_type", str))
        counts = arrays.get("counts")
        if counts is None or counts.dtype != np.float64 or counts.shape != self.classes_.shape:
            raise ValueError(f"there must be a count for each of {len(self.classes_)} classes")
        if not ((counts >= 0.0) & (counts < np.inf)).all():
            raise ValueError("the counts of the classes must be numbers of at least 0")
        self._counts = counts.copy()
        return self._output_count()

    def _check_classes(self, classes):
        if classes is not None and not np.array_equal(np.unique(classes), self.classes_):
            raise ValueError(f"the given classes, {list(classes)}, differ from those of earlier calls, {list(self.classes_)}")

    def _first_of_new_classes(self, y):
        return labels.first_appearances(self.classes_, y)

    def _add_class(self, label):
        place = int(np.searchsorted(self.classes_, label))
        self._counts = np.insert(self._counts, place, 0.0)
        self._watch = None if self._watch is None else self._watch.with_class(place)
        self._forget_codes()
        self.classes_, change = labels.widening(self.classes_, label)
        self._widen(place, change)

    def _widen(self, place: int, change: Widening) -> None:
        """Insert a class at this index; the outputs become those of ``change``."""
        self._state = widened(self._state, change)
        self._problem = self._problem._replace(outputs=change.outputs)

    def _forget_codes(self) -> None:
        for name in ("_encoded", "_numbers"):
            self.__dict__.pop(name, None)

    @cached_property
    def _encoded(self) -> dict:
        """The target of each label."""
        return dict(zip(self.classes_.tolist(), self._targets(self.classes_, None).tolist(), strict=True))

    def _target_of(self, y):
        try:
            return self._encoded.get(scalar(y) if isinstance(y, np.ndarray) else y)
        except TypeError:
            raise TypeError(f"y must be one label, not {short(y)}") from None

    def _learn_new_class(self, x, y, weight):
        one, kind = self._one, self.classes_.dtype
        is_alike = (type(y) in (int, np.int64) and kind == np.int64 and abs(y) < 2**53) or (type(y) is str and kind.kind == "U")
        is_plain = type(x) is np.ndarray and x.dtype is one.dtype and x.shape == one.shape and weight == 1.0
        changes_all_or_nothing = isinstance(self._state.model, Expansion) and self.learner.loop.settle is None
        if not (is_alike and is_plain and changes_all_or_nothing and self.class_weight is None and not self._follows):
            return False
        _check_labels([y])
        with Snapshot(self) as before:
            before.learns_in_place = True
            self._add_class(y)
            if self._one is None:
                self._make_ready()
            self._learn_event(x, self._encoded[y], 1.0)
        return True

    def _plain_targets(self, y, shape, weights):
        known = _ALIKE.get(self.classes_.dtype.kind, "")
        if type(y) is not np.ndarray or y.shape != shape or y.dtype.kind not in known:
            return None
        if self._numbers is not None and y.dtype.itemsize <= 8:
            return y.astype(np.float64), self._numbers, None
        try:
            return np.array([self._encoded[label] for label in y.tolist()]), NONE, None
        except (KeyError, TypeError):  # a new label, or none
            return None

    @cached_property
    def _numbers(self) -> np.ndarray | None:
        """The labels as numbers; None if they are text, or not all whole numbers around them can be told apart."""
        classes = self.classes_
        numeric = classes.dtype.kind in "biuf" and classes.dtype.itemsize <= 8
        return classes.astype(np.float64) if numeric and (np.abs(classes.astype(np.float64)) < 2.0**53).all() else None

    def _learn_with_statistics(self, x, y, target, weight):
        """Learn an event, weighted by its class."""
        counts, events = self._counts, events_of(self._state)
        try:
            share = self._class_weights(np.array([scalar(y)]), np.array([weight]), whole=False)[0]
            self._learn_event(x, target, weight * share)
        except BaseException:  # which may have arrived when the event had been learned
            if events_of(self._state) == events:
                self._counts = counts
            raise

    def _targets(self, y, weights):
        return labels.encode(self.classes_, y)

    def _class_weights(self, y, weights, whole):
        if self.class_weight is None:
            return np.ones(len(y))
        index = np.searchsorted(self.classes_, y)
        if isinstance(self.class_weight, dict):
            return np.array([float(self.class_weight.get(label, 1.0)) for label in self.classes_])[index]
        counts = self._counts_with(index, weights, whole)
        self._counts = counts[-1].copy()
        own = np.maximum(counts[np.arange(len(y)), index], 1.0)
        return counts.sum(axis=1) / ((counts > 0.0).sum(axis=1).clip(1) * own)

    def _counts_with(self, index, weights, whole=False) -> np.ndarray:
        """Return the events of each class with each of these rows and those before it, or with all of them."""
        seen = np.zeros((len(index), len(self.classes_)))
        seen[np.arange(len(index)), index] = weights > 0.0
        return self._counts + (np.broadcast_to(seen.sum(axis=0), seen.shape) if whole else seen.cumsum(axis=0))


class BaseOnlineClassifier(ClassifierMixin, Watched, GivesSets, Explains, OnlineWithClasses):
    """A classifier that learns from a stream."""

    task = "classification"
    single_methods = {
        "predict": ("predict_one", "_label"),
        "decision_function": ("score_one", "_score_itself"),
        "predict_proba": ("predict_proba_one", "_named_probabilities"),
    }

    def fit(self, X, y, sample_weight=None):
        """Fit the model to the rows, discarding earlier state."""
        return self._fit(X, y, sample_weight)

    def partial_fit(self, X, y, classes=None, sample_weight=None):
        """Update the model with the rows.  New classes are added when they appear, or may be given in the first call."""
        if classes is not None or not self._learn_plain(X, y, sample_weight):
            self._stream(X, y, sample_weight, classes)
        return self

    def predict_then_learn(self, X, y, method="predict", classes=None, sample_weight=None):
        """Learn the rows; return the output of ``method`` for each row just before it was learned.

        ``method`` is "predict", "decision_function" or "predict_proba".  If new classes appear, earlier rows have
        score and probability 0 for them.  With "segments", the result is a list of pairs: the classes that were known, and
        the scores (rows, outputs) of the rows up to the next new class.
        """
        if method == "predict_proba":
            _gives_probabilities(self)
        elif method not in ("predict", "decision_function", "segments"):
            raise ValueError(f"method must be 'predict', 'decision_function' or 'predict_proba', not {method!r}")
        parts = self._stream(X, y, sample_weight, classes, record=True)
        if method == "segments":
            return parts
        if method == "predict":
            return np.concatenate([labels.decide(known, scores) for known, scores in parts])
        if method == "decision_function":
            return _flat(labels.aligned(parts))
        out = np.zeros((sum(len(scores) for _, scores in parts), len(self.classes_)))
        rows = 0
        for known, scores in parts:
            out[rows : rows + len(scores), np.searchsorted(self.classes_, known)] = probabilities(scores, len(known))
            rows += len(scores)
        return out

    @predicting
    def decision_function(self, X):
        """Return the scores: (rows,) for two classes, positive for the second; (rows, classes) for more."""
        return _flat(self._scores(X))

    @predicting
    def predict(self, X):
        """Predict the label of each row."""
        best = self._of_few(X, scoring.FewScores.best)
        if best is None or len(self.classes_) == 1:
            scores = self._scores(X)  # first: it raises if nothing has been learned
            return labels.decide(self.classes_, scores)
        return self.classes_[best]

    @there_if(_gives_probabilities)
    @predicting
    def predict_proba(self, X):
        """Predict the probability of each class, (rows, classes)."""
        scores = self._scores(X)
        return probabilities(scores, len(self.classes_))

    def predict_one(self, x):
        """Predict the label of one event, a 1-D array; None before any learning."""
        with self._turns.lock:
            one: Any = self._one or self._make_ready()
            if one is None:
                return None
            if type(x) is not np.ndarray or x.dtype is not one.dtype or x.shape != one.shape:
                x = self._event(x)
            return self._label(self._score_event(x))

    def _label(self, score):
        """Return the label of a score, a number or one number per class."""
        if type(score) is float:  # fast path for one or two classes
            return self.classes_[-1 if score >= 0.0 else 0]
        return labels.decide(self.classes_, score[np.newaxis])[0]

    @there_if(_gives_probabilities)
    def predict_proba_one(self, x):
        """Predict the probability of each class for one event, a 1-D array, as a dictionary; empty before any learning."""
        with self._turns.lock:
            if not (self._one or self._make_ready()):
                return {}
            return self._named_probabilities(self._score_event(self._event(x)))

    @there_if(_gives_probabilities)
    def _named_probabilities(self, score) -> dict:
        found = probabilities(np.reshape(score, (1, -1)), len(self.classes_))
        return dict(zip(self.classes_.tolist(), found[0].tolist(), strict=True))


class OnlineClassifier(BaseOnlineClassifier):
    """A classifier with class weights."""

    class_weight: dict | str | None = parameter(
        default=None,
        allowed=(NOTHING, OneOf(("balanced",)), Weights()),
        doc='Weights of the classes, which multiply the gradient; "balanced" follows the counts seen so far.',
    )


class BaseOnlineRegressor(RegressorMixin, Watched, GivesIntervals, Explains, OnlineEstimator):
    """A regressor that learns from a stream, targets as they are."""

    task = "regression"
    single_methods = {"predict": ("predict_one", "_score_itself")}

    def fit(self, X, y, sample_weight=None):
        """Fit the model to the rows, discarding earlier state."""
        return self._fit(X, y, sample_weight)

    def partial_fit(self, X, y, sample_weight=None):
        """Update the model with the rows."""
        if not self._learn_plain(X, y, sample_weight):
            self._stream(X, y, sample_weight)
        return self

    def predict_then_learn(self, X, y, method="predict", sample_weight=None):
        """Learn the rows; return the prediction for each row just before it was learned."""
        if method != "predict":
            raise ValueError(f"method must be 'predict', not {method!r}")
        return self._stream(X, y, sample_weight, record=True)[0][1][:, 0]

    @predicting
    def predict(self, X):
        """Predict the value of each row."""
        return self._meant(self._scores(X)[:, 0])

    def predict_one(self, x):
        """Predict the value of one event, a 1-D array; None before any learning."""
        with self._turns.lock:
            return self._score_event(self._event(x)) if self._one or self._make_ready() else None

    def _meant(self, scores):
        """Return scores in the units of the targets."""
        return scores

    def _plain_targets(self, y, shape, weights):
        if type(y) is not np.ndarray or y.shape != shape or y.dtype.kind not in "biuf":
            return None
        y, highest = np.ascontiguousarray(y, np.float64), TARGET[np.dtype(self._problem.dtype).name]
        return (y, NONE, None) if self._batches().are_within(y[np.newaxis], -highest, highest) else None


class OnlineRegressor(BaseOnlineRegressor):
    """A regressor that learns targets on their running scale, and predicts in their own units.

    With ``standardise_target``, ``predict(X)`` is ``target_mean_ + target_spread_ * kernel(X, support_vectors_) @ dual_coef_``.
    """

    standardise_target: bool = parameter(
        default=True,
        allowed=SWITCH,
        doc="Whether targets are learned on their running scale, the mean and spread of the targets so far, so that other "
        "parameters mean the same in all units. Predictions are in the targets' own units.",
    )

    @property
    def target_mean_(self) -> float:
        """The mean of the targets learned; 0 if they are not standardised."""
        self._fitted()
        return 0.0 if self._target_scale is None else self._target_scale.mean

    @property
    def target_spread_(self) -> float:
        """The standard deviation of the targets learned; 1 if they are not standardised."""
        self._fitted()
        return 1.0 if self._target_scale is None else self._target_scale.spread

    def predict_then_learn(self, X, y, method="predict", sample_weight=None):
        """Learn the rows; return what ``predict`` would have returned for each just before it was learned."""
        said = self._as_said(super().predict_then_learn(X, y, method, sample_weight)[:, np.newaxis])[:, 0]
        self.__dict__.pop("_before", None)
        return said

    def _as_said(self, scores):
        if self._target_scale is None:
            return scores
        means, spreads = self._before
        return means[:, np.newaxis] + spreads[:, np.newaxis] * scores

    def _as_predicted(self, scores):
        return self._meant(scores)

    def _plain_targets(self, y, shape, weights):
        found = super()._plain_targets(y, shape, weights)
        if found is None or self._target_scale is None:
            return found
        scale, scaled, _, _ = self._target_scale.learned(found[0], np.ones(shape) if weights is NONE else weights)
        return scaled, NONE, scale

    def _score_event(self, x):
        return self._meant(super()._score_event(x))

    def _reader(self, x):
        read, scale = super()._reader(x), self._target_scale
        return read if scale is None else lambda: scale.meant(read())

    def _meant(self, scores):
        return scores if self._target_scale is None else self._target_scale.meant(scores)

    def _begin_targets(self, y, classes=None):
        self._target_scale: TargetScale | None = TargetScale() if self.standardise_target else None
        return super()._begin_targets(y, classes)

    def _targets(self, y, weights):
        if self._target_scale is None:
            return super()._targets(y, weights)
        self._target_scale, scaled, *self._before = self._target_scale.learned(y, weights)
        return scaled

    def _all_targets(self, y, weights):
        if self._target_scale is None:
            return super()._all_targets(y, weights)
        self._target_scale = self._target_scale.learned(y, weights)[0]
        return self._target_scale.scaled(y)

    def _learn_with_statistics(self, x, y, target, weight):
        """Learn an event, its target on the scale of those up to it."""
        if weight > 0.0 and self._target_scale is not None:
            scale, events = self._target_scale.with_one(target), events_of(self._state)
            try:
                self._learn_event(x, scale.scaled(target), weight)
                self._target_scale = scale
            except BaseException:  # which may have arrived when the event had been learned
                if events_of(self._state) != events:
                    self._target_scale = scale
                raise

    def _take_classes(self, header, arrays):
        is_scaled = entry(header, "resolved", dict).get("standardise_target", self.standardise_target)
        if ("target_scale" in header) != is_scaled:
            raise ValueError("the scale of the targets does not fit the model")
        self._target_scale = TargetScale.from_plain(entry(header, "target_scale", list)) if is_scaled else None
        return super()._take_classes(header, arrays)


def _flat(scores: np.ndarray) -> np.ndarray:
    return scores[:, 0] if scores.shape[1] == 1 else scores


def probabilities(scores: np.ndarray, classes: int) -> np.ndarray:
    """Return the probability of each class, (rows, classes), from scores, (rows, outputs)."""
    from scipy.special import expit, softmax  # slow to import

    if classes == 1:
        return np.ones((len(scores), 1))
    if scores.shape[1] > 1:
        return softmax(scores, axis=1)
    positive = expit(scores[:, 0])
    return np.column_stack([1.0 - positive, positive])
