"""How experts answer: with weights after all events, which are brought up to date when they have learned."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from hashlib import blake2b
from typing import Any

import numpy as np

from ..compiler import address, bind, by_address, entry_point, inner_exact, shaped, strided
from ..core.expansion import EVENTS
from ..core.kernels import Kernel
from ..core.matrices import values_in_order
from ..core.rows import Rows, row_of
from ..core.triangles import solve_back, write_scores
from . import archive, line, logistic, window
from .combination import REACH, mean_of
from .experts import Experts, new_answers
from .learning import LOCAL, SQUARES, Seen, Side, add_to_kernel, kind_of, look, scale_block, write_fixed
from .mixture import learn_mixed
from .pending import FIXED, write_weights

KEPT = 2**24  # bytes of what explanations share, at most


@inner_exact
def _answer_squares(side, answers, seen, b, scores):
    """Write the scores of the experts of least squares."""
    experts, d = side.experts, seen.rows.shape[1]
    model, n, outputs = experts.model, side.experts.model.size[0], scores.shape[1]
    columns, fixed = shaped(seen.columns, (1 + d, b)), experts.kernel_squares.size[FIXED]
    Z, known = shaped(seen.Z, (max(fixed, n), b)), shaped(seen.out, (outputs, b))
    X, norms = shaped(seen.centred, (b, d)), seen.norms[:b]
    write_fixed(side, columns, fixed, Z)
    write_scores(answers.kernel, fixed, Z, known)
    values_in_order(side.kernel, model.points[:n], model.norms[:n], X, norms, Z)
    write_scores(answers.points, n, Z, scores[0])
    _add(known, scores[0])
    write_scores(answers.linear, 1 + d, columns, scores[1])
    write_scores(answers.linear_recent, 1 + d, columns, scores[2])
    steps = shaped(seen.steps, (1 + experts.bins.edges.size, b))
    write_scores(answers.bins, steps.shape[0], steps, scores[3])


@inner_exact
def _answer_logistic(side, answers, seen, b, scores):
    """Write the scores of logistic regression, of rows whose kernel values have just been computed."""
    fixed, n = side.experts.kernel_squares.size[FIXED], side.experts.model.size[0]
    Z, known = shaped(seen.Z, (max(fixed, n), b)), shaped(seen.out, scores.shape)
    write_scores(answers.logistic_points, n, Z, scores)
    write_fixed(side, shaped(seen.columns, (1 + seen.rows.shape[1], b)), fixed, Z)
    write_scores(answers.logistic, fixed, Z, known)
    _add(known, scores)


@inner_exact
def _add(values, scores):
    for o in range(scores.shape[0]):
        for j in range(scores.shape[1]):
            scores[o, j] += values[o, j]


def write_line(line, W):
    """Placeholder: write the weights of a linear expert."""


def _prepare(side, answers):
    """Write the weights that predictions need."""
    experts, n = side.experts, side.experts.model.size[0]
    fixed = experts.kernel_squares.size[FIXED]
    write_weights(experts.kernel_squares, answers.kernel)
    for o in range(answers.kernel.shape[0]):
        for k in range(n):
            answers.points[o, k] = answers.kernel[o, fixed + k]
        solve_back(experts.whitening.factor, answers.points[o], n)
    write_line(experts.linear, answers.linear)
    write_line(experts.linear_recent, answers.linear_recent)
    write_weights(experts.bins.sums, answers.bins)


def _prepare_classes(side, answers):
    """Write the weights that predictions of classes need; those of logistic regression only if they have changed."""
    prepare(side, answers)
    held, fixed = side.experts.logistic, side.experts.kernel_squares.size[FIXED]
    for o in range(answers.logistic.shape[0]):
        known, points, n = answers.logistic[o], answers.logistic_points[o], 0
        if logistic.write_weights(held, held.places[o], known):
            for k in range(points.size):
                points[k] = known[fixed + k]
                if points[k] != 0.0:
                    n = k + 1  # not all points: later ones would change how sums are rounded, and nothing else
            solve_back(side.experts.whitening.factor, points, n)


def _prepare_values(side, answers):
    """Same for a regression."""
    prepare(side, answers)
    write_weights(side.experts.mixture, answers.mixture)


def prepare(side, answers):
    """Placeholder for ``_prepare``."""


@inner_exact
def _answer_classes(side, answers, seen, b, out):
    """Write the outputs of the rows of ``seen``, whose weights and targets are 0, (outputs, rows)."""
    experts, outputs, d = side.experts, side.experts.model.places.size, seen.rows.shape[1]
    scores, views = shaped(seen.scores, (experts.mixture.mean.shape[0], outputs, b)), experts.window.coef.shape[0]
    targets, weights = seen.targets[:b], seen.weights[:b]
    scale_block(side, seen, b)
    look(side, seen, b)
    _answer_squares(side, answers, seen, b, scores)
    _answer_logistic(side, answers, seen, b, scores[SQUARES])
    X, norms = shaped(seen.centred, (b, d)), seen.norms[:b]
    window.learn_classes(experts.window, side.kernel, X, norms, targets, weights, scores[LOCAL : LOCAL + views])
    archive.learn(experts.archive, shaped(seen.stored, (b, d)), targets, weights, outputs, scores[LOCAL + views :])
    learn_mixed(experts.mixture, seen.fades, scores, targets, weights, out)


@inner_exact
def _answer_values(side, answers, seen, b, out):
    """Same for a regression."""
    experts, d, n = side.experts, seen.rows.shape[1], side.experts.mixture.size[FIXED]
    predictions, whole = shaped(seen.scores, (n + 1, b)), shaped(seen.scores, (n + 1, 1, b))
    targets, weights, last = seen.targets[:b], seen.weights[:b], n - archive.VIEWS
    scale_block(side, seen, b)
    look(side, seen, b)
    _answer_squares(side, answers, seen, b, whole)
    X, norms, stretch = shaped(seen.centred, (b, d)), seen.norms[:b], experts.early.stretch
    window.learn_values(experts.window, side.kernel, X, norms, stretch, targets, weights, predictions[SQUARES:last])
    archive.learn(experts.archive, shaped(seen.stored, (b, d)), targets, weights, 0, whole[last:n])
    add_to_kernel(predictions, last, n)
    mean_of(predictions)
    write_scores(answers.mixture, n, predictions, out)
    scales = experts.target
    width = math.sqrt(scales.squares[0] / max(scales.count[0], 1.0))
    for j in range(b):
        out[0, j] = scales.mean[0] + width * min(max(predictions[n, j] + out[0, j], -REACH), REACH)


_PREPARE = {
    wide: bind(_prepare, exact=True, write_line=lines) for wide, lines in ((False, write_weights), (True, line.save_weights))
}
PREPARE = {
    (values, wide): bind(_prepare_values if values else _prepare_classes, exact=True, prepare=_PREPARE[wide])
    for values in (False, True)
    for wide in (False, True)
}


def answer(side, answers, seen, b, out):
    """Placeholder for one of the functions above."""


def _answer_rows(side, answers, seen, rows, first, out):
    """Write the outputs of rows from ``first`` on."""
    for j in range(out.shape[1]):
        row_of(rows, first + j, seen.rows[j])
        seen.targets[j] = seen.weights[j] = 0.0
    if out.shape[1] > 0:
        answer(side, answers, seen, out.shape[1], out)


def _answer_event(side, answers, seen, x, largest, out):
    """Write the outputs of an event; return whether all its numbers are finite and within the limit."""
    for c in range(x.size):
        if not abs(x[c]) <= largest:
            return False
        seen.rows[0, c] = x[c]
    seen.targets[0] = seen.weights[0] = 0.0
    answer(side, answers, seen, 1, out)
    return True


_BY_TASK = {False: _answer_classes, True: _answer_values}
ANSWER = {values: bind(_answer_rows, exact=True, answer=one) for values, one in _BY_TASK.items()}
ANSWER_ONE = {values: bind(_answer_event, exact=True, answer=one) for values, one in _BY_TASK.items()}


class Kept:
    """What explanations with the same background and players share until the model learns."""

    def __init__(self, key: tuple[bytes, ...]):
        self.key = key
        self._parts: dict[Any, np.ndarray] = {}
        self._room = KEPT

    def of(self, name: Any, make: Callable[[], np.ndarray]) -> np.ndarray:
        """Return an array, which is only made if it is not kept; it is kept if there is room."""
        found = self._parts.get(name)
        if found is None:
            found = make()
            if found.nbytes <= self._room:
                self._room -= found.nbytes
                self._parts[name] = found
        return found


class Answering:
    """The answers of a state, for several threads; only the buffers of ``of_event`` are for one at a time."""

    def __init__(self, state: Experts, kernel: Kernel, standardise: bool):
        self._state, self._said = state, state.answering
        self._gamma, self._events = float(self._said.early.gamma[0]), -1.0
        self._lock = threading.Lock()
        side = Side.of(self._said, kernel, standardise)
        self.answers = new_answers(self._said)
        self._side, self._answers, self._kind = by_address(side), by_address(self.answers), kind_of(self._said)
        self._prepare = entry_point(PREPARE[self._kind], self._side, self._answers)
        self._one: Any = None
        self._kept: Kept | None = None

    def is_of(self, state: Experts) -> bool:
        """Return whether these are the answers of a state, which may have learned in place."""
        said = state.answering
        return state is self._state and said is self._said and said.early.gamma[0] == self._gamma

    def follow(self) -> None:
        """Bring the weights up to date."""
        if self._events != self._state.model.clock[EVENTS]:
            with self._lock:
                self._prepare(address(self._side), address(self._answers))
                self._events, self._kept = self._state.model.clock[EVENTS], None

    def kept_for(self, *game: np.ndarray) -> Kept:
        """Return what explanations of the state as it is now share, with the same background and players."""
        key, kept = tuple(blake2b(part.tobytes()).digest() for part in game), self._kept
        if kept is None or kept.key != key:
            kept = self._kept = Kept(key)
        return kept

    def outputs(self, rows: Rows, part: range) -> np.ndarray:
        """Return the outputs of some rows, (outputs, rows)."""
        return self._answer(rows, part)[0]

    def expert_scores(self, rows: Rows, part: range) -> np.ndarray:
        """Return what each expert says of some rows, (experts, outputs, rows); predictions of values are clipped."""
        out, seen = self._answer(rows, part)
        shape = len(self._said.names), *out.shape
        return seen.scores[: math.prod(shape)].reshape(shape)

    def _answer(self, rows: Rows, part: range) -> tuple[np.ndarray, Seen]:
        out = np.empty((self._said.model.outputs, len(part)))
        seen = Seen(self._said, len(part))
        ANSWER[self._kind[0]](self._side, self._answers, by_address(seen), by_address(rows), part.start, out)
        return out, seen

    def of_event(self, x: np.ndarray, largest: float) -> np.ndarray | None:
        """Return the outputs of an event of the model's type and width; None if it holds what cannot be scored."""
        if self._one is None:
            seen, out = by_address(Seen(self._said, 1)), np.empty((self._said.model.outputs, 1))
            records = self._side, self._answers, seen
            entry = entry_point(ANSWER_ONE[self._kind[0]], *records, strided(x), 1.0, out)
            self._one = entry, tuple(map(address, records)), seen, out
        entry, records, _, out = self._one
        return out[:, 0].copy() if entry(*records, x, largest, out) else None
