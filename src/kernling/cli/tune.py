"""The command that searches for parameters."""

# No "from __future__ import annotations" here: typer needs the annotations as types.
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..registry import DEFAULT
from . import settings
from .data import MODEL, Reading, Source, takes_reading, with_targets
from .interrupts import PIECE, Interrupts
from .learn import Data, Results, check_outputs, where_it_stopped
from .resume import place_of
from .status import Status

if TYPE_CHECKING:
    from ..estimators.ranges import Range

SHOWN = 10  # candidates in the table, and the defaults


@takes_reading  # each option of the command is an argument
def tune(
    data: Data,
    reading: Reading,
    learner: settings.LearnerOption = DEFAULT,
    set: settings.SetOption = [],  # noqa: B006 - typer makes a new list
    range: Annotated[
        list[str], typer.Option("--range", help="Search range as name=low:high or name=value,value; may be repeated.")
    ] = [],  # noqa: B006 - typer makes a new list
    candidates: Annotated[int, typer.Option(min=1, help="Number of candidates to try.")] = 27,
    grid: Annotated[bool, typer.Option("--grid", help="Use an even grid instead of random candidates.")] = False,
    first: Annotated[int, typer.Option(min=1, help="Number of events before the worse two thirds are first dropped.")] = 1000,
    metric: Annotated[str | None, typer.Option(help="Metric to compare (default: mistakes or rmse).")] = None,
    validation: Annotated[
        Path | None,
        typer.Option(help="Compare the candidates on the rows of this file, read like the data.", exists=True, dir_okay=False),
    ] = None,
    max_points: Annotated[int | None, typer.Option(min=1, help="Prefer models that store at most this many points.")] = None,
    task: settings.TaskOption = None,
    seed: settings.SeedOption = 0,
    save: Annotated[
        Path | None,
        typer.Option(help="Save the best model, trained on all rows, to this file, even after Ctrl-C or a bad row."),
    ] = None,
    results: Results = None,
) -> None:
    """Search for a method's parameters, in one pass.

    Many candidates learn the same rows, and the worse ones are dropped along the way.
    """
    check_outputs(save, results)
    fixed = settings.split_pairs(set, "--set")
    asked = _ranges(settings.split_pairs(range, "--range"), fixed)
    from ..evaluate import Search, feed  # now: errors above come at once

    how: dict[str, Any] = {"candidates": candidates, "grid": grid, "metric": metric, "first": first, "max_points": max_points}
    source = Source([data], reading)
    running: Search | None = None
    with Interrupts() as interrupts, Status("starting") as status, interrupts.held_back():
        (X, y), chunks = source.begin()
        model = settings.new_model(learner, task or source.task_of(y), fixed, seed)
        ranges = asked or _not_fixed(model, fixed)
        running = Search(
            source.pipeline(model, X),
            source.stream.info,
            ranges={f"{MODEL}__{name}": values for name, values in ranges.items()},
            validation=_validation(validation, source, X) if validation else None,
            seed=seed,
            on_rung=_tell_rung,
            **how,
        )
        running.begin(X, y)
        search = running
        feed(search, chunks, cut=PIECE, guard=interrupts.deferred, after=lambda: status.show(f"{search.events:,} events"))
    if running and running.events:
        found = running.end()
        _write(found, running.events, source, save, results)
        _tell(found, running.metric, f"{learner} on {source.name}")
        if interrupts.stopped:
            where_it_stopped(running.events, source, save, mend=interrupts.failure is not None)
    interrupts.let_go()


def _write(found: Any, events: int, source: Source, save: Path | None, results: Path | None) -> None:
    """Save the best model, and write the results of all candidates."""
    from .. import models
    from ..evaluate import write_rows

    if save:
        models.save(found.model, save, source.kept(), place_of(source, source.rows_until(events)))
    if results:
        write_rows(found.rows, results)


def _tell_rung(events: int, left: int) -> None:
    typer.echo(f"after {events:,} events: {left} {'candidates' if left > 1 else 'candidate'} left", err=True)


def _tell(found: Any, metric: str, title: str) -> None:
    """Show the best candidates and the defaults, and how to use the winner's parameters."""
    import json

    from ..report import cells, show

    params = [name.removeprefix(f"{MODEL}__") for name in found.params]
    best = found.rows[:SHOWN]
    rows = best if found.given in best else [*best, found.given]
    shown = [{**row, **{name: json.loads(row["params"])[name] for name in params}} for row in rows]
    measured = [name for name in (metric, f"{metric}_validation") if name in shown[0]]
    why = next((row["failed"] for row in found.rows if "failed" in row), None)
    failed = sum("failed" in row for row in found.rows)
    note = f"{failed} of {len(found.rows)} candidates failed, such as: {why}" if failed else None
    show(cells(shown, ["candidate", *params, "events", *measured, "n_stored", "seconds"]), title, note)
    if found.improved:
        typer.echo(settings.as_options({name: shown[0][name] for name in params}))
    else:
        typer.echo("No candidate is better than the defaults (candidate 0) by more than noise: keep the defaults.")


def _not_fixed(model: Any, fixed: dict[str, str]) -> "dict[str, Range]":
    """Return the default search ranges: those that the method declares, without the parameters fixed by --set."""
    from ..estimators.ranges import ranges_of

    left = {name: values for name, values in ranges_of(model).items() if name not in fixed}
    if not left:
        raise typer.BadParameter("no parameter is left to search: fix fewer, or give a --range", param_hint="--set")
    return left


def _validation(path: Path, source: Source, X: Any) -> tuple[Any, Any]:
    """Read the validation rows from a file in the same way as the rows of the source."""
    from ..io import stream

    columns = {"features": source.stream.names, "target": source.stream.target, "n_features": X.shape[1]}
    X, y = with_targets(*stream(path, **source.options() | columns).load())
    if y is None:
        raise ValueError(f"the rows of {path} have no target; name its column with --target")
    return X, y


def _ranges(given: dict[str, str], fixed: dict[str, str]) -> "dict[str, Range]":
    """Return the search ranges that --range asks for."""
    for name in given.keys() & fixed.keys():
        raise typer.BadParameter(f"{name} is fixed by --set: leave out one of the two", param_hint="--range")
    return {name: _range(name, text) for name, text in given.items()}


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
        raise typer.BadParameter(f"{name} must go from a positive number to a larger one, not {text!r}", param_hint="--range")
    return limits
