"""Progress and errors of training on a cluster."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple


class Progress(NamedTuple):
    """Progress of training.

    Examples
    --------
    >>> from kernling.distributed import Progress
    >>> progress = Progress(round=1, parts=2, of=4, events=1000, seconds=2.0)
    >>> print(progress.rate, progress)
    500.0 round 1, 2 of 4 parts, 1,000 events, 500 events a second
    """

    round: int
    parts: int  # learned in this stage
    of: int
    events: int  # learned in total, including unfinished parts as far as workers have reported
    seconds: float

    @property
    def rate(self) -> float:
        """Events per second so far."""
        return self.events / max(self.seconds, 1e-9)

    def __str__(self) -> str:
        done = f"round {self.round}, {self.parts} of {self.of} parts"
        return f"{done}, {self.events:,} events, {self.rate:,.0f} events a second"


class BadPartitions(ValueError):
    """Raised if partitions cannot be read; ``model`` was trained on all others of the stage.

    Examples
    --------
    >>> from kernling.distributed import BadPartitions
    >>> print(BadPartitions([("3.parquet", "damaged Parquet file")], None))
    cannot be read: 3.parquet: damaged Parquet file; use skip_bad=True to skip them
    """

    def __init__(self, failures: Sequence[tuple[str, str]], model: Any):
        named = "; ".join(f"{name}: {error}" for name, error in failures)
        super().__init__(f"cannot be read: {named}; use skip_bad=True to skip them")
        self.failures, self.model = list(failures), model


class Interrupted(KeyboardInterrupt):
    """Raised on Ctrl-C during training; ``model`` is merged from the parts that were finished.

    Examples
    --------
    >>> import kernling as kl
    >>> from kernling.distributed import Interrupted
    >>> try:
    ...     raise Interrupted(kl.AVMClassifier().fit([[0.0], [1.0]], [0, 1]))
    ... except KeyboardInterrupt as stopped:
    ...     print(stopped.model.t_)
    2
    """

    def __init__(self, model: Any):
        super().__init__(f"stopped after {model.t_:,} events")
        self.model = model
