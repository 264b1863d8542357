"""From named columns to rows of numbers: which columns, which target, and categories as numbers.

The state (names and categories) is plain data, so that a saved model can be given rows by name years later.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping, Sequence
from numbers import Number
from typing import Any

import numpy as np
from scipy import sparse

Table = dict[str, np.ndarray]
MISSING = ("error", "drop")
MOST = 2**31 - 1  # columns
FEW = 0.05  # so large a part of a column may be no number, and it is one of numbers all the same: damaged ones


class RowError(ValueError):
    """A row that cannot be used; the ``place`` that it has in its table says which rows come before it."""

    def __init__(self, message: str, place: int):
        super().__init__(message)
        self.place = place


class Columns:
    """Turns tables, dictionaries of columns by name, into (X, y).

    Parameters
    ----------
    target : str, int or None
        The column with the target: its name, or its place (-1 is the last).  None if there is none.
    features : sequence of str or None
        The columns to use, in this order; all but the target if None.
    categorical : sequence of str or mapping of str to sequence
        Columns whose values are names, not numbers.  Each becomes one column per category, and one for all others.
        The categories are those given, or those of the first chunk.  The target may be among them: then it is a label as
        written; otherwise it is a number if those of the first chunk are, but for a few damaged ones.
    hash : int or None
        Instead, categories are hashed into this many columns (after the numeric ones), and rows are sparse.
    missing : {"error", "drop"}
        What to do with rows in which a value is missing: a text that is empty is, and so is a target that is not finite.

    Examples
    --------
    >>> import numpy as np
    >>> from kernling.streams import Columns
    >>> columns = Columns("late", categorical=["from"])
    >>> X, y = columns.rows({"from": np.array(["EWR", "JFK", "EWR"]), "km": np.arange(3.0), "late": np.arange(3)})
    >>> columns.names
    ('from=EWR', 'from=JFK', 'from=?', 'km')
    >>> print(X[1], y)
    [0. 1. 0. 1.] [0 1 2]
    """

    def __init__(
        self,
        target: str | int | None = None,
        features: Sequence[str] | None = None,
        categorical: Sequence[str] | Mapping[str, Sequence[Any]] = (),
        hash: int | None = None,
        missing: str = "error",
    ):
        if missing not in MISSING:
            raise ValueError(f"missing must be 'error' or 'drop', not {missing!r}")
        if hash is not None and (not isinstance(hash, int) or not 1 <= hash <= MOST):
            raise ValueError(f"hash must be a whole number of columns from 1 to {MOST}, not {hash!r}")
        if not isinstance(target, (str, int, type(None))):
            raise TypeError(f"target must be the name or the place of a column, not {target!r}")
        listed = [categorical, *(categorical.values() if isinstance(categorical, Mapping) else ())]
        for name, names in (("features", () if features is None else features), *(("categorical", names) for names in listed)):
            if isinstance(names, (str, bytes)) or not isinstance(names, Iterable):
                raise TypeError(f"{name} must be a list of names, not {names!r}")
        self.target = target
        self.features = None if features is None else tuple(features)
        self.categorical = tuple(categorical)
        self.hash = hash
        self.missing = missing
        given = categorical if isinstance(categorical, Mapping) else {}
        self.categories: dict[str, list[str]] = {name: [_word(v) for v in values] for name, values in given.items()}
        self._labels: bool | None = None  # whether targets are text, once one was seen

    @property
    def names(self) -> tuple[str, ...] | None:
        """The names of X's columns, once they are known."""
        if self.features is None or (self.hash is None and set(self._words()) - set(self.categories)):
            return None
        if self.hash is not None:
            return (*self._numeric(), *(f"hash={i}" for i in range(self.hash)))
        names: list[str] = []
        for name in self.features:
            known = self.categories[name] if name in self.categorical else None
            names += [name] if known is None else [f"{name}={value}" for value in (*known, "?")]
        return tuple(names)

    def rows(self, table: Table, first_row: int = 0) -> tuple[Any, Any]:
        """The (X, y) of a table; ``first_row`` is the place of its first row in the stream, for messages."""
        self._choose(list(table))
        assert self.features is not None
        lacking = [name for name in (*self.features, *([] if self.target is None else [self.target])) if name not in table]
        if lacking:
            raise ValueError(f"there is no column {lacking[0]!r}; the columns are {', '.join(map(repr, table))}")
        numbers = {name: _numbers(name, table[name], first_row) for name in self._numeric()}
        words = {name: table[name] for name in self._words()}
        y = None if self.target is None else self._targets(table[str(self.target)], first_row)
        good = self._complete(len(next(iter(table.values()))), {**numbers, **words}, y, first_row)
        if not good.all():
            numbers = {name: values[good] for name, values in numbers.items()}
            words = {name: values[good] for name, values in words.items()}
            y = None if y is None else y[good]
        n = int(good.sum())
        return (self._dense(numbers, words, n) if self.hash is None else self._hashed(numbers, words, n)), y

    def _choose(self, names: list[str]) -> None:
        """Settle which column is the target and which are features, from a table's names."""
        if isinstance(self.target, int):
            if not -len(names) <= self.target < len(names):
                raise ValueError(f"target is column {self.target}, but there are {len(names)} columns")
            self.target = names[self.target]
        if self.features is not None:
            return
        self.features = tuple(name for name in names if name != self.target)
        unknown = [name for name in self.categorical if name not in names]
        if unknown:
            raise ValueError(f"categorical names {unknown[0]!r}, which is not among the columns {', '.join(map(repr, names))}")

    def _numeric(self) -> list[str]:
        return [name for name in self.features or () if name not in self.categorical]

    def _words(self) -> list[str]:
        return [name for name in self.features or () if name in self.categorical]

    def _targets(self, values: np.ndarray, first_row: int) -> np.ndarray:
        """Numbers or labels, as the first ones were; None is a label that is missing."""
        present = values[~_is_missing(values)]
        if self._labels is None and len(present):
            texts = sum(not isinstance(v, (Number, np.bool_)) for v in present.tolist())
            self._labels = self.target in self.categorical or texts > FEW * len(present)
        if self._labels:
            return np.array([None if lost else _word(v) for v, lost in zip(values, _is_missing(values), strict=True)], object)
        return values if values.dtype.kind in "biu" else _numbers(str(self.target), values, first_row)

    def _complete(self, n: int, features: Table, y: Any, first_row: int) -> np.ndarray:
        """Which rows have all their values."""
        lost = [(name, _is_missing(values)) for name, values in features.items()]
        if y is not None:
            lost.append((str(self.target), ~np.isfinite(y) if y.dtype.kind == "f" else _is_missing(y)))
        good = np.ones(n, dtype=bool)
        for name, gaps in lost:
            if self.missing == "error" and gaps.any():
                row = int(gaps.argmax())
                what = "an infinite value" if name == self.target and y.dtype.kind == "f" and np.isinf(y[row]) else "no value"
                cure = "missing='drop' leaves such rows out"
                raise RowError(f"row {first_row + row + 1} has {what} in column {name!r}; {cure}", row)
            good &= ~gaps
        return good

    def _dense(self, numbers: Table, words: Table, n: int) -> np.ndarray:
        parts = []
        for name in self.features or ():
            if name in numbers:
                parts.append(numbers[name][:, None])
                continue
            values, place = np.unique(np.array([_word(v) for v in words[name]], dtype=str), return_inverse=True)
            known = self.categories.setdefault(name, values.tolist())
            column = np.array([known.index(v) if v in known else len(known) for v in values.tolist()], dtype=np.intp)
            part = np.zeros((n, len(known) + 1))
            part[np.arange(n), column[place]] = 1.0
            parts.append(part)
        return np.hstack(parts) if parts else np.empty((n, 0))

    def _hashed(self, numbers: Table, words: Table, n: int) -> sparse.csr_matrix:
        dense = np.column_stack([*numbers.values()]) if numbers else np.empty((n, 0))
        parts = [sparse.csr_matrix(dense)]
        width = self.hash or 0
        hashed = sparse.csr_matrix((n, width))
        for name, values in words.items():
            known, place = np.unique(np.array([_word(v) for v in values], dtype=str), return_inverse=True)
            code = np.array([zlib.crc32(f"{name}={v}".encode()) % width for v in known.tolist()], dtype=np.int32)
            hashed = hashed + sparse.csr_matrix((np.ones(n), code[place], np.arange(n + 1)), (n, width))
        return sparse.hstack([*parts, hashed], format="csr")

    def to_state(self) -> dict[str, Any]:
        """The state as JSON would hold it."""
        return {
            "target": self.target,
            "features": None if self.features is None else list(self.features),
            "categorical": list(self.categorical),
            "categories": self.categories,
            "hash": self.hash,
            "missing": self.missing,
        }

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Columns:
        """The columns that ``to_state`` described."""
        columns = cls(state["target"], state["features"], state["categorical"], state["hash"], state["missing"])
        columns.categories = {str(name): [str(v) for v in values] for name, values in state["categories"].items()}
        features = columns.categorical if columns.features is None else columns.features
        if not all(isinstance(name, str) for name in (*features, *columns.categorical)):
            raise ValueError("the names of columns must be words")
        return columns


def _word(value: Any) -> str:
    """A category's name: the same for 3, 3.0 and "3", so that it does not matter how a file's reader typed a column."""
    if isinstance(value, (float, np.floating)) and float(value).is_integer():
        value = int(value)
    return str(value)


def _numbers(name: str, values: np.ndarray, first_row: int) -> np.ndarray:
    listed = [np.nan if v is None or v == "" else v for v in values.tolist()] if values.dtype.kind in "OU" else values
    try:
        return np.array(listed, dtype=np.float64)
    except (TypeError, ValueError):
        pass
    for row, value in enumerate(listed):
        try:
            float(value)
        except (TypeError, ValueError):
            raise RowError(
                f"row {first_row + row + 1}: {value!r} in column {name!r} is not a number; "
                "name the column in categorical if its values are names",
                row,
            ) from None
    return np.array([float(v) for v in listed])


def _is_missing(values: np.ndarray) -> np.ndarray:
    if values.dtype.kind == "f":
        return np.isnan(values)
    if values.dtype.kind in "OU":
        return np.array([v is None or v == "" or v != v for v in values.tolist()], dtype=bool)
    return np.zeros(len(values), dtype=bool)
