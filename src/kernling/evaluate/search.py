"""Parameter search: many candidates share one pass over the data, and the worse ones are dropped along the way."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from ..estimators.ranges import Range, fitting, ranges_of
from ..io import Stream
from ..pipeline import StreamPipeline, last_step
from .measuring import measure
from .metrics import metric as metric_of
from .metrics import metric_class
from .protocols import ProgressiveRun, ProgressiveRuns, feed
from .rows import Row

GIVEN = 0  # index of the model as given among the candidates
BLOCKS = 10  # number of blocks up to the first rung, or of validation rows
CHANCE = 0.025  # of any candidate being preferred to the model as given, if all are equally good


class Found(NamedTuple):
    """Result of a search.

    Examples
    --------
    >>> import kernling as kl
    >>> from kernling.evaluate import search
    >>> from kernling.io import synthetic
    >>> found = search(kl.AVMClassifier(delta=0.2), synthetic("spirals", 1000), candidates=3, first=200)
    >>> sorted(row["candidate"] for row in found.rows)
    [0, 1, 2, 3]
    """

    model: Any  # the best model, trained on all rows
    params: dict[str, Any]  # values of the searched parameters
    rows: list[Row]  # one per candidate, best first, as of when it was dropped; with the error if it failed

    @property
    def given(self) -> Row:
        """The row of the model as given."""
        return next(row for row in self.rows if row["candidate"] == GIVEN)

    @property
    def improved(self) -> bool:
        """Whether a candidate is better than the model as given by more than noise."""
        return self.rows[0] is not self.given


@dataclass
class _Candidate:
    params: dict[str, Any]
    run: ProgressiveRun
    validated: float | None = None  # the metric on the validation rows, if there are any
    blocks: list[float] = field(default_factory=list)  # the metric on consecutive blocks of rows


def search(model: Any, rows: Stream, **options: Any) -> Found:
    """Search for good parameters by successive halving, in one pass over the rows.

    All candidates learn the same rows, test-then-train.  After ``first`` events only the best 1/``factor`` continue, again
    after ``factor`` times as many, and so on; the last one learns the rest of the stream and is returned
    (K. Jamieson and A. Talwalkar, Non-stochastic best arm identification and hyperparameter optimization, AISTATS 2016).

    The model as given is candidate 0.  It is never dropped during the search, and it wins unless the best of the others is
    better by more than noise: by a t test on blocks of ``first`` / 10 rows, whose level of 2.5 % is shared among all
    candidates, and by a standard error in the second half of the blocks, since large steps may only help at first.

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
    candidates : int, default 27
        Number of random candidates besides the model as given; with ``grid``, the maximum number of points of an even grid.
    grid : bool, default False
        Whether to use an even grid instead of random candidates.
    metric : str, optional
        Metric to compare; by default mistakes or rmse.
    validation : (X, y), optional
        Rows to evaluate on instead of those that are learned; results then also have ``<metric>_validation``.
    first, factor : int, default 1000 and 3
    max_points : int, optional
        Candidates that store more points are ranked after all others.
    seed : int, default 0
    on_rung : callable, optional
        Called with the number of events and of candidates left, including the model as given.

    Returns
    -------
    Found
        The fitted model, its parameters, and one row per candidate.

    Examples
    --------
    >>> import kernling as kl
    >>> from kernling.evaluate import search
    >>> from kernling.io import synthetic
    >>> found = search(kl.AVMClassifier(), synthetic("spirals", 4000), candidates=9, first=300, seed=1)
    >>> print(found.model.t_, sorted(found.params), len(found.rows))
    4000 ['delta', 'eta', 'gamma', 'lam', 'output'] 10
    """
    running = Search(model, rows.info, **options)
    feed(running, rows)
    return running.end()


class Search:
    """Parameter search for callers that supply the rows themselves; see :func:`search` for the arguments.

    Examples
    --------
    >>> import kernling as kl
    >>> from kernling.evaluate import Search
    >>> from kernling.io import synthetic
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
        self._block = max(1, first // BLOCKS)
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
        given = {name: self._model.get_params()[name] for name in self._ranges}
        tried = [given, *_draw_candidates(self._ranges, _bases(X, y, self._model), *self._draw)]
        for place, params in enumerate(tried):
            model = clone(self._model).set_params(**params)
            extra = {"candidate": place}
            run = ProgressiveRun(model, self._info, metrics=[self.metric], window=self._block, extra=extra)
            self._candidates.append(_Candidate(params, run))
        self._runs = ProgressiveRuns({place: one.run for place, one in enumerate(self._candidates)})
        self._runs.begin(X, y)

    def learn(self, X: Any, y: np.ndarray) -> None:
        """Evaluate and train the candidates on some rows, and drop the worse ones at each rung."""
        if not self.begun:
            self.begin(X, y)
        done = 0
        while done < len(y):
            left = len(y) - done
            comparing = len(self._runs.running) > 1
            step = min(left, self._rung - self.events, self._block - self.events % self._block) if comparing else left
            self._runs.learn(X[done : done + step], y[done : done + step])
            done += step
            if comparing:
                self._compare()

    def _compare(self) -> None:
        """Evaluate the candidates on the last block, and drop the worse ones at a rung."""
        if self.events % self._block == 0:
            for place, run in self._runs.running.items():
                self._candidates[place].blocks.append(run.lately(self.metric))
        if self.events == self._rung:
            self._drop_worse()
            self._rung *= self._factor

    def _drop_worse(self) -> None:
        order = self._sort_candidates()
        drawn = [place for place in order if place != GIVEN]
        kept = set(drawn[: max(1, len(drawn) // self._factor)]) | {GIVEN} if len(drawn) > 1 else {order[0]}
        self._out = [place for place in order if place not in kept] + self._out
        self._runs.running = {place: self._candidates[place].run for place in order if place in kept}
        if self._on_rung:
            self._on_rung(self.events, len(self._runs.running))

    def _sort_candidates(self) -> list[int]:
        """Return the indices of the remaining candidates, best first."""
        if self.validation is not None:
            for place in self._runs.running:
                self._validate(self._candidates[place], *self.validation)
        order = sorted(self._runs.running, key=lambda place: self._badness(self._candidates[place]))
        if GIVEN in order and not self._is_better(self._candidates[order[0]], self._candidates[GIVEN]):
            order.remove(GIVEN)
            order.insert(0, GIVEN)
        return order

    def _validate(self, one: _Candidate, X: Any, y: np.ndarray) -> None:
        one.validated = measure(one.run.model, X, y, self.metric)
        cuts = np.linspace(0, len(y), min(BLOCKS, len(y)) + 1).astype(int)
        one.blocks = [measure(one.run.model, X[i:j], y[i:j], self.metric) for i, j in itertools.pairwise(cuts)]

    def _badness(self, one: _Candidate) -> tuple[bool, float]:
        value = one.run.value(self.metric) if one.validated is None else one.validated
        return self._is_too_large(one), self._sign * value if value == value else np.inf

    def _is_too_large(self, one: _Candidate) -> bool:
        return self._max_points is not None and one.run.model.n_stored_ > self._max_points

    @property
    def _sign(self) -> float:
        return 1.0 if metric_class(self.metric).low_is_good else -1.0

    def _is_better(self, one: _Candidate, given: _Candidate) -> bool:
        """Return whether the mean difference over the blocks is larger than its noise, and remains so in the second half."""
        from scipy.special import stdtrit  # slow to import

        if self._is_too_large(one) != self._is_too_large(given):
            return self._is_too_large(given)
        gains = self._sign * (np.array(given.blocks) - np.array(one.blocks))
        gains = gains[~np.isnan(gains)]
        late = gains[len(gains) // 2 :]
        if len(late) < 2:
            return False
        noise = stdtrit(len(gains) - 1, 1.0 - CHANCE / (len(self._candidates) - 1))
        return bool(gains.mean() > noise * _standard_error(gains) and late.mean() > _standard_error(late))

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


def _standard_error(values: np.ndarray) -> float:
    return float(values.std(ddof=1) / np.sqrt(len(values)))


def _bases(X: Any, y: np.ndarray, model: Any) -> dict[str, float]:
    """Return the values that "auto" parameters have on these rows; for a pipeline, those of its last step on its input."""
    if isinstance(model, StreamPipeline):
        X, model = clone(model).preview(X, y), last_step(model)
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
