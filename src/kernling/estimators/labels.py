"""Encoding of class labels as -1 and +1 on one output or 0 to K-1 on K outputs, and new classes."""

from __future__ import annotations

import numpy as np

from ..core.state import Widening

FEW = 100  # labels, up to which all rows are compared with them instead of being sorted
A_FEW = 6  # labels, up to which comparing with each is faster than a binary search
ROOM = 2**26  # maximum bytes of all labels of a model


def from_plain(held: list, name: str) -> np.ndarray:
    """Return the labels of a model file, of the type of this name; raise unless they are distinct and sorted."""
    try:
        dtype = np.dtype(name)
        if dtype.kind not in "biufUO" or dtype.itemsize * len(held) > ROOM:
            raise TypeError
        classes = np.array(held, dtype=dtype)
        sound = classes.ndim == 1 and len(classes) and np.array_equal(classes, np.unique(classes))
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"the classes are not labels of type {name!r:.40}") from None
    if not sound:
        raise ValueError("the classes are not a sorted list of distinct labels")
    return classes


def output_count(classes: int) -> int:
    """Return the number of outputs; one or two classes share one output."""
    return 1 if classes <= 2 else classes


def encode(classes: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Encode labels, all of which must be known."""
    if len(classes) == 2:
        return np.where(y == classes[1], 1.0, -1.0)
    index = np.searchsorted(classes, y).astype(np.float64)
    return index if len(classes) > 2 else 2.0 * index - 1.0


def decide(classes: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """Return the labels for scores (rows, outputs): score 0 is the second class, ties go to the lowest index."""
    if len(classes) == 1:
        return np.repeat(classes, len(scores))
    if scores.shape[1] == 1:
        return classes.take(scores[:, 0] >= 0.0)
    return classes.take(scores.argmax(axis=1))


def widening(classes: np.ndarray, label) -> tuple[np.ndarray, Widening]:
    """Return the classes with one more label, and what the outputs become.

    The one output f of two classes becomes -f/2 and +f/2 when a third class appears.
    """
    place = int(np.searchsorted(classes, label))
    wider = np.insert(classes.astype(np.result_type(classes, np.asarray(label))), place, label)
    if len(classes) == 1:
        return wider, Widening(np.zeros(1, np.intp), np.array([1.0 if place == 1 else -1.0]))
    old = np.zeros(2, np.intp) if len(classes) == 2 else np.arange(len(classes))
    factors = np.array([-0.5, 0.5]) if len(classes) == 2 else np.ones(len(classes))
    return wider, Widening(np.insert(old, place, -1), np.insert(factors, place, 0.0))


def first_appearances(classes: np.ndarray, y: np.ndarray) -> list[int]:
    """Return the indices at which new labels appear for the first time, in order."""
    new = np.flatnonzero(~_known(classes, y))
    _, first = np.unique(y[new], return_index=True)
    return sorted(new[first].tolist())


def are_plain(classes: np.ndarray) -> bool:
    """Return whether the labels are whole numbers or text, and so cannot be regression targets."""
    kind = classes.dtype.kind
    if kind == "f":
        return bool((classes == np.floor(classes)).all())
    return kind in "biuU" or (kind == "O" and all(isinstance(label, str) for label in classes))


def distinct(y: np.ndarray) -> np.ndarray:
    """Return the distinct labels, sorted; if there are few, without sorting all of y."""
    found, _ = np.unique(y[:FEW], return_index=True)  # without the index, NumPy would import its masked arrays
    while len(found) <= FEW:
        new = y[~_known(found, y)]
        if not len(new):
            return found
        found = np.union1d(found, new[:FEW])
    return np.unique(y)


def _known(classes: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return a mask of the labels that are among the classes."""
    if len(classes) <= A_FEW:
        return np.logical_or.reduce([y == label for label in classes])
    place = np.searchsorted(classes, y)
    return classes[np.minimum(place, len(classes) - 1)] == y


def aligned(parts: list[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    """Concatenate the scores of segments, each with one class more than the one before, in the columns of the last."""
    last = parts[-1][0]
    pair = next((classes for classes, _ in parts if len(classes) == 2), last)
    out = np.zeros((sum(len(scores) for _, scores in parts), output_count(len(last))))
    row = 0
    for classes, scores in parts:
        rows = slice(row, row := row + len(scores))
        if len(classes) == 1 < len(last):  # which may become the first or the second of a pair
            classes, scores = pair, scores if pair[0] == classes[0] else -scores
        if len(classes) == 2 < len(last):
            scores = np.hstack([-0.5 * scores, 0.5 * scores])
        out[rows, np.searchsorted(last, classes) if len(last) > 2 else [0]] = scores
    return out
