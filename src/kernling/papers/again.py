"""Reproducing rows of results from the data and settings that they describe."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from typing import Any

import numpy as np

from ..evaluate.holdout import batch
from ..evaluate.measuring import data_facts
from ..evaluate.metrics import METRICS
from ..evaluate.protocols import ProgressiveRun, feed
from ..evaluate.rows import Row, load_data, model_of
from ..io import Stream, stream, synthetic
from ..io.base import Chunk
from ..io.synthetic import STREAMS
from ..tables.table import places_of
from .datasets import CATALOGUE, Dataset, dataset


def run_again(row: Row, data: Any = None) -> list[Row]:
    """Reproduce a row of results; the last returned row has the same measurements, except for times and memory.

    Rows are learned in other pieces than before, which changes the rounding; a model whose steps are so large that it amplifies
    rounding errors may therefore end elsewhere.

    Parameters
    ----------
    row : dict
        Any row of :func:`test_then_train`, :func:`online`, :func:`batch` or :func:`search`, or of the command line.
    data : (X, y), Stream or Dataset, optional
        The data of the row; required unless they were a named data set, a synthetic stream, or files that the
        command line read.

    Examples
    --------
    >>> import kernling as kl
    >>> from kernling.evaluate import online
    >>> from kernling.papers import run_again
    >>> from kernling.io import synthetic
    >>> row = online(kl.AVMClassifier(gamma=4.0, delta=0.5), synthetic("spirals", 2000), permutations=2)[-1]
    >>> run_again(row)[-1]["mistakes"] == row["mistakes"]
    True
    """
    if row["protocol"] not in ("online", "batch"):
        raise ValueError(f"only rows of the protocols 'online' and 'batch' can be run again, not of {row['protocol']!r}")
    if row.get("learned_before"):
        raise ValueError(
            f"the model of this row was continued after {row['learned_before']:,} events that are not recorded: "
            "run all events at once to get rows that can be run again"
        )
    if not row["events"]:
        raise ValueError(f"the model of this row learned nothing, so there is nothing to run again: {row.get('failed')}")
    info = json.loads(row["data_info"])
    given = _reopened(info) if data is None else data
    names = [name for name in METRICS if row.get(name) is not None]
    model = model_of(row)
    linear = any(name.endswith("_linear") for name in row)
    if row["protocol"] == "batch":
        options = {"test": row["test_part"]} if row["test_part"] else {"test_size": row["test_size"]}
        return batch(model, given, seed=row["seed"] + row["permutation"], metrics=names, linear=linear, **options)
    rows, facts = _in_order(given, info, row)
    options = {"window": row["window"], "every": row["every"], "linear": linear}
    run = ProgressiveRun(model, {}, metrics=names, extra=facts, row=info.get("skip") or 0, **options)
    chunks = iter(Stream(lambda _: iter(rows), chunk=row["first_chunk"]))
    first = next(chunks)
    run.begin(*first)  # with the whole first chunk, even if not all of it was learned
    feed(run, Stream(lambda _: itertools.chain([first], chunks), chunk=row["first_chunk"]).take(row["events"]))
    return run.end()


def _in_order(given: Any, info: Row, row: Row) -> tuple[Stream, Row]:
    """Return the rows in the order in which they were learned, and the columns that describe them."""
    named = {name: row[name] for name in ("permutation", "seed", "candidate") if row.get(name) is not None}
    if isinstance(given, Stream) and "seed" not in named:
        return given, data_facts(given.info) | named
    X, y, facts = load_data(given, info.get("part", "train"))
    if "seed" in named:
        order = np.random.default_rng(named["seed"] + named["permutation"]).permutation(len(y))
        X, y = X[order], y[order]
    return stream(X, y), facts | named


def _reopened(info: Row) -> Stream | Dataset:
    """Open the data that a row describes."""
    source = info["source"]
    order = info.get("order")
    if "-" in info.get("files", ()):
        raise ValueError("the data of this row came from standard input, which cannot be read again: pass them as data=")
    if "files" in info:
        files = info["files"]
        rows = stream(files if len(files) > 1 else files[0], **info["options"])
    elif source in CATALOGUE:
        data = dataset(source, info["positive"])
        if "order" not in info:  # the data set itself was evaluated
            return data
        rows, order = data.stream(info["part"], seed=order), None
    elif source in STREAMS:
        rows = synthetic(source, info["rows"], info["seed"])
    else:
        raise ValueError(f"the data of this row are {source!r}, which must be passed as data=")
    if order is not None:
        X, y = rows.load()
        places = np.random.default_rng(order).permutation(len(y))
        rows = stream(X[places], y[places])
    return Stream(lambda _: _after(rows, info.get("skip") or 0), chunk=rows.chunk, info=info)


def _after(rows: Stream, skip: int) -> Iterator[Chunk]:
    """Yield the rows of the source after the first ones."""
    given = 0
    for X, y in rows:
        places = places_of(X, given)
        given += len(places)
        yield X[places >= skip], y[places >= skip]
