"""Preparation of rows and targets from the files of data sets, as in the papers.

Scaling uses the training part's columns, so that the rows of a part do not depend on other parts.
"""

from __future__ import annotations

import io
import math
import tarfile
from typing import Any

import numpy as np

from ..extras import need
from ..io import libsvm
from ..io.base import _joined
from ..io.csv_text import read_csv
from ..tables.columns import Columns
from ..tables.table import Table, joined

Contents = dict[str, bytes]  # a part's files, in the catalogue's order


def prepare_libsvm(parts: dict[str, Contents], columns: int, dense=True, scale=None, standardise=False):
    """Prepare LIBSVM text; regression targets (year) are scaled to [0, 1]."""
    out = {}
    for part, contents in parts.items():
        (content,) = contents.values()
        X, y = _joined(list(libsvm.read(io.BytesIO(content), columns, False)))
        out[part] = (X.toarray() if dense else X), y
    if scale:
        low, high = scale
        unit = _unit(out["train"][0])
        out = {part: (low + (high - low) * unit(X), y) for part, (X, y) in out.items()}
    if standardise:
        spread, target = _standard(out["train"][0]), _unit(out["train"][1])
        return {part: (spread(X), target(y)) for part, (X, y) in out.items()}
    return {part: (X, y.astype(np.int64)) for part, (X, y) in out.items()}


def prepare_numeric_csv(parts: dict[str, Contents], columns: int, header: bool, target: int, leave_out=(), classes=False):
    """Prepare numeric CSV: a class in the last column and features in [0, 1], or a target in [0, 1] and scaled features."""
    table = _table(parts["train"], header)
    for name in leave_out:
        del table[name]
    rows, y = Columns(target).split(Table(table))
    X = np.asarray(rows)
    if classes:
        return {"train": (_unit(X)(X), y.astype(np.int64))}
    return {"train": (_standard(X)(X), _unit(y)(y))}


def prepare_kddcup(parts: dict[str, Contents], columns: int):
    """Prepare KDD Cup 99: one column per category, numbers in [0, 1], labels unchanged."""
    symbols = ["f1", "f2", "f3"]
    table = _table(parts["train"], False, symbols)
    numeric = [name for name in table if name not in symbols][:-1]
    numbers = np.column_stack([table[name] for name in numeric]).astype(np.float64)
    blocks = [_unit(numbers)(numbers)]
    for name in symbols:
        values, place = np.unique(table[name].astype(str), return_inverse=True)
        blocks.append(np.eye(len(values))[place])
    return {"train": (np.hstack(blocks), table[list(table)[-1]].astype(str))}


def prepare_kdd08(parts: dict[str, Contents], columns: int):
    """Prepare KDD Cup 2008: numbers between blanks, those of Features.txt in [0, 1], the label first in lines of Info.txt."""
    features, info = (np.loadtxt(io.BytesIO(content), ndmin=2) for content in parts["train"].values())
    if len(features) != len(info):
        raise ValueError(f"Features.txt has {len(features)} lines, and Info.txt {len(info)}")
    return {"train": (_unit(features)(features), np.where(info[:, 0] > 0.0, 1, -1))}


def prepare_idx(parts: dict[str, Contents], columns: int):
    """Prepare IDX files (MNIST), pixels in [0, 1]."""
    out = {}
    for part, contents in parts.items():
        images, labels = contents.values()
        out[part] = _idx(images, 3).reshape(-1, columns) / 255.0, _idx(labels, 1).astype(np.int64)
    return out


def prepare_nycflights(parts: dict[str, Contents], columns: int, late=None):
    """Prepare flights from New York in 2013, with the eight features of AVM's airlines data."""
    flights, planes = (_table({name: content}, True, ["tailnum"]) for name, content in parts["train"].items())
    date = flights["year"] * 10_000 + flights["month"] * 100 + flights["day"]
    days = np.array([f"{d:.0f}"[:4] + "-" + f"{d:.0f}"[4:6] + "-" + f"{d:.0f}"[6:] for d in date], dtype="datetime64[D]")
    weekday = (days.astype(np.int64) + 3) % 7 + 1.0  # 1 January 1970 was a Thursday; Monday is 1
    built = dict(zip(planes["tailnum"].tolist(), planes["year"].tolist(), strict=True))
    features = {
        "age": flights["year"] - np.array([built.get(tail, np.nan) for tail in flights["tailnum"].tolist()], dtype=np.float64),
        "distance": flights["distance"],
        "air_time": flights["air_time"],
        "departure": flights["sched_dep_time"],
        "arrival": flights["sched_arr_time"],
        "month": flights["month"],
        "weekday": weekday,
        "day": flights["day"],
    }
    return _flights(features, flights["dep_delay"], late)


def prepare_airlines(parts: dict[str, Contents], columns: int, late=None):
    """Prepare flights in the United States in 2008, as in AVM."""
    flights, planes = (
        _table({name: content}, True, ["TailNum", "tailnum", "year"]) for name, content in parts["train"].items()
    )
    built = {tail: _year(year) for tail, year in zip(planes["tailnum"].tolist(), planes["year"].tolist(), strict=True)}
    names = ("Distance", "AirTime", "CRSDepTime", "CRSArrTime", "Month", "DayOfWeek", "DayofMonth")
    age = flights["Year"] - np.array([built.get(tail, np.nan) for tail in flights["TailNum"].tolist()], dtype=np.float64)
    return _flights({"age": age} | {name: flights[name] for name in names}, flights["DepDelay"], late)


def _year(text: Any) -> float:
    return float(text) if text and text.isdigit() and int(text) > 0 else np.nan


def _flights(features: dict[str, np.ndarray], delay: np.ndarray, late: float | None):
    """Return complete rows with features in [0, 1]; the target is the departure delay in minutes, or +1 if late, else -1."""
    X = np.column_stack(list(features.values())).astype(np.float64)
    good = ~np.isnan(X).any(axis=1) & ~np.isnan(delay)
    X, delay = X[good], delay[good].astype(np.float64)
    return {"train": (_unit(X)(X), delay if late is None else np.where(delay > late, 1, -1))}


def prepare_brodatz(parts: dict[str, Contents], columns: int, rows: tuple[int, int]):
    """Prepare thirteen textures as in POLK: histograms of 256 textons over random patches of 24 by 24 pixels."""
    from .textons import histograms  # imports scikit-learn's clustering, which nothing else here needs

    (content,) = parts["train"].values()
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        members = sorted((m for m in archive.getmembers() if m.isfile()), key=lambda m: m.name)
        images = [_grey(archive.extractfile(member).read()) for member in members]  # type: ignore[union-attr]
    X, y = histograms(images, columns, 24, sum(rows))
    return {"train": (X[: rows[0]], y[: rows[0]]), "test": (X[rows[0] :], y[rows[0] :])}


def _grey(content: bytes) -> np.ndarray:
    image = need("reading images needs Pillow", "data", "PIL.Image")
    return np.asarray(image.open(io.BytesIO(content)).convert("L"), dtype=np.float64)


def _table(contents: Contents, header: bool, words=()) -> dict[str, np.ndarray]:
    (content,) = contents.values()
    tables = list(read_csv(io.BytesIO(content), set(words), header, ","))
    return joined(tables).columns


def _unit(X: np.ndarray):
    """Return a function that scales these columns to [0, 1]; constant ones to 0."""
    low, width = X.min(axis=0), np.ptp(X, axis=0)
    return lambda rows: (rows - low) / np.where(width > 0.0, width, 1.0)


def _standard(X: np.ndarray):
    mean, spread = X.mean(axis=0), X.std(axis=0)
    return lambda rows: (rows - mean) / np.where(spread > 0.0, spread, 1.0)


def _idx(content: bytes, dimensions: int) -> np.ndarray:
    """Return the bytes of an IDX file, after checking its header against its length."""
    begin = 4 + 4 * dimensions
    header = np.frombuffer(content[:begin].ljust(begin, b"\0"), ">i4").tolist()
    data = np.frombuffer(content[begin:], np.uint8)
    if len(content) < begin or header[0] != 0x0800 + dimensions or len(data) != math.prod(header[1:]):
        raise ValueError(f"this is not an IDX file of bytes in {dimensions} dimensions, or it is truncated")
    return data
