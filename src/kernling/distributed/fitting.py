"""Fitting on a Dask cluster.

A pass over the data is one stage, or several (``merge_every``).  In a stage, consecutive partitions form parts; each trains
its own model, starting from the model of the previous stage, and neighbours are merged in a tree (stages.py).
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from ..pipeline import StreamPipeline, last_step
from ..tables.steps import columns_of
from ..warned import warn
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
    """Train models on partitions of the data in parallel; return a new, merged model.

    The first rows of the first partition are learned first, by one model, so that what depends on the data (``gamma="scale"``,
    cells, random frequencies, categories) is determined once; all parts continue from there.  A model that is already fitted
    continues to learn.

    Parameters
    ----------
    client : distributed.Client or str
        A client of a cluster; the address of a scheduler; or "local:2" for two processes on this machine.
    model : estimator
        Any kernling estimator, or a pipeline whose steps do not adapt to the rows, such as ``Encode`` without ``scale``: models
        trained on different scales cannot be merged.  It is left unchanged.
    data : Dask DataFrame, Dask array, path or list of paths
        Files are Parquet, CSV, LIBSVM, Arrow or JSON lines that every worker can read, in chunks.
    y : Dask array, optional
        Targets of a Dask array.
    rounds : int
        Number of passes over the data; a round starts from the merged model of the previous one.
    merge_every : int, optional
        Number of partitions that each part learns before all parts are merged and continue from the merged model; by default
        all.
    parts : int, optional
        Number of models trained in parallel, each on consecutive partitions; by default one per partition, up to 64.
    first_rows : int
        Number of rows that are learned before training in parallel.
    classes : array, optional
        All labels; by default new classes are added when they appear.
    skip_bad : bool
        Skip partitions that cannot be read, with a warning that names them.
    progress : bool or callable
        True shows a progress line on standard error; a callable is called with a :class:`Progress`, after each part that was
        learned, and twice a second while parts are being learned.
    **reading
        Options of :func:`kernling.io.stream`, such as ``target="late"``; a fitted pipeline knows its columns.

    Raises
    ------
    BadPartitions
        At the end of a stage in which partitions could not be read; its ``model`` was trained on the others.
    Interrupted
        A KeyboardInterrupt; its ``model`` is merged from the parts that were finished.

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
        raise ValueError(f"merge_every={merge_every} needs parts=: by default each of {len(partitions)} partitions is a part")
    if isinstance(model, StreamPipeline) and model.is_running:
        raise ValueError("parts would learn on different scales: remove running scalers, or scale the data first")
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
    """Learn in all rounds."""
    entropy, fresh = _entropy(model), not hasattr(model, "t_")
    for number, stage in enumerate(stages):
        run.round = 1 + number * rounds // len(stages)
        failures = run.stage(stage, entropy, number, warm=fresh and number == 0)
        if failures and not skip_bad:
            raise BadPartitions(failures, run.whole(run.model))
        new = [failure for failure in failures if failure not in run.told]
        for name, error in new:
            warn(f"{name} cannot be read and was skipped: {error}")
        run.told += new


def _show(progress: Progress) -> None:
    print(f"\r{progress!s:<78}", end="", file=sys.stderr, flush=True)


def _settled(client: Any, partitions: list[Partition], reading: dict[str, Any]) -> dict[str, Any]:
    """Return options with the number of columns of LIBSVM files, which a single file does not determine."""
    if reading.get("n_features") is not None or partitions[0].path is None:
        return reading
    jobs = [client.submit(width_of, partition, reading, pure=False) for partition in partitions]
    width = max(client.gather(jobs))
    return {**reading, "n_features": width} if width else reading


def _entropy(model: Any) -> int:
    """Return the seed of the random numbers of all parts."""
    seed = last_step(model).get_params(deep=False).get("random_state")
    if seed is None:
        return int(np.random.SeedSequence().entropy)  # type: ignore[arg-type]
    return int(seed) if isinstance(seed, (int, np.integer)) else int(np.random.default_rng(seed).integers(2**63))
