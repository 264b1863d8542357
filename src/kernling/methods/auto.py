"""Auto, a mixture of experts that needs no parameters.

N. Littlestone and M. K. Warmuth: The Weighted Majority Algorithm.  Information and Computation 108 (1994).

All experts learn every event, in one pass, and are weighted by their recent performance (components/experts.py):

- ``kernel``: least squares on a constant, the columns, and kernel values against up to ``points`` stored points, whitened;
- ``linear`` and ``linear_recent``: least squares on a constant and the columns, the second with forgetting;
- ``bins``: least squares with forgetting on steps, that is, whether columns exceed their quantiles (components/bins.py);
- ``window`` and ``window_narrow``: passive-aggressive steps on a window of the latest events, with the kernel and its fourth
  power, and ``window_cityblock`` and ``window_cityblock_narrow`` with a kernel of the city-block distance
  (components/window.py);
- ``memory`` and ``memory_recent``: the nearest of many past events, stored in cells, by distance, and by distance and age
  (components/archive.py).

Probabilities are means of softmaxes of weighted sums of the experts' scores, which minimise log-loss and forget slowly or fast
(components/mixture.py).

For regression the window's experts are least mean squares and weighted neighbours, each with both kernels, their fourth and
their sixteenth powers, and the five nearest, weighted by distance; those of the memory correct the kernel expert by its errors
at the nearest events.  The prediction is a least-squares combination of all
predictions (components/combination.py).

Departures from the paper, each with its reason:

- After every event, all experts share a little of the weight, so that one that was bad for long can recover after a drift.
- Columns, and the targets of a regression, are standardised online.  Kernels see each column times a factor, larger where the
  kernel expert changes more along it (components/relevance.py).  The first scales are rough, so the first events are
  stored: after 16, 64, 256 and 1,024 events gamma is recomputed from the current scales, factors and quantiles from the events,
  and the experts relearn the events so far.  Only the number of events matters: single events, chunks and one call of ``fit``
  lead to the same model.
- When the losses rise, a successor learns beside the mixture from then on, and takes its place once it is better
  (components/succession.py).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..components import combination, early, experts, least_squares, succession
from ..components.bins import place_edges
from ..components.early import new_early, next_settling
from ..components.experts import CLASSIFIERS, REGRESSORS, Experts, new_experts
from ..components.least_squares import BLOCK
from ..components.mixture import Mixture, learn_mixed, mixed
from ..components.scaling import (
    keep,
    rows_as_known,
    scaled_rows,
    scaled_targets,
    target_scale,
    targets_as_known,
    variance_of_entries,
)
from ..components.succession import Alarm
from ..components.whitened import coefficients
from ..core.blas import one_thread
from ..core.expansion import EVENTS
from ..core.kernels import Kernel
from ..core.limits import GAMMA
from ..core.rows import Rows
from ..core.setup import Setup
from ..driver.events import WORK
from ..estimators.constraints import Bytes, Whole, bytes_of
from ..estimators.examples import Example
from ..estimators.learner import Learner, Needs, Problem, empty_expansion
from ..estimators.mixed import Mixed, MixedClassifier, dense_rows
from ..estimators.parameters import parameter
from ..estimators.tasks import BaseOnlineRegressor
from ..merging.rules import Merge, within_limit


class Params(NamedTuple):
    most: int  # maximum number of points
    standardise: bool
    settles: bool  # whether gamma is determined by the first events


def blocks(setup, params: Params, state: Experts, events, uniforms, before, first: int, last: int) -> int:
    """Learn events in blocks; return how far it got before time was up, or memory has to be found for a successor."""
    last = min(last, first + BLOCK * max(1, WORK // (16 * BLOCK * max(1, state.kernel_squares.count**2))))
    start = first
    while start < last and state.fits:
        stop = min(start + min(BLOCK, setup.block_size), last)
        clock = state.model.clock
        if due := next_decision(state):
            learned = np.cumsum(events.weights[start:stop] > 0.0)
            stop = min(stop, start + 1 + int(np.searchsorted(learned, due - clock[EVENTS])))
        part = slice(start, stop)
        outputs = learn(params, state, setup.kernel, dense_rows(events.rows, part), events.targets[part], events.weights[part])
        if len(before):
            before[part] = outputs.T
        if clock[EVENTS] == due:
            decide(params, state, setup.kernel)
        start = stop
    return start


def learn(
    params: Params, state: Experts, kernel: Kernel, rows: np.ndarray, targets: np.ndarray, weights: np.ndarray
) -> np.ndarray:
    """Let the experts, and their successor if there is one, learn the events of a block, and watch the losses."""
    event = (kernel, rows, targets, weights)
    outputs = step(params, state, *event)
    other = step(params, state.successor, *event) if state.successor.has_begun else None
    losses = succession.follow(state.succession, outputs, other, targets, weights, not isinstance(state.mixture, Mixture))
    for alarm in succession.alarms_of(state.succession, losses, int(state.model.clock[EVENTS])):
        latest = state.successor if state.successor.has_begun else state
        if alarm >= latest.early.begun[0] + succession.YOUNG and not state.succession.contest[succession.PENDING]:
            state.succession.contest[succession.PENDING] = alarm + succession.DELAY
    return outputs


def next_decision(state: Experts) -> int:
    """Return the number of events after which something is decided; 0 if nothing is."""
    events, heir = state.model.clock[EVENTS], state.successor
    found = [next_settling(state.early, events), int(state.succession.contest[succession.PENDING])]
    if heir.has_begun:
        age = int(events - heir.early.begun[0])
        found += [next_settling(heir.early, events), int(events) + succession.DECIDE - age % succession.DECIDE]
    return min((n for n in found if n > events), default=0)


def decide(params: Params, state: Experts, kernel: Kernel) -> None:
    """Settle what events decide, and who stays."""
    events, heir, record = state.model.clock[EVENTS], state.successor, state.succession
    for one in (state, heir) if heir.has_begun else (state,):
        if next_settling(one.early, events - 1) == events:
            relearn(params, one, kernel)
    age = events - heir.early.begun[0]
    if heir.has_begun and age % succession.DECIDE == 0.0 and age >= succession.YOUNG:
        if succession.is_better(record):
            replace(state)
            record.contest[succession.PENDING] = events
        elif age >= succession.LIFE:
            heir.early.begun[0] = -1.0
    if record.contest[succession.PENDING] == events:
        if heir.has_begun and succession.leads(record):
            replace(state)
        succession.begin(record)
        experts.begin(heir, events, 1.0 / heir.model.points.shape[1] if params.settles else state.early.gamma[0])


def replace(state: Experts) -> None:
    """Let the successor take the place of these experts."""
    experts.take_over(state)
    state.succession.replaced(int(state.model.clock[EVENTS]))


def step(
    params: Params, state: Experts, kernel: Kernel, rows: np.ndarray, targets: np.ndarray, weights: np.ndarray
) -> np.ndarray:
    """Learn the events of a block; return the outputs before learning each, (outputs, events)."""
    X, scales = scaled_rows(state.scales, rows, weights)
    seen = experts.look(state, kernel, rows, X if params.standardise else rows, room=len(rows))
    if isinstance(state.mixture, Mixture):
        scores = experts.learn_classes(state, seen, targets, weights)
        outputs = learn_mixed(state.mixture, scores, targets, weights)
    else:
        values, target = scaled_targets(state.target, targets, weights)
        predictions = experts.learn_values(state, seen, values.scaled, weights)
        outputs = values.shift + values.width * combination.learn_combined(state.mixture, predictions, values.scaled, weights)
        keep(state.target, target)
    keep(state.scales, scales)
    early.keep(state.early, rows, targets, weights)
    state.model.clock[EVENTS] += np.count_nonzero(weights)
    return outputs


def predict(params: Params, state: Experts, kernel: Kernel, rows: Rows, part: slice) -> np.ndarray:
    """Return the outputs of rows, (outputs, rows)."""
    state, table = state.answering, dense_rows(rows, part)
    X = scaled_rows(state.scales, table, np.zeros(len(table)))[0] if params.standardise else table
    seen = experts.look(state, kernel, table, X)
    if isinstance(state.mixture, Mixture):
        return mixed(state.mixture, experts.scores_of_classes(state, seen))
    shift, width = target_scale(state.target)
    return shift + width * combination.combined(state.mixture, experts.values_of(state, seen))


def relearn(params: Params, state: Experts, kernel: Kernel) -> None:
    """Recompute gamma, factors and edges of columns from the events so far, and train the experts again on them."""
    first = early.rows(state.early)
    known = rows_as_known(state.scales, first) if params.standardise else first
    state.early.stretch[:] = experts.relevance(state, kernel, known)
    if params.settles:
        variance = variance_of_entries(state.scales, params.standardise)
        state.early.gamma[0] = min(1.0 / variance, GAMMA) if variance > 0.0 else 1.0
    place_edges(state.bins, first)
    experts.clear(state)
    for rows, targets, weights in early.parts(state.early, BLOCK):
        X = rows_as_known(state.scales, rows) if params.standardise else rows
        seen = experts.look(state, kernel, rows, X, room=len(X))
        if isinstance(state.mixture, Mixture):
            experts.learn_classes(state, seen, targets, weights)
        else:
            experts.learn_values(state, seen, targets_as_known(state.target, targets), weights)


def configure(problem: Problem) -> tuple[Params, Needs]:
    o = problem.options
    return Params(most=o["points"], standardise=o["standardise"], settles=o["gamma"] == 0.0), Needs(room=o["points"])


def start(params: Params, needs: Needs, problem: Problem, rng: np.random.Generator) -> Experts:
    def generation(begun: float) -> Experts:
        o, of_classes = problem.options, problem.task == "classification"
        model = empty_expansion(needs, problem)  # first, since it refuses rows that are too wide
        first = new_early(o["gamma"] or 1.0 / problem.d, problem.d, problem.dtype, begun)
        return new_experts(model, params.most, o["window"], bytes_of(o["memory"]), first, of_classes)

    return generation(0.0)._replace(succession=succession.new_succession(), successor=generation(-1.0))


def write_coefficients(setup: Setup, params: Params, state: Experts) -> Experts:
    """Write the coefficients of the kernel expert, by which points are selected when models are merged."""
    said = state.answering
    W = said.kernel_squares.weights[:, int(said.kernel_squares.size[least_squares.FIXED]) : said.kernel_squares.count]
    said.model.coef[0, :, : said.model.stored] = coefficients(said.whitening.factor, W)
    return state


def in_common_coordinates(kernel: Kernel, *states: Experts) -> list[Experts]:
    """Return what answers in each state, with the factors of columns, and the centre, of the one that learned most.

    What both were continued from is left out unless it is part of what answers in both.
    """
    said = [state.answering._replace(succession=state.succession, successor=state.successor) for state in states]
    if len({float(one.early.begun[0]) for one in said}) > 1:
        said = said[:2]
    common = max((one for one in said if one.early.gamma[0] == kernel.gamma), key=lambda one: one.model.clock[EVENTS])
    return [experts.moved(one, kernel, common) for one in said]


def bound(params: Params, t: int) -> float:
    """Return the maximum number of points."""
    return min(t, params.most)


def certificate(params: Params, state: Experts, problem: Problem) -> dict[str, float]:
    """Return, for classes, ``log_loss`` of the mixture and ``log_loss_bound``, given that of the best stack."""
    found: dict[str, float] = {"points": state.model.stored, "points_bound": params.most}
    return found | state.mixture.certificate() if isinstance(state.mixture, Mixture) else found


LEARNER = Learner(
    __name__,
    one_thread(blocks),
    configure,
    start,
    bound,
    certificate,
    meanings={
        "log_loss": "Log-loss of the probabilities, of all events since the mixture began: the first, or after a change.",
        "best_stack_log_loss": "The same of the best of the stacks that are averaged.",
        "log_loss_bound": "The log-loss is at most this, given that of the best stack.",
    },
    finish=write_coefficients,
    merge=Merge(within_limit, align=in_common_coordinates),
)


class _Auto(Mixed):
    """Parameters shared by both tasks."""

    learner = LEARNER
    outputs_of = staticmethod(predict)
    points: int = parameter(
        default=512,
        allowed=Whole(1),
        doc="Maximum number of points of the kernel expert. Time and memory grow with its square.",
    )
    block_size: int = parameter(default=BLOCK)
    window: int = parameter(default=1000, allowed=Whole(1), doc="Number of latest events in the window.")
    memory: int | str = parameter(
        default="16MB",
        allowed=Bytes(),
        doc='Size of the memory of past events in bytes, or as text such as "64MB"; 0: none. The other parts come in addition.',
    )

    @property
    def alarms_(self) -> list[Alarm]:
        """Return the latest rises of the error beyond chance: event, how sure, error before and after, what followed."""
        return self._fitted().succession.latest()


class AutoClassifier(_Auto, MixedClassifier):
    """A mixture of experts, trained in one pass and in fixed memory: a good first model for any stream.

    By default it stores at most 512 points, a window of the latest 1,000 events, and 16 MB of other past events; twice as much
    for some thousand events after a change of the stream, when a successor learns beside it.
    """

    example = Example("1.00")
    loss = "softmax"  # of the stacks, which give the probabilities

    @property
    def expert_weights_(self) -> dict[str, float]:
        """Return the weight of each expert's scaled scores in the sum that gives the probabilities; it may be negative."""
        return dict(zip(CLASSIFIERS, self._fitted().answering.mixture.expert_weights().tolist(), strict=True))


class AutoRegressor(_Auto, BaseOnlineRegressor):
    """A mixture of experts whose predictions are combined, trained in one pass and in fixed memory: a good first model.

    By default it stores at most 512 points, a window of the latest 1,000 events, and 16 MB of other past events; twice as much
    for some thousand events after a change of the stream, when a successor learns beside it.
    """

    example = Example("1.00")
    standardise_target = False  # the method does it itself

    @property
    def expert_weights_(self) -> dict[str, float]:
        """Return the weight of each expert's prediction."""
        return dict(zip(REGRESSORS, combination.expert_weights(self._fitted().answering.mixture).tolist(), strict=True))
