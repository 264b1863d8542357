"""Options that say what the rows are, shared by all commands that read data; and rows that remember how they were read."""

# No "from __future__ import annotations" here: typer looks at the types themselves.
import inspect
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

if TYPE_CHECKING:
    from ..models import Saved
    from ..pipeline import StreamPipeline
    from ..streams import Stream
    from ..streams.base import Chunk

SYNTHETIC_ROWS = 20_000
MODEL = "model"  # the last step of pipelines
KEPT = ("target", "categorical", "missing", "zero_based", "dense")  # what a model file keeps of how rows are read
COLUMNS = ("categorical", "numeric", "date", "ignore")  # options that say how columns are treated
Missing = Literal["error", "drop", "impute"]
Scale = Literal["standard", "minmax", "none"]
Format = Literal["libsvm", "csv", "parquet", "arrow", "jsonl"]
Part = Literal["train", "test", "all"]


def _option(help: str, *names: str, **more: Any) -> Any:
    return typer.Option(*names, help=help, **more)


@dataclass
class Reading:
    """How rows are read; each field is an option."""

    target: Annotated[str | None, _option("Column with the target: its name, or its place (-1 is the last).")] = None
    features: Annotated[str | None, _option("Columns to use, separated by commas; all others if not given.")] = None
    categorical: Annotated[str | None, _option("Columns that are categories, though they look like numbers.")] = None
    numeric: Annotated[str | None, _option("Columns that are numbers, though they don't look like it.")] = None
    date: Annotated[str | None, _option("Columns that are dates; numbers are seconds since 1970.")] = None
    ignore: Annotated[str | None, _option("Columns to leave out.")] = None
    hash: Annotated[int | None, _option("Hash categories into so many columns.", min=1)] = None
    missing: Annotated[Missing | None, _option("What to do about missing values; impute if not given.")] = None
    scale: Annotated[Scale | None, _option("Running scaling of numbers; standard for tables if not given.")] = None
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
    """The rows that a command was asked for, and how they are read.

    With ``saved``, a model file, further rows are read as those were that its model has learned.  With ``every_row``, none is
    left out for what it lacks; with ``unlabelled``, none for the lack of a target.  ``rows`` counts those read so far.
    """

    def __init__(
        self,
        data: list[str],
        reading: Reading,
        *,
        saved: "Saved | None" = None,
        every_row: bool = False,
        unlabelled: bool = False,
    ):
        self.data, self.reading = data, reading
        self.name = data[0] if len(data) == 1 else f"{data[0]} and {len(data) - 1} more"
        self._task: str | None = None
        self._known = _read_before(reading, saved) if saved else {}
        if every_row and reading.missing != "error":
            self._known["missing"] = "keep"
        self._unlabelled = every_row or unlabelled
        self._without_target = 0
        self.rows = reading.skip
        self._events = 0  # rows with a target before those of the chunk at hand, whose places are
        self._labelled: Any = ()
        self._opened = self._open()
        self.stream = self._shuffled(self._opened)
        self.stream.info |= {"skip": reading.skip, "first_rows": reading.rows}

    def _open(self) -> "Stream":
        from pathlib import Path

        from ..papers import dataset, dataset_names
        from ..streams import stream, synthetic
        from ..streams.synthetic import STREAMS

        reading, first = self.reading, self.data[0]
        for path in self.data if len(self.data) > 1 else ():
            if path != "-" and not Path(path).exists():
                raise FileNotFoundError(f"there is no file {path!r}; only files can follow one another")
        if len(self.data) > 1 or first == "-" or Path(first).exists():
            rows = stream(self.data if len(self.data) > 1 else first, **self.options())
            rows.info |= {"files": self.data, "options": self.options()}
            return rows
        if first in dataset_names():
            positive = None if reading.positive is None else [_label(one) for one in reading.positive.split(",")]
            named = dataset(first, positive)
            self._task = named.task
            return named.stream(reading.part)
        if first in STREAMS:
            self._task = "classification"
            return synthetic(first, reading.skip + (reading.rows or SYNTHETIC_ROWS))
        known = ", ".join((*dataset_names(), *STREAMS))
        raise FileNotFoundError(f"there is no file {first!r}, nor a data set of that name; the data sets are {known}")

    def options(self) -> dict[str, Any]:
        """How files are read: the options of ``kernling.streams.stream``."""
        reading = self.reading
        return {
            "target": _place(reading.target),
            "features": _listed(reading.features),
            "categorical": [*(_listed(reading.categorical) or ()), *(_listed(reading.date) or ())],
            "missing": "keep" if reading.missing in (None, "impute") else reading.missing,
            "format": reading.format,
            "header": reading.header,
            "delimiter": reading.delimiter,
            "n_features": reading.n_features,
            "zero_based": reading.zero_based,
            "dense": reading.dense,
        } | self._known

    def kept(self) -> dict[str, Any]:
        """What a model file keeps of them."""
        return {name: self.options()[name] for name in KEPT} | {"target": self.stream.target}

    def _shuffled(self, rows: "Stream") -> "Stream":
        if self.reading.shuffle is None:
            return rows
        import numpy as np

        from ..streams import Stream, Table

        X, y = rows.load()
        order = np.random.default_rng(self.reading.shuffle).permutation(X.shape[0])
        whole = X[order], None if y is None else y[order]
        if isinstance(X, Table):
            whole[0].places = None
        info = {**rows.info, "order": self.reading.shuffle}
        return Stream(lambda _: iter([whole]), names=rows.names, target=rows.target, info=info)

    def chunks(self) -> "Iterator[Chunk]":
        """The rows asked for."""
        import numpy as np

        from ..streams.tables import missing, places_of

        first = self.reading.skip
        last = np.inf if self.reading.rows is None else first + self.reading.rows
        given = 0
        for X, y in self.stream:
            places = places_of(X, given)
            given += X.shape[0]
            asked = (places >= first) & (places < last)
            if asked.any():
                X, y = (X, y) if asked.all() else (X[asked], None if y is None else y[asked])
                labelled = np.ones(X.shape[0], dtype=bool) if y is None else ~missing(y)
                self._events += len(self._labelled)
                self._labelled, self.rows = places[asked][labelled], int(places[asked][-1]) + 1
                self._without_target += int((~labelled).sum())
                yield (X, y) if self._unlabelled else with_targets(X, y)
            if places[-1] + 1 >= last:
                return
        self.rows = max(self.rows, int(min(last, given + self._opened.dropped)))

    def rows_until(self, events: int) -> int:
        """The rows of the source before the one that comes next when so many of those with a target have been learned."""
        learned = events - self._events
        return int(self._labelled[learned]) if learned < len(self._labelled) else self.rows

    @property
    def dropped(self) -> int:
        """The rows left out so far because a value was missing."""
        return self._opened.dropped + self._without_target

    def begin(self) -> "tuple[Chunk, Iterator[Chunk]]":
        """The rows of the first chunk that have a target, where there are targets; and all chunks."""
        chunks = self.chunks()
        before = []
        for chunk in chunks:
            before.append(chunk)
            X, y = with_targets(*chunk)
            if X.shape[0]:
                return (X, y), itertools.chain(before, chunks)
        raise ValueError(f"{self.name} has no rows{' with a target' if before else ''}")

    def task_of(self, y: Any) -> str:
        """The task of a named data set, or what the targets look like."""
        from ..estimators.by_task import task_of

        if y is None:
            raise ValueError(f"the rows of {self.name} have no target; name its column with --target")
        return self._task or task_of(y)

    def steps(self, X: Any) -> list[tuple[str, Any]]:
        """What the options ask to do with rows like these before a model gets them."""
        from ..pipeline import OUTLIER
        from ..streams import Encode, MinMax, Standardise, Table

        reading = self.reading
        scalings: dict[str, Any] = {"standard": Standardise(clip=OUTLIER), "minmax": MinMax(), "none": None}
        scale = scalings[reading.scale or ("standard" if isinstance(X, Table) else "none")]
        if not isinstance(X, Table):
            return [("scale", scale)] if scale else []
        columns: dict[str, Any] = {name: _listed(getattr(reading, name)) or [] for name in COLUMNS}
        columns["categorical"] = [name for name in columns["categorical"] if name in X.names]  # not the target
        missing = "impute" if reading.missing in (None, "impute") else "error"
        return [("encode", Encode(hash=reading.hash, scale=scale, missing=missing, **columns))]

    def pipeline(self, model: Any, X: Any) -> "StreamPipeline":
        """A model that takes rows like these."""
        from ..pipeline import StreamPipeline

        return StreamPipeline([*self.steps(X), (MODEL, model)])


def with_targets(X: Any, y: Any) -> "Chunk":
    """The rows that have a target, where rows have any."""
    from ..streams.tables import missing

    if y is None or not missing(y).any():
        return X, y
    there = ~missing(y)
    return X[there], y[there]


def _read_before(reading: Reading, saved: "Saved") -> dict[str, Any]:
    """The options of ``kernling.streams.stream`` that a model file decides; some of the command line win over them."""
    from ..streams.steps import columns_of

    for option in ("features", *COLUMNS, "hash", "scale"):
        if getattr(reading, option) is not None:
            raise typer.BadParameter("the model keeps its columns and their scale: leave it out", param_hint=f"--{option}")
    known = columns_of(saved.model) | {name: value for name, value in saved.reading.items() if name in KEPT}
    if reading.target is not None:
        known["target"] = _place(reading.target)
    if reading.missing in ("error", "drop"):
        known["missing"] = reading.missing
    if reading.n_features is None:
        known["n_features"] = saved.model.n_features_in_
    return known


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
