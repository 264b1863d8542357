"""The first events, stored until scales, gamma, factors of columns and edges are final, so that experts can relearn them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from ..compiler import jit_exact
from ..core.expansion import EVENTS
from ..core.limits import GAMMA
from ..core.shapes import declared
from ..core.state import Widening, padded, recoded
from .relevance import MOST

if TYPE_CHECKING:
    from ..merging.rules import Merging

SETTLE = (16, 64, 256, 1024)  # events after which all these are recomputed, for the last time after the last
ROOM = 2**22  # numbers that the first events may take: of wide rows, fewer are kept


@declared(lengths={"held": ("count", 0)})
class Early(NamedTuple):
    X: Annotated[np.ndarray, "rows: held columns"]
    targets: Annotated[np.ndarray, "targets: held"]
    weights: Annotated[np.ndarray, "weights: held"]
    # events now, and at most: 0 once all is settled
    count: Annotated[np.ndarray, "counts", "counts"]  # type: ignore[assignment]
    gamma: Annotated[np.ndarray, f"{1.0 / GAMMA}..{GAMMA}: 1"]  # as it is known now
    stretch: Annotated[np.ndarray, f"{1.0 / MOST}..{MOST}: columns"]  # factors of the columns for kernels, likewise
    # the events that the model had learned before, of which these experts know nothing; -1: not begun
    begun: Annotated[np.ndarray, "-1..1e16: 1"]

    def check(self, dimensions: Mapping[str, int]) -> None:
        """Raise if there are too many events."""
        n, most = self.count.tolist()
        if n > most or most not in (0, room_for(self.X.shape[1])):
            raise ValueError(f"there are {n} first events, but at most {most} of {room_for(self.X.shape[1])}")

    def settle(self) -> None:
        """Forget the events once they have decided all there is: none will be kept."""
        self.count[:] = 0

    def begin(self) -> None:
        """Keep the events from here on."""
        self.count[:] = 0, room_for(self.X.shape[1])

    @property
    def has_room(self) -> bool:
        """Whether there is space for all events."""
        return len(self.X) == room_for(self.X.shape[1])

    def grown(self, capacity: int) -> Early:
        """Return the buffer with space for all events."""
        n = room_for(self.X.shape[1])  # also where none will be kept, since those of a successor may come in their place
        if self.has_room:
            return self
        return self._replace(**{name: padded(getattr(self, name), 0, n) for name in ("X", "targets", "weights")})

    def trimmed(self, size: int) -> Early:
        """Return the buffer without unused space."""
        n = int(self.count[0])
        return self._replace(X=self.X[:n].copy(), targets=self.targets[:n].copy(), weights=self.weights[:n].copy())

    def widened(self, change: Widening) -> Early:
        """Recode the targets for the outputs of ``change``."""
        return self._replace(targets=recoded(self.targets, change))

    def retimed(self, factor: float) -> Early:
        """Return the buffer of a model whose events are counted otherwise."""
        return self._replace(begun=np.round(factor * self.begun) if self.begun[0] >= 0.0 else self.begun)

    def merged(self, other: Early, start: Early | None, merging: Merging) -> Early:
        """Return the events of both, unless there are enough for final scales: then none are kept any more."""
        begun = 0 if start is None else int(start.count[0])
        parts = {
            name: np.concatenate([own, theirs[begun:]])
            for name, own, theirs in zip(self._fields[:3], self[:3], other[:3], strict=True)
        }
        n, most = len(parts["X"]), int(min(self.count[1], other.count[1]))
        if n >= most:
            parts = {name: part[:0].copy() for name, part in parts.items()}
            n = most = 0
        ages = [state.model.clock[EVENTS] - state.early.begun[0] for state in merging[:3] if state is not None]
        begun = merging.model.clock[EVENTS] - ages[0] - ages[1] + sum(ages[2:])
        return self._replace(**parts, count=np.array([n, most]), begun=np.array([begun]))


def new_early(gamma: float, d: int, dtype: DTypeLike, begun: float = 0.0) -> Early:
    """Return an empty buffer."""
    nothing, most = np.zeros(0), room_for(d)
    return Early(
        np.zeros((0, d), dtype), nothing, nothing.copy(), np.array([0, most]), np.array([gamma]), np.ones(d), np.array([begun])
    )


def room_for(d: int) -> int:
    """Return how many events of d columns are kept."""
    return max((n for n in SETTLE if n * d <= ROOM), default=0)


def settlings() -> np.ndarray:
    """Return SETTLE for compiled code."""
    return np.array(SETTLE)


def next_settling(early: Early, events: float) -> int:
    """Return the number of events of the model at the next update of what they decide; 0 if there is none."""
    return next((int(early.begun[0]) + n for n in SETTLE if events < early.begun[0] + n and n <= early.count[1]), 0)


@jit_exact
def store(early, X, targets, weights):
    """Store events of positive weight while there is room."""
    n = early.count[0]
    for j in range(targets.size):
        if weights[j] > 0.0 and n < early.count[1]:
            for c in range(X.shape[1]):
                early.X[n, c] = X[j, c]
            early.targets[n], early.weights[n] = targets[j], weights[j]
            n += 1
    early.count[0] = n


def rows(early: Early) -> np.ndarray:
    """Return the rows of the stored events."""
    return early.X[: int(early.count[0])]


def parts(early: Early, length: int) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Yield the rows, targets and weights of the stored events, in parts of at most this length."""
    n = int(early.count[0])
    for start in range(0, n, length):
        part = slice(start, min(start + length, n))
        yield early.X[part], early.targets[part], early.weights[part]
