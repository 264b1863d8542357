"""Adapters that make River models estimators, so that they can be evaluated like all others."""

from __future__ import annotations

import copy
from collections.abc import Hashable, Iterator
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

try:
    from river import base
except ImportError as error:
    raise ImportError("kernling.compat needs River: pip install 'kernling[river]'") from error


def from_river(model: Any) -> Any:
    """Convert a River classifier or regressor, or a River pipeline that ends in one, to an estimator.

    It has ``fit``, ``partial_fit``, ``predict``, ``predict_proba`` and ``predict_then_learn``, so :mod:`kernling.evaluate` can
    run it along with others.  Rows become dictionaries: names are the column names, or 0, 1, ...; sparse rows contain only what
    is stored.  Binary models receive False and True, whatever the labels are.

    Parameters
    ----------
    model : river.base.Classifier or river.base.Regressor
        Left unchanged.

    Examples
    --------
    >>> from kernling.compat import from_river
    >>> from kernling.evaluate import test_then_train
    >>> from kernling.io import synthetic
    >>> from river import neighbors
    >>> rows = test_then_train(from_river(neighbors.KNNClassifier(n_neighbors=3)), synthetic("spirals", 1000))
    >>> print(f"{rows[-1]['mistakes']:.2f}")
    0.01
    """
    if isinstance(model, base.Classifier):
        return FromRiverClassifier(model)
    if isinstance(model, base.Regressor):
        return FromRiverRegressor(model)
    raise TypeError(f"from_river takes classifiers and regressors of River, not {model!r}")


class _FromRiver(BaseEstimator):
    """Base class of both adapters."""

    def __init__(self, model):
        self.model = model

    def _learn(self, X, y, fresh: bool, said: Any = None, classes: Any = None) -> list:
        """Learn the rows one by one; return the result of ``said`` for each before it was learned."""
        before = dict(self.__dict__)
        try:
            X, y = validate_data(self, X, y, accept_sparse="csr", reset=fresh, y_numeric=self.task == "regression")
            if fresh:
                self.learned_ = copy.deepcopy(self.model)
            targets = self._targets(y, classes, fresh)
        except (ValueError, TypeError):
            self.__dict__.clear()
            self.__dict__.update(before)
            raise
        answers = []
        for x, target in zip(self._events(X), targets, strict=True):
            if said:
                answers.append(said(x))
            self.learned_.learn_one(x, target)
        return answers

    def _targets(self, y, classes, fresh) -> list:
        return y.tolist()

    def _is_fresh(self) -> bool:
        return not hasattr(self, "learned_")

    def _events(self, X) -> Iterator[dict[Hashable, float]]:
        names = getattr(self, "feature_names_in_", np.arange(X.shape[1])).tolist()
        if sparse.issparse(X):
            for first, last in zip(X.indptr[:-1], X.indptr[1:], strict=True):
                yield {names[j]: value for j, value in zip(X.indices[first:last], X.data[first:last].tolist(), strict=True)}
        else:
            for row in X.tolist():
                yield dict(zip(names, row, strict=True))

    def _rows(self, X) -> Iterator[dict[Hashable, float]]:
        check_is_fitted(self)
        return self._events(validate_data(self, X, accept_sparse="csr", reset=False))

    @property
    def nbytes_(self) -> int:
        """Memory of the model in bytes, as measured by River."""
        check_is_fitted(self)
        return self.learned_._raw_memory_usage

    def plain_params(self) -> dict[str, Any]:
        """Return the model as printed by River, for rows of results."""
        return {"model": repr(self.model)}

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def _gives_probabilities(self) -> bool:
    try:
        copy.deepcopy(self.model).predict_proba_one({})
    except NotImplementedError:
        raise AttributeError(f"{self.model!s} has no probabilities") from None
    except Exception:  # it has probabilities, but not for a row without features
        pass
    return True


class FromRiverClassifier(ClassifierMixin, _FromRiver):
    """A classifier of River as an estimator; see :func:`from_river`."""

    task = "classification"
    codes_: dict[Any, Any]

    def fit(self, X, y):
        """Fit the model to the rows, discarding earlier state."""
        self._learn(X, y, fresh=True)
        return self

    def partial_fit(self, X, y, classes=None):
        """Update the model with the rows."""
        self._learn(X, y, self._is_fresh(), classes=classes)
        return self

    def predict_then_learn(self, X, y, method="predict", classes=None):
        """Learn the rows; return the output of ``method`` for each row just before it was learned.

        With "segments", the result is a list of one pair: all classes, and the scores (rows, outputs).
        """
        kinds = {"predict": self._label} | dict.fromkeys(
            ("predict_proba", "decision_function", "segments"), self._probabilities
        )
        if method not in kinds:
            raise ValueError(f"method must be 'predict', 'decision_function' or 'predict_proba', not {method!r}")
        if method != "predict":
            _gives_probabilities(self)
        said = np.array(self._learn(X, y, self._is_fresh(), kinds[method], classes))
        if method == "segments":
            scores = _scores(said)
            return [(self.classes_, scores if scores.ndim == 2 else scores[:, np.newaxis])]
        return _scores(said) if method == "decision_function" else said

    def _targets(self, y, classes, fresh):
        check_classification_targets(y)
        known = {} if fresh else dict(self.codes_)
        new = [label for label in np.unique(y if classes is None else classes).tolist() if label not in known]
        self.codes_ = known | (dict(zip(new, new, strict=True)) if self.model._multiclass else _bits(new, known))
        self.classes_ = np.array(sorted(self.codes_))
        self._labels = {code: label for label, code in self.codes_.items()}
        unknown = set(y.tolist()) - self.codes_.keys()
        if unknown:
            raise ValueError(f"y has the label {min(unknown)!r}, which is not among the given classes")
        return [self.codes_[label] for label in y.tolist()]

    def _label(self, x):
        code = self.learned_.predict_one(x)
        return self._labels.get(code, self.classes_[0])

    def _probabilities(self, x) -> list[float]:
        said = self.learned_.predict_proba_one(x)
        k = len(self.classes_)
        return [said.get(self.codes_[label], 0.0) for label in self.classes_.tolist()] if said and k > 1 else [1.0 / k] * k

    def predict(self, X):
        """Predict the label of each row."""
        return np.array([self._label(x) for x in self._rows(X)], dtype=self.classes_.dtype)

    @available_if(_gives_probabilities)
    def predict_proba(self, X):
        """Predict the probability of each class, (rows, classes)."""
        return np.array([self._probabilities(x) for x in self._rows(X)])

    @available_if(_gives_probabilities)
    def decision_function(self, X):
        """Return the log-odds of the second of two classes, or the log-probability of each class."""
        return _scores(self.predict_proba(X))

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = bool(self.model._multiclass)
        return tags


class FromRiverRegressor(RegressorMixin, _FromRiver):
    """A regressor of River as an estimator; see :func:`from_river`."""

    task = "regression"

    def fit(self, X, y):
        """Fit the model to the rows, discarding earlier state."""
        self._learn(X, y, fresh=True)
        return self

    def partial_fit(self, X, y):
        """Update the model with the rows."""
        self._learn(X, y, self._is_fresh())
        return self

    def predict_then_learn(self, X, y, method="predict"):
        """Learn the rows; return the prediction for each row just before it was learned."""
        if method != "predict":
            raise ValueError(f"method must be 'predict', not {method!r}")
        return np.array(self._learn(X, y, self._is_fresh(), lambda x: self.learned_.predict_one(x)), dtype=np.float64)

    def predict(self, X):
        """Predict the value of each row."""
        return np.array([self.learned_.predict_one(x) for x in self._rows(X)], dtype=np.float64)


def _bits(new: list, known: dict) -> dict:
    """Map labels to False and True for River's binary models; a single label by its sign, if it has one."""
    if len(new) + len(known) > 2:
        raise ValueError("Only binary classification is supported. The type of the target is multiclass.")
    if len(new) == 1 and not known and not isinstance(new[0], str):
        return {new[0]: new[0] > 0}
    left = [code for code in (False, True) if code not in known.values()]
    return dict(zip(new, left, strict=False))


def _scores(p: np.ndarray) -> np.ndarray:
    """Return scores from which ``softmax``, or for two classes the logistic function, gives the probabilities."""
    logs = np.log(np.maximum(p, 1e-300))
    return logs[:, -1] - logs[:, 0] if logs.shape[1] <= 2 else logs
