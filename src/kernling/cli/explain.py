"""The command that explains predictions."""

# No "from __future__ import annotations" here: typer needs the types themselves.
import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Annotated, Any

import typer

from .data import Reading, Source, takes_reading
from .learn import Data, Model

ROWS = 5  # that are explained if none are asked for
SHOWN = 12  # columns of a row that are shown one by one
WIDTH = 16  # characters of the longest bar


@takes_reading
def explain(
    model: Model,
    data: Data,
    reading: Reading,
    background: Annotated[
        str | None, typer.Option(help="Data whose first 64 rows to compare with (default: rows stored in the model).")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Write a line of JSON for each row.")] = False,
) -> None:
    """Show what each column contributes to the scores of rows.

    The first 5 rows are explained, or as many as --rows says.  Contributions sum to the score minus the base, which is the mean
    score of rows with random values.  With more than two classes, the score is that of the predicted label.  Rows with missing
    values that the model cannot impute are left out.
    """
    from .. import models
    from ..estimators.explained import BACKGROUND

    saved = models.read(model)
    if not hasattr(saved.model, "explain"):
        raise ValueError(f"the model in {model} has no scores to explain")
    compared = {}
    if background is not None:
        chunks = list(_rows(background, replace(reading, skip=None, rows=BACKGROUND), saved))
        compared = {"background": chunks[0][0]} if chunks else {}
    for X, places in _rows(data, replace(reading, rows=reading.rows or ROWS), saved):
        found, said = saved.model.explain(X, **compared), saved.model.predict(X)
        for i, place in enumerate(places):
            told = {"row": place, "prediction": said[i].item(), **found.row(i), "values": _given(X, found, i)}
            if as_json:
                typer.echo(json.dumps(told))
            else:
                _show(told)


def _rows(data: str, reading: Reading, saved: Any) -> Iterator[tuple[Any, list[int]]]:
    """Yield rows that can be predicted, with their numbers, from 1 on."""
    from .answers import usable

    source = Source([data], reading, saved=saved, every_row=True)
    first = source.skip + 1
    for X, _ in source.chunks():
        good = usable(saved.model, X)
        if good.any():
            yield (X if good.all() else X[good]), [first + place for place in good.nonzero()[0].tolist()]
        first += len(good)


def _given(X: Any, found: Any, place: int) -> dict[str, Any]:
    """Return the values of a row in the columns that are explained, as JSON-compatible data."""
    if hasattr(X, "columns"):
        given = {name: X.columns[name][place] for name in found.columns if name in X.columns}
    else:
        row = X[place].toarray().ravel() if hasattr(X, "toarray") else X[place]
        given = dict(zip(found.columns, row, strict=True)) if len(row) == len(found.columns) else {}
    return {name: value.item() if hasattr(value, "item") else value for name, value in given.items()}


def _show(told: dict[str, Any]) -> None:
    """Print a table with bars, to the left for what lowers the score."""
    from rich.console import Console
    from rich.table import Table

    said = told["prediction"]
    said = f"{said:.4g}" if isinstance(said, float) else said
    of = f" of {told['score_of']!r}" if "score_of" in told else ""
    title = f"row {told['row']:,}: {said} (score{of} {told['score']:.4g}, base {told['base']:.4g})"
    table = Table(title=title, title_justify="left")
    for name, side in (("column", "left"), ("value", "right"), ("contribution", "right"), ("", "right"), ("", "left")):
        table.add_column(name, justify=side)  # type: ignore[arg-type]
    shown = list(told["contributions"].items())
    rest = shown[SHOWN:]
    shown = shown[:SHOWN] + ([(f"{len(rest)} others", sum(value for _, value in rest))] if rest else [])
    largest = max(abs(value) for _, value in shown) or 1.0
    for name, value in shown:
        bar, error = "█" * round(WIDTH * abs(value) / largest), told["error"].get(name)
        given = told["values"].get(name, "")
        given = f"{given:.4g}" if isinstance(given, float) else str(given)
        table.add_row(
            name, given, f"{value:+.4g}" + (f" ± {error:.1g}" if error else ""), *((bar, "") if value < 0.0 else ("", bar))
        )
    Console().print(table)
