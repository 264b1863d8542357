"""Search for parameters."""

# No "from __future__ import annotations" here: typer looks at the types themselves.
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from . import settings
from .data import Reading, Source, takes_reading
from .learn import Data, Results, _check_outputs

if TYPE_CHECKING:
    from ..estimators.ranges import Range


@takes_reading
def tune(
    data: Data,
    reading: Reading,
    learner: settings.LearnerOption = "avm",
    set: settings.SetOption = [],  # noqa: B006 - typer makes a new list
    range: Annotated[
        list[str], typer.Option("--range", help="Where to look, as name=low:high or name=value,value; may be repeated.")
    ] = [],  # noqa: B006 - typer makes a new list
    candidates: Annotated[int, typer.Option(min=1, help="How many to try.")] = 27,
    grid: Annotated[bool, typer.Option("--grid", help="An even grid instead of random candidates.")] = False,
    first: Annotated[int, typer.Option(min=1, help="Events after which the worse two thirds drop out.")] = 1000,
    metric: Annotated[str | None, typer.Option(help="What to compare; mistakes or RMSE if not given.")] = None,
    max_points: Annotated[int | None, typer.Option(min=1, help="Prefer models that store at most so many points.")] = None,
    task: settings.TaskOption = None,
    seed: settings.SeedOption = 0,
    save: Annotated[Path | None, typer.Option(help="Keep the winner, which has learned all rows, in this file.")] = None,
    results: Results = None,
) -> None:
    """Search for a method's parameters: many candidates in one pass, the worse ones drop out on the way."""
    import itertools
    import json

    from .. import models
    from ..evaluate import search, write_rows
    from ..report import cells, show
    from ..streams import Stream

    _check_outputs(save, results, None)
    source = Source([data], reading)
    rows = source.as_stream()
    chunks = iter(rows)
    start = next(chunks, None)
    if start is None:
        raise ValueError(f"{data} has no rows")
    model = settings.new_model(learner, task or source.task_of(start[1]), settings.split_pairs(set, "--set"), seed)
    found = search(
        model,
        Stream(lambda _: itertools.chain([start], chunks), chunk=rows.chunk, info=rows.info, once=True),
        ranges={name: _range(name, text) for name, text in settings.split_pairs(range, "--range").items()} or None,
        candidates=candidates,
        grid=grid,
        metric=metric,
        first=first,
        max_points=max_points,
        seed=seed,
        on_rung=lambda events, left: typer.echo(f"after {events:,} events {left} candidates are left", err=True),
    )
    if save:
        models.save(found.model, save, source.state())
    if results:
        write_rows(found.rows, results)
    shown = [{**row, **{name: json.loads(row["params"])[name] for name in found.params}} for row in found.rows[:10]]
    measured = metric or ("rmse" if found.model.task == "regression" else "mistakes")
    show(cells(shown, [*found.params, "events", measured, "n_stored", "seconds"]), f"{learner} on {data}")
    typer.echo(settings.as_options({name: shown[0][name] for name in found.params}))


def _range(name: str, text: str) -> "Range":
    from ..estimators.ranges import Among, Log

    low, colon, high = text.partition(":")
    if not colon:
        return Among(tuple(settings.value_of(one) for one in text.split(",")))
    try:
        limits = Log(float(low), float(high))
    except ValueError:
        raise typer.BadParameter(f"{name} must be low:high, two numbers, not {text!r}", param_hint="--range") from None
    if not 0.0 < limits.low <= limits.high:
        raise typer.BadParameter(f"{name} must go from a number above 0 to a larger one, not {text!r}", param_hint="--range")
    return limits
