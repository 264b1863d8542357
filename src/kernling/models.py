"""Model files: one file, no code in it, written whole or not at all.

A model is a safetensors file.  Its header holds, as JSON, the format's version, the estimator's name, its parameters, what
it has resolved and learned besides arrays, and the versions of the libraries that wrote it; and a SHA-256 over the whole file,
with zeros in the place of the sum itself.  Loading checks every length against the size of the file before anything is
allocated, then the checksum, then that the arrays are those of the estimator and that no number in them leads compiled code
astray.  Nothing in a file is ever executed.

Format 1 (never released) had a checksum over the header's text and the arrays only; such files still load.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import safetensors
import safetensors.numpy

from . import registry

FORMAT = 2
SUM = b'"sha256":"'  # what stands before the checksum, which no quoted text can imitate
BLANK = "0" * 64
LIBRARIES = ("kernling", "numpy", "numba", "scikit-learn")


class Saved(NamedTuple):
    """What a model file holds."""

    model: Any
    stream: dict[str, Any]  # the state of the stream's parts that came before the model; empty if none was saved
    header: dict[str, Any]


def save(model: Any, path: str | os.PathLike, stream: dict[str, Any] | None = None) -> None:
    """Write a fitted estimator to one file, replacing what is there only once the new file is whole.

    ``stream`` is for the state of what came before the model, such as scales and categories: anything that JSON can hold.

    Examples
    --------
    >>> import numpy as np, kernling as kl
    >>> model = kl.AVMClassifier(gamma=1.0, delta=1.0).fit(np.eye(4), [0, 1, 0, 1])
    >>> kl.save(model, "model.kern")
    >>> print(kl.load("model.kern").t_)
    4
    """
    contents = model.to_contents()
    header = {
        "format": FORMAT,
        "estimator": f"{type(model).__name__}",
        "learner": model.learner.name,
        "versions": versions(),
        **contents.header,
    }
    if stream:
        header["stream"] = stream
    text = json.dumps(header, sort_keys=True)
    arrays = {name: np.ascontiguousarray(array) for name, array in contents.arrays.items()}
    data = signed(safetensors.numpy.save(arrays, {"kernling": text, "sha256": BLANK}))
    target = Path(path)
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(8)}")
    try:
        with open(temporary, "xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def load(path: str | os.PathLike) -> Any:
    """Read a model file.  Going on with the same calls gives the model that never stopped.

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
    """Read a model file with what else it holds."""
    header, arrays = _read(Path(path))
    try:
        cls: Any = registry.estimator(header["learner"], header["estimator"])
        return Saved(cls.from_contents(header, arrays), header.get("stream", {}), header)
    except Exception as error:  # whatever a header can make happen, the file is at fault
        cause = _first_line(error)
        raise ValueError(f"{path}, {_writer(header)}, is not a model that this version can read: {cause}") from error


def _read(path: Path) -> tuple[dict, dict[str, np.ndarray]]:
    """The header and arrays of a file, once they have proved whole."""
    data = path.read_bytes()
    try:
        size = int.from_bytes(data[:8], "little")
        metadata = json.loads(data[8 : 8 + size])["__metadata__"]
        header = json.loads(metadata["kernling"])
        number = header["format"]
        if type(number) is not int:
            raise ValueError(f"its format is {number!r}")
    except (KeyError, ValueError, TypeError, RecursionError) as error:
        raise ValueError(f"{path} is not a kernling model, or is damaged: {_first_line(error)}") from error
    if not 1 <= number <= FORMAT:
        raise ValueError(f"{path} has format {number}, {_writer(header)}; this version reads up to {FORMAT}: upgrade kernling")
    if number == FORMAT and not is_signed(data):
        raise ValueError(f"{path}, {_writer(header)}, is damaged: its checksum does not match")
    try:
        arrays = safetensors.numpy.load(data)  # checks all lengths and offsets against len(data)
    except (safetensors.SafetensorError, KeyError, ValueError, TypeError) as error:
        raise ValueError(f"{path}, {_writer(header)}, is damaged: {_first_line(error)}") from error
    if number == 1 and metadata.get("sha256") != _checksum_1(metadata["kernling"], arrays):
        raise ValueError(f"{path}, {_writer(header)}, is damaged: its checksum does not match")
    return header, arrays


def _writer(header: Any) -> str:
    """Which version wrote a file, as it says itself."""
    versions = header.get("versions") if isinstance(header, dict) else None
    return f"written by kernling {str(versions.get('kernling'))[:40] if isinstance(versions, dict) else 'unknown'}"


def _first_line(error: Exception) -> str:
    return f"{str(error).splitlines()[0] if str(error) else type(error).__name__:.200}"


def signed(data: bytes) -> bytes:
    """A file's bytes with their checksum in its place."""
    place = data.index(SUM + BLANK.encode()) + len(SUM)
    return data[:place] + hashlib.sha256(data).hexdigest().encode() + data[place + len(BLANK) :]


def is_signed(data: bytes) -> bool:
    """Whether a file's bytes are those that its checksum was made of."""
    place = data.find(SUM) + len(SUM)
    total = hashlib.sha256(memoryview(data)[:place])
    total.update(BLANK.encode())
    total.update(memoryview(data)[place + len(BLANK) :])
    return data[place : place + len(BLANK)] == total.hexdigest().encode()


def _checksum_1(text: str, arrays: dict[str, np.ndarray]) -> str:
    """The checksum of format 1."""
    total = hashlib.sha256(text.encode())
    for name in sorted(arrays):
        total.update(f"|{name}|{arrays[name].dtype.str}|{arrays[name].shape}|".encode())
        total.update(np.ascontiguousarray(arrays[name]).data)
    return total.hexdigest()


def versions() -> dict[str, str]:
    """The versions of the libraries that a model's numbers come from."""
    found = {}
    for name in LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:  # run from a source tree
            found[name] = "unknown"
    return found
