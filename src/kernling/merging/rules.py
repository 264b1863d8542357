"""Merging two models of one method: the weighted mean of their functions, reduced to what the method allows (reduction.py).

All functions of a state are averaged with the same weights: the one that learns, the one that predicts, sums for averages, a
snapshot.  Counts (events, class counts, means and covariances) are added; those of a common start are counted
once.  Other parts of a state are merged by their method ``merged(other, start, merging)``.

The weights of outputs among which the choice is automatic are averaged as well: the output is then the mean of both only where
their weights agree.

The clock is the number of events that either has learned.  For steps of size 1 / (lam t) the model is w = v / t with v a sum
over events, so the mean weighted by events is (v_a + v_b) / (t_a + t_b), which is what one learner would have after the events
of both, each with the gradient it had: the merged model continues with the steps of such a learner.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from ..core.averages import AVERAGE, LAST, SUFFIX, growth, suffix_start, write_mix
from ..core.expansion import EVENTS, EXACT, NEXT, SCALE, TOTAL, Expansion
from ..core.fourier import Linear
from ..core.matrices import squared_norms
from ..core.state import Timed, Value, added, trimmed
from .reduction import Reduction, united

PERIOD = 4  # besides the kinds of averages.py: groups are w, its sum over a period, and a snapshot
SNAPSHOT = 2


class Units(NamedTuple):
    """What the functions of a, b and their start say, in the units of the mean: shift + width * f.

    The mean needs no shift, since the shifts of a and b with their shares add up to 0.
    """

    shift: np.ndarray = np.zeros(3)
    width: np.ndarray = np.ones(3)


class Merging(NamedTuple):
    """Context of a merge for the parts of the states."""

    a: Any  # the states
    b: Any
    start: Any  # the state that both were continued from, or None
    shares: np.ndarray  # of a and b in the mean
    units: Units
    params: Any
    kernel: Any
    model: Any  # the merged expansion or linear model
    places: np.ndarray  # indices in it of the points of a, then of b; -1 if removed
    moved: float  # the largest distance over which coefficients were moved to a core
    projected: int  # points that were removed by projecting their terms on others

    def mean(self, name: str) -> np.ndarray:
        """Return the weighted mean of an array of both states."""
        return self.shares[0] * getattr(self.a, name) + self.shares[1] * getattr(self.b, name)

    def total(self, value: Callable[[Any], Value]) -> Value:
        """Return the sum of the values of both states, counting those of the common start once."""
        return added(self.a, self.b, self.start, value)

    @property
    def shift(self) -> np.ndarray:
        """The vector that converts rows relative to b's centre to rows relative to a's."""
        return self.b.model.centre - self.a.model.centre


ArrayRule = Callable[[Merging, str], np.ndarray]


def to_budget(params: Any, a: Any, b: Any) -> Reduction:
    """Keep as many points as the parameter ``budget`` allows, or all if there is none."""
    return Reduction(budget=getattr(params, "budget", math.inf))


def within_limit(params: Any, a: Any, b: Any) -> Reduction:
    """Keep at most ``params.most`` points, none in the span of the others."""
    return Reduction(budget=params.most, independent=params.most > 0)


@dataclass(frozen=True)
class Merge:
    """A method's rules for merging two models."""

    points: Callable[[Any, Any, Any], Reduction] = to_budget
    harmonic: bool = False  # steps of size 1 / (lam T), T = t + params.delay (0 without it): the scale of the model is 1 / T
    period: Callable[[Any], int] | None = None  # events per period, where the groups are those of PERIOD
    arrays: dict[str, ArrayRule] = field(default_factory=dict)  # for the bare arrays of its state
    align: Callable[..., list[Any]] | None = None  # of the kernel and the states: the same in common coordinates of the points
    settle: Callable[[Any, Any], None] | None = None  # final adjustments, once all parts of the state are merged
    steps: dict[str, int] = field(default_factory=dict)  # indices of step counters in bare arrays


def each(*rules: str) -> ArrayRule:
    """Merge the numbers of an array one by one: "total", "largest" or "smallest"."""

    def merged(merging: Merging, name: str) -> np.ndarray:
        a, b, total = getattr(merging.a, name), getattr(merging.b, name), merging.total(lambda state: getattr(state, name))
        values = {"total": total, "largest": np.maximum(a, b), "smallest": np.minimum(a, b)}
        return np.array([values[rule][i] for i, rule in enumerate(rules)])

    return merged


class Kind(NamedTuple):
    """The meaning of the groups of coefficients, and of the clock."""

    output: int
    fraction: float
    harmonic: bool
    delay: float
    period: int

    @classmethod
    def of(cls, rule: Merge, setup: Any, params: Any) -> Kind:
        """Return the kind of a method with these settings."""
        delay = getattr(params, "delay", 0.0)
        if rule.period:
            return cls(PERIOD, 1.0, rule.harmonic, delay, rule.period(params))
        return cls(setup.output, setup.fraction, rule.harmonic, delay, 1)


def events_of(state: Any) -> float:
    """Return the number of events learned."""
    return float(state.model.clock[EVENTS])


def merged_states(
    rule: Merge | None,
    setup: Any,
    params: Any,
    pair: tuple[Any, Any],
    start: Any,
    shares: np.ndarray,
    units: Units,
    budget: float,
) -> tuple[Any, float]:
    """Return the merged state, and a bound on its distance from the mean."""
    rule = rule or Merge()
    kind = Kind.of(rule, setup, params)
    states = [trimmed(state) for state in (*pair, start) if state is not None]
    events = sum(map(events_of, states[:2])) - sum(map(events_of, states[2:]))
    a, b, *begun = rule.align(setup.kernel, *states) if rule.align else states
    start = begun[0] if begun else None
    parts = shares * units.width[:2]
    merging = Merging(a, b, start, shares, units, params, setup.kernel, None, np.empty(0, np.intp), 0.0, 0)
    error = 0.0
    if isinstance(a.model, Expansion):
        reduction = rule.points(params, a, b)
        reduction = reduction._replace(budget=min(budget, reduction.budget))
        points = np.concatenate([a.model.points, b.model.points + merging.shift])
        tags = np.concatenate([a.model.tags, b.model.tags], axis=1)
        columns = np.concatenate([s * _columns(one.model, kind) for s, one in zip(parts, (a, b), strict=True)], axis=2)
        union = united(setup.kernel, points, columns, tags, reduction)
        votes = shares @ np.stack([a.model.votes, b.model.votes])
        base = a.model._replace(points=union.points, norms=squared_norms(union.points), tags=union.tags, votes=votes)
        model: Expansion | Linear = _with_columns(base, kind, union.columns, events)
        merging = merging._replace(model=model, places=union.places, moved=union.moved, projected=union.projected)
        error = union.error
    else:
        merging = merging._replace(model=_merged_linear("model", a, b, kind, parts, events))
    found: dict[str, Any] = {"model": merging.model}
    for name in a._fields[1:]:
        own, other = getattr(a, name), getattr(b, name)
        if isinstance(own, Linear):
            found[name] = _merged_linear(name, a, b, kind, parts, events)
        elif isinstance(own, np.ndarray):
            found[name] = np.ascontiguousarray(rule.arrays[name](merging, name))
        else:
            found[name] = own.merged(other, None if start is None else getattr(start, name), merging)
    merged = type(a)(**found)
    if rule.settle:
        rule.settle(params, merged)
    return merged, error


def at_time(rule: Merge | None, setup: Any, params: Any, state: Any, events: float) -> Any:
    """Return the same functions, with the clock set to this many events, which sets coming step sizes and weights of averages.

    All times are scaled alike, which keeps their order; core points keep their tag, 0.
    """
    rule = rule or Merge()
    kind = Kind.of(rule, setup, params)
    state = trimmed(state)
    factor = events / max(events_of(state), 1.0)
    found: dict[str, Any] = {}
    for name, part in zip(state._fields, state, strict=True):
        if isinstance(part, Expansion):
            found[name] = _with_columns(part._replace(tags=factor * part.tags), kind, _columns(part, kind), events)
        elif isinstance(part, Linear):
            found[name] = _linear_with(part, kind, _linear_columns(part, kind, events_of(state)), events)
        elif isinstance(part, Timed):
            found[name] = part.retimed(factor)
        elif name in rule.steps:
            found[name] = part.copy()
            found[name][rule.steps[name]] *= factor
    return state._replace(**found)


# ---------------------------------------------------------------------- the functions of an expansion, and back


def _columns(model: Expansion, kind: Kind) -> np.ndarray:
    """Return all functions that are averaged, (functions, outputs, points): the one that learns comes first."""
    clock, coef = model.clock, model.coef
    w = clock[SCALE] * coef[0]
    if kind.output == LAST:
        return w[np.newaxis]
    if kind.output == PERIOD:
        done = clock[EVENTS] % kind.period
        return np.stack([w, (clock[TOTAL] * coef[0] - coef[1]) / done if done else w, coef[SNAPSHOT]])
    events = max(clock[EVENTS], 1.0)
    mean = (clock[TOTAL] * coef[0] - coef[1]) / events if clock[EVENTS] else w
    if kind.output == AVERAGE:
        return np.stack([w, mean])
    mix = np.empty(len(coef))
    write_mix(model, SUFFIX, kind.fraction, mix)
    output = np.tensordot(mix, coef, (0, 0))
    return np.stack([w, mean, output, *(_sum_until(model, share, mean) for share in _shares(model, kind.fraction))])


def _shares(model: Expansion, fraction: float) -> np.ndarray:
    """Return the fractions of all events at which a merged model has snapshots, besides the one for the current output."""
    return growth(fraction) ** -np.arange(1.0, len(model.marks) - 1)


def _sum_until(model: Expansion, share: float, mean: np.ndarray) -> np.ndarray:
    """Return the sum of the models up to a fraction of all events, per event, interpolated between snapshots."""
    events = max(model.clock[EVENTS], 1.0)
    taken = sorted((mark / events, 2 + s) for s, mark in enumerate(model.marks) if mark > 0.0)
    known = [(0.0, np.zeros_like(mean)), *((mark, model.coef[g] / events) for mark, g in taken if mark < 1.0), (1.0, mean)]
    right = next(i for i, (mark, _) in enumerate(known) if mark >= share)
    (low, before), (high, after) = known[right - 1], known[right]
    return before + (share - low) / (high - low) * (after - before)


def _with_columns(model: Expansion, kind: Kind, columns: np.ndarray, events: float) -> Expansion:
    """Return the expansion with these functions after this many events."""
    clock = np.zeros_like(model.clock)
    clock[EVENTS] = clock[NEXT] = events
    clock[EXACT] = -1.0
    clock[SCALE] = 1.0 / (events + kind.delay) if kind.harmonic and events > 0.0 else 1.0
    coef = np.zeros((len(model.coef), *columns.shape[1:]))
    coef[0] = columns[0] / clock[SCALE]
    marks = np.full_like(model.marks, -1.0)
    if kind.output == PERIOD:
        done = events % kind.period
        clock[TOTAL] = done
        coef[1] = done * (columns[0] - columns[1])
        coef[SNAPSHOT] = columns[2]
    elif kind.output != LAST:
        coef[1] = -events * columns[1]
    if len(marks):
        # the current output is exactly the mean since the first mark; later marks are needed as the stream continues
        marks[0] = suffix_start(kind.fraction, events)
        coef[2] = events * columns[1] - (events - marks[0]) * columns[2]
        later = events * _shares(model, kind.fraction)
        for g, mark in enumerate(later):
            if marks[0] < mark < events:
                marks[1 + g], coef[3 + g] = mark, events * columns[3 + g]
    return model._replace(coef=coef, size=np.array([columns.shape[2]]), clock=clock, marks=marks)


# ---------------------------------------------------------------------- linear models


def _linear_columns(model: Linear, kind: Kind, events: float) -> np.ndarray:
    """Return all functions that are averaged; group 1 is the sum of the models so far, or in this period."""
    columns = model.coef.copy()
    if len(columns) > 1:
        summed = events % kind.period if kind.output == PERIOD else events
        columns[1] = columns[1] / summed if summed else columns[0]
    return columns


def _linear_with(model: Linear, kind: Kind, columns: np.ndarray, events: float) -> Linear:
    coef, clock = columns.copy(), model.clock.copy()
    if len(coef) > 1:
        coef[1] *= events % kind.period if kind.output == PERIOD else events
    clock[EVENTS] = events if clock[EVENTS] else 0.0  # next to an expansion, which has the clock, a linear model has none
    return model._replace(coef=coef, clock=clock)


def _merged_linear(name: str, a: Any, b: Any, kind: Kind, shares: np.ndarray, events: float) -> Linear:
    own, other = (_linear_columns(getattr(state, name), kind, events_of(state)) for state in (a, b))
    votes = shares / shares.sum() @ np.stack([getattr(a, name).votes, getattr(b, name).votes])
    return _linear_with(getattr(a, name)._replace(votes=votes), kind, shares[0] * own + shares[1] * other, events)
