"""Search for parameters: many candidates share one reading of the data, and the worse ones drop out on the way."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from ..estimators.ranges import Range, ranges_of
from ..estimators.resolve import auto_delta, scale_gamma
from ..streams import Stream
from .measuring import measure
from .metrics import metric as metric_of
from .protocols import Course
from .rows import Row

LOW_IS_GOOD = {"mistakes", "log_loss", "rmse", "mae"}


class Found(NamedTuple):
    """What a search found.

    Examples
    --------
    >>> import kernling as kl
    >>> from kernling.evaluate import search
    >>> from kernling.streams import synthetic
    >>> found = search(kl.AVMClassifier(delta=0.2), synthetic("spirals", 1000), candidates=3, first=200)
    >>> type(found).__name__, len(found.rows)
    ('Found', 3)
    """

    model: Any  # the winner, which has learned all rows
    params: dict[str, Any]  # those that were searched for
    rows: list[Row]  # one per candidate, the best first, at the moment it dropped out


class Candidate(NamedTuple):
    params: dict[str, Any]
    course: Course


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

    All candidates learn the same rows, test-then-train.  After ``first`` events only the best of each ``factor`` go on, again
    after ``factor`` times as many, and so on; the last one learns the rest of the stream, and is the model returned
    (K. Jamieson and A. Talwalkar, Non-stochastic best arm identification and hyperparameter optimization, AISTATS 2016).

    Parameters
    ----------
    model : estimator
        Not changed; its other parameters are kept.  Of a :class:`kernling.StreamPipeline`, the last step's are looked for.
    rows : Stream
    ranges : mapping of str to range, optional
        Of ``kernling.estimators.ranges``; by default what the estimator declares in ``search``.
    candidates : int
        How many are drawn at random; with ``grid``, at most so many points of an even grid.
    grid : bool
        Whether to take a grid instead.
    metric : str, optional
        What to compare: by default mistakes or RMSE.
    validation : (X, y), optional
        Rows to measure on instead of those that are learned.
    first, factor : int
    max_points : int, optional
        Candidates that store more points come after all others.
    seed : int
    on_rung : callable, optional
        Called with events and the number of candidates left.

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
    if candidates < 1 or first < 1 or factor < 2:
        raise ValueError(f"candidates and first must be at least 1 and factor 2, not {candidates}, {first} and {factor}")
    name = metric or ("rmse" if model.task == "regression" else "mistakes")
    metric_of(name)  # names the ones there are if this is none
    ranges = ranges or ranges_of(model)
    known = model.get_params()
    unknown = [one for one in ranges if one not in known]
    if unknown:
        raise ValueError(f"{type(model).__name__} has no parameter {unknown[0]!r}; it has {', '.join(known)}")
    alive: list[Candidate] = []
    out: list[Candidate] = []

    def badness(one: Candidate) -> tuple[bool, float]:
        value = one.course.value(name) if validation is None else measure(one.course.model, *validation, name)
        too_many = max_points is not None and one.course.model.n_stored_ > max_points
        return too_many, (value if name in LOW_IS_GOOD else -value) if value == value else np.inf

    events, rung = 0, first
    for X, y in rows:
        if not alive:
            drawn = _drawn(ranges, _bases(X, y, model), candidates, grid, seed)
            alive = [
                Candidate(params, Course(clone(model).set_params(**params), rows.info, metrics=[name])) for params in drawn
            ]
        done = 0
        while done < len(y):
            step = min(len(y) - done, rung - events) if len(alive) > 1 else len(y) - done
            for one in alive:
                one.course.learn(X[done : done + step], y[done : done + step])
            done += step
            events += step
            if len(alive) > 1 and events == rung:
                alive.sort(key=badness)
                keep = max(1, len(alive) // factor)
                out = alive[keep:] + out
                alive = alive[:keep]
                rung *= factor
                if on_rung:
                    on_rung(events, len(alive))
    if not alive:
        raise ValueError("the stream has no rows to search on")
    alive.sort(key=badness)
    ordered = alive + out
    return Found(alive[0].course.model, alive[0].params, [one.course.end()[-1] for one in ordered])


def _bases(X: Any, y: np.ndarray, model: Any) -> dict[str, float]:
    """What parameters are by default on these rows; those of a pipeline's last step on the rows that it gets."""
    if hasattr(model, "steps"):
        X = clone(model).partial_fit(X, y).passed(X)
        model = model.steps[-1][1]
    gamma = scale_gamma(X) if model.gamma == "scale" else float(model.gamma)
    delta = auto_delta(X, gamma)
    return {"gamma": gamma, "delta": delta, "theta": delta / 2.0}


def _drawn(ranges: Mapping[str, Range], bases: dict[str, float], n: int, grid: bool, seed: int) -> Sequence[dict[str, Any]]:
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
