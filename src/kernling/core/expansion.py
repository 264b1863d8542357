"""Expansion: the stored points of a model and their columns of coefficients.

A model is f_o(x) = scale * sum_k coef[0, places[o], k] K(p_k, x).  Further groups of coefficients (sums for averages,
snapshots, a memory's gradient) use the same points.

Outputs are in the order of the labels, their columns of coefficients in the order in which the classes appeared, followed by
spare ones: ``places`` has the column of each output, so that a late class moves nothing.

Points are stored minus ``centre`` (the first dense row ever seen; zero for CSR and for kernels of inner products), since
distances by norms and products lose digits far from the origin.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar
from typing import Annotated, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from .shapes import are_norms, declared
from .state import Widening, padded

SCALE, TOTAL, EVENTS, NEXT, EXACT = range(5)  # what clock holds; TOTAL, NEXT and EXACT belong to averages.py
LIMIT = 2**28  # maximum numbers in points
CHOICES = ("last", "average", "suffix")  # outputs that have votes where the choice is automatic


room = ContextVar("room", default=LIMIT)  # limited to the size of the file while loading one


@declared()
class Expansion(NamedTuple):
    points: Annotated[np.ndarray, "rows: stored columns"]
    norms: Annotated[np.ndarray, "not negative: stored"]  # squared
    coef: Annotated[np.ndarray, "coefficients: groups outputs stored"]  # float64
    places: Annotated[np.ndarray, "settings: outputs"]  # in files, and wherever there is no spare room, 0, 1, ...
    tags: Annotated[np.ndarray, "numbers: tags stored"]  # float64: per-point data of a learner
    centre: Annotated[np.ndarray, "rows: columns"]
    size: Annotated[np.ndarray, "counts: 1"]  # number of points
    # scale of group 0, its running total, events learned, times of the next snapshots
    clock: Annotated[np.ndarray, "1e-308..1e6", "0..1e22", "counts", "not negative", "-1..1e16"]
    marks: Annotated[np.ndarray, "-1..1e16: marks"]  # events at which each snapshot was taken, -1 for none
    votes: Annotated[np.ndarray, "shares: votes"]  # weight of each of CHOICES, or none

    def check(self, dimensions: Mapping[str, int]) -> None:
        """Raise unless the norms are those of the points."""
        if not are_norms(self.norms, self.points):
            raise ValueError("state.model.norms are not the squared norms of state.model.points")

    @property
    def work(self) -> int:
        """Number of multiplications per event."""
        return int(self.size[0]) * self.points.shape[1]

    @property
    def outputs(self) -> int:
        """Number of outputs."""
        return len(self.places)

    @property
    def stored(self) -> int:
        """Points stored."""
        return int(self.size[0])

    def has_room(self, points: int) -> bool:
        """Return whether this many more points fit."""
        return int(self.size[0]) + points <= len(self.points)

    def set_centre(self, row: np.ndarray) -> None:
        """Store rows relative to this one."""
        self.centre[:] = row

    def grown(self, capacity: int) -> Expansion:
        """Return a copy with room for more points."""
        check_room(capacity, self.points.shape[1])
        return self._replace(
            points=padded(self.points, 0, capacity),
            norms=padded(self.norms, 0, capacity),
            coef=padded(self.coef, 2, capacity),
            tags=padded(self.tags, 1, capacity),
        )

    def trimmed(self, n: int) -> Expansion:
        """Return a copy without room for more points."""
        return self._replace(
            points=self.points[:n].copy(),
            norms=self.norms[:n].copy(),
            coef=self.coef[:, :, :n].copy(),
            tags=self.tags[:, :n].copy(),
        )

    def ordered(self) -> Expansion:
        """Return a copy with the columns in the order of the labels, and no others."""
        return self._replace(coef=self.coef.take(self.places, axis=1), places=np.arange(self.outputs))

    def widened(self, change: Widening) -> Expansion:
        """Convert to the outputs of ``change`` on the same points."""
        return self._replace(coef=change.columns(self.coef, self.places), places=change.places(self.places))


def check_room(count: int, d: int, what: str = "points", *, later: bool = False) -> None:
    """Raise if a table of this size exceeds the limit of a model, or with ``later=False`` that of the file being loaded."""
    if count * d > (LIMIT if later else room.get()):
        raise ValueError(
            f"{count} {what} of {d} columns are too many to store; hash the columns to fewer "
            f"(sklearn.feature_extraction.FeatureHasher) or bound the number of {what}"
        )


def new_expansion(
    d: int, outputs: int, dtype: DTypeLike, *, groups: int = 1, tags: int = 0, marks: int = 0, votes: int = 0
) -> Expansion:
    """Return an empty model."""
    check_room(1, d)
    clock = np.zeros(5)
    clock[SCALE] = 1.0
    clock[EXACT] = -1.0
    return Expansion(
        points=np.zeros((0, d), dtype),
        norms=np.zeros(0, dtype),
        coef=np.zeros((groups, outputs, 0)),
        places=np.arange(outputs),
        tags=np.zeros((tags, 0)),
        centre=np.zeros(d, dtype),
        size=np.zeros(1, np.int64),
        clock=clock,
        marks=np.full(marks, -1.0),
        votes=np.full(votes, 1.0 / max(votes, 1)),
    )
