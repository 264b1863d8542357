"""Adapters that make estimators River models: rows are dictionaries, learned and predicted one by one."""

from __future__ import annotations

import copy
from collections.abc import Hashable, Iterator
from typing import Any

import numpy as np
from sklearn.base import clone

from ..estimators.checking import is_fitted
from ..estimators.resolve import LOCAL, SMOOTH
from ..estimators.tasks import probabilities
from ..methods.avm import AVMClassifier, AVMRegressor
from ..methods.spa import SPAOneClass
from .names import Vocabulary

try:
    from river import base
    from river.utils import dataframe
except ImportError as error:
    raise ImportError("kernling.compat needs River: pip install 'kernling[river]'") from error

TIE = 1e-9  # relative to the largest score: above rounding errors, below meaningful differences


def to_river(model: Any, columns: int = 128, seed: int | None = None) -> Any:
    """Convert an estimator or a :class:`kernling.StreamPipeline` to a River model.

    Classifiers and regressors get ``learn_one``, ``predict_one``, ``predict_proba_one`` (if the loss defines probabilities),
    ``learn_many``, ``predict_many``, ``predict_proba_many``; one-class learners become anomaly detectors, with a
    ``score_one`` from 0 to 1, high for outliers: the share of the latest events that looked more normal.  ``learn_one`` takes a
    weight, ``w``.

    Features may vary between rows.  A kernel model has a fixed number of columns, which is declared: the first ``columns``
    names get one each as they appear, and later names share these columns by their hash, with a warning.  Missing features are
    0, so unused columns only affect speed.  Text becomes a separate feature
    (``{"from": "JFK"}`` counts as ``{"from=JFK": 1}``).

    ``gamma="scale"`` is 1 / (number of features of the first row), since only that row is known, "local" is 32 times that, and
    "smooth" half of that.

    Parameters
    ----------
    model : estimator
        Left unchanged.  A fitted model continues to learn; its columns are its feature names, or 0, 1, ...
    columns : int
    seed : int, optional
        Seed of the model's random numbers, instead of its ``random_state``.

    Examples
    --------
    >>> import kernling as kl
    >>> from kernling.compat import to_river
    >>> from river import datasets, evaluate, metrics, preprocessing
    >>> model = preprocessing.StandardScaler() | to_river(kl.AVMClassifier(loss="logistic", delta=1.0))
    >>> evaluate.progressive_val_score(datasets.Phishing(), model, metrics.Accuracy())
    Accuracy: 89.83%
    """
    kinds = {"classification": RiverClassifier, "regression": RiverRegressor, "oneclass": RiverAnomalyDetector}
    task = getattr(model, "task", None)
    if task not in kinds or not hasattr(model, "learn_one"):
        raise TypeError(f"to_river takes kernling's classifiers, regressors and one-class learners, not {model!r}")
    return kinds[task](model, columns, seed)


class _FromRows:
    """Base class of all adapters: the estimator that learns, and the columns of features."""

    def __init__(self, model: Any, columns: int = 128, seed: int | None = None):
        self.model = clone(model)
        self.columns = columns
        self.seed = seed
        if is_fitted(model):
            self.learned = copy.deepcopy(model)
            names = getattr(model, "feature_names_in_", range(model.n_features_in_))
            self._names = Vocabulary(model.n_features_in_, list(names))
        else:
            self.learned = clone(model)
            self._names = Vocabulary(columns)
        if seed is not None:
            self.learned.set_params(**dict.fromkeys(self._settings("random_state"), seed))

    def _settings(self, name: str) -> Iterator[str]:
        """Yield the parameters of this name, including those of steps."""
        return (each for each in self.learned.get_params() if each.rpartition("__")[2] == name)

    def _row(self, x: dict[Hashable, Any], learning: bool = False) -> np.ndarray:
        if learning and not self._names.place:
            self._begin(len(x))
        return self._names.row(x, learning)

    def _begin(self, features: int) -> None:
        """Resolve gamma from the features of the first row, so that unused columns change nothing."""
        params, factors = self.model.get_params(), {"scale": 1.0, "local": LOCAL, "smooth": SMOOTH}
        given = {name: params[name] for name in self._settings("gamma") if isinstance(params[name], str)}
        self.learned.set_params(**{name: factors[gamma] / max(features, 1) for name, gamma in given.items()})

    def _rows(self, X: Any, learning: bool = False) -> tuple[np.ndarray, Any]:
        """Return the rows of a frame, and River's handle of the frame."""
        frame = dataframe.into_frame(X)
        if learning and not self._names.place:
            self._begin(len(frame.columns))
        table = {name: frame[name].to_numpy() for name in frame.columns}
        if all(values.dtype.kind in "biuf" for values in table.values()):
            return self._names.rows(table, len(frame), learning), frame
        events = (dict(zip(table, values, strict=True)) for values in zip(*table.values(), strict=True))
        rows = [self._names.row({k: v for k, v in event.items() if v == v}, learning) for event in events]
        return np.array(rows).reshape(len(frame), self._names.columns), frame

    def _learn_one(self, x: dict[Hashable, Any], y: Any, w: float) -> None:
        known = len(self._names.place)
        try:
            self.learned.learn_one(self._row(x, learning=True), y, w)
        except Exception:
            self._names.forget(known)
            raise

    def _learn_many(self, X: Any, y: Any) -> None:
        known = len(self._names.place)
        try:
            self._learn_rows(X, y)
        except Exception:
            self._names.forget(known)
            raise

    def _learn_rows(self, X: Any, y: Any) -> None:
        rows, _ = self._rows(X, learning=True)
        if not len(rows):
            return
        y = dataframe.into_series(y).to_numpy()
        if is_fitted(self.learned):
            self.learned.partial_fit(rows, y)
            return
        learned = clone(self.learned)  # so that an error in a later row leaves the model unchanged
        learned.learn_one(rows[0], y[0])  # parameters are resolved from one row, as in learn_one
        if len(rows) > 1 or len(y) > 1:
            learned.partial_fit(rows[1:], y[1:])
        self.learned = learned

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {"model": cls._example()}  # type: ignore[attr-defined]


class RiverClassifier(_FromRows, base.MiniBatchClassifier):
    """A classifier as a River model; see :func:`to_river`."""

    _example = AVMClassifier

    @property
    def _multiclass(self) -> bool:
        return True

    def learn_one(self, x, y, w=1.0):
        self._learn_one(x, y, w)

    def predict_one(self, x, **kwargs):
        return _plain(self.learned.predict_one(self._row(x)))

    def predict_proba_one(self, x, **kwargs):
        self._need_probabilities()
        if not is_fitted(self.learned):
            return {}
        scores = np.reshape(self.learned.score_one(self._row(x)), (1, -1))
        classes = self.learned.classes_
        return dict(zip(classes.tolist(), probabilities(scores, len(classes))[0].tolist(), strict=True))

    def learn_many(self, X, y):
        self._learn_many(X, y)

    def predict_many(self, X):
        rows, frame = self._rows(X)
        labels = self.learned.predict(rows).tolist() if is_fitted(self.learned) else [None] * len(rows)
        for place in self._ties(rows) if is_fitted(self.learned) else ():
            labels[place] = _plain(self.learned.predict_one(rows[place]))
        return dataframe.to_native_series(labels, name=None, like=frame)

    def _ties(self, rows: np.ndarray) -> Iterator[int]:
        """Yield rows with tied scores, whose rounding differs between single rows and batches."""
        scores = self.learned.decision_function(rows)
        if scores.ndim == 1:
            margins = np.abs(scores)
        else:
            margins = np.diff(np.partition(scores, scores.shape[1] - 2, axis=1)[:, -2:], axis=1)[:, 0]
        return iter(np.flatnonzero(margins <= TIE * np.abs(scores).max(initial=0.0)).tolist())

    def predict_proba_many(self, X):
        self._need_probabilities()
        rows, frame = self._rows(X)
        if not is_fitted(self.learned):
            return dataframe.to_native_frame({}, like=frame)
        table = dict(zip(self.learned.classes_.tolist(), self.learned.predict_proba(rows).T, strict=True))
        return dataframe.to_native_frame(table, like=frame)

    def _need_probabilities(self) -> None:
        if not hasattr(self.learned, "predict_proba"):
            raise NotImplementedError("probabilities need loss='softmax', or loss='logistic' with no more than two classes")


class RiverRegressor(_FromRows, base.MiniBatchRegressor):
    """A regressor as a River model; see :func:`to_river`."""

    _example = AVMRegressor

    def learn_one(self, x, y, w=1.0):
        self._learn_one(x, y, w)

    def predict_one(self, x):
        said = self.learned.predict_one(self._row(x))
        return 0.0 if said is None else said

    def learn_many(self, X, y):
        self._learn_many(X, y)

    def predict_many(self, X):
        rows, frame = self._rows(X)
        values = self.learned.predict(rows) if is_fitted(self.learned) else np.zeros(len(rows))
        return dataframe.to_native_series(values, name=None, like=frame)


class RiverAnomalyDetector(_FromRows, base.AnomalyDetector):
    """A one-class learner as a River anomaly detector; see :func:`to_river`."""

    _example = SPAOneClass

    def learn_one(self, x, w=1.0):
        self._learn_one(x, None, w)

    def score_one(self, x):
        """Return the share of the latest events that looked more normal, from 0 to 1 as River's metrics expect."""
        if not is_fitted(self.learned):
            return 0.0
        model = getattr(self.learned, "model_", self.learned)  # the last step of a pipeline
        recent = model.recent_scores_ - model.offset_
        return float(np.mean(recent > self.learned.score_one(self._row(x)))) if len(recent) else 0.0


def _plain(label: Any) -> Any:
    return label.item() if isinstance(label, np.generic) else label
