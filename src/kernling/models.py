"""Model files: a single file without code, written atomically.

A model is a safetensors file.  Its header contains, as JSON, the version of the format, the estimator's name, its parameters,
all values besides arrays that it has resolved and learned, and the versions of the libraries that wrote it.  It also contains a
SHA-256 over the whole file, computed with zeros in place of the checksum.  Loading checks every length against the size of the
file before anything is allocated, then the checksum, then that the arrays are those of the estimator and that no number in them
makes compiled code access memory out of bounds.  Nothing in a file is ever executed.
"""

from __future__ import annotations

import hashlib
import json
import os
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import safetensors
import safetensors.numpy

from . import registry
from .atomic import replaced
from .estimators.contents import entry

FORMAT = 4
SUM = b'"sha256":"'  # the bytes before the checksum, which cannot occur in quoted text
BLANK = "0" * 64
BEFORE = "before"  # array with the file of an earlier model
LIBRARIES = ("kernling", "numpy", "numba", "scikit-learn")


class Saved(NamedTuple):
    """The contents of a model file."""

    model: Any
    reading: dict[str, Any]  # options for reading its rows, apart from its columns; empty if not saved
    header: dict[str, Any]
    place: dict[str, Any] | None = None  # position in the data that a command has learned
    before: bytes | None = None  # file of an earlier model, for a run that stopped where it cannot be continued exactly


def save(
    model: Any,
    path: str | os.PathLike,
    reading: dict[str, Any] | None = None,
    place: dict[str, Any] | None = None,
    before: Any = None,
) -> None:
    """Save a fitted estimator or pipeline to a file; an existing file is replaced atomically.

    ``reading`` has options for reading its rows from files, such as the name of the target, and ``place`` the position in them,
    both as JSON-compatible data.  ``before`` is an earlier model, from which a run can be continued exactly.

    Examples
    --------
    >>> import numpy as np, kernling as kl
    >>> model = kl.AVMClassifier(gamma=1.0, delta=1.0).fit(np.eye(4), [0, 1, 0, 1])
    >>> kl.save(model, "model.kern")
    >>> print(kl.load("model.kern").t_)
    4
    """
    data = _packed(model, reading, place, None if before is None else _packed(before))
    with replaced(path) as temporary:
        temporary.write_bytes(data)


def _packed(
    model: Any, reading: dict[str, Any] | None = None, place: dict[str, Any] | None = None, before: bytes | None = None
) -> bytes:
    """Return the contents of a model file."""
    if not hasattr(model, "to_contents"):
        cure = "use a StreamPipeline of kernling's own steps instead, or pickle" if hasattr(model, "steps") else "pickle it"
        raise TypeError(f"a model file holds kernling's estimators and pipelines, not a {type(model).__name__}: {cure}")
    contents = model.to_contents()
    header = {
        "format": FORMAT,
        "estimator": type(model).__name__,
        "learner": model.learner.name,
        "versions": versions(),
        **contents.header,
    }
    header |= {name: value for name, value in (("reading", reading), ("place", place)) if value}
    text = json.dumps(header, sort_keys=True)
    arrays = {name: np.ascontiguousarray(array) for name, array in contents.arrays.items()}
    if before is not None:
        arrays[BEFORE] = np.frombuffer(before, np.uint8)
    return signed(safetensors.numpy.save(arrays, {"kernling": text, "sha256": BLANK}))


def load(path: str | os.PathLike) -> Any:
    """Load a model.  Training it further gives the same result as without saving and loading.

    Files written by the command line contain a :class:`StreamPipeline`, which takes raw rows.

    Examples
    --------
    >>> import numpy as np, kernling as kl
    >>> kl.save(kl.AVMClassifier(gamma=1.0, delta=1.0).fit(np.eye(4), [0, 1, 0, 1]), "model.kern")
    >>> model = kl.load("model.kern").partial_fit(np.eye(4), [0, 1, 0, 1])
    >>> print(model.t_)
    8
    """
    return read(path).model


def read(path: str | os.PathLike) -> Saved:
    """Read a model file with all of its contents."""
    return unpacked(Path(path).read_bytes(), path)


def unpacked(data: bytes, path: str | os.PathLike) -> Saved:
    """Return the contents of a model file; ``path`` is for messages."""
    header, arrays = _checked(data, path)
    before = arrays.pop(BEFORE, None)
    try:
        cls: Any = registry.estimator(entry(header, "learner", str), entry(header, "estimator", str))
        model = cls.from_contents(header, arrays)
        reading, place = (entry(header, name, dict) if name in header else None for name in ("reading", "place"))
        return Saved(model, reading or {}, header, place, None if before is None else before.tobytes())
    except Exception as error:  # any error here means that the file is invalid
        cause = _first_line(error)
        raise ValueError(f"{path}, {_writer(header)}, is not a model that this version can read: {cause}") from error


def _checked(data: bytes, path: str | os.PathLike) -> tuple[dict, dict[str, np.ndarray]]:
    """Return the header and arrays of a file after checking its integrity."""
    try:
        size = int.from_bytes(data[:8], "little")
        metadata = json.loads(data[8 : 8 + size])["__metadata__"]
        header = json.loads(metadata["kernling"])
        number = header["format"]
        if type(number) is not int:
            raise ValueError(f"its format is {number!r}")
    except (KeyError, ValueError, TypeError, RecursionError) as error:
        raise ValueError(f"{path} is not a kernling model, or is damaged: {_first_line(error)}") from error
    if number != FORMAT:
        cure = "upgrade kernling" if number > FORMAT else "train the model again"
        raise ValueError(f"{path} has format {number}, {_writer(header)}; this version reads format {FORMAT}: {cure}")
    if not is_signed(data):
        raise ValueError(f"{path}, {_writer(header)}, is damaged: its checksum does not match")
    try:
        arrays = safetensors.numpy.load(data)  # checks all lengths and offsets against len(data)
    except (safetensors.SafetensorError, KeyError, ValueError, TypeError) as error:
        raise ValueError(f"{path}, {_writer(header)}, is damaged: {_first_line(error)}") from error
    return header, arrays


def _writer(header: Any) -> str:
    """Return which version wrote a file, according to its header."""
    versions = header.get("versions") if isinstance(header, dict) else None
    return f"written by kernling {str(versions.get('kernling'))[:40] if isinstance(versions, dict) else 'unknown'}"


def _first_line(error: Exception) -> str:
    return f"{str(error).splitlines()[0] if str(error) else type(error).__name__:.200}"


def signed(data: bytes) -> bytes:
    """Return the bytes of a file with the checksum inserted."""
    place = data.index(SUM + BLANK.encode()) + len(SUM)
    return data[:place] + hashlib.sha256(data).hexdigest().encode() + data[place + len(BLANK) :]


def is_signed(data: bytes) -> bool:
    """Return whether the checksum of a file matches its bytes."""
    place = data.find(SUM) + len(SUM)
    total = hashlib.sha256(memoryview(data)[:place])
    total.update(BLANK.encode())
    total.update(memoryview(data)[place + len(BLANK) :])
    return data[place : place + len(BLANK)] == total.hexdigest().encode()


def versions() -> dict[str, str]:
    """Return the versions of the libraries that affect a model's numbers."""
    found = {}
    for name in LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:  # run from a source tree
            found[name] = "unknown"
    return found
