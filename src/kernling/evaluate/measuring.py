"""Helpers shared by the evaluation protocols."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone, is_regressor

from ..estimators import labels, task_choice
from ..estimators.base import OnlineEstimator
from ..estimators.checking import is_fitted
from ..estimators.task_choice import TaskDeferred
from ..estimators.tasks import probabilities
from ..pipeline import StreamPipeline, last_step
from ..tables.fill import Fill
from ..tables.scalers import Standardise
from .label_metrics import Counts
from .metrics import OTHER_NAMES, metric, metric_class
from .rows import Row
from .running import Batch

_DEFAULTS = {"classification": ("mistakes", "accuracy"), "regression": ("rmse", "mae")}
TRIAL = 100  # rows after which a method has run all of its code; some methods collect a mini-batch first
_compiled: set[tuple] = set()


def task_of(model: Any, y: np.ndarray) -> str:
    """Return the task of a model; if it is not decided yet, that of these targets."""
    if isinstance(last_step(model), TaskDeferred):
        return task_choice.task_of(y)
    return getattr(model, "task", None) or ("regression" if is_regressor(model) else "classification")


def chosen_metrics(metrics: Sequence[str] | None, task: str) -> list[str]:
    """Return the requested metrics, or the default metrics of the task."""
    names = [OTHER_NAMES.get(name, name) for name in (_DEFAULTS[task] if metrics is None else metrics)]
    for name in names:
        if metric_class(name).task != task:
            raise ValueError(f"the metric {name!r} is not defined for {task}")
    return names


def data_facts(info: Row) -> Row:
    return {"data": str(info.get("source")), "data_info": json.dumps(info, sort_keys=True, default=str)}


def orders(n: int, permutations: int, seed: int) -> Iterator[tuple[int, np.ndarray]]:
    """Yield random permutations of n rows, each with its index."""
    if permutations < 1:
        raise ValueError(f"permutations must be at least 1, not {permutations}")
    for p in range(permutations):
        yield p, np.random.default_rng(seed + p).permutation(n)


def copy_with_seed(model: Any, seed: int) -> Any:
    """Return an unfitted copy of a model, with ``random_state`` set if it has one."""
    copy = clone(model)
    return copy.set_params(**{name: seed for name in copy.get_params() if name.split("__")[-1] == "random_state"})


def warm_up(model: Any, X: Any, y: np.ndarray) -> None:
    """Train a copy of the last step on numbers like these, so that compilation is not part of the measured time."""
    last = last_step(model)
    trial = last.model_for(y) if isinstance(last, TaskDeferred) else clone(last)
    kind = type(trial), str(getattr(trial, "dtype", None)), sparse.issparse(X)
    if hasattr(trial, "predict_then_learn") and kind not in _compiled:
        rows = X[:TRIAL]
        if isinstance(model, StreamPipeline) and not sparse.issparse(X):  # rows are encoded once, when they are learned
            rows = np.random.default_rng(0).normal(size=(len(y[:TRIAL]), 2))
            Standardise().learn_transform(rows)
            Fill(rows.shape[1]).learn(rows.copy())
        trial.predict_then_learn(rows, y[:TRIAL])
        _compiled.add(kind)


def resolve(model: Any, X: Any, y: np.ndarray) -> None:
    """Resolve "auto" parameters from all rows of the first chunk, however many pieces it is then learned in."""
    if isinstance(model, StreamPipeline):
        model.begin(X, y)
    elif isinstance(model, OnlineEstimator) and not is_fitted(model):
        model.partial_fit(X, np.full(len(y), y[0]), sample_weight=np.zeros(len(y)))


def learn(model: Any, X: Any, y: np.ndarray, need: str, probability: bool) -> tuple[Batch, Any]:
    """Learn rows; return the predictions made before learning each of them, and the rows as the model's last step got them."""
    method = "predict" if need == "predict" else "segments"
    if isinstance(model, StreamPipeline):
        found, X = model.predict_then_learn(X, y, method=method, return_rows=True)
    else:
        found = model.predict_then_learn(X, y, **({} if need == "predict" else {"method": method}))
    if need == "predict":
        return Batch(y, found), X
    pieces = np.split(y, np.cumsum([len(scores) for _, scores in found])[:-1])
    parts = [
        _batch_from_scores(classes, scores, part, probability) for (classes, scores), part in zip(found, pieces, strict=True)
    ]
    return _concatenate(parts), X


def _predict(model: Any, X: Any, y: np.ndarray, names: Sequence[str]) -> Batch:
    if all(metric_class(name).needs == "predict" for name in names):
        return Batch(y, model.predict(X))
    return _batch_from_scores(model.classes_, model.decision_function(X), y, "log_loss" in names)


def measure_all(model: Any, X: Any, y: np.ndarray, names: Sequence[str]) -> Row:
    """Return metrics of a fitted model on some rows, and for classifiers the fraction of the majority class."""
    predicted = _predict(model, X, y, names)
    counts = Counts(getattr(model, "classes_", None))
    row: Row = {}
    if metric_class(names[0]).task == "classification":
        counts.update(predicted)
        row["majority"] = float(counts.majority)
    for name in names:
        row[name] = metric(name, counts).measure(model, X, predicted)
    return row


def measure(model: Any, X: Any, y: np.ndarray, name: str) -> float:
    """Return one metric of a fitted model on some rows."""
    return measure_all(model, X, y, [name])[name]


def _batch_from_scores(classes: np.ndarray, scores: np.ndarray, y: np.ndarray, probability: bool) -> Batch:
    """Return labels, scores and probabilities computed from the scores of a classifier, (rows,) or (rows, outputs)."""
    table = scores[:, None] if scores.ndim == 1 else scores
    flat = table.shape[1] == 1
    given = sure = None
    if probability:
        each = probabilities(table, len(classes))
        place = np.searchsorted(classes, y).clip(0, len(classes) - 1)
        given, sure = np.where(classes[place] == y, each[np.arange(len(y)), place], 0.0), each.max(axis=1)
    return Batch(y, labels.decide(classes, table), table[:, 0] if flat else table, given, None if flat else classes, sure)


def _concatenate(parts: list[Batch]) -> Batch:
    """Concatenate batches of predictions of a model that may have met new classes in between."""
    classes = parts[-1].classes
    sides = zip(*((part.probability, part.confidence) for part in parts), strict=True)
    given, sure = (None if side[0] is None else np.concatenate(side) for side in sides)
    return Batch(
        np.concatenate([part.y for part in parts]),
        np.concatenate([part.predicted for part in parts]),
        np.concatenate([part.score if classes is None else _columns(part, classes) for part in parts]),
        given,
        classes,
        sure,
    )


def _columns(part: Batch, classes: np.ndarray) -> np.ndarray:
    """Return one column of scores per class, NaN for classes without a column of their own."""
    table = np.full((len(part.y), len(classes)), np.nan)
    if part.classes is not None:
        table[:, np.searchsorted(classes, part.classes)] = part.score
    return table


def weights_of_experts(model: Any) -> Row:
    """Return the weights of the experts of a mixture, as JSON; nothing for other models."""
    weights = getattr(last_step(model), "expert_weights_", None)
    return {} if weights is None else {"experts": json.dumps({name: float(f"{w:.4g}") for name, w in weights.items()})}


def size_of(model: Any) -> Row:
    """Return the size of a model; for models of other libraries, the number of support vectors or else of features."""
    if hasattr(model, "learner") or hasattr(model, "nbytes_"):
        return {name: getattr(model, f"{name}_", None) for name in ("n_stored", "n_support", "nbytes")}
    last = model[-1] if hasattr(model, "steps") else model
    return {"n_stored": len(last.support_) if hasattr(last, "support_") else last.n_features_in_}
