"""Parameter search: many candidates share one pass over the data, and the worse ones are dropped along the way."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from ..estimators.ranges import Range, fitting, ranges_of
from ..pipeline import StreamPipeline, last_step
from ..streams import Stream
from .measuring import measure
from .metrics import metric as metric_of
from .metrics import metric_class
from .protocols import ProgressiveRun, ProgressiveRuns, feed
from .rows import Row


class Found(NamedTuple):
    """Result of a search.

    Examples
    --------
    >>> import kernling as kl
    >>> from kernling.evaluate import search
    >>> from kernling.streams import synthetic
    >>> found = search(kl.AVMClassifier(delta=0.2), synthetic("spirals", 1000), candidates=3, first=200)
    >>> type(found).__name__, len(found.rows)
    ('Found', 3)
    """

    model: Any  # the best model, trained on all rows
    params: dict[str, Any]  # values of the searched parameters
    rows: list[Row]  # one per candidate, best first, as of when it was dropped; with the error if it failed


@dataclass
class _Candidate:
    params: dict[str, Any]
    run: ProgressiveRun
    validated: float | None = None  # the metric on the validation rows, if there are any


def search(
    model: Any,
    rows: Stream,
    *,
    ranges: Mapping[str, Range] | None = None,
    candidates: int = 27,
    grid: bool = False,
    metric: str | None = None,
    validation: tuple[Any, np.ndarray] | None = None,
    first: int = 1000,
    factor: int = 3,
    max_points: int | None = None,
    seed: int = 0,
    on_rung: Callable[[int, int], None] | None = None,
) -> Found:
    """Search for good parameters by successive halving, in one pass over the rows.

    All candidates learn the same rows, test-then-train.  After ``first`` events only the best 1/``factor`` continue, again
    after ``factor`` times as many, and so on; the last one learns the rest of the stream and is returned
    (K. Jamieson and A. Talwalkar, Non-stochastic best arm identification and hyperparameter optimization, AISTATS 2016).
    A candidate that fails, because of invalid parameters or diverging scores, is dropped at once, and its row has the error
    under ``failed``; if all fail, the first error is raised.

    Parameters
    ----------
    model : estimator
        Left unchanged; other parameters keep their values.  For a :class:`kernling.StreamPipeline`, the last step is searched.
    rows : Stream
    ranges : mapping of str to range, optional
        See ``kernling.estimators.ranges``; by default those that the estimator declares.  Integer parameters
        get integer values.
    candidates : int
        Number of random candidates; with ``grid``, the maximum number of points of an even grid.
    grid : bool
        Whether to use an even grid instead of random candidates.
    metric : str, optional
        Metric to compare; by default mistakes or rmse.
    validation : (X, y), optional
        Rows to evaluate on instead of those that are learned; results then also have ``<metric>_validation``.
    first, factor : int
    max_points : int, optional
        Candidates that store more points are ranked after all others.
    seed : int
    on_rung : callable, optional
        Called with the number of events and of candidates left.

    Returns
    -------
    Found
        The fitted model, its parameters, and one row per candidate.

    Examples
    --------
    >>> import kernling as kl
    >>> from kernling.evaluate import search
    >>> from kernling.streams import synthetic
    >>> found = search(kl.AVMClassifier(), synthetic("spirals", 4000), candidates=9, first=300, seed=1)
    >>> print(found.model.t_, sorted(found.params), len(found.rows))
    4000 ['delta', 'gamma', 'lam'] 9
    """
    running = Search(
        model,
        rows.info,
        ranges=ranges,
        candidates=candidates,
        grid=grid,
        metric=metric,
        validation=validation,
        first=first,
        factor=factor,
        max_points=max_points,
        seed=seed,
        on_rung=on_rung,
    )
    feed(running, rows)
    return running.end()


class Search:
    """Parameter search for callers that supply the rows themselves; see :func:`search` for the arguments.

    Examples
    --------
    >>> import kernling as kl
    >>> from kernling.evaluate import Search
    >>> from kernling.streams import synthetic
    >>> rows = synthetic("spirals", 2000, chunk=500)
    >>> running = Search(kl.AVMClassifier(delta=0.2), rows.info, candidates=3, first=200)
    >>> for X, y in rows:
    ...     running.learn(X, y)
    >>> running.end().model.t_
    2000
    """

    def __init__(
        self,
        model: Any,
        info: Row,
        *,
        ranges: Mapping[str, Range] | None = None,
        candidates: int = 27,
        grid: bool = False,
        metric: str | None = None,
        validation: tuple[Any, np.ndarray] | None = None,
        first: int = 1000,
        factor: int = 3,
        max_points: int | None = None,
        seed: int = 0,
        on_rung: Callable[[int, int], None] | None = None,
    ):
        if candidates < 1 or first < 1 or factor < 2:
            raise ValueError(f"candidates and first must be at least 1 and factor 2, not {candidates}, {first} and {factor}")
        self.metric = metric or ("rmse" if model.task == "regression" else "mistakes")
        metric_of(self.metric)  # raises for an unknown metric
        ranges = ranges_of(model) if ranges is None else ranges
        if not ranges:
            raise ValueError(f"no parameter is left to search: none of {type(model).__name__} has a range")
        known = model.get_params()
        unknown = [one for one in ranges if one not in known]
        if unknown:
            raise ValueError(f"{type(model).__name__} has no parameter {unknown[0]!r}; it has {', '.join(known)}")
        self.validation = validation
        self._model, self._info, self._ranges = model, info, fitting(ranges, model)
        self._draw = candidates, grid, seed
        self._rung, self._factor = first, factor
        self._max_points = max_points
        self._on_rung = on_rung
        self._candidates: list[_Candidate] = []
        self._runs = ProgressiveRuns({})  # remaining runs by index of their candidate
        self._out: list[int] = []  # indices of dropped candidates, the last first

    @property
    def events(self) -> int:
        """Number of events learned so far."""
        return self._runs.events

    @property
    def begun(self) -> bool:
        """Whether the candidates have been drawn."""
        return self._runs.begun

    def begin(self, X: Any, y: np.ndarray) -> None:
        """Draw the candidates and resolve their "auto" parameters from these rows, without learning them."""
        drawn = _draw_candidates(self._ranges, _bases(X, y, self._model), *self._draw)
        models = [clone(self._model).set_params(**params) for params in drawn]
        runs = [ProgressiveRun(model, self._info, metrics=[self.metric]) for model in models]
        self._candidates = [_Candidate(params, run) for params, run in zip(drawn, runs, strict=True)]
        self._runs = ProgressiveRuns(dict(enumerate(runs)))
        self._runs.begin(X, y)

    def learn(self, X: Any, y: np.ndarray) -> None:
        """Predict and then learn some rows with all candidates, dropping the worse ones when it is time."""
        if not self.begun:
            self.begin(X, y)
        done = 0
        while done < len(y):
            left = len(y) - done
            step = min(left, self._rung - self.events) if len(self._runs.running) > 1 else left
            self._runs.learn(X[done : done + step], y[done : done + step])
            done += step
            if len(self._runs.running) > 1 and self.events == self._rung:
                self._drop_worse()

    def _drop_worse(self) -> None:
        order = self._sort_candidates()
        keep = max(1, len(order) // self._factor)
        self._out = order[keep:] + self._out
        self._runs.running = {place: self._candidates[place].run for place in order[:keep]}
        self._rung *= self._factor
        if self._on_rung:
            self._on_rung(self.events, keep)

    def _sort_candidates(self) -> list[int]:
        """Return the indices of the remaining candidates, best first."""
        for place, run in self._runs.running.items():
            measured = None if self.validation is None else measure(run.model, *self.validation, self.metric)
            self._candidates[place].validated = measured
        return sorted(self._runs.running, key=lambda place: self._badness(self._candidates[place]))

    def _badness(self, one: _Candidate) -> tuple[bool, float]:
        value = one.run.value(self.metric) if one.validated is None else one.validated
        too_many = self._max_points is not None and one.run.model.n_stored_ > self._max_points
        return too_many, (value if metric_class(self.metric).low_is_good else -value) if value == value else np.inf

    def end(self) -> Found:
        """Return the result on the rows so far."""
        if not self.events:
            raise ValueError("the stream has no rows")
        order = self._sort_candidates()
        best = self._candidates[order[0]]
        places = (*order, *self._out, *self._runs.failed)
        return Found(best.run.model, best.params, [self._row(place) for place in places])

    def _row(self, place: int) -> Row:
        one, why = self._candidates[place], self._runs.failed.get(place)
        row = one.run.end()[-1]
        if one.validated is not None:
            row = row | {f"{self.metric}_validation": one.validated}
        return row if why is None else row | {"failed": why}


def _bases(X: Any, y: np.ndarray, model: Any) -> dict[str, float]:
    """Return the values that "auto" parameters have on these rows; for a pipeline, those of its last step on its input."""
    if isinstance(model, StreamPipeline):
        X, model = clone(model).ahead(X, y), last_step(model)
    return model.resolved(X)


def _draw_candidates(
    ranges: Mapping[str, Range], bases: dict[str, float], n: int, grid: bool, seed: int
) -> Sequence[dict[str, Any]]:
    base = {name: bases.get(name.rpartition("__")[2], 1.0) for name in ranges}
    if not grid:
        shares = np.random.default_rng(seed).random((n, len(ranges)))
        return [
            {name: values.at(float(share), base[name]) for (name, values), share in zip(ranges.items(), line, strict=True)}
            for line in shares
        ]
    size = 1
    while np.prod([len(values.grid(size + 1, base[name])) for name, values in ranges.items()]) <= n and size < n:
        size += 1
    axes = [values.grid(size, base[name]) for name, values in ranges.items()]
    return [dict(zip(ranges, point, strict=True)) for point in itertools.product(*axes)]
