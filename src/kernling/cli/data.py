"""Options for reading data, shared by all commands, and the source of rows that they describe."""

# No "from __future__ import annotations" here: typer needs the annotations as types.
import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from .resume import START, Start

if TYPE_CHECKING:
    from ..io import Stream
    from ..io.base import Chunk
    from ..io.events import Events
    from ..models import Saved
    from ..pipeline import StreamPipeline

SYNTHETIC_ROWS = 20_000
MODEL = "model"  # name of a pipeline's last step
KEPT = ("target", "categorical", "missing", "zero_based", "dense")  # reading options stored in a model file
COLUMNS = ("categorical", "numeric", "date", "text", "ignore")  # options that override the treatment of columns
Missing = Literal["error", "drop", "impute"]
Scale = Literal["standard", "minmax", "none"]
Format = Literal["libsvm", "csv", "parquet", "arrow", "jsonl"]
Part = Literal["train", "test", "all"]
Decimal = Literal[".", ","]


def _option(help: str, *names: str, **more: Any) -> Any:
    return typer.Option(*names, help=help, **more)


@dataclass
class Reading:
    """Options for reading rows; each field is a command-line option."""

    target: Annotated[str | None, _option("Target column: name or position (-1 is the last).")] = None
    features: Annotated[str | None, _option("Comma-separated feature columns (default: all but the target).")] = None
    categorical: Annotated[str | None, _option("Comma-separated columns to treat as categories.")] = None
    numeric: Annotated[str | None, _option("Comma-separated columns to treat as numbers.")] = None
    date: Annotated[str | None, _option("Comma-separated columns to treat as dates; numbers are seconds since 1970.")] = None
    text: Annotated[str | None, _option("Comma-separated columns to treat as prose, scored by their words.")] = None
    ignore: Annotated[str | None, _option("Comma-separated columns to ignore.")] = None
    time: Annotated[str | None, _option("Column of times by which rows are ordered (default: the only dates).")] = None
    lags: Annotated[
        str | None,
        _option("Add values of earlier rows as columns: 1,24,humidity:1 is the target 1 and 24 rows back, humidity 1 back."),
    ] = None
    windows: Annotated[str | None, _option("Add means over earlier rows as columns, written like --lags.")] = None
    hash: Annotated[int | None, _option("Hash all categories into this number of columns.", min=1)] = None
    missing: Annotated[Missing | None, _option("How to handle missing values (default: impute).")] = None
    scale: Annotated[Scale | None, _option("Running scaling of numeric columns (default: standard for tables).")] = None
    format: Annotated[Format | None, _option("File format (default: detected from name and content).")] = None
    header: Annotated[bool, _option("Whether a CSV file starts with column names.")] = True
    delimiter: Annotated[str | None, _option("CSV delimiter (default: detected from the first line).")] = None
    encoding: Annotated[str | None, _option("Encoding of text, such as cp1252 (default: UTF-8, or as detected).")] = None
    decimal: Annotated[Decimal | None, _option("Decimal mark in numbers (default: inferred for each column).")] = None
    day_first: Annotated[
        bool | None, _option("Whether 3/4/2026 is in April (default: inferred from the values).", "--day-first/--month-first")
    ] = None
    n_features: Annotated[int | None, _option("Number of features of LIBSVM text read from standard input.", min=1)] = None
    zero_based: Annotated[bool, _option("LIBSVM indices start at 0.", "--zero-based")] = False
    dense: Annotated[bool, _option("Convert sparse rows to dense rows.", "--dense")] = False
    part: Annotated[Part, _option("Part of a named data set.")] = "train"
    positive: Annotated[str | None, _option("Comma-separated labels of a named data set that become +1.")] = None
    shuffle: Annotated[int | None, _option("Shuffle the rows with this seed; keeps all rows in memory.", metavar="SEED")] = None
    skip: Annotated[
        int | None, _option("Number of rows to skip at the start (default: 0, or where --resume stopped).", min=0)
    ] = None
    rows: Annotated[int | None, _option("Maximum number of rows to read.", min=1)] = None


def takes_reading(command: Callable[..., None]) -> Callable[..., None]:
    """Decorate a command so that the fields of its parameter ``reading`` become options."""
    fields = inspect.signature(Reading).parameters
    own = [one for one in inspect.signature(command, eval_str=True).parameters.values() if one.name != "reading"]

    def with_options(**given: Any) -> None:
        _check_file(given["data"])
        command(reading=Reading(**{name: given.pop(name) for name in fields}), **given)

    every = [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in (*own, *fields.values())]
    with_options.__signature__ = inspect.Signature(every)  # type: ignore[attr-defined]
    with_options.__annotations__ = {one.name: one.annotation for one in every}
    with_options.__name__, with_options.__doc__ = command.__name__, command.__doc__
    return with_options


def _check_file(data: str | list[str]) -> None:
    """Raise for the name of a file that is not there, before anything is imported to read it."""
    names = [data] if isinstance(data, str) else data
    if (
        len(names) == 1 and "://" not in names[0] and Path(names[0]).suffix and not Path(names[0]).exists()
    ):  # names of data sets have no suffix
        raise FileNotFoundError(f"there is no file {names[0]!r}: check its name and folder")


class Source:
    """The rows that a command reads, and how.

    With ``saved``, a model file, rows are read in the same way as those that the model was trained on, and ``start`` is where a
    resumed model continues.  With ``every_row``, no row is dropped because of missing values, and there may be no target column
    unless an option names it; with ``unlabelled``, no row is dropped because it has no target.  ``rows`` counts those read.
    """

    def __init__(
        self,
        data: list[str],
        reading: Reading,
        *,
        saved: "Saved | None" = None,
        every_row: bool = False,
        unlabelled: bool = False,
        start: Start = START,
    ):
        self.data, self.reading = data, reading
        first = "standard input" if data[0] == "-" else data[0]
        self.name = first if len(data) == 1 else f"{first} and {len(data) - 1} more"
        self._task: str | None = None
        self._known = _read_before(reading, saved) if saved else {}
        self._offsets = (saved.place or {}).get("offsets", {}) if saved and reading.skip is None else {}
        self.events: Events | None = None  # of a broker
        self.skip = reading.skip or start.skip
        self.again = start.again  # rows after them that were learned by an earlier run
        self._last = None if reading.rows is None else self.skip + self.again + reading.rows
        self.ends: set[int] = set()  # row numbers at which whole chunks end, whatever rows are requested
        if every_row:
            self._known["target_optional"] = reading.target is None
        if every_row and reading.missing != "error":
            self._known["missing"] = "keep"
        self._unlabelled = every_row or unlabelled
        self._without_target = 0
        self.rows = self.skip
        self._events = 0  # rows with a target before those of the chunk at hand, whose places are
        self._labelled: Any = ()
        self._opened = self._open()
        self.stream = self._shuffled(self._opened)
        self.stream.info |= {"skip": self.skip, "first_rows": reading.rows}

    def _open(self) -> "Stream":
        from ..brokers import is_url
        from ..io import stream, synthetic
        from ..io.synthetic import STREAMS
        from ..papers import dataset, dataset_names

        reading, first = self.reading, self.data[0]
        for path in self.data if len(self.data) > 1 else ():
            if path != "-" and not Path(path).exists():
                raise FileNotFoundError(f"there is no file {path!r}; when several sources are given, all must be files")
        if is_url(first) and len(self.data) == 1:
            return self._open_broker(first)
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
            return synthetic(first, max(self._last or 0, self.skip + SYNTHETIC_ROWS))
        known = ", ".join((*dataset_names(), *STREAMS))
        raise FileNotFoundError(f"there is no file {first!r}, nor a data set of that name; the data sets are {known}")

    def _open_broker(self, url: str) -> "Stream":
        """Open a stream of a broker, after the events that a resumed model has learned."""
        from ..brokers import Address
        from ..io import stream
        from ..io.events import TARGET, Events

        self._known.setdefault("target", _place(self.reading.target or TARGET))
        self.name = str(Address.parse(url))
        self.events = Events(url, self._offsets.get(self.name))
        rows = stream(self.events, **self.options())
        rows.info |= {"source": self.name}
        return rows

    def options(self) -> dict[str, Any]:
        """Return the options of ``kernling.io.stream``."""
        reading = self.reading
        return {
            "target": _place(reading.target),
            "features": _listed(reading.features),
            "categorical": [name for one in ("categorical", "date", "text") for name in _listed(getattr(reading, one)) or ()],
            "missing": "keep" if reading.missing in (None, "impute") else reading.missing,
            "format": reading.format,
            "header": reading.header,
            "delimiter": reading.delimiter,
            "encoding": reading.encoding,
            "decimal": reading.decimal,
            "n_features": reading.n_features,
            "zero_based": reading.zero_based,
            "dense": reading.dense,
        } | self._known

    def kept(self) -> dict[str, Any]:
        """Return the options that are stored in a model file."""
        return {name: self.options()[name] for name in KEPT} | {"target": self.stream.target}

    def _shuffled(self, rows: "Stream") -> "Stream":
        if self.reading.shuffle is None:
            return rows
        import numpy as np

        from ..io import Stream
        from ..io.base import rows_of
        from ..tables import Table

        X, y = rows.load()
        order = np.random.default_rng(self.reading.shuffle).permutation(X.shape[0])
        whole = rows_of(X, y, order)
        if isinstance(X, Table):
            whole[0].places = None
        info = {**rows.info, "order": self.reading.shuffle}
        return Stream(lambda _: iter([whole]), names=rows.names, target=rows.target, info=info)

    def chunks(self) -> "Iterator[Chunk]":
        """Yield the requested rows."""
        return self._asked_for(self._after_skip())

    def _after_skip(self) -> "Iterator[Chunk]":
        from ..io.base import CHUNK, rows_of
        from ..tables.table import places_of

        given = 0
        for X, y in self.stream:
            places = places_of(X, given)
            given += X.shape[0]
            if X.shape[0] == CHUNK:
                self.ends.add(int(places[-1]) + 1)
            kept = places >= self.skip
            if kept.any():
                yield (X, y) if kept.all() else rows_of(X, y, kept)

    def _asked_for(self, chunks: "Iterator[Chunk]") -> "Iterator[Chunk]":
        """Limit the rows to --rows, and count those that are learned."""
        import numpy as np

        from ..io.base import rows_of
        from ..tables.table import missing, places_of

        last = np.inf if self._last is None else self._last
        given = self.skip
        for X, y in chunks:
            places = places_of(X, given)
            given += X.shape[0]
            asked = places < last
            if asked.any():
                X, y = (X, y) if asked.all() else rows_of(X, y, asked)
                labelled = np.ones(X.shape[0], dtype=bool) if y is None else ~missing(y)
                self._events += len(self._labelled)
                self._labelled, self.rows = places[asked][labelled], int(places[asked][-1]) + 1
                self._without_target += int((~labelled).sum())
                yield (X, y) if self._unlabelled else with_targets(X, y)
            if places[-1] + 1 >= last:
                return
        self.rows = max(self.rows, int(min(last, given + self._opened.dropped)))

    def rows_until(self, events: int) -> int:
        """Return the number of rows of the source before the next one to learn, after this many events."""
        learned = events - self._events
        return int(self._labelled[learned]) if learned < len(self._labelled) else self.rows

    @property
    def dropped(self) -> int:
        """Number of rows dropped so far because of missing values."""
        return self._opened.dropped + self._without_target

    def begin(self) -> "tuple[Chunk, Iterator[Chunk]]":
        """Return the first rows with a target, from which "auto" parameters are resolved whatever --rows is, and all chunks."""
        from ..io.base import first_rows

        first, chunks = first_rows(self._after_skip(), live=self.stream.once, usable=with_targets)
        X, y = (None, None) if first is None else with_targets(*first)
        if X is None or not X.shape[0]:
            next(chunks, None)  # raises if an error is why there are no rows
            raise ValueError(f"{self.name} has no rows{'' if X is None else ' with a target'}")
        return (X, y), self._asked_for(chunks)

    def task_of(self, y: Any) -> str:
        """Return the task of a named data set, or infer it from the targets."""
        from ..estimators.task_choice import task_of

        if y is None:
            raise ValueError(f"the rows of {self.name} have no target; name its column with --target")
        return self._task or task_of(y)

    def steps(self, X: Any, keep_units: bool = False) -> list[tuple[str, Any]]:
        """Return the preprocessing steps that the options ask for; see ``Standardise`` for ``keep_units``."""
        from ..components.scaling import REACH
        from ..tables import Encode, MinMax, Standardise, Table

        reading = self.reading
        scalings: dict[str, Any] = {"standard": Standardise(REACH, keep_units), "minmax": MinMax(), "none": None}
        scale = scalings[self._scale_of(X)]
        if not isinstance(X, Table):
            if reading.time or reading.lags or reading.windows:
                raise ValueError("--time, --lags and --windows need columns with names")
            return [("scale", scale)] if scale else []
        named = {name: _listed(getattr(reading, name)) or [] for name in COLUMNS}
        named["categorical"] = [name for name in named["categorical"] if name in X.names]  # not the target
        columns: dict[str, Any] = {name: names for name, names in named.items() if names}
        missing = "impute" if reading.missing in (None, "impute") else "error"
        columns |= {"decimal": reading.decimal, "day_first": reading.day_first, "time": reading.time}
        columns |= {name: _rows_back(getattr(reading, name), f"--{name}") for name in ("lags", "windows")}
        return [("encode", Encode(hash=reading.hash, scale=scale, missing=missing, **columns))]

    def _scale_of(self, X: Any) -> str:
        """Return the name of the scale; tables are scaled by default."""
        from ..tables import Table

        return self.reading.scale or ("standard" if isinstance(X, Table) else "none")

    def pipeline(self, model: Any, X: Any) -> "StreamPipeline":
        """Return a pipeline that ends in the model; numbers are scaled once, by default as the model would do it itself."""
        from ..estimators.task_choice import scales_itself, without_own_scales
        from ..pipeline import StreamPipeline

        steps = self.steps(X, keep_units=self.reading.scale is None and scales_itself(model))
        return StreamPipeline([*steps, (MODEL, model if self._scale_of(X) == "none" else without_own_scales(model))])


def with_targets(X: Any, y: Any) -> "Chunk":
    """Return the rows that have a target; all rows if there are no targets."""
    from ..tables.table import missing

    if y is None or not missing(y).any():
        return X, y
    there = ~missing(y)
    return X[there], y[there]


def _read_before(reading: Reading, saved: "Saved") -> dict[str, Any]:
    """Return the options of ``kernling.io.stream`` for a saved model; some options of the command line take precedence."""
    from ..tables.steps import columns_of

    for option in ("features", *COLUMNS, "hash", "scale", "day_first", "time", "lags", "windows"):
        if getattr(reading, option) is not None:
            raise typer.BadParameter(
                "the model keeps its columns and scaling: leave this option out", param_hint=f"--{option.replace('_', '-')}"
            )
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


def _rows_back(text: str | None, option: str) -> list[Any]:
    """Parse 1,24,humidity:1 to numbers of rows of the target, and pairs of a column and a number of rows."""
    found: list[Any] = []
    for one in _listed(text) or ():
        name, _, rows = one.rpartition(":")
        if not rows.isdigit():
            raise typer.BadParameter(f"must be whole numbers such as 1,24,humidity:1, not {text!r}", param_hint=option)
        found.append((name, int(rows)) if name else int(rows))
    return found


def _place(text: str | None) -> str | int | None:
    """Return a column's position if the text is a number, else its name."""
    return int(text) if text and text.lstrip("-").isdigit() else text


def _label(text: str) -> Any:
    try:
        return int(text)
    except ValueError:
        return text
