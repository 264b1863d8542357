"""Named data sets: located on disk or downloaded, verified, and prepared as in the papers."""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from ..atomic import replaced
from ..compiler import cache_folder
from ..io import files
from ..io.base import CHUNK, Chunk, Stream
from ..io.sources import stream
from . import recipes
from .catalogue import CATALOGUE, Entry, File

TIMEOUT = 30.0  # seconds without a response


def dataset_names() -> list[str]:
    """Return the names of all data sets.

    Examples
    --------
    >>> from kernling.papers import dataset_names
    >>> "a9a" in dataset_names()
    True
    """
    return sorted(CATALOGUE)


def dataset(name: str, positive: Any = None) -> Dataset:
    """Return a public data set by name; its files are read when rows are requested.

    Files are searched in the folder ``KERNLING_DATA``, then in the user's cache, under their original names, compressed
    or not; otherwise they are downloaded into the cache.

    Parameters
    ----------
    name : str
        See :func:`dataset_names`.
    positive : label or collection of labels, optional
        Converts several classes to two: +1 for these labels, -1 for the rest (2 gives LIBSVM's covtype.binary for covtype).

    Examples
    --------
    >>> from kernling.papers import dataset
    >>> a9a = dataset("a9a")
    >>> print(a9a.task, a9a.n_features, a9a.rows)
    classification 123 {'train': 32561, 'test': 16281}
    """
    if name not in CATALOGUE:
        raise ValueError(f"name must be one of {', '.join(map(repr, dataset_names()))}, not {name!r}")
    if positive is not None and CATALOGUE[name].task != "classification":
        raise ValueError(f"positive={positive!r} is only for classification, but {name} is a regression data set")
    return Dataset(name, CATALOGUE[name], positive)


class Dataset:
    """A named data set; see :func:`dataset`.

    Attributes
    ----------
    name, task : str
    n_features : int
        Number of columns of X.
    rows : dict
        Number of rows of each part ("train", and if published "test", "validation").
    home : str
        The page that describes it.

    Examples
    --------
    >>> from kernling.papers import dataset
    >>> data = dataset("a9a")
    >>> print(data.n_features, data.rows["train"])
    123 32561
    """

    def __init__(self, name: str, entry: Entry, positive: Any = None):
        self.name = name
        self.task = entry.task
        self.n_features = entry.columns
        self.rows = {part: rows for part, (rows, _) in entry.parts.items()}
        self.home = entry.home
        self.positive = positive
        self._entry = entry
        self._checksums: dict[str, str] = {}

    def load(self, part: str = "train") -> Chunk:
        """Load the rows of a part, of "all" parts or of some ("train+test") one after the other, as (X, y)."""
        wanted = list(self.rows) if part == "all" else part.split("+")
        if not set(wanted) <= set(self.rows):
            raise ValueError(f"part of {self.name} must be one of {', '.join(map(repr, (*self.rows, 'all')))}, not {part!r}")
        contents = {one: self._contents(one) for one in dict.fromkeys(["train", *wanted])}  # "train" sets the scales
        prepare = getattr(recipes, f"prepare_{self._entry.recipe}")
        try:
            prepared = prepare(contents, self.n_features, **self._entry.options)
        except ValueError as error:
            raise ValueError(f"the files of {self.name} are damaged: {error}") from error
        X, y = (list(side) for side in zip(*(prepared[one] for one in wanted), strict=True))
        rows = sparse.vstack(X, format="csr") if sparse.issparse(X[0]) else np.concatenate(X)
        expected = sum(self.rows[one] for one in wanted)
        if rows.shape != (expected, self.n_features):
            raise ValueError(
                f"{self.name} ({part}) should have {expected} rows of {self.n_features} columns, but its files have "
                f"{rows.shape[0]} of {rows.shape[1]}"
            )
        return rows, self._labels(np.concatenate(y))

    def stream(self, part: str = "train", seed: int | None = None, chunk: int = CHUNK) -> Stream:
        """Return a stream of the rows of a part, in the random order of a seed, or as published.

        Several of these files are sorted by class, so test-then-train evaluation is not meaningful without a seed.
        """
        X, y = self.load(part)
        if seed is not None:
            order = np.random.default_rng(seed).permutation(len(y))
            X, y = X[order], y[order]
        made = stream(X, y, chunk=chunk)
        made.info = self.info(part) | {"order": seed}
        return made

    def info(self, part: str = "train") -> dict[str, Any]:
        """Return a description of the rows: name, part, labels and the checksums of the files."""
        return {"source": self.name, "part": part, "positive": self.positive, "sha256": dict(self._checksums)}

    def _labels(self, y: np.ndarray) -> np.ndarray:
        if self.positive is None:
            return y
        several = isinstance(self.positive, Collection) and not isinstance(self.positive, str)
        chosen = list(self.positive) if several else [self.positive]
        unknown = [label for label in chosen if label not in y]
        if unknown:
            raise ValueError(f"positive names {unknown[0]!r}, but the labels of {self.name} are {np.unique(y).tolist()}")
        return np.where(np.isin(y, chosen), 1, -1)

    def _contents(self, part: str) -> recipes.Contents:
        contents = {}
        for file in self._entry.parts[part][1]:
            path = _find(file) or _download(file, self)
            contents[file.name], self._checksums[file.name] = _read(path, file)
        return contents


def data_folders() -> list[Path]:
    """Return the folders in which files are searched, in order."""
    given = os.environ.get("KERNLING_DATA")
    return [*([Path(given)] if given else []), cache_folder() / "data"]


def _find(file: File) -> Path | None:
    for folder in data_folders():
        for suffix in ("", *files.COMPRESSIONS):
            path = folder / (file.name + suffix)
            if path.is_file():
                return path
    return None


def _read(path: Path, file: File) -> tuple[bytes, str]:
    """Return the uncompressed content of a file and its checksum."""
    try:
        with files.opened(path) as opened:
            content = opened.read()
    except (ValueError, OSError) as error:
        raise ValueError(f"{path} is damaged or truncated ({error}); delete it, and it will be downloaded again") from error
    checksum = hashlib.sha256(content).hexdigest()
    if file.exact and checksum != file.sha256:
        raise ValueError(
            f"{path} is not the published {file.name}: its SHA-256 is {checksum}, not {file.sha256}; delete or replace it"
        )
    return content, checksum


def _download(file: File, data: Dataset) -> Path:
    """Download a file into the cache, atomically."""
    from urllib.request import urlopen  # slow to import

    folder = data_folders()[-1]
    cure = f"get {file.name} from {file.url or data.home} and put it, compressed or not, into {data_folders()[0]}"
    cure += f" (SHA-256 of the uncompressed file: {file.sha256})" if file.exact else ""
    if file.url is None:
        raise FileNotFoundError(f"{data.name} needs the file {file.name}, which cannot be downloaded automatically: {cure}")
    suffix = Path(file.url).suffix
    target = folder / (file.name + (suffix if suffix in files.COMPRESSIONS else ""))
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with replaced(target) as temporary:
            with urlopen(file.url, timeout=TIMEOUT) as answer, open(temporary, "xb") as out:
                length = answer.headers.get("Content-Length")
                _copy(answer, out, file.name, int(length) if length else None)
            _read(temporary, file)
    except (OSError, ValueError) as error:
        raise FileNotFoundError(f"{data.name} needs {file.name}, but downloading it failed ({error}): {cure}") from error
    return target


def _copy(answer: Any, out: Any, name: str, length: int | None) -> None:
    """Copy a response, with a progress bar on a terminal; raise if it is incomplete."""
    if sys.stderr.isatty():
        from rich.console import Console
        from rich.progress import wrap_file

        with wrap_file(answer, length or 0, description=name, console=Console(stderr=True)) as shown:
            shutil.copyfileobj(shown, out, files.BLOCK)
    else:
        print(f"downloading {name}", file=sys.stderr)
        shutil.copyfileobj(answer, out, files.BLOCK)
    if length is not None and out.tell() != length:
        raise OSError(f"the response ended after {out.tell()} of {length} bytes")
