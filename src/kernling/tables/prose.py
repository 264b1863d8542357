"""Prose as a few columns: a sparse linear model of the words and pairs of words of a text, whose scores are the columns.

Words and pairs are hashed into a fixed number of places, weighted by how rare they have been so far (idf), and scaled to length
1.  The score of a row is that of the model before it has learned the row, so that a model on these columns sees scores as good
as those of new rows.  The scores are those of AROWR, recursive least squares with a diagonal covariance (Vaits and Crammer,
"Re-adapting the Regularization of Weights for Non-Stationary Regression", ALT 2011): one output for each of the first classes,
whose targets are 1 and -1, or one for standardised values.
"""

from __future__ import annotations

import math
import re
import zlib
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from ..compiler import jit_exact
from ..components.scaling import MOST, REACH, standardise_column
from ..text import check_texts
from .table import category

PLACES = 2**16  # of hashed words; one more is for the constant
OUTPUTS = 16  # encoded columns of a text if targets are labels; further labels share them, two for each
WORDS = 1000  # of a text, the first ones, are read
NOISE = 0.3  # variance of the targets around their linear function
LARGE = 1e30  # beyond it, a weight in a file was not learned
WEIGHTS, VARIANCES = range(2)
_WORD = re.compile(r"\w+")
ARRAYS = ("places", "beliefs", "counts")


@jit_exact
def _score(starts, places, row, rows, beliefs, counts, values, out):
    """Write the idf of each word of a row, scaled to length 1, and the score of each output."""
    squares = 0.0
    for j in range(starts[row], starts[row + 1]):
        values[j] = math.log((1.0 + rows) / (1.0 + counts[places[j]])) + 1.0
        squares += values[j] * values[j]
    scale = 1.0 / math.sqrt(squares) if squares > 0.0 else 0.0
    for j in range(starts[row], starts[row + 1]):
        values[j] *= scale
    for o in range(beliefs.shape[1]):
        weights = beliefs[WEIGHTS, o]
        score = float(weights[weights.size - 1])
        for j in range(starts[row], starts[row + 1]):
            score += weights[places[j]] * values[j]
        out[row, o] = score


@jit_exact
def _scores(starts, places, rows, beliefs, counts, values, out):
    """Score all rows with the current state."""
    for row in range(starts.size - 1):
        _score(starts, places, row, rows, beliefs, counts, values, out)


@jit_exact
def _learn(starts, places, targets, rows, beliefs, counts, values, out):
    """Score each row, then learn it; outputs without a target (NaN) do not learn."""
    for row in range(starts.size - 1):
        _score(starts, places, row, rows + row, beliefs, counts, values, out)
        for o in range(targets.shape[1]):
            weights, variances = beliefs[WEIGHTS, o], beliefs[VARIANCES, o]
            last = weights.size - 1
            if targets[row, o] == targets[row, o]:
                variance = NOISE + variances[last]
                for j in range(starts[row], starts[row + 1]):
                    variance += variances[places[j]] * values[j] * values[j]
                gain = (targets[row, o] - out[row, o]) / variance
                for j in range(starts[row], starts[row + 1]):
                    step = variances[places[j]] * values[j]
                    weights[places[j]] += gain * step
                    variances[places[j]] -= step * step / variance
                step = float(variances[last])
                weights[last] += gain * step
                variances[last] -= step * step / variance
        for j in range(starts[row], starts[row + 1]):
            counts[places[j]] += 1.0


class _Memory:
    """What is known of all places: it changes only when the next rows are learned, since until then they may be taken back."""

    def __init__(self, outputs: int):
        self.beliefs = _unknown(outputs, PLACES + 1)
        self.counts = np.zeros(PLACES + 1)


def _unknown(outputs: int, places: int) -> np.ndarray:
    """Return weights of 0 and variances of 1."""
    beliefs = np.zeros((2, outputs, places), dtype=np.float32)
    beliefs[VARIANCES] = 1.0
    return beliefs


class _Changes(NamedTuple):
    """What has been learned since the memory was written: the places that have changed, sorted, and their contents."""

    places: np.ndarray
    beliefs: np.ndarray
    counts: np.ndarray


class Prose:
    """Scores of texts, learned row by row; learning returns another object and leaves this one as it is.

    Both share the memory, into which changes are written when the next rows are learned: a row costs nothing but its words, and
    an object can be used until the one after the next has been learned.

    Examples
    --------
    >>> from kernling.tables.prose import Prose
    >>> learned, scores = Prose("classification").learn(["too late", "on time", "far too late"], ["bad", "good", "bad"])
    >>> print(scores.shape, learned.scores(["late"])[0, :2].round(2))
    (3, 16) [ 0.56 -0.28]
    """

    def __init__(self, task: str):
        self.task = task
        self.rows = 0  # learned
        self.labels: tuple[str, ...] = ()  # that have an output of their own, in the order of their first rows
        self._moments = (0.0, 0.0, 0.0)  # count, mean and sum of squares of targets that are values
        self._memory = _Memory(0 if task == "classification" else 1)
        self._changes: _Changes | None = None

    @staticmethod
    def width(task: str | None) -> int:
        """Return the number of encoded columns: none without targets."""
        return {"classification": OUTPUTS, "regression": 1}.get(str(task), 0)

    @property
    def nbytes(self) -> int:
        """Memory in use, in bytes."""
        return self._memory.beliefs.nbytes + self._memory.counts.nbytes

    def scores(self, texts: Sequence[str | None]) -> np.ndarray:
        """Return the scores of texts, (texts, columns), without learning; None stands for a missing one."""
        starts, places = _hashed(texts)
        used, local = np.unique(places, return_inverse=True)
        beliefs, counts = self._known(used, len(self.labels) if self.task == "classification" else 1)
        out = np.zeros((len(texts), self.width(self.task)))
        _scores(starts, local, float(self.rows), beliefs, counts, np.empty(len(places)), out)
        return np.clip(out, -REACH, REACH)

    def can_learn(self, texts: Sequence[str | None], y: Any) -> bool:
        """Return whether there is a target for each text; about others, the model complains."""
        try:
            targets = np.asarray(y) if self.task == "classification" else np.asarray(y, dtype=np.float64)
        except (TypeError, ValueError):
            return False
        return targets.shape == (len(texts),) and (self.task == "classification" or bool((np.abs(targets) <= MOST).all()))

    def learn(self, texts: Sequence[str | None], y: Any) -> tuple[Prose, np.ndarray]:
        """Return the state after these rows, and the scores of each row before it was learned."""
        later = object.__new__(Prose)
        later.__dict__.update(vars(self))
        targets = later._targets(y)
        self._write()
        starts, places = _hashed(texts)
        used, local = np.unique(places, return_inverse=True)
        beliefs, counts = self._known(used, targets.shape[1])
        out = np.zeros((len(texts), self.width(self.task)))
        _learn(starts, local, targets, float(self.rows), beliefs, counts, np.empty(len(places)), out)
        later.rows = self.rows + len(texts)
        later._changes = _Changes(np.append(used, PLACES), beliefs, counts)
        return later, np.clip(out, -REACH, REACH)

    def _targets(self, y: Any) -> np.ndarray:
        """Note new labels or the moments of values; return the targets of all outputs, NaN before the first row of a label."""
        if self.task != "classification":
            scaled, self._moments = standardise_column(np.asarray(y, dtype=np.float64), *self._moments)
            return scaled[:, np.newaxis]
        words = [category(label, "target") for label in np.asarray(y).tolist()]
        before = len(self.labels)
        self.labels = tuple(dict.fromkeys((*self.labels, *words)))[:OUTPUTS]
        own = [{code} for code in range(len(self.labels))]
        codes = dict(zip(self.labels, own, strict=True))
        said = np.full((len(words), len(self.labels)), -1.0)
        for row, word in enumerate(words):
            said[row, list(codes.get(word) or _shared(word))] = 1.0
        begun = np.maximum.accumulate(np.maximum((said > 0.0).argmax(axis=1), before - 1))
        said[np.arange(len(self.labels)) > begun[:, np.newaxis]] = np.nan
        return said

    def _known(self, used: np.ndarray, outputs: int) -> tuple[np.ndarray, np.ndarray]:
        """Return what is known of these places, and of the constant."""
        used = np.append(used, PLACES)
        beliefs, counts = _unknown(outputs, len(used)), self._memory.counts[used]
        held = self._memory.beliefs
        beliefs[:, : held.shape[1]] = held[:, :, used]
        if self._changes is not None:
            at = np.searchsorted(self._changes.places, used)
            there = self._changes.places[at] == used  # the last place is always there
            beliefs[:, : self._changes.beliefs.shape[1], there] = self._changes.beliefs[:, :, at[there]]
            counts[there] = self._changes.counts[at[there]]
        return beliefs, counts

    def _write(self) -> None:
        """Write the changes into the memory; to do so again has no effect."""
        if self._changes is not None:
            memory, (places, beliefs, counts) = self._memory, self._changes
            more = beliefs.shape[1] - memory.beliefs.shape[1]
            if more > 0:
                memory.beliefs = np.concatenate([memory.beliefs, _unknown(more, PLACES + 1)], axis=1)
            memory.beliefs[:, :, places] = beliefs
            memory.counts[places] = counts

    # ------------------------------------------------------------------ as a file

    def to_state(self) -> dict[str, Any]:
        """Return the state as JSON-compatible data, without the arrays."""
        return {"task": self.task, "rows": self.rows, "labels": list(self.labels), "moments": list(self._moments)}

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Return the places of words that have occurred, the last of which is the constant's, and what is known of them."""
        self._write()
        places = np.append(np.flatnonzero(self._memory.counts), PLACES)
        return dict(zip(ARRAYS, (places, self._memory.beliefs[:, :, places], self._memory.counts[places]), strict=True))

    @classmethod
    def from_state(cls, state: dict[str, Any], arrays: dict[str, np.ndarray]) -> Prose:
        """Restore the state from the results of ``to_state`` and ``to_arrays``."""
        task, rows, labels, moments = (state[name] for name in ("task", "rows", "labels", "moments"))
        outputs = len(labels) if task == "classification" else 1
        places, beliefs, counts = (arrays[name] for name in ARRAYS)
        right = [
            Prose.width(task) >= outputs and type(rows) is int and rows >= 0 and len(set(labels)) == len(labels),
            len(moments) == 3 and all(type(one) is float and abs(one) <= MOST for one in moments),
            moments[0] >= 0.0 and moments[2] >= 0.0 and all(type(label) is str for label in labels),
            places.dtype == np.int64 and places.ndim == 1 and len(places) > 0 and bool((np.diff(places) > 0).all()),
            len(places) > 0 and places[0] >= 0 and places[-1] == PLACES,
            beliefs.dtype == np.float32
            and beliefs.shape == (2, outputs, len(places))
            and bool((np.abs(beliefs) <= LARGE).all()),
            counts.dtype == np.float64 and counts.shape == places.shape and bool(((counts >= 0.0) & (counts <= rows)).all()),
        ]
        if not all(right) or not (beliefs[VARIANCES] >= 0.0).all():
            raise ValueError("what was learned from the words of a text is not valid")
        check_texts("the label", labels)
        found = cls(task)
        found.rows, found.labels, found._moments = rows, tuple(labels), tuple(moments)
        found._changes = _Changes(places, beliefs, counts)
        found._write()
        found._changes = None
        return found


def _hashed(texts: Sequence[str | None]) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct places of the words and pairs of words of all texts, and where those of each text begin."""
    known: dict[str, int] = {}
    ends, found = [0], []
    for text in texts:
        words = _WORD.findall(text.casefold())[:WORDS] if text else []
        keys = {*words, *(f"{one} {two}" for one, two in pairwise(words))}
        places = set()
        for key in keys:
            place = known.get(key)
            if place is None:
                place = known[key] = zlib.crc32(key.encode("utf-8", "surrogatepass")) % PLACES
            places.add(place)
        found += sorted(places)
        ends.append(len(found))
    return np.array(ends), np.array(found, dtype=np.int64)


def _shared(label: str) -> set[int]:
    """Return the two outputs of a label that has none of its own."""
    one, another = divmod(zlib.crc32(label.encode()) % (OUTPUTS * (OUTPUTS - 1)), OUTPUTS - 1)
    return {one, (one + 1 + another) % OUTPUTS}


def word_count(texts: Sequence[str]) -> float:
    """Return the mean number of words of texts."""
    return sum(len(_WORD.findall(text)) for text in texts) / max(len(texts), 1)
