"""Options that say what the rows are, shared by all commands that read data; and rows that remember how they were read."""

# No "from __future__ import annotations" here: typer looks at the types themselves.
import copy
import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

if TYPE_CHECKING:
    from ..streams import Stream

SYNTHETIC_ROWS = 20_000
Missing = Literal["error", "drop"]
Scale = Literal["standard", "minmax"]
Format = Literal["libsvm", "csv", "parquet", "arrow", "jsonl"]
Part = Literal["train", "test", "all"]


def _option(help: str, *names: str, **more: Any) -> Any:
    return typer.Option(*names, help=help, rich_help_panel="Data", **more)


@dataclass
class Reading:
    """How rows are read; each field is an option."""

    target: Annotated[str | None, _option("Column with the target: its name, or its place (-1 is the last).")] = None
    features: Annotated[str | None, _option("Columns to use, separated by commas; all others if not given.")] = None
    categorical: Annotated[str | None, _option("Columns whose values are names, separated by commas.")] = None
    hash: Annotated[int | None, _option("Hash categories into so many columns.", min=1)] = None
    missing: Annotated[Missing, _option("What to do about rows with a missing value.")] = "error"
    scale: Annotated[Scale | None, _option("Running scaling.")] = None
    format: Annotated[Format | None, _option("Where name and content don't tell.")] = None
    header: Annotated[bool, _option("Whether CSV begins with names.")] = True
    delimiter: Annotated[str | None, _option("Of CSV; a comma, or a tab for .tsv.")] = None
    n_features: Annotated[int | None, _option("Columns of LIBSVM text from standard input.", min=1)] = None
    zero_based: Annotated[bool, _option("Indices of LIBSVM text begin at 0.", "--zero-based")] = False
    dense: Annotated[bool, _option("Make sparse rows dense.", "--dense")] = False
    part: Annotated[Part, _option("Of a named data set.")] = "train"
    positive: Annotated[str | None, _option("Of a named data set: the labels, separated by commas, that become +1.")] = None
    shuffle: Annotated[int | None, _option("Random order of this seed; needs memory for all rows.", metavar="SEED")] = None
    skip: Annotated[int, _option("Leave out the first rows.", min=0)] = 0
    rows: Annotated[int | None, _option("Read at most so many rows.", min=1)] = None


def takes_reading(command: Callable[..., None]) -> Callable[..., None]:
    """A command whose parameter ``reading`` is spelled out as options."""
    fields = inspect.signature(Reading).parameters
    own = [one for one in inspect.signature(command, eval_str=True).parameters.values() if one.name != "reading"]

    def with_options(**given: Any) -> None:
        command(reading=Reading(**{name: given.pop(name) for name in fields}), **given)

    every = [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in (*own, *fields.values())]
    with_options.__signature__ = inspect.Signature(every)  # type: ignore[attr-defined]
    with_options.__annotations__ = {one.name: one.annotation for one in every}
    with_options.__name__, with_options.__doc__ = command.__name__, command.__doc__
    return with_options


class Source:
    """Rows, and the state that has to be kept to read further rows in the same way.

    ``state`` is what a model file holds of an earlier reading; its columns, scales and kind of rows win over the options.
    From standard input, where they may come slowly, ``chunk`` rows are given at a time; others by the block, so that what the
    first rows settle depends on nothing else.
    """

    def __init__(self, data: list[str], reading: Reading, *, chunk: int | None = None, state: dict[str, Any] | None = None):
        from ..streams import Columns, MinMax, Standardise, part_from_state
        from ..streams.base import CHUNK

        self.data, self.reading = data, reading
        self.name = data[0] if len(data) == 1 else f"{data[0]} and {len(data) - 1} more"
        self.chunk = min(chunk or CHUNK, CHUNK) if "-" in data else CHUNK
        state = state or {}
        scalings: dict[str, Callable[[], Any]] = {"standard": Standardise, "minmax": MinMax}
        if state:
            for option in ("features", "categorical", "hash", "scale"):
                if getattr(reading, option) is not None:
                    raise typer.BadParameter(
                        "the model keeps its columns and their scale: leave it out", param_hint=f"--{option}"
                    )
            self.columns = Columns.from_state(state["columns"])
            self.columns.missing = "drop" if reading.missing == "drop" else self.columns.missing
            self.columns.target = _place(reading.target) if reading.target is not None else self.columns.target
            self.parts = [part_from_state(part) for part in state["parts"]]
            self.zero_based, self.dense = bool(state["zero_based"]), bool(state["dense"])
        else:
            self.columns = Columns(
                _place(reading.target),
                _listed(reading.features),
                _listed(reading.categorical) or (),
                reading.hash,
                reading.missing,
            )
            self.parts = [scalings[reading.scale]()] if reading.scale else []
            self.zero_based, self.dense = reading.zero_based, reading.dense
        self._task: str | None = None
        self.stream = self._shuffled(self._open())
        scaling = [part.to_state() for part in self.parts]
        self.stream.info |= {"skip": reading.skip, "first_rows": reading.rows, "parts": scaling}

    def _open(self) -> "Stream":
        from pathlib import Path

        from ..papers import dataset, dataset_names
        from ..streams import synthetic
        from ..streams.synthetic import STREAMS

        reading, first = self.reading, self.data[0]
        if len(self.data) > 1:
            for path in self.data:
                if path != "-" and not Path(path).exists():
                    raise FileNotFoundError(f"there is no file {path!r}; only files can follow one another")
            return self._read(self.data)
        if first == "-" or Path(first).exists():
            return self._read(first)
        if first in dataset_names():
            positive = None if reading.positive is None else [_label(one) for one in reading.positive.split(",")]
            named = dataset(first, positive)
            self._task = named.task
            return named.stream(reading.part, chunk=self.chunk)
        if first in STREAMS:
            self._task = "classification"
            return synthetic(first, reading.skip + (reading.rows or SYNTHETIC_ROWS), chunk=self.chunk)
        known = ", ".join((*dataset_names(), *STREAMS))
        raise FileNotFoundError(f"there is no file {first!r}, nor a data set of that name; the data sets are {known}")

    def _read(self, files: Any) -> "Stream":
        """The rows of files, with what is needed to read them again on record."""
        from ..streams import stream

        rows = stream(files, columns=self.columns, **self.options())
        rows.info |= {"files": self.data, "columns": self.columns.to_state(), "options": self.options()}
        return rows

    def options(self) -> dict[str, Any]:
        """How files are read, besides their columns."""
        reading = self.reading
        return {
            "format": reading.format,
            "header": reading.header,
            "delimiter": reading.delimiter,
            "n_features": reading.n_features,
            "zero_based": self.zero_based,
            "dense": self.dense,
            "chunk": self.chunk,
        }

    def _shuffled(self, rows: "Stream") -> "Stream":
        if self.reading.shuffle is None:
            return rows
        import numpy as np

        from ..streams import stream

        X, y = rows.load()
        order = np.random.default_rng(self.reading.shuffle).permutation(X.shape[0])
        shuffled = stream(X[order], None if y is None else y[order], chunk=self.chunk)
        shuffled.info = {**rows.info, "order": self.reading.shuffle}
        return shuffled

    def chunks(self) -> Iterator[tuple[Any, Any]]:
        """The rows asked for, not yet scaled; a row that is not finite is named, once those before it have been given."""
        skip, last = self.reading.skip, None if self.reading.rows is None else self.reading.skip + self.reading.rows
        row = 0
        for X, y in self.stream:
            first, row = row, row + X.shape[0]
            keep = slice(max(skip - first, 0), None if last is None else last - first)
            X, y = X[keep], None if y is None else y[keep]
            good = _finite_rows(X)
            if good:
                yield X[:good], None if y is None else y[:good]
            if good < X.shape[0]:
                raise ValueError(f"row {first + keep.start + good + 1} contains NaN or infinity")
            if last is not None and row >= last:
                return

    def task_of(self, y: Any) -> str:
        """Of a named data set its task; otherwise regression if a target has a fraction, else classification."""
        import numpy as np

        if y is None:
            raise ValueError(f"the rows of {self.name} have no target; name its column with --target")
        fractions = y.dtype.kind == "f" and not np.array_equal(y, np.floor(y))
        return self._task or ("regression" if fractions else "classification")

    def scaled(self, X: Any, learning: bool = True) -> Any:
        """Rows as the model gets them."""
        for part in self.parts:
            X = part.learn_transform(X) if learning else part.transform(X)
        return X

    def scaled_ahead(self, X: Any) -> Any:
        """The same, without anything learned from them."""
        for part in copy.deepcopy(self.parts):
            X = part.learn_transform(X)
        return X

    def as_stream(self) -> "Stream":
        """The rows asked for, scaled, as a stream that is read once."""
        from ..streams import Stream

        def pieces(_: Stream) -> Iterator[tuple[Any, Any]]:
            for X, y in self.chunks():
                yield self.scaled(X), y

        return Stream(pieces, chunk=self.chunk, names=self.stream.names, info=self.stream.info, once=True)

    def state(self) -> dict[str, Any]:
        """What a model file keeps."""
        return {
            "columns": self.columns.to_state(),
            "parts": [part.to_state() for part in self.parts],
            "zero_based": self.zero_based,
            "dense": self.dense,
        }


def _listed(text: str | None) -> list[str] | None:
    return None if text is None else [one.strip() for one in text.split(",")]


def _place(text: str | None) -> str | int | None:
    """A column by place if that is what the text is, else by name."""
    return int(text) if text and text.lstrip("-").isdigit() else text


def _label(text: str) -> Any:
    try:
        return int(text)
    except ValueError:
        return text


def _finite_rows(X: Any) -> int:
    """How many rows come before the first that is not finite."""
    import numpy as np
    from scipy import sparse

    bad = np.flatnonzero(~np.isfinite(X.data if sparse.issparse(X) else X))
    if not len(bad):
        return X.shape[0]
    return int(np.searchsorted(X.indptr, bad[0], side="right") - 1 if sparse.issparse(X) else bad[0] // X.shape[1])
