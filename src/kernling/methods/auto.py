"""Auto, a mixture of experts that needs no parameters.

N. Littlestone and M. K. Warmuth: The Weighted Majority Algorithm.  Information and Computation 108 (1994).

All experts learn every event, in one pass, and are weighted by their recent performance (components/experts.py):

- ``kernel``: least squares on a constant, the columns, and kernel values against up to ``points`` stored points, whitened;
- ``linear`` and ``linear_recent``: least squares on a constant and the columns, the second with forgetting;
- ``bins``: least squares with forgetting on steps, that is, whether columns exceed their quantiles (components/bins.py);
- ``logistic``: for classes, logistic regression on the features of ``kernel`` (components/logistic.py);
- ``window`` and ``window_narrow``: passive-aggressive steps on a window of the latest events, with the kernel and its fourth
  power, and ``window_cityblock`` and ``window_cityblock_narrow`` with a kernel of the city-block distance
  (components/window.py);
- ``memory`` and ``memory_recent``: the nearest of many past events, stored in cells, by distance, and by distance and age
  (components/archive.py).

Probabilities are means of softmaxes of weighted sums of the experts' scores, which minimise log-loss and forget slowly or fast
(components/mixture.py).

For regression the window's experts are least mean squares and weighted neighbours, each with both kernels, their fourth and
their sixteenth powers, and the five nearest, weighted by distance; those of the memory correct the kernel expert by its errors
at the nearest events.  The prediction is a least-squares combination of all predictions (components/combination.py).

Departures from the paper, each with its reason:

- After every event, all experts share a little of the weight, so that one that was bad for long can recover after a drift.
- Columns, and the targets of a regression, are standardised online, columns clipped (components/scaling.py).  Kernels
  see each column times a factor, larger where the kernel expert changes more along it (components/relevance.py).  The first
  scales are rough, so the first events are stored: after 16, 64, 256 and 1,024 events gamma is recomputed from the current
  scales, factors and quantiles are recomputed from the events, and the experts relearn the events so far.  Only the number of
  events matters: single events, chunks and one call of ``fit`` lead to the same model.
- When the losses rise, a successor learns beside the mixture from then on, and takes its place once it is better
  (components/succession.py).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..compiler import by_address, shaped
from ..components import combination, early, experts, least_squares, succession
from ..components.bins import place_edges
from ..components.early import new_early, next_settling
from ..components.experts import CLASSIFIERS, REGRESSORS, Experts, new_experts
from ..components.learning import LEARN, Counts, Seen, Side, fits, kind_of, learn, load, relearn_block, until_due
from ..components.least_squares import BLOCK
from ..components.mixture import Mixture
from ..components.scaling import rows_as_known, variance_of_entries
from ..components.succession import Rise, follow, watch_losses
from ..components.whitened import coefficients
from ..core.expansion import EVENTS
from ..core.kernels import Kernel
from ..core.limits import GAMMA
from ..core.rows import Rows
from ..core.setup import Setup
from ..driver.settled import SettledLoop, record
from ..estimators.constraints import Bytes, Whole, bytes_of
from ..estimators.examples import Example
from ..estimators.learner import Learner, Needs, Problem, empty_expansion
from ..estimators.mixed import Mixed, MixedClassifier
from ..estimators.parameters import parameter
from ..estimators.tasks import BaseOnlineRegressor
from ..merging.rules import Merge, within_limit


class Params(NamedTuple):
    most: int  # maximum number of points
    standardise: bool
    settles: bool  # whether gamma is determined by the first events


class Work:
    """What a compiled call needs besides the events: the experts, their successor, and memory for a block."""

    def __init__(self, setup: Setup, params: Params, state: Experts, rows: Rows, size: int):
        self.own, self.heir = (Side.of(one, setup.kernel, params.standardise) for one in (state, state.successor))
        self.succession, self.seen = state.succession, Seen(state, size)
        self.out, self.other = np.empty((2, state.model.outputs * size))
        self.losses, self.units, self.shares, self.found = *np.empty((2, size)), np.full(size, -1.0), np.empty(3)
        self.values = setup.numeric
        self.times, self.settlings = succession.times(), early.settlings()
        self.fits = state.fits
        self.due = np.zeros(1, np.int64)  # whether there is something to settle


def _loop(call, first, last):
    """Learn blocks of events until something is due; return where it stopped, or -1 if it diverges."""
    work, events, own, heir, seen = call.block, call.events, call.block.own, call.block.heir, call.block.seen
    contest, outputs, start = work.succession.contest, own.experts.model.places.size, first
    while start < last and work.due[0] == 0 and work.fits and fits(heir.experts):
        ahead = until_due(own.experts, heir.experts, contest, work.times, work.settlings)
        b = load(seen, events, start, last, ahead)
        out, other = shaped(work.out, (outputs, b)), shaped(work.other, (outputs, b))
        if not learn(own, seen, b, out, True):
            return -1
        two = heir.experts.early.begun[0] >= 0.0
        if two and not learn(heir, seen, b, other, True):
            heir.experts.early.begun[0] = -1.0  # what diverges succeeds nobody
            two = False
        told, losses, units, shares = seen.weights[:b], work.losses, work.units, work.shares
        learned = follow(work.succession, out, other, two, seen.targets[:b], told, work.values, losses, units, shares)
        latest = heir.experts.early.begun[0] if two else own.experts.early.begun[0]
        count = own.experts.model.clock[EVENTS]
        watch_losses(work.succession, losses[:learned], units, shares, count, latest, work.times, work.found)
        record(out, events.before, start)
        work.due[0] = 1 if learned == ahead else 0
        start += b
    return start


def events_ahead(state: Experts) -> int:
    """Return the number of events until something is to be settled."""
    sides = (by_address(Counts.of(one)) for one in (state, state.successor))
    return until_due(*sides, state.succession.contest, succession.times(), early.settlings())


def gammas(state: Experts) -> tuple[float, float]:
    """Return the current coefficients of both kernels."""
    return state.early.gamma.item(), state.successor.early.gamma.item()


def settle(setup: Setup, params: Params, state: Experts) -> None:
    """Fold events into the sums of least squares, settle what events decide, and who stays, where it is time."""
    events, heir, held = state.model.clock[EVENTS], state.successor, state.succession
    for one in (state, heir) if heir.has_begun else (state,):
        experts.fold(one)
        if next_settling(one.early, events - 1) == events:
            relearn(params, one, setup.kernel)
            if not next_settling(one.early, events):
                one.early.settle()
    replaces, drops, begins = held.settled(int(events), events - heir.early.begun[0] if heir.has_begun else -1.0)
    if replaces:
        experts.take_over(state)
    if drops:
        heir.early.begun[0] = -1.0
    if begins:
        experts.begin(heir, events, 1.0 / heir.model.points.shape[1] if params.settles else state.early.gamma[0])


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
    seen = Seen(state, min(BLOCK, len(first)))
    for rows, targets, weights in early.parts(state.early, BLOCK):
        X = rows_as_known(state.scales, rows) if params.standardise else rows
        relearn_block(Side.of(state, kernel, params.standardise), seen, (rows, X, targets, weights))
        experts.fold(state, relearns=True)


def configure(problem: Problem) -> tuple[Params, Needs]:
    o = problem.options
    return Params(most=o["points"], standardise=o["standardise"], settles=o["gamma"] == 0.0), Needs(room=o["points"])


def start(params: Params, needs: Needs, problem: Problem, rng: np.random.Generator) -> Experts:
    def generation(begun: float) -> Experts:
        o, of_classes = problem.options, problem.task == "classification"
        model = empty_expansion(needs, problem)  # first, since it refuses rows that are too wide
        first = new_early(o["gamma"] or 1.0 / problem.d, problem.d, problem.dtype, begun)
        return new_experts(model, params.most, o["window"], bytes_of(o["memory"]), first, of_classes)

    first = generation(0.0)
    labels = len(first.mixture.seen) if isinstance(first.mixture, Mixture) else 2
    return first._replace(succession=succession.new_succession(labels), successor=generation(-1.0))


def write_coefficients(setup: Setup, params: Params, state: Experts) -> Experts:
    """Write the coefficients of the kernel expert, by which points are selected when models are merged."""
    said = state.answering
    W = least_squares.current_weights(said.kernel_squares)[:, int(said.kernel_squares.size[least_squares.FIXED]) :]
    said.model.coef[0, said.model.places, : said.model.stored] = coefficients(said.whitening.factor, W)
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
    SettledLoop(_loop, Work, settle, events_ahead, {kind: {"learn": one} for kind, one in LEARN.items()}, kind_of, gammas),
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
    merge=Merge(within_limit, align=in_common_coordinates, settle=lambda params, state: experts.fold_logistic(state)),
)


class _Auto(Mixed):
    """Parameters shared by both tasks."""

    learner = LEARNER
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
    def rises_(self) -> list[Rise]:
        """Return the latest rises of the error, after which a successor begins: event, how sure, error before and after."""
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
        """Return the weight of each expert's scaled scores in the sum that gives the probabilities; it may be negative.

        That of ``logistic`` is 0 unless classes are uneven, since it says nothing then.
        """
        said = self._fitted().answering
        weights = dict(zip(CLASSIFIERS, said.mixture.expert_weights().tolist(), strict=True))
        return weights if said.logistic.has_begun else weights | {"logistic": 0.0}


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
