"""Merging several models into one of the size of a single model."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..components.conformal import EVENTS
from ..core.blas import one_thread
from ..core.fourier import Linear
from ..estimators.base import OnlineEstimator
from ..estimators.learner import typed
from ..estimators.target_scale import merged_scale
from . import rules

FREE = {"random_state", "block_size", "passes", "shuffle", "n_jobs", "verbose"}  # do not affect the model's function


@one_thread
def merge(
    models: Sequence[Any], weights: Sequence[float] | None = None, *, start: Any = None, budget: int | None = None
) -> Any:
    """Merge several models into one: the weighted mean of their functions, reduced to the size that the method allows.

    Both the function that predicts and the one that continues to learn are weighted means, up to
    ``certificate()["merge_error"]``, a bound on the distance in the kernel's space: for kernels of the distance, no score
    differs by more (with ``output="auto"``, this holds for each of the outputs that are combined).  Events, class counts and
    class means are added, and classes are united.

    - AVM models remain covered by cells, methods with a budget keep it, and POLK stays within the error of its own steps.
    - Methods that never remove points keep the union of the points; random features keep the mean of their weights.
    - Kernel least squares on the same points or features gives least squares on all events, which is better than the mean.
    - The experts of a mixture are merged one by one.

    Parameters
    ----------
    models : sequence of estimators
        Fitted models of one class, with the same columns and parameters, including resolved ones such as ``gamma_``.  They
        are left unchanged.  Rows of incomplete mini-batches are learned first, as at the end of ``fit``.
    weights : sequence of float, optional
        Weights of the models; by default the number of events that each has learned (since ``start``).
    start : estimator, optional
        The model that all were continued from, if any: what it had learned is counted once.
    budget : int, optional
        Maximum number of points, for methods without a budget or with a larger one.

    Returns
    -------
    estimator
        A new model, which can continue to learn.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> import kernling as kl
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> X = scale(X)
    >>> parts = [kl.AVMClassifier(gamma=0.02, delta=5.0, lam=1e-3).fit(X[i::2], y[i::2]) for i in range(2)]
    >>> model = kl.merge(parts)
    >>> print(model.t_, f"{model.score(X, y):.2f}")
    569 0.95
    """
    models = list(models)
    if not models:
        raise ValueError("models is empty: pass at least one model")
    for place, model in enumerate(models):
        _check_alike(models[0], model, f"models[{place}]")
    if start is not None:
        _check_alike(models[0], start, "start")
    if budget is not None and budget < 1:
        raise ValueError(f"budget must be at least 1 point, not {budget}")
    shares = _weights(models, weights, start)
    if len(models) == 1:
        return copy.deepcopy(models[0])
    labels = _all_labels([*models, *([] if start is None else [start])])
    ready = [_ready(model, labels) for model in models]
    begun = None if start is None else _ready(start, labels)
    return _tree(list(zip(ready, shares, strict=True)), begun, math.inf if budget is None else budget)[0]


def _tree(weighted: list[tuple[Any, float]], start: Any, budget: float) -> tuple[Any, float]:
    """Merge neighbours in a binary tree, whose shape depends only on the number of models."""
    while len(weighted) > 1:
        pairs = [weighted[i : i + 2] for i in range(0, len(weighted), 2)]
        weighted = [pair[0] if len(pair) == 1 else merge_two(*pair[0], *pair[1], start, budget) for pair in pairs]
    return weighted[0]


def merge_two(a: Any, a_weight: float, b: Any, b_weight: float, start: Any, budget: float = math.inf) -> tuple[Any, float]:
    """Merge two models with the same classes; return the model and its weight."""
    weight = a_weight + b_weight
    shares = np.array([a_weight, b_weight]) / weight if weight > 0.0 else np.full(2, 0.5)
    merged = copy.deepcopy(a)
    method, begun = a.learner, None if start is None else start._state
    units = rules.Units()
    if a._target_scale is not None:
        scales = [one._target_scale for one in (a, b, start) if one is not None]
        merged._target_scale = merged_scale(scales, shares)
        units = rules.Units(*np.transpose([merged._target_scale.units_of(scale) for scale in scales]))
    merged._state, error = rules.merged_states(
        method.merge, a._setup, a._params, (a._state, b._state), begun, shares, units, budget
    )
    if hasattr(merged, "_counts"):
        merged._counts = a._counts + b._counts - (0.0 if start is None else start._counts)
    if a._errors is not None:  # those of the model that has seen more, since a mean of both is neither's
        merged._errors = max((a._errors, b._errors), key=lambda errors: errors.record[EVENTS])
    if a._watch is not None:  # alarms and columns of the one that has seen more; the errors are those of a new model
        merged._watch = max((a, b), key=lambda model: model.t_)._watch.begun_anew()
    own = getattr(merged, "target_spread_", 1.0) * error
    merged._merged = (own + float(shares @ [_error(a), _error(b)]), merged.t_)
    merged.verify_state()
    return merged, weight


def _error(model: OnlineEstimator) -> float:
    """Return the merge error of a model, if it has not learned since it was merged."""
    return model.certificate().get("merge_error", 0.0)


def _ready(model: Any, labels: np.ndarray | None) -> Any:
    """Return a copy that knows all classes and has learned the rows of incomplete mini-batches."""
    model = copy.deepcopy(model)
    if model.learner.finish:
        model._state = model.learner.finish(model._setup, model._params, model._state)
    if labels is not None:
        for label in np.setdiff1d(labels, model.classes_):
            model._add_class(label)
        model._params = typed(model.learner.configure(model._problem)[0])
    return model


def _all_labels(models: list[Any]) -> np.ndarray | None:
    if not hasattr(models[0], "classes_"):
        return None
    found = models[0].classes_
    for model in models[1:]:
        if (found.dtype.kind in "OUS") != (model.classes_.dtype.kind in "OUS"):
            raise ValueError(f"labels of type {model.classes_.dtype} cannot be combined with labels of type {found.dtype}")
        found = np.union1d(found, model.classes_)
    return found


def _weights(models: list[Any], weights: Sequence[float] | None, start: Any) -> list[float]:
    if weights is None:
        return [float(model.t_ - (0 if start is None else start.t_)) for model in models]
    given = np.asarray(weights, dtype=np.float64)
    if given.shape != (len(models),):
        raise ValueError(f"weights has shape {given.shape}, but there are {len(models)} models")
    if not np.isfinite(given).all() or (given < 0.0).any() or not given.any():
        raise ValueError(f"weights must be finite, not negative and not all zero, not {given.tolist()}")
    return given.tolist()


def _check_alike(first: Any, other: Any, name: str) -> None:
    """Raise an error that names the first difference between models that cannot merge."""
    for model in (first, other):
        if not isinstance(model, OnlineEstimator):
            raise TypeError(f"merge takes kernling's estimators, not a {type(model).__name__}")
        check_is_fitted(model)
    if type(other) is not type(first):
        raise ValueError(f"{name} is a {type(other).__name__}, but models[0] is a {type(first).__name__}")
    for what, cure in _differences(first, other):
        raise ValueError(f"{name} differs from models[0] in {what}: {cure}")


def _differences(a: Any, b: Any) -> Iterator[tuple[str, str]]:
    """Yield pairs of a difference and its cure."""
    if a.n_features_in_ != b.n_features_in_:
        yield "the number of columns", f"{b.n_features_in_} and {a.n_features_in_}; train on the same columns"
    names = [list(getattr(model, "feature_names_in_", [])) for model in (a, b)]
    if names[0] and names[1] and names[0] != names[1]:
        own, other = next(pair for pair in zip(*names, strict=True) if pair[0] != pair[1])
        yield "the names of columns", f"{other!r} and {own!r}; give the columns in the same order"
    for name, own in a._problem.options.items():
        other = b._problem.options[name]
        if name not in FREE and not _same(own, other):
            given = a.get_params(deep=False).get(name)
            resolved = isinstance(given, str) and not isinstance(own, str)
            cure = f"it was derived from the data by {name}={given!r}; set it to a number" if resolved else "use the same value"
            yield name, f"{other!r} and {own!r}; {cure}"
    succeeded = any(getattr(model, "has_succeeded", False) for model in (a, b))  # with a gamma of its own
    if getattr(a, "gamma_", None) != getattr(b, "gamma_", None) and not succeeded:
        yield "gamma", f"{b.gamma_:g} and {a.gamma_:g}, which settled on the data; give a number, or begin both from one model"
    for own, other in zip(a._state, b._state, strict=True):
        if isinstance(own, Linear) and not np.array_equal(own.frequencies, other.frequencies):
            yield "random frequencies", "give all models the same random_state"


def _same(a: Any, b: Any) -> bool:
    return a == b and isinstance(a, bool) == isinstance(b, bool)
