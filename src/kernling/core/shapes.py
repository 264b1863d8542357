"""What the arrays of a state are: each part declares it once, as data, and ``verify`` compares a whole state with it.

A part is a NamedTuple decorated by ``@declared()``, and ``Annotated[np.ndarray, "contents: dimensions"]`` says what each of its
arrays is.  The dimensions are ``stored`` (points), ``columns``, ``outputs``, ``classes``, numbers, products of two such as
``features*features``, or names of the part's own: their length is that of the part before the first event, which follows from
the parameters, or with ``@declared(lengths={"held": ("count", 0)})`` the number at this place of an array.  With
``@declared(used="record")``, the whole part is empty where that array is: a learner's parameters do not need it.

The contents are one of:

====================  ============================================================================================
numbers               anything finite
triangle              the same, of a square matrix that is 0 below the diagonal: files hold the rest of it
coefficients          what learning can produce: their squares are finite
rows                  numbers of rows minus a centre
positive              finite and above 0
not negative          finite
counts                whole, from 0 to 2^53
weights               of events, times those of their classes
shares                not negative, with the sum 1, or none
targets               of a regression, of two classes, or the index of an output
index of stored       whole, from 0 to one below that dimension; with ``or -1``, that too
settings              the same as before the first event
0..1                  any other range, both ends included
====================  ============================================================================================

An array whose numbers have different meanings is annotated with the contents of each of them, without dimensions.

A part with arrays of dimension ``stored`` is given the methods ``grown`` and ``trimmed`` (state.py), unless it defines them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeVar, get_type_hints

import numpy as np

from .limits import COEFFICIENT, LARGEST, TARGET, WEIGHT, in_range
from .state import padded

Part = TypeVar("Part")
HIGHEST = float(np.finfo(np.float64).max)
COUNTS = 2.0**53
STORED = "stored"
RANGES = {
    "numbers": (-HIGHEST, HIGHEST),
    "triangle": (-HIGHEST, HIGHEST),
    "coefficients": (-COEFFICIENT, COEFFICIENT),
    "positive": (math.ulp(0.0), HIGHEST),
    "not negative": (0.0, HIGHEST),
    "counts": (0.0, COUNTS),
    "weights": (0.0, WEIGHT**2),
}
ROUNDING = 0.01  # of norms, also those of wide rows in single precision
FEWEST_DIGITS = 1e6  # times the least normal number: below, squares have few digits or none
APART = 4.0  # of two rows within the limit, and of their centre, times a factor of columns


class Declared(NamedTuple):
    """The shape of an array, and the contents of its numbers: one for all, or one for each."""

    shape: tuple[str, ...]
    contents: tuple[str, ...]


class Arrays(NamedTuple):
    """The declaration of a part."""

    arrays: dict[str, Declared]
    used: str
    lengths: Mapping[str, tuple[str, int]]


NOTHING = Arrays({}, "", {})  # of a state without bare arrays


def declared(*, used: str = "", lengths: Mapping[str, tuple[str, int]] | None = None) -> Callable[[type[Part]], type[Part]]:
    """Collect what the annotations of a part declare, in its attribute ``ARRAYS``; see the top of this file.

    Examples
    --------
    >>> from kernling.core.expansion import Expansion  # coef: Annotated[np.ndarray, "coefficients: groups outputs stored"]
    >>> Expansion.ARRAYS.arrays["coef"]
    Declared(shape=('groups', 'outputs', 'stored'), contents=('coefficients',))
    """

    def declare(part: type[Part]) -> type[Part]:
        hints = get_type_hints(part, include_extras=True)
        found = {name: _entry(*hint.__metadata__) for name, hint in hints.items() if hasattr(hint, "__metadata__")}
        part.ARRAYS = Arrays(found, used, lengths or {})  # type: ignore[attr-defined]
        # not issubclass(part, PerPoint): Python would remember that the part was none before it had the methods
        if not hasattr(part, "grown") and any(STORED in entry.shape for entry in found.values()):
            part.grown, part.trimmed = _grown, _trimmed  # type: ignore[attr-defined]
        return part

    return declare


def _entry(*contents: str) -> Declared:
    """Return the declaration of an array from its annotation."""
    shared, colon, shape = contents[0].partition(": ")
    return Declared(tuple(shape.split()), (shared,)) if colon else Declared((str(len(contents)),), contents)


def _grown(part: Any, capacity: int) -> Any:
    """Return a copy with room for more points."""
    changed = {}
    for name, entry in _per_point(part):
        changed[name] = getattr(part, name)
        for axis in (axis for axis, dimension in enumerate(entry.shape) if dimension == STORED):
            changed[name] = padded(changed[name], axis, capacity)
    return part._replace(**changed)


def _trimmed(part: Any, size: int) -> Any:
    """Return a copy without spare room."""
    cuts = {name: tuple(slice(size if one == STORED else None) for one in entry.shape) for name, entry in _per_point(part)}
    return part._replace(**{name: getattr(part, name)[cut].copy() for name, cut in cuts.items()})


def _per_point(part: Any) -> list[tuple[str, Declared]]:
    """Return the arrays of a part with a dimension of points; none if its learner does not need it."""
    declared = part.ARRAYS
    is_used = not declared.used or getattr(part, declared.used).size
    return [(name, entry) for name, entry in declared.arrays.items() if STORED in entry.shape] if is_used else []


def is_triangle(part: Any, name: str) -> bool:
    """Return whether an array of a part is declared as a triangle."""
    entry = getattr(type(part), "ARRAYS", NOTHING).arrays.get(name)
    return entry is not None and entry.contents == ("triangle",)


def verify(part: Any, empty: Any, dimensions: Mapping[str, int], name: str = "state") -> None:
    """Raise unless a state without spare room, or a part of it, is as declared.

    Compiled code does not check: with a wrong length or index it would read and write out of bounds.

    Parameters
    ----------
    part : NamedTuple
        The state, whose arrays already have the right types and numbers of dimensions.
    empty : NamedTuple
        The same before the first event, as the parameters require it.
    dimensions : mapping
        The lengths of ``stored``, ``columns``, ``outputs`` and ``classes``.
    name : str
        What messages call it.
    """
    arrays = getattr(type(part), "ARRAYS", NOTHING)
    size = getattr(getattr(part, "model", None), "size", None)
    if size is not None and size.shape == (1,):
        dimensions = {**dimensions, "stored": int(size[0])}
    known = dict(dimensions)
    if arrays.used and not getattr(empty, arrays.used).size:
        known["stored"] = 0
    for dimension, (holder, place) in arrays.lengths.items():
        _verify_shape(getattr(part, holder), getattr(empty, holder), arrays.arrays[holder], known, f"{name}.{holder}")
        known[dimension] = int(getattr(part, holder)[place])
    for field, value, before in zip(part._fields, part, empty, strict=True):
        if isinstance(value, np.ndarray):
            entry, full = arrays.arrays[field], f"{name}.{field}"
            _verify_shape(value, before, entry, known, full)
            _verify_contents(value, before, entry, known, full)
        else:
            verify(value, before, dimensions, f"{name}.{field}")
    if hasattr(part, "check"):
        part.check(known)


def _verify_shape(array: np.ndarray, before: np.ndarray, entry: Declared, known: dict[str, int], name: str) -> None:
    expected = tuple(_length(one, known, n) for one, n in zip(entry.shape, before.shape, strict=True))
    if array.shape != expected:
        raise ValueError(
            f"{name} has the shape {array.shape}, but {expected} is the one that fits the parameters and other arrays"
        )


def _length(dimension: str, known: dict[str, int], before: int) -> int:
    """Return the length of a dimension; one of the part's own is that before the first event, for all of its arrays."""
    if dimension.isdigit():
        return int(dimension)
    if "*" in dimension:
        return math.prod(known[factor] for factor in dimension.split("*"))
    return known.setdefault(dimension, before)


def _verify_contents(array: np.ndarray, before: np.ndarray, entry: Declared, known: dict[str, int], name: str) -> None:
    if not array.size:
        return
    parts = [array] if len(entry.contents) == 1 else array[:, np.newaxis]
    settings = [before] if len(entry.contents) == 1 else before[:, np.newaxis]
    for contents, part, setting in zip(entry.contents, parts, settings, strict=True):
        if contents == "settings":
            if not np.array_equal(part, setting):
                raise ValueError(f"{name} is {_short(array)}, but {_short(before)} follows from the parameters")
            continue
        least, most, whole = _range(contents, array.dtype, known)
        if not in_range(part, least, most):
            wrong = float(part.min() if not part.min() >= least else part.max())
            raise ValueError(f"{name} has the number {wrong:g}, but its numbers are {contents}, from {least:g} to {most:g}")
        if whole and part.dtype.kind == "f" and not (part == np.floor(part)).all():
            raise ValueError(f"{name} has numbers that are not whole, but its numbers are {contents}")
        if contents == "shares" and abs(part.sum() - 1.0) > 1e-6:
            raise ValueError(f"{name} has the sum {part.sum():g}, but its numbers are shares, whose sum is 1")


def _range(contents: str, dtype: np.dtype, known: dict[str, int]) -> tuple[float, float, bool]:
    """Return the least and the largest number that an array may hold, and whether they are whole."""
    if contents in RANGES:
        return *RANGES[contents], contents == "counts"
    if contents == "shares":
        return 0.0, 1.0 + 1e-6, False
    if contents == "rows":
        return -APART * LARGEST[dtype.name], APART * LARGEST[dtype.name], False
    if contents == "targets":
        outputs = known["outputs"]
        return (0.0, outputs - 1.0, True) if outputs > 1 else (-TARGET[dtype.name], TARGET[dtype.name], False)
    if contents.startswith("index of "):
        dimension = contents.removeprefix("index of ").removesuffix(" or -1")
        return -1.0 if contents.endswith(" or -1") else 0.0, _length(dimension, known, 0) - 1.0, True
    least, _, most = contents.partition("..")
    return float(least), float(most), False


def are_norms(norms: np.ndarray, points: np.ndarray) -> bool:
    """Return whether these are the squared norms of points, up to rounding."""
    squares = np.einsum("ic,ic->i", points, points)
    return bool((np.abs(norms - squares) <= ROUNDING * squares + FEWEST_DIGITS * np.finfo(points.dtype).tiny).all())


def _short(array: np.ndarray) -> str:
    return np.array2string(array, threshold=6, edgeitems=2, separator=", ").replace("\n", "")
