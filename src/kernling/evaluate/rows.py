"""Results are rows: plain dictionaries of numbers and text, one per method, data set, permutation and moment.

A row contains everything needed to reproduce it: the estimator and its parameters, the data (name, checksums), the
seed of their order, and the versions of the libraries.
"""

from __future__ import annotations

import csv
import hashlib
import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from .. import models, registry
from ..atomic import replaced
from ..estimators.contents import plain, unplain
from ..io import Stream, stream
from ..pipeline import StreamPipeline
from ..tables import Table
from .record import COLUMNS, Row, Shown, column

TEXTS = tuple(name for name, one in COLUMNS.items() if one.shown is Shown.TEXT)


def describe(model: Any) -> Row:
    """Return the columns that describe an estimator; for a pipeline, those of its last step and the pipeline itself."""
    if isinstance(model, StreamPipeline):
        return describe(model.given_model) | {"pipeline": json.dumps(model.plain_params(), sort_keys=True)}
    ours = hasattr(model, "learner")
    given = model.get_params(deep=not ours).items()
    params = {name: plain(value, name) for name, value in given if ours or isinstance(value, (int, float, str))}
    if hasattr(model, "plain_params"):  # a wrapped River model describes itself
        params = model.plain_params()
    return {
        "method": type(model).__name__,
        "learner": model.learner.name if ours else None,
        "params": json.dumps(params, sort_keys=True),
        "versions": json.dumps(models.versions(), sort_keys=True),
    }


def model_of(row: Row) -> Any:
    """Return an unfitted copy of the estimator or pipeline of a row.

    Examples
    --------
    >>> import kernling as kl
    >>> from kernling.evaluate import model_of, test_then_train
    >>> from kernling.io import synthetic
    >>> rows = test_then_train(kl.AVMClassifier(gamma=2.0, delta=0.5), synthetic("spirals", 100))
    >>> model_of(rows[-1]).gamma
    2.0
    """
    if row.get("pipeline"):
        return StreamPipeline.from_plain_params(json.loads(row["pipeline"]))
    cls: Any = registry.estimator(row["learner"], row["method"])
    return cls(**{name: unplain(value) for name, value in json.loads(row["params"]).items()})


def load_data(data: Any, part: str = "train") -> tuple[Any, np.ndarray, Row]:
    """Return (X, y) of arrays, a stream or a data set, and the columns that describe them."""
    if hasattr(data, "stream"):  # a named data set
        X, y = data.load(part)
        info = data.info(part)
    elif isinstance(data, Stream):
        X, y = data.load()
        info = data.info
    else:
        X, y = stream(*data).load()
        info = {"source": "arrays", "sha256": checksum(X, y)}
    return X, y, {"data": str(info["source"]), "data_info": json.dumps(info, sort_keys=True, default=str)}


def checksum(X: Any, y: np.ndarray) -> str:
    """Return a SHA-256 hash of rows and targets."""
    total = hashlib.sha256()
    if isinstance(X, Table):
        parts = [*X.columns.values()]
    else:
        parts = [X.data, X.indices, X.indptr] if sparse.issparse(X) else [X]
    for array in (*parts, np.asarray(y)):
        total.update(np.ascontiguousarray(array.astype(str) if array.dtype == object else array).tobytes())
    return total.hexdigest()


def write_rows(rows: Iterable[Row], path: str | os.PathLike) -> None:
    """Write rows to a .csv or .parquet file (pyarrow); an existing file is replaced atomically.

    Examples
    --------
    >>> from kernling.evaluate import read_rows, write_rows
    >>> write_rows([{"method": "AVMClassifier", "mistakes": 0.25}], "rows.csv")
    >>> read_rows("rows.csv")
    [{'method': 'AVMClassifier', 'mistakes': 0.25}]
    """
    rows = list(rows)
    names = list(dict.fromkeys(name for row in rows for name in row))
    suffix = _suffix(Path(path))
    with replaced(path) as temporary:
        if suffix == ".csv":
            with open(temporary, "x", newline="", encoding="utf-8") as file:
                writer = csv.DictWriter(file, names, restval="")
                writer.writeheader()
                writer.writerows({name: "" if value is None else value for name, value in row.items()} for row in rows)
        else:
            pyarrow = _pyarrow()
            pyarrow.parquet.write_table(pyarrow.table({name: [row.get(name) for row in rows] for name in names}), temporary)


def read_rows(path: str | os.PathLike) -> list[Row]:
    """Read rows from a file written by :func:`write_rows`.

    Examples
    --------
    >>> from kernling.evaluate import read_rows, write_rows
    >>> write_rows([{"events": 1000, "mistakes": 0.25}], "rows.csv")
    >>> print(read_rows("rows.csv")[0]["mistakes"])
    0.25
    """
    if _suffix(Path(path)) == ".csv":
        with open(path, newline="", encoding="utf-8") as file:
            return [{name: _parse(name, text) for name, text in row.items()} for row in csv.DictReader(file)]
    return _pyarrow().parquet.read_table(path).to_pylist()


def _suffix(path: Path) -> str:
    if path.suffix not in (".csv", ".parquet"):
        raise ValueError(f"rows can be stored in .csv or .parquet files, not in {path.name!r}")
    return path.suffix


def _parse(name: str, text: str) -> Any:
    if text == "":
        return None
    if name in TEXTS:
        return text
    try:
        return int(text)
    except ValueError:
        return float(text)


def _pyarrow() -> Any:
    from ..extras import need_pyarrow

    return need_pyarrow()


def summary(rows: Iterable[Row]) -> list[Row]:
    """Average the last measurements over permutations: one row per method, parameters and data, with standard deviations.

    Examples
    --------
    >>> from kernling.evaluate import summary
    >>> rows = [{"method": "A", "permutation": p, "events": 10, "mistakes": m} for p, m in enumerate([0.1, 0.3])]
    >>> print(summary(rows)[0]["mistakes"], round(summary(rows)[0]["mistakes_std"], 3))
    0.2 0.141
    """
    groups: dict[tuple, dict[Any, Row]] = {}
    for row in rows:
        last = groups.setdefault(_kind(row), {})
        held = last.get(row.get("permutation"))
        if held is None or row["events"] >= held["events"]:
            last[row.get("permutation")] = row
    return [_average(list(last.values())) for last in groups.values()]


def _kind(row: Row) -> tuple:
    """Return the values that rows of different permutations have in common."""
    params = [_without_seeds(json.loads(row.get(name) or "{}")) for name in ("params", "pipeline")]
    return (*(row.get(name) for name in ("protocol", "method", "data")), json.dumps(params, sort_keys=True))


def _without_seeds(params: Any) -> Any:
    """Return parameters, including those of a pipeline's steps, without random_state."""
    if isinstance(params, dict):
        return {name: _without_seeds(value) for name, value in params.items() if name != "random_state"}
    return [_without_seeds(value) for value in params] if isinstance(params, list) else params


def _average(rows: list[Row]) -> Row:
    out = {name: rows[0][name] for name in TEXTS if name in rows[0]} | {"permutations": len(rows), "events": rows[0]["events"]}
    for name, value in rows[0].items():
        if not column(name).measured or not isinstance(value, (int, float)):
            continue
        values = np.array([np.nan if row.get(name) is None else row[name] for row in rows], dtype=np.float64)
        out[name] = float(values.mean())
        out[f"{name}_std"] = float(values.std(ddof=1)) if len(values) > 1 else 0.0
    return out
