"""Fitting on a Dask cluster.

A pass over the data is one stage, or several (``merge_every``).  In a stage, consecutive partitions form parts; each trains
a model of its own from the model of the stage before, and neighbours merge in a tree (stages.py).
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from ..pipeline import StreamPipeline, last_step
from ..streams.steps import columns_of
from .cluster import connected
from .partitions import Partition, Reading, partitions_of, width_of
from .results import BadPartitions, Interrupted, Progress
from .stages import MOST_PARTS, Run, stages_of


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
    progress: Callable[[Progress], None] | bool = False,
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
        Any of kernling's, or a pipeline whose steps do not change with the rows, such as ``Encode`` without a scale: models
        that learned on different scales cannot be merged.  It is not changed.
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
    progress : bool or callable
        True shows a line on standard error; a callable is called with a :class:`Progress`.  Both hear of each part that has
        been learned, and twice a second of each that is being learned.
    **reading
        Options of :func:`kernling.streams.stream`, such as ``target="late"``; a pipeline knows its columns.

    Raises
    ------
    BadPartitions
        At the end of a stage in which partitions could not be read; its ``model`` has learned the others.
    Interrupted
        A KeyboardInterrupt; its ``model`` is merged from the parts that were at their end.

    Examples
    --------
    >>> import numpy as np, kernling as kl
    >>> from kernling import distributed
    >>> rng = np.random.default_rng(0)
    >>> for part in range(2):
    ...     X = rng.normal(size=(500, 2))
    ...     np.savetxt(f"part{part}.csv", np.c_[X, X[:, 0] > X[:, 1]], delimiter=",", header="a,b,late", comments="")
    >>> model = kl.AVMClassifier(gamma=1.0, delta=0.5, lam=1e-3)
    >>> model = distributed.fit("local:1", model, ["part0.csv", "part1.csv"], target="late")
    >>> print(model.t_, model.predict([[1.0, -1.0], [-1.0, 1.0]]))
    1000 [1. 0.]
    """
    for name, value in (("rounds", rounds), ("merge_every", merge_every), ("parts", parts), ("first_rows", first_rows)):
        if value is not None and value < 1:
            raise ValueError(f"{name} must be at least 1, not {value}")
    partitions, pieces = partitions_of(data, y)
    if not partitions:
        raise ValueError("data has no partitions")
    if merge_every and not parts and len(partitions) <= MOST_PARTS:
        raise ValueError(f"merge_every={merge_every} needs parts: each of {len(partitions)} partitions is a part otherwise")
    if isinstance(model, StreamPipeline) and model.is_running:
        raise ValueError("parts would learn on different scales: leave out running scales, or scale the data before")
    with connected(client) as connection:
        how = Reading(_settled(connection, partitions, columns_of(model) | reading))
        run = Run(connection, partitions, pieces, how, _show if progress is True else progress or None)
        run.begin(model, first_rows, classes)
        try:
            _learn(run, model, rounds * stages_of(len(partitions), parts, merge_every), rounds, skip_bad)
        except KeyboardInterrupt:
            raise Interrupted(run.whole(run.so_far())) from None
        finally:
            if progress is True:
                print(file=sys.stderr)
    return run.whole(run.model)


def _learn(run: Run, model: Any, stages: list[Any], rounds: int, skip_bad: bool) -> None:
    """All rounds."""
    entropy, fresh = _entropy(model), not hasattr(model, "t_")
    for number, stage in enumerate(stages):
        run.round = 1 + number * rounds // len(stages)
        failures = run.stage(stage, entropy, number, warm=fresh and number == 0)
        if failures and not skip_bad:
            raise BadPartitions(failures, run.whole(run.model))
        new = [failure for failure in failures if failure not in run.told]
        for name, error in new:
            warnings.warn(f"{name} cannot be read and was left out: {error}", stacklevel=3)
        run.told += new


def _show(progress: Progress) -> None:
    print(f"\r{progress!s:<78}", end="", file=sys.stderr, flush=True)


def _settled(client: Any, partitions: list[Partition], reading: dict[str, Any]) -> dict[str, Any]:
    """Options with the number of columns of LIBSVM files, which no file alone tells."""
    if reading.get("n_features") is not None or partitions[0].path is None:
        return reading
    jobs = [client.submit(width_of, partition, reading, pure=False) for partition in partitions]
    width = max(client.gather(jobs))
    return {**reading, "n_features": width} if width else reading


def _entropy(model: Any) -> int:
    """A number from which the random choices of all parts follow."""
    seed = last_step(model).get_params(deep=False).get("random_state")
    if seed is None:
        return int(np.random.SeedSequence().entropy)  # type: ignore[arg-type]
    return int(seed) if isinstance(seed, (int, np.integer)) else int(np.random.default_rng(seed).integers(2**63))
