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
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..components import combination, early, experts, least_squares
from ..components.archive import Archive
from ..components.bins import Bins, place_edges
from ..components.combination import new_combination
from ..components.early import Early, new_early, next_settling
from ..components.experts import CLASSIFIERS, REGRESSORS, Experts, new_experts
from ..components.least_squares import BLOCK, LeastSquares
from ..components.line import Line
from ..components.mixture import Mixture, learn_mixed, mixed, new_mixture
from ..components.scaling import (
    Scales,
    keep,
    new_scales,
    rows_as_known,
    scaled_rows,
    scaled_targets,
    target_scale,
    targets_as_known,
    variance_of_entries,
)
from ..components.whitened import Whitening, coefficients
from ..components.window import Window
from ..core.blas import one_thread
from ..core.expansion import EVENTS, Expansion
from ..core.kernels import Kernel
from ..core.limits import GAMMA
from ..core.rows import Rows
from ..core.setup import Setup
from ..driver.events import WORK
from ..estimators.constraints import Bytes, Whole, bytes_of
from ..estimators.examples import Example
from ..estimators.learner import Learner, Needs, Problem, empty_expansion
from ..estimators.mixed import Mixed, dense_rows
from ..estimators.parameters import parameter
from ..estimators.tasks import BaseOnlineRegressor, OnlineClassifier
from ..merging.rules import Merge, within_limit


class Params(NamedTuple):
    most: int  # maximum number of points
    standardise: bool
    settles: bool  # whether gamma is determined by the first events


class State(NamedTuple):
    model: Expansion  # the points; their coefficients are only written for merging
    whitening: Whitening
    kernel_squares: LeastSquares
    linear: Line
    linear_recent: Line
    bins: Bins
    window: Window
    mixture: Mixture | LeastSquares
    scales: Scales
    target: Scales
    early: Early
    archive: Archive

    @property
    def experts(self) -> Experts:
        """Return the parts of the experts."""
        return Experts(*(getattr(self, name) for name in Experts._fields))

    def kernel(self, given: Kernel) -> Kernel:
        """Return the kernel with the current gamma."""
        return given._replace(gamma=float(self.early.gamma[0]))

    def moved(self, kernel: Kernel, stretch: np.ndarray, centre: np.ndarray) -> State:
        """Return the state with other factors of the columns, and another centre."""
        factor, shift = stretch / self.early.stretch, stretch * (self.model.centre - centre)
        if (factor == 1.0).all() and not shift.any():
            return self
        parts = experts.moved(self.experts, kernel, factor, shift)
        parts = parts._replace(model=parts.model._replace(centre=centre))
        return self._replace(**parts._asdict(), early=self.early._replace(stretch=stretch))


def blocks(setup, params: Params, state: State, events, uniforms, before, first: int, last: int) -> int:
    """Learn events in blocks; return how far it got before time was up."""
    last = min(last, first + BLOCK * max(1, WORK // (16 * BLOCK * max(1, state.kernel_squares.count**2))))
    start = first
    while start < last:
        stop = min(start + min(BLOCK, setup.block_size), last)
        settling = next_settling(state.early, state.model.clock[EVENTS])
        if settling:
            learned = np.cumsum(events.weights[start:stop] > 0.0)
            stop = min(stop, start + 1 + int(np.searchsorted(learned, settling - state.model.clock[EVENTS])))
        part = slice(start, stop)
        outputs = step(params, state, setup.kernel, dense_rows(events.rows, part), events.targets[part], events.weights[part])
        if len(before):
            before[part] = outputs.T
        if state.model.clock[EVENTS] == settling:
            relearn(params, state, setup.kernel)
        start = stop
    return last


def step(
    params: Params, state: State, kernel: Kernel, rows: np.ndarray, targets: np.ndarray, weights: np.ndarray
) -> np.ndarray:
    """Learn the events of a block; return the outputs before learning each, (outputs, events)."""
    X, scales = scaled_rows(state.scales, rows, weights)
    seen = look(state, kernel, rows, X if params.standardise else rows, room=len(rows))
    if isinstance(state.mixture, Mixture):
        scores = experts.learn_classes(state.experts, seen, targets, weights)
        outputs = learn_mixed(state.mixture, scores, targets, weights)
    else:
        values, target = scaled_targets(state.target, targets, weights)
        predictions = experts.learn_values(state.experts, seen, values.scaled, weights)
        outputs = values.shift + values.width * combination.learn_combined(state.mixture, predictions, values.scaled, weights)
        keep(state.target, target)
    keep(state.scales, scales)
    early.keep(state.early, rows, targets, weights)
    state.model.clock[EVENTS] += np.count_nonzero(weights)
    return outputs


def look(state: State, kernel: Kernel, rows: np.ndarray, X: np.ndarray, room: int = 0) -> experts.Seen:
    """Return rows, and how they are scaled, as the experts see them."""
    return experts.look(state.experts, state.kernel(kernel), state.early.stretch, rows, X, room)


def predict(params: Params, state: State, kernel: Kernel, rows: Rows, part: slice) -> np.ndarray:
    """Return the outputs of rows, (outputs, rows)."""
    table = dense_rows(rows, part)
    X = scaled_rows(state.scales, table, np.zeros(len(table)))[0] if params.standardise else table
    seen = look(state, kernel, table, X)
    if isinstance(state.mixture, Mixture):
        return mixed(state.mixture, experts.scores_of_classes(state.experts, seen))
    shift, width = target_scale(state.target)
    return shift + width * combination.combined(state.mixture, experts.values_of(state.experts, seen))


def relearn(params: Params, state: State, kernel: Kernel) -> None:
    """Recompute gamma, factors and edges of columns from the events so far, and train the experts again on them."""
    first = early.rows(state.early)
    known = rows_as_known(state.scales, first) if params.standardise else first
    state.early.stretch[:] = experts.relevance(state.experts, state.kernel(kernel), state.early.stretch, known)
    if params.settles:
        variance = variance_of_entries(state.scales, params.standardise)
        state.early.gamma[0] = min(1.0 / variance, GAMMA) if variance > 0.0 else 1.0
    place_edges(state.bins, first)
    experts.clear(state.experts)
    for rows, targets, weights in early.parts(state.early, BLOCK):
        X = rows_as_known(state.scales, rows) if params.standardise else rows
        seen = look(state, kernel, rows, X, room=len(X))
        if isinstance(state.mixture, Mixture):
            experts.learn_classes(state.experts, seen, targets, weights)
        else:
            experts.learn_values(state.experts, seen, targets_as_known(state.target, targets), weights)


def configure(problem: Problem) -> tuple[Params, Needs]:
    o = problem.options
    return Params(most=o["points"], standardise=o["standardise"], settles=o["gamma"] == 0.0), Needs(room=o["points"])


def start(params: Params, needs: Needs, problem: Problem, rng: np.random.Generator) -> State:
    d, of_classes = problem.d, problem.task == "classification"
    model = empty_expansion(needs, problem)
    o = problem.options
    return State(
        **new_experts(model, params.most, o["window"], bytes_of(o["memory"]), of_classes)._asdict(),
        mixture=new_mixture(len(CLASSIFIERS), problem.outputs) if of_classes else new_combination(len(REGRESSORS)),
        scales=new_scales(d),
        target=new_scales(1),
        early=new_early(o["gamma"] or 1.0 / d, d, problem.dtype),
    )


def write_coefficients(setup: Setup, params: Params, state: State) -> State:
    """Write the coefficients of the kernel expert, by which points are selected when models are merged."""
    W = state.kernel_squares.weights[:, int(state.kernel_squares.size[least_squares.FIXED]) : state.kernel_squares.count]
    state.model.coef[0, :, : state.model.stored] = coefficients(state.whitening.factor, W)
    return state


def in_common_coordinates(kernel: Kernel, *states: State) -> list[State]:
    """Return states with the factors of columns, and the centre, of the one that learned most."""
    common = max(states, key=lambda state: state.model.clock[EVENTS])
    stretch, centre = common.early.stretch, common.model.centre
    return [state.moved(kernel, stretch, centre) for state in states]


def bound(params: Params, t: int) -> float:
    """Return the maximum number of points."""
    return min(t, params.most)


def certificate(params: Params, state: State, problem: Problem) -> dict[str, float]:
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
        "log_loss": "Log-loss of the probabilities, of all events so far.",
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


class AutoClassifier(_Auto, OnlineClassifier):
    """A mixture of experts, trained in one pass and in fixed memory: a good first model for any stream.

    By default it stores 512 points, a window of the latest 1,000 events, and 16 MB of other past events.
    """

    example = Example("1.00")
    loss = "softmax"  # of the stacks, which give the probabilities

    @property
    def expert_weights_(self) -> dict[str, float]:
        """Return the weight of each expert's scaled scores in the sum that gives the probabilities; it may be negative."""
        return dict(zip(CLASSIFIERS, self._fitted().mixture.expert_weights().tolist(), strict=True))


class AutoRegressor(_Auto, BaseOnlineRegressor):
    """A mixture of experts whose predictions are combined, trained in one pass and in fixed memory: a good first model.

    By default it stores 512 points, a window of the latest 1,000 events, and 16 MB of other past events.
    """

    example = Example("1.00")
    standardise_target = False  # the method does it itself

    @property
    def expert_weights_(self) -> dict[str, float]:
        """Return the weight of each expert's prediction."""
        return dict(zip(REGRESSORS, combination.expert_weights(self._fitted().mixture).tolist(), strict=True))
