"""Random damage to data files and to entries of the compile cache, by a seed.

A damaged file is read, or refused in one sentence; a damaged entry is not found.
"""

from __future__ import annotations

import io
import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet

import hostile
from kernling.compiler import cache
from kernling.io import stream
from kernling.tables import Encode

ROWS = 30
WORDS = [
    b"nan",
    b"inf",
    b"-1e999",
    b"1e308",
    b'"',
    b'""',
    b",",
    b"\n",
    b"\r\n",
    b"\0",
    b"\xff\xfe",
    b"\xef\xbb\xbf",
    b"null",
    b"[1]",
]
WORDS += [
    b"{",
    b"}",
    b":",
    b" ",
    b"\t",
    b"9" * 401,
    b"0:1",
    b"-3:1",
    b"4000000000:1",
    b"qid:1",
    b"#",
    b"true",
    b"1_000",
    b"2026-02-30",
]


def csv() -> bytes:
    lines = [f"{i / 7},{'ab'[i % 2]},2026-01-{i % 28 + 1:02d},{i % 2}" for i in range(ROWS)]
    return "\n".join(["x,kind,day,y", *lines, ""]).encode()


def jsonl() -> bytes:
    rows = ({"x": i / 7, "kind": "ab"[i % 2], "on": i % 3 == 0, "y": i % 2} for i in range(ROWS))
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def libsvm() -> bytes:
    return "".join(f"{i % 2} 1:{i / 7} 3:{i}\n" for i in range(ROWS)).encode()


def parquet() -> bytes:
    file = io.BytesIO()
    columns = {"x": np.arange(ROWS) / 7, "kind": ["a", "b"] * (ROWS // 2), "y": np.arange(ROWS) % 2}
    pyarrow.parquet.write_table(pyarrow.table(columns), file)
    return file.getvalue()


FORMATS: dict[str, Callable[[], bytes]] = {"csv": csv, "jsonl": jsonl, "libsvm": libsvm, "parquet": parquet}


def damaged(data: bytes, rng: np.random.Generator) -> bytes:
    """Some bytes changed, lost, doubled or swapped with words that mean something to a reader."""
    changed = bytearray(data)
    for _ in range(int(rng.integers(1, 4))):
        place, length = int(rng.integers(len(changed) + 1)), int(rng.integers(1, 20))
        kind = rng.integers(6)
        if kind == 0:
            changed[place : place + 1] = rng.bytes(1)
        elif kind == 1:
            del changed[place : place + length]
        elif kind == 2:
            changed[place:place] = changed[max(0, place - length) : place]
        elif kind == 3:
            del changed[place:]
        else:
            end = place + (length if kind == 4 else 0)
            changed[place:end] = WORDS[int(rng.integers(len(WORDS)))]
    return bytes(changed)


def read(path: Path, kind: str, missing: str) -> None:
    """Read a file and encode its rows; what goes wrong is told in one sentence."""
    target: dict[str, Any] = {} if kind == "libsvm" else {"target": "y"}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            X, _ = stream(path, format=kind, missing=missing, **target).load()
            if kind != "libsvm":
                X = Encode(missing="impute" if missing == "keep" else "error").fit_transform(X)
        hostile.check_result(X)
    except (ValueError, TypeError) as error:
        hostile.check_message(error)


def damage_data(folder: Path, seed: int, files: int) -> int:
    """Read so many damaged files; returns how many there were."""
    wholes = {kind: make() for kind, make in FORMATS.items()}
    for number in range(files):
        rng = np.random.default_rng([seed, number])
        kind = list(wholes)[number % len(wholes)]
        data = damaged(wholes[kind], rng)
        path = folder / f"rows.{kind}"
        path.write_bytes(data)
        try:
            read(path, kind, str(rng.choice(["error", "drop", "keep"])))
        except Exception as error:
            error.add_note(f"seed {[seed, number]}: {data!r:.3000}")
            raise
    return files


def damage_cache(seed: int, files: int) -> int:
    """Damage entries of the compile cache; returns how many there were."""
    for number in range(files):
        rng = np.random.default_rng([seed, number])
        content = rng.bytes(int(rng.integers(0, 300)))
        cache.write_entry("fuzz", "entry", content)
        path = cache.cache_folder() / "compiled" / "fuzz" / "entry"
        whole = path.read_bytes()
        data = damaged(whole, rng)
        path.write_bytes(data)
        found = cache.read_entry("fuzz", "entry")
        assert found == (content if data == whole else None), f"seed {[seed, number]}"
    return files
