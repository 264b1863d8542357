"""Model files after accidents, and files that someone has made to do harm; what must come of each.

A damaged file is refused.  A forged one, whose checksum is right, is refused as well, or is a model that can be used, if not
one that knows much; neither takes much memory.
"""

from __future__ import annotations

import copy
import json
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy

import checks
import hostile
import kernling
from costs import little_memory
from kernling import models

Change = Callable[[dict, dict[str, np.ndarray]], Any]  # of a file's header and arrays, in place


def refuse(data: bytes, path: Path) -> None:
    """Loading a file of these bytes raises an error that names it."""
    path.write_bytes(data)
    with pytest.raises(ValueError, match=path.name.replace(".", r"\.")):
        kernling.load(path)


# ---------------------------------------------------------------------- accidents


def damaged(data: bytes, rng: np.random.Generator) -> bytes:
    """The file after an accident: bits, bytes and stretches that changed, were lost, came twice or became zero."""
    header = 8 + int.from_bytes(data[:8], "little")
    place = int(rng.integers(header if rng.random() < 0.5 else len(data)))  # half of them in the header
    length = int(rng.integers(1, 200))
    changed = bytearray(data)
    kind = rng.integers(7)
    if kind == 0:
        changed[place] ^= 1 << int(rng.integers(8))
    elif kind == 1:
        changed[place] ^= int(rng.integers(1, 256))
    elif kind == 2:
        changed[place : place + length] = rng.bytes(len(changed[place : place + length]))
    elif kind == 3:
        del changed[place : place + length]
    elif kind == 4:
        changed[place:place] = changed[place : place + length]
    elif kind == 5:
        changed[place : place + length] = bytes(len(changed[place : place + length]))
    else:
        del changed[place:]
    return bytes(changed)


def refuse_damaged(whole: bytes, path: Path, files: int) -> None:
    """All of them, in memory that is no more than a few times the file's."""
    rng = np.random.default_rng(files)
    with little_memory(20 * len(whole) + 10**6):
        for _ in range(files):
            data = damaged(whole, rng)
            if data != whole:
                refuse(data, path)


# ---------------------------------------------------------------------- forgeries


def header_of(whole: bytes) -> dict:
    """What a file says besides arrays."""
    size = int.from_bytes(whole[:8], "little")
    return json.loads(json.loads(whole[8 : 8 + size])["__metadata__"]["kernling"])


def forged(whole: bytes, change: Change) -> bytes:
    """The file after a change of its header and arrays, with the checksum that goes with it."""
    arrays, header = safetensors.numpy.load(whole), header_of(whole)
    change(header, arrays)
    return signed(arrays, json.dumps(header))


def with_array(whole: bytes, name: str, change: Callable[[np.ndarray], np.ndarray | None]) -> bytes:
    """The file after a change of one array, or without it if that becomes None."""

    def replace(_header: Any, arrays: dict[str, np.ndarray]) -> None:
        changed = change(arrays.pop(name))
        if changed is not None:
            arrays[name] = np.ascontiguousarray(changed)

    return forged(whole, replace)


def refuse_change(model: Any, name: str, change: Callable[[np.ndarray], np.ndarray | None], told: str, path: Path) -> None:
    """Loading the model after a change of one array raises an error with these words."""
    kernling.save(model, path)
    path.write_bytes(with_array(path.read_bytes(), name, change))
    with pytest.raises(ValueError, match=told):
        kernling.load(path)


def signed(arrays: dict[str, np.ndarray], text: str) -> bytes:
    """A file with this header and these arrays, and the checksum that goes with them."""
    return models.signed(safetensors.numpy.save(arrays, {"kernling": text, "sha256": models.BLANK}))


WHOLE = [-1, 2**31, 2**62, -(2**62)]
FLOATS = [-1.0, 0.5, 1e9, 1e300, -1e300, np.nan, np.inf]


def evil(array: np.ndarray) -> Iterator[np.ndarray]:
    """Arrays of the same type and shape whose numbers would lead compiled code astray if they were believed."""
    if array.size:
        for value in WHOLE if array.dtype.kind == "i" else FLOATS:
            yield np.full_like(array, value)
            single = array.copy()
            single.flat[-1] = value
            yield single


def misshapen(array: np.ndarray) -> Iterator[np.ndarray]:
    """The same numbers, or some of them, in other shapes."""
    for axis in range(array.ndim):
        yield np.concatenate([array, array], axis=axis)
        yield np.take(array, range(array.shape[axis] // 2), axis=axis)
        yield np.take(array, [], axis=axis)
    yield array.ravel()[:, np.newaxis]


def of_arrays(whole: bytes, ways: Callable[[np.ndarray], Iterator[np.ndarray]]) -> Iterator[tuple[str, Change]]:
    """Every array of the file, changed in all these ways; with each change, what it is."""
    for name, array in safetensors.numpy.load(whole).items():
        for wrong in ways(array):
            changed = {name: np.ascontiguousarray(wrong)}
            yield f"{name} became {wrong!r}", lambda header, arrays, changed=changed: arrays.update(changed)


ENTRIES = [None, True, -1, 0, 0.5, 2**62, 10**400, 1e308, -1e308, np.nan, "", "x", [], [1.0], [[]], {}, {"dict": []}]


def places(part: Any, path: tuple = ()) -> Iterator[tuple]:
    """The way to every entry of a header, as keys and indices."""
    for key in part if isinstance(part, dict) else range(len(part)) if isinstance(part, list) else ():
        yield (*path, key)
        yield from places(part[key], (*path, key))


def of_headers(whole: bytes) -> Iterator[tuple[str, Change]]:
    """Every entry of the header, lost or changed into something else; with each change, what it is."""
    for place in places(header_of(whole)):

        def holder(header, place=place):
            for key in place[:-1]:
                header = header[key]
            return header

        yield f"{place} was lost", lambda header, arrays, place=place, holder=holder: holder(header).pop(place[-1])
        for value in ENTRIES:

            def change(header, arrays, place=place, value=value, holder=holder):
                holder(header)[place[-1]] = copy.deepcopy(value)

            yield f"{place} became {value!r:.40}", change


def use(path: Path, X: np.ndarray, y: np.ndarray) -> None:
    """Load a forged file and go on with it: a clear error, or a model that can be used, if not one that knows much."""
    try:
        model = kernling.load(path)
    except ValueError as error:
        if path.name not in str(error) or "\n" in str(error):
            raise hostile.Broken(f"not a sentence about the file: {error}") from error
        return
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.partial_fit(X, y)
            if hasattr(model, "learn_one"):  # not if a pipeline has lost its model
                model.learn_one(X[0], y[0])
            hostile.check_result(checks.scores(model, X))
    except ValueError as error:
        hostile.check_message(error)


def use_all(whole: bytes, changes: Iterator[tuple[str, Change]], path: Path, X: np.ndarray, y: np.ndarray) -> None:
    """Use the file after each of the changes."""
    for what, change in changes:
        path.write_bytes(forged(whole, change))
        try:
            use(path, X, y)
        except Exception as error:
            error.add_note(what)
            raise
