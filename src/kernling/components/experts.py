"""The experts of a mixture: least squares on features, columns and steps, and the window of the latest events.

All take rows as they are scaled, but for steps, and kernels see columns times their factors (relevance.py).  They say what they
would have said of each event before it was learned.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..core import state as states
from ..core.expansion import EVENTS, Expansion
from ..core.kernels import Kernel
from ..core.limits import SCORE, Diverged
from ..core.matrices import squared_norms
from ..core.state import Widening
from . import archive, bins, least_squares, line, window
from .archive import Archive, new_archive
from .bins import Bins, new_bins
from .combination import RIDGE, new_combination
from .early import Early
from .least_squares import LeastSquares, Ridge, class_targets, new_least_squares
from .line import WIDE, Line, new_line
from .mixture import Mixture, new_mixture
from .relevance import column_factors
from .scaling import Scales, keep, new_scales
from .succession import leads
from .whitened import Whitening, admit, coefficients, new_whitening, point_factor, whiten
from .window import VALUES, Window, new_window

if TYPE_CHECKING:
    from ..merging.rules import Merging

KERNEL = Ridge(0.1, 1.0, 0)
LINEAR = Ridge(1.0, 1.0, 0)
LINEAR_RECENT = Ridge(0.1, 0.998, 1000)
BINNED = Ridge(1.0, 0.998, 1000)
NOVELTY = 0.02  # the share of k(x, x) above which an event becomes a point
SQUARES = ("kernel", "linear", "linear_recent", "bins")
MEMORY = ("memory", "memory_recent")
CLASSIFIERS = (*SQUARES, "window", "window_narrow", "window_cityblock", "window_cityblock_narrow", *MEMORY)
REGRESSORS = (
    *SQUARES,
    *(
        "window",
        "window_narrow",
        "window_narrowest",
        "window_cityblock",
        "window_cityblock_narrow",
        "window_cityblock_narrowest",
    ),
    *(
        "average",
        "average_narrow",
        "average_narrowest",
        "average_cityblock",
        "average_cityblock_narrow",
        "average_cityblock_narrowest",
    ),
    "nearest_five",
    *MEMORY,
)


class Nothing(NamedTuple):
    """No successor."""


class Experts(NamedTuple):
    """The experts, how they are mixed, and how rows are scaled for them: what a successor has of its own."""

    model: Expansion  # the points; their coefficients are only written for merging
    whitening: Whitening
    kernel_squares: LeastSquares
    linear: Line
    linear_recent: Line
    bins: Bins
    window: Window
    archive: Archive
    mixture: Mixture | LeastSquares
    scales: Scales
    target: Scales
    early: Early
    succession: Any = Nothing()  # Succession
    successor: Any = Nothing()  # Experts that have neither

    def check(self, dimensions: Mapping[str, int]) -> None:
        """Raise if there are too many points."""
        if self.model.stored > self.whitening.most[0]:
            raise ValueError(f"there are {self.model.stored} points of the experts, but at most {self.whitening.most[0]}")

    @property
    def has_begun(self) -> bool:
        """Whether these experts learn."""
        return bool(self.early.begun[0] >= 0.0)

    @property
    def answering(self) -> Experts:
        """The experts that answer: these, or their successor where it leads."""
        return self.successor if self.successor.has_begun and leads(self.succession) else self

    @property
    def fits(self) -> bool:
        """Whether there is memory for a successor if and only if there is one."""
        return self.successor.has_begun == (len(self.successor.window.points) > 0)

    def fitted(self) -> Experts:
        """Return the same with memory for a successor if and only if there is one."""
        found = self.successor.grown(len(self.model.points)) if self.successor.has_begun else self.successor.emptied()
        return self._replace(successor=found)

    def emptied(self) -> Experts:
        """Return a successor that has not begun and holds nothing."""
        clear(self)
        self.early.count[0], self.early.begun[0] = 0, -1.0
        return states.trimmed(self)

    def grown(self, capacity: int) -> Experts:
        """Return a successor with room for this many points, if it has begun."""
        return states.grown(self, capacity) if self.has_begun else self

    def trimmed(self, size: int) -> Experts:
        """Return a successor without spare room."""
        return states.trimmed(self)

    def widened(self, change: Widening) -> Experts:
        """Convert a successor to the outputs of ``change``."""
        return states.widened(self, change)

    def set_centre(self, row: np.ndarray) -> None:
        """Store rows of a successor relative to this one."""
        states.set_centre(self, row)

    def merged(self, other: Experts, start: Experts | None, merging: Merging) -> Experts:
        """Return no successor: models are merged by what answers (methods/auto.py)."""
        return self.emptied()

    def retimed(self, factor: float) -> Experts:
        """Return a successor in a model whose events are counted otherwise."""
        clock = self.model.clock.copy()
        clock[EVENTS] = np.round(factor * clock[EVENTS])
        return self._replace(model=self.model._replace(clock=clock), early=self.early.retimed(factor))

    def kernel(self, given: Kernel) -> Kernel:
        """Return the kernel with the current gamma."""
        return given._replace(gamma=float(self.early.gamma[0]))


def new_experts(model: Expansion, most: int, events: int, memory: int, early: Early, of_classes: bool) -> Experts:
    """Return untrained experts, with a maximum number of points, of latest events, and of bytes of the memory."""
    d, outputs = model.points.shape[1], model.coef.shape[1]
    powers, columns = (2, outputs) if of_classes else (3, VALUES)
    return Experts(
        model,
        new_whitening(most),
        new_least_squares(KERNEL, 1 + d if d <= WIDE else 1, most, outputs),
        new_line(LINEAR, d, outputs),
        new_line(LINEAR_RECENT, d, outputs),
        new_bins(BINNED, d, outputs),
        new_window(events, d, model.points.dtype, powers, columns),
        new_archive(d, memory),
        new_mixture(len(CLASSIFIERS), outputs) if of_classes else new_combination(len(REGRESSORS)),
        new_scales(d),
        new_scales(1),
        early,
    )


def clear(experts: Experts) -> None:
    """Reset all experts to their untrained state."""
    experts.model.size[0] = 0
    least_squares.clear(experts.kernel_squares, KERNEL)
    line.clear(experts.linear, LINEAR)
    line.clear(experts.linear_recent, LINEAR_RECENT)
    least_squares.clear(experts.bins.sums, BINNED)
    window.clear(experts.window)
    archive.clear(experts.archive)


def begin(experts: Experts, events: float, gamma: float) -> None:
    """Let these experts learn from here on, when the model has learned so many events, knowing nothing of them."""
    clear(experts)
    if isinstance(experts.mixture, Mixture):
        states.restore(experts.mixture, new_mixture(len(CLASSIFIERS), experts.model.coef.shape[1]))
    else:
        least_squares.clear(experts.mixture, RIDGE)
    for scales in (experts.scales, experts.target):
        keep(scales, new_scales(len(scales.mean)))
    experts.bins.columns[:], experts.bins.edges[:] = 0, bins.NEVER
    experts.model.clock[EVENTS] = experts.early.begun[0] = events
    experts.early.count[0], experts.early.gamma[0], experts.early.stretch[:] = 0, gamma, 1.0


def take_over(experts: Experts) -> None:
    """Replace all that experts know by what their successor knows; it has no spare room, or both have the same."""
    for name in Experts._fields[: Experts._fields.index("succession")]:
        states.restore(getattr(experts, name), getattr(experts.successor, name))
    experts.successor.early.begun[0] = -1.0


def moved(experts: Experts, kernel: Kernel, common: Experts) -> Experts:
    """Return experts with the gamma, the factors of columns and the centre of others; they have no spare room.

    Where these differ, the features of the kernel expert are new, and its weights are taken over.
    """
    early, centre = experts.early, common.model.centre
    factor, shift = common.early.stretch / early.stretch, common.early.stretch * (experts.model.centre - centre)
    width = math.sqrt(common.early.gamma[0] / early.gamma[0])
    if (factor == 1.0).all() and not shift.any() and width == 1.0:
        return experts
    model, held, whitening, squares = experts.model, experts.window, experts.whitening, experts.kernel_squares
    points, latest = ((part.points * factor + shift).astype(part.points.dtype) for part in (model, held))
    model = model._replace(points=points, norms=squared_norms(points), centre=centre)
    norms = np.zeros_like(held.norms)
    norms[: held.stored] = squared_norms(latest)
    fixed = int(squares.size[least_squares.FIXED])
    if model.stored and ((factor != 1.0).any() or width != 1.0):
        whitening = whitening._replace(factor=point_factor(kernel, model).ravel())
        coef = coefficients(whitening.factor, squares.weights[:, fixed:])
        model = model._replace(coef=coef[np.newaxis])
    if width != 1.0 and squares.count:
        squares = least_squares.rescaled(squares, np.r_[1.0, np.full(fixed - 1, width), np.ones(squares.count - fixed)])
    return experts._replace(
        model=model,
        whitening=whitening,
        kernel_squares=squares,
        window=held._replace(points=latest, norms=norms),
        archive=experts.archive.moved(factor),
        early=early._replace(stretch=common.early.stretch, gamma=common.early.gamma),
    )


class Seen(NamedTuple):
    """Rows as the experts see them."""

    kernel: Kernel
    columns: np.ndarray  # (1 + d, events): 1 and the row
    X: np.ndarray  # (events, d) for the kernel
    norms: np.ndarray
    stretch: np.ndarray  # what columns of X are multiplied by
    fixed: int  # features of the kernel expert that are always there
    Z: np.ndarray  # all its features, and room for points to come
    new: np.ndarray  # the part of k(x, x) that the points do not explain
    bins: np.ndarray  # (1 + edges, events): 1 and whether columns exceed the edges
    stored: np.ndarray  # (events, d) for the memory


def look(experts: Experts, given: Kernel, rows: np.ndarray, X: np.ndarray, room: int = 0) -> Seen:
    """Return rows, and how they are scaled, as the experts see them, with room for this many new points."""
    b, d = X.shape
    model, kernel, stretch = experts.model, experts.kernel(given), experts.early.stretch
    columns = np.ones((1 + d, b))
    columns[1:] = X.T
    centred = _stretched(experts, X)
    norms = squared_norms(centred)
    fixed = int(experts.kernel_squares.size[least_squares.FIXED])
    Z = np.empty((fixed + min(int(experts.whitening.most[0]), model.stored + room), b))
    Z[0] = 1.0
    Z[1:fixed] = columns[1:fixed] * math.sqrt(kernel.gamma)
    new = whiten(experts.whitening, kernel, model, centred, norms, Z[fixed:])
    stored = archive.as_stored(X, stretch)
    return Seen(kernel, columns, centred, norms, stretch, fixed, Z, new, bins.features(experts.bins, rows), stored)


def _stretched(experts: Experts, X: np.ndarray) -> np.ndarray:
    return ((X - experts.model.centre) * experts.early.stretch).astype(experts.model.points.dtype)


def relevance(experts: Experts, given: Kernel, X: np.ndarray) -> np.ndarray:
    """Return new factors of the columns, by what the kernel expert says of these rows."""
    kernel = experts.kernel(given)
    n, fixed = experts.model.stored, int(experts.kernel_squares.size[least_squares.FIXED])
    weights = experts.kernel_squares.weights
    coef, slopes = coefficients(experts.whitening.factor, weights[:, fixed : fixed + n]), np.zeros((len(weights), X.shape[1]))
    if fixed > 1:
        slopes[:] = math.sqrt(kernel.gamma) * weights[:, 1:fixed]
    points = experts.model.points[:n].astype(np.float64)
    return column_factors(kernel, experts.early.stretch, _stretched(experts, X).astype(np.float64), points, coef, slopes)


def scores_of_classes(experts: Experts, seen: Seen) -> np.ndarray:
    """Return the current scores of the experts, (experts, outputs, events)."""
    outputs = experts.model.coef.shape[1]
    latest = window.scores_of(experts.window, *_for_window(seen))
    return np.stack([*_squares(experts, seen), *latest, *archive.scores_of(experts.archive, seen.stored, outputs)])


def learn_classes(experts: Experts, seen: Seen, targets: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Train all experts; return their scores of each event before it was learned, (experts, outputs, events)."""
    outputs = experts.model.coef.shape[1]
    squares = _learn_squares(experts, seen, class_targets(targets, outputs), weights)
    latest = window.learn_classes(experts.window, *_for_window(seen), targets, weights)
    return np.stack([*squares, *latest, *archive.learn(experts.archive, seen.stored, targets, weights, outputs)])


def values_of(experts: Experts, seen: Seen) -> np.ndarray:
    """Return the current predictions of the experts, (experts, events)."""
    squares = _squares(experts, seen)
    latest = window.values_of(experts.window, *_for_window(seen), seen.stretch)
    return np.concatenate([*squares, latest, squares[0] + archive.scores_of(experts.archive, seen.stored, 0)[:, 0]])


def learn_values(experts: Experts, seen: Seen, targets: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Train all experts; return their predictions of each event before it was learned, (experts, events).

    The memory holds what the kernel expert left over of each value.
    """
    squares = _learn_squares(experts, seen, targets[np.newaxis], weights)
    latest = window.learn_values(experts.window, *_for_window(seen), seen.stretch, targets, weights)
    rest = archive.learn(experts.archive, seen.stored, targets - squares[0][0], weights, 0)[:, 0]
    return np.concatenate([*squares, latest, squares[0] + rest])


def _for_window(seen: Seen) -> tuple[Kernel, np.ndarray, np.ndarray]:
    return seen.kernel, seen.X, seen.norms


def _squares(experts: Experts, seen: Seen) -> tuple[np.ndarray, ...]:
    """Return the scores of the least-squares experts."""
    known = seen.Z[: seen.fixed + experts.model.stored]
    lines = (line.scores_of(part, seen.columns) for part in (experts.linear, experts.linear_recent))
    return least_squares.scores_of(experts.kernel_squares, known), *lines, least_squares.scores_of(experts.bins.sums, seen.bins)


def _learn_squares(experts: Experts, seen: Seen, columns: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, ...]:
    if not all((np.abs(scores) <= SCORE).all() for scores in _squares(experts, seen)):
        raise Diverged
    rows = (seen.kernel, experts.model, seen.X, seen.norms)
    n = seen.fixed + admit(experts.whitening, *rows, weights, seen.new, NOVELTY, seen.Z[seen.fixed :])
    return (
        least_squares.learn(experts.kernel_squares, KERNEL, seen.Z[:n], columns, weights),
        line.learn(experts.linear, LINEAR, seen.columns, columns, weights),
        line.learn(experts.linear_recent, LINEAR_RECENT, seen.columns, columns, weights),
        least_squares.learn(experts.bins.sums, BINNED, seen.bins, columns, weights),
    )
