"""The experts of a mixture: least squares on features, columns and steps, logistic regression, and past events.

All take rows as they are scaled, but for steps, and kernels see columns times their factors (relevance.py).  They say what they
would have said of each event before it was learned (learning.py).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple, cast

import numpy as np

from ..core import state as states
from ..core.expansion import EVENTS, Expansion
from ..core.kernels import Kernel
from ..core.matrices import squared_norms
from . import archive, bins, least_squares, line, logistic, window
from .archive import Archive, new_archive
from .bins import Bins, new_bins
from .combination import new_combination
from .early import Early
from .latest import Latest, new_latest
from .least_squares import BLOCK, LeastSquares, Ridge, new_least_squares
from .line import WIDE, Line, new_line
from .logistic import Logistic, new_logistic
from .mixture import Mixture, new_mixture
from .relevance import column_factors
from .scaling import Scales, new_scales, set_scales
from .succession import Nothing, heir, leads
from .whitened import Whitening, coefficients, new_whitening, point_factor
from .window import VALUES, Window, new_window

KERNEL = Ridge(0.1, 1.0, 0)
LINEAR = Ridge(1.0, 1.0, 0)
LINEAR_RECENT = Ridge(0.1, 0.998, 1024)
BINNED = Ridge(1.0, 0.998, 1024)
UNEVEN, EVEN = 0.5, 0.6  # the evenness of classes below which logistic regression begins to learn, and above which it forgets
NOVELTY = 0.02  # the share of k(x, x) above which an event becomes a point
SQUARES = ("kernel", "linear", "linear_recent", "bins")
MEMORY = ("memory", "memory_recent")
CLASSIFIERS = (*SQUARES, "logistic", "window", "window_narrow", "window_cityblock", "window_cityblock_narrow", *MEMORY)
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


@heir
class Experts(NamedTuple):
    """The experts, how they are mixed, and how rows are scaled for them: what a successor has of its own."""

    model: Expansion  # the points; their coefficients are only written for merging
    whitening: Whitening
    kernel_squares: LeastSquares
    linear: Line
    linear_recent: Line
    bins: Bins
    logistic: Logistic | Nothing  # on the features of the kernel expert; nothing in a regression
    window: Window
    archive: Archive
    mixture: Mixture | LeastSquares
    scales: Scales
    target: Scales
    early: Early
    latest: Latest
    succession: Any = Nothing()  # Succession
    successor: Any = Nothing()  # Experts that have neither

    @property
    def is_grown(self) -> bool:
        """Whether there is memory for events; a model from a file has no spare room."""
        held, rare, waits = self.window, self.logistic, (self.kernel_squares, self.linear, self.linear_recent, self.bins.sums)
        return (
            len(self.model.points) >= int(self.whitening.most[0])
            and held.columns.shape[1] == len(held.norms)
            and self.archive.has_room
            and self.early.has_room
            and not any(isinstance(part, LeastSquares) and part.waits and len(part.pending.weights) < BLOCK for part in waits)
            and (not isinstance(rare, Logistic) or rare.has_room)
        )

    @property
    def alone(self) -> Experts:
        """The experts without their successor, which are all of one type."""
        return self._replace(succession=Nothing(), successor=Nothing())

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the experts."""
        return CLASSIFIERS if isinstance(self.mixture, Mixture) else REGRESSORS

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
        """Whether there is memory for all events, and for a successor if and only if there is one."""
        return self.is_grown and self.successor.has_begun == self.successor.is_grown

    def fitted(self) -> Experts:
        """Return the same with memory for all events, and for a successor if and only if there is one."""
        found = self.successor if self.successor.has_begun else self.successor.emptied()
        return states.grown(self._replace(successor=found), len(self.model.points))

    def emptied(self) -> Experts:
        """Return a successor that has not begun and holds nothing."""
        clear(self)
        self.latest.count[0] = 0
        self.early.begin()
        self.early.begun[0] = -1.0
        return states.without_points(self)

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
    d, outputs = model.points.shape[1], model.outputs
    powers, columns = (2, outputs) if of_classes else (3, VALUES)
    fixed = 1 + d if d <= WIDE else 1
    return Experts(
        model,
        new_whitening(most),
        new_least_squares(KERNEL, fixed, most, outputs),
        new_line(LINEAR, d, outputs),
        new_line(LINEAR_RECENT, d, outputs),
        new_bins(BINNED, d, outputs),
        new_logistic(fixed, most, outputs) if of_classes else Nothing(),
        new_window(events, d, model.points.dtype, powers, columns),
        new_archive(d, memory),
        new_mixture(len(CLASSIFIERS), outputs) if of_classes else new_combination(len(REGRESSORS)),
        new_scales(d),
        new_scales(1),
        early,
        new_latest(d, model.points.dtype),
    )


def clear(experts: Experts) -> None:
    """Reset all experts to their untrained state."""
    experts.model.size[0] = 0
    least_squares.clear(experts.kernel_squares)
    line.clear(experts.linear)
    line.clear(experts.linear_recent)
    least_squares.clear(experts.bins.sums)
    if isinstance(experts.logistic, Logistic):
        logistic.clear(experts.logistic)
    window.clear(experts.window)
    archive.clear(experts.archive)


def fold(experts: Experts, relearns: bool = False) -> None:
    """Fold events into what experts know where it is time; ``relearns`` if they are a block of the first events, once more.

    The kernel expert's ridge is larger for a rare class, and logistic regression only learns if there is one.
    """
    least_squares.settle(experts.kernel_squares, even=isinstance(experts.mixture, Mixture))
    for part in (experts.linear, experts.linear_recent, experts.bins.sums, experts.mixture):
        if isinstance(part, LeastSquares):
            least_squares.settle(part)
    age = int(experts.model.clock[EVENTS] - experts.early.begun[0])
    if relearns or age % BLOCK == 0:
        fold_logistic(experts)


def fold_logistic(experts: Experts) -> None:
    """Let logistic regression learn from the events that wait if classes are uneven, and forget all once they are even."""
    held, mixed = experts.logistic, experts.mixture
    if isinstance(held, Logistic) and isinstance(mixed, Mixture):
        if mixed.evenness < (EVEN if held.has_begun else UNEVEN):
            logistic.settle(held)
        elif held.has_begun:
            logistic.forget(held)


def folded(experts: Experts) -> Experts:
    """Return experts whose events are all folded into the sums; those of least squares have no spare room."""
    named = zip(experts._fields, experts, strict=True)
    parts = {name: part.folded().trimmed(0) for name, part in named if isinstance(part, LeastSquares)}
    return experts._replace(**cast(Any, parts), bins=experts.bins._replace(sums=experts.bins.sums.folded().trimmed(0)))


def begin(experts: Experts, events: float, gamma: float) -> None:
    """Let these experts learn from here on, when the model has learned so many events, knowing nothing of them."""
    clear(experts)
    if isinstance(experts.mixture, Mixture):
        states.restore(experts.mixture, new_mixture(len(CLASSIFIERS), experts.model.outputs))
    else:
        least_squares.clear(experts.mixture)
    for scales in (experts.scales, experts.target):
        set_scales(scales, new_scales(len(scales.mean)))
    experts.bins.columns[:], experts.bins.edges[:] = 0, bins.NEVER
    experts.model.clock[EVENTS] = experts.early.begun[0] = events
    experts.latest.count[0] = 0
    experts.early.begin()
    experts.early.gamma[0], experts.early.stretch[:] = gamma, 1.0


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
    points, latest = ((rows * factor + shift).astype(rows.dtype) for rows in (model.points, held.columns.T))
    model = model._replace(points=points, norms=squared_norms(points), centre=centre)
    norms = np.zeros_like(held.norms)
    norms[: held.stored] = squared_norms(latest)
    squares = squares.folded().trimmed(0)
    fixed = int(squares.size[least_squares.FIXED])
    if model.stored and ((factor != 1.0).any() or width != 1.0):
        whitening = whitening._replace(factor=point_factor(kernel, model))
        coef = coefficients(whitening.factor, squares.weights[:, fixed:])
        model = model._replace(coef=coef[np.newaxis])
    rare = experts.logistic.folded() if isinstance(experts.logistic, Logistic) else experts.logistic
    if width != 1.0 and squares.count:
        widths = np.r_[1.0, np.full(fixed - 1, width), np.ones(squares.count - fixed)]
        squares = least_squares.rescaled(squares, widths)
        rare = rare.rescaled(widths) if isinstance(rare, Logistic) else rare
    return experts._replace(
        model=model,
        whitening=whitening,
        kernel_squares=squares,
        logistic=rare,
        window=held._replace(columns=np.ascontiguousarray(latest.T), norms=norms),
        archive=experts.archive.moved(factor),
        early=early._replace(stretch=common.early.stretch, gamma=common.early.gamma),
    )


def stretched(experts: Experts, X: np.ndarray) -> np.ndarray:
    """Return scaled rows as kernels see them: minus the centre, times the factors of the columns."""
    number = experts.model.points.dtype
    return ((X - experts.model.centre) * experts.early.stretch).astype(number).astype(np.float64)


def relevance(experts: Experts, given: Kernel, X: np.ndarray) -> np.ndarray:
    """Return new factors of the columns, by what the kernel expert says of these rows."""
    kernel = experts.kernel(given)
    n, fixed = experts.model.stored, int(experts.kernel_squares.size[least_squares.FIXED])
    weights = least_squares.current_weights(experts.kernel_squares)
    coef, slopes = coefficients(experts.whitening.factor, weights[:, fixed : fixed + n]), np.zeros((len(weights), X.shape[1]))
    if fixed > 1:
        slopes[:] = math.sqrt(kernel.gamma) * weights[:, 1:fixed]
    points = experts.model.points[:n].astype(np.float64)
    return column_factors(kernel, experts.early.stretch, stretched(experts, X), points, coef, slopes)


# ---------------------------------------------------------------------- answers


class Answers(NamedTuple):
    """What predictions need besides the experts themselves: the weights of features, by output."""

    kernel: np.ndarray  # of a constant, the columns, and whitened kernel values
    points: np.ndarray  # of kernel values
    logistic: np.ndarray  # the same two of logistic regression; of no outputs in a regression
    logistic_points: np.ndarray
    linear: np.ndarray
    linear_recent: np.ndarray
    bins: np.ndarray
    mixture: np.ndarray  # of the experts of a regression


def new_answers(experts: Experts) -> Answers:
    """Return memory for the answers of experts."""
    outputs, d = experts.model.outputs, experts.model.points.shape[1]
    n, most = int(experts.kernel_squares.size[least_squares.FIXED]), len(experts.model.points)
    rare = outputs if isinstance(experts.logistic, Logistic) else 0
    widths = (n + most, most, 1 + d, 1 + d, 1 + len(experts.bins.edges))
    rows = (outputs, outputs, rare, rare, outputs, outputs, outputs)
    own = (np.zeros(shape) for shape in zip(rows, (*widths[:2], *widths), strict=True))
    return Answers(*own, np.zeros((1, len(experts.names))))  # type: ignore[call-arg]
