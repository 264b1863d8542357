"""Search for parameters."""

# No "from __future__ import annotations" here: typer looks at the types themselves.
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from . import settings
from .data import Reading, Source, takes_reading
from .interrupts import Interrupts, pieces
from .learn import Data, Results, _check_outputs, _where_it_stopped

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
    validation: Annotated[
        Path | None,
        typer.Option(help="Compare the candidates on the rows of this file, read like the data.", exists=True, dir_okay=False),
    ] = None,
    max_points: Annotated[int | None, typer.Option(min=1, help="Prefer models that store at most so many points.")] = None,
    task: settings.TaskOption = None,
    seed: settings.SeedOption = 0,
    save: Annotated[
        Path | None,
        typer.Option(help="Keep the winner, which has learned all rows, in this file, also after Ctrl-C or a bad row."),
    ] = None,
    results: Results = None,
) -> None:
    """Search for a method's parameters: many candidates in one pass, the worse ones drop out on the way."""
    from .. import models
    from ..evaluate import Search, write_rows

    _check_outputs(save, results, None)
    fixed, looked_for = settings.split_pairs(set, "--set"), settings.split_pairs(range, "--range")
    asked = {name: _range(name, text) for name, text in looked_for.items()}
    for name in (name for name in asked if name in fixed):
        raise typer.BadParameter(f"{name} is fixed by --set: leave out one of the two", param_hint="--range")
    source = Source([data], reading)
    running: Search | None = None
    held: tuple[Any, Any] | None = None

    def begun(y: Any) -> Search:
        model = settings.new_model(learner, task or source.task_of(y), fixed, seed)
        return Search(
            model,
            source.stream.info,
            ranges=asked or _not_fixed(model, fixed),
            candidates=candidates,
            grid=grid,
            metric=metric,
            first=first,
            max_points=max_points,
            seed=seed,
            on_rung=lambda events, left: typer.echo(f"after {events:,} events {left} candidates are left", err=True),
        )

    with Interrupts() as interrupts, interrupts.held_back():
        for X, y in source.chunks():
            if running is None:
                running = begun(y)
                running.begin(source.scaled_ahead(X), y)
                held = _validation(validation, source, X.shape[1]) if validation else None
            for part in pieces(len(y)):
                with interrupts.deferred():
                    rows = source.scaled(X[part])
                    running.validation = (source.scaled(held[0], learning=False), held[1]) if held else None
                    running.learn(rows, y[part])
    if running and running.events:
        found = running.end()
        if save:
            models.save(found.model, save, source.state())
        if results:
            write_rows(found.rows, results)
        _tell(found, running.metric, f"{learner} on {data}")
        if interrupts.stopped:
            _where_it_stopped(running.events, reading.skip, save, mend=interrupts.failure is not None)
    interrupts.let_go()
    if running is None:
        raise ValueError(f"{data} has no rows")


def _tell(found: Any, metric: str, title: str) -> None:
    import json

    from ..report import cells, show

    shown = [{**row, **{name: json.loads(row["params"])[name] for name in found.params}} for row in found.rows[:10]]
    measured = [name for name in (metric, f"{metric}_validation") if name in shown[0]]
    why = next((row["failed"] for row in found.rows if "failed" in row), None)
    failed = sum("failed" in row for row in found.rows)
    note = f"{failed} of {len(found.rows)} candidates failed, such as: {why}" if failed else None
    show(cells(shown, [*found.params, "events", *measured, "n_stored", "seconds"]), title, note)
    typer.echo(settings.as_options({name: shown[0][name] for name in found.params}))


def _not_fixed(model: Any, fixed: dict[str, str]) -> "dict[str, Range]":
    """What is looked for unless --range says it: the ranges that the method declares, but for what --set fixes."""
    from ..estimators.ranges import ranges_of

    left = {name: values for name, values in ranges_of(model).items() if name not in fixed}
    if not left:
        raise typer.BadParameter("nothing is left to search: leave one out, or give a --range", param_hint="--set")
    return left


def _validation(path: Path, source: Source, width: int) -> tuple[Any, Any]:
    """The rows of a file, with the columns of the source, not yet scaled."""
    from ..streams import Stream

    whole = {"features": None, "categorical": None, "hash": None, "scale": None, "shuffle": None, "skip": 0, "rows": None}
    reading = replace(source.reading, **whole, n_features=width)  # type: ignore[arg-type]
    held = Source([str(path)], reading, state=source.state())
    X, y = Stream(lambda _: held.chunks(), once=True).load()
    if y is None:
        raise ValueError(f"the rows of {path} have no target; name its column with --target")
    return X, y


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
