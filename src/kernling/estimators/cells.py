"""Parameters of methods that store the events that are far from others."""

from __future__ import annotations

from ..components.cells import CELLS, OVERFLOWS
from ..components.coverage import KINDS
from .base import OnlineEstimator
from .constraints import NOTHING, POSITIVE, SWITCH, OneOf, Real, Whole
from .options import Budget
from .parameters import parameter
from .ranges import Times
from .resolve import auto_delta, auto_theta


class Cells(OnlineEstimator):
    """Events are represented by the core points of cells, which are opened on the fly."""

    delta: str | float = parameter(
        default="auto",
        allowed=(OneOf(("auto",)), Real(0.0, extreme=1e100)),
        search=Times(1.0, 3.0),  # smaller cells would be replaced all the time
        resolve=auto_delta,
        doc='Diameter of a cell; "auto" is the smallest at which the first 1,000 rows open at most 400 cells.',
    )
    coverage: str = parameter(
        default="sphere",
        allowed=OneOf(tuple(KINDS)),
        doc="Shape of a cell; boxes as the paper's Algorithm 4 prints them (printed_box) have twice the diameter delta.",
    )
    approximate: str = parameter(
        default="always",
        allowed=OneOf(("always", "bernoulli", "margin")),
        doc="When an event is replaced by its core point: always; with probability 1 - beta / t**rho; when its "
        "margin is at least 1 or its residual within epsilon (which, with the hinge loss, never bounds the model).",
    )
    beta: float = parameter(default=0.0, allowed=Real(0.0), doc="Factor in the probability of the Bernoulli rule.")
    rho: float = parameter(default=1.0, allowed=POSITIVE, doc="Exponent in the probability of the Bernoulli rule.")
    max_cells: int | None = parameter(
        default=1000, allowed=(NOTHING, Whole(1)), doc="Maximum number of cells; None: no limit, as in the paper."
    )
    when_full: str = parameter(
        default="replace",
        allowed=OneOf(("replace", "drop")),
        doc="What happens to an event outside of all cells when there are ``max_cells``: it takes the place of the core point "
        "whose cell has not been visited for longest, or is dropped.",
    )
    zero_cells: bool = parameter(
        default=False, allowed=SWITCH, doc="Whether events without loss also open cells, as in the paper."
    )

    n_cells_ = property(lambda self: int(self._fitted().stats[CELLS]), doc="Cells now.")
    n_replaced_ = property(lambda self: self._overflows("replace"), doc="Cells replaced because of ``max_cells``.")
    n_dropped_ = property(lambda self: self._overflows("drop"), doc="Events dropped because of ``max_cells``.")

    def _overflows(self, when_full: str) -> int:
        return int(self._fitted().stats[OVERFLOWS]) if self._problem.options["when_full"] == when_full else 0


class Oracle(Budget):
    """Some events are stored as points, and all others represented by random features."""

    oracle: str = parameter(
        default="coverage",
        allowed=OneOf(("coverage", "budget", "always")),
        doc="Which events are stored as points: those farther than theta from all stored ones; the first ``budget``; none.",
    )
    theta: str | float = parameter(
        default="auto",
        allowed=(OneOf(("auto",)), Real(0.0, strict=True, extreme=1e100)),
        search=Times(0.5, 2.0),
        resolve=auto_theta,
        doc='Radius of the coverage; "auto" is half the diameter at which the first 1,000 rows open at most 400 cells.',
    )
    max_points: int | None = parameter(
        default=1000,
        allowed=(NOTHING, Whole(1)),
        doc='Maximum number of points that oracle="coverage" stores; None: no limit, as in the paper.',
    )
    budget: int = parameter(default=100, doc='Number of points that oracle="budget" stores.')
