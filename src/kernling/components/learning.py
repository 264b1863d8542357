"""How experts learn: an event or a block of events is one compiled call, which changes nothing if it diverges.

Each number is computed by the same operations in the same order, however many events there are: results do not depend on how
events are divided among calls.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ..compiler import UNIT, bind, by_address, inner_exact, jit_exact, shaped
from ..core import state as states
from ..core.expansion import EVENTS
from ..core.kernels import Kernel
from ..core.limits import LARGEST, Diverged
from ..core.rows import copy_numbers, row_of
from . import archive, bins, early, least_squares, line, logistic, one_by_one, succession, window
from .combination import REACH, mean_of
from .experts import LINEAR, LINEAR_RECENT, NOVELTY, Experts
from .latest import keep_latest
from .least_squares import BLOCK, RENEW, LeastSquares, class_targets
from .mixture import FADES, Mixture, learn_mixed
from .pending import FEATURES, FIXED, MOST, commit
from .scaling import scale, scale_targets, targets_as_known
from .whitened import admit, whiten

LINEAR_RIDGE, LINEAR_KEEP, _ = LINEAR
RECENT_RIDGE, RECENT_KEEP, _ = LINEAR_RECENT
FAR = LARGEST["float32"]
SQUARES = 4  # experts of least squares, which come first; of classes, logistic regression is the next one
LOCAL = SQUARES + 1  # the first expert of classes that is one of past events


class Side(NamedTuple):
    """Experts, with the kernel as they know it."""

    experts: Experts
    kernel: Kernel
    standardise: bool

    @classmethod
    def of(cls, state: Experts, kernel: Kernel, standardise: bool) -> Side:
        """Return the experts of a state."""
        return cls(state.alone, state.kernel(kernel), standardise)


class Seen:
    """A block of events as experts see it, and their scores: memory for compiled code, which takes tables from flat arrays."""

    def __init__(self, experts: Experts, size: int):
        d, outputs = experts.model.points.shape[1], experts.model.outputs
        squares, count = experts.kernel_squares, len(experts.names)
        self.rows = np.empty((size, d), experts.model.points.dtype)
        self.targets, self.weights = np.empty(size), np.empty(size)
        self.X, self.columns, self.centred = np.empty(size * d), np.empty((1 + d) * size), np.empty(size * d)
        self.norms, self.new = np.empty(size), np.empty(size)
        self.stored = np.empty(size * d, np.float32)
        self.Z = np.empty(int(squares.size[FIXED] + squares.size[MOST]) * size)
        self.steps = np.empty((1 + len(experts.bins.edges)) * size)
        self.T, self.out = np.empty(outputs * size), np.empty(outputs * size)
        self.scores = np.empty((count + 1) * outputs * size)
        self.scaled = np.empty(3 * size)
        self.fades = np.array(FADES)
        self.scales = states.copied(experts.scales)
        self.target = states.copied(experts.target)
        self.linear, self.linear_recent = (
            part if isinstance(part, LeastSquares) and part.waits else states.copied(part)  # to be restored
            for part in (experts.linear, experts.linear_recent)
        )


# ---------------------------------------------------------------------- what experts see


@inner_exact
def scale_block(side, seen, b):
    """Scale the rows of a block; the scales after them are those of ``seen``."""
    known, after, rows = side.experts.scales, seen.scales, seen.rows[:b]
    X = shaped(seen.X, (b, rows.shape[1]))
    after.count[0], after.clipped[0] = known.count[0], known.clipped[0]
    for c in range(rows.shape[1]):
        after.mean[c], after.squares[c], after.kind[c] = known.mean[c], known.squares[c], known.kind[c]
    scale(rows, seen.weights[:b], after.count, after.clipped, after.mean, after.squares, after.kind, X)
    if not side.standardise:
        for j in range(b):
            for c in range(rows.shape[1]):
                X[j, c] = rows[j, c]


@inner_exact
def look(side, seen, b):
    """Write the rows of a block, and how they are scaled, as the experts see them."""
    experts, rows = side.experts, seen.rows[:b]
    d = rows.shape[1]
    X, columns, stored = shaped(seen.X, (b, d)), shaped(seen.columns, (1 + d, b)), shaped(seen.stored, (b, d))
    for j in range(b):
        columns[0, j] = 1.0
        for c in range(d):
            columns[1 + c, j] = X[j, c]
            stored[j, c] = np.float32(min(max(X[j, c], -FAR), FAR)) * np.float32(experts.early.stretch[c])
    _centre(experts, X, shaped(seen.centred, (b, d)), seen.norms)
    bins.write_features(experts.bins, rows, shaped(seen.steps, (1 + experts.bins.edges.size, b)))


@inner_exact
def _centre(experts, X, centred, norms):
    """Write rows minus the centre, times the factors of the columns, and their squared norms, in the precision of points."""
    number = experts.model.points.dtype.type
    for j in range(X.shape[0]):
        total = 0.0
        for c in range(X.shape[1]):
            value = np.float64(number((X[j, c] - experts.model.centre[c]) * experts.early.stretch[c]))
            centred[j, c] = value
            total += value * value
        norms[j] = np.float64(number(total))


@inner_exact
def write_fixed(side, columns, fixed, Z):
    """Write the features of the kernel expert that are always there: 1 and the columns."""
    root = math.sqrt(side.kernel.gamma)
    for k in range(fixed):
        for j in range(Z.shape[1]):
            Z[k, j] = columns[k, j] * root if k > 0 else 1.0


# ---------------------------------------------------------------------- learning


def _learn_squares(side, seen, b, scores):
    """Let the experts of least squares learn a block; return whether that was possible, and otherwise change nothing."""
    experts, d = side.experts, seen.rows.shape[1]
    model, squares = experts.model, experts.kernel_squares
    known, features, fixed = model.size[0], squares.size[FEATURES], squares.size[FIXED]
    room = min(experts.whitening.most[0], known + b)
    weights, T, columns = seen.weights[:b], shaped(seen.T, (scores.shape[1], b)), shaped(seen.columns, (1 + d, b))
    Z, X, norms, new = shaped(seen.Z, (fixed + room, b)), shaped(seen.centred, (b, d)), seen.norms[:b], seen.new[:b]
    write_fixed(side, columns, fixed, Z)
    whiten(experts.whitening, side.kernel, model, X, norms, Z[fixed:], new)
    n = admit(experts.whitening, side.kernel, model, X, norms, weights, new, NOVELTY, Z[fixed:])
    first = least_squares.learn(squares, Z[: fixed + n], T, weights, scores[0])
    steps = shaped(seen.steps, (1 + experts.bins.edges.size, b))
    last = least_squares.learn(experts.bins.sums, steps, T, weights, scores[3]) if first >= 0 else -1
    done = last >= 0 and learn_lines(experts, seen, columns, T, weights, scores)
    if done:
        commit(squares, first)
        commit(experts.bins.sums, last)
    else:
        model.size[0], squares.size[FEATURES] = known, features
    return done


def learn_lines(experts, seen, columns, T, weights, scores):
    """Placeholder for one of the functions below: let the linear experts learn, or change nothing."""


@inner_exact
def learn_wide_lines(experts, seen, columns, T, weights, scores):
    """Let linear experts with a diagonal matrix learn."""
    line.save(experts.linear, seen.linear)
    line.save(experts.linear_recent, seen.linear_recent)
    done = line.learn(experts.linear, LINEAR_RIDGE, LINEAR_KEEP, columns, T, weights, scores[1])
    if done:
        done = line.learn(experts.linear_recent, RECENT_RIDGE, RECENT_KEEP, columns, T, weights, scores[2])
    if not done:
        line.save(seen.linear, experts.linear)
        line.save(seen.linear_recent, experts.linear_recent)
    return done


@inner_exact
def learn_square_lines(experts, seen, columns, T, weights, scores):
    """Let linear experts with a whole matrix learn."""
    waits = experts.linear.size[FIXED] > least_squares.NARROW
    if not waits:
        one_by_one.save(experts.linear, seen.linear)
        one_by_one.save(experts.linear_recent, seen.linear_recent)
    first = least_squares.learn(experts.linear, columns, T, weights, scores[1])
    last = least_squares.learn(experts.linear_recent, columns, T, weights, scores[2]) if first >= 0 else -1
    if last >= 0:
        commit(experts.linear, first)
        commit(experts.linear_recent, last)
    elif not waits:
        one_by_one.save(seen.linear, experts.linear)
        one_by_one.save(seen.linear_recent, experts.linear_recent)
    return last >= 0


def learn_squared(side, seen, b, scores):
    """Placeholder for ``_learn_squares`` with one of the functions for linear experts."""


@inner_exact
def _finish(side, seen, b):
    """Take over the scales, store the first events, and count."""
    experts, after = side.experts, seen.scales
    experts.scales.count[0], experts.scales.clipped[0] = after.count[0], after.clipped[0]
    for c in range(after.mean.size):
        experts.scales.mean[c], experts.scales.squares[c] = after.mean[c], after.squares[c]
        experts.scales.kind[c] = after.kind[c]
    early.store(experts.early, seen.rows[:b], seen.targets[:b], seen.weights[:b])
    keep_latest(experts.latest, seen.rows[:b], seen.weights[:b])
    for j in range(b):
        if seen.weights[j] > 0.0:
            experts.model.clock[EVENTS] += 1.0


def _learn_classes(side, seen, b, out, fresh):
    """Let experts of classes learn a block of events, and write the outputs before each, (outputs, events).

    Returns whether that was possible; otherwise nothing has changed.  If not ``fresh``, rows are relearned: as they are scaled
    now, and neither scales nor the mixture learn.
    """
    experts, outputs = side.experts, side.experts.model.places.size
    n, d = side.experts.mixture.mean.shape[0], seen.rows.shape[1]
    scores = shaped(seen.scores, (n, outputs, b))
    targets, weights = seen.targets[:b], seen.weights[:b]
    class_targets(targets, shaped(seen.T, (outputs, b)))
    if fresh:
        scale_block(side, seen, b)
    look(side, seen, b)
    if not learn_squared(side, seen, b, scores):
        return False
    Z = shaped(seen.Z, (experts.kernel_squares.size[FIXED] + experts.model.size[0], b))
    logistic.learn(experts.logistic, Z, targets, weights, scores[SQUARES])
    X, views = shaped(seen.centred, (b, d)), experts.window.coef.shape[0]
    window.learn_classes(experts.window, side.kernel, X, seen.norms[:b], targets, weights, scores[LOCAL : LOCAL + views])
    archive.learn(experts.archive, shaped(seen.stored, (b, d)), targets, weights, outputs, scores[LOCAL + views :])
    if fresh:
        learn_mixed(experts.mixture, seen.fades, scores, targets, weights, out)
        _finish(side, seen, b)
    return True


def _learn_values(side, seen, b, out, fresh):
    """Same for a regression."""
    experts, d = side.experts, seen.rows.shape[1]
    n = experts.mixture.size[FIXED]
    predictions, whole = shaped(seen.scores, (n + 1, b)), shaped(seen.scores, (n + 1, 1, b))
    targets, weights, after = seen.targets[:b], seen.weights[:b], seen.target
    scaled, shift, width = seen.scaled[:b], seen.scaled[b : 2 * b], seen.scaled[2 * b : 3 * b]
    target = experts.target
    after.count[0], after.mean[0], after.squares[0] = target.count[0], target.mean[0], target.squares[0]
    if fresh:
        scale_targets(targets, weights, after.count, after.mean, after.squares, scaled, shift, width)
        scale_block(side, seen, b)
    look(side, seen, b)
    copy_numbers(scaled, shaped(seen.T, (b,)))
    if not learn_squared(side, seen, b, whole):
        return False
    X, norms, last = shaped(seen.centred, (b, d)), seen.norms[:b], n - archive.VIEWS
    window.learn_values(
        experts.window, side.kernel, X, norms, experts.early.stretch, scaled, weights, predictions[SQUARES:last]
    )
    rest = shaped(seen.T, (b,))
    for j in range(b):
        rest[j] = scaled[j] - predictions[0, j]  # the memory holds what the kernel expert left over of each value
    archive.learn(experts.archive, shaped(seen.stored, (b, d)), rest, weights, 0, whole[last:n])
    add_to_kernel(predictions, last, n)
    if fresh:
        _combine(experts, seen, b, predictions, out)
        for j in range(b):
            out[0, j] = shift[j] + width[j] * out[0, j]
        target.count[0], target.mean[0], target.squares[0] = after.count[0], after.mean[0], after.squares[0]
        _finish(side, seen, b)
    return True


@inner_exact
def add_to_kernel(predictions, first, last):
    for m in range(first, last):
        for j in range(predictions.shape[1]):
            predictions[m, j] += predictions[0, j]


@inner_exact
def _combine(experts, seen, b, predictions, out):
    """Learn the combination of the experts' predictions, on the difference of the targets from their mean."""
    n, T, scaled = predictions.shape[0] - 1, shaped(seen.T, (1, b)), seen.scaled[:b]
    mean_of(predictions)
    for j in range(b):
        T[0, j] = scaled[j] - predictions[n, j]
    least_squares.learn(experts.mixture, predictions[:n], T, seen.weights[:b], out)
    for j in range(b):
        out[0, j] = min(max(predictions[n, j] + out[0, j], -REACH), REACH)


_SQUARES = {
    wide: bind(_learn_squares, kind=UNIT, exact=True, learn_lines=lines)
    for wide, lines in ((False, learn_square_lines), (True, learn_wide_lines))
}
LEARN = {
    (values, wide): bind(_learn_values if values else _learn_classes, kind=UNIT, exact=True, learn_squared=_SQUARES[wide])
    for values in (False, True)
    for wide in (False, True)
}


def learn(side, seen, b, out, fresh):
    """Placeholder for one of LEARN: see ``_learn_classes``."""


def _relearn_block(side, seen, b, out):
    return learn(side, seen, b, out, False)


_RELEARN = {kind: bind(_relearn_block, exact=True, learn=one) for kind, one in LEARN.items()}


def relearn_block(side: Side, seen: Seen, events: tuple[np.ndarray, ...]) -> None:
    """Train experts on events, rows as they are scaled now."""
    rows, X, targets, weights = events
    b = len(rows)
    seen.rows[:b], seen.targets[:b], seen.weights[:b] = rows, targets, weights
    seen.X[: X.size] = X.ravel()
    seen.scaled[:b] = targets_as_known(side.experts.target, targets)
    out = np.empty((side.experts.model.outputs, b))
    if not _RELEARN[kind_of(side.experts)](by_address(side), by_address(seen), b, out):
        raise Diverged


@inner_exact
def load(seen, events, start, last, ahead):
    """Copy events from ``start`` on, until so many are learned; return how many there are."""
    b = learned = 0
    while b < seen.norms.size and start + b < last and learned < ahead:
        row_of(events.rows, start + b, seen.rows[b])
        seen.targets[b], seen.weights[b] = events.targets[start + b], events.weights[start + b]
        if seen.weights[b] > 0.0:
            learned += 1
        b += 1
    return b


@inner_exact
def fits(heir):
    """Return whether there is memory for a successor if and only if there is one."""
    return (heir.early.begun[0] >= 0.0) == (heir.window.columns.size > 0)


@jit_exact
def until_due(own, heir, contest, times, settlings):
    """Return the number of events until something is to be settled."""
    events, two = own.model.clock[EVENTS], heir.early.begun[0] >= 0.0
    ahead = _until_due(own, events, settlings)
    if two:
        ahead = min(ahead, _until_due(heir, events, settlings))
    age = events - heir.early.begun[0] if two else -1.0
    return max(min(ahead, succession.until_due(contest, events, age, times)), 1)  # also with the numbers of a file


class Held(NamedTuple):
    """The counts of least squares."""

    size: np.ndarray
    record: np.ndarray


class Binned(NamedTuple):
    """Those of steps."""

    sums: Held


class Age(NamedTuple):
    """What experts know of when they began."""

    count: np.ndarray  # type: ignore[assignment]
    begun: np.ndarray


class Clock(NamedTuple):
    """The count of events."""

    clock: np.ndarray


class Counts(NamedTuple):
    """All that ``until_due`` reads of experts, as they name it: Python passes this in a small part of the time."""

    model: Clock
    kernel_squares: Held
    bins: Binned
    early: Age

    @classmethod
    def of(cls, experts: Experts) -> Counts:
        """Return the counts of experts."""
        kernel, steps = (Held(sums.size, sums.record) for sums in (experts.kernel_squares, experts.bins.sums))
        return cls(Clock(experts.model.clock), kernel, Binned(steps), Age(experts.early.count, experts.early.begun))


@inner_exact
def _until_due(experts, events, settlings):
    age = int(events - experts.early.begun[0])
    ahead = min(least_squares.until_due(experts.kernel_squares), RENEW - age % RENEW, BLOCK - age % BLOCK)
    ahead = min(ahead, least_squares.until_due(experts.bins.sums))
    for i in range(settlings.size):
        if age < settlings[i] <= experts.early.count[1]:
            ahead = min(ahead, settlings[i] - age)
    return ahead


def kind_of(experts: Experts) -> tuple[bool, bool]:
    """Return whether experts are those of a regression, and of so many columns that the linear ones have no whole matrix."""
    return not isinstance(experts.mixture, Mixture), not isinstance(experts.linear, LeastSquares)
