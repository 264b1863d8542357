"""Evaluation on held-out rows, after and during training, and cross-validation with a parameter search inside each fold."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..pipeline import StreamPipeline
from .measuring import chosen_metrics, copy_with_seed, measure_all, orders, size_of, task_of, warm_up
from .references import WIDEST, ConstantAnswer, LinearModel, held_out_metrics
from .rows import Row, describe, load_data
from .selection import Choice


def batch(
    model: Any,
    data: Any,
    *,
    test: Any = None,
    test_size: float = 0.1,
    permutations: int = 1,
    seed: int = 0,
    metrics: Sequence[str] | None = None,
    linear: bool = False,
    on_row: Callable[[Row], None] | None = None,
) -> list[Row]:
    """Train on one part and evaluate on another, over random orders; one row per permutation.

    Orders and seeds are the same as in :func:`online`.

    Parameters
    ----------
    model : estimator
        Left unchanged.
    data : (X, y), Stream or Dataset
        The training rows; without ``test``, the last rows of each order are held out.
    test : (X, y), Stream or str, optional
        Test rows, or the name of a part of the data set.
    test_size : float
        Fraction of the rows that is held out.
    permutations, seed : int
    metrics, linear, on_row
        See :func:`test_then_train`.

    Returns
    -------
    list of dict
        With ``seconds`` (processor time of fitting), ``test_seconds``, and on the test rows the metrics, those of
        the constant answer (the most common label or the mean of the training rows), and ``majority``.

    Examples
    --------
    >>> import kernling as kl
    >>> from kernling import evaluate, io
    >>> rows = evaluate.batch(kl.AVMClassifier(gamma=4.0, delta=0.2), io.synthetic("checkerboard", 4000), test_size=0.25)
    >>> print(rows[0]["events"], rows[0]["accuracy"] > 0.85)
    3000 True
    """
    X, y, facts = load_data(data)
    task = task_of(model, y)
    names = chosen_metrics(metrics, task)
    facts["test_part"] = None
    held: tuple[Any, np.ndarray] | None = None
    if isinstance(test, str):
        held = data.load(test)
        facts["test_part"] = test
    elif test is not None:
        held = load_data(test)[:2]
    elif not 0.0 < test_size < 1.0:
        raise ValueError(f"test_size must be between 0 and 1, not {test_size}")
    facts["test_size"] = None if held else test_size
    rows: list[Row] = []
    for p, order in orders(len(y), permutations, seed):
        cut = len(y) if held else len(y) - round(test_size * len(y))
        X_test, y_test = held or (X[order[cut:]], y[order[cut:]])
        copy = copy_with_seed(model, seed + p)
        train = X[order[:cut]], y[order[:cut]]
        warm_up(copy, *train)
        begin = time.process_time()
        copy.fit(*train)
        middle = time.process_time()
        found = measure_all(copy, X_test, y_test, names)
        seconds = {"seconds": middle - begin, "test_seconds": time.process_time() - middle}
        found |= _held_out_references(copy, task, train, (X_test, y_test), names, linear)
        row = {"protocol": "batch"} | describe(copy) | facts | {"permutation": p, "seed": seed, "events": cut} | seconds | found
        rows.append(row | size_of(copy))
        if on_row:
            on_row(rows[-1])
    return rows


def _held_out_references(
    model: Any, task: str, train: tuple[Any, np.ndarray], test: tuple[Any, np.ndarray], metrics: Sequence[str], linear: bool
) -> Row:
    """Return the metrics of the reference predictions, trained and tested on the rows that the last step receives."""
    passed = model.passed if isinstance(model, StreamPipeline) else lambda X: X
    found = held_out_metrics(ConstantAnswer(task), train, test, metrics)
    if linear and (X := passed(train[0])).shape[1] <= WIDEST:
        found |= held_out_metrics(LinearModel(task), (X, train[1]), (passed(test[0]), test[1]), metrics)
    return found


def held_out(
    model: Any,
    data: Any,
    test: Any,
    *,
    moments: Sequence[float] = (1.0,),
    permutations: int = 1,
    seed: int = 0,
    metrics: Sequence[str] | None = None,
    on_row: Callable[[Row], None] = lambda row: None,
) -> list[Row]:
    """Train on random orders of the rows and evaluate on test rows along the way; one row per order and moment.

    A model with a parameter ``passes`` makes this many passes, each in a new order.  A model without ``partial_fit`` is fitted
    once.

    Parameters
    ----------
    model : estimator
        Left unchanged.
    data, test : (X, y), Stream or Dataset
    moments : sequence of float
        Increasing fractions of the training at which the model is evaluated, up to 1.
    permutations, seed : int
        See :func:`online`.
    metrics, on_row
        See :func:`test_then_train`.

    Examples
    --------
    >>> import kernling as kl
    >>> from kernling import evaluate, io
    >>> X, y = io.synthetic("spirals", 4000).load()
    >>> model = kl.AVMClassifier(gamma=30.0, delta=0.1)
    >>> rows = evaluate.held_out(model, (X[:3000], y[:3000]), (X[3000:], y[3000:]), moments=(0.01, 1.0))
    >>> print([row["events"] for row in rows], rows[1]["accuracy"] > rows[0]["accuracy"])
    [30, 3000] True
    """
    X, y, facts = load_data(data)
    names = chosen_metrics(metrics, task_of(model, y))
    X_test, y_test = load_data(test)[:2]
    rows: list[Row] = []
    for p, order in orders(len(y), permutations, seed):
        copy = copy_with_seed(model, seed + p)
        passes = getattr(copy, "passes", 1)
        rng = np.random.default_rng([seed, p])
        order = np.concatenate([order, *(rng.permutation(len(y)) for _ in range(passes - 1))])
        warm_up(copy, X[order[:1000]], y[order[:1000]])
        bit_by_bit = hasattr(copy, "partial_fit")
        cuts = [round(share * len(order)) for share in moments] if bit_by_bit else [len(order)]
        fixed = {"protocol": "held"} | describe(copy) | facts | {"permutation": p, "seed": seed}
        classes = {"classes": np.unique(y)} if task_of(copy, y) == "classification" else {}
        seconds, first = 0.0, 0
        for cut in cuts:
            part = order[first:cut]
            begin = time.process_time()
            if not bit_by_bit:
                copy.fit(X[part], y[part])
            elif len(part):
                copy.partial_fit(X[part], y[part], **classes)
            seconds += time.process_time() - begin
            first = cut
            row = fixed | {"events": cut, "seconds": seconds} | measure_all(copy, X_test, y_test, names)
            rows.append(row | size_of(copy))
            on_row(rows[-1])
    return rows


def folds(
    choose: Callable[[Any, np.ndarray, int], Choice],
    data: Any,
    *,
    n_folds: int = 5,
    metrics: Sequence[str] | None = None,
    on_row: Callable[[Row], None] = lambda row: None,
) -> list[Row]:
    """Nested cross-validation: parameters are chosen on the training part of each fold; one row per fold.

    Parameters
    ----------
    choose : callable
        Called with the rows and targets of a training part and the index of the fold; returns a :class:`Choice`.
    data : (X, y), Stream or Dataset
    n_folds : int
        Number of folds, stratified for classification.
    metrics, on_row
        See :func:`test_then_train`.

    Examples
    --------
    >>> import kernling as kl
    >>> from kernling.evaluate import choose, folds
    >>> from kernling.io import synthetic
    >>> make, grid = lambda point: kl.AVMClassifier(delta=0.1, **point), {"gamma": [0.1, 30.0]}
    >>> chosen = lambda X, y, fold: choose(make, grid, X, y, metric="accuracy", how="folds")
    >>> rows = folds(chosen, synthetic("spirals", 2000), n_folds=3)
    >>> print(len(rows), rows[0]["chosen"])
    3 {'gamma': 30.0}
    """
    X, y, facts = load_data(data)
    rows: list[Row] = []
    from sklearn.model_selection import StratifiedKFold  # slow to import

    for fold, (train, test) in enumerate(StratifiedKFold(n_folds, shuffle=True, random_state=0).split(y, y)):
        train = np.random.default_rng(fold).permutation(train)
        choice = choose(X[train], y[train], fold)
        model = copy_with_seed(choice.model, fold)
        names = chosen_metrics(metrics, task_of(model, y))
        warm_up(model, X[train], y[train])
        begin = time.process_time()
        model.fit(X[train], y[train])
        seconds = time.process_time() - begin
        row = {"protocol": "folds"} | describe(model) | facts | {"permutation": fold, "seed": 0, "events": len(train)}
        found = measure_all(model, X[test], y[test], names)
        rows.append(row | {"seconds": seconds, "chosen": choice.params} | found | size_of(model))
        on_row(rows[-1])
    return rows
