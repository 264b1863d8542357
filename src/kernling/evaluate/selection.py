"""Grid search on rows other than those used for the evaluation."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from ..io import stream
from .measuring import copy_with_seed, measure
from .metrics import metric_class
from .protocols import test_then_train

VALIDATION = 0.2


class Choice(NamedTuple):
    """Result of :func:`choose`.

    Examples
    --------
    >>> import kernling as kl
    >>> from kernling.evaluate import Choice
    >>> print(Choice(kl.AVMClassifier(gamma=2.0), {"gamma": 2.0}).params)
    {'gamma': 2.0}
    """

    model: Any  # unfitted, with the parameters set
    params: dict[str, Any]


def points_of(grid: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """Return all points of a grid; a value that is a mapping sets several parameters together.

    Examples
    --------
    >>> from kernling.evaluate.selection import points_of
    >>> points_of({"gamma": [1, 2], "steps": [{"eta": 4, "second_eta": 1}]})
    [{'gamma': 1, 'eta': 4, 'second_eta': 1}, {'gamma': 2, 'eta': 4, 'second_eta': 1}]
    """
    made = []
    for values in itertools.product(*grid.values()):
        point: dict[str, Any] = {}
        for name, value in zip(grid, values, strict=True):
            point |= value if isinstance(value, Mapping) else {name: value}
        made.append(point)
    return made


def choose(
    make: Callable[[dict[str, Any]], Any],
    grid: Mapping[str, Sequence[Any]],
    X: Any,
    y: np.ndarray,
    *,
    metric: str,
    how: str = "split",
    seed: int = 0,
) -> Choice:
    """Choose the best point of a grid on these rows.

    Parameters
    ----------
    make : callable
        Returns a model, given a dictionary of parameters.
    grid : mapping of str to sequence
        Values to try by parameter; see :func:`points_of`.
    X, y : arrays
    metric : str
    how : {"online", "split", "folds"}
        Test-then-train; training on four fifths and testing on the rest; or three-fold cross-validation.
    seed : int
        Seed of the order of rows and of the models.

    Examples
    --------
    >>> import kernling as kl
    >>> from kernling import evaluate, io
    >>> X, y = io.synthetic("spirals", 2000).load()
    >>> make, grid = lambda point: kl.AVMClassifier(delta=0.1, **point), {"gamma": [0.1, 30.0]}
    >>> evaluate.choose(make, grid, X, y, metric="mistakes", how="online").params
    {'gamma': 30.0}
    """
    points = points_of(grid)
    if len(points) == 1:
        return Choice(make(points[0]), points[0])
    order = np.random.default_rng(seed).permutation(len(y))
    X, y = X[order], y[order]
    sign = 1.0 if metric_class(metric).low_is_good else -1.0
    if how == "online":
        values = [sign * _online(copy_with_seed(make(point), seed), X, y, metric) for point in points]
    elif how in ("split", "folds"):
        parts = _parts(y, how, metric_class(metric).task)
        values = [sign * _holdout(copy_with_seed(make(point), seed), X, y, parts, metric) for point in points]
    else:
        raise ValueError(f"how must be 'online', 'split' or 'folds', not {how!r}")
    best = points[int(np.argmin(np.nan_to_num(values, nan=np.inf)))]
    return Choice(make(best), best)


def _parts(y: np.ndarray, how: str, task: str) -> list[tuple[Any, Any]]:
    """Return the indices of training and test rows."""
    if how == "split":
        cut = len(y) - round(VALIDATION * len(y))
        return [(slice(0, cut), slice(cut, None))]
    from sklearn.model_selection import KFold, StratifiedKFold  # slow to import

    return list((StratifiedKFold(3) if task == "classification" else KFold(3)).split(y, y))


def _online(model: Any, X: Any, y: np.ndarray, metric: str) -> float:
    return test_then_train(model, stream(X, y), metrics=[metric])[-1][metric]


def _holdout(model: Any, X: Any, y: np.ndarray, parts: list[tuple[Any, Any]], metric: str) -> float:
    return float(np.mean([measure(clone(model).fit(X[fit], y[fit]), X[held], y[held], metric) for fit, held in parts]))
