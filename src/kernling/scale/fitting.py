"""Fitting and predicting on a Dask cluster.

A pass over the data is one stage, or several (``merge_every``).  In a stage, consecutive partitions form parts; each trains
a model of its own from the model of the stage before, and neighbours merge in a tree.  Parts and tree follow from the list of
partitions alone, and each task from its arguments alone, so neither the number of workers nor the loss of one changes the
result.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..streams import Columns
from . import training
from .cluster import connected, need_distributed
from .partitions import Partition, Reading, libsvm_width, partitions_of

MOST_PARTS = 64  # models side by side, unless more are asked for
COLUMN_OPTIONS = ("target", "features", "categorical", "hash", "missing")


class Progress(NamedTuple):
    """How far training has come.

    Examples
    --------
    >>> from kernling.scale import Progress
    >>> Progress(round=1, parts=2, of=4, events=1000, seconds=2.0).rate
    500.0
    """

    round: int
    parts: int  # learned in this stage
    of: int
    events: int  # learned in all
    seconds: float

    @property
    def rate(self) -> float:
        """Events per second so far."""
        return self.events / max(self.seconds, 1e-9)


class BadPartitions(ValueError):
    """Some partitions cannot be read; ``model`` has learned all others of the stage.

    Examples
    --------
    >>> from kernling.scale import BadPartitions
    >>> print(BadPartitions([("3.parquet", "damaged Parquet file")], None))
    cannot be read: 3.parquet: damaged Parquet file; skip_bad=True goes on without
    """

    def __init__(self, failures: Sequence[tuple[str, str]], model: Any):
        named = "; ".join(f"{name}: {error}" for name, error in failures)
        super().__init__(f"cannot be read: {named}; skip_bad=True goes on without")
        self.failures, self.model = list(failures), model


class _Part(NamedTuple):
    places: list[int]  # of its partitions
    number: int


def fit(
    client: Any,
    model: Any,
    data: Any,
    y: Any = None,
    *,
    rounds: int = 1,
    merge_every: int | None = None,
    parts: int | None = None,
    first_rows: int = 1000,
    classes: Any = None,
    skip_bad: bool = False,
    progress: Callable[[Progress], None] | None = None,
    columns: Columns | None = None,
    **reading: Any,
) -> Any:
    """Train a model on data in many pieces; returns a new one, the merged one of all.

    The first rows of the first partition are learned first, by one model, so that what comes from the data (``gamma="scale"``,
    cells, random frequencies, categories) comes once; all parts go on from there.  A model that is fitted already goes on
    from what it is.

    Parameters
    ----------
    client : distributed.Client or str
        A client of a cluster; the address of a scheduler; or "local:2" for two processes on this machine.
    model : estimator
        Any of kernling's; it is not changed.
    data : Dask DataFrame, Dask array, path or list of paths
        Files are Parquet, CSV, LIBSVM, Arrow or JSON lines that every worker can read, in chunks.
    y : Dask array, optional
        The targets of a Dask array.
    rounds : int
        How often all data is learned; a round starts from the merged model of the one before.
    merge_every : int, optional
        Partitions that each part learns before all parts merge and go on from the merged model; all if not given.
    parts : int, optional
        Models that are trained side by side, of consecutive partitions each; one per partition, up to 64, if not given.
    first_rows : int
        Rows that are learned before the parts go different ways.
    classes : array, optional
        All labels; without them, new ones join as they appear.
    skip_bad : bool
        Go on without partitions that cannot be read, with a warning that names them.
    progress : callable, optional
        Called with a :class:`Progress` whenever a part has been learned.
    columns : Columns, optional
        Columns whose state the caller keeps, to predict further rows in the same way.
    **reading
        Further options of :func:`kernling.streams.stream`, such as ``target="late"``.

    Raises
    ------
    BadPartitions
        At the end of a stage in which partitions could not be read; its ``model`` has learned the others.

    Examples
    --------
    >>> import numpy as np, kernling as kl
    >>> from kernling import scale
    >>> rng = np.random.default_rng(0)
    >>> for part in range(2):
    ...     X = rng.normal(size=(500, 2))
    ...     np.savetxt(f"part{part}.csv", np.c_[X, X[:, 0] > X[:, 1]], delimiter=",", header="a,b,late", comments="")
    >>> model = kl.AVMClassifier(gamma=1.0, delta=0.5, lam=1e-3)
    >>> model = scale.fit("local:1", model, ["part0.csv", "part1.csv"], target="late")
    >>> print(model.t_, model.predict([[1.0, -1.0], [-1.0, 1.0]]))
    1000 [1. 0.]
    """
    for name, value in (("rounds", rounds), ("merge_every", merge_every), ("parts", parts), ("first_rows", first_rows)):
        if value is not None and value < 1:
            raise ValueError(f"{name} must be at least 1, not {value}")
    partitions, pieces = partitions_of(data, y)
    if not partitions:
        raise ValueError("data has no partitions")
    columns = columns or Columns(**{name: reading.pop(name) for name in COLUMN_OPTIONS if name in reading})
    with connected(client) as connection:
        run = _Run(
            connection, partitions, pieces, Reading(_settled(connection, partitions, reading), columns.to_state()), progress
        )
        start, entropy = run.begin(model, first_rows, classes), _entropy(model)
        columns.__dict__.update(Columns.from_state(run.reading.columns).__dict__)
        fresh = not hasattr(model, "t_")
        stages = [stage for _ in range(rounds) for stage in _stages(len(partitions), parts, merge_every)]
        for number, stage in enumerate(stages):
            run.round = 1 + number * rounds // len(stages)
            outcome = run.stage(start, stage, entropy, number, warm=fresh and number == 0)
            start = outcome.model
            new = [failure for failure in outcome.failures if failure not in run.told]
            if outcome.failures and not skip_bad:
                raise BadPartitions(outcome.failures, start)
            for name, error in new:
                warnings.warn(f"{name} cannot be read and was left out: {error}", stacklevel=2)
            run.told += new
    return start


class _Run:
    """One call of fit."""

    def __init__(self, client: Any, partitions: list[Partition], pieces: list[Any], reading: Reading, progress: Any):
        self.client, self.partitions, self.pieces, self.reading, self.progress = client, partitions, pieces, reading, progress
        self.round, self.events, self.begun = 1, 0, time.perf_counter()
        self.skip: tuple[int, int] = (-1, 0)  # a partition and how many of its first rows have been learned
        self.told: list[tuple[str, str]] = []

    def begin(self, model: Any, first_rows: int, classes: Any) -> Any:
        """The model that all parts start from."""
        if hasattr(model, "t_"):
            return model
        failures = []
        for place, (partition, piece) in enumerate(zip(self.partitions, self.pieces, strict=True)):
            task = self.task(training.begin)(model, partition, piece, self.reading, first_rows, classes)
            beginning = self.client.compute(task).result()
            if beginning.model is not None:
                self.reading = self.reading._replace(columns=beginning.columns)
                self.skip, self.events = (place, beginning.rows), beginning.rows
                return beginning.model
            failures.append(beginning.failure)
        raise ValueError(f"there is nothing to learn from: {'; '.join(failures)}")

    def task(self, function: Callable) -> Callable:
        """A function that becomes part of a graph when it is called, with a name of its own each time."""
        from dask import delayed

        return delayed(function, pure=False)

    def stage(self, model: Any, stage: list[_Part], entropy: int, number: int, warm: bool) -> training.Outcome:
        """All parts of a stage, merged.  No task needs what only a worker's memory holds, so any can be done again."""
        start = self.task(training.started)(model, 0 if warm else len(stage))
        train, join, events = self.task(training.train), self.task(training.join), self.task(_events)
        jobs = [train(start, (entropy, (number, part.number)), *self._arguments(part, warm)) for part in stage]
        level = jobs
        while len(level) > 1:
            pairs = [level[i : i + 2] for i in range(0, len(level), 2)]
            level = [pair[0] if len(pair) == 1 else join(*pair, start) for pair in pairs]
        end, *counts = self.client.compute([self.task(training.settle)(level[0], model), *map(events, jobs)])
        for done, (_, learned) in enumerate(need_distributed().as_completed(counts, with_results=True), 1):
            self.events += learned
            if self.progress:
                self.progress(Progress(self.round, done, len(jobs), self.events, time.perf_counter() - self.begun))
        return end.result()

    def _arguments(self, part: _Part, warm: bool) -> tuple[Any, ...]:
        chosen = [self.partitions[i] for i in part.places], [self.pieces[i] for i in part.places]
        skip = self.skip[1] if warm and part.places[0] == self.skip[0] else 0
        return *chosen, self.reading, skip


def _events(outcome: training.Outcome) -> int:
    return outcome.events


def _stages(partitions: int, parts: int | None, merge_every: int | None) -> list[list[_Part]]:
    """Which partitions each part of each stage learns: consecutive ones, as evenly as can be."""
    count = min(parts or min(partitions, MOST_PARTS), partitions)
    length = partitions if merge_every is None else count * merge_every
    stages = []
    for first in range(0, partitions, length):
        places = np.arange(first, min(first + length, partitions))
        groups = np.array_split(places, min(count, len(places)))
        stages.append([_Part(group.tolist(), number) for number, group in enumerate(groups)])
    return stages


def _settled(client: Any, partitions: list[Partition], reading: dict[str, Any]) -> dict[str, Any]:
    """Options with the number of columns of LIBSVM files, which no file alone tells."""
    if reading.get("n_features") is not None or partitions[0].path is None:
        return reading
    jobs = [client.submit(libsvm_width, partition, reading, pure=False) for partition in partitions]
    width = max(client.gather(jobs))
    return {**reading, "n_features": width} if width else reading


def _entropy(model: Any) -> int:
    """A number from which the random choices of all parts follow."""
    seed = model.get_params(deep=False).get("random_state")
    if seed is None:
        return int(np.random.SeedSequence().entropy)  # type: ignore[arg-type]
    return int(seed) if isinstance(seed, (int, np.integer)) else int(np.random.default_rng(seed).integers(2**63))


def predict(client: Any, model: Any, data: Any, method: str = "predict", *, columns: Columns | None = None, **reading: Any):
    """What a model says of each row, in the order of the partitions, each read by a worker in chunks.

    Parameters
    ----------
    client : distributed.Client or str
        As for :func:`fit`.
    model : estimator
        A fitted one.
    data : Dask DataFrame, Dask array, path or list of paths
        As for :func:`fit`; targets are not looked at.
    method : str
        "predict", "decision_function" or "predict_proba".
    columns : Columns, optional
        Those of :func:`fit`.
    **reading
        Further options of :func:`kernling.streams.stream`.

    Returns
    -------
    numpy.ndarray

    Examples
    --------
    >>> import dask.array, numpy as np, kernling as kl
    >>> from kernling import scale
    >>> X = np.random.default_rng(0).normal(size=(500, 2))
    >>> model = kl.AVMClassifier(gamma=1.0, delta=0.5, lam=1e-3).fit(X, X[:, 0] > X[:, 1])
    >>> said = scale.predict("local:1", model, dask.array.from_array(X, chunks=(250, 2)))
    >>> print(f"{np.mean(said == (X[:, 0] > X[:, 1])):.1f}")
    1.0
    """
    check_is_fitted(model)
    if not hasattr(model, method):
        raise ValueError(f"a {type(model).__name__} has no {method}")
    partitions, pieces = partitions_of(data, None)
    columns = columns or Columns(**{name: reading.pop(name) for name in COLUMN_OPTIONS if name in reading})
    reading.setdefault("n_features", model.n_features_in_)
    how = Reading(reading, columns.to_state())
    with connected(client) as connection:
        from dask import delayed

        say, shared = delayed(training.say, pure=False), delayed(model, pure=False, traverse=False)
        jobs = [say(shared, *pair, how, method) for pair in zip(partitions, pieces, strict=True)]
        return np.concatenate(connection.gather(connection.compute(jobs)))
