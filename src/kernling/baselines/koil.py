"""KOIL, kernelised online imbalanced learning with fixed budgets.

J. Hu, H. Yang, I. King, M. R. Lyu, A. M.-C. So: Kernelized Online Imbalanced Learning with Fixed Budgets.
AAAI Conference on Artificial Intelligence (2015).

A buffer of at most N points per class.  Event t with label y is paired with those of the k most similar points of the other
class that have a loss, V = {i: 1 - y (f(x_t) - f(x_i)) > 0}:

    alpha <- (1 - eta) alpha,   alpha_t = eta C y |V|,   alpha_i <- alpha_i - eta C y  for i in V.

When the buffer of its class overflows, one of its points is removed: the oldest, or a random one so that the buffer is a
uniform sample (then it may be the new one).  With compensation (KOIL++), the point c of the same class that is most similar to
the removed one, r, takes over its term: alpha_c <- alpha_c + alpha_r K(r, c) / K(c, c).

Departures: an event without loss is stored only while its buffer has room; labels by a threshold on recent scores; several
classes one against the rest, on the same points.  A sample weight multiplies C.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..compiler import inline, inner
from ..components.eviction import BIRTH, TIE, Labels, point_scores, point_value
from ..components.pairwise import side_of
from ..components.sides import Sides, new_sides
from ..components.threshold import Recent, is_due, keep_score, new_recent, note
from ..core.block import point_values
from ..core.expansion import EVENTS, Expansion
from ..core.updates import add, insert, remove, scale_model
from ..driver import loops
from ..estimators.constraints import POSITIVE, SWITCH, OneOf, Real, Whole
from ..estimators.examples import Example
from ..estimators.learner import Learner, Needs, Problem, empty_expansion
from ..estimators.options import Buffer
from ..estimators.pairwise import PairwiseClassifier
from ..estimators.parameters import parameter
from ..estimators.ranges import Log
from ..merging.reduction import Reduction
from ..merging.rules import Merge


class Params(NamedTuple):
    eta: float
    C: float
    neighbours: int
    buffer_size: int
    uniform: bool
    compensate: bool
    room: int  # total size of the buffers of the classes known at the start


class State(NamedTuple):
    model: Expansion
    labels: Labels
    sides: Sides
    recent: Recent


@inner
def next_partner(model, block, j, targets, o, own):
    """Return the point of the other side most similar to event j among those not used yet; -1 if there is none."""
    met = block.work[1]
    best = -1
    for i in range(model.size[0]):
        if (
            met[i] == 0.0
            and side_of(targets[i], o, block.g.size) != own
            and (best < 0 or block.K[i, j] > block.K[best, j] + TIE)
        ):
            best = i
    return best


@inner
def meet(params, model, block, j, targets, o, own, f, new, step):
    """Pair event j, which is point ``new``, with the most similar points for output o; return how many have a loss."""
    met, g = block.work[1], block.g
    sign = 2.0 * own - 1.0
    for i in range(model.size[0]):
        met[i] = 0.0
    violated = 0.0
    for _ in range(params.neighbours):
        i = next_partner(model, block, j, targets, o, own)
        if i < 0:
            break
        point_scores(model, block, i, g)
        has_loss = 1.0 - sign * (f - g[o] / (1.0 - params.eta)) > 0.0
        met[i] = 2.0 if has_loss else 1.0
        violated += 1.0 if has_loss else 0.0
    for c in range(g.size):
        g[c] = 1.0 if c == o else 0.0
    for i in range(model.size[0]):
        if met[i] == 2.0:
            add(model, block, j, i, -sign * step, g)
    add(model, block, j, new, sign * step * violated, g)
    return violated


@inner
def leaving(params, model, targets, y, n, u, new):
    """Return the point of class y to remove: the oldest, or a random one, which may be the new one."""
    nth = int(u * n)
    seen = 0
    oldest = new
    for i in range(new):
        if targets[i] == y:
            if params.uniform and seen == nth:
                return i
            seen += 1
            if model.tags[BIRTH, i] < model.tags[BIRTH, oldest]:
                oldest = i
    return new if params.uniform else oldest


@inner
def hand_over(model, block, j, targets, r):
    """Move the term of point r to the most similar point of the same class."""
    values, g = block.work[0], block.g
    point_values(model, block.kernel, r, values)
    heir = -1
    for i in range(model.size[0]):
        if i != r and targets[i] == targets[r] and (heir < 0 or values[i] > values[heir] + TIE):
            heir = i
    if heir >= 0:
        for o in range(g.size):
            g[o] = model.coef[0, model.places[o], r]
        add(model, block, j, heir, np.float64(values[heir]) / point_value(model, block.kernel, heir), g)


@inline
def step(params, state, block, j, f, y, weight, u):
    model, targets, t = state.model, state.labels.targets, state.model.clock[EVENTS]
    for o in range(f.size):
        own = side_of(y, o, f.size)
        state.sides.counts[o, own] += 1.0
        if is_due(state.recent, o, own, t):
            keep_score(state.recent, o, own, f[o], t)
    n = state.sides.counts[0, side_of(y, 0, 1)] if f.size == 1 else state.sides.counts[int(y), 1]
    scale_model(model, block, j, 1.0 - params.eta)
    new = insert(model, block, j, t)
    targets[new] = y
    violated = held = 0.0
    for o in range(f.size):
        own = side_of(y, o, f.size)
        violated += meet(params, model, block, j, targets, o, own, f[o], new, weight * params.eta * params.C)
    for i in range(model.size[0]):
        held += 1.0 if targets[i] == y else 0.0
    if held > params.buffer_size:
        draw = u[0] if u.size > 0 else 0.0
        r = leaving(params, model, targets, y, n, draw, new) if violated > 0.0 else new
        if params.compensate:
            hand_over(model, block, j, targets, r)
        remove(model, block, j, r)
        targets[r] = targets[model.size[0]]


def configure(problem: Problem) -> tuple[Params, Needs]:
    o = problem.options
    room = o["buffer_size"] * max(2, problem.outputs)
    uniform = o["eviction"] == "reservoir"
    params = Params(o["eta"], o["C"], o["neighbours"], o["buffer_size"], uniform, o["compensate"], room)
    return params, Needs(uniforms=int(uniform), notes=problem.outputs)


def start(params: Params, needs: Needs, problem: Problem, rng: np.random.Generator) -> State:
    model = empty_expansion(needs, problem, tags=1)
    sides = new_sides(model, means=False, examples=False)
    return State(model, Labels(np.zeros(0)), sides, new_recent(problem.outputs))


def bound(params: Params, t: int) -> float:
    """Return the maximum number of points: a buffer for each class known at the start."""
    return min(t, params.room)


def certificate(params: Params, state: State, problem: Problem) -> dict[str, float]:
    """Return the number of points and the maximum per class."""
    return {"points": state.model.stored, "points_per_class": params.buffer_size}


def each_class(params: Params, a: State, b: State) -> Reduction:
    """Keep a buffer per class."""
    return Reduction(budget=params.buffer_size, kinds=(a.labels.targets, b.labels.targets))


LEARNER = Learner(
    __name__,
    loops.kernel_loop(step, note),
    configure,
    start,
    bound,
    certificate,
    meanings={"points_per_class": "There are never more points of a class than this."},
    merge=Merge(points=each_class),
)


class KOILClassifier(Buffer, PairwiseClassifier):
    """Kernelised online imbalanced learning: AUC maximisation on a buffer of points per class."""

    learner = LEARNER
    example = Example("0.93", random_state=0)
    eta: float = parameter(default=0.01, allowed=Real(0.0, 0.999, strict=True), search=Log(0.001, 0.5), doc="Step size.")
    C: float = parameter(
        default=10.0, allowed=POSITIVE, search=Log(0.1, 100.0), doc="Weight of the losses of pairs relative to the norm."
    )
    neighbours: int = parameter(
        default=10, allowed=Whole(1), doc="Number of most similar points of the other class that an event is paired with."
    )
    eviction: str = parameter(
        default="reservoir",
        allowed=OneOf(("reservoir", "oldest")),
        doc="Which point is removed when a buffer overflows: a random one, which keeps a uniform sample, or the oldest.",
    )
    compensate: bool = parameter(
        default=True,
        allowed=SWITCH,
        doc="Whether the most similar point of the class takes over the term of a removed one (KOIL++).",
    )
